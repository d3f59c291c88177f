//! The mutex and the group lock through the traits of [`lock_api`], for code written against those
//! traits.

#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use crate::{
    hall::{Hall, OWN, Session},
    queue::Queue,
};

/// [`Mutex`](crate::Mutex) without a value, for [`lock_api::Mutex`]. Code written for `lock_api`
/// can switch by an alias:
///
/// ```
/// type Mutex<T> = lock_api::Mutex<doorway::RawMutex, T>;
/// type MutexGuard<'a, T> = lock_api::MutexGuard<'a, doorway::RawMutex, T>;
///
/// let counter = Mutex::new(0);
/// let mut guard: MutexGuard<'_, i32> = counter.lock();
/// *guard += 1;
/// lock_api::MutexGuard::unlock_fair(guard); // every unlock here is fair
/// ```
///
/// Every `lock` waits in the queue, first come, first served, and every `unlock` is fair.
#[derive(Debug)]
pub struct RawMutex(Queue);

// SAFETY: the queue has one slot. `lock` returns, and `try_lock` returns true, only with that slot
// acquired, and `unlock` releases it.
unsafe impl lock_api::RawMutex for RawMutex {
    // A new value for each use, as this trait asks for.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self(Queue::new(1));

    /// A guard may be sent: the queue does not check which thread releases the slot.
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

// SAFETY: as above: only a caller that is not late has the slot. A late caller gives up its place.
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

/// [`GroupLock`](crate::GroupLock) without a value and with one session for all readers, for
/// [`lock_api::RwLock`]. Code written for `lock_api` can switch by an alias:
///
/// ```
/// type RwLock<T> = lock_api::RwLock<doorway::RawRwLock, T>;
///
/// let table = RwLock::new(vec![1]);
/// {
///     let (one, another) = (table.read(), table.read());
///     assert_eq!(one.len(), another.len());
/// }
/// table.write().push(2);
/// ```
///
/// Readers and writers wait in one queue, first come, first served. So a thread that holds a read
/// lock must not take another: it would wait for a writer that entered in between.
#[derive(Debug)]
pub struct RawRwLock(Hall);

/// The session of all readers.
const READ: Session = Session(0);

impl RawRwLock {
    #[inline(always)]
    fn lock(&self, session: Session) {
        let place = self.0.enter(session);
        let waited = self.0.wait(place.as_ref(), None);
        debug_assert!(waited.is_ok(), "nobody is late who has no limit");
    }

    fn try_lock_until(&self, session: Session, until: Option<Instant>) -> bool {
        let place = self.0.enter(session);
        let waited = self.0.wait(place.as_ref(), until).is_ok();
        if !waited {
            self.0.abandon(place.as_ref());
        }
        waited
    }
}

// SAFETY: the lock lets holders of the same session hold together, and a holder with a session of
// its own alone. A lock returns, and a try returns true, only when granted, and an unlock releases.
unsafe impl lock_api::RawRwLock for RawRwLock {
    // A new value for each use, as this trait asks for.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self(Hall::new(0));

    /// A guard may be sent: the lock does not check which thread releases it.
    type GuardMarker = lock_api::GuardSend;

    #[inline]
    fn lock_shared(&self) {
        self.lock(READ);
    }
    #[inline]
    fn try_lock_shared(&self) -> bool {
        self.0.try_enter(READ)
    }
    #[inline]
    unsafe fn unlock_shared(&self) {
        self.0.release();
    }
    #[inline]
    fn lock_exclusive(&self) {
        self.lock(OWN);
    }
    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        self.0.try_enter(OWN)
    }
    #[inline]
    unsafe fn unlock_exclusive(&self) {
        self.0.release();
    }
    #[inline]
    fn is_locked(&self) -> bool {
        self.0.inside() > 0
    }
    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.0.session() == Some(OWN)
    }
}

// SAFETY: as above; there is no other way to unlock than a fair one.
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    #[inline]
    unsafe fn unlock_shared_fair(&self) {
        self.0.release();
    }
    #[inline]
    unsafe fn unlock_exclusive_fair(&self) {
        self.0.release();
    }
}

// SAFETY: as above: only a caller that is not late holds. A late caller gives up its place.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    // A limit beyond what the clock can represent means no limit.
    fn try_lock_shared_for(&self, limit: Duration) -> bool {
        self.try_lock_until(READ, Instant::now().checked_add(limit))
    }
    fn try_lock_shared_until(&self, until: Instant) -> bool {
        self.try_lock_until(READ, Some(until))
    }
    fn try_lock_exclusive_for(&self, limit: Duration) -> bool {
        self.try_lock_until(OWN, Instant::now().checked_add(limit))
    }
    fn try_lock_exclusive_until(&self, until: Instant) -> bool {
        self.try_lock_until(OWN, Some(until))
    }
}
