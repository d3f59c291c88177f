//! Sleeping and waking under loom: every interleaving of two threads, and the stale values that a
//! weak memory may return.
//!
//! What runs here is what ships: the files are the crate's own, and only what they are made of
//! (`sync.rs`) is loom's. Loom takes sequentially consistent accesses for acquire and release, so
//! each has a fence after it here.
//!
//! Two threads with a passage each are explored in full, with two passages each with six
//! preemptions at most (switches away from a thread that could go on), and three threads with four.
//!
//! What it was seen to catch, with these changes made by hand:
//!
//! | change | caught as | by |
//! |---|---|---|
//! | who is about to sleep does not look once more (`lie_down`) | deadlock | every test |
//! | who makes a ticket valid wakes nobody (`called`) | deadlock | every test |
//! | a look at the word is `Relaxed` | a race for the value | `two_threads`, `three_threads` |
//! | additions to the word are `Relaxed` | a race for the value | `two_threads`, `three_threads` |
//! | the first waker stays in line when another polls | deadlock | `another_waker` |
//! | who goes does not look once more (`abandon`) | a slot lost | `a_place_that_is_dropped`, `…_cancelled`, `…_late` |
//! | the slots of those who have gone are not passed on | a slot lost | the same |
//! | who goes passes on what somebody else has passed on | a slot too many | the same |
//! | who is late goes in | one too many | `a_thread_that_is_late` |
//! | a holder that panics keeps its slot | a slot lost | `a_holder_that_panics` |
//! | barging: the first in line does not look once more | deadlock | `newcomers_that_barge` |
//! | barging: who gives a slot back wakes nobody | deadlock | `newcomers_that_barge` |
//! | barging: who takes the mark of a first that goes lets nobody be first | a place stuck | `newcomers_that_barge` |
//! | barging: who goes in stays first | a place stuck | `newcomers_that_barge` |
//! | groups: who lies down does not see that it has been told | deadlock | `those_of_two_sessions_and_alone` |
//! | groups: who is told is not woken | deadlock | `those_of_two_sessions_and_alone` |
//! | groups: changes of the word are `Relaxed` | a race for the value | `those_of_two_sessions_and_alone` |

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

/// Loom's, in the place of `src/sync.rs`.
mod sync {
    use std::{
        cell::Cell,
        sync::{LockResult, OnceLock, atomic::Ordering},
        time::Instant,
    };

    use loom::{cell::UnsafeCell, sync::atomic};
    pub(crate) use loom::{
        hint::spin_loop,
        sync::{Arc, MutexGuard},
        thread::{Thread, current, park, spawn, yield_now},
    };

    /// Nobody stays awake: that would be the same schedules again.
    pub(crate) const SPINS: u32 = 0;
    pub(crate) const YIELDS: u32 = 0;

