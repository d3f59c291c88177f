//! Judges a run by a property's own definition.
//!
//! A run is made twice, side by side: once by processes that forget what their loops let them
//! forget, once by processes that forget nothing. Both runs have to make the same steps. The judge
//! judges the run that forgets nothing; the run that forgets shows when a state comes back.

mod snapshot;

use doorway_core::{Property, RegisterKind};

use self::snapshot::Snapshot;
pub(crate) use self::snapshot::tickets;
use crate::{
    fault::Fault,
    machine::{Event, Machine},
    monitor::{Oversized, Standing},
    subject::{Region, Subject},
    trace::{Run, Turn},
};

/// A run that is being judged.
pub(crate) struct Judge<'s> {
    subject: &'s dyn Subject,
    cut: Run<'s>,
    uncut: Run<'s>,
    turns: Vec<Turn>,
    events: Vec<Event>,
    /// What the last step violated.
    violated: Vec<Property>,
}

/// A loop is followed for at least this many rounds before a state comes back.
const ROUNDS: u64 = 256;

impl<'s> Judge<'s> {
    /// Returns a run that is about to start.
    pub(crate) fn new(subject: &'s dyn Subject, registers: RegisterKind) -> Result<Self, Fault> {
        Ok(Self {
            subject,
            cut: Run::new(subject, registers, true)?,
            uncut: Run::new(subject, registers, false)?,
            turns: Vec::new(),
            events: Vec::new(),
            violated: Vec::new(),
        })
    }

    /// Takes one turn in both runs. Returns the step and the properties that it violates.
    ///
    /// # Errors
    /// When a process has no such move, or the two runs differ.
    pub(crate) fn take(&mut self, turn: Turn) -> Result<(Event, Vec<Property>), Fault> {
        let (event, violated) = self.step(turn)?;
        self.turns.push(turn);
        self.events.push(event.clone());
        self.violated.clone_from(&violated);
        Ok((event, violated))
    }

    fn step(&mut self, turn: Turn) -> Result<(Event, Vec<Property>), Fault> {
        let (forgetful, _) = self.cut.take(turn)?;
        let (event, violated) = self.uncut.take(turn)?;
        if forgetful.is_same(&event) { Ok((event, violated)) } else { Err(Fault::Impure) }
    }

