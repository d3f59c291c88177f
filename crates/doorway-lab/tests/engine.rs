//! The conditions on which the replay engine is sound, one by one.

#[allow(dead_code, reason = "not every test needs every toy")]
mod common;

use common::{Toy, toy};
use doorway_core::{Property, RegisterKind};
use doorway_lab::{
    Choice, Entrant, Fault, Options, Progress, Random, Report, Subject, check, machine::Machine,
};

/// Explores two passages; decides mutual exclusion.
fn safety(subject: &dyn Subject, registers: RegisterKind) -> Result<Report, Fault> {
    explore(subject, registers, Property::MutualExclusion)
}

fn explore(
    subject: &dyn Subject,
    registers: RegisterKind,
    property: Property,
) -> Result<Report, Fault> {
    let options =
        Options { passages: Some(2), registers, properties: vec![property], ..Options::default() };
    check(subject, &options, &Progress::default())
}

/// Runs the same random schedules with and without forgetting; every access has to be the same.
/// Returns how many steps were compared.
fn compare(subject: &dyn Subject, schedules: u64, steps: u64, seed: u64) -> u64 {
    let n = subject.size().n as u64;
    let mut random = Random::new(seed, 0);
    let mut compared = 0;
    for _ in 0..schedules {
        let mut cut = Machine::new(subject, RegisterKind::Atomic, true).expect("it runs");
        let mut uncut = Machine::new(subject, RegisterKind::Atomic, false).expect("it runs");
        for _ in 0..random.below(steps) {
            let p = random.below(n) as usize;
            let moves = cut.moves(p);
            let choice = moves[random.below(moves.len() as u64) as usize].choice;
            let a = cut.step(p, choice, None).expect("it runs cut");
            let b = uncut.step(p, choice, None).expect("it runs uncut");
            assert_eq!(
                (a.line, a.access, a.from, a.to),
                (b.line, b.access, b.from, b.to),
                "{}",
                subject.name()
            );
            compared += 1;
        }
    }
    compared
}

#[test]
fn cut_and_uncut_replays_agree_access_by_access() {
    let mut schedules = 0;
    for entrant in Entrant::all() {
        for n in [2, 3, 5] {
            let subject =
                entrant.build(entrant.claims.problem.size(n, 1, 2), None, true).expect("it fits");
            compare(&*subject, 9_000, 24, n as u64);
            // A few long ones: an uncut record grows with every failed wait, and its replay with
            // it.
            compare(&*subject, 20, 1_500, n as u64 + 100);
            schedules += 9_020;
        }
    }
    assert!(schedules >= 100_000, "{schedules} schedules");
}

#[test]
fn nested_loops_do_not_take_each_others_marks() {
    let subject = toy(Toy::Nested, 2);
    assert!(compare(&*subject, 2_000, 60, 7) > 20_000);
    // The loops are counted out: 3 outer rounds of 2 reads, then 2 inner rounds each, all before
    // the last write.
    let mut machine = Machine::new(&*subject, RegisterKind::Atomic, true).expect("it runs");
    machine.step(0, Choice::Request(0), None).expect("it begins");
    let mut lines = Vec::new();
    while machine.inside() == 0 {
        lines.push(machine.step(0, Choice::Go, None).expect("it goes on").line);
    }
    assert_eq!(lines, [2, 3, 3, 2, 3, 3, 2, 3, 3, 4]);
}

/// A loop that goes round without an access never ends. One over items does, and may skip some of
/// them.
#[test]
fn a_round_without_an_access_is_an_error_where_it_has_no_end() {
    let fault = safety(&*toy(Toy::IdleRepeat, 2), RegisterKind::Atomic).err();
    assert!(
        matches!(fault, Some(Fault::IdleIteration(place)) if place.file().ends_with("common/mod.rs")),
        "{fault:?}"
    );
    let subject = toy(Toy::IdleEach, 2);
    assert!(safety(&*subject, RegisterKind::Atomic).is_ok());
    assert!(compare(&*subject, 500, 60, 3) > 5_000);
}

/// A process that leaves without an access would be in the critical section for no time at all.
#[test]
fn an_exit_without_an_access_is_an_error() {
    for kind in [Toy::IdlePassage, Toy::IdleExit] {
        let fault = safety(&*toy(kind, 1), RegisterKind::Atomic).err();
        assert_eq!(fault, Some(Fault::IdleSection("exit section")), "{kind:?}");
    }
}

/// `Fn` keeps closures from changing what they capture (see `Memory`'s documentation for the test
/// that it does); what gets round that, here a cell inside the algorithm, is found out because
/// every step is learned twice.
#[test]
fn interior_mutability_is_found_out() {
    assert_eq!(safety(&*toy(Toy::Impure, 2), RegisterKind::Atomic).err(), Some(Fault::Impure));
}

/// A read that overlaps a write of a regular register may return the new value and a later one the
/// old value again; of an atomic one it may not.
#[test]
fn regular_registers_allow_new_old_inversion_and_atomic_ones_do_not() {
    let subject = toy(Toy::Inversion, 2);
    let inverted = |registers| {
        explore(&*subject, registers, Property::BoundedRegisters).expect("it runs").verdicts[0]
            .holds
    };
    assert_eq!(inverted(RegisterKind::Atomic), Some(true));
    assert_eq!(inverted(RegisterKind::Regular), Some(false));
    assert_eq!(inverted(RegisterKind::Safe), Some(false));
}

/// Every outcome of a choice is explored: one of them, and only one, spoils the exclusion.
#[test]
fn choices_are_enumerated() {
    let report = safety(&*toy(Toy::Coin(4), 2), RegisterKind::Atomic).expect("it runs");
    assert_eq!(report.verdicts[0].holds, Some(false));
    let trace = report.verdicts[0].trace.as_ref().expect("a violation has a trace");
    assert!(trace.steps.iter().any(|step| step.choice.as_deref() == Some("outcome 3")));
    trace
        .steps
        .iter()
        .filter_map(|step| step.choice.as_deref())
        .for_each(|choice| assert!(choice.starts_with("outcome")));
    let report = safety(&*toy(Toy::Coin(3), 2), RegisterKind::Atomic).expect("it runs");
    assert_eq!(report.verdicts[0].holds, Some(true));
}

/// Compare-and-swap, fetch-and-add and transactions are one step each: as locks they exclude.
#[test]
fn stronger_primitives_are_single_steps() {
    for kind in [Toy::Swap, Toy::Add, Toy::Transaction] {
        let report = safety(&*toy(kind, 3), RegisterKind::Atomic).expect("it runs");
        assert_eq!(report.verdicts[0].holds, Some(true), "{kind:?}");
        assert!(report.complete && report.states > 20, "{kind:?}: {} states", report.states);
    }
    // Two accesses instead of one do not.
    let report = safety(&*toy(Toy::TestThenSet, 2), RegisterKind::Atomic).expect("it runs");
    assert_eq!(report.verdicts[0].holds, Some(false));
    assert_eq!(
        report.verdicts[0].trace.as_ref().map(|trace| trace.steps.len()),
        Some(4),
        "the shortest has four steps"
    );
}
