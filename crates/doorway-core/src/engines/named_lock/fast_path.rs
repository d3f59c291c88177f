//! The uncontended fast path: one compare-and-swap to acquire, one to release.
//!
//! While the fast path is not closed, its word alone says which process holds: none, or one entry.
//! The entries, the tally and the free slots then say that all entries are idle and all slots are
//! free. A process that takes the table lock closes the fast path first; from then on the entries
//! say all. Before that, it writes the holder on the fast path into the holder's entry. The word
//! says so meanwhile ([`FastPath::Closing`]): if the process dies there, the word stays like that,
//! and the next process with the table lock repeats the write. A process that releases the table
//! lock opens the fast path if no process holds or waits.
//!
//! A process reads the slot before the compare-and-swap that acquires it. If the compare-and-swap
//! succeeds, the slot is right: the slot changes only with the table lock, which closes the fast
//! path, and every time the fast path is opened it has a ticket that it never had before.

use core::ops::ControlFlow::{Break, Continue};

use super::{
    Mortal, Table,
    values::{FastPath, Place, State},
};
use crate::{CompareAndSwap, Registers, Session, Ticket};

impl Table {
    /// Acquires a slot on the fast path if the fast path is open: the whole doorway. `entry`
    /// returns an entry of the process's own. In a lock with sessions, the entry's number
    /// [stands for](Self::stands_for) the session.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline(always)]
    pub fn enter_fast<M: CompareAndSwap>(
        &self,
        m: &mut M,
        entry: impl FnOnce(&mut M) -> Result<Option<usize>, M::Halt>,
    ) -> Result<Option<(usize, Place)>, M::Halt> {
        m.line(34);
        let open = m.read(self.fast)?;
        let FastPath::Open(ticket) = open else { return Ok(None) };
        // Not before: until the fast path was open, another process may have owned the entry.
        let Some(entry) = entry(m)? else { return Ok(None) };
        m.line(35);
        let slot = m.read(self.fast_slot)?;
        m.line(36);
        let held = FastPath::Held { entry: entry as u32, ticket };
        let entered = if m.mutant("enters-by-a-write") {
            m.write(self.fast, held)?;
            true
        } else {
            m.compare_and_swap(self.fast, open, held)? == open
        };
        Ok(entered
            .then_some((entry, Place { ticket, slot: Some(slot), recovered: false, fast: true })))
    }

    /// Releases the slot on the fast path unless the fast path is closed; returns whether it did.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline(always)]
    pub fn release_fast<M: CompareAndSwap>(
        &self,
        m: &mut M,
        entry: usize,
        ticket: Ticket,
    ) -> Result<bool, M::Halt> {
        let held = FastPath::Held { entry: entry as u32, ticket };
        m.line(85);
        let open = FastPath::Open(ticket.succ());
        if m.mutant("releases-by-a-write") {
            m.write(self.fast, open)?;
            return Ok(true);
        }
        Ok(m.compare_and_swap(self.fast, held, open)? == held)
    }

    /// Closes the fast path, with the table lock.
    #[inline(always)]
    pub(super) fn close<M: CompareAndSwap + Mortal>(&self, m: &mut M) -> Result<(), M::Halt> {
        m.line(6);
        match m.read(self.fast)? {
            FastPath::Closed(_) => Ok(()),
            fast => self.close_open(m, fast),
        }
    }

    #[cold]
    #[inline(never)]
    fn close_open<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        fast: FastPath,
    ) -> Result<(), M::Halt> {
        m.repeat(fast, |m, fast| match fast {
            FastPath::Closed(_) => Ok(Break(())),
            FastPath::Open(ticket) => {
                m.line(7);
                let was = m.compare_and_swap(self.fast, fast, FastPath::Closed(ticket))?;
                Ok(if was == fast { Break(()) } else { Continue(was) })
            }
            FastPath::Held { entry, ticket } => {
                m.line(8);
                let at_once = m.mutant("closes-before-writing-down");
                let to = if at_once {
                    FastPath::Closed(ticket.succ())
                } else {
                    FastPath::Closing { entry, ticket }
                };
                let was = m.compare_and_swap(self.fast, fast, to)?;
                if was != fast {
                    return Ok(Continue(was));
                }
                self.write_down(m, entry as usize, ticket).map(Break)
            }
            FastPath::Closing { entry, ticket } => {
                self.write_down(m, entry as usize, ticket).map(Break)
            }
        })
    }

    /// Writes the holder of a slot on the fast path into its entry, and closes the fast path.
    fn write_down<M: Registers>(
        &self,
        m: &mut M,
        entry: usize,
        ticket: Ticket,
    ) -> Result<(), M::Halt> {
        m.line(9);
        let slot = m.read(self.fast_slot)?;
        m.write(self.slot.at(entry), slot)?;
        m.line(17);
        let session = if m.mutant("forgets-the-session") {
            Session(1)
        } else {
            self.number_on_fast_path(entry)
        };
        m.write(self.session.at(entry), session)?;
        let tally = m.read(self.tally)?.settings();
        let free = tally.slots().saturating_sub(1);
        m.write(self.tally, tally.with_free(free).one_more_inside(session))?;
        if !m.mutant("forgets-the-holder") {
            m.line(18);
            m.write(self.state.at(entry), State::Holding { ticket, recovered: false })?;
        }
        m.line(19);
        m.write(self.fast, FastPath::Closed(ticket.succ()))
    }

    /// Opens the fast path if no process holds or waits, with the table lock. Keeps it closed if
    /// the last holder of the next slot died with the slot: the next holder has to learn that, and
    /// does not on the fast path.
    #[inline(always)]
    pub(super) fn open<M: Registers>(&self, m: &mut M) -> Result<(), M::Halt> {
        m.line(23);
        let tally = m.read(self.tally)?;
        if !tally.is_quiet() && m.mutant("opens-too-soon") && tally.waiting() == 0 {
            let ticket = m.read(self.fast)?.ticket();
            return m.write(self.fast, FastPath::Open(ticket));
        }
        if !tally.is_quiet() {
            return Ok(());
        }
        m.line(24);
        let top = tally.top();
        let slot = m.read(self.free.at(top as usize))?.wrapping_add(top);
        if m.read(self.orphaned.at(slot as usize))? {
            return Ok(());
        }
        m.line(29);
        m.write(self.fast_slot, slot)?;
        let ticket = m.read(self.fast)?.ticket();
        m.line(37);
        // One ticket is skipped. Otherwise a process could have read the slot before the fast path
        // was closed, and its compare-and-swap would succeed now, although the slot may be a
        // different one.
        let next = if m.mutant("opens-with-an-old-ticket") { ticket } else { ticket.succ() };
        m.write(self.fast, FastPath::Open(next))
    }
}
