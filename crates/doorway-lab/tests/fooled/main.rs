//! Algorithms that were written to fool the checker, each with the verdict that is true of it.

mod algorithms;

use doorway_core::{Property, Size};
use doorway_lab::{Fault, Options, Progress, Report, Subject, Verdict, build, check};

use algorithms::{Burns, Kind, Odd, Shared};

fn run(subject: &dyn Subject, options: Options) -> Result<Report, Fault> {
    check(subject, &options, &Progress::default())
}

fn verdict(subject: &dyn Subject, property: Property) -> Verdict {
    let options = Options { properties: vec![property], ..Options::default() };
    run(subject, options).expect("it runs").verdicts.remove(0)
}

fn steps(verdict: &Verdict) -> Option<usize> {
    verdict.trace.as_ref().map(|trace| trace.steps.len())
}

fn burns(kind: Kind, n: usize) -> Box<dyn Subject> {
    Shared::with(kind, || build::<Burns, _, _, _>(Size::mutex(n), None, false).expect("it fits"))
}

fn odd(kind: Kind) -> Box<dyn Subject> {
    Shared::with(kind, || build::<Odd, _, _, _>(Size::mutex(2), None, false).expect("it fits"))
}

/// One helper makes both scans, and the first has nothing to scan for process 0. The second scan's
/// result is ignored, so two processes get in. A checker that took the second scan's record for the
/// first's said that exclusion holds.
#[test]
fn a_helper_that_is_called_twice_is_two_loops() {
    for kind in [Kind::Helper, Kind::PlainFor, Kind::Recursion, Kind::EmptyScope] {
        let found = verdict(&*burns(kind, 2), Property::MutualExclusion);
        assert_eq!(
            (found.holds, steps(&found)),
            (Some(false), Some(6)),
            "{kind:?}: {}",
            found.scope
        );
        let inlined = verdict(&*burns(Kind::Inlined, 2), Property::MutualExclusion);
        assert_eq!((inlined.holds, steps(&inlined)), (found.holds, steps(&found)), "{kind:?}");
    }
}

/// The same helper in an algorithm that uses both results: it excludes, and no process is stuck. A
/// checker that took one scan for the other printed a loop in which a process entered as a
/// violation of deadlock freedom.
#[test]
fn a_helper_does_not_break_what_is_right() {
    for kind in [Kind::RightHelper, Kind::RightInlined] {
        let subject = burns(kind, 2);
        for property in [Property::MutualExclusion, Property::DeadlockFreedom] {
            let found = verdict(&*subject, property);
            assert_eq!(found.holds, Some(true), "{kind:?}: {property} {}", found.scope);
        }
        let starves = verdict(&*subject, Property::StarvationFreedom);
        assert_eq!(starves.holds, Some(false), "{kind:?}");
    }
    let states = |kind| run(&*burns(kind, 3), Options::default()).expect("it runs").states;
    assert_eq!(
        states(Kind::RightHelper),
        states(Kind::RightInlined),
        "the helper is the same algorithm"
    );
}

/// Deadlock freedom of the wrong algorithm, whose printed loop contained an entry.
#[test]
fn a_printed_loop_is_a_violation() {
    for kind in [Kind::Helper, Kind::Inlined, Kind::PlainFor, Kind::Recursion, Kind::EmptyScope] {
        let found = verdict(&*burns(kind, 2), Property::DeadlockFreedom);
        let inlined = verdict(&*burns(Kind::Inlined, 2), Property::DeadlockFreedom);
        assert_eq!(found.holds, inlined.holds, "{kind:?}: {}", found.scope);
    }
}

/// A passage may begin with a choice: with a fair coin for each of two flags two processes meet,
/// and a wide choice is explored to its last outcome.
#[test]
fn a_passage_may_begin_with_a_choice() {
    let found = verdict(&*odd(Kind::ChoosesFirst), Property::MutualExclusion);
    assert_eq!(found.holds, Some(false), "{}", found.scope);
    let trace = found.trace.expect("a violation has a trace");
    assert!(
        trace.steps.iter().any(|step| step.choice.as_deref() == Some("request 0, outcome 1")),
        "{trace:?}"
    );
    let wide = verdict(&*odd(Kind::WideChoice), Property::MutualExclusion);
    assert_eq!(wide.holds, Some(false), "outcome 299 spoils it: {}", wide.scope);
}

#[test]
fn choices_without_end_or_outcome_are_refused() {
    let fault = |kind| run(&*odd(kind), Options::default()).err();
    assert_eq!(fault(Kind::NoOutcome), Some(Fault::Outcomes(0)));
    assert_eq!(fault(Kind::HugeChoice), Some(Fault::Outcomes(u32::MAX)));
}

#[test]
fn too_many_registers_are_refused() {
    for kind in [Kind::ManyRegisters(65_538), Kind::ManyRegisters(5_000)] {
        let fault = run(&*odd(kind), Options::default()).err();
        assert!(
            matches!(fault, Some(Fault::StateTooLarge(words)) if words > 64),
            "{kind:?}: {fault:?}"
        );
    }
    let report = run(
        &*odd(Kind::ManyRegisters(1_000)),
        Options { max_states: 100_000, ..Options::default() },
    );
    assert!(report.expect("it fits").complete);
}

/// A doorway that waits fixes no order: first come, first served would hold of any lock whose
/// doorway is the whole lock.
#[test]
fn a_doorway_that_waits_fixes_no_order() {
    for property in [Property::Fcfs, Property::KFcfs, Property::Fife, Property::BoundedDoorway] {
        let found = verdict(&*odd(Kind::WaitingDoorway), property);
        assert_eq!(found.holds, Some(false), "{property}: {}", found.scope);
        let trace = found.trace.expect("a violation has a trace");
        assert_eq!(
            (trace.property.as_deref(), trace.loop_from.is_some()),
            (Some("bounded-doorway"), true)
        );
        // With the wait in the waiting section, the same accesses in the same order fix one.
        let found = verdict(&*odd(Kind::WaitingSection), property);
        assert_eq!(found.holds, Some(true), "{property}: {}", found.scope);
    }
}

/// The type system keeps cells out of closures. What gets past it is found out before the check.
#[test]
fn state_outside_the_record_is_found_out() {
    for kind in [Kind::LocalAtomic, Kind::Counter] {
        assert_eq!(run(&*odd(kind), Options::default()).err(), Some(Fault::Impure), "{kind:?}");
    }
}
