//! What locks are for, as a test sees it.

use std::{
    sync::atomic::{
        AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
    thread,
};

use doorway_core::{Algorithm, Problem};

/// What the lock is for. It notes what goes wrong instead of panicking: a process that panics inside leaves the others
/// waiting for ever, and the test with them.
pub(crate) struct Room {
    /// How many may be inside at once.
    pub(crate) slots: u64,
    pub(crate) inside: AtomicU64,
    /// How often somebody came in or left and there were too many.
    pub(crate) crowds: AtomicU64,
    /// The most that were inside at once.
    pub(crate) most: AtomicU64,
    /// With one slot counted by a read and a write apart, so that a meeting also loses a visit.
    pub(crate) visits: AtomicU64,
}

impl Room {
    pub(crate) fn new(slots: usize) -> Self {
        let zero = || AtomicU64::new(0);
        Self { slots: slots as u64, inside: zero(), crowds: zero(), most: zero(), visits: zero() }
    }

    /// Goes in and out. Every eighth time it lets the others run, who run into a lock that is taken, also where there are
    /// fewer cores than processes; with `linger` until there is nobody missing, or for so many times.
    pub(crate) fn visit(&self, linger: u32) {
        let now = self.inside.fetch_add(1, SeqCst) + 1;
        let visits = self.visits.load(Relaxed);
        if visits.is_multiple_of(8) {
            thread::yield_now();
            for _ in 0..linger {
                if self.inside.load(SeqCst) >= self.slots {
                    break;
                }
                thread::yield_now();
            }
        }
        if self.slots == 1 {
            self.visits.store(visits + 1, Relaxed);
        } else {
            self.visits.fetch_add(1, Relaxed);
        }
        let most = now.max(self.inside.fetch_sub(1, SeqCst));
        self.most.fetch_max(most, Relaxed);
        self.crowds.fetch_add(u64::from(most > self.slots), Relaxed);
    }

    /// What went wrong in a room that was visited so often.
    pub(crate) fn complaint(&self, visits: u64) -> Option<String> {
        let (crowds, noted) = (self.crowds.load(SeqCst), self.visits.load(SeqCst));
        if crowds > 0 {
            return Some(format!("{} inside, {crowds} times too many", self.most.load(SeqCst)));
        }
        (noted != visits).then(|| format!("{visits} passages, but {noted} visits: two were inside at once"))
    }
}

/// The numbers of slots with which an algorithm is tried among `n`.
pub(crate) fn slots<A: Algorithm>(n: usize) -> Vec<usize> {
    let mut slots = match A::CLAIMS.problem {
        Problem::Mutex => vec![1],
        Problem::KExclusion => [1, n / 2, n - 1].into_iter().filter(|&k| k > 0).collect(),
        Problem::Group => panic!("{}: say here what may happen inside", A::NAME),
    };
    slots.dedup();
    slots
}
