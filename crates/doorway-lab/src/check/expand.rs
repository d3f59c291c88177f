//! Finds the successors of a state: every move of every process.
//!
//! Each worker keeps a flat copy of what has been learned. It asks the shared [`Space`] only for
//! what it has not met before, so the hot path is a few table lookups per move.

use std::sync::{Arc, Mutex, PoisonError};

use doorway_core::{RegisterKind, Session};
use rustc_hash::FxHashMap;

mod ghost;
mod hot;
mod overlap;
mod relabelled;

pub(crate) use self::ghost::{Changes, Ghost};
use self::hot::{HotMove, HotProcess, NO_REGISTER};
use super::{
    pack::{Key, Plan},
    relabel::{Labels, Map, Position},
    space::{Effect, Space},
};
use crate::{
    fault::Fault,
    subject::{Region, conflict},
};

/// The rules of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) k: usize,
    /// Whether passages are counted.
    pub(crate) bounded: bool,
    /// A process whose passages are not counted.
    pub(crate) endless: Option<usize>,
    /// How many attempts of a passage are followed, if attempts are counted: a process that begins
    /// one more takes no further step.
    pub(crate) retries: Option<u32>,
    /// How many kills there may be, if kills are counted.
    pub(crate) kills: Option<u32>,
    pub(crate) kind: RegisterKind,
    pub(crate) relabel: bool,
    /// Gaps between tickets from this size on are not distinguished.
    pub(crate) gap: u32,
    /// What is remembered beside the states.
    pub(crate) ghost: Ghost,
    /// The largest number that a register may hold.
    pub(crate) bound: Option<u64>,
    /// The remote references that are noticed, if any.
    pub(crate) charge: Option<Charge>,
}

impl Rules {
    /// Returns whether the passages of `p` are counted.
    pub(crate) fn counts(&self, p: usize) -> bool {
        self.bounded && self.endless != Some(p)
    }
}

/// The model in which remote references are noticed. The rules are those of
/// [`Meter`](crate::cost::Meter).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Charge {
    /// DSM: the references of all processes.
    Homes,
    /// CC: the references of one process; the search remembers which of its copies are valid.
    Caches(usize),
}

/// The events to notice about a step.
pub(crate) mod event {
    // In the low byte: events that the process and its register show.
    /// The process leaves its remainder.
    pub(crate) const BEGINS: u16 = 1;
    /// The process enters the critical section.
    pub(crate) const ENTERS: u16 = 1 << 1;
    /// The process gives up its place.
    pub(crate) const ABANDONS: u16 = 1 << 2;
    /// A register holds more than it may.
    pub(crate) const EXCEEDS: u16 = 1 << 3;
    /// The process is in its remainder again; noticed if the search remembers something beside the
    /// states.
    pub(crate) const LEAVES: u16 = 1 << 4;
    /// The process reads the register of an invariant in the line that the invariant names.
    pub(crate) const LOOKS: u16 = 1 << 5;
    /// The register of an invariant changes.
    pub(crate) const CHANGES: u16 = 1 << 6;
    /// The process begins another attempt; noticed if attempts are counted.
    pub(crate) const RETRIES: u16 = 1 << 7;
    // In the high byte: events that need a look at the other processes.
    /// Two processes are in the critical section.
    pub(crate) const MEETS: u16 = 1 << 8;
    /// More than k processes are in the critical section.
    pub(crate) const CROWDED: u16 = 1 << 9;
    /// Two processes of different sessions are in the critical section.
    pub(crate) const MIXED: u16 = 1 << 10;
    /// A new ticket fell inside a wide gap: whether the step can be made with true tickets depends
    /// on the width of the gap.
    pub(crate) const GUESSES: u16 = 1 << 13;
    /// The step is a remote reference.
    pub(crate) const REMOTE: u16 = 1 << 14;
    /// An invariant is broken.
    pub(crate) const BREAKS: u16 = 1 << 15;
}

