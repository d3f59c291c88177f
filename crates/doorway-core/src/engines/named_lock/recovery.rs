//! Recovery from deaths: watching for deaths, reclaiming what dead processes had, rebuilding the
//! bookkeeping.

use alloc::vec::Vec;

use super::{
    Mortal, Owner, Table, Tally,
    values::{Ends, Link, State},
};
use crate::{CompareAndSwap, Set, Ticket, others};

/// The processes whose deaths concern a waiter.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The entries of these processes: the waiter right ahead, or the holders.
    pub entries: Set,
    /// Whether no process waits ahead.
    pub is_front: bool,
}

impl Table {
    /// Derives queue, free slots and tally from the entries, with the table lock. Entries without
    /// an owner become idle: a process died that was about to do that.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn rebuild<M: CompareAndSwap + Mortal>(&self, m: &mut M) -> Result<(), M::Halt> {
        m.line(10);
        let was = m.read(self.tally)?;
        let was = if m.mutant("reopens-what-is-removed") { Tally::new(was.slots()) } else { was };
        let used = self.read_used(m)?;
        let nothing = (was.settings(), Set::none(self.entries), Vec::new());
        let (tally, taken, mut waiting) =
            m.fold(0..used, nothing, |m, (tally, taken, mut waiting), i| {
                m.line(11);
                let state = m.read(self.state.at(i))?;
                if state == State::Idle {
                    return Ok((tally, taken, waiting));
                }
                m.line(12);
                if m.read(self.owner.at(i))?.is_none() && !m.mutant("counts-entries-without-owner")
                {
                    if let State::Holding { .. } = state {
                        let slot = m.read(self.slot.at(i))?;
                        m.write(self.orphaned.at(slot as usize), true)?;
                    }
                    m.line(13);
                    m.write(self.state.at(i), State::Idle)?;
                    return Ok((tally, taken, waiting));
                }
                m.line(14);
                match state {
                    State::Waiting(_) if m.mutant("forgets-waiters") => Ok((tally, taken, waiting)),
                    State::Waiting(ticket) => {
                        waiting.push((ticket, i));
                        Ok((tally.one_more_waits(), taken, waiting))
                    }
                    _ => {
                        let slot = m.read(self.slot.at(i))? as usize;
                        let tally = tally.one_more_inside(m.read(self.session.at(i))?);
                        let known = slot < self.entries && !m.mutant("forgets-holders");
                        Ok((tally, if known { taken.with(slot) } else { taken }, waiting))
                    }
                }
            })?;
        if !m.mutant("rebuilds-without-order") {
            waiting.sort_unstable();
        }
        self.write_queue(m, used, &waiting)?;
        self.write_free(m, used, tally, &taken)
    }

    /// Writes the queue: these entries, in this order.
    fn write_queue<M: CompareAndSwap>(
        &self,
        m: &mut M,
        used: usize,
        waiting: &[(Ticket, usize)],
    ) -> Result<(), M::Halt> {
        let mut next = alloc::vec![Link::NONE; used];
        for pair in waiting.windows(2) {
            next[pair[0].1] = Link::to(pair[1].1);
        }
        m.line(15);
        m.each(0..used, |m, i| m.write(self.next.at(i), next[i]))?;
        let end = |entry: Option<&(Ticket, usize)>| {
            entry.map_or(Link::NONE, |&(_, entry)| Link::to(entry))
        };
        m.write(self.ends, Ends { front: end(waiting.first()), back: end(waiting.last()) })
    }

    /// Writes the slots that are not taken onto the stack, and writes the tally. At positions
    /// beyond the used entries, the slots never move.
    fn write_free<M: CompareAndSwap>(
        &self,
        m: &mut M,
        used: usize,
        tally: Tally,
        taken: &Set,
    ) -> Result<(), M::Halt> {
        let slots = usize::from(tally.slots()).min(self.entries);
        let free: Vec<usize> = (0..slots).filter(|&slot| !taken.contains(slot)).collect();
        let tally = tally.with_free(free.len() as u16);
        let top = tally.top() as usize;
        m.line(15);
        m.each(top..slots.min(used), |m, at| {
            m.write(self.free.at(at), (free[at - top] as u32).wrapping_sub(at as u32))
        })?;
        m.line(16);
        m.write(self.tally, tally)
    }

    /// Looks for deaths that concern a waiter, and reclaims what the dead processes had. Watches
    /// the process with the table lock, and the waiter right ahead, or, at the front of the queue,
    /// the holders.
    ///
    /// All deaths are found that way: a waiter behind a dead waiter takes its place, and so on to
    /// the front.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn watch<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        me: Owner,
        entry: usize,
        ticket: Ticket,
    ) -> Result<(), M::Halt> {
        self.watch_table_lock(m, me)?;
        let watched = self.watched(m, entry, ticket)?;
        m.each(watched.entries.iter(), |m, i| self.watch_entry(m, me, i))
    }

    /// Returns the entries that a waiter watches. Uses the tickets and not the queue: a killed
    /// process may have left the queue half changed.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn watched<M: CompareAndSwap>(
        &self,
        m: &mut M,
        entry: usize,
        ticket: Ticket,
    ) -> Result<Watched, M::Halt> {
        let used = self.read_used(m)?;
        let nothing = (None::<(Ticket, usize)>, Set::none(self.entries));
        let (ahead, holders) = m.fold(others(entry, used), nothing, |m, (ahead, holders), i| {
            m.line(62);
            Ok(match m.read(self.state.at(i))? {
                State::Waiting(other)
                    if other < ticket && ahead.is_none_or(|(last, _)| other > last) =>
                {
                    (Some((other, i)), holders)
                }
                State::Holding { .. } => (ahead, holders.with(i)),
                _ => (ahead, holders),
            })
        })?;
        let entries = match ahead {
            Some(_) if m.mutant("watches-holders-only") => Set::none(self.entries),
            Some((_, i)) => Set::none(self.entries).with(i),
            None if m.mutant("watches-waiters-only") => Set::none(self.entries),
            None => holders,
        };
        Ok(Watched { entries, is_front: ahead.is_none() })
    }

    /// Looks for all dead processes, and reclaims what they had.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn reap_all<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        me: Owner,
    ) -> Result<(), M::Halt> {
        self.watch_table_lock(m, me)?;
        let used = self.read_used(m)?;
        m.each(0..used, |m, i| {
            m.line(65);
            if m.test(self.state.at(i), |state| state == State::Idle)? {
                Ok(())
            } else {
                self.watch_entry(m, me, i)
            }
        })
    }

    /// Takes the table lock from its owner if the owner is dead.
    fn watch_table_lock<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        me: Owner,
    ) -> Result<(), M::Halt> {
        m.line(60);
        let Some(other) = m.read(self.table_lock)? else { return Ok(()) };
        m.line(61);
        if m.is_dead(other, self.deaths(other.process()))?
            && !m.mutant("leaves-the-table-lock-to-the-dead")
        {
            self.lock(m, me)?;
            self.unlock(m)?;
        }
        Ok(())
    }

    /// Reclaims an entry if its owner is dead.
    fn watch_entry<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        me: Owner,
        entry: usize,
    ) -> Result<(), M::Halt> {
        m.line(63);
        let Some(owner) = m.read(self.owner.at(entry))? else { return Ok(()) };
        m.line(64);
        if m.is_dead(owner, self.deaths(owner.process()))? || m.mutant("takes-all-for-dead") {
            self.reap(m, me, entry, owner)?;
        }
        Ok(())
    }

    /// Reclaims an entry from its owner, which is dead.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn reap<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        me: Owner,
        entry: usize,
        owner: Owner,
    ) -> Result<(), M::Halt> {
        if m.mutant("reaps-without-table-lock") {
            return self.reclaim(m, entry, owner).map(drop);
        }
        self.lock(m, me)?;
        self.reclaim(m, entry, owner)?;
        self.unlock(m)
    }

    /// Reclaims an entry, with the table lock. Returns whether it still belonged to `owner`.
    pub(super) fn reclaim<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        entry: usize,
        owner: Owner,
    ) -> Result<bool, M::Halt> {
        m.line(70);
        // Another process may have reclaimed it already, and a third process may own it now.
        if m.compare_and_swap(self.owner.at(entry), Some(owner), None)? != Some(owner)
            && !m.mutant("reclaims-from-any-owner")
        {
            return Ok(false);
        }
        m.line(71);
        match m.read(self.state.at(entry))? {
            State::Idle => {}
            State::Waiting(_) => self.leave(m, entry, None)?,
            State::Holding { .. } => {
                m.line(72);
                let slot = m.read(self.slot.at(entry))?;
                m.write(self.orphaned.at(slot as usize), true)?;
                self.leave(m, entry, Some(slot))?;
            }
        }
        Ok(true)
    }
}
