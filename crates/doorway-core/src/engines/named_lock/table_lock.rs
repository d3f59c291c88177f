//! The table lock: a process holds it for a few dozen instructions. If the process dies with it,
//! another process takes it over.

use core::ops::ControlFlow::{Break, Continue};

use super::{Mortal, Owner, Table};
use crate::{CompareAndSwap, Registers};

impl Table {
    /// Takes the table lock, from a dead process if need be. In that case,
    /// [rebuilds](Self::rebuild) the bookkeeping and grants the slots that the dead process did not
    /// grant. Closes the fast path.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline(always)]
    pub fn lock<M: CompareAndSwap + Mortal>(&self, m: &mut M, me: Owner) -> Result<(), M::Halt> {
        let stolen = !self.try_lock(m, me)? && self.wait_for_lock(m, me)?;
        if !(stolen && m.mutant("leaves-the-fast-path-open")) {
            self.close(m)?;
        }
        if stolen { self.recover(m) } else { Ok(()) }
    }

    /// Takes the table lock if it is free. Does not close the fast path.
    #[inline(always)]
    fn try_lock<M: CompareAndSwap>(&self, m: &mut M, me: Owner) -> Result<bool, M::Halt> {
        m.line(1);
        Ok(m.compare_and_swap(self.table_lock, None, Some(me))?.is_none())
    }

    /// Waits for the table lock; returns whether it was taken from a dead process.
    #[cold]
    #[inline(never)]
    fn wait_for_lock<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        me: Owner,
    ) -> Result<bool, M::Halt> {
        m.repeat((), |m, ()| {
            m.line(2);
            let Some(other) = m.compare_and_swap(self.table_lock, None, Some(me))? else {
                return Ok(Break(false));
            };
            m.line(3);
            if m.mutant("waits-for-the-dead")
                || !m.seems_dead(other, self.deaths(other.process()))?
            {
                let steals = m.mutant("steals-from-the-living")
                    && m.compare_and_swap(self.table_lock, Some(other), Some(me))? == Some(other);
                return Ok(if steals { Break(true) } else { Continue(()) });
            }
            m.line(4);
            if m.mutant("steals-by-a-write") {
                m.write(self.table_lock, Some(me))?;
                return Ok(Break(true));
            }
            let held = m.compare_and_swap(self.table_lock, Some(other), Some(me))?;
            Ok(if held == Some(other) { Break(true) } else { Continue(()) })
        })
    }

    /// Restores the bookkeeping after a process that died with the table lock.
    #[cold]
    fn recover<M: CompareAndSwap + Mortal>(&self, m: &mut M) -> Result<(), M::Halt> {
        if !m.mutant("rebuilds-nothing") {
            self.rebuild(m)?;
        }
        if m.mutant("recovers-without-granting") { Ok(()) } else { self.grant(m) }
    }

    /// Releases the table lock. Opens the fast path before that, if no process holds or waits.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline(always)]
    pub fn unlock<M: Registers>(&self, m: &mut M) -> Result<(), M::Halt> {
        self.open(m)?;
        m.line(5);
        m.write(self.table_lock, None)
    }
}