    /// Returns the subject of the run.
    pub(crate) fn subject(&self) -> &'s dyn Subject {
        self.subject
    }

    /// Returns the run that forgets nothing.
    pub(crate) fn uncut(&self) -> &Run<'s> {
        &self.uncut
    }

    /// Returns the machine of the run that forgets.
    pub(crate) fn forgetful(&self) -> &Machine<'s> {
        &self.cut.machine
    }

    /// Returns the turns taken so far.
    pub(crate) fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Returns whether the run violates the property. With `loop_from`, its turns from there on are
    /// repeated for ever; the processes in `crashed` then take no step.
    pub(crate) fn shows(
        &mut self,
        property: Property,
        loop_from: Option<usize>,
        crashed: &[usize],
    ) -> bool {
        match (property, loop_from) {
            _ if crashed.iter().any(|&p| p >= self.subject.size().n) => false,
            (
                Property::DeadlockFreedom
                | Property::StarvationFreedom
                | Property::BoundedExit
                | Property::BoundedDoorway,
                Some(from),
            ) => self.keeps_from_leaving(property, from, crashed),
            (Property::ConcurrentEntry, Some(from)) => {
                self.keeps_waiting(from, Standing::is_unopposed)
            }
            (Property::ConcurrentOccupancy, Some(from)) => {
                let inside = |region| matches!(region, Region::Remainder | Region::Critical);
                self.is_fair(from, crashed, inside)
                    && self.keeps_waiting(from, Standing::is_unopposed)
            }
            (Property::StrongConcurrentEntry, Some(from)) => {
                self.keeps_waiting(from, Standing::leads)
            }
            // That a process is not enabled is a statement about all continuations. A run shows
            // only the overtaking.
            (Property::Fife, None) => !self.uncut.overtaken().is_empty(),
            (Property::FifoEnabling, None) => self.may_overtake(),
            (Property::KDeadlockAvoidance, Some(from)) => self.stands_still(from),
            // What a register holds before the first step needs no step to show it.
            (Property::BoundedRegisters, None) if self.turns.is_empty() => {
                Oversized::at_start(self.subject).is_some()
            }
            (_, None) => self.violated.contains(&property),
            _ => false,
        }
    }

    /// Returns whether process `p` takes steps for ever in the loop, is never in the region, and
    /// does not give up its place.
    pub(crate) fn avoids(&mut self, from: usize, p: usize, region: Region) -> bool {
        let spoils = |event: &Event| event.process == p && (event.to == region || event.abandons);
        let at = self.regions(from)[p];
        let round = self.events.get(from..).unwrap_or_default();
        at != region
            && round.iter().any(|event| event.process == p)
            && !round.iter().any(spoils)
            && self.repeats_from(from, spoils)
    }

    /// Returns whether the turns can be repeated for ever.
    ///
    /// Every round must have the same accesses, and no step may spoil it. The loop is followed
    /// until its state comes back: with every gap between tickets the same as before, or so wide
    /// that as many rounds cannot use it up.
    pub(crate) fn repeats(&mut self, round: &[Turn], spoils: impl FnMut(&Event) -> bool) -> bool {
        self.goes_on(round, Vec::new(), spoils)
    }

    /// Like [`repeats`](Self::repeats), if the first round has been made already and had these
    /// steps.
    fn goes_on(
        &mut self,
        round: &[Turn],
        mut first: Vec<Event>,
        mut spoils: impl FnMut(&Event) -> bool,
    ) -> bool {
        let gap = u64::from((self.subject.claims().gap)(self.subject.size()));
        // A step brings in one ticket at most, less than `gap` above another.
        let used = round.len() as u64 * (gap - 1);
        // An overlapping read returns a true value in the trace, which does not move with the
        // tickets: unless it is 0 or ∞, the tickets have to be the same.
        let fixed =
            round.iter().any(|turn| turn.garbage.is_some_and(|word| word != 0 && word != u64::MAX));
        let mut seen = vec![Snapshot::of(&self.cut.machine)];
        for _ in 0..=(gap + used).max(ROUNDS) {
            for (i, turn) in round.iter().enumerate() {
                let Ok((event, _)) = self.step(*turn) else { return false };
                if spoils(&event) || first.get(i).is_some_and(|first| !first.is_alike(&event)) {
                    return false;
                }
                if first.len() == i {
                    first.push(event);
                }
            }
            let now = Snapshot::of(&self.cut.machine);
            let rounds = (1..).zip(seen.iter().rev().take(ROUNDS as usize));
            let comes_back = |(rounds, before): (u64, &Snapshot)| {
                now.continues(before, if fixed { u64::MAX } else { gap + rounds * used })
            };
            if rounds.into_iter().any(comes_back) {
                return true;
            }
            // Without tickets, local states may be merged in the graph, and one round of it may
            // take several of the run.
            let last = seen.last().expect("there is a first one");
            if now.has_tickets() && !now.continues(last, gap) {
                return false;
            }
            seen.push(now);
        }
        false
    }

    fn repeats_from(&mut self, from: usize, spoils: impl FnMut(&Event) -> bool) -> bool {
        let (round, first) = (self.turns[from..].to_vec(), self.events[from..].to_vec());
        !round.is_empty() && self.goes_on(&round, first, spoils)
    }

    /// Returns where every process is before the step of this number.
    fn regions(&self, step: usize) -> Vec<Region> {
        let mut at = vec![Region::Remainder; self.subject.size().n];
        self.events.iter().take(step).for_each(|event| at[event.process] = event.to);
        at
    }

    /// Returns whether every process that has not crashed moves from `from` on, unless it may rest
    /// where it is.
    fn is_fair(&self, from: usize, crashed: &[usize], may_rest: impl Fn(Region) -> bool) -> bool {
        let Some(round) = self.events.get(from..) else { return false };
        let moves = |p: usize| round.iter().any(|event| event.process == p);
        self.regions(from).into_iter().enumerate().all(|(p, at)| match crashed.contains(&p) {
            true => !moves(p),
            false => moves(p) || may_rest(at),
        })
    }

    /// Returns whether the loop keeps a process from where it wants to go.
    ///
    /// For deadlock freedom and starvation freedom, the loop must be fair and keep a process in its
    /// entry section; for deadlock freedom, no process may enter. For bounded sections, the loop
    /// keeps a process in its doorway or exit section, and need not be fair.
    fn keeps_from_leaving(&mut self, property: Property, from: usize, crashed: &[usize]) -> bool {
        let Some(round) = self.events.get(from..).filter(|round| !round.is_empty()) else {
            return false;
        };
        let at = self.regions(from);
        let (there, needs_fairness): (fn(Region) -> bool, bool) = match property {
            Property::BoundedExit => (|region| region == Region::Exit, false),
            Property::BoundedDoorway => (|region| region == Region::Doorway, false),
            _ => (Region::is_entry, true),
        };
        let stays = |p: usize| {
            let mut steps = round.iter().filter(|event| event.process == p).peekable();
            steps.peek().is_some() && there(at[p]) && steps.all(|event| there(event.to))
        };
        let Some(victim) = (0..at.len()).find(|&p| stays(p)) else { return false };
        if needs_fairness && !self.is_fair(from, crashed, |region| region == Region::Remainder) {
            return false;
        }
        let enters = |event: &Event| event.to == Region::Critical && event.from != Region::Critical;
        let spoils = |event: &Event| {
            (event.process == victim && !there(event.to))
                || (property == Property::DeadlockFreedom && enters(event))
        };
        !round.iter().any(spoils) && self.repeats_from(from, spoils)
    }

    /// Returns whether a process moves in the loop and does not enter, although it is always `free`
    /// to.
    fn keeps_waiting(&mut self, from: usize, free: fn(&Standing, usize) -> bool) -> bool {
        let n = self.subject.size().n;
        (0..n).any(|p| {
            let Some((stem, round)) = self.events.split_at_checked(from) else { return false };
            let mut standing = Standing::new(n);
            for event in stem {
                standing.observe(event);
            }
            let is_free = free(&standing, p)
                && round.iter().all(|event| {
                    standing.observe(event);
                    free(&standing, p)
                });
            is_free
                && round.iter().any(|event| event.process == p)
                && self.repeats_from(from, |event| event.process == p && !event.to.is_entry())
        })
    }

    /// Returns whether a process could overtake a waiting process, judged by regions alone.
    ///
    /// That holds if a process is in its remainder while another is in its entry section, or in its
    /// critical section while another is in its exit section; from then on the waiting process
    /// never leaves its section. The rest of FIFO enabling is about which processes are enabled.
    fn may_overtake(&self) -> bool {
        let n = self.subject.size().n;
        let mut at = vec!['R'; n];
        // For each process, whether another process could have overtaken it since it entered its
        // present region.
        let mut behind = vec![false; n];
        for event in &self.events {
            if event.from.letter() != event.to.letter() {
                at[event.process] = event.to.letter();
                behind[event.process] = false;
            }
            for (i, behind) in behind.iter_mut().enumerate() {
                let begins = match at[i] {
                    'T' => 'R',
                    'E' => 'C',
                    _ => continue,
                };
                *behind |= at.contains(&begins);
            }
        }
        behind.contains(&true)
    }

    /// Returns whether the loop changes no region, with a process in its entry or exit section.
    fn stands_still(&mut self, from: usize) -> bool {
        let still = |event: &Event| event.from.letter() == event.to.letter();
        let is_under_way = |region: &Region| matches!(region.letter(), 'T' | 'E');
        self.events.get(from..).is_some_and(|round| round.iter().all(still))
            && self.regions(from).iter().any(is_under_way)
            && self.repeats_from(from, |event| !still(event))
    }
}
