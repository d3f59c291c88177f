//! What a passage costs natively: every algorithm of the registry side by side, with and without
//! contention.
//!
//! The machine's speed varies over time, so no lock is measured in one piece: in each round every
//! lock has its turn. The table shows the median over the rounds, of the time and of its ratio to
//! the Bakery's time in the same round. Nothing is judged here. Contended rows measure the
//! scheduler as much as the code. The last table compares the lock of Giakkoupis and Woelfel 2014
//! and MCS with the standard library's mutex, with all threads at once.

use std::{
    hint::black_box,
    sync::{
        Mutex,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    thread,
    time::{Duration, Instant},
};

use doorway_core::{
    Algorithm, Exclusion, Problem, Request, Size, Unfit,
    algorithms::mutex::{Bakery, Mcs, Randomized},
    for_each_algorithm,
    native::{Backoff, Instance, Native},
};

/// How long a measurement is.
struct Plan {
    rounds: usize,
    /// Rounds before the first round that counts.
    warm_up: usize,
    /// How long a lock's turn is. A time and not a number of passages, because some passages cost a
    /// thousand times as much as others.
    turn: Duration,
}

/// Nanoseconds per passage when these processes use a lock of this size for this long.
type Run = fn(Size, &[usize], Duration) -> f64;

/// A lock that is measured.
struct Contender {
    name: String,
    size: Size,
    run: Result<Run, Unfit>,
}

/// Passages between two looks at the clock; a look takes as long as a few passages.
const CHUNK: u64 = 64;

/// Measures a lock that fits: only such locks are run, so building it here does not fail.
fn run<A>(size: Size, processes: &[usize], turn: Duration) -> f64
where
    A: for<'a> Exclusion<Native<'a, Backoff>> + Sync,
{
    // A new lock each time. Otherwise what a process keeps from passage to passage would have to be
    // kept from round to round.
    let lock = &Instance::<A>::new(size).expect("it has been built before");
    race(processes, turn, |p| {
        let mut m = lock.view(Backoff, p as u64);
        let mut keep = Some(lock.algorithm().keep(p));
        // Each process has a session of its own if there are as many sessions.
        let requests = A::Request::all(size);
        let request = requests[p % requests.len()].clone();
        move || {
            let mut kept = keep.take().expect("it is put back");
            for _ in 0..CHUNK {
                let Ok((next, _)) = lock.passage(&mut m, p, request.clone(), kept, || black_box(p));
                kept = next;
            }
            keep = Some(kept);
        }
    })
}

/// Measures the standard library's mutex in the same way.
fn run_std(_: Size, processes: &[usize], turn: Duration) -> f64 {
    let lock = &Mutex::new(());
    race(processes, turn, |p| {
        move || {
            for _ in 0..CHUNK {
                let _inside = lock.lock().expect("nobody panics inside");
                black_box(p);
            }
        }
    })
}

/// Returns nanoseconds per passage when these processes make chunks of passages for this long.
fn race<C: FnMut()>(
    processes: &[usize],
    turn: Duration,
    chunks: impl Fn(usize) -> C + Sync,
) -> f64 {
    let (ready, stop, chunks) = (&AtomicUsize::new(0), &AtomicBool::new(false), &chunks);
    thread::scope(|scope| {
        let (&first, rest) = processes.split_first().expect("somebody competes");
        let start = move || {
            ready.fetch_add(1, SeqCst);
            // Yields and does not block: a thread that has to be woken starts after the other
            // thread's passages.
            while ready.load(SeqCst) < processes.len() {
                thread::yield_now();
            }
            Instant::now()
        };
        let other = |&p| scope.spawn(move || process(chunks(p), start, |_| stop.load(Relaxed)));
        let others: Vec<_> = rest.iter().map(other).collect();
        let mine = process(chunks(first), start, |begin| begin.elapsed() >= turn);
        stop.store(true, Relaxed);
        let theirs = others.into_iter().map(|other| other.join().expect("passages do not panic"));
        // From the first thread's begin to the last thread's end: each thread may have been kept
        // from running meanwhile.
        let all = theirs.fold(mine, |a, b| (a.0 + b.0, a.1.min(b.1), a.2.max(b.2)));
        (all.2 - all.1).as_nanos() as f64 / all.0 as f64
    })
}

/// Makes passages until the time is over; returns how many, and when they began and ended.
fn process(
    mut chunk: impl FnMut(),
    start: impl Fn() -> Instant,
    over: impl Fn(Instant) -> bool,
) -> (u64, Instant, Instant) {
    chunk(); // brings the registers into the caches
    let begin = start();
    let mut passages = 0;
    loop {
        chunk();
        passages += CHUNK;
        if over(begin) {
            return (passages, begin, Instant::now());
        }
    }
}

/// Returns the algorithm with each number of slots or sessions that is measured.
fn contenders<A>(n: usize) -> Vec<Contender>
where
    A: for<'a> Exclusion<Native<'a, Backoff>> + Sync,
{
    let sizes = match A::CLAIMS.problem {
        Problem::KExclusion if n / 2 > 1 => vec![Size::slots(n, 1), Size::slots(n, n / 2)],
        Problem::Mutex | Problem::KExclusion => vec![Size::mutex(n)],
        Problem::Group => vec![Size::group(n, 1), Size::group(n, n)],
    };
    let contender = |size| {
        let run = Instance::<A>::new(size).map(|_| run::<A> as Run);
        let variant = A::VARIANT.map_or(String::new(), |variant| format!(" ({variant})"));
        Contender { name: format!("{}{variant}", A::NAME), size, run }
    };
    sizes.into_iter().map(contender).collect()
}

macro_rules! all_contenders {
    ($($algorithm:ty),* $(,)?) => { [$(contenders::<$algorithm> as fn(usize) -> Vec<Contender>),*] };
}

/// Returns the locks that are measured with as many threads as they serve. The standard library's
/// mutex is the last.
fn crowd(n: usize) -> Vec<Contender> {
    let mut all = contenders::<Randomized>(n);
    all.extend(contenders::<Mcs>(n));
    all.push(Contender { name: "std::sync::Mutex".into(), size: Size::mutex(n), run: Ok(run_std) });
    all
}

/// Returns nanoseconds per passage of every contender, round by round.
fn measure(all: &[Contender], processes: &[usize], plan: &Plan) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::new(); all.len()];
    for round in 0..plan.warm_up + plan.rounds {
        for (contender, times) in all.iter().zip(&mut times) {
            let Ok(run) = &contender.run else { continue };
            let time = run(contender.size, black_box(processes), plan.turn);
            if round >= plan.warm_up {
                times.push(time);
            }
        }
    }
    times
}

