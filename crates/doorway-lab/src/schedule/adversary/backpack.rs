//! Strategies against the lock of Giakkoupis and Woelfel 2014. The leaders close their backpacks
//! before the other processes get in. So these processes pay for an attempt and have to make
//! another one.
//!
//! The types of its steps show what a process does. In an attempt it writes (lines 2 and 5) and
//! updates S (line 6). A leader then reads (line 8). Any other process writes, reads and is about
//! to write: line 24, by which it gets into the backpack.

use std::ops::Range;

use super::{
    Locality, LocalityAware, Past, Response, StrongAdaptive, Type, View,
    groups::{Group, Groups},
    locality::{LOCAL_LOOKS, LOOKS, PATIENCE},
};
use crate::{random::Random, replay::Kind, subject::Region};

/// `locality-aware:backpack`: holds back every process before line 24.
///
/// A process is held until all leaders that were there when it looked for one (line 23) have
/// entered. Then the backpack is closed, whichever leader it belongs to. Leaders move when no other
/// process does, so that every process has written to R when a leader gets L. A leader that finds
/// names in R waits for these processes. The strategy sees neither the names nor the side. Then the
/// strategy lets go the held processes that have written last, one by one, because what other
/// processes have written before them may have been overwritten.
pub struct Backpack {
    random: Random,
    groups: Groups,
    of: Vec<Seen>,
    /// The processes held back, in the order in which they came. With each, the number of leaders
    /// there had been when it looked for one.
    held: Vec<(usize, usize)>,
    /// The number of leaders so far, and the leaders that have not entered yet.
    elected: usize,
    leaders: Vec<(usize, usize)>,
    /// A step has written since the waiting processes looked.
    written: bool,
    /// Steps since a call has responded or a held process was let go.
    since: usize,
}

/// What has been seen of a process.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Steps since the process updated S, in an attempt that another process leads.
    joins: Option<usize>,
    leads: bool,
    /// Looks in a row, and local looks in a row.
    looks: usize,
    local: usize,
}

/// The number of steps of a process that does not lead between lines 6 and 24.
const BEFORE_LINE_24: usize = 2;

impl Backpack {
    /// Makes a strategy among `n` processes.
    pub fn new(n: usize, random: Random) -> Self {
        Self {
            random,
            groups: Groups::new(n),
            of: vec![Seen::default(); n],
            held: Vec::new(),
            elected: 0,
            leaders: Vec::new(),
            written: false,
            since: 0,
        }
    }

    fn note(&mut self, past: Past, view: &Locality<'_>) {
        let (p, is) = (past.process, past.step.is);
        let reads_next = view.pending(p).is_some_and(|next| next.is == Type::Read);
        self.written |= matches!(is, Type::Write | Type::Update);
        let seen = &mut self.of[p];
        let looks = is == Type::Read && past.response.is_none();
        seen.looks = if looks { seen.looks + 1 } else { 0 };
        seen.local = if looks && !past.step.remote { seen.local + 1 } else { 0 };
        seen.joins = seen.joins.map(|steps| steps + 1);
        // A leader updates S once more, to resign: that is no attempt.
        if is == Type::Update && !seen.leads {
            seen.leads = reads_next;
            seen.joins = (!reads_next).then_some(0);
            if reads_next {
                self.elected += 1;
                self.leaders.push((p, self.elected));
            }
        }
        if let Some(response) = past.response {
            self.since = 0;
            self.leaders.retain(|&(leader, _)| leader != p);
            seen.leads &= response == Response::Lock;
            seen.joins = None;
            let open = self.leaders.iter().map(|&(_, number)| number).min();
            self.let_go(open.unwrap_or(usize::MAX));
        }
    }

    /// Lets go the processes whose leaders have all entered. `open` is the number of the first
    /// leader that has not entered.
    fn let_go(&mut self, open: usize) {
        let groups = &mut self.groups;
        self.held.retain(|&(p, elected)| {
            let fails = elected < open;
            if fails {
                groups.put(p, Group::Free);
            }
            !fails
        });
    }

    fn group(&mut self, p: usize, view: &Locality<'_>) -> Group {
        let Some(next) = view.pending(p) else { return Group::Gone };
        let seen = self.of[p];
        if seen.joins == Some(BEFORE_LINE_24) && next.is == Type::Write && next.remote {
            self.held.push((p, self.elected));
            return Group::Held;
        }
        // A leader looks at its whole backpack, three times at each place, and does not wait for
        // all that.
        let looks = if seen.leads { LOOKS * view.processes() } else { LOCAL_LOOKS };
        if seen.local >= looks || seen.looks >= LOOKS * view.processes() {
            Group::Waits
        } else {
            Self::moving(seen)
        }
    }

    fn moving(seen: Seen) -> Group {
        if seen.leads { Group::Last } else { Group::Free }
    }

    /// Lets the processes that seemed to wait look again.
    fn wake(&mut self) {
        while let Some(p) = self.groups.last(Group::Waits) {
            let seen = &mut self.of[p];
            (seen.looks, seen.local) = (0, 0);
            let group = Self::moving(*seen);
            self.groups.put(p, group);
        }
    }

    fn somebody(&mut self, view: &Locality<'_>) -> Option<usize> {
        [Group::Free, Group::Last]
            .into_iter()
            .find_map(|group| self.groups.pick(group, view, &mut self.random))
    }
}

