//! Peers for threads.

use std::sync::{Condvar, Mutex};

use super::block_on;
use crate::lock::{Blocking, Lock};

/// Defines one passage of a peer: acquires a guard, which releases when it is dropped.
macro_rules! blocking {
    ($type:ty, |$lock:ident| $take:expr) => {
        impl Blocking for $type {
            #[inline]
            fn passage(&self, inside: impl FnOnce()) {
                let $lock = self;
                let _guard = $take;
                inside();
            }
        }
    };
}

blocking!(Mutex<()>, |lock| lock.lock().expect("nobody panics inside"));
blocking!(parking_lot::Mutex<()>, |lock| lock.lock());
blocking!(parking_lot::FairMutex<()>, |lock| lock.lock());
blocking!(tokio::sync::Semaphore, |lock| block_on(lock.acquire()).expect("nobody closes it"));
blocking!(tokio::sync::Mutex<()>, |lock| lock.blocking_lock());
blocking!(async_lock::Semaphore, |lock| lock.acquire_blocking());
blocking!(async_lock::Mutex<()>, |lock| lock.lock_blocking());
blocking!(spin::Mutex<()>, |lock| lock.lock());
blocking!(TicketMutex, |lock| lock.0.lock());

/// Spin's ticket lock, which yields: if it only spun, and there were more threads than cores, the
/// next thread would not run for many time slices.
pub(crate) struct TicketMutex(spin::mutex::TicketMutex<(), spin::relax::Yield>);

impl Lock for TicketMutex {
    const NAME: &'static str = "spin TicketMutex (yields)";

    fn new(_: usize) -> Self {
        Self(spin::mutex::TicketMutex::new(()))
    }
}

/// The semaphore that a user writes where a library has none: std's mutex and condition variable.
pub(crate) struct Condition {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Lock for Condition {
    const NAME: &'static str = "std Mutex + Condvar";
    const MOST_SLOTS: usize = usize::MAX;

    fn new(k: usize) -> Self {
        Self { free: Mutex::new(k), freed: Condvar::new() }
    }
}

impl Blocking for Condition {
    fn passage(&self, inside: impl FnOnce()) {
        let lock = || self.free.lock().expect("nobody panics inside");
        let free = lock();
        *self.freed.wait_while(free, |free| *free == 0).expect("nobody panics inside") -= 1;
        inside();
        *lock() += 1;
        self.freed.notify_one();
    }
}

/// A lock that is acquired by trying, which succeeds at once: only without contention.
pub(crate) struct Try<L>(L);

macro_rules! trying {
    ($lock:ty, $name:literal, $take:ident) => {
        impl Lock for Try<$lock> {
            const NAME: &'static str = $name;

            fn new(k: usize) -> Self {
                Self(Lock::new(k))
            }
        }

        impl Blocking for Try<$lock> {
            #[inline]
            fn passage(&self, inside: impl FnOnce()) {
                let _guard = self.0.$take().expect("nobody else is there");
                inside();
            }
        }
    };
}

trying!(Mutex<()>, "std Mutex try_lock", try_lock);
trying!(parking_lot::Mutex<()>, "parking_lot Mutex try_lock", try_lock);
trying!(tokio::sync::Semaphore, "tokio Semaphore try_acquire", try_acquire);
trying!(tokio::sync::Mutex<()>, "tokio Mutex try_lock", try_lock);
trying!(async_lock::Semaphore, "async-lock Semaphore try_acquire", try_acquire);
trying!(async_lock::Mutex<()>, "async-lock Mutex try_lock", try_lock);
