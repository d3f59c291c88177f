//! What the queues of sleepers are made of: atomics, a lock, sleeping threads, and how long a
//! thread stays awake before it sleeps.
//!
//! `queue.rs`, `hall.rs` and `caller.rs` name these through this module alone. So `tests/loom.rs`
//! and `tests/shuttle.rs` can replace them, and explore the code that ships.

pub(crate) use std::{
    hint::spin_loop,
    sync::{Arc, Mutex, MutexGuard, atomic::AtomicU64},
    thread::{Thread, current, park, yield_now},
};
use std::{sync::OnceLock, thread, time::Instant};

/// Returns an atomic that need not be constant. The tests' atomics are created on first use, unless
/// they are created here.
#[inline(always)]
pub(crate) fn atomic(value: u64) -> AtomicU64 {
    AtomicU64::new(value)
}

/// How often a thread that may be granted soon checks the word before it yields.
pub(crate) const SPINS: u32 = 200;

/// How often a thread yields before it sleeps. Waking a thread costs more than yielding a few
/// times, and a thread that is awake when its turn comes need not be woken. But no thread is to
/// keep a core busy for long.
pub(crate) const YIELDS: u32 = 8;

/// Sleeps until this time at most. Returns `false`, without sleeping, if the time has passed.
pub(crate) fn park_until(until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        thread::park_timeout(left);
    }
    !left.is_zero()
}

/// Returns how many threads of this process can run at once.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| {
        // Not only the cores that this thread may use: it may be bound to one core.
        #[cfg(target_os = "linux")]
        if let Ok(set) = rustix::thread::sched_getaffinity(Some(rustix::process::getpid())) {
            return set.count() as usize;
        }
        thread::available_parallelism().map_or(1, usize::from)
    })
}
