//! Remote memory references as n grows: a measurement.
//!
//! An algorithm is simulated at n = 2, 4, 8, … under several schedulers, and functions of n are
//! fitted to the references of its passages. The measurement is a sample; [`most`](crate::most)
//! finds the maximum over all runs, for few processes.

mod fit;
mod spin;

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use doorway_core::{Problem, Size, Unfit};

pub use self::{
    fit::{Class, FEWEST, Fit, Growth},
    spin::{SpinCost, spin_cost},
};
use crate::{
    cost::Cost,
    entrant::Entrant,
    schedule::{ScheduleError, Scheduler, View},
    simulate::{SimulateError, Simulation, scheduler, simulate},
    subject::Subject,
};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The number of slots, for algorithms with several.
    pub k: usize,
    /// The number of sessions, for algorithms with sessions.
    pub sessions: usize,
    /// The largest number of processes.
    pub up_to: usize,
    /// The names of the schedulers.
    pub schedulers: Vec<String>,
    /// The number of passages.
    pub passages: Passages,
    /// Seed of everything random.
    pub seed: u64,
    /// The largest number of steps of one run.
    pub max_steps: u64,
    /// The number of runs made at a time. Each run depends on its seed only, not on the runs beside
    /// it.
    pub workers: usize,
}

/// How the number of passages is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passages {
    /// Each process makes this many.
    Each(u64),
    /// All processes together make this many or a few more. Each makes the same number.
    Total(u64),
}

impl Passages {
    /// Returns how many passages each of `n` processes makes.
    pub fn each(self, n: usize) -> u64 {
        match self {
            Self::Each(passages) => passages,
            Self::Total(passages) => passages.div_ceil(n.max(1) as u64),
        }
    }
}

/// The progress of a measurement, for the caller to watch from another thread.
#[derive(Debug, Default)]
pub struct Watch {
    /// Steps taken.
    pub steps: AtomicU64,
    /// Set by the watcher to make the measurement stop.
    pub cancel: AtomicBool,
    /// What each worker runs now.
    now: Mutex<Vec<String>>,
}

impl Watch {
    /// Returns what is being run, in words.
    pub fn now(&self) -> String {
        let all = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|now| !now.is_empty()).cloned().collect::<Vec<_>>().join(", ")
    }

    /// Notes what this worker runs now.
    fn is(&self, worker: usize, now: String) {
        let mut all = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if worker >= all.len() {
            all.resize(worker + 1, String::new());
        }
        all[worker] = now;
    }
}

/// One run.
#[derive(Clone, Debug)]
pub struct Point {
    /// Processes.
    pub n: usize,
    /// Slots.
    pub k: usize,
    /// Steps taken.
    pub steps: u64,
    /// References per passage with coherent caches.
    pub cc: Cost,
    /// References per passage with distributed shared memory.
    pub dsm: Cost,
    /// The run came to its end: it did not reach the step limit and was not interrupted.
    pub complete: bool,
    /// The run belongs to the curve: it is complete and has as many slots as asked for. With few
    /// processes there are fewer slots.
    pub fitted: bool,
}

/// The runs under one scheduler.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The scheduler.
    pub scheduler: String,
    /// Its runs, by n.
    pub points: Vec<Point>,
}

impl Curve {
    /// Returns how a measured quantity grows.
    pub fn growth(&self, of: impl Fn(&Point) -> f64) -> Option<Growth> {
        let points: Vec<_> =
            self.points.iter().filter(|p| p.fitted).map(|p| (p.n, of(p))).collect();
        Growth::of(&points)
    }
}

/// The numbers of steps for which a process is kept waiting.
pub const WAITS: [u64; 3] = [100, 1_000, 10_000];

/// The cost of waiting for so many steps, with the fewest processes such that one has to wait.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The costs for each of [`WAITS`].
    pub costs: Vec<SpinCost>,
}

impl Waiting {
    /// Returns the references per look, after the wait has lasted for some time: CC, DSM.
    pub fn per_look(&self) -> (f64, f64) {
        let [.., a, b] = &self.costs[..] else { return (0.0, 0.0) };
        let looks = (b.steps - a.steps) as f64;
        ((b.cc - a.cc) as f64 / looks, (b.dsm - a.dsm) as f64 / looks)
    }
}

/// All that was measured of one algorithm.
#[derive(Clone, Debug)]
pub struct Measured {
    /// By scheduler.
    pub curves: Vec<Curve>,
    /// What waiting costs; `None` if no process could be kept waiting.
    pub waiting: Option<Waiting>,
    /// The sizes that the algorithm refuses, and why.
    pub refused: Vec<(Size, Unfit)>,
    /// The measurement was interrupted.
    pub cancelled: bool,
}

/// Returns the size at which an algorithm is run with `n` processes. There are at most `n` - 1
/// slots.
fn size(entrant: &Entrant, n: usize, sweep: &Sweep) -> Size {
    entrant.claims.problem.size(n, sweep.k.min(n.saturating_sub(1)).max(1), sweep.sessions)
}

