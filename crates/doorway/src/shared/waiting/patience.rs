//! How long a process that waits keeps its processor before it sleeps.
//!
//! A sleeping process takes as long to wake as many short passages take, and every waiter behind it
//! waits for that as well. So it pays to let other processes run a few times first (`sched_yield`):
//! if passages are short, the waiter is then mostly awake when its turn comes. But if another
//! program wants the processor, a yield gives that program a whole time slice, and every waiter
//! waits for it. So every yield is timed, and after a long one no process yields for this lock for
//! a while. The evidence is in the lock file.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};

use rustix::time::{ClockId, clock_gettime};

/// How many attempts to take the table lock spin, and how many pauses there are between two at
/// most. The process with the table lock needs it for less than a microsecond, unless it does not
/// run.
const ATTEMPTS: u32 = 40;
const PAUSES: u32 = 32;

/// A process yields only if at most this many processes wait: among many, a yield goes through all
/// of them.
pub(super) const FEW: usize = 8;

/// How often a process yields before it sleeps.
const YIELDS: u32 = 64;

/// A yield that takes longer than this, in nanoseconds, has given the processor to another program:
/// time slices are longer, and what the system does in between is shorter.
const LONG: u64 = 500_000;

/// For how long no process yields after that at most, in nanoseconds: for eight times as long as
/// the yield took, and twice as long each time it happens again within this time.
const PAUSE: u64 = 1_000_000_000;

/// The patience of a process that waits for the table lock.
#[derive(Default)]
pub(in super::super) struct Patience(u32);

impl Patience {
    /// Spins for a moment; returns `false` once the process has spun long enough.
    pub(in super::super) fn spin(&mut self) -> bool {
        self.0 += 1;
        if self.is_over() {
            return false;
        }
        (0..self.0.min(PAUSES)).for_each(|_| spin_loop());
        true
    }

    /// Returns whether the process has spun long enough.
    pub(in super::super) fn is_over(&self) -> bool {
        self.0 > ATTEMPTS
    }
}

/// Returns the monotonic clock in nanoseconds.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns whether the time until which something is not to be done is over.
fn is_over(until: &AtomicU64) -> bool {
    let (until, now) = (until.load(Relaxed), now());
    // A time far ahead is damage.
    now >= until || until - now > PAUSE
}

/// What the processes of a lock know of yielding.
pub(super) struct Evidence<'a> {
    /// No process yields before this time.
    pub(super) no_yields_until: &'a AtomicU64,
    /// How often a yield has taken long in a row.
    pub(super) long_yields: &'a AtomicU64,
}

impl Evidence<'_> {
    /// Records how long a yield took.
    #[cold]
    fn note(&self, now: u64, took: u64) {
        let until = self.no_yields_until.load(Relaxed);
        if now < until {
            return; // another process has noted the same
        }
        let before = if now - until > PAUSE { 0 } else { self.long_yields.load(Relaxed).min(10) };
        self.long_yields.store(before + 1, Relaxed);
        self.no_yields_until.store(now + took.saturating_mul(8 << before).min(PAUSE), Relaxed);
    }
}

/// Yields for a while until `done`; returns whether it is.
pub(super) fn yield_until(done: impl Fn() -> bool, evidence: &Evidence<'_>) -> bool {
    if !is_over(evidence.no_yields_until) {
        return done();
    }
    let mut before = now();
    for _ in 0..YIELDS {
        if done() {
            return true;
        }
        thread::yield_now();
        let after = now();
        if after - before > LONG {
            evidence.note(after, after - before);
            break;
        }
        before = after;
    }
    done()
}
