//! Group locks whose sessions have names.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    hash::Hash,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    group::{GroupLock, GuardAlone, GuardOf, PlaceAlone, Shared},
    place::PlaceIn,
};

/// A [`GroupLock`] whose sessions are named by keys of any type with `Eq` and `Hash`: strings,
/// addresses, tenants.
///
/// ```
/// let cache = doorway::KeyedGroupLock::new(0);
/// let (one, another) = (cache.lock("lisbon"), cache.lock("lisbon"));
/// assert!(cache.try_lock("porto").is_none());
/// # drop((one, another));
/// ```
///
/// It promises what a group lock promises. A key is stored as long as a holder or a waiter uses it,
/// and no longer. To find its number, entering and leaving each take a short lock.
pub struct KeyedGroupLock<K, T> {
    lock: GroupLock<T>,
    sessions: Mutex<Sessions<K>>,
}

/// The numbers of the keys in use.
#[derive(Debug)]
struct Sessions<K> {
    numbers: HashMap<Arc<K>, u32>,
    /// By number: the key, and how many places and guards use it.
    keys: Vec<(Option<Arc<K>>, usize)>,
    /// Numbers that no place or guard uses.
    free: Vec<u32>,
}

impl<K: Eq + Hash> Sessions<K> {
    fn take(&mut self, key: K) -> u32 {
        match self.numbers.entry(Arc::new(key)) {
            Entry::Occupied(known) => {
                let number = *known.get();
                self.keys[number as usize].1 += 1;
                number
            }
            Entry::Vacant(new) => {
                let key = (Some(Arc::clone(new.key())), 1);
                // There are as many numbers as there were ever keys at the same time: far fewer
                // than `u32` has.
                let number = self.free.pop().unwrap_or(self.keys.len() as u32);
                match self.keys.get_mut(number as usize) {
                    Some(old) => *old = key,
                    None => self.keys.push(key),
                }
                *new.insert(number)
            }
        }
    }

    /// Counts one user less, and returns the key if that was the last.
    fn give(&mut self, number: u32) -> Option<Arc<K>> {
        let (key, users) = &mut self.keys[number as usize];
        *users -= 1;
        if *users > 0 {
            return None;
        }
        let key = key.take()?;
        self.free.push(number);
        self.numbers.remove(&key);
        Some(key)
    }
}

/// A lock and a session of it: the handle that places and guards hold it by.
pub struct SessionOf<K: Eq + Hash, T, L: Deref<Target = KeyedGroupLock<K, T>>> {
    lock: L,
    number: u32,
}

/// A place in the queue that borrows the lock.
pub type Place<'a, K, T> = PlaceIn<SessionOf<K, T, &'a KeyedGroupLock<K, T>>, Shared>;
/// A place in the queue that shares ownership of the lock.
pub type OwnedPlace<K, T> = PlaceIn<SessionOf<K, T, Arc<KeyedGroupLock<K, T>>>, Shared>;
/// A guard, shared with other holders of the session, that borrows the lock.
pub type Guard<'a, K, T> = GuardOf<T, SessionOf<K, T, &'a KeyedGroupLock<K, T>>, Shared>;
/// A guard, shared with other holders of the session, that shares ownership of the lock.
pub type OwnedGuard<K, T> = GuardOf<T, SessionOf<K, T, Arc<KeyedGroupLock<K, T>>>, Shared>;

impl<K: Eq + Hash, T, L: Deref<Target = KeyedGroupLock<K, T>>> SessionOf<K, T, L> {
    fn new(lock: L, key: K) -> Self {
        let number = lock.sessions().take(key);
        Self { lock, number }
    }
}

impl<K: Eq + Hash, T, L: Deref<Target = KeyedGroupLock<K, T>>> Deref for SessionOf<K, T, L> {
    type Target = GroupLock<T>;

    fn deref(&self) -> &GroupLock<T> {
        &self.lock.lock
    }
}

/// Runs after the place or guard has left the lock or the queue: until then no other key may get
/// the number.
impl<K: Eq + Hash, T, L: Deref<Target = KeyedGroupLock<K, T>>> Drop for SessionOf<K, T, L> {
    fn drop(&mut self) {
        let key = self.lock.sessions().give(self.number);
        drop(key); // which may run foreign code: not under the lock
    }
}

impl<K: Eq + Hash, T> KeyedGroupLock<K, T> {
    /// Creates a group lock around a value.
    pub fn new(value: T) -> Self {
        Self::of(GroupLock::new(value))
    }

    /// Creates a group lock with [batching](GroupLock::batching).
    pub fn batching(value: T, max: u32) -> Self {
        Self::of(GroupLock::batching(value, max))
    }

    fn of(lock: GroupLock<T>) -> Self {
        let sessions = Sessions { numbers: HashMap::new(), keys: Vec::new(), free: Vec::new() };
        Self { lock, sessions: Mutex::new(sessions) }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions<K>> {
        // Only the key's own code may panic there, and it runs before anything is changed.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The doorway: takes a place in the queue for a session. Never waits for holders or waiters.
    pub fn enter(&self, key: K) -> Place<'_, K, T> {
        let session = SessionOf::new(self, key);
        let number = session.number;
        GroupLock::enter_by(session, number)
    }

    /// Takes a place as [`enter`](Self::enter) does, and shares ownership of the lock.
    pub fn enter_owned(self: Arc<Self>, key: K) -> OwnedPlace<K, T> {
        let session = SessionOf::new(self, key);
        let number = session.number;
        GroupLock::enter_by(session, number)
    }

    /// Waits for shared access to the value: `enter(key).wait()`.
    pub fn lock(&self, key: K) -> Guard<'_, K, T> {
        self.enter(key).wait()
    }

    /// Acquires shared access if no place waits and no holder has another session.
    pub fn try_lock(&self, key: K) -> Option<Guard<'_, K, T>> {
        let session = SessionOf::new(self, key);
        let number = session.number;
        GroupLock::try_lock_by(session, number)
    }

    /// The doorway: takes a place in the queue for exclusive access.
    pub fn enter_alone(&self) -> PlaceAlone<'_, T> {
        self.lock.enter_alone()
    }

    /// Waits for exclusive access to the value: `enter_alone().wait()`.
    pub fn lock_alone(&self) -> GuardAlone<'_, T> {
        self.lock.lock_alone()
    }

    /// Acquires exclusive access if no guard exists and no place waits.
    pub fn try_lock_alone(&self) -> Option<GuardAlone<'_, T>> {
        self.lock.try_lock_alone()
    }

    /// Returns the number of holders. It may have changed by the time the caller reads it.
    pub fn inside(&self) -> usize {
        self.lock.inside()
    }

    /// Returns the number of places in the queue.
    pub fn waiters(&self) -> usize {
        self.lock.waiters()
    }

    /// Returns the value: the exclusive borrow shows that no guard exists.
    pub fn get_mut(&mut self) -> &mut T {
        self.lock.get_mut()
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.lock.into_inner()
    }
}

impl<K: Eq + Hash, T: Default> Default for KeyedGroupLock<K, T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<K: Eq + Hash, T> fmt::Debug for KeyedGroupLock<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedGroupLock").field("lock", &self.lock).finish_non_exhaustive()
    }
}
