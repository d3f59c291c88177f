//! Every claim of every algorithm is checked, every refuted property is shown to fail, and every mutant is caught: all from
//! the registry, so that an algorithm gets this with its one line there.

use doorway_core::{Fate, Problem, Property, RegisterKind, Size};
use doorway_lab::{
    Entrant, Options, Progress, Region, Report, check,
    machine::Machine,
    monitor::Monitor,
    schedule::{Scheduler, Script, View},
};

fn options(properties: &[Property], registers: RegisterKind) -> Options {
    Options {
        passages: None,
        registers,
        crashes: 0,
        properties: properties.to_vec(),
        max_states: 12_000_000,
        workers: 2,
        relabel: None,
    }
}

fn run(entrant: &Entrant, size: Size, mutant: Option<&'static str>, options: &Options) -> Report {
    let subject = entrant.build(size, mutant, false).unwrap_or_else(|unfit| panic!("{}: {unfit}", entrant.name));
    check(&*subject, options, &Progress::default()).unwrap_or_else(|fault| panic!("{}: {fault}", entrant.name))
}

fn all_hold(report: &Report, what: &str) {
    assert!(report.complete, "{what}: incomplete");
    for verdict in &report.verdicts {
        assert_eq!(verdict.holds, Some(true), "{what}: {} ({})", verdict.property, verdict.scope);
    }
}

/// The sizes at which claims are checked here: as large as a test can afford.
fn sizes(entrant: &Entrant) -> Vec<Size> {
    if entrant.claims.problem == Problem::KExclusion {
        let mut sizes = vec![Size::slots(1, 1), Size::slots(2, 1), Size::slots(3, 2)];
        // Among three, a passage of the bounded timestamps each is more than twenty million states.
        sizes.retain(|size| size.n < 3 || entrant.variant != Some("bounded"));
        return sizes;
    }
    let most = if entrant.name == "burns-lamport" { 4 } else { 3 };
    (entrant.claims.min_n..=most).map(Size::mutex).collect()
}

/// How far: without end where a test can afford that.
fn passages(entrant: &Entrant, n: usize) -> Option<u32> {
    match (entrant.name, entrant.variant) {
        ("timestamp-bakery", _) if n > 2 => Some(1),
        ("timestamp-bakery", Some("bounded")) => Some(2),
        _ => None,
    }
}

/// The options for an algorithm among `n` processes.
fn affordable(entrant: &Entrant, n: usize, properties: &[Property], registers: RegisterKind) -> Options {
    Options { passages: passages(entrant, n), ..options(properties, registers) }
}

/// With as many crashes as are claimed to be tolerated.
#[test]
fn every_claim_holds() {
    for entrant in Entrant::all() {
        for size in sizes(entrant) {
            let crashes = (entrant.claims.crashes)(size);
            let atomic = affordable(entrant, size.n, entrant.claims.properties, RegisterKind::Atomic);
            let report = run(entrant, size, None, &Options { crashes, ..atomic });
            all_hold(&report, &format!("{} {size:?}", entrant.name));
        }
    }
}

#[test]
fn every_claim_holds_on_the_weakest_registers_claimed() {
    for entrant in Entrant::all().iter().filter(|entrant| entrant.claims.registers != RegisterKind::Atomic) {
        for registers in [RegisterKind::Regular, RegisterKind::Safe] {
            let report = run(entrant, Size::mutex(2), None, &options(entrant.claims.properties, registers));
            all_hold(&report, &format!("{} on {registers} registers", entrant.name));
        }
    }
}

#[test]
fn every_refuted_property_fails() {
    for entrant in Entrant::all() {
        for &(property, size) in entrant.claims.refuted {
            let report = run(entrant, size, None, &options(&[property], RegisterKind::Atomic));
            assert_eq!(report.verdicts[0].holds, Some(false), "{} does not have {property}", entrant.name);
        }
    }
}

