//! The locality-aware adversary of paper 004, section II: it sees of each step, past or pending,
//! whether it reads or writes and whether it is local in DSM; never the register or the value.

use super::{
    ScheduleError, Scheduler, View,
    groups::{Group, Groups},
};
use crate::{machine::Event, random::Random, replay::Kind, subject::Region};

/// A strategy that knows of steps what [`Locality`] tells.
pub trait LocalityAware {
    /// Who moves next: one who has a pending step.
    fn next(&mut self, view: &Locality<'_>) -> Option<usize>;
}

/// What kind of step it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A compare-and-swap or another step that does both.
    Update,
    /// A coin is tossed. In the paper this is no step; here it is one, which tells that a coin is
    /// tossed and not how it falls.
    Coin,
}

/// What is seen of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Glimpse {
    /// What kind of step.
    pub is: Type,
    /// Whether the register lives elsewhere.
    pub remote: bool,
}

/// A call that has responded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Response {
    /// `lock()`: the process is in the critical section.
    Lock,
    /// `release()`: it is in its remainder.
    Release,
}

/// A step that has been made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Past {
    /// Who made it.
    pub process: usize,
    /// What is seen of it.
    pub step: Glimpse,
    /// The call that responded with it.
    pub response: Option<Response>,
}

/// All that the adversary learns. Nothing else can be had from it: neither registers nor values nor
/// coins.
pub struct Locality<'a> {
    view: &'a View<'a>,
}

impl Locality<'_> {
    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.view.regions.len()
    }

    /// How many have a pending step.
    pub fn pending_steps(&self) -> usize {
        self.view.able.len()
    }

    /// One of those who have a pending step, each as likely.
    pub fn anybody(&self, random: &mut Random) -> Option<usize> {
        let able = self.view.able;
        (!able.is_empty()).then(|| able[random.below(able.len() as u64) as usize])
    }

    /// What is seen of the step that `p` is about to make; `None` if it makes no more.
    pub fn pending(&self, p: usize) -> Option<Glimpse> {
        self.view.able.binary_search(&p).ok()?;
        let pending = self.view.machine.pending(p);
        Some(glimpse(pending.kind, pending.remote))
    }

    /// The last step. A strategy is asked after every one, so it can know them all.
    pub fn last(&self) -> Option<Past> {
        let event: &Event = self.view.last?;
        let response = match (event.from, event.to) {
            (from, Region::Critical) if from != Region::Critical => Some(Response::Lock),
            (_, Region::Remainder) => Some(Response::Release),
            _ => None,
        };
        Some(Past { process: event.process, step: glimpse(event.kind, event.remote), response })
    }
}

fn glimpse(kind: Kind, remote: bool) -> Glimpse {
    match kind {
        Kind::Read => Glimpse { is: Type::Read, remote },
        Kind::Write => Glimpse { is: Type::Write, remote },
        Kind::Update => Glimpse { is: Type::Update, remote },
        Kind::Choose(_) => Glimpse { is: Type::Coin, remote: false },
    }
}

/// Lets a strategy see what it may.
pub(super) struct Restricted<S>(pub(super) S);

impl<S: LocalityAware> Scheduler for Restricted<S> {
    fn next(&mut self, view: &View<'_>) -> Result<Option<usize>, ScheduleError> {
        Ok(self.0.next(&Locality { view }))
    }
}

/// Anybody, each as likely.
pub(super) struct Anybody(pub(super) Random);

impl LocalityAware for Anybody {
    fn next(&mut self, view: &Locality<'_>) -> Option<usize> {
        view.anybody(&mut self.0)
    }
}

/// Holds back certain steps while all others go on, until these only wait, whatever has been
/// written; then it lets the held ones go, all at once.
///
/// - `locality-aware:hold-writes` holds back remote writes and updates. They come when everybody
///   has looked at what they change.
/// - `locality-aware:hold-release` holds back whoever has the lock, until all others have come and
///   wait: the paper's adversary may delay calls of `release()` as long as it likes. Who comes
///   finds the backpack closed.
pub struct Hold {
    what: What,
    random: Random,
    groups: Groups,
    /// How many looks each has made in a row; how many local ones.
    looks: Vec<(usize, usize)>,
    /// Who has the lock.
    inside: Vec<bool>,
    /// Those who are being let go.
    leaving: Vec<usize>,
    /// Something has been written since those who wait have looked.
    written: bool,
    /// Steps since something was let go.
    since: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Writes,
    Release,
}

