//! The work of a measurement: how long processes stay inside and outside, how many there are, and
//! the stages.

use std::{
    fmt,
    hint::black_box,
    sync::{
        OnceLock,
        atomic::{
            AtomicU8, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    alone::PROCESSES,
    histogram::Histogram,
    order::{Stamps, Verdict, judge},
};

/// How the processes run and what they ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// Threads, where the system puts them.
    Threads,
    /// Threads, each on a core of its own.
    Pinned,
    /// Tasks.
    Tasks {
        /// On one thread; otherwise on a worker for each core.
        current: bool,
        /// Whether tasks let other tasks run while they are inside.
        awaits: bool,
    },
    /// One of several processes of an algorithm; its other processes do not enter.
    Process,
    /// Threads that all ask for one session.
    OneSession,
    /// Threads of which every other one asks for one session, the rest for another.
    TwoSessions,
    /// Threads that ask for one session, and in each sixteenth passage to be alone.
    SomeAlone,
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Threads => "threads",
            Self::Pinned => "pinned threads",
            Self::Tasks { current: false, awaits: false } => "tasks",
            Self::Tasks { current: true, awaits: false } => "tasks on one thread",
            Self::Tasks { current: false, awaits: true } => "tasks, await inside",
            Self::Tasks { current: true, awaits: true } => "tasks on one thread, await inside",
            Self::Process => return write!(f, "one of {PROCESSES} processes"),
            Self::OneSession => "one session",
            Self::TwoSessions => "two sessions",
            Self::SomeAlone => "1 in 16 alone",
        })
    }
}

/// One table of measurements: what all its locks have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// How many threads or tasks.
    pub threads: usize,
    /// Slots.
    pub k: usize,
    /// Time inside.
    pub inside_ns: u64,
    /// Time outside, on average.
    pub think_ns: u64,
    /// How the processes run and what they ask for.
    pub how: How,
}

/// How long the stages of a measurement are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// All processes compete; nothing is measured.
    pub(crate) warm_up: Duration,
    /// Passages are counted and nothing else is done.
    pub(crate) count: Duration,
    /// Passages are stamped.
    pub(crate) stamp: Duration,
}

/// A measurement to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) setting: Setting,
    pub(crate) times: Times,
    pub(crate) spin: Spin,
}

/// The result of one measurement of one lock.
#[derive(Default, Debug)]
pub(crate) struct Sample {
    pub(crate) ops_per_second: f64,
    /// The most and the fewest passages of a process.
    pub(crate) share: (u64, u64),
    pub(crate) waits: Histogram,
    pub(crate) verdict: Verdict,
    /// Whether the verdict is by the lock's own doorway.
    pub(crate) doorway: bool,
}

/// Work that takes a known time, without reading the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spin {
    rounds_per_ns: f64,
}

impl Spin {
    /// Returns how fast this machine is, measured once.
    pub(crate) fn of_this_machine() -> Self {
        static MACHINE: OnceLock<Spin> = OnceLock::new();
        *MACHINE.get_or_init(Self::calibrate)
    }

    /// Measures the speed. The fastest of several tries counts: the other tries were disturbed.
    fn calibrate() -> Self {
        const ROUNDS: u32 = 200_000;
        let try_once = || {
            let begin = Instant::now();
            spin(ROUNDS);
            begin.elapsed()
        };
        let fastest = (0..30).map(|_| try_once()).min().expect("several tries");
        Self { rounds_per_ns: f64::from(ROUNDS) / fastest.as_nanos().max(1) as f64 }
    }

    /// Returns how many rounds take this long.
    pub(crate) fn rounds(self, ns: u64) -> u32 {
        (self.rounds_per_ns * ns as f64).round() as u32
    }
}

