//! Fuzzes the checker: random small algorithms, each checked by the lab and explored by a naive reference.
//!
//! `cargo test` runs a fixed number of cases. For a long run:
//!
//! ```text
//! DOORWAY_FUZZ_CASES=1000000 cargo test --release -p doorway-lab --test fuzz -- --nocapture
//! ```
//!
//! `DOORWAY_FUZZ_SEED` changes the cases, `DOORWAY_FUZZ_CASE` runs one of them, and `DOORWAY_FUZZ_WITHOUT=h1,h7` leaves
//! out kinds of programs (see [`generate::Without`]). `DOORWAY_FUZZ_ALL=1` goes on after a failure and shows one program for
//! each way to fail. `DOORWAY_FUZZ_SPIN` is how many programs are compared with SPIN (see `spin.rs`).

mod compare;
mod decide;
mod generate;
mod interpret;
mod locks;
mod print;
mod process;
mod program;
mod reference;
mod shrink;
mod spin;

use std::{
    collections::BTreeMap,
    env, panic,
    str::FromStr,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Instant,
};

use compare::{Failure, Outcome, Verdicts, compare};
use generate::{Generator, Without};
use program::Program;

/// How many cases `cargo test` runs.
const CASES: u64 = 8_000;

fn setting<T: FromStr>(name: &str) -> Option<T> {
    env::var(name).ok().and_then(|value| value.parse().ok())
}

/// What has been found out so far.
#[derive(Default)]
struct Tally {
    outcomes: BTreeMap<Outcome, u64>,
    verdicts: Verdicts,
    /// For each way to fail, how often, and the earliest case with its program.
    failures: BTreeMap<String, (u64, u64, Program)>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        other.outcomes.into_iter().for_each(|(outcome, count)| *self.outcomes.entry(outcome).or_default() += count);
        for (key, counts) in other.verdicts {
            let sum = self.verdicts.entry(key).or_default();
            (0..3).for_each(|i| sum[i] += counts[i]);
        }
        for (class, (count, case, program)) in other.failures {
            let known = self.failures.entry(class).or_insert((0, u64::MAX, program.clone()));
            known.0 += count;
            if case < known.1 {
                (known.1, known.2) = (case, program);
            }
        }
    }
}

#[test]
fn the_checker_agrees_with_the_reference() {
    let seed = setting("DOORWAY_FUZZ_SEED").unwrap_or(1);
    let without = Without::parse(&env::var("DOORWAY_FUZZ_WITHOUT").unwrap_or_default());
    let all = setting::<u64>("DOORWAY_FUZZ_ALL").is_some();
    let only: Option<u64> = setting("DOORWAY_FUZZ_CASE");
    let cases = only.map_or(0..setting("DOORWAY_FUZZ_CASES").unwrap_or(CASES), |case| case..case + 1);
    let next = AtomicU64::new(cases.start);
    let stop = AtomicBool::new(false);
    let tally = Mutex::new(Tally::default());
    let started = Instant::now();
    let usual = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut mine = Tally::default();
                while !stop.load(Relaxed) {
                    let case = next.fetch_add(1, Relaxed);
                    if case >= cases.end {
                        break;
                    }
                    if case.is_multiple_of(50_000) && case > 0 {
                        println!("{case} cases, {:.0} s", started.elapsed().as_secs_f64());
                    }
                    let program = Generator::new(seed, case, without).program();
                    match compare(&program, without, &mut mine.verdicts) {
                        Ok(outcome) => *mine.outcomes.entry(outcome).or_default() += 1,
                        Err(Failure { class, .. }) => {
                            mine.failures.entry(class).or_insert((0, case, program)).0 += 1;
                            stop.store(!all, Relaxed);
                        }
                    }
                }
                tally.lock().expect("no thread panics").add(mine);
            });
        }
    });
    let tally = tally.into_inner().expect("no thread panics");
    let seconds = started.elapsed().as_secs_f64();
    for ((property, scope), [holds, violated, undecided]) in &tally.verdicts {
        println!("{property:20} {scope:10} {holds:8} hold {violated:8} violated {undecided:8} not decided");
    }
    let total: u64 = tally.outcomes.values().sum();
    println!("{total} cases in {seconds:.1} s, {:.0} per second: {:?}", total as f64 / seconds, tally.outcomes);
    let mut shown = String::new();
    for (class, (count, case, program)) in tally.failures {
        let again = |program: &Program| compare(program, without, &mut Verdicts::new()).err();
        let program = shrink::shrink(program, |program| again(program).is_some_and(|failure| failure.class == class));
        let details = again(&program).map_or(String::new(), |failure| failure.details);
        shown += &format!("\nseed {seed}, case {case}, {count} cases like it: {class}: {details}\n{program}");
    }
    panic::set_hook(usual);
    assert!(shown.is_empty(), "{shown}");
}

/// What the fuzzer found after 7,221 cases: whether a wait may be given up depended on forgetting.
#[test]
fn a_wait_may_be_given_up_after_a_loop_without_an_access() {
    let program = locks::wait_after_an_empty_wait();
    let outcome = compare(&program, Without::default(), &mut Verdicts::new());
    assert!(matches!(outcome, Ok(Outcome::Same)), "{outcome:?}\n{program}");
}
