//! A store: locks by name.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use tokio::sync::Mutex;

use crate::{
    Client, Config, Error, GroupLock, Kind, Lock, Mutex as MutexLock, Semaphore,
    cfg::Cfg,
    hall::Hall,
    keys::{Keys, MOST, ROOT},
    lease::Lease,
    proto::etcdserverpb::{RangeRequest, TxnRequest},
    status::Note,
    txn::{all, created, get, put},
};

/// An etcd cluster with locks in it, and this client's lease there. Clones share both.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: Client,
    note: Note,
    /// `None` before this client first enters a lock.
    lease: Mutex<Option<Arc<Lease>>>,
    halls: Mutex<HashMap<String, Weak<Hall>>>,
}

impl Store {
    /// Connects to etcd.
    ///
    /// # Errors
    /// When no endpoint answers, a file cannot be read, or etcd rejects the user.
    pub async fn connect(config: Config) -> Result<Self, Error> {
        let note = Note::new(&config.command);
        let client = Client::connect(config).await?;
        Ok(Self(Arc::new(Inner { client, note, lease: Mutex::default(), halls: Mutex::default() })))
    }

    /// Returns the client that makes the requests.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    pub(crate) fn note(&self) -> &Note {
        &self.0.note
    }

    /// Opens a semaphore with this many slots, and creates it if it is missing.
    ///
    /// # Errors
    /// When something else has that name, or etcd does not answer.
    pub async fn semaphore(&self, name: &str, slots: usize) -> Result<Semaphore, Error> {
        Ok(Semaphore::new(self.open(name, Kind::Semaphore, Some(slots)).await?))
    }

    /// Opens a mutex, and creates it if it is missing.
    ///
    /// # Errors
    /// When something else has that name, or etcd does not answer.
    pub async fn mutex(&self, name: &str) -> Result<MutexLock, Error> {
        Ok(MutexLock::new(self.open(name, Kind::Mutex, Some(1)).await?))
    }

    /// Opens a group lock, and creates it if it is missing. `slots` clients of one session may hold
    /// together; `None` means any number.
    ///
    /// # Errors
    /// When something else has that name, or etcd does not answer.
    pub async fn group_lock(&self, name: &str, slots: Option<usize>) -> Result<GroupLock, Error> {
        Ok(GroupLock::new(self.open(name, Kind::GroupLock, slots).await?))
    }

    /// Opens an existing lock of any kind, to look at it or to manage it.
    ///
    /// # Errors
    /// When there is no such lock, or etcd does not answer.
    pub async fn lock(&self, name: &str) -> Result<Lock, Error> {
        let keys = Keys::new(name)?;
        let found = self.client().range(get(keys.cfg())).await?;
        let Some(kv) = found.kvs.first() else { return Err(Error::Missing(name.into())) };
        let cfg = Cfg::parse(&keys, &kv.value)?;
        Ok(Lock::new(self, keys, cfg.kind, kv.create_revision))
    }

    async fn open(&self, name: &str, kind: Kind, slots: Option<usize>) -> Result<Lock, Error> {
        let keys = Keys::new(name)?;
        if let Some(asked) = slots
            && !(1..=MOST).contains(&asked)
        {
            return Err(Error::TooMany { name: name.into(), asked, most: MOST });
        }
        let wanted = Cfg { kind, slots, drained: false };
        // Reads `cfg` in either case: an earlier request whose answer was lost may have created it.
        let txn = TxnRequest::when([created(keys.cfg(), 0)])
            .then(put(keys.cfg(), wanted.value()))
            .then(get(keys.cfg()))
            .otherwise(get(keys.cfg()));
        let answer = self.client().txn(txn).await?;
        let found = answer.reads().next().and_then(|range| range.kvs.into_iter().next());
        let Some(kv) = found else { return Err(Error::Missing(name.into())) };
        let cfg = Cfg::parse(&keys, &kv.value)?;
        if cfg.kind != kind {
            return Err(Error::Kind { name: name.into(), found: cfg.kind, asked: kind });
        }
        if slots.is_some() && cfg.slots != slots {
            return Err(Error::Slots { name: name.into(), found: cfg.slots, asked: slots });
        }
        Ok(Lock::new(self, keys, cfg.kind, kv.create_revision))
    }

    /// Returns the names of the locks, in order.
    ///
    /// # Errors
    /// When etcd does not answer.
    pub async fn names(&self) -> Result<Vec<String>, Error> {
        let found = self.client().range(RangeRequest { keys_only: true, ..all(ROOT) }).await?;
        let name = |key: &[u8]| {
            let name = str::from_utf8(key).ok()?.strip_prefix(ROOT)?.strip_suffix("/cfg")?;
            (!name.contains('/')).then(|| name.to_string())
        };
        let mut names: Vec<_> = found.kvs.iter().filter_map(|kv| name(&kv.key)).collect();
        names.sort();
        Ok(names)
    }

    /// Gives everything back at once: places, slots and the lease. A process that ends soon should
    /// wait for this: a dropped permit is released in the background, which ends with the process.
    ///
    /// # Errors
    /// When etcd does not answer. Then the lease ends by itself.
    pub async fn close(&self) -> Result<(), Error> {
        match self.0.lease.lock().await.take() {
            Some(lease) => lease.revoke().await,
            None => Ok(()),
        }
    }

    /// Returns the lease; a new one if there is none, or if it may be gone.
    async fn lease(&self) -> Result<Arc<Lease>, Error> {
        let mut lease = self.0.lease.lock().await;
        match &*lease {
            Some(lease) if !lease.is_lost() => Ok(lease.clone()),
            _ => Ok(lease.insert(Lease::grant(self.client()).await?).clone()),
        }
    }

    /// Returns the replica of a lock, with the current lease.
    pub(crate) async fn hall(&self, keys: &Keys) -> Result<Arc<Hall>, Error> {
        let lease = self.lease().await?;
        let mut halls = self.0.halls.lock().await;
        if let Some(hall) = halls.get(keys.name()).and_then(Weak::upgrade)
            && hall.lease.id == lease.id
        {
            return Ok(hall);
        }
        let hall = Hall::open(self.client(), &lease, keys).await?;
        halls.retain(|_, hall| hall.strong_count() > 0);
        halls.insert(keys.name().into(), Arc::downgrade(&hall));
        Ok(hall)
    }
}
