//! What is done about the dead: finding them, clearing their rows, and counting anew what they left uncounted.

use alloc::vec::Vec;

use super::{Owner, State, Table, Tally, table::usual};
use crate::{CompareAndSwap, Mortal, Set, others};

impl Table {
    /// Counts anew, with the guard: who waits, who holds, and which slots are free. Rows without an owner are cleared: somebody
    /// died who was about to.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn count<M: CompareAndSwap + Mortal>(&self, m: &mut M) -> Result<(), M::Halt> {
        m.line(10);
        let was = m.read(self.tally)?;
        let was = if m.mutant("reopens-what-is-removed") { Tally::new(was.slots()) } else { was };
        let (tally, taken) =
            m.fold(0..self.rows, (was.uncounted(), Set::none(self.rows)), |m, (tally, taken), i| {
                m.line(11);
                let state = m.read(self.state.at(i))?;
                if state == State::Idle {
                    return Ok((tally, taken));
                }
                m.line(12);
                if m.read(self.owner.at(i))?.is_none() && !m.mutant("counts-rows-of-nobody") {
                    if let State::Holding { .. } = state {
                        let slot = m.read(self.held.at(i))?;
                        m.write(self.orphan.at(slot as usize), true)?;
                    }
                    m.line(13);
                    m.write(self.state.at(i), State::Idle)?;
                    return Ok((tally, taken));
                }
                m.line(14);
                match state {
                    State::Waiting(_) if m.mutant("forgets-who-waits") => Ok((tally, taken)),
                    State::Waiting(_) => Ok((tally.one_waits(), taken)),
                    _ => {
                        let slot = m.read(self.held.at(i))? as usize;
                        let tally = tally.one_inside(m.read(self.asks.at(i))?);
                        let known = slot < self.rows && !m.mutant("forgets-who-holds");
                        Ok((tally, if known { taken.with(slot) } else { taken }))
                    }
                }
            })?;
        let free: Vec<u32> = (0..usize::from(was.slots()).min(self.rows))
            .filter(|&slot| !taken.contains(slot))
            .map(|slot| slot as u32)
            .rev()
            .collect();
        m.line(15);
        m.each(0..free.len(), |m, i| m.write(self.spare.at(i), free[i].wrapping_sub(usual(was, i as u32))))?;
        m.line(16);
        m.write(self.tally, tally.with_free(free.len() as u16))
    }

    /// Looks whether who has the guard is dead, or whoever holds or waits; leaves in their stead.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn look<M: CompareAndSwap + Mortal>(&self, m: &mut M, me: Owner, row: usize) -> Result<(), M::Halt> {
        m.line(60);
        let guard = m.read(self.guard)?;
        if let Some(other) = guard {
            m.line(61);
            if m.is_dead(other, self.deaths(other.process()))? && !m.mutant("leaves-the-guard-to-others") {
                self.take(m, me)?;
                self.give(m)?;
            }
        }
        m.each(others(row, self.rows), |m, i| {
            m.line(62);
            if m.test(self.state.at(i), |state| state == State::Idle)? || m.mutant("looks-at-nobody") {
                return Ok(());
            }
            m.line(63);
            let Some(owner) = m.read(self.owner.at(i))? else { return Ok(()) };
            m.line(64);
            if m.is_dead(owner, self.deaths(owner.process()))? || m.mutant("takes-all-for-dead") {
                self.bury(m, me, i, owner)?;
            }
            Ok(())
        })
    }

    /// Takes a row away from its owner, which is dead.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn bury<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        me: Owner,
        row: usize,
        owner: Owner,
    ) -> Result<(), M::Halt> {
        if m.mutant("buries-without-guard") {
            return self.evict(m, row, owner).map(drop);
        }
        self.take(m, me)?;
        self.evict(m, row, owner)?;
        self.give(m)
    }

    /// The same, with the guard. Says whether it was its owner's still.
    pub(super) fn evict<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        row: usize,
        owner: Owner,
    ) -> Result<bool, M::Halt> {
        m.line(70);
        // Somebody else may have done so already, and the row be another's now.
        if m.compare_and_swap(self.owner.at(row), Some(owner), None)? != Some(owner) && !m.mutant("evicts-anybody") {
            return Ok(false);
        }
        m.line(71);
        match m.read(self.state.at(row))? {
            State::Idle => {}
            State::Waiting(_) => self.vacate(m, row, None)?,
            State::Holding { .. } => {
                m.line(72);
                let slot = m.read(self.held.at(row))?;
                m.write(self.orphan.at(slot as usize), true)?;
                self.vacate(m, row, Some(slot))?;
            }
        }
        Ok(true)
    }

    /// Gives a row to another process, without the guard. Says whether it was `from`'s still: somebody may have found that one dead.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline]
    pub fn hand<M: CompareAndSwap>(&self, m: &mut M, row: usize, from: Owner, to: Owner) -> Result<bool, M::Halt> {
        m.line(95);
        if m.mutant("hands-by-a-write") {
            m.write(self.owner.at(row), Some(to))?;
            return Ok(true);
        }
        Ok(m.compare_and_swap(self.owner.at(row), Some(from), Some(to))? == Some(from))
    }
}
