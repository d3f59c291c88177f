//! Any number at a time, as long as all ask for the same session, first come, first served.

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
    hall::{Hall, Name, OWN, Session},
    place::{Door, Late, PlaceIn},
};

/// A value that any number of threads and tasks share as long as they ask for the same *session*;
/// those who ask for different ones exclude one another. Who asks for a session of its own has the
/// value for itself.
///
/// ```
/// let table = doorway::GroupLock::new(vec![1, 2, 3]);
/// {
///     let (one, another) = (table.lock(7), table.lock(7)); // the same session: together
///     assert_eq!(one.len() + another.len(), 6);
///     assert!(table.try_lock(8).is_none()); // another one: not now
/// }
/// table.lock_alone().push(4); // a session of one's own: `&mut`
/// let place = table.enter(8); // the doorway: never waits for those inside; the place in line is fixed
/// assert_eq!(place.wait().len(), 4); // or `place.await`, or `place.wait_timeout(…)`
/// ```
///
/// A readers-writer lock is the special case of one session for all readers, and one of its own for
/// each writer.
///
/// # Promises
///
/// - Never are two inside who have asked for different sessions.
/// - **FCFS**: who is through [`enter`](Self::enter) before another begins it, and asks for a
///   different session, goes in before that one. In particular writers cannot be kept out by
///   readers who keep coming, nor the other way round. Threads and tasks stand in one line.
///   [`try_lock`](Self::try_lock) overtakes nobody.
/// - As long as nobody asks for another session, nobody waits for those inside.
/// - Nothing is lost to a place that is dropped, a future that is cancelled or a holder that
///   panics. No wake-up is lost.
/// - Where nobody waits, coming and going are one atomic instruction each: no system call, no
///   allocation.
///
/// With [`batching`](Self::batching), and only then, some may pass others in line.
///
/// Beside the value it has 56 bytes:
///
/// ```
/// # #[cfg(target_pointer_width = "64")]
/// assert_eq!(size_of::<doorway::GroupLock<()>>(), 56);
/// ```
///
/// The order is that of [`engines::group_lock`](doorway_core::engines::group_lock), which the
/// checker explores: the functions that run here are those that it runs.
///
/// # What is not promised
///
/// - A place whose turn has come counts as inside from then on, whether it is looked at or not; so
///   does one that is forgotten (`mem::forget`). Drop places that you do not need.
/// - Nothing is poisoned: when a holder panics the others find the value as it was left.
/// - Who asks for a session twice in one thread, with one of another session in line between, waits
///   for itself.
/// - Who comes or leaves while somebody waits takes a lock of the standard library for some
///   instructions. That one promises no order among threads that come in the same instant.
pub struct GroupLock<T: ?Sized> {
    hall: Hall,
    value: UnsafeCell<T>,
}

// SAFETY: those inside share the value, or one of them has it for itself, whichever thread that is.
unsafe impl<T: ?Sized + Send + Sync> Sync for GroupLock<T> {}
// SAFETY: the value is owned.
unsafe impl<T: ?Sized + Send> Send for GroupLock<T> {}

/// Whoever asks for the same session shares the value.
#[derive(Debug)]
pub enum Shared {}
/// A session of one's own.
#[derive(Debug)]
pub enum Alone {}

/// A place in line that borrows the lock.
pub type Place<'a, T> = PlaceIn<&'a GroupLock<T>, Shared>;
/// A place in line that shares the lock.
pub type OwnedPlace<T> = PlaceIn<Arc<GroupLock<T>>, Shared>;
/// A place in line for a session of one's own that borrows the lock.
pub type PlaceAlone<'a, T> = PlaceIn<&'a GroupLock<T>, Alone>;
/// A place in line for a session of one's own that shares the lock.
pub type OwnedPlaceAlone<T> = PlaceIn<Arc<GroupLock<T>>, Alone>;
/// The value, shared with others of the session, as long as the lock is borrowed.
pub type Guard<'a, T> = GuardOf<T, &'a GroupLock<T>, Shared>;
/// The value, shared with others of the session, with a share in the lock.
pub type OwnedGuard<T> = GuardOf<T, Arc<GroupLock<T>>, Shared>;
/// The value for oneself, as long as the lock is borrowed.
pub type GuardAlone<'a, T> = GuardOf<T, &'a GroupLock<T>, Alone>;
/// The value for oneself, with a share in the lock.
pub type OwnedGuardAlone<T> = GuardOf<T, Arc<GroupLock<T>>, Alone>;