/// One step from a state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<const W: usize> {
    pub(crate) p: usize,
    /// The index of the move of the process.
    pub(crate) index: u32,
    /// What an overlapping read returned, if the step was one.
    pub(crate) garbage: Option<Garbage>,
    pub(crate) events: u16,
    /// The processes that it overtakes, as bits, if that has been found.
    pub(crate) overtaken: u32,
    pub(crate) key: Key<W>,
}

/// Takes the steps from a state.
pub(crate) trait Sink<const W: usize> {
    /// Takes a step.
    fn step(&mut self, step: Step<W>);

    /// Takes a step without events: nearly all steps.
    #[inline(always)]
    fn plain(&mut self, p: usize, index: u32, key: Key<W>) {
        self.step(Step { p, index, garbage: None, events: 0, overtaken: 0, key });
    }
}

impl<const W: usize, F: FnMut(Step<W>)> Sink<W> for F {
    fn step(&mut self, step: Step<W>) {
        self(step);
    }
}

/// What an overlapping read returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Garbage {
    /// This value of the register.
    Value(u32),
    /// This position among the tickets of the state.
    Position(Position),
}

/// The reason why successors could not be computed.
#[derive(Debug)]
pub(crate) enum Interrupt {
    /// A number does not fit its field: the states have to be packed again.
    Narrow,
    /// The algorithm cannot be explored.
    Fault(Fault),
}

impl From<Fault> for Interrupt {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// A worker's successor function.
pub(crate) struct Expander<'a, 's, const W: usize> {
    space: &'a Mutex<Space<'s>>,
    pub(crate) plan: &'a Plan,
    rules: Rules,
    hot: Vec<HotProcess>,
    values: Vec<Vec<Labels>>,
    maps: FxHashMap<(Labels, u32, u32), (u32, Arc<Map>)>,
    renamed_values: FxHashMap<(u16, u32, u32), u32>,
    renamed_locals: FxHashMap<(u16, u32, u32), u32>,
}

impl<'a, 's, const W: usize> Expander<'a, 's, W> {
    pub(crate) fn new(space: &'a Mutex<Space<'s>>, plan: &'a Plan, rules: Rules) -> Self {
        let hot = plan.locals.iter().map(|_| HotProcess::default()).collect();
        let values = plan.registers.iter().map(|_| Vec::new()).collect();
        Self {
            space,
            plan,
            rules,
            hot,
            values,
            maps: FxHashMap::default(),
            renamed_values: FxHashMap::default(),
            renamed_locals: FxHashMap::default(),
        }
    }

    /// Returns the initial state; `passages` is how many passages each process may make.
    pub(crate) fn initial(&self, passages: u32) -> Key<W> {
        let mut key = Plan::empty();
        for (p, field) in self.plan.passages.iter().enumerate() {
            if self.rules.counts(p) {
                field.set(&mut key, passages);
            }
        }
        key
    }

    /// Returns the region of process `p`.
    #[inline(always)]
    pub(crate) fn region(&mut self, key: &Key<W>, p: usize) -> Region {
        let local = self.plan.locals[p].get(key);
        self.local(p, local).region
    }

    /// Returns the session that process `p` has asked for.
    pub(crate) fn session(&mut self, key: &Key<W>, p: usize) -> Session {
        let local = self.plan.locals[p].get(key);
        self.local(p, local).session
    }

