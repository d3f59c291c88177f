//! A lock of any kind: what semaphore, mutex and group lock have in common.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, Mutex as StdMutex, PoisonError},
};

use crate::{Error, Kind, Permit, Place, Store, hall::Hall, keys::Keys, passage::Passage};

/// A lock of any kind.
pub struct Lock {
    pub(crate) store: Store,
    pub(crate) keys: Keys,
    kind: Kind,
    /// The revision at which it was created: a later lock of the same name is another lock.
    pub(crate) made: i64,
    /// Kept so that the watch stays open from one passage to the next.
    hall: StdMutex<Option<Arc<Hall>>>,
}

impl Lock {
    pub(crate) fn new(store: &Store, keys: Keys, kind: Kind, made: i64) -> Self {
        Self { store: store.clone(), keys, kind, made, hall: StdMutex::default() }
    }

    /// Returns the kind of the lock.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the lock's name.
    pub fn name(&self) -> &str {
        self.keys.name()
    }

    /// The doorway: takes a place in the queue. A group lock needs a session; the other locks have
    /// none.
    ///
    /// Cancel safety: dropping the future leaves no place behind, whether the transaction has
    /// succeeded or not.
    ///
    /// # Errors
    /// When etcd does not answer, the lock has been removed, or the session does not fit.
    pub async fn enter(&self, session: Option<&str>) -> Result<Place, Error> {
        let fits = match session {
            None => self.kind != Kind::GroupLock,
            Some(name) => self.kind == Kind::GroupLock && (1..64).contains(&name.len()),
        };
        if !fits {
            return Err(Error::Session(session.unwrap_or_default().into()));
        }
        match self.pass(session.unwrap_or_default()).await {
            // The lease had ended without this client's knowledge. The next one is new.
            Err(Error::Lost(_)) => self.pass(session.unwrap_or_default()).await,
            place => place,
        }
    }

    async fn pass(&self, session: &str) -> Result<Place, Error> {
        let hall = self.store.hall(&self.keys).await?;
        *self.hall.lock().unwrap_or_else(PoisonError::into_inner) = Some(hall.clone());
        let mut passage = Passage::new(hall, session, self.made);
        passage.enter(self.store.note()).await?;
        Ok(Place::new(passage))
    }

    /// Acquires a permit if one is free at once. It takes a place in the queue and leaves it again.
    pub(crate) async fn try_enter(&self, session: Option<&str>) -> Result<Option<Permit>, Error> {
        self.enter(session).await?.now().await
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("name", &self.name())
            .field("kind", &self.kind())
            .finish_non_exhaustive()
    }
}

/// A semaphore with k slots for clients on any machine, first come, first served.
#[derive(Debug)]
pub struct Semaphore(Lock);

/// A mutex: one client at a time, first come, first served.
#[derive(Debug)]
pub struct Mutex(Lock);

/// A group lock: clients of one session at a time, first come, first served.
#[derive(Debug)]
pub struct GroupLock(Lock);

macro_rules! is_a_lock {
    ($($type:ident),*) => {$(
        impl $type {
            pub(crate) fn new(lock: Lock) -> Self {
                Self(lock)
            }
        }

        impl Deref for $type {
            type Target = Lock;

            fn deref(&self) -> &Lock {
                &self.0
            }
        }
    )*};
}

is_a_lock!(Semaphore, Mutex, GroupLock);

macro_rules! knows_no_sessions {
    ($($type:ident),*) => {$(
        impl $type {
            /// The doorway: takes a place in the queue.
            ///
            /// # Errors
            /// When etcd does not answer, or the lock has been removed.
            pub async fn enter(&self) -> Result<Place, Error> {
                self.0.enter(None).await
            }

            /// Waits for a slot: `enter().await?.wait().await`.
            ///
            /// # Errors
            /// When etcd does not answer, the lock has been removed, or the lease may be gone.
            pub async fn acquire(&self) -> Result<Permit, Error> {
                self.enter().await?.wait().await
            }

            /// Acquires a slot if one is free and no client waits for it.
            ///
            /// # Errors
            /// When etcd does not answer, or the lock has been removed.
            pub async fn try_acquire(&self) -> Result<Option<Permit>, Error> {
                self.0.try_enter(None).await
            }
        }
    )*};
}

knows_no_sessions!(Semaphore, Mutex);

impl GroupLock {
    /// The doorway: takes a place in the queue for this session.
    ///
    /// # Errors
    /// When etcd does not answer, the lock has been removed, or the session's name does not fit.
    pub async fn enter(&self, session: &str) -> Result<Place, Error> {
        self.0.enter(Some(session)).await
    }

    /// Waits until this client may hold the session: `enter(session).await?.wait().await`.
    ///
    /// # Errors
    /// When etcd does not answer, the lock has been removed, the session's name does not fit, or
    /// the lease may be gone.
    pub async fn acquire(&self, session: &str) -> Result<Permit, Error> {
        self.enter(session).await?.wait().await
    }

    /// Acquires a slot if the session's clients may hold one and no client waits.
    ///
    /// # Errors
    /// When etcd does not answer, the lock has been removed, or the session's name does not fit.
    pub async fn try_acquire(&self, session: &str) -> Result<Option<Permit>, Error> {
        self.0.try_enter(Some(session)).await
    }
}
