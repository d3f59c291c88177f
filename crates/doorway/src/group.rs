//! A fair group lock: holders of the same session share a value, first come, first served.

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

/// A group lock: threads and tasks share its value as long as all ask for the same *session*.
/// Threads and tasks of different sessions exclude one another. A thread or task that asks for a
/// session of its own has the value exclusively.
///
/// ```
/// let table = doorway::GroupLock::new(vec![1, 2, 3]);
/// {
///     let (one, another) = (table.lock(7), table.lock(7)); // the same session: shared
///     assert_eq!(one.len() + another.len(), 6);
///     assert!(table.try_lock(8).is_none()); // another session: refused now
/// }
/// table.lock_alone().push(4); // exclusive: `&mut`
/// let place = table.enter(8); // the doorway: never waits for holders; fixes the place
/// assert_eq!(place.wait().len(), 4); // or `place.await`, or `place.wait_timeout(…)`
/// ```
///
/// A readers-writer lock is a special case: all readers ask for one session, and each writer asks
/// for a session of its own.
///
/// # Promises
///
/// - Two holders never have different sessions.
/// - **FCFS**: if one [`enter`](Self::enter) returns before another begins, and the two ask for
///   different sessions, the first is granted first. In particular a stream of readers cannot keep
///   a writer out, nor a stream of writers a reader. Threads and tasks wait in one queue.
///   [`try_lock`](Self::try_lock) overtakes no waiter.
/// - As long as no thread or task asks for another session, none waits for the holders.
/// - Nothing is lost to a place that is dropped, a future that is cancelled or a holder that
///   panics. No wake-up is lost.
/// - Where no place waits, acquiring and releasing take one atomic instruction each: no system
///   call, no allocation.
///
/// Only with [`batching`](Self::batching) may some places overtake others in the queue.
///
/// Besides the value it takes 56 bytes:
///
/// ```
/// # #[cfg(target_pointer_width = "64")]
/// assert_eq!(size_of::<doorway::GroupLock<()>>(), 56);
/// ```
///
/// The order of grants is that of [`engines::group_lock`](doorway_core::engines::group_lock), which
/// the checker explores: the checker runs the same functions as this type.
///
/// # What is not promised
///
/// - A place whose turn has come counts as a holder from then on, even if no thread or task waits
///   on it. So does a place that is forgotten (`mem::forget`). Drop places that you do not need.
/// - There is no poisoning: when a holder panics, later holders find the value as the panic left
///   it.
/// - A thread that asks for a session twice, with a place of another session in the queue in
///   between, waits for itself.
/// - While a place waits, a thread that enters or leaves takes a lock of the standard library for
///   some instructions. That lock promises no order among threads that take it at the same moment.
pub struct GroupLock<T: ?Sized> {
    hall: Hall,
    value: UnsafeCell<T>,
}

// SAFETY: holders share the value, or one holder has it exclusively, whichever thread that is.
unsafe impl<T: ?Sized + Send + Sync> Sync for GroupLock<T> {}
// SAFETY: the value is owned.
unsafe impl<T: ?Sized + Send> Send for GroupLock<T> {}

/// Marks a place or guard of a session: holders of the same session share the value.
#[derive(Debug)]
pub enum Shared {}
/// Marks a place or guard with a session of its own: it has the value exclusively.
#[derive(Debug)]
pub enum Alone {}

/// A place in the queue for a session that borrows the lock.
pub type Place<'a, T> = PlaceIn<&'a GroupLock<T>, Shared>;
/// A place in the queue for a session that shares ownership of the lock.
pub type OwnedPlace<T> = PlaceIn<Arc<GroupLock<T>>, Shared>;
/// A place in the queue for exclusive access that borrows the lock.
pub type PlaceAlone<'a, T> = PlaceIn<&'a GroupLock<T>, Alone>;
/// A place in the queue for exclusive access that shares ownership of the lock.
pub type OwnedPlaceAlone<T> = PlaceIn<Arc<GroupLock<T>>, Alone>;
/// A guard, shared with other holders of the session, that borrows the lock.
pub type Guard<'a, T> = GuardOf<T, &'a GroupLock<T>, Shared>;
/// A guard, shared with other holders of the session, that shares ownership of the lock.
pub type OwnedGuard<T> = GuardOf<T, Arc<GroupLock<T>>, Shared>;
/// An exclusive guard that borrows the lock.
pub type GuardAlone<'a, T> = GuardOf<T, &'a GroupLock<T>, Alone>;
/// An exclusive guard that shares ownership of the lock.
pub type OwnedGuardAlone<T> = GuardOf<T, Arc<GroupLock<T>>, Alone>;

