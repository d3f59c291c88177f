//! The strong adaptive adversary: it sees everything, including the outcomes of coins.

use super::{ScheduleError, Scheduler, View};
use crate::{random::Random, replay::Kind};

/// A strategy that sees the whole [`View`]. A strategy for one algorithm finds the registers by
/// name in [`Machine::layout`](crate::machine::Machine::layout), and the position of a process by
/// [`line`](crate::machine::Pending::line).
pub trait StrongAdaptive {
    /// Returns the process that moves next: one of the able processes.
    fn next(&mut self, view: &View<'_>) -> Option<usize>;
}

/// Lets a strategy see everything.
pub(super) struct Free<S>(pub(super) S);

impl<S: StrongAdaptive> Scheduler for Free<S> {
    fn next(&mut self, view: &View<'_>) -> Result<Option<usize>, ScheduleError> {
        Ok(self.0.next(view))
    }
}

/// `strong-adaptive:victim`: the last process pays in CC as often as can be arranged. The victim
/// moves only when its next step is a reference, or when no other process gets anywhere. Otherwise
/// the other processes move. Of their writes, the first are those that take a copy away from the
/// victim. The last are those that the victim would not notice.
pub struct Victim {
    victim: usize,
    random: Random,
    /// Steps since the last change.
    still: usize,
    /// Steps that the victim has made in a row.
    row: usize,
}

/// Steps per process after which any process may move: if nothing has changed for so many steps, or
/// if the victim has made so many in a row. A process that looks by updates pays for ever, and a
/// process that looks at several registers may seem to get somewhere.
const PATIENCE: usize = 64;

/// The expected effect of a step of another process; the first is best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// The step takes away a copy that the victim does not look at now, and will miss later.
    Later,
    /// The step writes nothing, and may lead to something.
    Nothing,
    /// The step takes away a copy of the register at which the victim looks: it may let the victim
    /// go.
    Now,
    /// The step writes where the victim has no copy.
    Wasted,
}

impl Victim {
    /// Makes the last of `n` processes the victim.
    pub fn new(n: usize, random: Random) -> Self {
        Self { victim: n - 1, random, still: 0, row: 0 }
    }

    fn worth(&self, view: &View<'_>, p: usize) -> Worth {
        let pending = view.machine.pending(p);
        match (pending.kind, pending.slot) {
            (Kind::Write | Kind::Update, Some(slot)) => {
                let has_copy = view.meter.would_cost(slot, self.victim, Kind::Read) == 0;
                match (has_copy, view.machine.pending(self.victim).slot == Some(slot)) {
                    (true, false) => Worth::Later,
                    (true, true) => Worth::Now,
                    (false, _) => Worth::Wasted,
                }
            }
            _ => Worth::Nothing,
        }
    }

    /// Returns the process that moves instead of the victim, if any process gets anywhere: one
    /// whose step is worth most.
    fn other(&mut self, view: &View<'_>) -> Option<usize> {
        let mut best = None;
        let mut among = 0;
        for &p in view.able.iter().filter(|&&p| p != self.victim && !view.machine.waits_in_vain(p))
        {
            let worth = self.worth(view, p);
            match best {
                Some((most, _)) if worth > most => {}
                Some((most, _)) if worth == most => {
                    // Each of these processes is equally likely in the end.
                    among += 1;
                    if self.random.below(among) == 0 {
                        best = Some((worth, p));
                    }
                }
                _ => (best, among) = (Some((worth, p)), 1),
            }
        }
        best.map(|(_, p)| p)
    }
}

impl StrongAdaptive for Victim {
    fn next(&mut self, view: &View<'_>) -> Option<usize> {
        if let Some(last) = view.last {
            self.still = if last.changed || last.from != last.to { 0 } else { self.still + 1 };
            self.row = if last.process == self.victim { self.row + 1 } else { 0 };
        }
        let patience = PATIENCE * view.regions.len();
        if view.able.last() != Some(&self.victim) || self.row > patience || self.still > patience {
            let able = view.able.len() as u64;
            return (able > 0).then(|| view.able[self.random.below(able) as usize]);
        }
        let pending = view.machine.pending(self.victim);
        let pays = pending
            .slot
            .is_some_and(|slot| view.meter.would_cost(slot, self.victim, pending.kind) > 0);
        if pays { Some(self.victim) } else { self.other(view).or(Some(self.victim)) }
    }
}