/// Does multiplications, each of which waits for the one before.
#[inline(never)]
pub(crate) fn spin(rounds: u32) {
    let mut x = black_box(1_u64);
    for _ in 0..rounds {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    black_box(x);
}

/// Times outside that vary, so that processes do not run in step.
pub(crate) struct Think {
    rounds: u32,
    state: u32,
}

impl Think {
    pub(crate) fn new(work: &Work, p: usize) -> Self {
        Self {
            rounds: work.spin.rounds(work.setting.think_ns),
            state: 0x9e37_79b9_u32.wrapping_mul(p as u32 + 1) | 1,
        }
    }

    /// Waits for half to one and a half of the average.
    #[inline]
    pub(crate) fn think(&mut self) {
        if self.rounds > 0 {
            // Marsaglia's xorshift.
            self.state ^= self.state << 13;
            self.state ^= self.state >> 17;
            self.state ^= self.state << 5;
            spin(self.rounds / 2 + ((u64::from(self.state) * u64::from(self.rounds)) >> 32) as u32);
        }
    }
}

/// A value in cache lines of its own, so that neighbouring memory does not matter.
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

pub(crate) const WARM_UP: u8 = 0;
pub(crate) const COUNT: u8 = 1;
pub(crate) const STAMP: u8 = 2;
const END: u8 = 3;

/// The stage of a measurement. All processes compete from before the first stage until after the
/// last.
pub(crate) struct Stages {
    now: Apart<AtomicU8>,
    started: Apart<AtomicUsize>,
    processes: usize,
}

impl Stages {
    pub(crate) fn new(processes: usize) -> Self {
        Self { now: Apart(AtomicU8::new(WARM_UP)), started: Apart(AtomicUsize::new(0)), processes }
    }

    /// Counts one more process as started.
    pub(crate) fn start(&self) {
        self.started.0.fetch_add(1, Release);
    }

    /// Returns whether all processes have started.
    pub(crate) fn all_started(&self) -> bool {
        self.started.0.load(Acquire) == self.processes
    }

    /// Returns the stage, or `None` when the measurement is over.
    #[inline]
    pub(crate) fn now(&self) -> Option<u8> {
        let now = self.now.0.load(Relaxed);
        (now != END).then_some(now)
    }

    /// Goes through the stages; returns how long passages were counted.
    pub(crate) fn drive(&self, times: &Times) -> Duration {
        while !self.all_started() {
            thread::sleep(Duration::from_micros(100));
        }
        thread::sleep(times.warm_up);
        let begin = Instant::now();
        self.now.0.store(COUNT, Relaxed);
        thread::sleep(times.count);
        self.now.0.store(STAMP, Relaxed);
        let counted = begin.elapsed();
        thread::sleep(times.stamp);
        self.now.0.store(END, Relaxed);
        counted
    }
}

/// The number of stamps that all processes keep together, the first ones: enough to judge by, and
/// they fit into memory.
const MOST_STAMPS: usize = 1 << 16;

/// The record of one process.
pub(crate) struct Seen {
    pub(crate) passages: u64,
    stamps: Vec<Stamps>,
    waits: Histogram,
    doorway: bool,
}

impl Seen {
    pub(crate) fn new(processes: usize) -> Self {
        let stamps = Vec::with_capacity(MOST_STAMPS / processes);
        Self { passages: 0, stamps, waits: Histogram::default(), doorway: false }
    }

    /// Records a passage. A lock without a doorway has not stamped its end.
    pub(crate) fn note(&mut self, mut stamps: Stamps) {
        if stamps.entered == 0 {
            stamps.entered = stamps.began;
        } else {
            self.doorway = true;
        }
        self.waits.add(stamps.inside - stamps.began);
        if self.stamps.len() < self.stamps.capacity() {
            self.stamps.push(stamps);
        }
    }

    /// Sums up what all processes have recorded.
    pub(crate) fn sum(all: Vec<Self>, k: usize, counted: Duration) -> Sample {
        let passages = || all.iter().map(|seen| seen.passages);
        let mut waits = Histogram::default();
        all.iter().for_each(|seen| waits.merge(&seen.waits));
        let stamps: Vec<Stamps> = all.iter().flat_map(|seen| &seen.stamps).copied().collect();
        Sample {
            ops_per_second: passages().sum::<u64>() as f64 / counted.as_secs_f64(),
            share: (passages().max().unwrap_or(0), passages().min().unwrap_or(0)),
            waits,
            verdict: judge(&stamps, k),
            doorway: all.iter().any(|seen| seen.doorway),
        }
    }
}
