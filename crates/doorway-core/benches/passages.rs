//! What a passage costs natively: every algorithm of the registry side by side, with and without contention.
//!
//! The machine changes its mind about how fast it is, so no lock is measured from beginning to end: in each round every
//! lock has its turn, and what is shown is the median over the rounds, of the time and of its ratio to the Bakery's in the
//! same round. Nothing is judged here. Contended rows measure the scheduler as much as the code.

use std::{
    hint::black_box,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use doorway_core::{
    Algorithm, Exclusion, Problem, Size, Unfit, for_each_algorithm,
    mutex::Bakery,
    native::{Backoff, Instance, Native},
};

/// How long a measurement is.
struct Plan {
    rounds: usize,
    /// Rounds before the first one that counts.
    warm_up: usize,
    /// How long each lock has its turn, about: some are a thousand times as dear as others.
    turn: Duration,
}

/// How long these processes take for so many passages each, through a lock of this size.
type Run = fn(Size, &[usize], u32) -> Duration;

/// A lock that is measured.
struct Contender {
    name: String,
    size: Size,
    run: Result<Run, Unfit>,
}

/// Only what fits is run, so building it here does not fail.
fn run<A>(size: Size, processes: &[usize], passages: u32) -> Duration
where
    A: for<'a> Exclusion<Native<'a, Backoff>, Request = ()> + Sync,
{
    // A new one each time: what a process keeps from passage to passage would have to be kept from round to round.
    let lock = &Instance::<A>::new(size).expect("it has been built before");
    let ready = &AtomicUsize::new(0);
    thread::scope(|scope| {
        let others: Vec<_> = processes[1..]
            .iter()
            .map(|&p| scope.spawn(move || process(lock, p, passages, ready, processes.len())))
            .collect();
        let mine = process(lock, processes[0], passages, ready, processes.len());
        others.into_iter().map(|other| other.join().expect("passages do not panic")).fold(mine, Duration::max)
    })
}

fn process<'a, A>(lock: &'a Instance<A>, p: usize, passages: u32, ready: &AtomicUsize, all: usize) -> Duration
where
    A: Exclusion<Native<'a, Backoff>, Request = ()>,
{
    let mut m = lock.view(Backoff, p as u64);
    let mut keep = lock.algorithm().keep(p);
    let mut begin = Instant::now();
    // The first tenth brings the registers into the caches.
    for i in 0..passages + passages / 10 {
        if i == passages / 10 {
            ready.fetch_add(1, SeqCst);
            // Yielding, not blocking: a thread that has to be woken comes when the other has had its passages.
            while ready.load(SeqCst) < all {
                thread::yield_now();
            }
            begin = Instant::now();
        }
        let Ok((kept, _)) = lock.passage(&mut m, p, (), keep, || black_box(p));
        keep = kept;
    }
    begin.elapsed()
}

/// The algorithm with each number of slots that is measured.
fn contenders<A>(n: usize) -> Vec<Contender>
where
    A: for<'a> Exclusion<Native<'a, Backoff>, Request = ()> + Sync,
{
    let mut slots = vec![1];
    if A::CLAIMS.problem == Problem::KExclusion && n / 2 > 1 {
        slots.push(n / 2);
    }
    let contender = |k| {
        let size = Size::slots(n, k);
        let run = Instance::<A>::new(size).map(|_| run::<A> as Run);
        let variant = A::VARIANT.map_or(String::new(), |variant| format!(" ({variant})"));
        Contender { name: format!("{}{variant}", A::NAME), size, run }
    };
    slots.into_iter().map(contender).collect()
}

macro_rules! all_contenders {
    ($($algorithm:ty),* $(,)?) => { [$(contenders::<$algorithm> as fn(usize) -> Vec<Contender>),*] };
}

/// How many passages of each process take about this long.
fn passages(contender: &Contender, processes: &[usize], turn: Duration) -> u32 {
    const FEW: u32 = 20;
    let Ok(run) = &contender.run else { return FEW };
    let few = run(contender.size, processes, FEW).max(Duration::from_nanos(1));
    let wanted = turn.as_secs_f64() / few.as_secs_f64() * f64::from(FEW);
    wanted.clamp(f64::from(FEW), 100_000.0) as u32
}

/// Nanoseconds per passage of every contender, round by round.
fn measure(all: &[Contender], processes: &[usize], plan: &Plan) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::new(); all.len()];
    let passages: Vec<u32> = all.iter().map(|contender| passages(contender, processes, plan.turn)).collect();
    for round in 0..plan.warm_up + plan.rounds {
        for ((contender, times), &passages) in all.iter().zip(&mut times).zip(&passages) {
            let Ok(run) = &contender.run else { continue };
            let time = run(contender.size, black_box(processes), passages);
            if round >= plan.warm_up {
                times.push(time.as_nanos() as f64 / f64::from(passages) / processes.len() as f64);
            }
        }
    }
    times
}

/// The reason without what it is about, which stands before it.
fn short(unfit: &Unfit) -> String {
    let text = unfit.to_string();
    text.split_once(": ").map_or(text.as_str(), |(_, why)| why).into()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    // `cargo test --all-targets` runs this too, unoptimised: then it only shows that everything works.
    let bench = std::env::args().any(|arg| arg == "--bench");
    let (alone, together) = if bench {
        let millis = Duration::from_millis;
        (Plan { rounds: 51, warm_up: 3, turn: millis(1) }, Plan { rounds: 21, warm_up: 1, turn: millis(10) })
    } else {
        let briefly = || Plan { rounds: 1, warm_up: 0, turn: Duration::ZERO };
        (briefly(), briefly())
    };
    println!("{:>4} {:>8}  {:<26} {:>3} {:>12} {:>10}", "N", "threads", "algorithm", "k", "ns/passage", "to bakery");
    for n in [2, 8, 32] {
        let all: Vec<Contender> = for_each_algorithm!(all_contenders).iter().flat_map(|of| of(n)).collect();
        let bakery = all.iter().position(|c| c.name == Bakery::NAME).expect("the Bakery is in the registry");
        for (processes, plan) in [(&[n / 2][..], &alone), (&[0, n - 1], &together)] {
            let times = measure(&all, processes, plan);
            for (contender, mine) in all.iter().zip(&times) {
                let Contender { name, size, run } = contender;
                print!("{n:>4} {:>8}  {name:<26} {:>3} ", processes.len(), size.k);
                match run {
                    Ok(_) => {
                        let ratio = median(mine.iter().zip(&times[bakery]).map(|(mine, its)| mine / its).collect());
                        println!("{:>12.1} {ratio:>10.2}", median(mine.clone()));
                    }
                    Err(unfit) => println!("{:>12}  {}", "–", short(unfit)),
                }
            }
        }
    }
    if !bench {
        println!("not measured: run by `cargo bench` for that");
    }
}