impl<T> GroupLock<T> {
    /// A group lock around a value.
    pub const fn new(value: T) -> Self {
        Self { hall: Hall::new(0), value: UnsafeCell::new(value) }
    }

    /// A group lock that may let later ones pass: as long as nobody in line is passed more than
    /// `max` times, who asks for the session that is on goes in, and when the session changes all
    /// who wait for the next one go in together. That makes for fewer changes of the session, and
    /// gives up FCFS by that much; nobody starves.
    ///
    /// ```
    /// let table = doorway::GroupLock::batching("value", 1);
    /// let one = table.lock(1);
    /// let place = table.enter(2);
    /// let later = table.enter(1);
    /// assert!(later.is_enabled()); // it has passed session 2
    /// assert!(!table.enter(1).is_enabled()); // but that one is not passed again
    /// # drop((one, later)); place.wait();
    /// ```
    pub const fn batching(value: T, max: u32) -> Self {
        Self { hall: Hall::new(max), value: UnsafeCell::new(value) }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> GroupLock<T> {
    /// The doorway: takes a place in line for a session. Never waits for those inside or in line.
    ///
    /// # Panics
    /// If the session is `u32::MAX`, which has no place in the lock's word.
    #[inline]
    pub fn enter(&self, session: u32) -> Place<'_, T> {
        Self::enter_by(self, session)
    }

    /// The same, with a place that can be sent anywhere.
    pub fn enter_owned(self: Arc<Self>, session: u32) -> OwnedPlace<T> {
        Self::enter_by(self, session)
    }

    #[inline(always)]
    pub(crate) fn enter_by<L: Deref<Target = Self>>(lock: L, session: u32) -> PlaceIn<L, Shared> {
        let standing = lock.hall.enter(known(session));
        PlaceIn::new(lock, standing)
    }

    #[inline(always)]
    pub(crate) fn try_lock_by<L: Deref<Target = Self>>(
        lock: L,
        session: u32,
    ) -> Option<GuardOf<T, L, Shared>> {
        lock.hall.try_enter(known(session)).then(|| GuardOf::new(lock))
    }

    /// The doorway: takes a place in line for a session of one's own.
    #[inline]
    pub fn enter_alone(&self) -> PlaceAlone<'_, T> {
        PlaceIn::new(self, self.hall.enter(OWN))
    }

    /// The same, with a place that can be sent anywhere.
    pub fn enter_alone_owned(self: Arc<Self>) -> OwnedPlaceAlone<T> {
        let standing = self.hall.enter(OWN);
        PlaceIn::new(self, standing)
    }

    /// Waits for the value: `enter(session).wait()`.
    #[inline]
    pub fn lock(&self, session: u32) -> Guard<'_, T> {
        self.enter(session).wait()
    }

    /// Waits for the value: `enter_alone().wait()`.
    #[inline]
    pub fn lock_alone(&self) -> GuardAlone<'_, T> {
        self.enter_alone().wait()
    }

    /// The value, if nobody waits for it and nobody inside has asked for another session.
    #[inline]
    pub fn try_lock(&self, session: u32) -> Option<Guard<'_, T>> {
        Self::try_lock_by(self, session)
    }

    /// The value, if nobody has it and nobody waits for it.
    #[inline]
    pub fn try_lock_alone(&self) -> Option<GuardAlone<'_, T>> {
        self.hall.try_enter(OWN).then(|| GuardOf::new(self))
    }

    /// How many are inside. It may have changed by the time that you know.
    pub fn inside(&self) -> usize {
        self.hall.inside()
    }

    /// Which session is on: `None` if nobody is inside, or somebody alone.
    pub fn session(&self) -> Option<u32> {
        self.hall.session().filter(|session| *session != OWN).map(|session| session.0)
    }

    /// How many places there are in line.
    pub fn waiters(&self) -> usize {
        self.hall.waiters()
    }

    /// The value: nobody else can have it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

