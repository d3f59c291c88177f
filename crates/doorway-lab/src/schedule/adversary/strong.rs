//! The strong adaptive adversary: it sees everything, coins that have fallen included.

use super::{ScheduleError, Scheduler, View};
use crate::{random::Random, replay::Kind};

/// A strategy that knows all there is: the whole [`View`]. One that is made for an algorithm finds
/// its registers by name in [`Machine::layout`](crate::machine::Machine::layout), and where a
/// process is by [`line`](crate::machine::Pending::line).
pub trait StrongAdaptive {
    /// Who moves next: one of the able.
    fn next(&mut self, view: &View<'_>) -> Option<usize>;
}

/// Lets a strategy see everything.
pub(super) struct Free<S>(pub(super) S);

impl<S: StrongAdaptive> Scheduler for Free<S> {
    fn next(&mut self, view: &View<'_>) -> Result<Option<usize>, ScheduleError> {
        Ok(self.0.next(view))
    }
}

/// `strong-adaptive:victim`: the last process pays in CC as often as can be arranged. It moves only
/// when its next step is a reference, or when nobody else gets anywhere; else the others move. Of
/// their writes, those come first that take a copy away from the victim, and those last that it
/// would not notice.
pub struct Victim {
    victim: usize,
    random: Random,
    /// Steps since anything has changed.
    still: usize,
    /// Steps that the victim has made in a row.
    row: usize,
}

/// For each process, steps after which anybody may move: if nothing has changed in as many, or if
/// the victim has made as many in a row. Who looks by updates pays for ever, and who looks at
/// several registers may seem to get somewhere.
const PATIENCE: usize = 64;

/// What is to be expected of a step of another process; the first is best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// It takes a copy away that the victim does not look at now, and will miss later.
    Later,
    /// It writes nothing, and may lead to something.
    Nothing,
    /// It takes away what the victim waits to see change: it may let it go.
    Now,
    /// It writes where the victim has no copy.
    Wasted,
}

impl Victim {
    /// The last of `n` processes.
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

    /// Who moves instead of the victim, if anybody gets anywhere: one of those whose steps are
    /// worth most.
    fn other(&mut self, view: &View<'_>) -> Option<usize> {
        let mut best = None;
        let mut among = 0;
        for &p in view.able.iter().filter(|&&p| p != self.victim && !view.machine.waits_in_vain(p))
        {
            let worth = self.worth(view, p);
            match best {
                Some((most, _)) if worth > most => {}
                Some((most, _)) if worth == most => {
                    // Each of them is as likely in the end.
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
