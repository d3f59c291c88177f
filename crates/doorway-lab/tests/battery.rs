//! Every claim of every algorithm is checked, every refuted property is shown to fail, and every
//! mutant is caught: all from the registry, so that an algorithm gets this with its one line there.

use doorway_core::{ANY_NUMBER, Fate, Problem, Property, RegisterKind, Setting, Size};
use doorway_lab::{Entrant, Options, Progress, Report, check, trace::Trace};

fn options(properties: &[Property], registers: RegisterKind) -> Options {
    Options {
        registers,
        properties: properties.to_vec(),
        max_states: 12_000_000,
        workers: 2,
        ..Options::default()
    }
}

/// The properties in a setting.
fn within(setting: Setting, properties: &[Property]) -> Options {
    let Setting { passages, endless, retries, registers, .. } = setting;
    Options { passages, endless, retries, ..options(properties, registers) }
}

fn run(entrant: &Entrant, size: Size, mutant: Option<&'static str>, options: &Options) -> Report {
    run_killing(entrant, size, mutant, None, options)
}

fn run_killing(
    entrant: &Entrant,
    size: Size,
    mutant: Option<&'static str>,
    kills: Option<u32>,
    options: &Options,
) -> Report {
    let mut subject = entrant
        .build(size, mutant, false)
        .unwrap_or_else(|unfit| panic!("{}: {unfit}", entrant.name));
    if let Some(most) = kills {
        assert!(subject.let_kill(most), "{}: deaths can be noticed", entrant.name);
    }
    check(&*subject, options, &Progress::default())
        .unwrap_or_else(|fault| panic!("{}: {fault}", entrant.name))
}

fn all_hold(report: &Report, what: &str) {
    assert!(report.complete, "{what}: incomplete");
    for verdict in &report.verdicts {
        assert_eq!(verdict.holds, Some(true), "{what}: {} ({})", verdict.property, verdict.scope);
    }
}

/// Where claims are checked here: as far as a test can afford. `scripts/prove` goes further.
fn settings(entrant: &Entrant) -> Vec<Setting> {
    let mut all = affordable(entrant);
    all.retain(|setting| entrant.claims.serves(entrant.name, setting.size).is_ok());
    all
}

fn affordable(entrant: &Entrant) -> Vec<Setting> {
    let least = entrant.claims.min_n;
    if entrant.claims.problem == Problem::KExclusion {
        let few = ["k-bakery-fife", "k-bakery-safe", "timestamp-bakery", "named-lock"]
            .contains(&entrant.name);
        let three = if few { Setting::slots(3, 2).passages(1) } else { Setting::slots(3, 2) };
        let mut all = vec![Setting::slots(1, 1), two(entrant), three];
        // Among three, a passage of the bounded timestamps each is more than twenty million states.
        all.retain(|setting| {
            setting.size.n >= least && (setting.size.n < 3 || entrant.variant != Some("bounded"))
        });
        return all;
    }
    if entrant.claims.problem == Problem::Group {
        // Without end, these have 24 million states and more among three.
        let many = entrant.name.starts_with("strong") || entrant.name == "named-group-lock";
        let three = if many { Setting::group(3, 2).passages(1) } else { Setting::group(3, 2) };
        return vec![Setting::group(1, 1), two(entrant), three];
    }
    if entrant.attempts.is_some() {
        // One passage of any number of attempts: with a second one there are a hundred million
        // states.
        return vec![two(entrant)];
    }
    let most = if entrant.name == "burns-lamport" { 4 } else { 3 };
    (least..=most).map(|n| Setting::slots(n, 1)).collect()
}

/// Two processes: without end where a test can afford that.
fn two(entrant: &Entrant) -> Setting {
    let two = if entrant.claims.problem == Problem::Group {
        Setting::group(2, 2)
    } else {
        Setting::slots(2, 1)
    };
    match entrant.variant {
        _ if entrant.attempts.is_some() => two.passages(1).retries(ANY_NUMBER),
        Some("bounded") => two.passages(2),
        // Without end there are thirteen million states: see `named_lock.rs`.
        _ if entrant.name == "named-group-lock" => two.passages(2),
        _ => two,
    }
}