    pub(crate) fn cores() -> usize {
        0
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

    /// Made when it is first looked at, as loom's cannot be made by a `const fn`.
    #[derive(Debug)]
    pub(crate) struct AtomicU64 {
        start: u64,
        made: OnceLock<atomic::AtomicU64>,
    }

    pub(crate) fn atomic(value: u64) -> AtomicU64 {
        let atomic = AtomicU64::new(value);
        atomic.made();
        atomic
    }

    impl AtomicU64 {
        pub(crate) const fn new(start: u64) -> Self {
            Self { start, made: OnceLock::new() }
        }
        fn made(&self) -> &atomic::AtomicU64 {
            self.made.get_or_init(|| atomic::AtomicU64::new(self.start))
        }
        pub(crate) fn load(&self, order: Ordering) -> u64 {
            fenced(order, self.made().load(order))
        }
        pub(crate) fn fetch_add(&self, add: u64, order: Ordering) -> u64 {
            fenced(order, self.made().fetch_add(add, order))
        }
        pub(crate) fn swap(&self, new: u64, order: Ordering) -> u64 {
            fenced(order, self.made().swap(new, order))
        }
        pub(crate) fn compare_exchange(
            &self,
            old: u64,
            new: u64,
            order: Ordering,
            no: Ordering,
        ) -> Result<u64, u64> {
            fenced(order, self.made().compare_exchange(old, new, order, no))
        }
        pub(crate) fn compare_exchange_weak(
            &self,
            old: u64,
            new: u64,
            order: Ordering,
            no: Ordering,
        ) -> Result<u64, u64> {
            self.made().compare_exchange_weak(old, new, order, no)
        }
    }

    /// Loom models sequentially consistent fences, not accesses.
    fn fenced<T>(order: Ordering, done: T) -> T {
        if order == Ordering::SeqCst {
            atomic::fence(order);
        }
        done
    }

    /// The same.
    #[derive(Debug)]
    pub(crate) struct Mutex<T> {
        start: std::sync::Mutex<Option<T>>,
        made: OnceLock<loom::sync::Mutex<T>>,
    }

    impl<T> Mutex<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self { start: std::sync::Mutex::new(Some(value)), made: OnceLock::new() }
        }
        pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
            let start =
                || self.start.lock().expect("nobody panics").take().expect("it is made once");
            self.made.get_or_init(|| loom::sync::Mutex::new(start())).lock()
        }
    }

    /// What a mutex is for. Loom panics if one gets here while another does, or without having
    /// synchronised with the one that was here before.
    #[derive(Default)]
    pub(crate) struct Inside {
        cell: UnsafeCell<()>,
        visits: usize,
    }

    // SAFETY: `visit` takes `&mut self`, and the rest only reads.
    #[allow(unsafe_code)]
    unsafe impl Sync for Inside {}

    impl Inside {
        pub(crate) fn visit(&mut self) {
            self.cell.with_mut(|_| ());
            self.visits += 1;
        }
        pub(crate) fn visits(&self) -> usize {
            self.cell.with(|_| ());
            self.visits
        }
    }
}

/// Explores, with so many preemptions at most: switches away from a thread that could go on.
fn explore(preemptions: impl Into<Option<usize>>, run: fn()) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions.into();
    model.check(run);
}

#[test]
fn two_threads() {
    explore(None, parking::values::<2>);
    explore(None, || parking::passages::<2>(1, 1));
    explore(None, || parking::passages::<2>(2, 1));
    explore(6, || parking::passages::<2>(1, 2));
    explore(6, || parking::passages::<2>(2, 2));
}

#[test]
fn three_threads() {
    explore(4, || parking::passages::<3>(1, 1));
    explore(4, || parking::passages::<3>(2, 1));
    explore(4, parking::values::<3>);
}

#[test]
fn another_waker() {
    explore(None, || parking::another_waker::<2>(1));
    explore(4, || parking::another_waker::<3>(1));
    explore(4, || parking::another_waker::<3>(2));
}

#[test]
fn a_task_that_is_cancelled() {
    explore(None, || parking::cancelled::<2>(1));
    explore(4, || parking::cancelled::<3>(1));
    explore(4, || parking::cancelled::<3>(2));
}

#[test]
fn a_place_that_is_dropped() {
    explore(None, || parking::abandoned::<2>(1, 1));
    explore(None, || parking::abandoned::<2>(1, 2));
    explore(4, || parking::abandoned::<3>(1, 1));
    explore(4, || parking::abandoned::<3>(2, 2));
}

#[test]
fn a_thread_that_is_late() {
    explore(None, || parking::late::<2>(1, false));
    explore(None, || parking::late::<2>(1, true));
    explore(4, || parking::late::<3>(1, false));
    explore(4, || parking::late::<3>(1, true));
}

#[test]
fn a_holder_that_panics() {
    explore(None, || parking::panics::<2>(1));
    explore(4, || parking::panics::<3>(1));
}

#[test]
fn newcomers_that_barge() {
    explore(None, || parking::barges::<2>(1, 1, false));
    explore(None, || parking::barges::<2>(1, 1, true));
    explore(4, || parking::barges::<2>(1, 2, false));
    explore(3, || parking::barges::<3>(1, 1, false));
    explore(3, || parking::barges::<3>(1, 1, true));
}

#[test]
fn those_of_two_sessions_and_alone() {
    explore(4, parking::alone::<3>);
    explore(None, || parking::sessions::<2>(1, 0, false));
    explore(None, || parking::sessions::<2>(1, 0, true));
    explore(4, || parking::sessions::<2>(2, 0, false));
    explore(3, || parking::sessions::<3>(1, 0, false));
    explore(3, || parking::sessions::<3>(1, 0, true));
    explore(3, || parking::sessions::<3>(1, 1, false));
}