#[inline(always)]
fn known(session: u32) -> Session {
    assert!(session != OWN.0, "a session is any number but u32::MAX");
    Session(session)
}

impl<T: Default> Default for GroupLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized> fmt::Debug for GroupLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupLock")
            .field("session", &self.session())
            .field("inside", &self.inside())
            .field("waiters", &self.waiters())
            .finish_non_exhaustive()
    }
}

impl<T: ?Sized, K> Door<K> for GroupLock<T> {
    /// Where it will be told, if it has to wait.
    type Standing = Option<Name>;
    type Guard<L: Deref<Target = Self>> = GuardOf<T, L, K>;

    #[inline(always)]
    fn wait(&self, standing: &Option<Name>, until: Option<Instant>) -> Result<(), Late> {
        self.hall.wait(standing.as_ref(), until)
    }
    fn poll(&self, standing: &Option<Name>, waker: &Waker) -> bool {
        self.hall.poll(standing.as_ref(), waker)
    }
    fn is_enabled(&self, standing: &Option<Name>) -> bool {
        standing.as_ref().is_none_or(Name::is_in)
    }
    #[inline]
    fn abandon(&self, standing: &Option<Name>) {
        self.hall.abandon(standing.as_ref());
    }
    #[inline(always)]
    fn guard<L: Deref<Target = Self>>(lock: L, _: &Option<Name>) -> GuardOf<T, L, K> {
        GuardOf::new(lock)
    }
}

/// The value. Dropping this leaves; the last one to leave lets the next in line in.
///
/// It may be sent to another thread and dropped there: the lock does not ask who it is.
#[must_use = "dropping a guard leaves"]
pub struct GuardOf<T: ?Sized, L: Deref<Target = GroupLock<T>>, K> {
    lock: L,
    kind: PhantomData<(K, *mut T)>,
}

// SAFETY: sending such a guard sends a `&T` and the handle. Leaving is done by whoever has the
// guard.
unsafe impl<T: ?Sized + Sync, L: Deref<Target = GroupLock<T>> + Send> Send
    for GuardOf<T, L, Shared>
{
}
// SAFETY: sending such a guard sends a `&mut T` and the handle.
unsafe impl<T: ?Sized + Send, L: Deref<Target = GroupLock<T>> + Send> Send
    for GuardOf<T, L, Alone>
{
}
// SAFETY: sharing a guard of either kind shares a `&T` and the handle.
unsafe impl<T: ?Sized + Sync, L: Deref<Target = GroupLock<T>> + Sync, K> Sync for GuardOf<T, L, K> {}

impl<T: ?Sized, L: Deref<Target = GroupLock<T>>, K> GuardOf<T, L, K> {
    #[inline(always)]
    fn new(lock: L) -> Self {
        Self { lock, kind: PhantomData }
    }
}

impl<T: ?Sized, L: Deref<Target = GroupLock<T>>, K> Deref for GuardOf<T, L, K> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: guards come from places whose turn has come or from a hall that admitted them.
        // Until this one is dropped nobody is inside with a session of its own, except this one if
        // it has such a session.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized, L: Deref<Target = GroupLock<T>>> DerefMut for GuardOf<T, L, Alone> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: it has a session of its own, so nobody else is inside until it is dropped; and it
        // is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized, L: Deref<Target = GroupLock<T>>, K> Drop for GuardOf<T, L, K> {
    #[inline]
    fn drop(&mut self) {
        self.lock.hall.release();
    }
}

impl<T: ?Sized + fmt::Debug, L: Deref<Target = GroupLock<T>>, K> fmt::Debug for GuardOf<T, L, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
