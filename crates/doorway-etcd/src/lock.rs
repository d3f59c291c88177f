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
    /// When it was made: another of the same name is another lock.
    pub(crate) made: i64,
    /// So that the watch stays open from one passage to the next.
    hall: StdMutex<Option<Arc<Hall>>>,
}

impl Lock {
    pub(crate) fn new(store: &Store, keys: Keys, kind: Kind, made: i64) -> Self {
        Self { store: store.clone(), keys, kind, made, hall: StdMutex::default() }
    }

    /// What kind of lock it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.keys.name()
    }

    /// The doorway: takes a place in line. A group lock has to be asked for a session, the others
    /// not.
    ///
    /// When the future is dropped no place is left behind, whether the transaction was through or
    /// not.
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
            // The lease had ended without anybody knowing it. The next one is new.
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

    /// A permit, if one is to be had at once. It takes a place in line and leaves it again.
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

/// k slots for clients anywhere, first come, first served.
#[derive(Debug)]
pub struct Semaphore(Lock);

/// One client at a time, first come, first served.
#[derive(Debug)]
pub struct Mutex(Lock);

/// Clients of one session at a time, first come, first served.
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
            /// The doorway: takes a place in line.
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

            /// A slot, if one is free and nobody waits for it.
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
    /// The doorway: takes a place in line, for this session.
    ///
    /// # Errors
    /// When etcd does not answer, the lock has been removed, or the session has no name that fits.
    pub async fn enter(&self, session: &str) -> Result<Place, Error> {
        self.0.enter(Some(session)).await
    }

    /// Waits until those of this session may go in: `enter(session).await?.wait().await`.
    ///
    /// # Errors
    /// When etcd does not answer, the lock has been removed, the session has no name that fits, or
    /// the lease may be gone.
    pub async fn acquire(&self, session: &str) -> Result<Permit, Error> {
        self.enter(session).await?.wait().await
    }

    /// Goes in, if those of this session may and nobody waits.
    ///
    /// # Errors
    /// When etcd does not answer, the lock has been removed, or the session has no name that fits.
    pub async fn try_acquire(&self, session: &str) -> Result<Option<Permit>, Error> {
        self.0.try_enter(Some(session)).await
    }
}
