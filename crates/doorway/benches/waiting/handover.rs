//! Hand-overs per second among processes all of which wait all the time.

use std::{
    sync::atomic::Ordering::Relaxed,
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{
    cpu,
    options::Bench,
    peers::{Shared, median, spin},
    processes::{Children, Start, Words, until},
    ring::Ring,
    table::{Table, at_most, largest, smallest},
};

pub(crate) const SIZES: [usize; 3] = [20, 200, 1000];

/// The target: the best rate over the worst, of all sizes.
const RATIO: f64 = 1.5;

const INSIDE: Duration = Duration::from_nanos(300);
const PATIENCE: Duration = Duration::from_secs(5);
const WARM_UP: Duration = Duration::from_millis(300);
const MEASURED: Duration = Duration::from_secs(1);

/// Hand-overs per second, and the processor time of all processes in percent of one core.
pub(crate) type Rate = (f64, f64);

pub(crate) fn run(bench: &Bench) {
    let what =
        format!("handover: one mutex, {INSIDE:?} inside; {} rounds of {MEASURED:?}", bench.runs);
    let mutex = |name: &str| bench.locks.mutex(name).expect("the lock opens");
    show(what, &rounds(bench, |name, processes| measure(processes, || Box::new(mutex(name)))));
    let what =
        format!("handover: a bare ring of processes, {INSIDE:?} inside; what the machine allows");
    show(
        what,
        &rounds(bench, |_, processes| {
            let ring = Ring::new(processes);
            measure(processes, || Box::new(&ring))
        }),
    );
}

/// Measures all sizes in each round. Reports each figure on standard error, as rounds may be long.
pub(crate) fn rounds(bench: &Bench, measure: impl Fn(&str, usize) -> Rate) -> Vec<Vec<Rate>> {
    let one = |round: usize, size: usize| {
        let (rate, percent) = measure(&format!("handover-{size}-{round}"), size);
        eprintln!(
            "handover: round {round}, {size} processes: {rate:.0}/s, {percent:.0} % of one core"
        );
        (rate, percent)
    };
    (0..bench.runs).map(|round| SIZES.iter().map(|&size| one(round, size)).collect()).collect()
}

/// Prints a table of the rates, and one of the ratio of the best to the worst rate in each round.
pub(crate) fn show(what: String, rounds: &[Vec<Rate>]) {
    let columns = [
        ("processes", 0),
        ("per second: median", 0),
        ("worst", 8),
        ("of one core: median", 0),
        ("worst", 8),
        ("µs each: median", 0),
    ];
    let table = Table::new(what, &columns);
    for (i, size) in SIZES.iter().enumerate() {
        let (rates, percents): (Vec<f64>, Vec<f64>) = rounds.iter().map(|round| round[i]).unzip();
        let each = rounds.iter().map(|round| round[i].1 / 100.0 / round[i].0 * 1e6).collect();
        table.row([
            size.to_string(),
            format!("{:.0}", median(rates.clone())),
            format!("{:.0}", smallest(&rates)),
            format!("{:.1} %", median(percents.clone())),
            format!("{:.1} %", largest(&percents)),
            format!("{:.1}", median(each)),
        ]);
    }
    let ratio = |round: &Vec<Rate>| {
        let rates: Vec<f64> = round.iter().map(|(rate, _)| *rate).collect();
        largest(&rates) / smallest(&rates)
    };
    let ratios: Vec<f64> = rounds.iter().map(ratio).collect();
    let (half, worst) = (median(ratios.clone()), largest(&ratios));
    let table = Table::new(
        "best rate over worst rate of one round",
        &[("median", 0), ("worst", 6), ("target (median)", 0)],
    );
    table.row([format!("{half:.2}"), format!("{worst:.2}"), at_most(RATIO, "", &[half])]);
}

/// Lets processes take turns. Each opens the lock itself.
fn measure<'a>(processes: usize, open: impl Fn() -> Box<dyn Shared + 'a>) -> Rate {
    let (counts, start) = (Words::new(processes), Start::new());
    let mut children = Children::default();
    for i in 0..processes {
        children.fork(|| {
            let lock = open();
            start.arrive();
            loop {
                lock.passage(&mut || spin(INSIDE));
                counts[i].fetch_add(1, Relaxed);
            }
        });
    }
    start.release(processes);
    // All processes wait as soon as each has been inside. A slow lock does not get that far.
    let began = Instant::now();
    until("all processes have been inside", || {
        began.elapsed() > PATIENCE || (0..processes).all(|i| counts[i].load(Relaxed) > 0)
    });
    sleep(WARM_UP);
    let count = || (0..processes).map(|i| counts[i].load(Relaxed)).sum::<u64>();
    let before = count();
    let (seconds, percent) = cpu::observe(&children.pids, MEASURED);
    ((count() - before) as f64 / seconds, percent)
}
