//! The engine of the semaphore where newcomers may barge.

use doorway_core::{
    Algorithm, Fate, Property, Setting, engines::semaphore::barging::BargingTicket,
};
use doorway_lab::{Options, Progress, Report, build, check};

fn explore(
    setting: Setting,
    mutant: Option<&'static str>,
    abandons: bool,
    properties: &[Property],
) -> Report {
    let subject = if abandons {
        build::<BargingTicket<true>, _, _, _>(setting.size, mutant, true)
    } else {
        build::<BargingTicket, _, _, _>(setting.size, mutant, false)
    };
    let options = Options {
        passages: setting.passages,
        endless: setting.endless,
        properties: properties.to_vec(),
        max_states: 12_000_000,
        workers: 2,
        ..Options::default()
    };
    check(&*subject.expect("it fits"), &options, &Progress::default()).expect("it runs")
}

fn all_hold(setting: Setting, abandons: bool) {
    let report = explore(setting, None, abandons, <BargingTicket>::CLAIMS.properties);
    assert!(report.complete, "{setting:?}: incomplete");
    for verdict in &report.verdicts {
        assert_eq!(verdict.holds, Some(true), "{} ({})", verdict.property, verdict.scope);
    }
}

/// Nobody starves though others overtake: any number of passages.
#[test]
fn every_claim_holds() {
    all_hold(Setting::slots(2, 1).passages(1).endless(0), false);
    all_hold(Setting::slots(3, 1).passages(1).endless(0), false);
    all_hold(Setting::slots(3, 2).passages(1), false);
}

#[test]
fn no_slot_is_lost_to_a_place_that_is_given_up() {
    all_hold(Setting::slots(2, 1).passages(3), true);
    all_hold(Setting::slots(3, 1).passages(1), true);
    all_hold(Setting::slots(3, 2).passages(1), true);
}

/// What it gives up.
#[test]
fn newcomers_overtake() {
    let verdict = explore(Setting::slots(2, 1).passages(2), None, false, &[Property::OrderedEntry])
        .verdicts
        .remove(0);
    assert_eq!(verdict.holds, Some(false), "{}", verdict.scope);
}

#[test]
fn every_mutant_is_caught() {
    for mutant in <BargingTicket>::CLAIMS.mutants {
        let Fate::Breaks { property, setting } = mutant.fate else {
            panic!("{} is not to be caught", mutant.name)
        };
        let abandons = setting.endless.is_none();
        let verdict = explore(setting, Some(mutant.name), abandons, &[property]).verdicts.remove(0);
        assert_eq!(verdict.holds, Some(false), "{}: {}", mutant.name, verdict.scope);
    }
}
