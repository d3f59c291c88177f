//! Waiters of a mutex that one process holds for long.

use std::{
    sync::atomic::Ordering::SeqCst,
    thread::{park, sleep},
    time::{Duration, Instant},
};

use crate::{
    cpu,
    options::Bench,
    peers::median,
    processes::{Children, Start, Words, now, until},
    table::{Table, at_most, largest},
};

/// How long waiters wait before their processor time is measured.
const SETTLE: Duration = Duration::from_secs(1);

/// How long their processor time is measured.
const MEASURED: Duration = Duration::from_secs(5);

const HOLDING: usize = 0;
const IN_LINE: usize = 1;
const LAST: usize = 2;

/// The targets, at 1000 waiters.
const PERCENT: f64 = 2.0;
const ENTER_MS: f64 = 2000.0;
const STATUS_MS: f64 = 50.0;

struct Run {
    /// From the release of all processes, which open the lock then, until the last one has its
    /// place, in milliseconds.
    enter: f64,
    /// The processor time of all waiters in percent of one core.
    percent: f64,
    /// How long `status` takes, in milliseconds.
    status: f64,
}

pub(crate) fn run(bench: &Bench) {
    let table = Table::new(
        format!(
            "idle: one process holds a mutex, the others wait; {} runs, {MEASURED:?} each",
            bench.runs
        ),
        &[("waiters", 0), ("figure", 40), ("median", 11), ("worst", 11), ("target (worst)", 0)],
    );
    for waiters in [10, 100, 1000] {
        let runs: Vec<Run> = (0..bench.runs).map(|run| measure(bench, run, waiters)).collect();
        let row = |figure: &str, unit: &str, target: f64, of: fn(&Run) -> f64| {
            let seen: Vec<f64> = runs.iter().map(of).collect();
            let (half, worst) = (median(seen.clone()), largest(&seen));
            let target =
                if waiters == 1000 { at_most(target, unit, &[worst]) } else { String::new() };
            table.row([
                waiters.to_string(),
                figure.into(),
                format!("{half:.2}{unit}"),
                format!("{worst:.2}{unit}"),
                target,
            ]);
        };
        row("processor time of all, of one core", " %", PERCENT, |run| run.percent);
        row("until all have opened it and are in line", " ms", ENTER_MS, |run| run.enter);
        row("status()", " ms", STATUS_MS, |run| run.status);
    }
}

fn measure(bench: &Bench, run: usize, waiters: usize) -> Run {
    let name = format!("idle-{waiters}-{run}");
    let open = || bench.locks.mutex(&name).expect("the lock opens");
    let (lock, words, start) = (open(), Words::new(3), Start::new());
    let mut holder = Children::default();
    holder.fork(|| {
        let _permit = lock.acquire().expect("it is granted");
        words[HOLDING].store(1, SeqCst);
        loop {
            park();
        }
    });
    until("the holder is inside", || words[HOLDING].load(SeqCst) == 1);
    let mut line = Children::default();
    for _ in 0..waiters {
        line.fork(|| {
            start.arrive();
            let lock = open();
            let place = lock.enter().expect("there is room");
            words[LAST].fetch_max(now(), SeqCst);
            words[IN_LINE].fetch_add(1, SeqCst);
            place.wait().map(drop).expect("it is granted");
        });
    }
    let released = start.release(waiters);
    until("all waiters are in line", || words[IN_LINE].load(SeqCst) == waiters as u64);
    let enter = (words[LAST].load(SeqCst) - released) as f64 / 1e6;
    sleep(SETTLE);
    let (_, percent) = cpu::observe(&line.pids, MEASURED);
    let began = Instant::now();
    let status = lock.status();
    let took = began.elapsed().as_secs_f64() * 1e3;
    assert_eq!((status.holders.len(), status.waiting.len()), (1, waiters), "holders and waiters");
    Run { enter, percent, status: took }
}
