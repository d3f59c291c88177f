//! Everything at once: threads and tasks, timeouts, cancelled futures, panics, and for the
//! semaphore heavy places and resizes. At the end every count is exact, and nobody is stuck.
//!
//!     cargo test --release --package doorway --test storm -- 100000000
//!     cargo test --release --package doorway --test storm -- 100000000 semaphore
//!
//! So many places in line are taken, of each lock or of the one named; 200 000 unless told
//! otherwise. Says how far it is, and after a minute in which nobody got anywhere that somebody is
//! stuck.

mod group;
mod semaphore;

use std::{
    env,
    fmt::Debug,
    future::Future,
    io::{IsTerminal, Write, stderr},
    panic::{self, AssertUnwindSafe, catch_unwind},
    pin::pin,
    process::{self, ExitCode},
    sync::{
        Arc, Barrier,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    task::{Context, Waker},
    thread,
    time::{Duration, Instant},
};

const THREADS: u64 = 6;
const TASKS: u64 = 6;

#[derive(Default)]
struct Tally {
    /// Places taken.
    places: AtomicU64,
    /// Those that went in, left by a timeout, a cancelled future or at once.
    inside: AtomicU64,
    late: AtomicU64,
    cancelled: AtomicU64,
    dropped: AtomicU64,
    panicked: AtomicU64,
    /// Resizes that have begun, and those that are over.
    begun: AtomicU64,
    resized: AtomicU64,
    /// Who is inside now, as each lock counts it.
    in_use: AtomicU64,
    wrong: AtomicBool,
}

/// A lock in the storm.
trait Stormy: Send + Sync + Debug + 'static {
    type Place: Future<Output = Self::Guard> + Unpin + Send;
    type Guard: Send;

    fn new() -> Self;

    /// The doorway.
    fn enters(self: &Arc<Self>, dice: u64) -> Self::Place;

    fn wait(place: Self::Place) -> Self::Guard;

    fn wait_timeout(place: Self::Place, limit: Duration) -> Result<Self::Guard, Self::Place>;

    /// What a holder does: looks whether it may be there, and perhaps more. A task must not block.
    fn holds(self: &Arc<Self>, guard: Self::Guard, tally: &Tally, dice: u64, is_task: bool);

    /// Whether it is as it was at the beginning.
    fn is_as_new(&self) -> bool;
}

/// Sometimes lets others run while it is inside: else hardly anybody would have to wait.
fn stays(dice: u64) {
    if dice >> 44 & 3 == 0 {
        thread::yield_now();
    }
}

/// Leaves, sometimes by a panic.
fn leaves<G>(guard: G, tally: &Tally, dice: u64) {
    if !matches!(dice >> 16 & 255, 1 | 2) {
        return drop(guard);
    }
    count(&tally.panicked);
    let panics = catch_unwind(AssertUnwindSafe(move || {
        let _held = guard;
        panic!("on purpose");
    }));
    drop(panics);
}

fn count(of: &AtomicU64) -> u64 {
    of.fetch_add(1, Relaxed)
}

/// A small generator; what it gives decides what happens.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }
}

fn thread_goes<L: Stormy>(seed: u64, lock: &Arc<L>, tally: &Tally, most: u64) {
    let mut random = Random(seed);
    while count(&tally.places) < most {
        let dice = random.next();
        let place = lock.enters(dice);
        let guard = match dice & 15 {
            0 => {
                count(&tally.dropped);
                continue;
            }
            1 | 2 => match L::wait_timeout(place, Duration::from_micros(dice >> 32 & 127)) {
                Ok(guard) => guard,
                // Half of them wait on, in the same place.
                Err(place) if dice >> 24 & 1 == 0 => L::wait(place),
                Err(_) => {
                    count(&tally.late);
                    continue;
                }
            },
            _ => L::wait(place),
        };
        count(&tally.inside);
        lock.holds(guard, tally, dice, false);
    }
}