/// With one slot, k-exclusion is mutual exclusion and k-FCFS is FCFS, and FIFE follows from FCFS: the general properties say
/// the same as the special ones, of the algorithms and of what breaks them.
#[test]
fn general_properties_agree_with_special_ones() {
    let verdict = |name: &str, mutant, property| {
        let entrant = Entrant::named(name).expect("it is in the registry");
        run(entrant, Size::mutex(2), mutant, &options(&[property], RegisterKind::Atomic)).verdicts.remove(0)
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
        assert_eq!(special.holds, general.holds, "{name} {mutant:?}: {} and {}", special.property, general.property);
        assert!(special.holds.is_some());
    }
}

/// The tolerance claimed is exact: with one crash more than claimed, somebody starves.
#[test]
fn one_crash_too_many_starves_somebody() {
    for entrant in Entrant::all() {
        let size = sizes(entrant).into_iter().find(|size| size.n >= 2).expect("there is one");
        let crashes = (entrant.claims.crashes)(size) + 1;
        let atomic = affordable(entrant, size.n, &[Property::StarvationFreedom], RegisterKind::Atomic);
        let options = Options { crashes, ..atomic };
        let verdict = run(entrant, size, None, &options).verdicts.remove(0);
        assert_eq!(verdict.holds, Some(false), "{} with {crashes} crashes", entrant.name);
        let trace = verdict.trace.expect("a violation has a trace");
        assert!(trace.crashed.len() <= crashes);
        trace.replay().unwrap_or_else(|error| panic!("{}: {error}", entrant.name));
    }
}

/// Of several under one name, the first stands for all: a mutant changes what they have in common.
#[test]
fn every_mutant_is_caught_or_harmless() {
    let first = |entrant: &&Entrant| Entrant::named(entrant.name).is_some_and(|first| first.variant == entrant.variant);
    for entrant in Entrant::all().iter().filter(first) {
        for mutant in entrant.claims.mutants {
            let what = format!("{} {}", entrant.name, mutant.name);
            match mutant.fate {
                Fate::Breaks { property, size, registers } => {
                    let options = |registers| affordable(entrant, size.n, &[property], registers);
                    let report = run(entrant, size, Some(mutant.name), &options(registers));
                    let verdict = &report.verdicts[0];
                    assert_eq!(verdict.holds, Some(false), "{what} is not caught: {property} {}", verdict.scope);
                    let trace = verdict.trace.as_ref().expect("a violation has a trace");
                    trace.replay().unwrap_or_else(|error| panic!("{what}: {error}"));
                    if registers != RegisterKind::Atomic {
                        let report = run(entrant, size, Some(mutant.name), &options(RegisterKind::Atomic));
                        assert_eq!(report.verdicts[0].holds, Some(true), "{what} needs no {registers} registers");
                    }
                }
                Fate::Scripted { property, size, script } => {
                    assert_eq!(property, Property::Fife, "{what}: say here how a script shows it");
                    let enters = |mutant| enters_alone_after(entrant, size, mutant, script);
                    assert!(!enters(Some(mutant.name)), "{what} is not caught");
                    assert!(enters(None), "{what}: nothing is left to catch");
                }
                Fate::Harmless => {
                    for size in sizes(entrant).into_iter().filter(|size| size.n < 3 || passages(entrant, 3).is_none()) {
                        let options = affordable(entrant, size.n, entrant.claims.properties, RegisterKind::Atomic);
                        let report = run(entrant, size, Some(mutant.name), &options);
                        all_hold(&report, &what);
                    }
                }
            }
        }
    }
}

