//! Every algorithm of the registry on real threads for a long time: never more than k inside nor
//! two sessions, all slots used at once and sessions shared, nobody left waiting. `scripts/stress`
//! runs it with the number of seconds that each algorithm gets; with the other tests it runs
//! briefly, to show that it works.

mod common;

use std::{
    fmt,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU8, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    thread,
    time::{Duration, Instant},
};

use common::{Room, requests, sizes};
use doorway_core::{
    Algorithm, Exclusion, Request, Size, Unfit, for_each_algorithm,
    native::{Backoff, Instance, Native},
};

const SIZES: [usize; 3] = [2, 8, 32];
/// If nobody at all has got anywhere for this long, nobody ever will.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often somebody inside lets the others run before it gives up on the slots that are free.
const LINGER: u32 = 1000;

/// How long to go on.
#[derive(Clone, Copy)]
enum Until {
    /// For this long; then all slots must have been used at once, or a session shared.
    Time(Duration),
    /// For so many passages altogether.
    Passages(u64),
}

/// What came of one run.
struct Row {
    name: String,
    size: Size,
    passages: u64,
    most: u64,
    time: Duration,
    complaint: Option<String>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, size, passages, most, time, complaint } = self;
        let size = size.to_string();
        write!(f, "{name:<32} {size:<18} {passages:>12} {most:>5} {:>8.1}", time.as_secs_f64())?;
        complaint.as_ref().map_or(Ok(()), |complaint| write!(f, "  FAILED: {complaint}"))
    }
}

/// Where a process is, for the watchdog.
#[derive(Default)]
#[repr(align(128))]
struct Process {
    place: AtomicU8,
    passages: AtomicU64,
}

const PLACES: [&str; 5] =
    ["in its remainder", "in its doorway", "waiting", "inside", "in its exit section"];
const DONE: u8 = PLACES.len() as u8;

/// What the threads of a run share. They may outlive the run, if they are stuck.
struct Shared<A> {
    lock: Instance<A>,
    size: Size,
    room: Room,
    processes: Vec<Process>,
    stop: AtomicBool,
}

/// Process `p` until it is told to stop.
fn process<A>(shared: &Shared<A>, p: usize)
where
    A: for<'a> Exclusion<Native<'a, Backoff>>,
{
    passages(&shared.lock, shared.size, &shared.room, &shared.processes[p], p, &shared.stop);
}

/// Apart from [`process`], so that the memory has one lifetime, with which all of `A`'s types can
/// be named.
fn passages<'a, A>(
    lock: &'a Instance<A>,
    size: Size,
    room: &Room,
    me: &Process,
    p: usize,
    stop: &AtomicBool,
) where
    A: Exclusion<Native<'a, Backoff>>,
{
    let (algorithm, mut m) = (lock.algorithm(), lock.view(Backoff, p as u64));
    let mut keep = algorithm.keep(p);
    let mut requests = requests::<A::Request>(size, p);
    while !stop.load(Relaxed) {
        let Some(request) = requests.next() else { break };
        let session = request.session();
        me.place.store(1, Relaxed);
        let Ok(pass) = algorithm.doorway(&mut m, p, request, keep);
        me.place.store(2, Relaxed);
        let Ok(pass) = algorithm.waiting(&mut m, p, pass);
        me.place.store(3, Relaxed);
        room.visit(session, LINGER);
        me.place.store(4, Relaxed);
        let Ok(kept) = algorithm.exit(&mut m, p, pass);
        keep = kept;
        me.place.store(0, Relaxed);
        me.passages.fetch_add(1, Relaxed);
    }
    me.place.store(DONE, SeqCst);
}

/// The name, with which of several it is.
fn name<A: Algorithm>() -> String {
    format!("{}{}", A::NAME, A::VARIANT.map_or(String::new(), |variant| format!(" ({variant})")))
}