async fn task_goes<L: Stormy>(seed: u64, lock: Arc<L>, tally: Arc<Tally>, most: u64) {
    let mut random = Random(seed);
    while count(&tally.places) < most {
        let dice = random.next();
        let place = lock.enters(dice);
        if dice & 15 < 3 {
            // Polled once and dropped, as by a `select!` that went another way.
            let mut place = pin!(place);
            let polled = place.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            if polled.is_pending() {
                count(&tally.cancelled);
            } else {
                count(&tally.inside);
            }
            continue;
        }
        let guard = place.await;
        count(&tally.inside);
        lock.holds(guard, &tally, dice, true);
        if dice >> 40 & 7 == 0 {
            tokio::task::yield_now().await;
        }
    }
}

fn main() -> ExitCode {
    let usage = |what: String| {
        eprintln!("storm: {what}; try 1000000, or 1000000 semaphore, or 1000000 group");
        ExitCode::from(2)
    };
    let arguments: Vec<_> =
        env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let number = match arguments.first().map(|number| (number, number.parse())) {
        None => 200_000,
        Some((_, Ok(number))) => number,
        Some((number, Err(_))) => return usage(format!("{number} is no number of places")),
    };
    let which = arguments.get(1).map(String::as_str);
    if arguments.len() > 2 || which.is_some_and(|which| !["semaphore", "group"].contains(&which)) {
        return usage(format!("{} is no lock in the storm", arguments[1..].join(" ")));
    }
    panic::set_hook(Box::new(|_| ())); // they are on purpose, and many
    let asked = |name| which.is_none_or(|which| which == name);
    let semaphore = !asked("semaphore") || storm::<semaphore::Slots>(number);
    let group = !asked("group") || storm::<group::Sessions>(number);
    if semaphore && group { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether all went well.
fn storm<L: Stormy>(most: u64) -> bool {
    let (lock, tally) = (Arc::new(L::new()), Arc::new(Tally::default()));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    let start = Arc::new(Barrier::new(THREADS as usize));
    let threads: Vec<_> = (0..THREADS)
        .map(|i| {
            let (lock, tally, start) = (Arc::clone(&lock), Arc::clone(&tally), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                thread_goes(i + 1, &lock, &tally, most);
            })
        })
        .collect();
    let tasks: Vec<_> = (0..TASKS)
        .map(|i| runtime.spawn(task_goes(i + 101, Arc::clone(&lock), Arc::clone(&tally), most)))
        .collect();
    let (mut seen, mut since) = (0, Instant::now());
    while threads.iter().any(|thread| !thread.is_finished())
        || tasks.iter().any(|task| !task.is_finished())
    {
        thread::sleep(Duration::from_millis(20));
        let places = tally.places.load(Relaxed);
        if stderr().is_terminal() {
            eprint!("\r{places} of {most} ");
            let _ = stderr().flush();
        }
        if places != seen {
            (seen, since) = (places, Instant::now());
        } else if since.elapsed() > Duration::from_secs(60) {
            println!("storm: nobody got anywhere for a minute: {lock:?}");
            process::exit(1); // those who are stuck would keep the runtime from ending
        }
    }
    let sum: u64 = [&tally.inside, &tally.late, &tally.cancelled, &tally.dropped]
        .iter()
        .map(|n| n.load(SeqCst))
        .sum();
    let taken = tally.places.load(SeqCst) - THREADS - TASKS; // each looks once more and goes
    println!(
        "storm: {taken} places: {} went in, {} late, {} cancelled, {} dropped; {} panics, {} resizes; {lock:?}",
        tally.inside.load(SeqCst),
        tally.late.load(SeqCst),
        tally.cancelled.load(SeqCst),
        tally.dropped.load(SeqCst),
        tally.panicked.load(SeqCst),
        tally.resized.load(SeqCst),
    );
    let well = sum == taken && lock.is_as_new() && !tally.wrong.load(SeqCst);
    if well {
        println!("ok: nothing lost, nobody stuck, never too many inside");
    } else {
        println!("WRONG: {sum} of {taken} counted, too many inside: {}", tally.wrong.load(SeqCst));
    }
    well
}
