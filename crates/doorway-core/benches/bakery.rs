//! What the generic source costs: this crate's Bakery on the native memory against a hand-written
//! Bakery.
//!
//! A passage without contention takes some tens of nanoseconds. At that scale two things matter
//! that are not the code:
//!
//! - The machine: clock speed, neighbours. So both locks run in rounds of ABBA, and the verdict is
//!   on the median over the rounds of generic time / hand-written time.
//! - Where the linker puts a loop: that alone changes its time by a fifth. So each lock is compiled
//!   several times, at different places, and each round runs all of these copies.
//!
//! The bench exits with 1 when an uncontended ratio is above the limit. The contended rows are
//! shown and not judged: they measure the scheduler as much as the code.

use std::{
    hint::black_box,
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use doorway_core::{
    Size,
    algorithms::mutex::Bakery,
    native::{Backoff, Instance},
};

/// How much slower than the hand-written lock the generic one may be without contention.
const LIMIT: f64 = 1.10;

/// A copy of a lock's code.
type Passage<L> = fn(&L, usize);

/// A lock that is measured.
trait Lock: Sync + Sized {
    /// Runs one passage of process `p`. Copies differ in what happens inside; otherwise they would
    /// be merged into one.
    fn passage<const COPY: usize>(&self, p: usize);

    /// All copies.
    const COPIES: [Passage<Self>; 4] =
        [Self::passage::<0>, Self::passage::<1>, Self::passage::<2>, Self::passage::<3>];
}

impl Lock for Instance<Bakery> {
    #[inline(never)]
    fn passage<const COPY: usize>(&self, p: usize) {
        let mut m = self.view(Backoff, 0);
        let Ok(((), _)) = self.passage(&mut m, p, (), (), || black_box(COPY));
    }
}

/// The Bakery, written by hand for a program that needs just this lock.
struct HandWritten {
    processes: Vec<Process>,
}

/// The registers of one process, alone in a pair of cache lines.
#[repr(align(128))]
struct Process {
    choosing: AtomicU64,
    ticket: AtomicU64,
}

impl HandWritten {
    fn new(n: usize) -> Self {
        let new = || Process { choosing: AtomicU64::new(0), ticket: AtomicU64::new(0) };
        Self { processes: (0..n).map(|_| new()).collect() }
    }

    /// Returns all processes but `p`, with their ids.
    #[inline]
    fn others(&self, p: usize) -> impl Iterator<Item = (usize, &Process)> {
        self.processes.iter().enumerate().filter(move |&(i, _)| i != p)
    }

    /// Always inlined; otherwise the copies would share it.
    #[inline(always)]
    fn lock(&self, p: usize) {
        let me = &self.processes[p];
        me.choosing.store(1, SeqCst);
        let max = self.others(p).map(|(_, other)| other.ticket.load(SeqCst)).max().unwrap_or(0);
        let mine = max + 1;
        me.ticket.store(mine, SeqCst);
        me.choosing.store(0, SeqCst);
        for (i, other) in self.others(p) {
            wait(|| other.choosing.load(SeqCst) == 0);
            wait(|| {
                let ticket = other.ticket.load(SeqCst);
                ticket == 0 || (ticket, i) >= (mine, p)
            });
        }
    }

    #[inline(always)]
    fn unlock(&self, p: usize) {
        self.processes[p].ticket.store(0, SeqCst);
    }
}

/// Waits as [`Backoff`] does.
#[inline]
fn wait(ready: impl Fn() -> bool) {
    let mut round = 0;
    while !ready() {
        if round < 5 {
            for _ in 0..1 << round {
                std::hint::spin_loop();
            }
        } else {
            thread::yield_now();
        }
        round += 1;
    }
}

impl Lock for HandWritten {
    #[inline(never)]
    fn passage<const COPY: usize>(&self, p: usize) {
        self.lock(p);
        black_box(COPY);
        self.unlock(p);
    }
}

/// How long a measurement is.
struct Plan {
    rounds: u32,
    /// Rounds before the first round that counts.
    warm_up: u32,
    passages: u32,
}

/// Nanoseconds per passage when these processes compete, over all copies of the lock's code.
fn measure<L: Lock>(lock: &L, processes: &[usize], passages: u32) -> f64 {
    let (&first, rest) = processes.split_first().expect("somebody competes");
    let total: Duration = L::COPIES
        .into_iter()
        .map(|passage| {
            let ready = &AtomicU64::new(0);
            let run = move |p| {
                // Spins and does not block: a thread that has to be woken starts after the other
                // thread's passages.
                ready.fetch_add(1, SeqCst);
                wait(|| ready.load(SeqCst) == processes.len() as u64);
                let begin = Instant::now();
                for _ in 0..passages {
                    passage(lock, p);
                }
                begin.elapsed()
            };
            thread::scope(|scope| {
                let rest: Vec<_> = rest.iter().map(|&p| scope.spawn(move || run(p))).collect();
                let mine = run(first);
                rest.into_iter()
                    .map(|thread| thread.join().expect("passages do not panic"))
                    .fold(mine, Duration::max)
            })
        })
        .sum();
    total.as_nanos() as f64 / f64::from(passages) / (L::COPIES.len() * processes.len()) as f64
}

/// One row of the table: the medians of generic time, hand-written time and their ratio.
fn compare(n: usize, processes: &[usize], plan: &Plan) -> (f64, f64, f64) {
    let generic = Instance::<Bakery>::new(Size::mutex(n)).expect("the Bakery serves every size");
    let by_hand = HandWritten::new(n);
    let a = || measure(&generic, black_box(processes), plan.passages);
    let b = || measure(&by_hand, black_box(processes), plan.passages);
    let round = || {
        let (a1, b1, b2, a2) = (a(), b(), b(), a());
        ((a1 + a2) / 2.0, (b1 + b2) / 2.0)
    };
    for _ in 0..plan.warm_up {
        round();
    }
    let rounds: Vec<(f64, f64)> = (0..plan.rounds).map(|_| round()).collect();
    let of = |f: fn(&(f64, f64)) -> f64| median(rounds.iter().map(f).collect());
    (of(|r| r.0), of(|r| r.1), of(|r| r.0 / r.1))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> ExitCode {
    // `cargo test --all-targets` runs this too, unoptimised. Then it only shows that everything
    // works.
    let bench = std::env::args().any(|arg| arg == "--bench");
    let (alone, together) = if bench {
        (
            Plan { rounds: 101, warm_up: 10, passages: 1_000 },
            Plan { rounds: 31, warm_up: 2, passages: 10_000 },
        )
    } else {
        (
            Plan { rounds: 1, warm_up: 0, passages: 100 },
            Plan { rounds: 1, warm_up: 0, passages: 100 },
        )
    };

    println!(
        "{:>4} {:>8} {:>12} {:>16} {:>7}",
        "N", "threads", "generic ns", "hand-written ns", "ratio"
    );
    let mut worst = 0.0_f64;
    for n in [2, 8, 32] {
        for processes in [&[n / 2][..], &[0, n - 1]] {
            let plan = if processes.len() == 1 { &alone } else { &together };
            let (generic, by_hand, ratio) = compare(n, processes, plan);
            println!("{n:>4} {:>8} {generic:>12.1} {by_hand:>16.1} {ratio:>7.3}", processes.len());
            if processes.len() == 1 {
                worst = worst.max(ratio);
            }
        }
    }

    if !bench {
        println!("not judged: run by `cargo bench` for that");
        return ExitCode::SUCCESS;
    }
    if worst <= LIMIT {
        println!("ok: every uncontended ratio is at most {LIMIT:.2} (worst {worst:.3})");
        ExitCode::SUCCESS
    } else {
        println!("TOO SLOW: an uncontended ratio is {worst:.3}, above {LIMIT:.2}");
        ExitCode::FAILURE
    }
}
