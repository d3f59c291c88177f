//! Looking after a lock: more slots or fewer, nobody let in, removed.

use std::time::{Duration, Instant};

use doorway_core::recoverable::{NotRemoved, Tally};

use super::{Error, Kind, Lock, memory::Mapped};

/// How long a management operation waits for the table lock, which running processes hold for less than a microsecond.
const PATIENCE: Duration = Duration::from_secs(2);

fn patience() -> Option<Instant> {
    Instant::now().checked_add(PATIENCE)
}

impl Lock {
    /// Takes the rows and slots of the dead away from them. Whoever waits does so by itself.
    ///
    /// # Errors
    /// When the file is lost or damaged.
    pub fn bury_dead(&self) -> Result<(), Error> {
        let (me, mut m) = (self.me()?, Mapped::new(&self.file, patience()));
        // Taking the guard shows who holds through the gate.
        let looked = self.guarded(&mut m, me, |_| Ok(()));
        let looked = looked.and_then(|()| self.file.table().look(&mut m, me, usize::MAX));
        looked.map_err(|stop| self.error(stop))
    }

    /// Changes the number of slots. Who holds one that is no more keeps it until it leaves.
    ///
    /// # Errors
    /// When there cannot be so many, or the file is lost or damaged.
    pub fn set_slots(&self, slots: usize) -> Result<(), Error> {
        let most = if self.kind() == Kind::Mutex { 1 } else { self.capacity() };
        if slots == 0 || slots > most {
            return Err(Error::TooMany { path: self.path().into(), asked: slots, most });
        }
        self.change(|tally| tally.with_slots(slots as u16))
    }

    /// Lets nobody in any more; who is inside stays, and who waits waits.
    ///
    /// # Errors
    /// When the file is lost or damaged.
    pub fn drain(&self) -> Result<(), Error> {
        self.change(|tally| tally.with_closed(true))
    }

    /// Lets them in again.
    ///
    /// # Errors
    /// When the file is lost or damaged.
    pub fn resume(&self) -> Result<(), Error> {
        self.change(|tally| tally.with_closed(false))
    }

    /// Whether nobody is let in.
    pub fn is_drained(&self) -> bool {
        self.tally().closed()
    }

    fn change(&self, change: impl Fn(Tally) -> Tally) -> Result<(), Error> {
        let (me, table) = (self.me()?, self.file.table());
        let mut m = Mapped::new(&self.file, patience());
        let changed = self.guarded(&mut m, me, |m| if table.change(m, &change)? { Ok(()) } else { Err(self.lost()) });
        changed.map_err(|stop| self.error(stop))
    }

    /// Removes the lock, unless somebody holds or waits.
    ///
    /// # Errors
    /// [`Error::Busy`] if somebody does; or when the file is lost already or cannot be removed.
    pub fn remove(&self) -> Result<(), Error> {
        self.check()?;
        self.bury_dead()?;
        let (me, table) = (self.me()?, self.file.table());
        self.file.remove(|| {
            let mut m = Mapped::new(&self.file, patience());
            let marked = self.guarded(&mut m, me, |m| match table.remove(m)? {
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