/// All claims in a setting, with as many crashes as are tolerated.
fn claims(entrant: &Entrant, setting: Setting) -> Options {
    let crashes = (entrant.claims.crashes)(setting.size);
    Options { crashes, ..within(setting, entrant.claims.properties) }
}

/// With as many crashes as are claimed to be tolerated.
#[test]
fn every_claim_holds() {
    for entrant in Entrant::all() {
        for setting in settings(entrant) {
            let report = run(entrant, setting.size, None, &claims(entrant, setting));
            all_hold(&report, &format!("{} {setting:?}", entrant.name));
        }
    }
}

#[test]
fn every_claim_holds_on_the_weakest_registers_claimed() {
    for entrant in
        Entrant::all().iter().filter(|entrant| entrant.claims.registers != RegisterKind::Atomic)
    {
        for registers in [RegisterKind::Regular, RegisterKind::Safe] {
            let report =
                run(entrant, Size::mutex(2), None, &options(entrant.claims.properties, registers));
            all_hold(&report, &format!("{} on {registers} registers", entrant.name));
        }
    }
}

#[test]
fn every_refuted_property_fails() {
    for entrant in Entrant::all() {
        for &(property, setting) in entrant.claims.refuted {
            let report = run(entrant, setting.size, None, &within(setting, &[property]));
            assert_eq!(
                report.verdicts[0].holds,
                Some(false),
                "{} does not have {property}",
                entrant.name
            );
        }
    }
}

/// With one slot, k-exclusion is mutual exclusion and k-FCFS is FCFS, and FIFE follows from FCFS:
/// the general properties say the same as the special ones, of the algorithms and of what breaks
/// them.
#[test]
fn general_properties_agree_with_special_ones() {
    let verdict = |name: &str, mutant, property| {
        let entrant = Entrant::named(name).expect("it is in the registry");
        run(entrant, Size::mutex(2), mutant, &options(&[property], RegisterKind::Atomic))
            .verdicts
            .remove(0)
    };
    for (name, mutant, special, general) in [
        ("bakery", None, Property::MutualExclusion, Property::KExclusion),
        ("bakery", None, Property::Fcfs, Property::KFcfs),
        ("bakery", None, Property::Fcfs, Property::Fife),
        ("bakery", Some("without-line-7"), Property::MutualExclusion, Property::KExclusion),
        ("bakery", Some("ticket-not-larger"), Property::Fcfs, Property::KFcfs),
        ("yang-anderson", None, Property::Fcfs, Property::KFcfs),
        ("yang-anderson", None, Property::Fcfs, Property::Fife),
    ] {
        let (special, general) = (verdict(name, mutant, special), verdict(name, mutant, general));
        assert_eq!(
            special.holds, general.holds,
            "{name} {mutant:?}: {} and {}",
            special.property, general.property
        );
        assert!(special.holds.is_some());
    }
}

/// The tolerance claimed is exact: with one crash more than claimed, somebody starves.
#[test]
fn one_crash_too_many_starves_somebody() {
    for entrant in Entrant::all() {
        for setting in settings(entrant).into_iter().filter(|setting| setting.size.n >= 2) {
            let crashes = (entrant.claims.crashes)(setting.size) + 1;
            let options = Options { crashes, ..within(setting, &[Property::StarvationFreedom]) };
            let verdict = run(entrant, setting.size, None, &options).verdicts.remove(0);
            assert_eq!(verdict.holds, Some(false), "{} with {crashes} crashes", entrant.name);
            let trace = verdict.trace.expect("a violation has a trace");
            assert!(trace.crashed.len() <= crashes);
            trace.replay().unwrap_or_else(|error| panic!("{}: {error}", entrant.name));
        }
    }
}

