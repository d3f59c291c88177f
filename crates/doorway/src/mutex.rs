//! A fair mutex with a value inside: one thread or task at a time, first come, first served.

#![allow(unsafe_code)]

use std::{
    cell::UnsafeCell,
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    sync::Arc,
    task::Waker,
    time::Instant,
};

use crate::{
    place::{Door, Late, PlaceIn},
    queue::{Queue, Standing},
};

/// A mutex around a value: one thread or task at a time, first come, first served.
///
/// ```
/// let counter = doorway::Mutex::new(0);
/// *counter.lock() += 1;
/// let place = counter.enter(); // the doorway: never blocks; the place in the queue is fixed
/// *place.wait() += 1; // or `place.await`, or `place.wait_timeout(…)`
/// assert_eq!(counter.into_inner(), 2);
/// ```
///
/// Besides the value it takes 48 bytes:
///
/// ```
/// # #[cfg(target_pointer_width = "64")]
/// assert_eq!(size_of::<doorway::Mutex<()>>(), 48);
/// ```
///
/// It promises what [`Semaphore`](crate::Semaphore) promises of one slot, and no more. In
/// particular all threads and tasks that call [`enter`](Self::enter) or [`lock`](Self::lock) are
/// granted in strict FIFO order. There is no poisoning: when a holder panics, the next holder finds
/// the value as the panic left it.
pub struct Mutex<T: ?Sized> {
    queue: Queue,
    value: UnsafeCell<T>,
}

// SAFETY: the queue lets one thread at a time access the value, whichever thread that is; so it is
// as if the value were sent from one thread to the next.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// SAFETY: the value is owned.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}

/// A place in the queue that borrows the mutex.
pub type Place<'a, T> = PlaceIn<&'a Mutex<T>>;
/// A place in the queue that shares ownership of the mutex.
pub type OwnedPlace<T> = PlaceIn<Arc<Mutex<T>>>;
/// A guard that borrows the mutex.
pub type Guard<'a, T> = GuardOf<T, &'a Mutex<T>>;
/// A guard that shares ownership of the mutex.
pub type OwnedGuard<T> = GuardOf<T, Arc<Mutex<T>>>;

impl<T> Mutex<T> {
    /// Creates a mutex around a value.
    pub const fn new(value: T) -> Self {
        Self { queue: Queue::new(1), value: UnsafeCell::new(value) }
    }

    /// Creates a mutex whose newcomers may take the value ahead of waiters: more throughput, no
    /// FIFO. See [`barging`](crate::barging).
    pub const fn barging(value: T) -> crate::barging::Mutex<T> {
        crate::barging::Mutex::new(value)
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// The doorway: takes a place in the queue. Never blocks.
    #[inline]
    pub fn enter(&self) -> Place<'_, T> {
        PlaceIn::new(self, self.queue.enter(1))
    }

    /// Takes a place as [`enter`](Self::enter) does, and shares ownership of the mutex.
    pub fn enter_owned(self: Arc<Self>) -> OwnedPlace<T> {
        let standing = self.queue.enter(1);
        PlaceIn::new(self, standing)
    }

    /// Waits for the value: `enter().wait()`.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        let standing = self.queue.enter(1);
        if standing.enabled {
            return GuardOf { mutex: self, value: PhantomData };
        }
        Place::new(self, standing).wait()
    }

    /// Acquires the value if no guard exists and no place waits for it.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.queue.try_enter(1).map(|_| GuardOf { mutex: self, value: PhantomData })
    }

    /// Returns the number of places in the queue. Dropped places count until the grants pass them.
    pub fn waiters(&self) -> usize {
        self.queue.waiters()
    }

    /// Returns the value: the exclusive borrow shows that no guard exists.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = f.debug_struct("Mutex");
        match self.try_lock() {
            Some(value) => all.field("value", &&*value),
            None => all.field("value", &format_args!("<taken>")),
        };
        all.field("waiters", &self.waiters()).finish()
    }
}

impl<T: ?Sized> Door for Mutex<T> {
    type Standing = Standing;
    type Guard<M: Deref<Target = Self>> = GuardOf<T, M>;

    #[inline(always)]
    fn wait(&self, standing: &Standing, until: Option<Instant>) -> Result<(), Late> {
        self.queue.wait(*standing, 1, until)
    }
    fn poll(&self, standing: &Standing, waker: &Waker) -> bool {
        self.queue.poll(*standing, waker)
    }
    fn is_enabled(&self, standing: &Standing) -> bool {
        self.queue.is_enabled(*standing)
    }
    #[inline]
    fn abandon(&self, standing: &Standing) {
        self.queue.abandon(*standing);
    }
    #[inline(always)]
    fn guard<M: Deref<Target = Self>>(mutex: M, _: &Standing) -> GuardOf<T, M> {
        GuardOf { mutex, value: PhantomData }
    }
}

/// Access to the value. Dropping the guard grants the value to the next waiter.
///
/// A guard may be sent to another thread and dropped there: the queue does not check which thread
/// releases it.
#[must_use = "dropping a guard hands the value to the next in line"]
pub struct GuardOf<T: ?Sized, M: Deref<Target = Mutex<T>>> {
    mutex: M,
    /// A guard acts as a `&mut T`: it is `Sync` only if `T` is.
    value: PhantomData<*mut T>,
}

// SAFETY: sending a guard sends its `&mut T` and the handle. Any thread may release it.
unsafe impl<T: ?Sized + Send, M: Deref<Target = Mutex<T>> + Send> Send for GuardOf<T, M> {}
// SAFETY: sharing a guard shares a `&T` and the handle.
unsafe impl<T: ?Sized + Sync, M: Deref<Target = Mutex<T>> + Sync> Sync for GuardOf<T, M> {}

impl<T: ?Sized, M: Deref<Target = Mutex<T>>> Deref for GuardOf<T, M> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: guards come from places whose turn has come or from a slot that was free, and
        // there is one slot: until this guard is dropped no other guard exists.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized, M: Deref<Target = Mutex<T>>> DerefMut for GuardOf<T, M> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and this guard is borrowed mutably.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized, M: Deref<Target = Mutex<T>>> Drop for GuardOf<T, M> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.queue.release(1);
    }
}

impl<T: ?Sized + fmt::Debug, M: Deref<Target = Mutex<T>>> fmt::Debug for GuardOf<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
