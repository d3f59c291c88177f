//! Management operations: resize, drain, resume, remove, and reclaiming what dead processes had.

use std::time::{Duration, Instant};

use doorway_core::engines::named_lock::{NotRemoved, Tally};

use super::{Error, Kind, Lock, memory::Mapped};

/// How long a management operation waits for the table lock, which running processes hold for less
/// than a microsecond.
const PATIENCE: Duration = Duration::from_secs(2);

fn patience() -> Option<Instant> {
    Instant::now().checked_add(PATIENCE)
}

impl Lock {
    /// Reclaims the slots and places of dead processes. Waiters do so by themselves.
    ///
    /// # Errors
    /// When the file is lost or damaged.
    pub fn reap(&self) -> Result<(), Error> {
        let (me, mut m) = (self.me()?, Mapped::new(&self.file, patience()));
        // The table lock closes the fast path, and so shows its holder.
        let closed = self.locked(&mut m, me, |_| Ok(()));
        let reaped = closed.and_then(|()| self.file.table().reap_all(&mut m, me));
        reaped.map_err(|stop| self.error(stop))
    }

    /// Changes the number of slots. A holder whose slot no longer exists keeps it until it releases
    /// it.
    ///
    /// # Errors
    /// When the lock cannot have that many, or the file is lost or damaged.
    pub fn set_slots(&self, slots: usize) -> Result<(), Error> {
        let most = if self.kind() == Kind::Mutex { 1 } else { self.capacity() };
        if slots == 0 || slots > most {
            return Err(Error::TooMany { path: self.path().into(), asked: slots, most });
        }
        self.change(|tally| tally.with_slots(slots as u16))
    }

    /// Stops granting slots. Current holders finish; waiters keep their place.
    ///
    /// # Errors
    /// When the file is lost or damaged.
    pub fn drain(&self) -> Result<(), Error> {
        self.change(|tally| tally.with_drained(true))
    }

    /// Grants slots again after [`drain`](Self::drain).
    ///
    /// # Errors
    /// When the file is lost or damaged.
    pub fn resume(&self) -> Result<(), Error> {
        self.change(|tally| tally.with_drained(false))
    }

    /// Returns whether the lock is drained.
    pub fn is_drained(&self) -> bool {
        self.tally().drained()
    }

    fn change(&self, change: impl Fn(Tally) -> Tally) -> Result<(), Error> {
        let (me, table) = (self.me()?, self.file.table());
        let mut m = Mapped::new(&self.file, patience());
        let changed = self.locked(&mut m, me, |m| {
            if table.change(m, &change)? { Ok(()) } else { Err(self.lost()) }
        });
        changed.map_err(|stop| self.error(stop))
    }

    /// Removes the lock, unless a process holds a slot or waits.
    ///
    /// # Errors
    /// [`Error::Busy`] if a process holds or waits. Also when the file is lost already or cannot be
    /// removed.
    pub fn remove(&self) -> Result<(), Error> {
        self.check()?;
        self.reap()?;
        let (me, table) = (self.me()?, self.file.table());
        self.file.remove(|| {
            let mut m = Mapped::new(&self.file, patience());
            let marked = self.locked(&mut m, me, |m| match table.remove(m)? {
                // A process that was killed before it took the name away has marked it already.
                Ok(()) | Err(NotRemoved::Already) => Ok(()),
                Err(NotRemoved::Busy { holders, waiting }) => {
                    let (holders, waiting) = (holders.into(), waiting.into());
                    Err(Error::Busy { path: self.path().into(), holders, waiting }.into())
                }
            });
            marked.map_err(|stop| self.error(stop))
        })
    }
}
