//! Every way to get the bounded timestamp system wrong that it lists, each caught by a test of its
//! name. Nothing is tuned to a seed: the tests look from seed 0 on until a run breaks a promise.

use super::{clock::System, random::judge};

/// The first of so many random runs that breaks a promise.
fn caught(name: &'static str, n: usize, steps: u64, runs: u64) -> Option<u64> {
    assert!(
        doorway_core::timestamps::MUTANTS.iter().any(|(known, _)| *known == name),
        "{name} is no mutant"
    );
    let subject = System::Bounded.subject(n, Some(name));
    (0..runs).find(|&seed| judge(&*subject, steps, seed).is_err())
}

macro_rules! caught {
    ($($test:ident: $name:literal among $n:literal in $steps:literal steps;)*) => {
        $(
            #[test]
            fn $test() {
                let run = caught($name, $n, $steps, 40_000);
                println!("{}: run {run:?}", $name);
                assert!(run.is_some(), "{} is not caught among {} processes", $name, $n);
            }
        )*

        /// No mutant without a test.
        #[test]
        fn every_mutant_has_a_test() {
            let tested = [$($name),*];
            let all: Vec<&str> = doorway_core::timestamps::MUTANTS.iter().map(|(name, _)| *name).collect();
            assert_eq!(tested[..], all[..]);
        }
    };
}

caught! {
    a_one_bit_handshake_is_caught: "one-bit-handshake" among 3 in 600 steps;
    no_announcement_is_caught: "no-announcement" among 3 in 600 steps;
    no_second_look_is_caught: "no-second-look" among 3 in 600 steps;
    a_colour_shown_before_is_caught: "colour-shown-before" among 3 in 600 steps;
    a_colour_answered_before_is_caught: "colour-answered-before" among 2 in 300 steps;
    three_colours_are_caught: "three-colours" among 4 in 1500 steps;
    answers_before_announcements_are_caught: "answers-before-announcements" among 3 in 600 steps;
    a_handshake_before_the_snapshot_is_caught: "handshake-before-snapshot" among 3 in 600 steps;
    a_plain_collect_is_caught: "plain-collect" among 3 in 600 steps;
    no_low_nodes_are_caught: "no-low-nodes" among 3 in 600 steps;
    a_low_threshold_is_caught: "low-threshold" among 4 in 1500 steps;
}

/// Among three it is right, as far as that goes: only with four is there a level at which one
/// process fewer is too few.
#[test]
fn a_low_threshold_takes_four_processes() {
    assert_eq!(caught("low-threshold", 3, 600, 2_000), None);
}
