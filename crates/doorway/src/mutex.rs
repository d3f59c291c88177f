//! One at a time, first come, first served, with what they come for inside.

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

/// A value that one thread or task at a time has for itself, first come, first served.
///
/// ```
/// let counter = doorway::Mutex::new(0);
/// *counter.lock() += 1;
/// let place = counter.enter(); // the doorway: never blocks; the place in line is fixed
/// *place.wait() += 1; // or `place.await`, or `place.wait_timeout(…)`
/// assert_eq!(counter.into_inner(), 2);
/// ```
///
/// Beside the value it has 48 bytes:
///
/// ```
/// # #[cfg(target_pointer_width = "64")]
/// assert_eq!(size_of::<doorway::Mutex<()>>(), 48);
/// ```
///
/// What is promised, and what is not, is what [`Semaphore`](crate::Semaphore) promises of one slot.
/// In particular: strict FIFO between all who come through [`enter`](Self::enter) or
/// [`lock`](Self::lock), threads and tasks alike, and no poisoning: when a holder panics, the next
/// one finds the value as it was left.
pub struct Mutex<T: ?Sized> {
    queue: Queue,
    value: UnsafeCell<T>,
}

// SAFETY: the queue lets one at a time have the value, whichever thread that is; so it is as if the
// value were sent from one to the next.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// SAFETY: the value is owned.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}

/// A place in line that borrows the mutex.
pub type Place<'a, T> = PlaceIn<&'a Mutex<T>>;
/// A place in line that shares the mutex.
pub type OwnedPlace<T> = PlaceIn<Arc<Mutex<T>>>;
/// The value, as long as the mutex is borrowed.
pub type Guard<'a, T> = GuardOf<T, &'a Mutex<T>>;
/// The value, with a share in the mutex.
pub type OwnedGuard<T> = GuardOf<T, Arc<Mutex<T>>>;

impl<T> Mutex<T> {
    /// A mutex around a value.
    pub const fn new(value: T) -> Self {
        Self { queue: Queue::new(1), value: UnsafeCell::new(value) }
    }

    /// A mutex whose newcomers may take the value ahead of those in line: more throughput, no FIFO.
    /// See [`barging`](crate::barging).
    pub const fn barging(value: T) -> crate::barging::Mutex<T> {
        crate::barging::Mutex::new(value)
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// The doorway: takes a place in line. Never blocks.
    #[inline]
    pub fn enter(&self) -> Place<'_, T> {
        PlaceIn::new(self, self.queue.enter(1))
    }

    /// The same, with a place that can be sent anywhere.
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

    /// The value, if nobody has it and nobody waits for it.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.queue.try_enter(1).map(|_| GuardOf { mutex: self, value: PhantomData })
    }

    /// How many places there are in line, abandoned ones included until they are passed over.
    pub fn waiters(&self) -> usize {
        self.queue.waiters()
    }

    /// The value: nobody else can have it.
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

/// The value. Dropping this hands it to the next in line.
///
/// It may be sent to another thread and dropped there: the queue does not ask who it is.
#[must_use = "dropping a guard hands the value to the next in line"]
pub struct GuardOf<T: ?Sized, M: Deref<Target = Mutex<T>>> {
    mutex: M,
    /// Whoever has a guard has a `&mut T`: it is `Sync` only if `T` is.
    value: PhantomData<*mut T>,
}

// SAFETY: sending a guard sends its `&mut T` and the handle. Releasing is done by whoever has the
// guard.
unsafe impl<T: ?Sized + Send, M: Deref<Target = Mutex<T>> + Send> Send for GuardOf<T, M> {}
// SAFETY: sharing a guard shares a `&T` and the handle.
unsafe impl<T: ?Sized + Sync, M: Deref<Target = Mutex<T>> + Sync> Sync for GuardOf<T, M> {}

impl<T: ?Sized, M: Deref<Target = Mutex<T>>> Deref for GuardOf<T, M> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: guards come from places whose turn has come or from a slot that was free, and
        // there is one slot: until this one is dropped nobody else has the value.
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
