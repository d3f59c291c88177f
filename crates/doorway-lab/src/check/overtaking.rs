//! Turns what `enabling.rs` finds on the graph into verdicts on FIFO enabling, the avoidance of
//! k-deadlock, and FIFE.
//!
//! That a process is enabled is a statement about every continuation, and the graph is the witness.
//! To show that a process is not enabled, one run without end is enough that keeps it from where it
//! wants to go. For every process that a violation says is kept waiting, that run is made with true
//! values and judged on processes that forget nothing.
//!
//! Where tickets were relabelled and a new one fell inside a gap of unknown width, the graph may
//! have runs that no true tickets make. A process that is enabled on the graph is enabled, but a
//! process that is not enabled on the graph may be enabled. In that case, nothing is decided
//! without a violation.

use doorway_core::Property;

use super::{
    Verdict,
    counterexample::{Walk, concretise, following, round},
    decide::{Conclude, Numbered},
    enabling::{Enabling, kept_from, overtaking, standstill},
    search::Searched,
};
use crate::subject::Region;

pub(super) const GUESSED: &str = "a new ticket may fall inside a gap of unknown width, on which it depends who is enabled; \
                       bound the passages";

impl Conclude<'_, '_> {
    pub(super) fn fifo_enabling<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        numbered: &Numbered,
        enabling: &Enabling,
    ) -> Verdict {
        let (property, Numbered { graph, numbers }) = (Property::FifoEnabling, numbered);
        let found = self
            .timings
            .stage("fifo-enabling", || overtaking(graph, enabling, |state| numbers.depth(state)));
        let Some(found) = found else {
            return self.holds_exactly(property, numbered);
        };
        // While the process stays in its region, a process kept waiting at the end of the run has
        // been kept waiting all along.
        let last = found.walk.last().map_or(found.start, |&(_, _, to)| to);
        let goal = if found.leaving { Region::Remainder } else { Region::Critical };
        if !self.is_kept(
            searched,
            numbered,
            (found.start, &found.walk, last),
            found.overtaken,
            goal,
        ) {
            return self.not_kept(property, numbered);
        }
        let trail = following(searched, numbers, found.start, &found.walk);
        let mut trace = concretise(searched, self.subject, &trail, property, None);
        if let Some(trace) = &mut trace {
            let (i, j) = (found.overtaken, found.overtaker);
            let (begins, wants) = if found.leaving {
                (
                    format!("is in its critical section after step {}", numbers.depth(found.start)),
                    "leave",
                )
            } else {
                (format!("is in its remainder after step {}", numbers.depth(found.start)), "enter")
            };
            trace.shows = format!(
                "process {j} overtakes process {i}: it {begins} and enabled to {wants} after step {}, \
                 while process {i} waits to {wants} all along and is not enabled",
                trace.steps.len()
            );
        }
        self.violated(property, trace)
    }

    pub(super) fn k_deadlock_avoidance<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        numbered: &Numbered,
        enabling: &Enabling,
    ) -> Verdict {
        let (property, Numbered { graph, numbers }) = (Property::KDeadlockAvoidance, numbered);
        let (n, k) = (graph.n, self.subject.size().k);
        let found = self.timings.stage("k-deadlock-avoidance", || standstill(graph, enabling, k));
        let Some(found) = found else { return self.holds_exactly(property, numbered) };
        let (entering, leaving) = enabling.waiting(graph, found.start);
        let kept_out = u32::from(enabling.kept_out[found.start as usize]);
        let each = |set: u32| (0..n).filter(move |p| set >> p & 1 == 1);
        let whole = (found.start, &found.walk, found.at);
        let nothing = Walk::new();
        // A process outside the entry section matters for the number of enabled processes at the
        // beginning. If a process waits to leave, that number does not matter.
        let elsewhere = if leaving == 0 { kept_out & !entering } else { 0 };
        let kept = each(entering)
            .all(|p| self.is_kept(searched, numbered, whole, p, Region::Critical))
            && each(leaving).all(|p| self.is_kept(searched, numbered, whole, p, Region::Remainder))
            && each(elsewhere).all(|p| {
                self.is_kept(
                    searched,
                    numbered,
                    (found.start, &nothing, found.start),
                    p,
                    Region::Critical,
                )
            });
        if !kept {
            return self.not_kept(property, numbered);
        }
        let mut walk = found.walk.clone();
        walk.extend(round(graph, &found.lasso, found.at));
        let stem = numbers.depth(found.start) + found.walk.len();
        let trail = following(searched, numbers, found.start, &walk);
        let mut trace =
            concretise(searched, self.subject, &trail, property, Some((&found.lasso, stem)));
        if let Some(trace) = &mut trace {
            let wait = |set: u32| match set.count_ones() {
                1 => format!("process {} waits", set.trailing_zeros()),
                _ => format!(
                    "processes {} wait",
                    each(set).map(|p| p.to_string()).collect::<Vec<_>>().join(", ")
                ),
            };
            trace.shows = if leaving == 0 {
                let enabled = n - kept_out.count_ones() as usize;
                let wait = wait(entering);
                format!(
                    "nobody makes progress any more: {wait} to enter, and only {enabled} of k = {k} are enabled"
                )
            } else {
                format!("nobody makes progress any more: {} to leave", wait(leaving))
            };
        }
        self.violated(property, trace)
    }

    /// Returns the verdict if the graph says that a process can be kept waiting, but no true run
    /// does so.
    pub(super) fn not_kept(&self, property: Property, numbered: &Numbered) -> Verdict {
        let why = if numbered.graph.exact {
            "no run could be made that keeps the process waiting"
        } else {
            GUESSED
        };
        self.undecided(property, why)
    }

    fn holds_exactly(&self, property: Property, numbered: &Numbered) -> Verdict {
        if numbered.graph.exact { self.holds(property) } else { self.undecided(property, GUESSED) }
    }

    /// Returns whether one of these processes is truly not enabled to enter in a state.
    pub(super) fn anybody_is_kept<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        numbered: &Numbered,
        state: u32,
        set: u32,
    ) -> bool {
        let nothing = Walk::new();
        let mut each = (0..numbered.graph.n).filter(|p| set >> p & 1 == 1);
        each.any(|p| {
            self.is_kept(searched, numbered, (state, &nothing, state), p, Region::Critical)
        })
    }

    /// Returns whether a true run can keep `p` from `goal` for ever, after a run to a state and a
    /// walk on from there to `last`.
    fn is_kept<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        Numbered { graph, numbers }: &Numbered,
        (start, walk, last): (u32, &Walk, u32),
        p: usize,
        goal: Region,
    ) -> bool {
        let Some((way, lasso)) = kept_from(graph, last, p, goal) else { return false };
        let Some(lasso) = lasso else { return true };
        let mut walk = walk.clone();
        walk.extend(&way);
        let stem = numbers.depth(start) + walk.len();
        let at = way.last().map_or(last, |&(_, _, to)| to);
        walk.extend(round(graph, &lasso, at));
        let trail = following(searched, numbers, start, &walk);
        concretise(
            searched,
            self.subject,
            &trail,
            Property::StarvationFreedom,
            Some((&lasso, stem)),
        )
        .is_some()
    }
}
