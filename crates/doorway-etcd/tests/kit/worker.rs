//! A process that goes in again and again, says so to the store by guarded writes, and notes it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use doorway_etcd::{
    Config, Error, GroupLock, Mutex as EtcdMutex, Permit, Place, Semaphore, Store, txn,
};

use super::{
    history::{Mark, mark},
    judge::Rule,
    notes::{Note, What},
};

/// Of all leases here: the shortest that etcd grants with its own settings.
pub(crate) const TTL: Duration = Duration::from_secs(2);

pub(crate) fn config(endpoints: &[String]) -> Config {
    Config::new(endpoints).with_ttl(TTL).with_command("test")
}

/// What kind of lock, with how many slots, or for how many sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    Mutex,
    Semaphore(usize),
    Group(usize),
}

impl Which {
    pub(crate) fn rule(self) -> Rule {
        let slots = match self {
            Self::Mutex => Some(1),
            Self::Semaphore(slots) => Some(slots),
            Self::Group(_) => None,
        };
        Rule { slots, sessions: matches!(self, Self::Group(_)), drained: false }
    }
}

/// Where notes go.
#[derive(Clone)]
pub(crate) enum Notes {
    Here(Arc<Mutex<Vec<Note>>>),
    /// To the process that started this one.
    Printed,
}

impl Notes {
    pub(crate) fn here() -> Self {
        Self::Here(Arc::default())
    }

    pub(crate) fn add(&self, who: usize, what: What) {
        match self {
            Self::Here(notes) => {
                let mut notes = notes.lock().expect("nobody panics");
                notes.push(Note::now(who, what));
            }
            Self::Printed => println!("> {}", Note::now(who, what)),
        }
    }

    pub(crate) fn all(&self) -> Vec<Note> {
        match self {
            Self::Here(notes) => notes.lock().expect("nobody panics").clone(),
            Self::Printed => Vec::new(),
        }
    }
}

/// A small generator; what it gives decides what happens.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % end
    }
}

enum Lock {
    Mutex(EtcdMutex),
    Semaphore(Semaphore),
    Group(GroupLock),
}

/// One client of one lock.
pub(crate) struct Worker {
    pub(crate) who: usize,
    pub(crate) store: Store,
    name: String,
    which: Which,
    lock: Lock,
    notes: Notes,
}

impl Worker {
    pub(crate) async fn open(
        config: Config,
        name: &str,
        which: Which,
        who: usize,
        notes: &Notes,
    ) -> Result<Self, Error> {
        let store = Store::connect(config).await?;
        let lock = match which {
            Which::Mutex => Lock::Mutex(store.mutex(name).await?),
            Which::Semaphore(slots) => Lock::Semaphore(store.semaphore(name, slots).await?),
            Which::Group(_) => Lock::Group(store.group_lock(name, None).await?),
        };
        Ok(Self { who, store, name: name.to_owned(), which, lock, notes: notes.clone() })
    }

    fn note(&self, what: What) {
        self.notes.add(self.who, what);
    }

    /// The doorway.
    pub(crate) async fn enter(&self, session: usize) -> Result<Place, Error> {
        let session = if matches!(self.which, Which::Group(_)) {
            format!("s{session}")
        } else {
            String::new()
        };
        self.note(What::Asks(session.clone()));
        let place = match &self.lock {
            Lock::Mutex(mutex) => mutex.enter().await,
            Lock::Semaphore(semaphore) => semaphore.enter().await,
            Lock::Group(group) => group.enter(&session).await,
        }?;
        self.note(What::Entered(place.ticket() as i64));
        Ok(place)
    }

    /// Waits, and says that it is in.
    pub(crate) async fn go_in(&self, place: Place) -> Result<Permit, Error> {
        let ticket = place.ticket() as i64;
        let waits = tokio::time::timeout(Duration::from_secs(60), place.wait());
        let permit = match waits.await.expect("it is let in within a minute") {
            Ok(permit) => permit,
            Err(error) => {
                self.note(What::Out(ticket));
                return Err(error);
            }
        };
        let (slot, fence) = (permit.slot(), permit.fence() as i64);
        self.note(What::In { ticket, slot });
        self.write(&permit, Mark::In { ticket, slot, fence })
            .await
            .inspect_err(|_| self.note(What::Out(ticket)))?;
        Ok(permit)
    }

    /// A guarded write.
    pub(crate) async fn write(&self, permit: &Permit, what: Mark) -> Result<(), Error> {
        let (key, value) = mark(&self.name, what);
        permit.guarded([txn::put(key, value)]).await
    }

    /// Says that it is out, and leaves.
    pub(crate) async fn leave(&self, permit: Permit) -> Result<(), Error> {
        let ticket = permit.ticket() as i64;
        let marked = self.write(&permit, Mark::Out { ticket }).await;
        self.note(What::Out(ticket));
        marked?;
        permit.release().await
    }

    /// From the doorway to the exit, or only to the line and back.
    pub(crate) async fn passage(&self, random: &mut Random) -> Result<(), Error> {
        let sessions = if let Which::Group(sessions) = self.which { sessions } else { 1 };
        let place = self.enter(random.below(sessions as u64) as usize).await?;
        if random.below(16) == 0 {
            self.note(What::Out(place.ticket() as i64));
            return place.leave().await;
        }
        let permit = self.go_in(place).await?;
        tokio::time::sleep(Duration::from_micros(random.below(2000))).await;
        self.leave(permit).await
    }

    /// Passages without end, until told. What went wrong is counted by what it was, and it goes on.
    pub(crate) async fn work(&self, enough: &AtomicBool) -> Vec<Error> {
        let mut random = Random(0x5eed ^ (self.who as u64 + 1) << 32);
        let mut errors = Vec::new();
        while !enough.load(SeqCst) {
            if let Err(error) = self.passage(&mut random).await {
                errors.push(error);
            }
        }
        errors
    }
}
