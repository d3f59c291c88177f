//! Fuzzes the checker: random small algorithms and mutants of the registry's, each checked by the
//! lab and explored by a naive reference.
//!
//! `cargo test` runs a fixed number of cases. For a long run:
//!
//! ```text
//! DOORWAY_FUZZ_CASES=1000000 cargo test --release -p doorway-lab --test fuzz -- --nocapture
//! ```
//!
//! This runs so many programs, and a tenth as many mutants of the registry's algorithms.
//! `DOORWAY_FUZZ_SEED` changes the cases. `DOORWAY_FUZZ_CASE` runs one of the programs,
//! `DOORWAY_FUZZ_REGISTRY_CASE` one of the mutants. `DOORWAY_FUZZ_WITHOUT=h1,h7` leaves out kinds
//! of programs (see [`generate::Without`]). `DOORWAY_FUZZ_ALL=1` goes on after a failure and shows
//! one case for each way to fail.
//!
//! `DOORWAY_FUZZ_SPIN` is how many programs are compared with SPIN (see `spin.rs`).

mod agree;
mod compare;
mod decide;
mod drive;
mod enabling;
mod generate;
mod interpret;
mod locks;
mod print;
mod process;
mod program;
mod reference;
mod registry;
mod shrink;
mod spin;

use std::{env, marker::PhantomData, ops::Range};

use agree::{Outcome, Verdicts};
use compare::compare;
use drive::{Kind, setting};
use generate::{Generator, Without};
use registry::Case;

/// How many programs `cargo test` runs.
const PROGRAMS: u64 = 8_000;
/// How many mutants of the registry's algorithms `cargo test` runs.
const MUTANTS: u64 = 400;

/// The cases to run: the one that the variable names, or so many.
fn cases(only: &str, usual: u64, share: u64) -> Range<u64> {
    let count = setting::<u64>("DOORWAY_FUZZ_CASES").map_or(usual, |cases| cases / share);
    setting(only).map_or(0..count, |case| case..case + 1)
}

#[test]
fn the_checker_agrees_with_the_reference() {
    let seed = setting("DOORWAY_FUZZ_SEED").unwrap_or(1);
    let without = Without::parse(&env::var("DOORWAY_FUZZ_WITHOUT").unwrap_or_default());
    let kind = Kind {
        what: "programs",
        seed,
        cases: cases("DOORWAY_FUZZ_CASE", PROGRAMS, 1),
        generate: |case| Generator::new(seed, case, without).program(),
        compare: |program: &_, verdicts: &mut _| compare(program, without, verdicts),
        shrink: |program, fails: &dyn Fn(&_) -> bool| shrink::shrink(program, fails),
        of: PhantomData,
    };
    kind.run();
}

#[test]
fn the_checker_agrees_on_mutants_of_the_registry() {
    let seed = setting("DOORWAY_FUZZ_SEED").unwrap_or(1);
    let kind = Kind {
        what: "mutants",
        seed,
        cases: cases("DOORWAY_FUZZ_REGISTRY_CASE", MUTANTS, 10),
        generate: |case| Case::random(seed, case),
        compare: |case: &Case, verdicts: &mut _| case.compare(verdicts),
        shrink: |case: Case, fails: &dyn Fn(&_) -> bool| case.shrink(fails),
        of: PhantomData,
    };
    kind.run();
}

/// What the fuzzer found after 7,221 cases: whether a wait may be given up depended on forgetting.
#[test]
fn a_wait_may_be_given_up_after_a_loop_without_an_access() {
    let program = locks::wait_after_an_empty_wait();
    let outcome = compare(&program, Without::default(), &mut Verdicts::new());
    assert!(matches!(outcome, Ok(Outcome::Same)), "{outcome:?}\n{program}");
}