/// Follows a script to the end, at which somebody enters who came after another; whether that other one now enters by steps of
/// its own.
fn enters_alone_after(entrant: &Entrant, size: Size, mutant: Option<&'static str>, script: &str) -> bool {
    let subject = entrant.build(size, mutant, false).expect("it fits");
    let mut machine = Machine::new(&*subject, RegisterKind::Atomic, true).expect("it runs");
    let mut monitor = Monitor::new(size.n, size.k, None);
    let mut script = Script::parse(script, size.n).expect("it is a script");
    let (able, mut last, mut overtaken) = ((0..size.n).collect::<Vec<_>>(), None, Vec::new());
    let regions = |machine: &Machine<'_>| (0..size.n).map(|p| machine.region(p)).collect::<Vec<_>>();
    let step = |machine: &mut Machine<'_>, p: usize| {
        let choice = machine.moves(p)[0].choice;
        machine.step(p, choice, None).expect("it runs")
    };
    while let Some(p) = script
        .next(&View { able: &able, last: last.as_ref(), regions: &regions(&machine) })
        .expect("it can be followed")
    {
        overtaken = monitor.overtaken(p).collect();
        let event = step(&mut machine, p);
        assert_eq!(monitor.observe(&event, None), [], "{} {mutant:?}", entrant.name);
        last = Some(event);
    }
    assert_eq!(last.map(|event| event.to), Some(Region::Critical), "{} {mutant:?}: nobody entered last", entrant.name);
    let [victim] = overtaken[..] else { panic!("{} {mutant:?}: {overtaken:?} were overtaken", entrant.name) };
    // Its waits have finitely many states and nobody else moves: who is not in by now goes round.
    (0..10_000).any(|_| step(&mut machine, victim).to == Region::Critical)
}

/// Runs without end, with tickets relabelled, and runs of three passages, with tickets as they are, agree on the Bakery and
/// every mutant of it. Only starvation by being overtaken without end takes a run without end to show.
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
                Property::StarvationFreedom if bounded == Some(true) => assert!(without_end.is_some()),
                _ => assert_eq!(without_end, bounded, "{mutant:?} {property}"),
            }
            let steps = |report: &Report| report.verdicts[0].trace.as_ref().map(|trace| trace.steps.len());
            // A shortest run to a bad state is as long in one as in the other; loops may be found at other places.
            if matches!(property, Property::MutualExclusion | Property::Fcfs) {
                assert_eq!(steps(&relabelled), steps(&plain), "{mutant:?} {property}");
            }
        }
    }
}

/// What still holds when places are given up at any wait, as often as one likes, where the algorithm knows how.
#[test]
fn abandoning_keeps_exclusion_and_order() {
    let kept =
        [Property::MutualExclusion, Property::KExclusion, Property::Fcfs, Property::KFcfs, Property::BoundedExit];
    for entrant in Entrant::all() {
        let properties: Vec<_> = entrant.claims.properties.iter().copied().filter(|p| kept.contains(p)).collect();
        // The Black-White Bakery's numbers are plain ones, and without a bound they go on for ever (see below).
        let passages = if entrant.name == "black-white-bakery" { Some(3) } else { passages(entrant, 2) };
        let options = Options { passages, ..options(&properties, RegisterKind::Atomic) };
        let report = abandoning(entrant, 2, &options);
        all_hold(&report, &format!("{} with abandoned places", entrant.name));
        let without = run(entrant, Size::mutex(2), None, &options);
        let can = entrant.claims.abandons;
        assert_eq!(report.transitions > without.transitions, can, "{} abandons", entrant.name);
        // With passages bounded, and with them how often a place is given up, nobody gets stuck either.
        let mut claimed = entrant.claims.properties.to_vec();
        claimed.retain(|property| entrant.name != "black-white-bakery" || *property != Property::BoundedRegisters);
        let bounded = Options { passages: Some(2), properties: claimed, ..options };
        all_hold(&abandoning(entrant, 2, &bounded), &format!("{} with few abandoned places", entrant.name));
    }
}

/// What does not: a process that comes, gives up and comes again for ever can keep another at line 7 for ever, and two who
/// take turns at giving up take ever larger numbers.
#[test]
fn abandoning_for_ever_starves_and_outgrows() {
    for (name, property) in
        [("bakery", Property::StarvationFreedom), ("black-white-bakery", Property::BoundedRegisters)]
    {
        let entrant = Entrant::named(name).expect("it is in the registry");
        let verdict = abandoning(entrant, 3, &options(&[property], RegisterKind::Atomic)).verdicts.remove(0);
        assert_eq!(verdict.holds, Some(false), "{name} {property}");
        verdict.trace.expect("a violation has a trace").replay().expect("the trace replays");
    }
}

fn abandoning(entrant: &Entrant, n: usize, options: &Options) -> Report {
    let subject = entrant.build(Size::mutex(n), None, true).expect("it fits");
    check(&*subject, options, &Progress::default()).expect("it runs")
}