/// One run.
fn run<A>(size: Size, until: Until) -> Result<Row, Unfit>
where
    A: for<'a> Exclusion<Native<'a, Backoff>> + Send + Sync + 'static,
{
    let shared = Arc::new(Shared {
        lock: Instance::<A>::new(size)?,
        size,
        room: Room::new(size),
        processes: (0..size.n).map(|_| Process::default()).collect(),
        stop: AtomicBool::new(false),
    });
    let began = Instant::now();
    for p in 0..size.n {
        let shared = shared.clone();
        thread::spawn(move || process(&shared, p));
    }
    let stuck = watch(&shared, until, began);
    let passages = shared.processes.iter().map(|process| process.passages.load(SeqCst)).sum();
    let most = shared.room.most.load(SeqCst);
    let unused = || matches!(until, Until::Time(_)) && most < shared.room.wanted();
    let complaint = stuck
        .or_else(|| shared.room.complaint(passages))
        .or_else(|| unused().then(|| format!("never more than {most} inside")));
    Ok(Row { name: name::<A>(), size, passages, most, time: began.elapsed(), complaint })
}

/// Waits until the run is over; says who is stuck if it never will be.
fn watch<A>(shared: &Shared<A>, until: Until, began: Instant) -> Option<String> {
    let (mut before, mut last) = (0, Instant::now());
    loop {
        thread::sleep(Duration::from_millis(1));
        let places: Vec<u8> =
            shared.processes.iter().map(|process| process.place.load(SeqCst)).collect();
        if places.iter().all(|&place| place == DONE) {
            return None;
        }
        let passages: u64 =
            shared.processes.iter().map(|process| process.passages.load(SeqCst)).sum();
        let enough = match until {
            Until::Time(time) => began.elapsed() >= time,
            Until::Passages(wanted) => passages >= wanted,
        };
        if enough {
            shared.stop.store(true, Relaxed);
        }
        if passages != before {
            (before, last) = (passages, Instant::now());
        }
        // Among the other tests there is no limit on time.
        if matches!(until, Until::Time(_)) && last.elapsed() > PATIENCE {
            let who = |(p, place): (usize, &u8)| {
                PLACES.get(*place as usize).map(|place| format!("{p} is {place}"))
            };
            let all: Vec<String> = places.iter().enumerate().filter_map(who).collect();
            return Some(format!("nothing for {} s: {}", PATIENCE.as_secs(), all.join(", ")));
        }
    }
}

/// All runs of one algorithm, which share `time`. Whether all is well.
fn stress<A>(time: Option<Duration>) -> bool
where
    A: for<'a> Exclusion<Native<'a, Backoff>> + Send + Sync + 'static,
{
    let sizes: Vec<Size> = SIZES.into_iter().flat_map(sizes::<A>).collect();
    let until = time.map_or(Until::Passages(500), |time| Until::Time(time / sizes.len() as u32));
    let (mut well, mut total) = (true, 0);
    for size in sizes {
        match run::<A>(size, until) {
            Ok(row) => {
                println!("{row}");
                well &= row.complaint.is_none();
                total += row.passages;
                if !well {
                    break; // threads that are stuck would slow the rest down
                }
            }
            Err(unfit) => {
                // Without what it is about, which stands before it.
                let why = unfit.to_string();
                let why = why.split_once(": ").map_or(why.as_str(), |(_, why)| why);
                println!("{:<32} {:<18} {:>12}  {why}", name::<A>(), size.to_string(), "–");
            }
        }
    }
    println!("{:<32} {:<18} {total:>12}", "", "total");
    well
}

macro_rules! stresses {
    ($($algorithm:ty),* $(,)?) => { [$(stress::<$algorithm> as fn(Option<Duration>) -> bool),*] };
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    if args.any(|arg| arg == "--list") {
        return ExitCode::SUCCESS; // there are no tests inside to list
    }
    let seconds: Option<u64> = std::env::args().nth(1).and_then(|arg| arg.parse().ok());
    println!(
        "{:<32} {:<18} {:>12} {:>5} {:>8}",
        "algorithm", "size", "passages", "most", "seconds"
    );
    let mut well = true;
    for stress in for_each_algorithm!(stresses) {
        well &= stress(seconds.map(Duration::from_secs));
    }
    println!(
        "{}",
        if well {
            "ok: never more than k inside nor two sessions, and nobody left waiting"
        } else {
            "FAILED, see above"
        }
    );
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
