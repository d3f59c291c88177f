//! FIFO enabling and avoidance of k-deadlock (paper 003, section 3.4): what has them, what has not,
//! and how short the runs are that show it.

#[allow(dead_code, reason = "not every test needs every toy")]
mod common;

use common::slots::{Slots, slots};
use doorway_core::{Property, Size};
use doorway_lab::{Entrant, Options, Progress, Subject, Verdict, check};

use Property::{FifoEnabling, KDeadlockAvoidance, KExclusion, StarvationFreedom};

fn decide(subject: &dyn Subject, property: Property, passages: Option<u32>) -> Verdict {
    let options = Options {
        passages,
        properties: vec![property],
        max_states: 2_000_000,
        ..Options::default()
    };
    let report = check(subject, &options, &Progress::default()).expect("it runs");
    assert!(report.complete || report.verdicts[0].holds == Some(false));
    report.verdicts.into_iter().next().expect("one was asked for")
}

fn holds(kind: Slots, n: usize, k: usize, property: Property) {
    let verdict = decide(&*slots(kind, n, k), property, None);
    assert_eq!(verdict.holds, Some(true), "{kind:?} ({n}, {k}) {property}: {}", verdict.scope);
    assert!(verdict.scope.starts_with("every reachable state"), "{}", verdict.scope);
}

/// How many steps the counterexample has, and from which on it goes round.
fn fails(kind: Slots, n: usize, k: usize, property: Property) -> (usize, Option<usize>, String) {
    let verdict = decide(&*slots(kind, n, k), property, None);
    assert_eq!(verdict.holds, Some(false), "{kind:?} ({n}, {k}) {property}: {}", verdict.scope);
    let trace = verdict.trace.expect("a violation has a trace");
    (trace.steps.len(), trace.loop_from, trace.shows)
}

const SIZES: [(usize, usize); 4] = [(2, 1), (3, 1), (3, 2), (4, 2)];

/// Section 2: the queue and whatever simulates it solve the k-critical section problem.
#[test]
fn queues_and_tickets_solve_the_problem() {
    for (n, k) in SIZES {
        for kind in [Slots::Queue, Slots::Tickets, Slots::LeavesAtOnce] {
            for property in [KExclusion, FifoEnabling, KDeadlockAvoidance, StarvationFreedom] {
                holds(kind, n, k, property);
            }
        }
    }
}

/// Section 1: the count keeps k out of each other's way and never stands still, but keeps nobody's
/// turn. The shortest overtaking: k enter, one finds it full, one leaves, and comes in again or
/// another does.
#[test]
fn a_count_lets_others_pass() {
    for (n, k) in SIZES {
        holds(Slots::Count, n, k, KExclusion);
        holds(Slots::Count, n, k, KDeadlockAvoidance);
        fails(Slots::Count, n, k, StarvationFreedom);
        let (steps, from, shows) = fails(Slots::Count, n, k, FifoEnabling);
        assert_eq!((steps, from), (k + 3, None), "({n}, {k}): {shows}");
    }
    let (.., shows) = fails(Slots::Count, 2, 1, FifoEnabling);
    let when = "it is in its remainder after step 3 and enabled to enter after step 4";
    assert!(shows.starts_with("process ") && shows.contains(when), "{shows}");
}

/// Section 1: with two tellers free and the head of the line asleep, who is behind it waits. Two
/// line up, and the second looks again and again. With one teller the head is the only one who
/// could go.
#[test]
fn a_bank_stands_still_behind_its_head() {
    for (n, k) in [(3, 2), (4, 2), (4, 3)] {
        let (steps, from, shows) = fails(Slots::Bank, n, k, KDeadlockAvoidance);
        assert_eq!((steps, from), (3, Some(2)), "({n}, {k}): {shows}");
        assert!(
            shows.contains(&format!("waits to enter, and only 1 of k = {k} are enabled")),
            "{shows}"
        );
    }
    for (n, k) in SIZES {
        holds(Slots::Bank, n, k, FifoEnabling);
        holds(Slots::Bank, n, k, KExclusion);
    }
    for n in [2, 3, 4] {
        holds(Slots::Bank, n, 1, KDeadlockAvoidance);
    }
}

/// Who wants to leave and has to wait for somebody inside is overtaken by that one: two enter, the
/// second wants to leave. That one looking again and again is a k-deadlock.
#[test]
fn waiting_to_leave_counts_too() {
    for (n, k) in [(3, 2), (4, 2), (4, 3)] {
        let (steps, from, shows) = fails(Slots::LeavesInOrder, n, k, FifoEnabling);
        assert_eq!((steps, from), (3, None), "({n}, {k}): {shows}");
        assert!(
            shows.contains(
                "it is in its critical section after step 3 and enabled to leave after step 3"
            ),
            "{shows}"
        );
        let (steps, from, shows) = fails(Slots::LeavesInOrder, n, k, KDeadlockAvoidance);
        assert_eq!((steps, from), (4, Some(3)), "({n}, {k}): {shows}");
        assert!(shows.contains("waits to leave"), "{shows}");
    }
    // With one slot nobody is before the one who leaves.
    for n in [2, 3] {
        holds(Slots::LeavesInOrder, n, 1, FifoEnabling);
        holds(Slots::LeavesInOrder, n, 1, KDeadlockAvoidance);
    }
}

