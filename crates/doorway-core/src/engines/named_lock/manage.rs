//! Management operations: changing the settings, and removing the lock.

use super::{Mortal, Table, Tally};
use crate::CompareAndSwap;

/// Why a lock is not removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotRemoved {
    /// The lock has been removed before.
    Already,
    /// Processes hold slots or wait for them.
    Busy {
        /// How many processes hold a slot.
        holders: u16,
        /// How many processes wait.
        waiting: u16,
    },
}

impl Table {
    /// Changes the number of slots, or whether slots are granted, with the table lock. Then
    /// rebuilds the bookkeeping and grants what can be granted. Returns `false`, and changes
    /// nothing, if the lock has been removed.
    ///
    /// A process that is killed before it has rebuilt leaves the table lock behind. The process
    /// that takes the table lock over rebuilds.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn change<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        change: impl Fn(Tally) -> Tally,
    ) -> Result<bool, M::Halt> {
        m.line(100);
        let tally = m.read(self.tally)?;
        if tally.removed() {
            return Ok(false);
        }
        m.line(101);
        m.write(self.tally, change(tally))?;
        if !m.mutant("changes-without-rebuilding") {
            self.rebuild(m)?;
        }
        if !m.mutant("changes-without-granting") {
            self.grant(m)?;
        }
        Ok(true)
    }

    /// Marks the lock as removed, with the table lock, unless processes hold or wait. From this one
    /// write on no slot is granted on any path. A process that has the file open gets no slot, and
    /// learns why.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn remove<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
    ) -> Result<Result<(), NotRemoved>, M::Halt> {
        m.line(105);
        let tally = m.read(self.tally)?;
        if tally.removed() {
            return Ok(Err(NotRemoved::Already));
        }
        let (holders, waiting) = (tally.inside(), tally.waiting());
        if (holders > 0 || waiting > 0) && !m.mutant("removes-what-is-held") {
            return Ok(Err(NotRemoved::Busy { holders, waiting }));
        }
        m.line(106);
        m.write(self.tally, tally.with_removed())?;
        Ok(Ok(()))
    }
}