impl<T> GroupLock<T> {
    /// Creates a group lock around a value.
    pub const fn new(value: T) -> Self {
        Self { hall: Hall::new(0), value: UnsafeCell::new(value) }
    }

    /// Creates a group lock that may let newcomers overtake waiters, each waiter at most `max`
    /// times.
    ///
    /// As long as no waiter has been overtaken more than `max` times, a newcomer that asks for the
    /// current session is granted at once. When the session changes, all waiters of the next
    /// session are granted together. So the session changes less often. FCFS is given up by that
    /// much; no waiter starves.
    ///
    /// ```
    /// let table = doorway::GroupLock::batching("value", 1);
    /// let one = table.lock(1);
    /// let place = table.enter(2);
    /// let later = table.enter(1);
    /// assert!(later.is_enabled()); // it has overtaken session 2
    /// assert!(!table.enter(1).is_enabled()); // which is not overtaken again
    /// # drop((one, later)); place.wait();
    /// ```
    pub const fn batching(value: T, max: u32) -> Self {
        Self { hall: Hall::new(max), value: UnsafeCell::new(value) }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> GroupLock<T> {
    /// The doorway: takes a place in the queue for a session. Never waits for holders or waiters.
    ///
    /// # Panics
    /// If the session is `u32::MAX`, for which the lock's word has no room.
    #[inline]
    pub fn enter(&self, session: u32) -> Place<'_, T> {
        Self::enter_by(self, session)
    }

    /// Takes a place as [`enter`](Self::enter) does, and shares ownership of the lock.
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

    /// The doorway: takes a place in the queue for exclusive access.
    #[inline]
    pub fn enter_alone(&self) -> PlaceAlone<'_, T> {
        PlaceIn::new(self, self.hall.enter(OWN))
    }

    /// Takes a place as [`enter_alone`](Self::enter_alone) does, and shares ownership of the lock.
    pub fn enter_alone_owned(self: Arc<Self>) -> OwnedPlaceAlone<T> {
        let standing = self.hall.enter(OWN);
        PlaceIn::new(self, standing)
    }

    /// Waits for shared access to the value: `enter(session).wait()`.
    #[inline]
    pub fn lock(&self, session: u32) -> Guard<'_, T> {
        self.enter(session).wait()
    }

    /// Waits for exclusive access to the value: `enter_alone().wait()`.
    #[inline]
    pub fn lock_alone(&self) -> GuardAlone<'_, T> {
        self.enter_alone().wait()
    }

    /// Acquires shared access if no place waits and no holder has another session.
    #[inline]
    pub fn try_lock(&self, session: u32) -> Option<Guard<'_, T>> {
        Self::try_lock_by(self, session)
    }

    /// Acquires exclusive access if no guard exists and no place waits.
    #[inline]
    pub fn try_lock_alone(&self) -> Option<GuardAlone<'_, T>> {
        self.hall.try_enter(OWN).then(|| GuardOf::new(self))
    }

    /// Returns the number of holders. It may have changed by the time the caller reads it.
    pub fn inside(&self) -> usize {
        self.hall.inside()
    }

    /// Returns the current session: `None` if there is no holder, or an exclusive one.
    pub fn session(&self) -> Option<u32> {
        self.hall.session().filter(|session| *session != OWN).map(|session| session.0)
    }

    /// Returns the number of places in the queue.
    pub fn waiters(&self) -> usize {
        self.hall.waiters()
    }

    /// Returns the value: the exclusive borrow shows that no guard exists.
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
    /// Where the place learns of its grant, if it has to wait.
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

/// Access to the value. Dropping the guard releases it; the last holder's release grants the next
/// waiters.
///
/// A guard may be sent to another thread and dropped there: the lock does not check which thread
/// releases it.
#[must_use = "dropping a guard leaves"]
pub struct GuardOf<T: ?Sized, L: Deref<Target = GroupLock<T>>, K> {
    lock: L,
    kind: PhantomData<(K, *mut T)>,
}

// SAFETY: sending such a guard sends a `&T` and the handle. Any thread may release it.
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
        // SAFETY: guards come from places whose turn has come or from a lock that granted them at
        // once. Until this guard is dropped there is no holder with a session of its own, except
        // this guard if it has such a session.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized, L: Deref<Target = GroupLock<T>>> DerefMut for GuardOf<T, L, Alone> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard has a session of its own, so there is no other holder until it is
        // dropped; and it is borrowed mutably.
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