/// Starvation takes somebody who comes again and again: with turns nobody starves beside that, and
/// without somebody does. With one place in R there are few enough states to see them all.
#[test]
fn nobody_starves_beside_one_who_comes_again_and_again() {
    let endless = Setting::slots(2, 1).passages(1).endless(0);
    for (name, holds) in [("randomized-starvation-free", true), ("randomized-bounded", false)] {
        let entrant = Entrant::named(name).expect("it is in the registry");
        let options = within(endless, &[Property::StarvationFreedom]);
        let verdict = run(entrant, endless.size, Some("one-place"), &options).verdicts.remove(0);
        assert_eq!(verdict.holds, Some(holds), "{name}: {}", verdict.scope);
    }
}

/// Of several under one name, the first stands for all: a mutant changes what they have in common.
#[test]
fn every_mutant_is_caught_or_harmless() {
    let first = |entrant: &&Entrant| {
        Entrant::named(entrant.name).is_some_and(|first| first.variant == entrant.variant)
    };
    for entrant in Entrant::all().iter().filter(first) {
        for mutant in entrant.claims.mutants {
            let what = format!("{} {}", entrant.name, mutant.name);
            match mutant.fate {
                Fate::Scripted { property, setting, script } => {
                    let subject =
                        entrant.build(setting.size, Some(mutant.name), false).expect("it fits");
                    let trace = Trace::scripted(&*subject, setting.registers, property, script)
                        .unwrap_or_else(|error| panic!("{what}: {error}"));
                    let replayed = trace.replay().unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert!(
                        property != Property::Fife || replayed.alone.is_some(),
                        "{what}: nobody goes round alone"
                    );
                    // It is the mutation that does it.
                    let subject = entrant.build(setting.size, None, false).expect("it fits");
                    if let Ok(trace) =
                        Trace::scripted(&*subject, setting.registers, property, script)
                    {
                        let shown = trace
                            .replay()
                            .is_ok_and(|shown| property != Property::Fife || shown.alone.is_some());
                        assert!(!shown, "{what}: nothing is left to catch");
                    }
                    assert!(
                        trace.crashed.len() <= (entrant.claims.crashes)(setting.size),
                        "{what}"
                    );
                }
                Fate::Breaks { property, setting } => {
                    let registers = setting.registers;
                    let options = within(setting, &[property]);
                    let report = run_killing(
                        entrant,
                        setting.size,
                        Some(mutant.name),
                        setting.kills,
                        &options,
                    );
                    let verdict = &report.verdicts[0];
                    assert_eq!(
                        verdict.holds,
                        Some(false),
                        "{what} is not caught: {property} {}",
                        verdict.scope
                    );
                    let trace = verdict.trace.as_ref().expect("a violation has a trace");
                    trace.replay().unwrap_or_else(|error| panic!("{what}: {error}"));
                    if registers != RegisterKind::Atomic {
                        let atomic = within(setting.on(RegisterKind::Atomic), &[property]);
                        let report = run(entrant, setting.size, Some(mutant.name), &atomic);
                        assert_eq!(
                            report.verdicts[0].holds,
                            Some(true),
                            "{what} needs no {registers} registers"
                        );
                    }
                }
                Fate::Harmless => {
                    for setting in settings(entrant) {
                        let report = run(
                            entrant,
                            setting.size,
                            Some(mutant.name),
                            &claims(entrant, setting),
                        );
                        all_hold(&report, &what);
                    }
                }
            }
        }
    }
}

