//! The engine of the locks across processes, with processes that are killed: each at any step of
//! any of its passages, also while it puts things in order after another, and comes back as another
//! process in the same place.

use doorway_core::{ANY_NUMBER, Fate, Property, Setting};
use doorway_lab::{
    Entrant, Progress, Report, check,
    schedule::Script,
    simulate::{Simulation, simulate},
};

#[path = "common/options.rs"]
mod options;

use options::options;

fn explore(
    name: &str,
    setting: Setting,
    mutant: Option<&'static str>,
    properties: &[Property],
) -> Report {
    let entrant = Entrant::named(name).expect("it is in the registry");
    let mut subject = entrant.build(setting.size, mutant, false).expect("it fits");
    if let Some(most) = setting.kills {
        assert!(subject.let_kill(most), "deaths can be noticed");
    }
    let options = options(setting, properties, 60_000_000);
    check(&*subject, &options, &Progress::default()).expect("it runs")
}

/// With passages bounded, starvation freedom says that nobody gets stuck.
const SLOTS: &[Property] =
    &[Property::KExclusion, Property::OrderedEntry, Property::StarvationFreedom];
const SESSIONS: &[Property] =
    &[Property::SessionExclusion, Property::OrderedEntry, Property::StarvationFreedom];

fn all_hold(name: &str, setting: Setting, properties: &[Property]) {
    let report = explore(name, setting, None, properties);
    println!(
        "{name} {}, {:?} passages: {} states, {} steps, {:.1} s",
        setting.size,
        setting.passages,
        report.states,
        report.transitions,
        report.elapsed.as_secs_f64()
    );
    assert!(report.complete, "{setting:?}: incomplete");
    for verdict in &report.verdicts {
        assert_eq!(verdict.holds, Some(true), "{} ({})", verdict.property, verdict.scope);
    }
}

#[test]
fn a_killed_process_loses_nothing_but_itself() {
    all_hold("named-lock", Setting::slots(2, 1).passages(2).kills(ANY_NUMBER), SLOTS);
    all_hold("named-lock", Setting::slots(3, 1).passages(1).kills(ANY_NUMBER), SLOTS);
    all_hold("named-lock", Setting::slots(3, 2).passages(1).kills(ANY_NUMBER), SLOTS);
    all_hold("named-group-lock", Setting::group(2, 2).passages(2).kills(ANY_NUMBER), SESSIONS);
    all_hold("named-group-lock", Setting::group(3, 2).passages(1).kills(ANY_NUMBER), SESSIONS);
}

/// Nobody is killed, and all come again and again.
#[test]
fn without_end() {
    let properties =
        &[Property::SessionExclusion, Property::OrderedEntry, Property::DeadlockFreedom];
    all_hold("named-group-lock", Setting::group(2, 2), properties);
}

/// However many rows and slots there are. Nobody is there: two reads and two compare-and-swaps, and
/// a look at the name of a session. Or somebody holds, and there is a slot more.
#[test]
fn who_does_not_wait_makes_a_constant_number_of_accesses() {
    let alone = "0 until critical\n0 until remainder\n";
    let beside = "0 until critical\n1 until critical\n1 until remainder\n";
    for (name, fast) in [("named-lock", 4), ("named-group-lock", 5)] {
        let entrant = Entrant::named(name).expect("it is in the registry");
        let accesses = |script: &str, n, k| {
            let subject =
                entrant.build(entrant.claims.problem.size(n, k, 1), None, false).expect("it fits");
            let how = Simulation { passages: 1, seed: 0, crashes: 0, max_steps: 10_000 };
            let outcome =
                simulate(&*subject, &how, &mut Script::parse(script, n).expect("it is a script"));
            outcome.expect("it can be followed").steps
        };
        let few = accesses(beside, 2, 2);
        println!(
            "{name}: {fast} accesses alone, {few} for one who is there already and one who comes"
        );
        for (n, k) in [(2, 2), (3, 2), (16, 8), (64, 2), (200, 100)] {
            assert_eq!(
                (accesses(alone, n, k), accesses(beside, n, k)),
                (fast, few),
                "{name}, n = {n}, k = {k}"
            );
        }
    }
}

/// Who comes back makes the passage that it died in. A long run:
///
///     cargo test --release --package doorway-lab --test named_lock -- --ignored
#[test]
#[ignore = "it takes minutes and gigabytes"]
fn one_of_three_is_killed_and_comes_back() {
    all_hold("named-lock", Setting::slots(3, 2).passages(1).kills(1), SLOTS);
}

/// The battery catches each mutant; it is the mutation that does it.
#[test]
fn without_the_mutation_nothing_is_caught() {
    for name in ["named-lock", "named-group-lock"] {
        let mut seen = Vec::new();
        for mutant in Entrant::named(name).expect("it is in the registry").claims.mutants {
            let Fate::Breaks { property, setting } = mutant.fate else {
                panic!("{} is not to be caught", mutant.name)
            };
            if seen.contains(&(property, setting)) {
                continue;
            }
            seen.push((property, setting));
            let verdict = explore(name, setting, None, &[property]).verdicts.remove(0);
            assert_eq!(verdict.holds, Some(true), "{}: {}", mutant.name, verdict.scope);
        }
    }
}
