//! The memory that all processes of the soak share: counters, what each process does now, and what
//! went wrong.

use std::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

/// Locks of the random part, and processes that use them.
pub(crate) const LOCKS: usize = 24;
pub(crate) const VICTIMS: usize = 128;
/// Victims let the processes that kill them go first.
pub(crate) const VICTIMS_ARE_NICE: i32 = 5;
pub(crate) const STEPPERS_ARE_NICE: i32 = 15;
/// Slots that a lock of the soak has at most.
pub(crate) const SLOTS: usize = 8;

/// Processes that step through operations, and all that run a part of the soak.
pub(crate) const STEPPERS: usize = 2;
pub(crate) const WORKERS: usize = STEPPERS + 2;

/// What a worker is told.
pub(crate) struct Task {
    /// Its number among all workers, and among those of its part.
    pub(crate) worker: usize,
    pub(crate) share: usize,
    pub(crate) seed: u64,
}

/// What is counted.
#[derive(Clone, Copy)]
pub(crate) enum Count {
    /// Kills at random moments, at chosen instructions, and of wrappers and commands.
    Random,
    Stepped,
    Command,
    /// Slots acquired, and among them those whose last holder died.
    Passages,
    Recovered,
    GaveUp,
    HandedOver,
    Managed,
    Removed,
    /// Checks that all slots of a lock can be acquired.
    Checks,
    /// Operations that are stepped through, those that are done, and their instructions.
    Cases,
    Swept,
    Instructions,
    /// What is wrong.
    Wrong,
}

const COUNTS: usize = Count::Wrong as usize + 1;

/// What a process that uses a lock of the random part does.
pub(crate) mod state {
    pub(crate) const IDLE: u64 = 0;
    pub(crate) const WAITING: u64 = 1;
    pub(crate) const HOLDING: u64 = 2;
    /// It has changed the number of slots or drained the lock, and will undo that.
    pub(crate) const MANAGING: u64 = 3;
    /// It uses nothing until its lock has been checked.
    pub(crate) const PARKED: u64 = 4;
}

/// What one process of the random part does.
pub(crate) struct Record {
    pub(crate) state: AtomicU64,
    /// Since when it waits.
    pub(crate) since: AtomicU64,
    /// Not 0 from before it is killed until after it has been reaped.
    pub(crate) doomed: AtomicU64,
    /// Its child, to which it hands its slot; and not 0 when that has adopted it.
    pub(crate) child: AtomicU64,
    pub(crate) adopted: AtomicU64,
}

/// What is known of one lock of the random part.
pub(crate) struct Watched {
    /// Its processes are asked to park.
    pub(crate) parked: AtomicU64,
    /// When a process last released a slot.
    pub(crate) released: AtomicU64,
    /// For each slot its holder, counted from 1; it remains when the holder dies.
    pub(crate) holders: [AtomicU64; SLOTS],
}

/// The shared page.
pub(crate) struct Page {
    counts: [AtomicU64; COUNTS],
    /// Not zero if a wait that is stalled for too long is a violation: in a soak that was asked
    /// for. A short run on a busy machine only reports it.
    pub(crate) judges_waits: AtomicU64,
    /// The longest stalled wait and the longest wait, in nanoseconds.
    pub(crate) stalled: AtomicU64,
    pub(crate) waited: AtomicU64,
    /// Not 0 when the workers are to end.
    pub(crate) stop: AtomicU64,
    /// When each worker last went on.
    pub(crate) beats: [AtomicU64; WORKERS],
    /// For each stepper how many instructions of its last operation were executed.
    pub(crate) executed: [AtomicU64; STEPPERS],
    pub(crate) records: [Record; VICTIMS],
    pub(crate) locks: [Watched; LOCKS],
}

impl Page {
    pub(crate) fn add(&self, count: Count) {
        self.add_many(count, 1);
    }

    pub(crate) fn add_many(&self, count: Count, number: u64) {
        self.counts[count as usize].fetch_add(number, SeqCst);
    }

    pub(crate) fn set(&self, count: Count, number: u64) {
        self.counts[count as usize].store(number, SeqCst);
    }

    pub(crate) fn get(&self, count: Count) -> u64 {
        self.counts[count as usize].load(SeqCst)
    }

    /// All kills so far.
    pub(crate) fn kills(&self) -> u64 {
        [Count::Random, Count::Stepped, Count::Command]
            .into_iter()
            .map(|count| self.get(count))
            .sum()
    }

    /// Reports what is wrong.
    pub(crate) fn wrong(&self, what: &str) {
        let kills = self.kills();
        let (random, stepped) = (self.get(Count::Random), self.get(Count::Stepped));
        eprintln!("\nWRONG after {kills} kills ({random} random, {stepped} stepped): {what}");
        self.add(Count::Wrong);
    }

    pub(crate) fn ends(&self) -> bool {
        self.stop.load(SeqCst) != 0 || self.get(Count::Wrong) > 0
    }

    pub(crate) fn beat(&self, worker: usize) {
        self.beats[worker].store(now(), SeqCst);
    }
}

/// The longest time that a live process may wait beyond the kills that delay it.
pub(crate) const LIMIT: Duration = Duration::from_secs(1);

/// The monotonic clock in nanoseconds.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A small generator of random numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, most: usize) -> usize {
        (self.next() >> 16) as usize % most
    }

    /// A time of up to so many microseconds.
    pub(crate) fn micros(&mut self, most: usize) -> Duration {
        Duration::from_micros(self.below(most) as u64)
    }
}
