//! The mutex through the traits of [`lock_api`], for code that is written for those.

#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use crate::queue::Queue;

/// [`Mutex`](crate::Mutex) without a value, for [`lock_api::Mutex`]. Code that is written for that can switch by an alias:
///
/// ```
/// type Mutex<T> = lock_api::Mutex<doorway::RawMutex, T>;
/// type MutexGuard<'a, T> = lock_api::MutexGuard<'a, doorway::RawMutex, T>;
///
/// let counter = Mutex::new(0);
/// let mut guard: MutexGuard<'_, i32> = counter.lock();
/// *guard += 1;
/// lock_api::MutexGuard::unlock_fair(guard); // as is every unlock here
/// ```
///
/// Every `lock` stands in line, first come, first served, and every `unlock` is fair.
#[derive(Debug)]
pub struct RawMutex(Queue);

// SAFETY: the queue has one slot. `lock` returns, and `try_lock` says yes, only with that slot taken, and `unlock` gives it back.
unsafe impl lock_api::RawMutex for RawMutex {
    // A new one each time, as this trait asks for.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self(Queue::new(1));

    /// A guard may be sent: the queue does not ask who gives the slot back.
    type GuardMarker = lock_api::GuardSend;

    #[inline]
    fn lock(&self) {
        let place = self.0.enter(1);
        let waited = self.0.wait(place, 1, None);
        debug_assert!(waited.is_ok(), "nobody is late who has no limit");
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.try_enter(1).is_some()
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.0.release(1);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.free() == 0
    }
}

// SAFETY: as above; there is no other way to unlock than a fair one.
unsafe impl lock_api::RawMutexFair for RawMutex {
    #[inline]
    unsafe fn unlock_fair(&self) {
        self.0.release(1);
    }
}

// SAFETY: as above: only who is not late has the slot. Who is late gives its place up.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, limit: Duration) -> bool {
        match Instant::now().checked_add(limit) {
            Some(until) => self.try_lock_until(until),
            None => {
                lock_api::RawMutex::lock(self);
                true
            }
        }
    }

    fn try_lock_until(&self, until: Instant) -> bool {
        let place = self.0.enter(1);
        let waited = self.0.wait(place, 1, Some(until)).is_ok();
        if !waited {
            self.0.abandon(place);
        }
        waited
    }
}