    /// Gives `sink` every step from `key`.
    #[inline(always)]
    pub(crate) fn expand(&mut self, key: &Key<W>, mut sink: impl Sink<W>) -> Result<(), Interrupt> {
        let labels = if self.rules.relabel { self.labels(key) } else { Labels::default() };
        for p in 0..self.plan.locals.len() {
            let local = self.plan.locals[p].get(key);
            let from = self.local(p, local);
            if from.region == Region::Remainder
                && self.rules.counts(p)
                && self.plan.passages[p].get(key) == 0
            {
                continue;
            }
            if self.rules.retries.is_some_and(|most| self.plan.retries[p].get(key) >= most) {
                continue;
            }
            for index in from.first..from.first + from.count {
                let step = self.hot[p].moves[index as usize];
                if self.rules.kind != RegisterKind::Atomic && self.overlaps(key, p, step)? {
                    self.read_overlapping(key, p, local, index, &mut sink)?;
                    continue;
                }
                let mut next = *key;
                if let (true, Some(most)) = (step.kills, self.rules.kills) {
                    let killed = self.plan.kills.get(key);
                    if killed == most {
                        continue;
                    }
                    self.plan.kills.set(&mut next, killed + 1);
                    // The process that takes its place makes the passage instead.
                    if self.rules.counts(p) {
                        self.plan.passages[p].set(&mut next, self.plan.passages[p].get(key) + 1);
                    }
                }
                let value = step.field.get(key);
                let cell = self.cell(p, local, index, value)?;
                self.plan.locals[p].set(&mut next, cell.next());
                step.field.set(&mut next, cell.value());
                let mut events = cell.events();
                if let Some(charge) = self.rules.charge {
                    events |= self.charge(charge, p, step, &mut next);
                }
                if events == 0 && !self.rules.relabel {
                    sink.plain(p, index - from.first, next);
                    continue;
                }
                let index = index - from.first;
                let made = Step { p, index, garbage: None, events, overtaken: 0, key: next };
                if self.rules.relabel {
                    self.relabel_step(labels, made, &mut sink)?;
                } else {
                    self.finish(made, &mut sink);
                }
            }
        }
        Ok(())
    }

    /// Returns whether the step is a remote reference; updates the copies in `next`.
    fn charge(&self, charge: Charge, p: usize, step: HotMove, next: &mut Key<W>) -> u16 {
        if step.register == NO_REGISTER {
            return 0;
        }
        let remote = match charge {
            Charge::Homes => step.remote,
            Charge::Caches(watched) => {
                let copy = self.plan.copies[step.register as usize];
                let (reads, valid) = (step.effect == Effect::Read, copy.get(next) == 1);
                if p == watched {
                    copy.set(next, 1);
                } else if !reads {
                    copy.set(next, 0);
                }
                p == watched && !(reads && valid)
            }
        };
        if remote { event::REMOTE } else { 0 }
    }

    /// Counts passages, updates what is remembered, and notices violations.
    fn finish(&mut self, mut step: Step<W>, sink: &mut impl Sink<W>) {
        let notable = event::BEGINS
            | event::ENTERS
            | event::ABANDONS
            | event::LEAVES
            | event::LOOKS
            | event::CHANGES
            | event::RETRIES;
        if step.events & notable != 0 {
            self.note(&mut step);
        }
        sink.step(step);
    }

    fn note(&mut self, step: &mut Step<W>) {
        let (p, n) = (step.p, self.plan.locals.len());
        if step.events & event::BEGINS != 0 && self.rules.counts(p) {
            let left = self.plan.passages[p].get(&step.key);
            self.plan.passages[p].set(&mut step.key, left - 1);
        }
        if step.events & event::RETRIES != 0 {
            let retries = self.plan.retries[p];
            let begun = retries.get(&step.key);
            retries.set(&mut step.key, begun + 1);
        }
        if step.events & event::ENTERS != 0 && self.rules.retries.is_some() {
            self.plan.retries[p].set(&mut step.key, 0);
        }
        if step.events & event::ENTERS != 0 {
            let session = self.session(&step.key, p);
            let (mut inside, mut mixed) = (0, false);
            for q in (0..n).filter(|&q| q != p) {
                if self.region(&step.key, q) == Region::Critical {
                    inside += 1;
                    mixed |= conflict(session, self.session(&step.key, q));
                }
            }
            let found = [
                (inside > 0, event::MEETS),
                (inside + 1 > self.rules.k, event::CROWDED),
                (mixed, event::MIXED),
            ];
            step.events |= found
                .iter()
                .filter(|(found, _)| *found)
                .fold(0, |events, (_, event)| events | event);
        }
        if self.rules.ghost != Ghost::Nothing {
            self.remember(step);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'a, Space<'s>> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
