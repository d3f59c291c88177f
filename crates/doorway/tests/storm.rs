//! Everything at once: threads and tasks, timeouts, cancelled futures, panics, heavy places and resizes. At the end every count is
//! exact, and nobody is stuck.
//!
//!     cargo test --release --package doorway --test storm -- 100000000
//!
//! So many places in line are taken; 200 000 unless told otherwise. Says how far it is, and after a minute in which nobody got
//! anywhere that somebody is stuck.

use std::{
    env,
    future::Future,
    io::{IsTerminal, Write, stderr},
    panic::{self, AssertUnwindSafe, catch_unwind},
    pin::pin,
    process::{self, ExitCode},
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    task::{Context, Waker},
    thread,
    time::{Duration, Instant},
};

use doorway::{
    Semaphore,
    semaphore::{OwnedPermit, OwnedPlace},
};

const THREADS: u64 = 6;
const TASKS: u64 = 6;
const SLOTS: usize = 2;

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
    /// Slots in use now.
    in_use: AtomicU64,
    wrong: AtomicBool,
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

fn enters(semaphore: &Arc<Semaphore>, dice: u64) -> OwnedPlace {
    Arc::clone(semaphore).enter_owned(1 + usize::from(dice >> 8 & 3 == 0))
}

/// What a holder does: looks whether it may be there, sometimes asks for its number, resizes or panics. A task does not
/// resize: it would have to block for that, and keep those tasks from running that it waits for.
fn holds(permit: OwnedPermit, semaphore: &Semaphore, tally: &Tally, dice: u64, is_task: bool) {
    count(&tally.inside);
    let weight = permit.weight() as u64;
    // How many slots there are is known if nobody resizes all the while.
    let (resized, begun) = (tally.resized.load(SeqCst), tally.begun.load(SeqCst));
    let now = tally.in_use.fetch_add(weight, SeqCst) + weight;
    let wrong = now > SLOTS as u64 || dice >> 12 & 7 == 0 && permit.slot() >= SLOTS;
    if wrong && begun == resized && tally.begun.load(SeqCst) == begun {
        tally.wrong.store(true, SeqCst);
    }
    tally.in_use.fetch_sub(weight, SeqCst);
    match dice >> 16 & 255 {
        // A slot more, and then the next one that is free taken out for good.
        0 if !is_task => {
            tally.begun.fetch_add(1, SeqCst);
            semaphore.add_slots(1);
            drop(permit);
            semaphore.acquire().forget();
            tally.resized.fetch_add(1, SeqCst);
        }
        1 | 2 => {
            count(&tally.panicked);
            let panics = catch_unwind(AssertUnwindSafe(move || {
                let _held = permit;
                panic!("on purpose");
            }));
            drop(panics);
        }
        _ => drop(permit),
    }
}

fn thread_goes(seed: u64, semaphore: &Arc<Semaphore>, tally: &Tally, most: u64) {
    let mut random = Random(seed);
    while count(&tally.places) < most {
        let dice = random.next();
        let place = enters(semaphore, dice);
        let permit = match dice & 15 {
            0 => {
                count(&tally.dropped);
                continue;
            }
            1 | 2 => match place.wait_timeout(Duration::from_micros(dice >> 32 & 127)) {
                Ok(permit) => permit,
                // Half of them wait on, in the same place.
                Err(place) if dice >> 24 & 1 == 0 => place.wait(),
                Err(_) => {
                    count(&tally.late);
                    continue;
                }
            },
            _ => place.wait(),
        };
        holds(permit, semaphore, tally, dice, false);
    }
}

async fn task_goes(seed: u64, semaphore: Arc<Semaphore>, tally: Arc<Tally>, most: u64) {
    let mut random = Random(seed);
    while count(&tally.places) < most {
        let dice = random.next();
        let place = enters(&semaphore, dice);
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
        let permit = place.await;
        holds(permit, &semaphore, &tally, dice, true);
        if dice >> 40 & 7 == 0 {
            tokio::task::yield_now().await;
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let most = match &arguments[..] {
        [] => 200_000,
        [number] => match number.parse() {
            Ok(number) => number,
            Err(_) => {
                eprintln!("storm: {number} is no number of places; try 1000000");
                return ExitCode::from(2);
            }
        },
        _ => {
            eprintln!("storm: one number of places, please; try 1000000");
            return ExitCode::from(2);
        }
    };
    panic::set_hook(Box::new(|_| ())); // they are on purpose, and many
    let (semaphore, tally) = (Arc::new(Semaphore::new(SLOTS)), Arc::new(Tally::default()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    let tasks: Vec<_> = (0..TASKS)
        .map(|i| runtime.spawn(task_goes(i + 101, Arc::clone(&semaphore), Arc::clone(&tally), most)))
        .collect();
    let threads: Vec<_> = (0..THREADS)
        .map(|i| {
            let (semaphore, tally) = (Arc::clone(&semaphore), Arc::clone(&tally));
            thread::spawn(move || thread_goes(i + 1, &semaphore, &tally, most))
        })
        .collect();
    let (mut seen, mut since) = (0, Instant::now());
    while threads.iter().any(|thread| !thread.is_finished()) || tasks.iter().any(|task| !task.is_finished()) {
        thread::sleep(Duration::from_millis(20));
        let places = tally.places.load(Relaxed);
        if stderr().is_terminal() {
            eprint!("\r{places} of {most} ");
            let _ = stderr().flush();
        }
        if places != seen {
            (seen, since) = (places, Instant::now());
        } else if since.elapsed() > Duration::from_secs(60) {
            println!("storm: nobody got anywhere for a minute: {semaphore:?}");
            process::exit(1); // those who are stuck would keep the runtime from ending
        }
    }
    let sum: u64 = [&tally.inside, &tally.late, &tally.cancelled, &tally.dropped].iter().map(|n| n.load(SeqCst)).sum();
    let taken = tally.places.load(SeqCst) - THREADS - TASKS; // each looks once more and goes
    println!(
        "storm: {taken} places: {} went in, {} late, {} cancelled, {} dropped; {} panics, {} resizes; {semaphore:?}",
        tally.inside.load(SeqCst),
        tally.late.load(SeqCst),
        tally.cancelled.load(SeqCst),
        tally.dropped.load(SeqCst),
        tally.panicked.load(SeqCst),
        tally.resized.load(SeqCst),
    );
    let exact = (semaphore.slots(), semaphore.available(), semaphore.waiters()) == (SLOTS, SLOTS, 0);
    if sum == taken && exact && !tally.wrong.load(SeqCst) {
        println!("ok: nothing lost, nobody stuck, never too many inside");
        ExitCode::SUCCESS
    } else {
        println!("WRONG: {sum} of {taken} counted, too many inside: {}", tally.wrong.load(SeqCst));
        ExitCode::FAILURE
    }
}
