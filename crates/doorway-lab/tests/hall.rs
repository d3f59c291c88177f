//! The engine of the group lock that ships: sessions in one word, a line of sleepers, and places
//! that are given up.

use doorway_core::{Algorithm, Fate, Property, Setting, engines::group_lock::ParkedSessions};
use doorway_lab::{Progress, Report, build, check};

#[path = "common/options.rs"]
mod options;

use options::options;

fn explore<const BATCHING: u32, const ALONE: bool>(
    setting: Setting,
    mutant: Option<&'static str>,
    abandons: bool,
    properties: &[Property],
) -> Report {
    let subject = build::<ParkedSessions<BATCHING, ALONE>, _, _, _>(setting.size, mutant, abandons)
        .expect("it fits");
    let options = options(setting, properties, 12_000_000);
    let report = check(&*subject, &options, &Progress::default()).expect("it runs");
    println!("{setting:?} {mutant:?} {} states", report.states);
    report
}

fn all_hold<const BATCHING: u32, const ALONE: bool>(
    setting: Setting,
    abandons: bool,
    properties: &[Property],
) {
    let report = explore::<BATCHING, ALONE>(setting, None, abandons, properties);
    assert!(report.complete, "{setting:?}: incomplete");
    for verdict in &report.verdicts {
        assert_eq!(verdict.holds, Some(true), "{} ({})", verdict.property, verdict.scope);
    }
}

const CLAIMED: &[Property] = ParkedSessions::<0, false>::CLAIMS.properties;

/// What is left of the claims with batching: all but the order.
const UNORDERED: &[Property] = &[
    Property::SessionExclusion,
    Property::ConcurrentOccupancy,
    Property::StarvationFreedom,
    Property::DeadlockFreedom,
];

#[test]
fn every_claim_holds() {
    all_hold::<0, false>(Setting::group(1, 2), false, CLAIMED);
    all_hold::<0, false>(Setting::group(2, 2), false, CLAIMED);
    all_hold::<0, false>(Setting::group(3, 2), false, CLAIMED);
}

/// Who has a session of its own is alone, though the checker believes that all ask for the same.
#[test]
fn a_session_of_ones_own_is_a_mutex() {
    let claims =
        [Property::MutualExclusion, Property::StarvationFreedom, Property::DeadlockFreedom];
    all_hold::<0, true>(Setting::group(2, 1), false, &claims);
    all_hold::<0, true>(Setting::group(3, 1), false, &claims);
}

/// With batching nobody starves, but who came first may be passed.
#[test]
fn batching_gives_up_the_order_and_nothing_else() {
    all_hold::<1, false>(Setting::group(2, 2), false, UNORDERED);
    all_hold::<1, false>(Setting::group(3, 2), false, UNORDERED);
    let verdict = explore::<1, false>(Setting::group(3, 2), None, false, &[Property::OrderedEntry])
        .verdicts
        .remove(0);
    assert_eq!(verdict.holds, Some(false), "{}", verdict.scope);
}

/// Whenever a place is given up: nobody stays counted who is not there, and nobody sleeps on.
#[test]
fn nothing_is_lost_to_a_place_that_is_given_up() {
    all_hold::<0, false>(Setting::group(2, 2).passages(3), true, CLAIMED);
    all_hold::<0, false>(Setting::group(3, 2).passages(1), true, CLAIMED);
    all_hold::<1, false>(Setting::group(3, 2).passages(1), true, UNORDERED);
}

/// The exit waits for whoever has the line.
#[test]
fn what_is_not_promised_is_shown() {
    for &(property, setting) in ParkedSessions::<0, false>::CLAIMS.refuted {
        let verdict = explore::<0, false>(setting, None, false, &[property]).verdicts.remove(0);
        assert_eq!(verdict.holds, Some(false), "{property}: {}", verdict.scope);
    }
}

#[test]
fn every_mutant_is_caught() {
    for mutant in ParkedSessions::<0, false>::CLAIMS.mutants {
        let Fate::Breaks { property, setting } = mutant.fate else {
            panic!("{} is not to be caught", mutant.name)
        };
        let abandons = setting.passages.is_some();
        let verdict = explore::<0, false>(setting, Some(mutant.name), abandons, &[property])
            .verdicts
            .remove(0);
        assert_eq!(verdict.holds, Some(false), "{}: {}", mutant.name, verdict.scope);
        // It is the mutation that does it.
        let verdict = explore::<0, false>(setting, None, abandons, &[property]).verdicts.remove(0);
        assert_eq!(verdict.holds, Some(true), "{}: {}", mutant.name, verdict.scope);
    }
}