/// Returns the reason without the lock's name and size, which stand before it.
fn short(unfit: &Unfit) -> String {
    let text = unfit.to_string();
    text.split_once(": ").map_or(text.as_str(), |(_, why)| why).into()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the median over the rounds of the ratio of two locks' times in the same round.
fn ratio(mine: &[f64], its: &[f64]) -> f64 {
    median(mine.iter().zip(its).map(|(mine, its)| mine / its).collect())
}

fn main() {
    // `cargo test --all-targets` runs this too, unoptimised. Then it only shows that everything
    // works.
    let bench = std::env::args().any(|arg| arg == "--bench");
    let (alone, together) = if bench {
        let millis = Duration::from_millis;
        (
            Plan { rounds: 51, warm_up: 3, turn: millis(1) },
            Plan { rounds: 21, warm_up: 1, turn: millis(10) },
        )
    } else {
        let briefly = || Plan { rounds: 1, warm_up: 0, turn: Duration::ZERO };
        (briefly(), briefly())
    };
    println!(
        "{:>8}  {:<32} {:<18} {:>12} {:>10}",
        "threads", "algorithm", "size", "ns/passage", "to bakery"
    );
    for n in [2, 8, 32] {
        let all: Vec<Contender> =
            for_each_algorithm!(all_contenders).iter().flat_map(|of| of(n)).collect();
        let bakery =
            all.iter().position(|c| c.name == Bakery::NAME).expect("the Bakery is in the registry");
        for (processes, plan) in [(&[n / 2][..], &alone), (&[0, n - 1], &together)] {
            let times = measure(&all, processes, plan);
            for (contender, mine) in all.iter().zip(&times) {
                let Contender { name, size, run } = contender;
                print!("{:>8}  {name:<32} {:<18} ", processes.len(), size.to_string());
                match run {
                    Ok(_) => {
                        println!(
                            "{:>12.1} {:>10.2}",
                            median(mine.clone()),
                            ratio(mine, &times[bakery])
                        );
                    }
                    Err(unfit) => println!("{:>12}  {}", "–", short(unfit)),
                }
            }
        }
    }
    println!("\n{:>8}  {:<32} {:>10} {:>12}", "threads", "all at once", "to std", "ns/passage");
    for n in [2, 8, 32] {
        let all = crowd(n);
        let times = measure(&all, &(0..n).collect::<Vec<_>>(), &together);
        let std = times.last().expect("it is there");
        for (contender, mine) in all.iter().zip(&times) {
            println!(
                "{n:>8}  {:<32} {:>10.2} {:>12.1}",
                contender.name,
                ratio(mine, std),
                median(mine.clone())
            );
        }
    }
    if !bench {
        println!("not measured: run by `cargo bench` for that");
    }
}
