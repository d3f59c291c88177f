//! The engine of the semaphore that ships: tickets in one word, sleepers, and places that are given
//! up.

use doorway_core::{Algorithm, Fate, Property, Setting, engines::semaphore::ParkedTicket};
use doorway_lab::{Progress, Report, build, check};

#[path = "common/options.rs"]
mod options;

use options::options;

fn explore(
    setting: Setting,
    mutant: Option<&'static str>,
    abandons: bool,
    properties: &[Property],
) -> Report {
    let subject = build::<ParkedTicket, _, _, _>(setting.size, mutant, abandons).expect("it fits");
    let options = options(setting, properties, 100_000_000);
    let report = check(&*subject, &options, &Progress::default()).expect("it runs");
    println!("{setting:?} {mutant:?} {} states", report.states);
    report
}

fn all_hold(setting: Setting, abandons: bool) {
    let report = explore(setting, None, abandons, ParkedTicket::CLAIMS.properties);
    assert!(report.complete, "{setting:?}: incomplete");
    for verdict in &report.verdicts {
        assert_eq!(verdict.holds, Some(true), "{} ({})", verdict.property, verdict.scope);
    }
}

/// With one slot for ever, the numbers wrapping around; with more for as many passages as can be
/// seen.
#[test]
fn every_claim_holds() {
    all_hold(Setting::slots(1, 1), false);
    all_hold(Setting::slots(2, 1), false);
    all_hold(Setting::slots(3, 1).passages(3), false);
    all_hold(Setting::slots(3, 2).passages(3), false);
}

/// Any number of passages; takes minutes, and gigabytes. With two slots the numbers come round
/// while a ticket is still valid, so there passages stay bounded.
#[test]
#[ignore = "cargo test --release -p doorway-lab --test line -- --ignored --nocapture"]
fn every_claim_holds_among_three_for_ever() {
    all_hold(Setting::slots(3, 1), false);
    all_hold(Setting::slots(3, 2).passages(4), false);
}

/// What it does not promise: with two slots, a sleeper is woken before another whose ticket was
/// valid first.
#[test]
fn sleepers_are_not_enabled_in_order() {
    let verdict = explore(Setting::slots(4, 2).passages(1), None, false, &[Property::FifoEnabling])
        .verdicts
        .remove(0);
    assert_eq!(verdict.holds, Some(false), "{}", verdict.scope);
}

/// Whenever a place is given up: no slot is lost, nor is one given twice, and nobody sleeps on.
#[test]
fn no_slot_is_lost_to_a_place_that_is_given_up() {
    all_hold(Setting::slots(2, 1).passages(3), true);
    all_hold(Setting::slots(3, 1).passages(2), true);
    all_hold(Setting::slots(3, 2).passages(2), true);
}

#[test]
fn every_mutant_is_caught() {
    for mutant in ParkedTicket::CLAIMS.mutants {
        let Fate::Breaks { property, setting } = mutant.fate else {
            panic!("{} is not to be caught", mutant.name)
        };
        let abandons = setting.passages.is_some();
        let verdict = explore(setting, Some(mutant.name), abandons, &[property]).verdicts.remove(0);
        assert_eq!(verdict.holds, Some(false), "{}: {}", mutant.name, verdict.scope);
        // It is the mutation that does it.
        let verdict = explore(setting, None, abandons, &[property]).verdicts.remove(0);
        assert_eq!(verdict.holds, Some(true), "{}: {}", mutant.name, verdict.scope);
    }
}