/// Runs without end, with tickets relabelled, and runs of three passages, with tickets as they are,
/// agree on the Bakery and every mutant of it. Only starvation by being overtaken without end takes
/// a run without end to show.
#[test]
fn bounded_and_unbounded_runs_agree() {
    let bakery = Entrant::named("bakery").expect("there is a bakery");
    let mutants = bakery.claims.mutants.iter().map(|mutant| Some(mutant.name));
    for mutant in mutants.chain([None]) {
        for &property in bakery.claims.properties {
            let unbounded = options(&[property], RegisterKind::Atomic);
            let bounded = Options { passages: Some(3), ..unbounded.clone() };
            let relabelled = run(bakery, Size::mutex(2), mutant, &unbounded);
            let plain = run(bakery, Size::mutex(2), mutant, &bounded);
            assert!(relabelled.relabelled && !plain.relabelled);
            let (without_end, bounded) = (relabelled.verdicts[0].holds, plain.verdicts[0].holds);
            match property {
                Property::StarvationFreedom if bounded == Some(true) => {
                    assert!(without_end.is_some())
                }
                _ => assert_eq!(without_end, bounded, "{mutant:?} {property}"),
            }
            let steps =
                |report: &Report| report.verdicts[0].trace.as_ref().map(|trace| trace.steps.len());
            // A shortest run to a bad state is as long in one as in the other; loops may be found
            // at other places.
            if matches!(property, Property::MutualExclusion | Property::Fcfs) {
                assert_eq!(steps(&relabelled), steps(&plain), "{mutant:?} {property}");
            }
        }
    }
}

/// What still holds when places are given up at any wait, as often as one likes, where the
/// algorithm knows how.
#[test]
fn abandoning_keeps_exclusion_and_order() {
    let kept = [
        Property::MutualExclusion,
        Property::KExclusion,
        Property::SessionExclusion,
        Property::ConcurrentEntry,
        Property::Fcfs,
        Property::KFcfs,
        Property::OrderedEntry,
        Property::BoundedExit,
    ];
    for entrant in Entrant::all() {
        let properties: Vec<_> =
            entrant.claims.properties.iter().copied().filter(|p| kept.contains(p)).collect();
        // The Black-White Bakery's numbers are plain ones, and without a bound they go on for ever
        // (see below).
        let passages =
            if entrant.name == "black-white-bakery" { Some(3) } else { two(entrant).passages };
        let options = Options { passages, ..options(&properties, RegisterKind::Atomic) };
        let size = two(entrant).size;
        let report = abandoning(entrant, size, &options);
        all_hold(&report, &format!("{} with abandoned places", entrant.name));
        let without = run(entrant, size, None, &options);
        let can = entrant.claims.abandons;
        assert_eq!(report.transitions > without.transitions, can, "{} abandons", entrant.name);
        if !can {
            continue;
        }
        // With passages bounded, and with them how often a place is given up, nobody gets stuck
        // either.
        let mut claimed = entrant.claims.properties.to_vec();
        claimed.retain(|property| {
            entrant.name != "black-white-bakery" || *property != Property::BoundedRegisters
        });
        let bounded = Options { passages: Some(2), properties: claimed, ..options };
        all_hold(
            &abandoning(entrant, size, &bounded),
            &format!("{} with few abandoned places", entrant.name),
        );
    }
}

/// What does not: a process that comes, gives up and comes again for ever can keep another at line
/// 7 for ever, and two who take turns at giving up take ever larger numbers.
#[test]
fn abandoning_for_ever_starves_and_outgrows() {
    for (name, property) in [
        ("bakery", Property::StarvationFreedom),
        ("black-white-bakery", Property::BoundedRegisters),
    ] {
        let entrant = Entrant::named(name).expect("it is in the registry");
        let verdict =
            abandoning(entrant, Size::mutex(3), &options(&[property], RegisterKind::Atomic))
                .verdicts
                .remove(0);
        assert_eq!(verdict.holds, Some(false), "{name} {property}");
        verdict.trace.expect("a violation has a trace").replay().expect("the trace replays");
    }
}

fn abandoning(entrant: &Entrant, size: Size, options: &Options) -> Report {
    let subject = entrant.build(size, None, true).expect("it fits");
    check(&*subject, options, &Progress::default()).expect("it runs")
}
