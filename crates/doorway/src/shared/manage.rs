//! Looking after a lock: more slots or fewer, nobody let in, removed.

use doorway_core::{
    Registers,
    recoverable::{Gate, Tally},
};

use super::{Error, Kind, Lock, memory::Mapped};

impl Lock {
    /// Takes the rows and slots of the dead away from them. Whoever waits does so by itself.
    ///
    /// # Errors
    /// When the file is lost or damaged.
    pub fn bury_dead(&self) -> Result<(), Error> {
        let (me, mut m) = (self.me(), Mapped::new(&self.file, None));
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

    /// Changes what is not counted, and counts anew: who dies in between leaves the guard, and whoever takes it counts.
    fn change(&self, change: impl Fn(Tally) -> Tally) -> Result<(), Error> {
        let (me, table) = (self.me(), self.file.table());
        let mut m = Mapped::new(&self.file, None);
        let changed = self.guarded(&mut m, me, |m| {
            if self.file.is_removed() {
                return Err(self.lost());
            }
            let tally = m.read(table.tally())?;
            m.write(table.tally(), change(tally))?;
            // A ticket less, so that nobody comes in through the gate who has read which slot is free before.
            let next = m.read(table.gate())?.ticket();
            m.write(table.gate(), Gate::Shut(next.succ()))?;
            table.count(m)?;
            table.grant(m)
        });
        changed.map_err(|stop| self.error(stop))
    }

    /// Removes the lock, unless somebody holds or waits.
    ///
    /// # Errors
    /// [`Error::Busy`] if somebody does; or when the file is lost already or cannot be removed.
    pub fn remove(&self) -> Result<(), Error> {
        self.check()?;
        self.bury_dead()?;
        let (me, table) = (self.me(), self.file.table());
        self.file.remove(|| {
            let mut m = Mapped::new(&self.file, None);
            let marked = self.guarded(&mut m, me, |m| {
                let tally = m.read(table.tally())?;
                let (holders, waiting) = (tally.inside().into(), tally.waiting().into());
                if holders > 0 || waiting > 0 {
                    return Err(Error::Busy { path: self.path().into(), holders, waiting }.into());
                }
                self.file.mark_removed();
                // Whoever has it open finds no slot, waits, and learns why.
                m.write(table.tally(), tally.with_closed(true))
            });
            marked.map_err(|stop| self.error(stop))
        })
    }
}
