//! The locks that are soaked, how they are opened, and the check that no slot of one is lost.

use std::{
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use doorway::shared::{Directory, Error, Lock, Permit};

use super::{
    page::{LIMIT, Page},
    stall::Stall,
};

/// Names of sessions.
pub(crate) const SESSIONS: [&str; 2] = ["read", "migrate"];

/// A kind of lock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Kind {
    Mutex,
    Semaphore(usize),
    /// A group lock with so many slots.
    Group(usize),
}

impl Kind {
    pub(crate) fn slots(self) -> usize {
        match self {
            Self::Mutex => 1,
            Self::Semaphore(slots) | Self::Group(slots) => slots,
        }
    }

    /// The session to ask for, where there are sessions.
    pub(crate) fn session(self, which: usize) -> Option<&'static str> {
        matches!(self, Self::Group(_)).then(|| SESSIONS[which % SESSIONS.len()])
    }
}

/// A lock that is soaked.
pub(crate) struct Spec {
    pub(crate) directory: Directory,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Its processes remove it now and then.
    pub(crate) removable: bool,
    /// Its processes never give up a place.
    pub(crate) patient: bool,
}

impl Spec {
    pub(crate) fn new(path: &Path, name: &str, kind: Kind, capacity: usize) -> Self {
        let directory = Directory::at(path).expect("the directory is ours").with_capacity(capacity);
        Self { directory, name: name.into(), kind, removable: false, patient: false }
    }

    /// Makes the lock unless it is there.
    pub(crate) fn make(&self) -> Result<(), Error> {
        let (directory, name) = (&self.directory, &self.name);
        let made = match self.kind {
            Kind::Mutex => directory.mutex(name).map(drop),
            Kind::Semaphore(slots) => directory.semaphore(name, slots).map(drop),
            Kind::Group(slots) => directory.group_lock(name, Some(slots)).map(drop),
        };
        match made {
            // Another process has changed it for a moment, or removes it.
            Err(Error::Slots { .. }) => Ok(()),
            Err(Error::Lost(_) | Error::Missing(_)) if self.removable => Ok(()),
            made => made,
        }
    }

    /// Opens the lock, and makes it if it is not there.
    pub(crate) fn open(&self) -> Result<Lock, Error> {
        let until = Instant::now() + LIMIT;
        loop {
            self.make()?;
            match self.directory.lock(&self.name) {
                Err(Error::Lost(_) | Error::Missing(_))
                    if self.removable && Instant::now() < until => {}
                opened => return opened,
            }
        }
    }
}

/// Acquires all slots of a lock that no process uses, and releases them.
///
/// A dead process that still has a slot is found at once. A live one may have one for a moment
/// longer: the child of a process that was killed.
pub(crate) fn check(page: &Page, lock: &Lock, kind: Kind) -> Result<(), String> {
    let (began, mut stall) = (Instant::now(), Stall::of_this_process());
    let mut permits: Vec<Permit<'_>> = Vec::new();
    while permits.len() < kind.slots() {
        match lock
            .try_enter(kind.session(0))
            .and_then(|place| place.map(|place| place.wait()).transpose())
        {
            Ok(Some(permit)) => permits.push(permit),
            Ok(None)
                if lock.status().holders.len() > permits.len() && began.elapsed() < 20 * LIMIT =>
            {
                sleep(Duration::from_millis(1));
                stall = Stall::of_this_process();
            }
            Ok(None) if !stall.goes_on(page) => {
                let (some, all) = (permits.len(), kind.slots());
                return Err(format!(
                    "a slot is lost: {some} of {all} acquired: {:#?}",
                    lock.status()
                ));
            }
            Ok(None) => sleep(Duration::from_micros(100)),
            Err(error) => return Err(format!("a slot cannot be acquired: {error}")),
        }
    }
    let mut slots: Vec<usize> = permits.iter().map(Permit::slot).collect();
    slots.sort_unstable();
    if slots != (0..kind.slots()).collect::<Vec<_>>() {
        return Err(format!("slots {slots:?} were granted"));
    }
    let status = lock.status();
    if (status.holders.len(), status.waiting.len(), status.drained) != (kind.slots(), 0, false) {
        return Err(format!("status is wrong while all slots are held: {status:#?}"));
    }
    if !matches!(lock.try_enter(kind.session(1)), Ok(None)) {
        return Err("a slot was granted beyond the last".into());
    }
    drop(permits);
    let status = lock.status();
    if !status.holders.is_empty() || !status.waiting.is_empty() {
        return Err(format!("status is wrong when all slots are free: {status:#?}"));
    }
    Ok(())
}
