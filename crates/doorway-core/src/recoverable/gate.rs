//! The gate: coming and going where nobody else is, by one compare-and-swap each.
//!
//! While the gate is not shut, it alone says who holds: nobody, or one row. The rows, the tally and the stack of free slots say that all are
//! idle and everything is free. Whoever takes the guard shuts the gate, and then the rows say all. Who holds through it is written into
//! its row before that, and the gate says so meanwhile ([`Gate::Closing`]): who dies in the middle leaves the gate like that,
//! and whoever takes the guard from it does the same again. The gate is opened by who gives the guard back when nobody is there.
//!
//! A process reads the slot before the compare-and-swap that acquires it. The slot is right if that succeeds: the slot changes only
//! with the table lock, which shuts the gate, and every time the gate is opened it has a ticket that it never had before.

use core::ops::ControlFlow::{Break, Continue};

use super::{
    Table,
    table::usual,
    values::{Gate, Place, State},
};
use crate::{CompareAndSwap, Mortal, Registers, Session, Ticket};

impl Table {
    /// Comes in through the gate, if it is open: the whole doorway. With a row of its own; where there are sessions, with one whose number
    /// [stands](Self::stands_for) for what is asked for.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline(always)]
    pub fn come<M: CompareAndSwap>(
        &self,
        m: &mut M,
        row: impl FnOnce(&mut M) -> Result<Option<usize>, M::Halt>,
    ) -> Result<Option<(usize, Place)>, M::Halt> {
        m.line(34);
        let open = m.read(self.gate)?;
        let Gate::Open(ticket) = open else { return Ok(None) };
        // Only now: whoever had the row before may have lost it until then.
        let Some(row) = row(m)? else { return Ok(None) };
        m.line(35);
        let slot = m.read(self.first)?;
        m.line(36);
        let held = Gate::Held { row: row as u32, ticket };
        let came = if m.mutant("comes-by-a-write") {
            m.write(self.gate, held)?;
            true
        } else {
            m.compare_and_swap(self.gate, open, held)? == open
        };
        Ok(came.then_some((row, Place { ticket, slot: Some(slot), recovered: false, by_gate: true })))
    }

    /// Leaves through the gate, if it has not been shut: says whether it has left.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline(always)]
    pub fn go<M: CompareAndSwap>(&self, m: &mut M, row: usize, ticket: Ticket) -> Result<bool, M::Halt> {
        let held = Gate::Held { row: row as u32, ticket };
        m.line(85);
        let open = Gate::Open(ticket.succ());
        if m.mutant("goes-by-a-write") {
            m.write(self.gate, open)?;
            return Ok(true);
        }
        Ok(m.compare_and_swap(self.gate, held, open)? == held)
    }

    /// Shuts the gate, with the guard.
    #[inline(always)]
    pub(super) fn shut<M: CompareAndSwap + Mortal>(&self, m: &mut M) -> Result<(), M::Halt> {
        m.line(6);
        match m.read(self.gate)? {
            Gate::Shut(_) => Ok(()),
            gate => self.shut_what_is_open(m, gate),
        }
    }

    #[cold]
    #[inline(never)]
    fn shut_what_is_open<M: CompareAndSwap + Mortal>(&self, m: &mut M, gate: Gate) -> Result<(), M::Halt> {
        m.repeat(gate, |m, gate| match gate {
            Gate::Shut(_) => Ok(Break(())),
            Gate::Open(ticket) => {
                m.line(7);
                let was = m.compare_and_swap(self.gate, gate, Gate::Shut(ticket))?;
                Ok(if was == gate { Break(()) } else { Continue(was) })
            }
            Gate::Held { row, ticket } => {
                m.line(8);
                let shuts_at_once = m.mutant("shuts-at-once");
                let to = if shuts_at_once { Gate::Shut(ticket.succ()) } else { Gate::Closing { row, ticket } };
                let was = m.compare_and_swap(self.gate, gate, to)?;
                if was != gate {
                    return Ok(Continue(was));
                }
                self.write_down(m, row as usize, ticket).map(Break)
            }
            Gate::Closing { row, ticket } => self.write_down(m, row as usize, ticket).map(Break),
        })
    }

    /// Writes into its row who holds through the gate, and shuts that.
    fn write_down<M: Registers>(&self, m: &mut M, row: usize, ticket: Ticket) -> Result<(), M::Halt> {
        m.line(9);
        let slot = m.read(self.first)?;
        m.write(self.held.at(row), slot)?;
        m.line(17);
        let session = if m.mutant("forgets-what-for") { Session(1) } else { self.number_at_gate(row) };
        m.write(self.asks.at(row), session)?;
        let tally = m.read(self.tally)?.uncounted();
        let free = tally.slots().saturating_sub(1);
        m.write(self.tally, tally.with_free(free).one_inside(session))?;
        if !m.mutant("forgets-who-came") {
            m.line(18);
            m.write(self.state.at(row), State::Holding { ticket, recovered: false })?;
        }
        m.line(19);
        m.write(self.gate, Gate::Shut(ticket.succ()))
    }

    /// Opens the gate if nobody is there, with the guard. The next holder of a slot whose last one died has to be told, and at the gate nobody is.
    #[inline(always)]
    pub(super) fn open<M: Registers>(&self, m: &mut M) -> Result<(), M::Halt> {
        m.line(23);
        let tally = m.read(self.tally)?;
        if !tally.is_quiet() && m.mutant("opens-too-soon") && tally.waiting() == 0 {
            let ticket = m.read(self.gate)?.ticket();
            return m.write(self.gate, Gate::Open(ticket));
        }
        if !tally.is_quiet() {
            return Ok(());
        }
        let top = u32::from(tally.free()) - 1;
        m.line(24);
        let slot = m.read(self.spare.at(top as usize))?.wrapping_add(usual(tally, top));
        if m.read(self.orphan.at(slot as usize))? {
            return Ok(());
        }
        m.line(29);
        m.write(self.first, slot)?;
        let ticket = m.read(self.gate)?.ticket();
        m.line(37);
        // One ticket is skipped. Otherwise the compare-and-swap of a process that read the slot before the gate was shut would
        // succeed now, although the slot may be another one.
        let next = if m.mutant("opens-with-an-old-ticket") { ticket } else { ticket.succ() };
        m.write(self.gate, Gate::Open(next))
    }
}