/// Who has looked as often at its own registers, one look after the other, seems to wait.
pub(super) const LOCAL_LOOKS: usize = 4;
/// So seems who has looked as many times as there are processes at any.
pub(super) const LOOKS: usize = 4;
/// Something is let go after as many steps for each process in any case: not everybody who waits
/// only looks.
pub(super) const PATIENCE: usize = 256;

impl Hold {
    /// Holds back remote writes, among `n` processes.
    pub fn writes(n: usize, random: Random) -> Self {
        Self::new(What::Writes, n, random)
    }

    /// Holds back who has the lock, among `n` processes.
    pub fn release(n: usize, random: Random) -> Self {
        Self::new(What::Release, n, random)
    }

    fn new(what: What, n: usize, random: Random) -> Self {
        Self {
            what,
            random,
            groups: Groups::new(n),
            looks: vec![(0, 0); n],
            inside: vec![false; n],
            leaving: Vec::new(),
            written: false,
            since: 0,
        }
    }

    fn note(&mut self, past: Past) {
        let p = past.process;
        self.written |= matches!(past.step.is, Type::Write | Type::Update);
        self.inside[p] = past.response == Some(Response::Lock);
        let looks = &mut self.looks[p];
        let is_look = matches!(past.step.is, Type::Read | Type::Update) && past.response.is_none();
        looks.0 = if is_look { looks.0 + 1 } else { 0 };
        looks.1 = if is_look && !past.step.remote { looks.1 + 1 } else { 0 };
    }

    fn group(&self, p: usize, view: &Locality<'_>) -> Group {
        let Some(Glimpse { is, remote }) = view.pending(p) else { return Group::Gone };
        let held = match self.what {
            What::Writes => remote && matches!(is, Type::Write | Type::Update),
            What::Release => self.inside[p],
        };
        let (looks, local) = self.looks[p];
        let waits = is == Type::Read && !remote && local >= LOCAL_LOOKS
            || looks >= LOOKS * view.processes();
        match (held, waits) {
            (true, _) => Group::Held,
            (false, true) => Group::Waits,
            (false, false) => Group::Free,
        }
    }

    /// Those who seemed to wait look again.
    fn wake(&mut self) {
        while let Some(p) = self.groups.last(Group::Waits) {
            self.looks[p] = (0, 0);
            self.groups.put(p, Group::Free);
        }
    }
}

impl LocalityAware for Hold {
    fn next(&mut self, view: &Locality<'_>) -> Option<usize> {
        if let Some(past) = view.last() {
            self.note(past);
            let group = self.group(past.process, view);
            self.groups.put(past.process, group);
        } else {
            (0..view.processes()).for_each(|p| self.groups.put(p, self.group(p, view)));
        }
        while let Some(p) = self.leaving.pop() {
            if view.pending(p).is_some() {
                return Some(p);
            }
        }
        self.since += 1;
        if self.since <= PATIENCE * view.processes()
            && let Some(p) = self.groups.pick(Group::Free, view, &mut self.random)
        {
            return Some(p);
        }
        if self.since <= PATIENCE * view.processes() && std::mem::take(&mut self.written) {
            // Somebody may have been told to go on. Who, is not seen.
            self.wake();
            if let Some(p) = self.groups.pick(Group::Free, view, &mut self.random) {
                return Some(p);
            }
        }
        self.since = 0;
        for (i, p) in self.groups.of(Group::Held).iter().copied().enumerate() {
            self.leaving.push(p);
            self.leaving.swap(i, self.random.below(i as u64 + 1) as usize);
        }
        if let Some(p) = self.leaving.pop().filter(|&p| view.pending(p).is_some()) {
            return Some(p);
        }
        self.wake();
        self.groups.pick(Group::Free, view, &mut self.random)
    }
}
