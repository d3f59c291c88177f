//! Timestamp systems alone: P1, P2 and the four statements of the paper's section III, in every
//! interleaving of a few operations, under random schedules and on real threads; and every way to
//! get the bounded one wrong, each by a test of its name.

#![allow(missing_docs, unreachable_pub)]

mod clock;
mod explore;
mod ghost;
mod history;
mod mutants;
mod past;
mod random;
mod threads;

use clock::{
    BOTH,
    Op::{self, Label, Scan},
    System,
};
use doorway_core::timestamps::{Abstract, Bounded};
use explore::{Explorer, Program};
use ghost::Ghost;
use past::{Past, Record};
use random::Counts;

/// Explores all of a program; how many states it has.
fn all<P: Past>(system: System, program: Program<'_>, prologue: u64, seed: u64) -> usize {
    let subject = system.subject(program.len(), None);
    let explored = Explorer::new(&*subject).run::<P>(program, prologue, seed, 2_000_000);
    assert_eq!(explored.violation, None, "{system:?} {program:?}, seed {seed}");
    assert!(explored.complete, "{system:?} {program:?}: {} states", explored.states);
    explored.states
}

/// Two processes, two operations each, whatever they are: all six statements on everything that can
/// happen.
#[test]
fn two_processes_keep_all_promises_in_every_interleaving() {
    let pairs: Vec<[Op; 2]> = [Label, Scan]
        .into_iter()
        .flat_map(|first| [Label, Scan].map(|second| [first, second]))
        .collect();
    for system in BOTH {
        let mut states = 0;
        for a in &pairs {
            for b in &pairs {
                states += all::<Record>(system, &[a, b], 0, 0);
                states += all::<Record>(system, &[a, b], 60, 1);
            }
        }
        println!("{system:?}: {states} states");
    }
}

/// Two processes, four operations each: P1 and P2.
#[test]
fn two_processes_keep_p1_and_p2_over_four_operations() {
    for system in BOTH {
        for program in [
            &[&[Label, Scan, Label, Scan], &[Label, Scan, Label, Scan]],
            &[&[Label, Label, Label, Scan], &[Scan, Scan, Scan, Scan]],
            &[&[Scan, Label, Label, Scan], &[Label, Scan, Scan, Label]],
        ] {
            println!(
                "{system:?} {program:?}: {} states",
                all::<Ghost>(system, &[program[0], program[1]], 0, 0)
            );
        }
    }
}

/// Three processes: P1 and P2.
#[test]
fn three_processes_keep_p1_and_p2_in_every_interleaving() {
    for system in BOTH {
        for program in [
            &[&[Label, Scan][..], &[Label], &[Label]],
            &[&[Scan, Scan], &[Label, Label], &[Label]],
            &[&[Scan], &[Scan], &[Label, Label]],
        ] {
            println!("{system:?} {program:?}: {} states", all::<Ghost>(system, program, 0, 0));
        }
    }
}

/// The same from where a random prologue has led, since labels take many operations to go round.
#[test]
fn three_processes_keep_p1_and_p2_wherever_they_start() {
    let mut states = 0;
    for seed in 0..40 {
        states +=
            all::<Ghost>(System::Bounded, &[&[Scan], &[Label], &[Label]], 200 + 10 * seed, seed);
    }
    for seed in 40..50 {
        states += all::<Ghost>(
            System::Bounded,
            &[&[Scan, Scan], &[Label], &[Label]],
            200 + 10 * seed,
            seed,
        );
    }
    println!("{states} states");
}

/// The search bites: it finds what is wrong with a mutant, too.
#[test]
fn every_interleaving_of_a_mutant_has_a_broken_promise() {
    let subject = System::Bounded.subject(2, Some("colour-answered-before"));
    let program: Program<'_> = &[&[Label, Scan, Scan], &[Label, Label]];
    let explored = Explorer::new(&*subject).run::<Ghost>(program, 0, 0, 1_000_000);
    assert!(explored.violation.is_some(), "{explored:?}");
}

#[test]
fn random_schedules_keep_all_promises() {
    for system in BOTH {
        for (n, runs) in [(2, 300), (3, 300), (4, 300), (5, 200), (6, 120), (7, 80), (8, 60)] {
            let subject = system.subject(n, None);
            for seed in 0..runs {
                let steps = if system == System::Abstract { 100 } else { 1_500 };
                random::judge(&*subject, steps, seed)
                    .unwrap_or_else(|why| panic!("{system:?} n = {n}, seed {seed}: {why}"));
            }
        }
    }
}

/// What the paper needs: O(n) accesses for each operation. These are the numbers.
#[test]
fn operations_cost_what_is_said() {
    for n in 1..=8 {
        let subject = System::Bounded.subject(n, None);
        let costs: Vec<_> =
            (0..20).flat_map(|seed| random::run(&*subject, 1_000, seed).1).collect();
        let of = |op| costs.iter().filter(move |(done, _)| *done == op).map(|(_, counts)| *counts);
        assert!(
            of(Scan).all(|counts| counts == Counts { reads: 4 * (n - 1), writes: 1 }),
            "n = {n}"
        );
        assert!(of(Label).all(|counts| counts.reads == 6 * (n - 1)), "n = {n}");
        let most = of(Label).map(|counts| counts.writes).max();
        assert_eq!(most, Some(n + 2), "n = {n}: the most writes of a Label");
        let subject = System::Abstract.subject(n, None);
        let costs = random::run(&*subject, 100, 0).1;
        assert!(
            costs.iter().all(|(_, counts)| *counts == Counts { reads: 0, writes: 1 }),
            "n = {n}"
        );
    }
}

#[test]
fn threads_keep_the_promises_of_section_3() {
    for n in [2, 4, 8] {
        for seed in 0..20 {
            let operations = 1_200 / n as u32;
            let histories = [
                threads::on_native::<Abstract>(n, operations, seed),
                threads::on_native::<Bounded>(n, operations, seed),
            ];
            for (system, history) in BOTH.iter().zip(histories) {
                for window in history.windows(24) {
                    window
                        .check_section_3()
                        .unwrap_or_else(|why| panic!("{system:?} n = {n}, seed {seed}: {why}"));
                }
            }
        }
    }
}

#[test]
fn threads_keep_p1_and_p2() {
    for n in [2, 4, 8] {
        for seed in 0..20 {
            let history = threads::on_numbered(n, 4_000 / n as u32, seed);
            let checked = history.check_p1().and_then(|()| history.check_p2());
            checked.unwrap_or_else(|why| panic!("n = {n}, seed {seed}: {why}"));
            for window in history.windows(24) {
                window
                    .check_section_3()
                    .unwrap_or_else(|why| panic!("n = {n}, seed {seed}: {why}"));
            }
        }
    }
}
