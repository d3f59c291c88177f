//! Checks that a replayed trace shows what it claims. A trace is a file and may have been edited:
//! steps that replay need not violate anything.

use doorway_core::Property;
use rustc_hash::FxHashSet;

use super::{Replayed, Run, Trace, TraceError, Turn};
use crate::{
    judge::Judge,
    subject::{Choice, Subject},
};

/// What happens to a process in its entry section if only that process moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alone {
    /// The process enters, after so many steps.
    Enters(usize),
    /// The process comes back to where it was without entering.
    GoesRound,
}

/// The largest number of steps for which [`alone`] lets a process move. A process that has neither
/// entered nor come back by then may write something new in each round, and never come back.
pub(crate) const PATIENCE: usize = 10_000;

/// Lets only `p` move, in a run that forgets; `None` if `p` does neither for [`PATIENCE`] steps, or
/// cannot be run like that.
pub(crate) fn alone(run: &mut Run<'_>, p: usize) -> Option<Alone> {
    let mut seen = FxHashSet::default();
    let turn = Turn { process: p, choice: Choice::Go, garbage: None };
    let mut steps = 0;
    while run.machine.region(p).is_entry() {
        if steps == PATIENCE {
            return None;
        }
        if !seen.insert(run.machine.local(p).clone()) {
            return Some(Alone::GoesRound);
        }
        let (event, _) = run.take(turn).ok()?;
        steps += 1;
        if event.changed {
            // No other process moves. So `p` has come back once its local state recurs with no
            // register changed in between.
            seen.clear();
        }
    }
    Some(Alone::Enters(steps))
}

impl Trace {
    /// Checks what the trace claims against its own replay.
    pub(super) fn confirm(
        &self,
        judge: &mut Judge<'_>,
        replayed: &mut Replayed,
    ) -> Result<(), TraceError> {
        let Some(name) = &self.property else { return Ok(()) };
        let subject = judge.subject();
        let property = subject
            .claims()
            .property(name)
            .ok_or_else(|| TraceError::Unknown(format!("the property {name:?}"), "lab list"))?;
        if property == Property::Fife {
            let overtaken = judge.uncut().overtaken();
            replayed.alone = overtaken.into_iter().find(|&p| goes_round_alone(subject, judge, p));
        }
        if judge.shows(property, self.loop_from, &self.crashed) {
            Ok(())
        } else {
            Err(TraceError::NotShown(property))
        }
    }
}

/// Whether `p`, if only it moves after the run, comes back to where it was without entering.
fn goes_round_alone(subject: &dyn Subject, judge: &Judge<'_>, p: usize) -> bool {
    let Ok(mut run) = Run::new(subject, judge.forgetful().kind(), true) else { return false };
    judge.turns().iter().all(|turn| run.take(*turn).is_ok())
        && matches!(alone(&mut run, p), Some(Alone::GoesRound))
}

#[cfg(test)]
mod tests {
    use doorway_core::{
        Algorithm, Claims, Exclusion, Home, Layout, Property, Register, RegisterKind, Registers,
        Size, Unfit, algorithms::mutex::BurnsLamport,
    };

    use super::*;

    /// One register that holds 7, with a bound of `BOUND`.
    struct Seven<const BOUND: u64>(Register<u64>);

    impl<const BOUND: u64> Algorithm for Seven<BOUND> {
        const NAME: &'static str = "seven";
        const CLAIMS: Claims = Claims { bound: Some(|_| BOUND), ..BurnsLamport::CLAIMS };

        fn new(layout: &mut Layout, _: Size) -> Result<Self, Unfit> {
            Ok(Self(layout.register("Seven", Home::Nobody, 7)))
        }
    }

    impl<M: Registers, const BOUND: u64> Exclusion<M> for Seven<BOUND> {
        type Request = ();
        type Pass = ();
        type Keep = ();

        fn keep(&self, _: usize) {}
        fn doorway(&self, m: &mut M, _: usize, (): (), (): ()) -> Result<(), M::Halt> {
            m.write(self.0, 0)
        }
        fn waiting(&self, _: &mut M, _: usize, (): ()) -> Result<(), M::Halt> {
            Ok(())
        }
        fn exit(&self, m: &mut M, _: usize, (): ()) -> Result<(), M::Halt> {
            m.write(self.0, 0)
        }
    }

    /// Confirms a trace of no steps that says that this property is violated.
    fn confirm<const BOUND: u64>(property: Property) -> bool {
        let subject =
            crate::build::<Seven<BOUND>, _, _, _>(Size::mutex(1), None, false).expect("it fits");
        let mut trace = Trace::of(&*subject, RegisterKind::Atomic);
        trace.property = Some(property.name().into());
        let mut judge = Judge::new(&*subject, RegisterKind::Atomic).expect("it runs");
        let (events, violations, registers, regions) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut replayed = Replayed { events, violations, registers, regions, alone: None };
        trace.confirm(&mut judge, &mut replayed).is_ok()
    }

    #[test]
    fn a_trace_of_no_steps_shows_what_a_register_holds_at_the_start() {
        assert!(confirm::<6>(Property::BoundedRegisters));
        assert!(!confirm::<7>(Property::BoundedRegisters));
        assert!(!confirm::<6>(Property::MutualExclusion));
    }
}
