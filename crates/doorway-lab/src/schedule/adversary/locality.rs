//! The locality-aware adversary of Giakkoupis and Woelfel 2014, section II. It sees of each step,
//! past or pending, whether it reads or writes and whether it is local in DSM. It never sees the
//! register or the value.

use super::{
    ScheduleError, Scheduler, View,
    groups::{Group, Groups},
};
use crate::{machine::Event, random::Random, replay::Kind, subject::Region};

/// A strategy that knows only what [`Locality`] tells about steps.
pub trait LocalityAware {
    /// Returns the process that moves next: one with a pending step.
    fn next(&mut self, view: &Locality<'_>) -> Option<usize>;
}

/// The type of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A compare-and-swap or another step that reads and writes.
    Update,
    /// A coin toss. In the paper this is no step. Here it is one, which shows that a coin is tossed
    /// but not the outcome.
    Coin,
}

/// What the adversary sees of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Glimpse {
    /// The type of the step.
    pub is: Type,
    /// Whether the register lives elsewhere.
    pub remote: bool,
}

/// A call that has responded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Response {
    /// `lock()`: the process is now in the critical section.
    Lock,
    /// `release()`: the process is now in its remainder.
    Release,
}

/// A step that has been made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Past {
    /// The process that made the step.
    pub process: usize,
    /// What the adversary sees of the step.
    pub step: Glimpse,
    /// The call that responded with this step.
    pub response: Option<Response>,
}

/// All that the adversary learns: no registers, no values, no outcomes of coins.
pub struct Locality<'a> {
    view: &'a View<'a>,
}

impl Locality<'_> {
    /// Returns the number of processes.
    pub fn processes(&self) -> usize {
        self.view.regions.len()
    }

    /// Returns how many processes have a pending step.
    pub fn pending_steps(&self) -> usize {
        self.view.able.len()
    }

    /// Returns a process with a pending step, all with the same probability.
    pub fn anybody(&self, random: &mut Random) -> Option<usize> {
        let able = self.view.able;
        (!able.is_empty()).then(|| able[random.below(able.len() as u64) as usize])
    }

    /// Returns what is visible of the next step of `p`; `None` if `p` makes no more steps.
    pub fn pending(&self, p: usize) -> Option<Glimpse> {
        self.view.able.binary_search(&p).ok()?;
        let pending = self.view.machine.pending(p);
        Some(glimpse(pending.kind, pending.remote))
    }

    /// Returns the last step. A strategy is asked after every step, so it can know all of them.
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

/// Restricts what a strategy sees to [`Locality`].
pub(super) struct Restricted<S>(pub(super) S);

impl<S: LocalityAware> Scheduler for Restricted<S> {
    fn next(&mut self, view: &View<'_>) -> Result<Option<usize>, ScheduleError> {
        Ok(self.0.next(&Locality { view }))
    }
}

/// Any process, all with the same probability.
pub(super) struct Anybody(pub(super) Random);

impl LocalityAware for Anybody {
    fn next(&mut self, view: &Locality<'_>) -> Option<usize> {
        view.anybody(&mut self.0)
    }
}

/// Holds back certain steps while all other processes go on. When these only wait, whatever has
/// been written, all held steps are let go at once.
///
/// - `locality-aware:hold-writes` holds back remote writes and updates. They come when every
///   process has looked at the registers that they change.
/// - `locality-aware:hold-release` holds back the processes that have the lock, until all other
///   processes have begun a passage and wait: the paper's adversary may delay calls of `release()`
///   for any time. A process that begins a passage meanwhile finds the backpack closed.
pub struct Hold {
    what: What,
    random: Random,
    groups: Groups,
    /// For each process, the number of looks in a row, and of local looks in a row.
    looks: Vec<(usize, usize)>,
    /// For each process, whether it has the lock.
    inside: Vec<bool>,
    /// The processes whose held steps are being let go.
    leaving: Vec<usize>,
    /// A step has written since the waiting processes looked.
    written: bool,
    /// Steps since held steps were last let go.
    since: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Writes,
    Release,
}

/// A process seems to wait after this many looks in a row at its own registers.
pub(super) const LOCAL_LOOKS: usize = 4;
/// A process also seems to wait after this many looks per process in a row at any registers.
pub(super) const LOOKS: usize = 4;
/// After this many steps per process, held steps are let go in any case: not every waiting process
/// only looks.
pub(super) const PATIENCE: usize = 256;

impl Hold {
    /// Holds back remote writes and updates, among `n` processes.
    pub fn writes(n: usize, random: Random) -> Self {
        Self::new(What::Writes, n, random)
    }

    /// Holds back the processes that have the lock, among `n` processes.
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

    /// Lets the processes that seemed to wait look again.
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
            // A write may have told a process to go on. Which process is not visible.
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
