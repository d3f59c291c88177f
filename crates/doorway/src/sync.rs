//! What the line of sleepers is made of: atomics, a lock, threads that sleep, and how long they
//! stay awake before.
//!
//! Nobody else in `queue.rs`, `hall.rs` and `caller.rs` names these, so that `tests/loom.rs` and
//! `tests/shuttle.rs` can put their own in this place, and explore what runs here.

pub(crate) use std::{
    hint::spin_loop,
    sync::{Arc, Mutex, MutexGuard, atomic::AtomicU64},
    thread::{Thread, current, park, yield_now},
};
use std::{sync::OnceLock, thread, time::Instant};

/// One that need not be constant. The tests' atomics are made when they are first used, unless they
/// are made here.
#[inline(always)]
pub(crate) fn atomic(value: u64) -> AtomicU64 {
    AtomicU64::new(value)
}

/// Looks at the word before a thread that may hope to go in soon lets others run.
pub(crate) const SPINS: u32 = 200;

/// How often a thread lets others run before it sleeps. To wake a thread costs more than to let a
/// few run, and whoever is awake when its turn comes need not be woken; but nobody is to keep a
/// core busy for long.
pub(crate) const YIELDS: u32 = 8;

/// Sleeps until then at most. Does not sleep, and says so, if it is later than that.
pub(crate) fn park_until(until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        thread::park_timeout(left);
    }
    !left.is_zero()
}

/// How many threads of this process can run at once.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| {
        // Not only what this thread may use: it may be bound to a core of its own.
        #[cfg(target_os = "linux")]
        if let Ok(set) = rustix::thread::sched_getaffinity(Some(rustix::process::getpid())) {
            return set.count() as usize;
        }
        thread::available_parallelism().map_or(1, usize::from)
    })
}
