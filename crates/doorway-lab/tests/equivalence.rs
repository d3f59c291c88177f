//! Equivalence of systems (paper 003, section 3.2).

#[allow(dead_code, reason = "not every test needs every toy")]
mod common;

use common::{
    Toy,
    slots::{Slots, slots},
    toy,
};
use doorway_core::Size;
use doorway_lab::{Comparison, Entrant, Incomparable, Progress, Subject, equivalent};

fn compare(first: &dyn Subject, second: &dyn Subject, passages: Option<u32>) -> Comparison {
    equivalent(first, second, passages, 5_000_000, &Progress::default())
        .expect("they can be compared")
}

fn named(name: &str, n: usize) -> Box<dyn Subject> {
    let entrant = Entrant::named(name).expect("it is in the registry");
    // With several sessions there would be something to choose.
    entrant.build(entrant.claims.problem.size(n, 1, 1), None, false).expect("it fits")
}

/// The schedule on which they differ.
fn schedule(comparison: &Comparison) -> Vec<usize> {
    assert_eq!(comparison.holds, Some(false), "{}", comparison.scope);
    let difference = comparison.difference.as_ref().expect("there is a schedule");
    difference.steps.iter().map(|step| step.first.process).collect()
}

/// The natural correspondence of section 2.2: who takes a ticket is put in line.
#[test]
fn tickets_are_a_queue() {
    for (n, k) in [(2, 1), (3, 1), (3, 2), (4, 2)] {
        for passages in [None, Some(2)] {
            let comparison =
                compare(&*slots(Slots::Queue, n, k), &*slots(Slots::Tickets, n, k), passages);
            assert_eq!(
                (comparison.holds, comparison.complete),
                (Some(true), true),
                "({n}, {k}): {}",
                comparison.scope
            );
            assert_eq!(comparison.relabelled, passages.is_none());
            assert!(comparison.difference.is_none());
            println!(
                "({n}, {k}) {passages:?}: {} states, {} steps",
                comparison.states, comparison.transitions
            );
        }
    }
}

/// Without a ticket validated for whoever comes next, there are too few in the end: k + 1 come and
/// one of them leaves in between, which is when the queue still lets the last one in.
#[test]
fn tickets_that_are_not_validated_are_missed() {
    for (n, k) in [(2, 1), (3, 2), (4, 2), (4, 3)] {
        for passages in [None, Some(2)] {
            for swapped in [false, true] {
                let (queue, tickets) =
                    (slots(Slots::Queue, n, k), slots(Slots::StingyTickets, n, k));
                let comparison = match swapped {
                    false => compare(&*queue, &*tickets, passages),
                    true => compare(&*tickets, &*queue, passages),
                };
                assert_eq!(schedule(&comparison).len(), k + 2, "({n}, {k}): {}", comparison.scope);
                let difference = comparison.difference.expect("there is a schedule");
                let last = difference.steps.last().expect("there is a step");
                let (queued, ticketed) =
                    if swapped { (&last.second, &last.first) } else { (&last.first, &last.second) };
                assert_eq!((queued.to.letter(), ticketed.to.letter()), ('C', 'T'));
                let p = last.first.process;
                for q in 0..n {
                    assert_eq!(
                        difference.first[q].letter() == difference.second[q].letter(),
                        q != p,
                        "process {q}"
                    );
                }
            }
        }
    }
}

/// The queue remembers who found it full: k enter, one waits, one leaves and comes again.
#[test]
fn a_count_is_no_queue() {
    for (n, k) in [(2, 1), (3, 1), (3, 2)] {
        let comparison = compare(&*slots(Slots::Queue, n, k), &*slots(Slots::Count, n, k), None);
        assert_eq!(schedule(&comparison).len(), k + 3, "({n}, {k}): {}", comparison.scope);
    }
}

#[test]
fn everything_is_equivalent_to_itself() {
    // Whose coins a schedule would have to name is not compared.
    for entrant in Entrant::all().iter().filter(|entrant| entrant.attempts.is_none()) {
        for (n, passages) in [(2, Some(1)), (2, Some(2)), (3, Some(1))] {
            let subject = named(entrant.name, n);
            let comparison = compare(&*subject, &*subject, passages);
            assert_eq!(comparison.holds, Some(true), "{} {n}: {}", entrant.name, comparison.scope);
            assert!(comparison.shared_values > 1 && comparison.states > 10);
        }
    }
}

/// Alone and unhindered, the Burns-Lamport process is in after two steps and the bakery's is still
/// in its doorway.
#[test]
fn the_bakery_is_not_burns_and_lamports() {
    let comparison = compare(&*named("bakery", 2), &*named("burns-lamport", 2), Some(2));
    assert_eq!(schedule(&comparison), [0, 0], "{}", comparison.scope);
}

/// The bakery's tickets may fall inside gaps whose width is not known, and then nothing is said.
#[test]
fn what_depends_on_unknown_widths_is_not_decided() {
    let comparison = compare(&*named("bakery", 2), &*named("bakery", 2), None);
    assert_eq!((comparison.holds, comparison.complete), (None, false));
    assert!(comparison.scope.contains("bound the passages"), "{}", comparison.scope);
}

#[test]
fn a_search_that_is_cut_short_decides_nothing() {
    let (queue, tickets) = (slots(Slots::Queue, 4, 2), slots(Slots::Tickets, 4, 2));
    let comparison = equivalent(&*queue, &*tickets, None, 100, &Progress::default())
        .expect("they can be compared");
    assert_eq!((comparison.holds, comparison.complete), (None, false));
    assert!(comparison.scope.contains("raise --max-states"), "{}", comparison.scope);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let none = Progress::default();
    let two = slots(Slots::Queue, 2, 1);
    let sizes = equivalent(&*two, &*slots(Slots::Queue, 3, 1), None, 100, &none).err();
    assert_eq!(sizes, Some(Incomparable::Sizes(2, 3)));
    let coin = toy(Toy::Coin(3), 2);
    assert_eq!(
        equivalent(&*coin, &*coin, None, 100, &none).err(),
        Some(Incomparable::Choices("playground"))
    );
    let bakery = Entrant::named("bakery").expect("there is a bakery");
    let gives_up = bakery.build(Size::mutex(2), None, true).expect("it fits");
    let refused = equivalent(&*gives_up, &*gives_up, Some(1), 10_000, &none).err();
    assert_eq!(refused, Some(Incomparable::Choices("bakery")));
    let idle = toy(Toy::IdleExit, 2);
    let fault = equivalent(&*two, &*idle, None, 100, &none).err();
    assert!(matches!(fault, Some(Incomparable::Fault("playground", _))), "{fault:?}");
}