/// In a line for leaving nobody is overtaken, but who sleeps at its head stops it: two enter, both
/// want to leave.
#[test]
fn a_line_for_leaving_is_fair_and_not_robust() {
    for (n, k) in [(3, 2), (4, 2), (4, 3)] {
        holds(Slots::LeavesByQueue, n, k, FifoEnabling);
        let (steps, from, shows) = fails(Slots::LeavesByQueue, n, k, KDeadlockAvoidance);
        assert_eq!((steps, from), (5, Some(4)), "({n}, {k}): {shows}");
    }
}

/// Who sleeps on its way out with the slot not yet free is neither inside nor enabled, and keeps
/// the next one out: k enter, one finds it full, and one begins to leave.
#[test]
fn a_slot_has_to_be_free_with_the_first_step_out() {
    for (n, k) in SIZES {
        holds(Slots::LeavesSlowly, n, k, FifoEnabling);
        let (steps, from, shows) = fails(Slots::LeavesSlowly, n, k, KDeadlockAvoidance);
        assert_eq!((steps, from), (k + 3, Some(k + 2)), "({n}, {k}): {shows}");
        assert!(shows.contains(&format!("only {} of k = {k} are enabled", k - 1)), "{shows}");
    }
}

/// Who has made its passages is in its remainder for ever, and must not pass for enabled because it
/// takes no steps.
#[test]
fn with_passages_bounded_who_is_done_is_not_enabled() {
    for passages in [1, 2, 3] {
        for (n, k) in SIZES {
            for kind in [Slots::Queue, Slots::Tickets] {
                for property in [FifoEnabling, KDeadlockAvoidance] {
                    let verdict = decide(&*slots(kind, n, k), property, Some(passages));
                    assert_eq!(
                        verdict.holds,
                        Some(true),
                        "{kind:?} ({n}, {k}), {passages} passages: {property}"
                    );
                    assert!(
                        verdict.scope.contains("says nothing of runs with more passages"),
                        "{}",
                        verdict.scope
                    );
                }
            }
        }
        let count = decide(&*slots(Slots::Count, 2, 1), FifoEnabling, Some(passages));
        // One who has come and gone cannot come again.
        assert_eq!(count.holds, Some(passages == 1), "{passages} passages");
        let bank = decide(&*slots(Slots::Bank, 3, 2), KDeadlockAvoidance, Some(passages));
        assert_eq!(bank.holds, Some(false), "{passages} passages");
        assert!(bank.scope.contains("says nothing of runs with more passages"), "{}", bank.scope);
    }
}

/// Where the graph of relabelled states may have runs that no true tickets make, that nobody is
/// overtaken on it decides nothing; with passages bounded tickets are what they are.
#[test]
fn what_depends_on_unknown_widths_is_not_decided() {
    for property in [FifoEnabling, KDeadlockAvoidance] {
        let subject = slots(Slots::Scribbles, 2, 1);
        let verdict = decide(&*subject, property, None);
        assert_eq!(verdict.holds, None, "{property}: {}", verdict.scope);
        assert!(verdict.scope.contains("bound the passages"), "{}", verdict.scope);
        let verdict = decide(&*subject, property, Some(3));
        assert_eq!(verdict.holds, Some(true), "{property}: {}", verdict.scope);
    }
}

/// Reads and writes are not transactions, and the definitions know no doorway: with its first write
/// a process of the bakery is in T, where it waits for whoever may come, be ahead of it and stop.
/// So others overtake it while it is in its doorway; and who stops in the doorway stops everybody.
/// With any number of passages tickets fall inside gaps of unknown width, so there it takes a true
/// run for everybody who is said to be kept waiting.
#[test]
fn the_bakery_has_neither() {
    let bakery = Entrant::named("bakery").expect("there is a bakery");
    for (n, overtaking, standstill) in [(2, 6, 5), (3, 11, 6)] {
        let subject = bakery.build(Size::mutex(n), None, false).expect("it fits");
        for passages in [None, Some(1)] {
            let trace = |property| {
                let verdict = decide(&*subject, property, passages);
                assert_eq!(verdict.holds, Some(false), "n = {n} {property}: {}", verdict.scope);
                let trace = verdict.trace.expect("a violation has a trace");
                trace.replay().expect("it replays");
                (trace.steps.len(), trace.loop_from)
            };
            assert_eq!(trace(FifoEnabling), (overtaking, None), "n = {n}");
            assert_eq!(trace(KDeadlockAvoidance), (standstill + 1, Some(standstill)), "n = {n}");
        }
    }
}
