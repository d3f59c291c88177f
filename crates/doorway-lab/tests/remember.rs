//! A machine that remembers its steps makes the runs that one makes which replays them all, however
//! little it remembers.

#[allow(dead_code, reason = "not every test needs every toy")]
mod common;

use common::{Toy, toy};
use doorway_core::RegisterKind;
use doorway_lab::{
    Entrant, Random, Subject,
    machine::{Event, Machine},
    schedule::{ADVERSARIES, ScheduleError},
    simulate::{Outcome, Simulation, scheduler, simulate_on},
};

/// Everything that a run can be told by.
fn said(outcome: &Outcome) -> String {
    let Outcome { steps, violations, violated, crashed, stuck, cut_off, lines, meter, lemmas } =
        outcome;
    let costs = (meter.cc, meter.dsm, &meter.by_process);
    format!(
        "{steps} {violations} {violated:?} {crashed:?} {stuck} {cut_off} {lines:?} {costs:?} {lemmas:?}"
    )
}

fn same_runs(what: &str, subject: &dyn Subject, names: &[&str], how: &Simulation) {
    for name in names {
        let run = |machine: Machine<'_>| {
            let mut scheduler =
                scheduler::<ScheduleError>(name, subject, how.seed, |_| unreachable!())
                    .expect("it exists");
            match simulate_on(machine, subject, how, &mut *scheduler) {
                Ok(outcome) => said(&outcome),
                // A mutant may ask for a register that is not there: in all runs at the same step.
                Err(error) if subject.mutant().is_some() => error.to_string(),
                Err(error) => panic!("{what} {name}: {error}"),
            }
        };
        let new = || Machine::new(subject, RegisterKind::Atomic, true).expect("it runs");
        let replayed = run(new());
        assert_eq!(run(new().silent()), replayed, "{what} {name}");
        for (states, values) in [(1, 1 << 16), (5, 3), (40, 20)] {
            let forgetful = new().silent().remembering(states, values);
            assert_eq!(
                run(forgetful),
                replayed,
                "{what} {name}, with {states} states and {values} values"
            );
        }
    }
}

#[test]
fn every_algorithm_makes_the_same_runs() {
    for entrant in Entrant::all() {
        for (n, k, seed) in [(2, 1, 1), (4, 2, 2), (9, 3, 3)] {
            for abandons in [false, true] {
                let subject = entrant
                    .build(entrant.claims.problem.size(n, k, 2), None, abandons)
                    .expect("it fits");
                let how = Simulation { passages: 6, seed, crashes: 0, max_steps: 6_000 };
                let what =
                    format!("{} {:?} n = {n} abandons: {abandons}", entrant.name, entrant.variant);
                same_runs(&what, &*subject, &["random", "pct", "round-robin"], &how);
                same_runs(
                    &what,
                    &*subject,
                    &["random", "strong-adaptive:victim"],
                    &Simulation { crashes: 1, ..how },
                );
            }
        }
    }
}

/// What an adversary sees does not depend on how steps are made either.
#[test]
fn every_adversary_makes_the_same_runs() {
    for entrant in Entrant::all() {
        let subject =
            entrant.build(entrant.claims.problem.size(5, 2, 2), None, false).expect("it fits");
        let how = Simulation { passages: 6, seed: 6, crashes: 0, max_steps: 4_000 };
        same_runs(entrant.name, &*subject, &ADVERSARIES, &how);
    }
}

/// Mutants go where the algorithms do not, and violate what these do not.
#[test]
fn mutants_make_the_same_runs() {
    for entrant in Entrant::all() {
        for mutant in entrant.claims.mutants {
            let Ok(subject) =
                entrant.build(entrant.claims.problem.size(4, 2, 2), Some(mutant.name), false)
            else {
                continue;
            };
            let how = Simulation { passages: 8, seed: 4, crashes: 0, max_steps: 3_000 };
            same_runs(&format!("{} {}", entrant.name, mutant.name), &*subject, &["random"], &how);
        }
    }
}

/// Choices, stronger primitives, waits that carry something from round to round.
#[test]
fn toys_make_the_same_runs() {
    for kind in
        [Toy::Nested, Toy::Coin(3), Toy::Coin(4), Toy::Swap, Toy::Add, Toy::Transaction, Toy::Scan]
    {
        let how = Simulation { passages: 20, seed: 5, crashes: 0, max_steps: 5_000 };
        same_runs(&format!("{kind:?}"), &*toy(kind, 3), &["random", "pct"], &how);
    }
}

/// Step by step: two machines, one that remembers and one that replays, follow the same schedule,
/// in which everybody waits a lot.
#[test]
fn remembered_steps_are_replayed_steps() {
    for entrant in Entrant::all() {
        let subject =
            entrant.build(entrant.claims.problem.size(5, 2, 2), None, false).expect("it fits");
        let new = || Machine::new(&*subject, RegisterKind::Atomic, true).expect("it runs");
        let (mut replays, mut remembers) = (new(), new().silent());
        let mut random = Random::new(5, 0);
        let mut p = 0;
        for _ in 0..20_000 {
            // Bursts, so that many looks find what they found before.
            if random.below(8) == 0 {
                p = random.below(5) as usize;
            }
            let moves = replays.moves(p);
            let choice = moves[random.below(moves.len() as u64) as usize].choice;
            let replayed = replays.step(p, choice, None).expect("it steps");
            let remembered = remembers.step(p, choice, None).expect("it steps");
            let seen = |e: &Event| {
                (
                    e.line, e.kind, e.register, e.slot, e.remote, e.from, e.to, e.session,
                    e.abandons, e.idle, e.changed,
                )
            };
            assert_eq!(seen(&remembered), seen(&replayed), "{}", entrant.name);
            for r in 0..replays.registers() {
                assert!(replays.value(r).same(remembers.value(r)), "{} register {r}", entrant.name);
            }
        }
    }
}
