//! Sleeping and waking under shuttle: thousands of schedules of more threads than loom can explore,
//! at random and by PCT (few changes of priority, in the right places, find most errors).
//!
//! What runs here is what ships: the files are the crate's own, and only what they are made of
//! (`sync.rs`) is shuttle's, in which every access has its place in one order. Weak memory is
//! loom's (`tests/loom.rs`).
//!
//! It was seen to catch what loom catches (see the table there), but for accesses that are
//! `Relaxed`.

#[path = "../src/barging.rs"]
#[allow(dead_code, unreachable_pub)]
mod barging;
#[path = "../src/caller.rs"]
#[allow(dead_code, clippy::reversed_empty_ranges)]
mod caller;
#[path = "../src/group.rs"]
#[allow(dead_code, unreachable_pub)]
mod group;
#[path = "../src/hall.rs"]
#[allow(dead_code, unreachable_pub)]
mod hall;
#[path = "../src/mutex.rs"]
#[allow(dead_code, unreachable_pub)]
mod mutex;
mod parking;
#[path = "../src/place.rs"]
#[allow(dead_code, unreachable_pub)]
mod place;
#[path = "../src/queue.rs"]
#[allow(dead_code)]
mod queue;
#[path = "../src/semaphore.rs"]
#[allow(dead_code, unreachable_pub)]
mod semaphore;

/// Shuttle's, in the place of `src/sync.rs`.
mod sync {
    use std::{cell::Cell, time::Instant};

    pub(crate) use shuttle::{
        hint::spin_loop,
        sync::{Arc, Mutex, MutexGuard, atomic::AtomicU64},
        thread::{Thread, current, park, spawn, yield_now},
    };

    /// Some stay awake, some do not.
    pub(crate) const SPINS: u32 = 1;
    pub(crate) const YIELDS: u32 = 1;

    pub(crate) fn atomic(value: u64) -> AtomicU64 {
        AtomicU64::new(value)
    }

    pub(crate) fn cores() -> usize {
        2
    }

    thread_local! {
        static LEFT: Cell<u32> = const { Cell::new(0) };
    }

    /// The time is up when somebody has asked so often, and has been let sleep so often.
    pub(crate) fn time_is_up_after(naps: u32) {
        LEFT.set(naps);
    }

    pub(crate) fn park_until(_: Instant) -> bool {
        let left = LEFT.get();
        if left > 0 {
            LEFT.set(left - 1);
            yield_now();
        }
        left > 0
    }

    /// What a mutex is for.
    #[derive(Default)]
    pub(crate) struct Inside(usize);

    impl Inside {
        /// Others may come here, and what they did would be lost.
        pub(crate) fn visit(&mut self) {
            let visits = self.0;
            yield_now();
            self.0 = visits + 1;
        }
        pub(crate) fn visits(&self) -> usize {
            self.0
        }
    }
}

/// Takes so many schedules of each kind.
fn explore(run: fn()) {
    const SCHEDULES: usize = 10_000;
    shuttle::check_random(run, SCHEDULES);
    shuttle::check_pct(run, SCHEDULES, 3);
}

#[test]
fn threads() {
    explore(|| parking::passages::<3>(1, 3));
    explore(|| parking::passages::<4>(2, 2));
    explore(parking::values::<4>);
}

#[test]
fn another_waker() {
    explore(|| parking::another_waker::<3>(1));
    explore(|| parking::another_waker::<4>(2));
}

#[test]
fn a_task_that_is_cancelled() {
    explore(|| parking::cancelled::<3>(1));
    explore(|| parking::cancelled::<4>(2));
}

#[test]
fn a_place_that_is_dropped() {
    explore(|| parking::abandoned::<3>(1, 1));
    explore(|| parking::abandoned::<4>(2, 3));
}

#[test]
fn a_thread_that_is_late() {
    explore(|| parking::late::<3>(1, false));
    explore(|| parking::late::<4>(2, true));
}

#[test]
fn a_holder_that_panics() {
    explore(|| parking::panics::<3>(1));
    explore(|| parking::panics::<4>(2));
}

#[test]
fn newcomers_that_barge() {
    explore(|| parking::barges::<3>(1, 3, false));
    explore(|| parking::barges::<4>(2, 2, true));
}

#[test]
fn those_of_two_sessions_and_alone() {
    explore(parking::alone::<4>);
    explore(|| parking::sessions::<3>(3, 0, false));
    explore(|| parking::sessions::<4>(2, 0, true));
    explore(|| parking::sessions::<4>(2, 1, true));
}
