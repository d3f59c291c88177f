//! Entries of the process table: how a process claims one, hands it over and gives it back.

use core::ops::Range;

use super::{Mortal, Owner, Table};
use crate::CompareAndSwap;

impl Table {
    /// Claims an entry without an owner out of `entries`, with the table lock.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn claim_vacant<M: CompareAndSwap>(
        &self,
        m: &mut M,
        me: Owner,
        entries: Range<usize>,
    ) -> Result<Option<usize>, M::Halt> {
        let vacant = m.find(entries, |m, i| {
            m.line(30);
            m.test(self.owner.at(i), |owner| owner.is_none())
        })?;
        if let Some(entry) = vacant {
            m.line(33);
            m.write(self.owner.at(entry), Some(me))?;
        }
        Ok(vacant)
    }

    /// Claims an entry of a dead process out of `entries`, with the table lock.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[cold]
    pub fn claim_from_dead<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        me: Owner,
        entries: Range<usize>,
    ) -> Result<Option<usize>, M::Halt> {
        let found = m.find(entries, |m, i| {
            m.line(31);
            let Some(owner) = m.read(self.owner.at(i))? else { return Ok(true) };
            m.line(32);
            if !m.is_dead(owner, self.deaths(owner.process()))? {
                return Ok(false);
            }
            // Its owner may have handed it over meanwhile, to a live process.
            let takes_anyway = m.mutant("claims-from-any-owner");
            Ok(m.mutant("claims-without-clearing") || self.reclaim(m, i, owner)? || takes_anyway)
        })?;
        if let Some(entry) = found {
            m.line(33);
            m.write(self.owner.at(entry), Some(me))?;
        }
        Ok(found)
    }

    /// Claims the first entry that has never been used, with the table lock.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[cold]
    pub fn claim_new<M: CompareAndSwap>(
        &self,
        m: &mut M,
        me: Owner,
    ) -> Result<Option<usize>, M::Halt> {
        m.line(38);
        let used = m.read(self.used)? as usize;
        if used >= self.entries {
            return Ok(None);
        }
        m.line(39);
        // First the number: recovery reads the entries below it, and this entry may be waiting
        // soon.
        if !m.mutant("claims-beyond-the-used") {
            m.write(self.used, used as u32 + 1)?;
        }
        m.line(33);
        m.write(self.owner.at(used), Some(me))?;
        Ok(Some(used))
    }

    /// Hands an entry over to another process, without the table lock. Returns whether the entry
    /// was still `from`'s: another process may have found `from` dead.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline]
    pub fn hand_over<M: CompareAndSwap>(
        &self,
        m: &mut M,
        entry: usize,
        from: Owner,
        to: Owner,
    ) -> Result<bool, M::Halt> {
        m.line(95);
        if m.mutant("hands-over-by-a-write") {
            m.write(self.owner.at(entry), Some(to))?;
            return Ok(true);
        }
        Ok(m.compare_and_swap(self.owner.at(entry), Some(from), Some(to))? == Some(from))
    }

    /// Releases the slot of an entry that may be handed over at this moment, with the table lock,
    /// and gives the entry back. Returns `false`, and changes nothing, if `me` no longer owns the
    /// entry. The compare-and-swap competes with that of [`hand_over`](Self::hand_over): one of the
    /// two fails.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn release_unless_handed_over<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        me: Owner,
        entry: usize,
        slot: u32,
    ) -> Result<bool, M::Halt> {
        m.line(96);
        if m.compare_and_swap(self.owner.at(entry), Some(me), None)? != Some(me) {
            return Ok(false);
        }
        self.leave(m, entry, Some(slot))?;
        Ok(true)
    }

    /// Gives an idle entry back, with the table lock: its owner no longer needs it.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn give_back<M: CompareAndSwap>(&self, m: &mut M, entry: usize) -> Result<(), M::Halt> {
        m.line(110);
        m.write(self.owner.at(entry), None)
    }
}