impl LocalityAware for Backpack {
    fn next(&mut self, view: &Locality<'_>) -> Option<usize> {
        if let Some(past) = view.last() {
            self.note(past, view);
            let group = self.group(past.process, view);
            self.groups.put(past.process, group);
        }
        self.since += 1;
        if self.since > PATIENCE * view.processes() {
            // This is another lock, or a process waits in another way: any process moves, until a
            // call responds.
            self.let_go(usize::MAX);
            self.wake();
            return view.anybody(&mut self.random);
        }
        if let Some(p) = self.somebody(view) {
            return Some(p);
        }
        if std::mem::take(&mut self.written) {
            self.wake();
            if let Some(p) = self.somebody(view) {
                return Some(p);
            }
        }
        while let Some((p, _)) = self.held.pop() {
            if view.pending(p).is_some() {
                self.since = 0;
                return Some(p);
            }
        }
        self.wake();
        self.somebody(view).or_else(|| view.anybody(&mut self.random))
    }
}

/// `strong-adaptive:backpack`: sees where in R a process is about to write.
///
/// While the backpack of a side is not closed, no process writes to the first place of its R, so
/// that the leader waits for no process. Also, no process gets to line 24 in time. The process that
/// has the lock stays inside until all other processes are held back or wait. All processes but
/// the leaders pay for one or several attempts in vain each time that one process passes.
pub struct EmptyBackpack {
    random: Random,
    /// R, B and S of both sides, as the layout numbers registers, after the first look at the
    /// layout; nothing in other locks.
    blocks: Option<[[Range<usize>; 2]; 3]>,
    /// On each side, the leader whose backpack is open.
    open: [Option<usize>; 2],
    /// On each side, whether there is a leader whose backpack is closed.
    closed: [bool; 2],
    /// Steps since a process last entered or left.
    since: usize,
}

const R: usize = 0;
const B: usize = 1;
const S: usize = 2;

/// The order in which processes move.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// The process goes on.
    Now,
    /// The process leads, and its backpack is open.
    Leads,
    /// The process has the lock.
    Inside,
    /// The process would get into a backpack, or a leader would wait for it.
    Held,
    /// The process waits in vain.
    Never,
}

impl EmptyBackpack {
    /// Makes a strategy that has seen nothing yet.
    pub fn new(random: Random) -> Self {
        Self { random, blocks: None, open: [None; 2], closed: [false; 2], since: 0 }
    }

    /// Returns the side and the place of this register, if it belongs to the given block (R, B or
    /// S).
    fn place(&self, block: usize, register: Option<usize>) -> Option<(usize, usize)> {
        let (register, sides) = (register?, &self.blocks.as_ref()?[block]);
        let side = sides.iter().position(|side| side.contains(&register))?;
        Some((side, register - sides[side].start))
    }

    fn note(&mut self, view: &View<'_>) {
        let Some(last) = view.last else {
            let block = |name: &str| view.machine.layout().block(name).unwrap_or(0..0);
            self.blocks =
                Some([["R0", "R1"], ["B0ᵀ", "B1ᵀ"], ["S0", "S1"]].map(|names| names.map(block)));
            return;
        };
        let passes =
            last.from != last.to && [Region::Critical, Region::Remainder].contains(&last.to);
        self.since = if passes { 0 } else { self.since + 1 };
        match last.line {
            6 if last.changed => {
                if let Some((side, _)) = self.place(S, last.register) {
                    self.open[side] = Some(last.process);
                }
            }
            18 => {
                for side in 0..2 {
                    if self.open[side] == Some(last.process) {
                        (self.open[side], self.closed[side]) = (None, true);
                    }
                }
            }
            32 if last.kind == Kind::Update => {
                if let Some((side, _)) = self.place(S, last.register) {
                    self.closed[side] = false;
                }
            }
            _ => {}
        }
    }

    fn turn(&self, view: &View<'_>, p: usize) -> Turn {
        if view.machine.waits_in_vain(p) {
            return Turn::Never;
        }
        if view.regions[p] == Region::Critical {
            return Turn::Inside;
        }
        let place =
            |block| self.place(block, view.machine.register_of(view.machine.moves(p).first()?));
        let held = match view.machine.pending(p).line {
            5 => place(R).is_some_and(|(side, place)| place == 0 && !self.closed[side]),
            24 => place(B).is_some_and(|(side, place)| {
                self.open[side] == Some(place % view.machine.processes())
            }),
            _ => false,
        };
        match (held, self.open.contains(&Some(p))) {
            (true, _) => Turn::Held,
            (false, true) => Turn::Leads,
            (false, false) => Turn::Now,
        }
    }
}

impl StrongAdaptive for EmptyBackpack {
    fn next(&mut self, view: &View<'_>) -> Option<usize> {
        self.note(view);
        if self.since > PATIENCE * view.machine.processes() {
            // This is another lock: any process moves, until a process enters or leaves.
            return (!view.able.is_empty())
                .then(|| view.able[self.random.below(view.able.len() as u64) as usize]);
        }
        let turns: Vec<_> = view.able.iter().map(|&p| (self.turn(view, p), p)).collect();
        let first = turns.iter().map(|(turn, _)| *turn).min()?;
        let among: Vec<_> = turns.into_iter().filter(|(turn, _)| *turn == first).collect();
        Some(among[self.random.below(among.len() as u64) as usize].1)
    }
}
