//! Bisimilar local states of a process are merged before the search. Nothing depends on that but
//! the number of states: every verdict is the same, and every shortest run as long.

use doorway_core::{ANY_NUMBER, Problem, Property, RegisterKind, Setting};
use doorway_lab::{Entrant, Options, Progress, Report, Subject, check};

#[path = "common/dead.rs"]
mod dead;
#[path = "common/szymanski.rs"]
mod szymanski;

use dead::{Dead, dead};
use szymanski::{Scans, szymanski};

/// The reports without merging and with it.
fn both(subject: &dyn Subject, options: &Options) -> (Report, Report) {
    let run = |minimise| {
        let options = Options { minimise, ..options.clone() };
        check(subject, &options, &Progress::default())
            .unwrap_or_else(|fault| panic!("{}: {fault}", subject.name()))
    };
    (run(false), run(true))
}

/// What has to be the same.
fn agree(what: &str, (without, with): &(Report, Report)) {
    assert_eq!(without.complete, with.complete, "{what}");
    assert!(
        with.states <= without.states,
        "{what}: {} states are more than {}",
        with.states,
        without.states
    );
    if without.complete {
        // Of states that are merged the nearest counts.
        assert!(with.depth <= without.depth, "{what}");
        assert_eq!(without.shared_values, with.shared_values, "{what}");
        assert_eq!((without.max_register, without.bits), (with.max_register, with.bits), "{what}");
    }
    for (without, with) in without.verdicts.iter().zip(&with.verdicts) {
        let what = format!("{what} {}: {} and {}", with.property, without.scope, with.scope);
        assert_eq!(without.holds, with.holds, "{what}");
        let (Some(without), Some(with)) = (&without.trace, &with.trace) else { continue };
        // Only algorithms of the registry can be found again by their names.
        if Entrant::named(&with.algorithm).is_some() {
            with.replay().unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        match (without.loop_from, with.loop_from) {
            // A way round may be shorter where a state need not come back as it was.
            (Some(from), Some(to)) => assert_eq!(from, to, "{what}"),
            _ => assert_eq!(without.steps.len(), with.steps.len(), "{what}"),
        }
    }
}

/// Where a test can afford to explore all states twice.
fn settings(entrant: &Entrant, mutant: Option<&str>) -> Vec<Setting> {
    let (two, three) = match entrant.claims.problem {
        Problem::Group => (Setting::group(2, 2), Setting::group(3, 2)),
        _ => (Setting::slots(2, 1), Setting::slots(3, 1)),
    };
    match (entrant.name, mutant) {
        // Too many outcomes to merge anything, or too many states.
        ("randomized" | "randomized-starvation-free" | "named-lock" | "named-group-lock", _)
        | ("randomized-bounded" | "strong-group-black-white-bakery", Some(_)) => vec![],
        _ if entrant.variant == Some("bounded") => vec![],
        ("randomized-bounded", None) => vec![two.passages(1).retries(ANY_NUMBER)],
        ("strong-group-black-white-bakery", _) => vec![two.passages(2)],
        ("burns-lamport", _) => {
            vec![two.on(RegisterKind::Safe), two.on(RegisterKind::Regular), two, three]
        }
        ("black-white-bakery" | "mcs", None) => vec![two, three, two.passages(2)],
        _ => vec![two],
    }
}

fn properties(entrant: &Entrant) -> Vec<Property> {
    let mut all = entrant.claims.properties.to_vec();
    let refuted = entrant.claims.refuted.iter().map(|(property, _)| *property);
    all.extend(refuted.chain([Property::FifoEnabling, Property::KDeadlockAvoidance]));
    all.retain(|property| property.suits(entrant.claims.problem));
    all
}

/// All algorithms and their mutants, with and without merging: each property by itself, because a
/// search ends with the first violation of any.
#[test]
fn verdicts_and_shortest_runs_are_the_same() {
    let mut merged = Vec::new();
    for entrant in Entrant::all() {
        let mutants = entrant.claims.mutants.iter().map(|mutant| Some(mutant.name));
        for mutant in mutants.chain([None]) {
            for setting in settings(entrant, mutant) {
                for abandons in [false, true] {
                    if abandons && (!entrant.claims.abandons || mutant.is_some()) {
                        continue;
                    }
                    let subject = entrant.build(setting.size, mutant, abandons).expect("it fits");
                    let options = Options {
                        passages: if abandons { Some(2) } else { setting.passages },
                        retries: setting.retries,
                        registers: setting.registers,
                        max_states: 400_000,
                        workers: 2,
                        ..Options::default()
                    };
                    let plain = check(&*subject, &options, &Progress::default()).expect("it runs");
                    if !plain.complete || plain.locals.is_none_or(|(before, after)| before == after)
                    {
                        continue;
                    }
                    for property in properties(entrant) {
                        let options = Options { properties: vec![property], ..options.clone() };
                        let what =
                            format!("{} {mutant:?} {setting:?} abandons: {abandons}", entrant.name);
                        agree(&what, &both(&*subject, &options));
                    }
                    if mutant.is_none() && merged.last() != Some(&entrant.name) {
                        merged.push(entrant.name);
                    }
                }
            }
        }
    }
    let all = [
        "black-white-bakery",
        "burns-lamport",
        "yang-anderson",
        "mcs",
        "randomized-bounded",
        "colored-ticket",
        "timestamp-bakery",
        "group-black-white-bakery",
        "strong-group-black-white-bakery",
    ];
    assert_eq!(merged, all, "these are compared, and not others");
}

/// The states of Szymanski's algorithm among four. Merging finds what can be forgotten by hand and
/// no more: the last way to write it has nothing left to merge.
#[test]
fn what_is_dead_is_forgotten() {
    let options = Options {
        properties: vec![Property::MutualExclusion, Property::DeadlockFreedom],
        ..Options::default()
    };
    for (scans, states, locals) in
        [(Scans::Find, 160_012, 133), (Scans::Scope, 36_607, 81), (Scans::Forget, 33_255, 71)]
    {
        let reports = both(&*szymanski(scans, 4), &options);
        agree(&format!("{scans:?}"), &reports);
        let (without, with) = reports;
        assert_eq!((without.states, without.locals), (states, None), "{scans:?}");
        assert_eq!((with.states, with.locals), (33_255, Some((locals, 71))), "{scans:?}");
        assert!(with.verdicts.iter().all(|verdict| verdict.holds == Some(true)), "{scans:?}");
    }
}

/// In a group lock, too, what one process has seen of the others is dead most of the time.
#[test]
fn most_states_of_a_group_lock_differ_in_what_is_dead() {
    let entrant = Entrant::named("strong-group-black-white-bakery").expect("it is in the registry");
    let subject = entrant.build(Setting::group(2, 2).size, None, false).expect("it fits");
    let (without, with) = both(&*subject, &Options::default());
    assert_eq!((without.states, with.states), (293_533, 58_848));
}

/// A process counts the rounds of its wait modulo 3. It goes round in one state of the graph and in
/// three states of a run, so it takes three rounds until that comes back.
#[test]
fn a_loop_of_merged_states_comes_back_after_several_rounds() {
    let options = Options { properties: vec![Property::DeadlockFreedom], ..Options::default() };
    let (without, with) = both(&*dead(Dead::Rounds), &options);
    let trace = |report: &Report| report.verdicts[0].trace.clone().expect("nobody ever enters");
    let round = |report: &Report| {
        trace(report).steps.len() - trace(report).loop_from.expect("it goes round")
    };
    assert_eq!((round(&without), round(&with)), (3, 1));
}

/// Processes that differ in nothing but the line that they are at, or in whether what they begin is
/// an attempt, are kept apart.
#[test]
fn lines_and_attempts_are_told_apart() {
    let property = Property::Invariant("invariant:word-stays");
    let options = Options { properties: vec![property], ..Options::default() };
    let reports = both(&*dead(Dead::Lines), &options);
    agree("lines", &reports);
    assert_eq!(reports.1.verdicts[0].holds, Some(false), "{}", reports.1.verdicts[0].scope);
    let options = Options { properties: vec![Property::DeadlockFreedom], ..Options::default() };
    let reports = both(&*dead(Dead::Attempts), &options);
    agree("attempts", &reports);
    assert_eq!(reports.0.states, reports.1.states, "a process that makes attempts stops after one");
}

/// States are compared for values up to the declared bound. Where a larger one turns up, the check
/// begins again without merging and finds what the bound would have hidden.
#[test]
fn nothing_is_merged_if_a_register_exceeds_its_bound() {
    let options = Options { properties: vec![Property::MutualExclusion], ..Options::default() };
    let reports = both(&*dead(Dead::Bound), &options);
    agree("bound", &reports);
    assert_eq!((reports.1.locals, reports.1.verdicts[0].holds), (None, Some(false)));
    let reports = both(&*dead(Dead::Safely), &options);
    agree("no more than the bound", &reports);
    let (before, after) = reports.1.locals.expect("everything was foreseen");
    assert!(after < before && reports.1.states < reports.0.states, "the choice is dead");
}

/// Code that panics on values that it can never find is not found to panic.
#[test]
fn code_that_panics_where_it_never_gets_is_explored() {
    let options = Options { properties: vec![Property::MutualExclusion], ..Options::default() };
    let reports = both(&*dead(Dead::Panics), &options);
    agree("panics", &reports);
    assert!(reports.1.states < reports.0.states, "the choice is dead");
}
