//! Runs many cases on two threads, counts what comes of them, and shrinks what fails.

use std::{
    cell::Cell,
    collections::BTreeMap,
    env,
    fmt::Display,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    str::FromStr,
    sync::{
        Mutex, Once,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Instant,
};

use crate::agree::{Failure, Outcome, Verdicts};

/// The value of an environment variable.
pub(crate) fn setting<T: FromStr>(name: &str) -> Option<T> {
    env::var(name).ok().and_then(|value| value.parse().ok())
}

/// What the cases of one kind are, and what is to be done with one.
pub(crate) struct Kind<C, G, F, S> {
    /// What they are, in one word.
    pub(crate) what: &'static str,
    pub(crate) seed: u64,
    /// The numbers of the cases to run.
    pub(crate) cases: Range<u64>,
    /// Makes the case of this number.
    pub(crate) generate: G,
    /// Compares checker and reference.
    pub(crate) compare: F,
    /// Makes a failing case smaller, as long as the function says that it fails in the same way.
    pub(crate) shrink: S,
    pub(crate) of: std::marker::PhantomData<C>,
}

/// What has been found out so far.
struct Tally<C> {
    outcomes: BTreeMap<Outcome, u64>,
    verdicts: Verdicts,
    /// For each way to fail, how often, and the earliest case.
    failures: BTreeMap<String, (u64, u64, C)>,
}

impl<C: Clone> Tally<C> {
    fn new() -> Self {
        Self { outcomes: BTreeMap::new(), verdicts: Verdicts::new(), failures: BTreeMap::new() }
    }

    fn add(&mut self, other: Self) {
        other
            .outcomes
            .into_iter()
            .for_each(|(outcome, count)| *self.outcomes.entry(outcome).or_default() += count);
        for (key, counts) in other.verdicts {
            let sum = self.verdicts.entry(key).or_default();
            (0..3).for_each(|i| sum[i] += counts[i]);
        }
        for (class, (count, number, case)) in other.failures {
            let known = self.failures.entry(class).or_insert((0, u64::MAX, case.clone()));
            known.0 += count;
            if number < known.1 {
                (known.1, known.2) = (number, case);
            }
        }
    }
}

impl<C, G, F, S> Kind<C, G, F, S>
where
    C: Clone + Display + Send,
    G: Fn(u64) -> C + Sync,
    F: Fn(&C, &mut Verdicts) -> Result<Outcome, Failure> + Sync,
    S: Fn(C, &dyn Fn(&C) -> bool) -> C,
{
    /// Runs the cases, and shows one case for each way to fail.
    ///
    /// # Panics
    /// When a case fails.
    pub(crate) fn run(self) {
        let Self { what, seed, cases, generate, compare, shrink, .. } = self;
        let all = setting::<u64>("DOORWAY_FUZZ_ALL").is_some();
        let next = AtomicU64::new(cases.start);
        let stop = AtomicBool::new(false);
        let tally = Mutex::new(Tally::new());
        let started = Instant::now();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut mine = Tally::new();
                    while !stop.load(Relaxed) {
                        let number = next.fetch_add(1, Relaxed);
                        if number >= cases.end {
                            break;
                        }
                        if number.is_multiple_of(50_000) && number > 0 {
                            println!("{number} {what}, {:.0} s", started.elapsed().as_secs_f64());
                        }
                        let case = generate(number);
                        match compare(&case, &mut mine.verdicts) {
                            Ok(outcome) => *mine.outcomes.entry(outcome).or_default() += 1,
                            Err(Failure { class, .. }) => {
                                mine.failures.entry(class).or_insert((0, number, case)).0 += 1;
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
        let mut report = String::new();
        for ((property, scope), [holds, violated, undecided]) in &tally.verdicts {
            report += &format!(
                "{what}: {property:23} {scope:10} {holds:8} hold {violated:8} violated {undecided:8} not decided\n"
            );
        }
        let total: u64 = tally.outcomes.values().sum();
        println!(
            "{report}{total} {what} in {seconds:.1} s, {:.0} per second: {:?}",
            total as f64 / seconds,
            tally.outcomes
        );
        let mut shown = String::new();
        for (class, (count, number, case)) in tally.failures {
            let again = |case: &C| compare(case, &mut Verdicts::new()).err();
            let case =
                shrink(case, &|case| again(case).is_some_and(|failure| failure.class == class));
            let details = again(&case).map_or(String::new(), |failure| failure.details);
            shown += &format!(
                "\nseed {seed}, case {number}, {count} {what} like it: {class}: {details}\n{case}"
            );
        }
        assert!(shown.is_empty(), "{shown}");
    }
}

thread_local! {
    /// Panics of this thread are expected, and not to be reported.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs what may panic, without a report; the words of the panic if it does.
pub(crate) fn quietly<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |info| {
            if !QUIET.get() {
                report(info);
            }
        }));
    });
    QUIET.set(true);
    let done = catch_unwind(AssertUnwindSafe(run));
    QUIET.set(false);
    done.map_err(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        words
            .or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).into()))
            .unwrap_or_default()
    })
}
