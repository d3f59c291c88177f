//! Sessions that have names.

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

/// A [`GroupLock`] whose sessions are named by values of any type that can be told apart: strings,
/// addresses, tenants.
///
/// ```
/// let cache = doorway::KeyedGroupLock::new(0);
/// let (one, another) = (cache.lock("lisbon"), cache.lock("lisbon"));
/// assert!(cache.try_lock("porto").is_none());
/// # drop((one, another));
/// ```
///
/// What is promised is what a group lock promises. A key is kept as long as somebody is inside or
/// in line by it, and no longer; to find its number a short lock is taken on the way in and on the
/// way out.
pub struct KeyedGroupLock<K, T> {
    lock: GroupLock<T>,
    sessions: Mutex<Sessions<K>>,
}

/// The numbers of keys.
#[derive(Debug)]
struct Sessions<K> {
    numbers: HashMap<Arc<K>, u32>,
    /// By number: the key, and how many use it.
    keys: Vec<(Option<Arc<K>>, usize)>,
    /// Numbers that nobody uses.
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
                // As many numbers as there ever were keys at the same time: far fewer than there
                // are.
                let number = self.free.pop().unwrap_or(self.keys.len() as u32);
                match self.keys.get_mut(number as usize) {
                    Some(old) => *old = key,
                    None => self.keys.push(key),
                }
                *new.insert(number)
            }
        }
    }

    /// Gives back the key if nobody uses it any more.
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

/// A lock and the session that somebody has asked it for; what places and guards hold it by.
pub struct SessionOf<K: Eq + Hash, T, L: Deref<Target = KeyedGroupLock<K, T>>> {
    lock: L,
    number: u32,
}

/// A place in line that borrows the lock.
pub type Place<'a, K, T> = PlaceIn<SessionOf<K, T, &'a KeyedGroupLock<K, T>>, Shared>;
/// A place in line that shares the lock.
pub type OwnedPlace<K, T> = PlaceIn<SessionOf<K, T, Arc<KeyedGroupLock<K, T>>>, Shared>;
/// The value, shared with others of the session, as long as the lock is borrowed.
pub type Guard<'a, K, T> = GuardOf<T, SessionOf<K, T, &'a KeyedGroupLock<K, T>>, Shared>;
/// The value, shared with others of the session, with a share in the lock.
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

/// Comes after leaving the lock or the line: until then nobody else may have the number.
impl<K: Eq + Hash, T, L: Deref<Target = KeyedGroupLock<K, T>>> Drop for SessionOf<K, T, L> {
    fn drop(&mut self) {
        let key = self.lock.sessions().give(self.number);
        drop(key); // which may run anybody's code: not under the lock
    }
}

impl<K: Eq + Hash, T> KeyedGroupLock<K, T> {
    /// A group lock around a value.
    pub fn new(value: T) -> Self {
        Self::of(GroupLock::new(value))
    }

    /// The same with [batching](GroupLock::batching).
    pub fn batching(value: T, max: u32) -> Self {
        Self::of(GroupLock::batching(value, max))
    }

    fn of(lock: GroupLock<T>) -> Self {
        let sessions = Sessions { numbers: HashMap::new(), keys: Vec::new(), free: Vec::new() };
        Self { lock, sessions: Mutex::new(sessions) }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions<K>> {
        // What may panic there is the key's own code, and that runs before anything is changed.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The doorway: takes a place in line for a session. Never waits for those inside or in line.
    pub fn enter(&self, key: K) -> Place<'_, K, T> {
        let session = SessionOf::new(self, key);
        let number = session.number;
        GroupLock::enter_by(session, number)
    }

    /// The same, with a place that can be sent anywhere.
    pub fn enter_owned(self: Arc<Self>, key: K) -> OwnedPlace<K, T> {
        let session = SessionOf::new(self, key);
        let number = session.number;
        GroupLock::enter_by(session, number)
    }

    /// Waits for the value: `enter(key).wait()`.
    pub fn lock(&self, key: K) -> Guard<'_, K, T> {
        self.enter(key).wait()
    }

    /// The value, if nobody waits for it and nobody inside has asked for another session.
    pub fn try_lock(&self, key: K) -> Option<Guard<'_, K, T>> {
        let session = SessionOf::new(self, key);
        let number = session.number;
        GroupLock::try_lock_by(session, number)
    }

    /// The doorway: takes a place in line for a session of one's own.
    pub fn enter_alone(&self) -> PlaceAlone<'_, T> {
        self.lock.enter_alone()
    }

    /// Waits for the value: `enter_alone().wait()`.
    pub fn lock_alone(&self) -> GuardAlone<'_, T> {
        self.lock.lock_alone()
    }

    /// The value, if nobody has it and nobody waits for it.
    pub fn try_lock_alone(&self) -> Option<GuardAlone<'_, T>> {
        self.lock.try_lock_alone()
    }

    /// How many are inside. It may have changed by the time that you know.
    pub fn inside(&self) -> usize {
        self.lock.inside()
    }

    /// How many places there are in line.
    pub fn waiters(&self) -> usize {
        self.lock.waiters()
    }

    /// The value: nobody else can have it.
    pub fn get_mut(&mut self) -> &mut T {
        self.lock.get_mut()
    }

    /// The value.
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