/// Measures an algorithm.
///
/// # Errors
/// If this algorithm has no such scheduler, or cannot be run in the lab.
pub fn measure(entrant: &Entrant, sweep: &Sweep, watch: &Watch) -> Result<Measured, SimulateError> {
    let mut measured =
        Measured { curves: Vec::new(), waiting: None, refused: Vec::new(), cancelled: false };
    let mut subjects = Vec::new();
    for n in
        std::iter::successors(Some(2usize), |n| n.checked_mul(2)).take_while(|&n| n <= sweep.up_to)
    {
        let size = size(entrant, n, sweep);
        match entrant.build(size, None, false) {
            Ok(subject) => subjects.push(subject),
            Err(unfit) => measured.refused.push((size, unfit)),
        }
    }
    measured.curves = curves(&subjects, sweep, watch)?;
    measured.waiting = waiting(entrant, sweep).map_err(SimulateError::Fault)?;
    measured.cancelled = watch.cancel.load(Relaxed);
    Ok(measured)
}

/// Runs every subject under every scheduler, several runs at a time.
fn curves(
    subjects: &[Box<dyn Subject>],
    sweep: &Sweep,
    watch: &Watch,
) -> Result<Vec<Curve>, SimulateError> {
    // The longest runs come first, so that the workers finish at about the same time.
    let under = |subject| {
        sweep.schedulers.iter().enumerate().map(move |(curve, name)| (subject, curve, name))
    };
    let (runs, next) =
        (&subjects.iter().rev().flat_map(under).collect::<Vec<_>>(), &AtomicUsize::new(0));
    let work = move |worker: usize| {
        let mut points = Vec::new();
        while let Some(&(subject, curve, name)) = runs.get(next.fetch_add(1, Relaxed)) {
            if watch.cancel.load(Relaxed) && !points.is_empty() {
                break;
            }
            watch.is(worker, format!("{} n = {} {name}", subject.name(), subject.size().n));
            points.push((curve, point(&**subject, sweep, name, watch)?));
        }
        Ok(points)
    };
    let points = thread::scope(|scope| {
        let workers: Vec<_> =
            (0..sweep.workers.max(1)).map(|worker| scope.spawn(move || work(worker))).collect();
        let points = workers.into_iter().map(|worker| worker.join().expect("a run does not panic"));
        points.collect::<Result<Vec<_>, SimulateError>>()
    })?;
    let empty = |scheduler: &String| Curve { scheduler: scheduler.clone(), points: Vec::new() };
    let mut curves: Vec<_> = sweep.schedulers.iter().map(empty).collect();
    points.into_iter().flatten().for_each(|(curve, point)| curves[curve].points.push(point));
    curves.iter_mut().for_each(|curve| curve.points.sort_by_key(|point| point.n));
    Ok(curves)
}

fn point(
    subject: &dyn Subject,
    sweep: &Sweep,
    name: &str,
    watch: &Watch,
) -> Result<Point, SimulateError> {
    let size = subject.size();
    let how = Simulation {
        passages: sweep.passages.each(size.n),
        seed: sweep.seed,
        crashes: 0,
        max_steps: sweep.max_steps,
    };
    let no_script = |_: &str| Err(ScheduleError::Unknown(name.into()));
    let mut watched =
        Watched { scheduler: scheduler(name, subject, sweep.seed, no_script)?, watch, unnoted: 0 };
    let outcome = simulate(subject, &how, &mut watched)?;
    let complete = !outcome.cut_off && !outcome.stuck && !watch.cancel.load(Relaxed);
    Ok(Point {
        n: size.n,
        k: size.k,
        steps: outcome.steps,
        cc: outcome.meter.cc,
        dsm: outcome.meter.dsm,
        complete,
        fitted: complete && (size.k == sweep.k || subject.claims().problem != Problem::KExclusion),
    })
}

/// Measures the cost of waiting, with one process more than there are slots.
fn waiting(entrant: &Entrant, sweep: &Sweep) -> Result<Option<Waiting>, crate::Fault> {
    let k = if entrant.claims.problem == Problem::KExclusion { sweep.k } else { 1 };
    let size = entrant.claims.problem.size(k + 1, k, sweep.sessions);
    let Ok(subject) = entrant.build(size, None, false) else { return Ok(None) };
    let costs = WAITS
        .iter()
        .map(|&steps| spin_cost(&*subject, steps))
        .collect::<Result<Option<Vec<_>>, _>>()?;
    Ok(costs.map(|costs| Waiting { costs }))
}

/// A scheduler with a watcher. It stops when the watcher tells it to.
struct Watched<'w> {
    scheduler: Box<dyn Scheduler>,
    watch: &'w Watch,
    unnoted: u64,
}

/// The number of steps between two looks at the watch.
const NOTE_EVERY: u64 = 1 << 12;

impl Scheduler for Watched<'_> {
    fn next(&mut self, view: &View<'_>) -> Result<Option<usize>, ScheduleError> {
        self.unnoted += 1;
        if self.unnoted == NOTE_EVERY {
            self.watch.steps.fetch_add(std::mem::take(&mut self.unnoted), Relaxed);
            if self.watch.cancel.load(Relaxed) {
                return Ok(None);
            }
        }
        self.scheduler.next(view)
    }

    fn asks(&self) -> Option<(u32, usize)> {
        self.scheduler.asks()
    }
}
