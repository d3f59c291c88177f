//! The table of rows that all processes share, and what may be done to it. What runs here in the lab is what the crate
//! `doorway` runs on a mapped file, function by function; only the memory differs.
//!
//! Every process has a *row*. One word of it, the state, says all that matters of the process, and it is changed by one write:
//! idle, waiting with a ticket, or holding with a ticket. All else is bookkeeping, so that nobody has to read every row to learn
//! whether a slot is free. It is changed by who has the *guard*, and counted anew from the rows by who takes the guard from a
//! dead process. So it does not matter where that one died.
//!
//! Who finds nobody there does not need the guard: it comes in and leaves through the *gate*, by a compare-and-swap each. Whoever takes
//! the guard shuts the gate first, and then the rows say all: see [`gate`](super::gate).
//!
//! A row has an *owner*. Who finds the owner of a row dead takes the row away from it by compare-and-swap, with the guard, and
//! leaves in its stead. The compare-and-swap is there because a row may be given to another process, which does so without
//! the guard and the same way: one of the two succeeds.

use core::ops::{
    ControlFlow::{Break, Continue},
    Range,
};

use super::values::{Gate, Owner, Place, State, Tally};
use crate::{Array, CompareAndSwap, Home, Homes, Layout, Mortal, Register, Registers, Session, Ticket};

/// The registers. Those of row `i` live with process `i`, and so does what is kept of slot `i`; the rest lives with process 0.
#[derive(Debug)]
pub struct Table {
    pub(super) rows: usize,
    /// Whether it matters what one asks for.
    pub(super) has_sessions: bool,
    /// The next ticket, and a way in for who finds nobody there.
    pub(super) gate: Register<Gate>,
    /// The slot that is held through the gate.
    pub(super) first: Register<u32>,
    pub(super) guard: Register<Option<Owner>>,
    pub(super) tally: Register<Tally>,
    pub(super) owner: Array<Option<Owner>>,
    pub(super) state: Array<State>,
    /// What the process asks for: written before it waits.
    pub(super) asks: Array<Session>,
    /// The slot that it holds: written before it holds.
    pub(super) held: Array<u32>,
    /// The free slots, as a stack. Kept of each is how far it is from the one that is there when all are free, so that zeros are
    /// all slots, the lowest on top.
    pub(super) spare: Array<u32>,
    /// The slot's last holder died in it.
    pub(super) orphan: Array<bool>,
    /// How often the process has died: where nobody knows better who is dead.
    pub(super) deaths: Array<u64>,
}

impl Table {
    /// So many rows and slots; of the latter at most as many.
    pub fn new(layout: &mut Layout, rows: usize, slots: usize, has_sessions: bool) -> Self {
        let owner = layout.array("Owner", rows, Homes::Column, None);
        let state = layout.array("State", rows, Homes::Column, State::Idle);
        let asks = layout.array("Asks", rows, Homes::Column, Session::NONE);
        let held = layout.array("Held", rows, Homes::Column, 0);
        let spare = layout.array("Spare", rows, Homes::Column, 0);
        let orphan = layout.array("Orphan", rows, Homes::Column, false);
        let deaths = layout.array("Deaths", rows, Homes::Column, 0);
        let guard = layout.register("Guard", Home::Process(0), None);
        let gate = layout.register("Gate", Home::Process(0), Gate::Open(Ticket::ZERO.succ()));
        let first = layout.register("First", Home::Process(0), 0);
        let slots = slots as u16;
        let tally = layout.register("Tally", Home::Process(0), Tally::new(slots));
        Self { rows, has_sessions, gate, first, guard, tally, owner, state, asks, held, spare, orphan, deaths }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Who has the guard.
    pub fn guard(&self) -> Register<Option<Owner>> {
        self.guard
    }

    /// The next ticket, and who holds through the gate.
    pub fn gate(&self) -> Register<Gate> {
        self.gate
    }

    /// The slot that is held through the gate.
    pub fn first(&self) -> Register<u32> {
        self.first
    }

    /// How many wait and hold, and what they may; while the gate is shut.
    pub fn tally(&self) -> Register<Tally> {
        self.tally
    }

    /// Whose row it is.
    pub fn owner(&self, row: usize) -> Register<Option<Owner>> {
        self.owner.at(row)
    }

    /// What the owner of a row does.
    pub fn state(&self, row: usize) -> Register<State> {
        self.state.at(row)
    }

    /// What the owner of a row that is not idle has asked for.
    pub fn asks(&self, row: usize) -> Register<Session> {
        self.asks.at(row)
    }

    /// Which slot the owner of a row that holds has.
    pub fn held(&self, row: usize) -> Register<u32> {
        self.held.at(row)
    }

    /// A place on the stack of free slots: how far the slot there is from the one that is there when all are free.
    pub fn spare(&self, at: usize) -> Register<u32> {
        self.spare.at(at)
    }

    /// How often process `p` has died.
    pub fn deaths(&self, p: usize) -> Register<u64> {
        self.deaths.at(p.min(self.rows)) // a table that is scribbled in may say anything
    }
}

impl Table {
    /// Takes the guard, from a dead process if need be: then all is counted anew, and slots are granted that it did not come
    /// to grant. The gate is shut.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline(always)]
    pub fn take<M: CompareAndSwap + Mortal>(&self, m: &mut M, me: Owner) -> Result<(), M::Halt> {
        let stolen = !self.try_take(m, me)? && self.wait_for_guard(m, me)?;
        if !(stolen && m.mutant("leaves-the-gate-ajar")) {
            self.shut(m)?;
        }
        if stolen { self.recover(m) } else { Ok(()) }
    }

    /// Takes the guard if nobody has it. Does not shut the gate.
    #[inline(always)]
    fn try_take<M: CompareAndSwap>(&self, m: &mut M, me: Owner) -> Result<bool, M::Halt> {
        m.line(1);
        Ok(m.compare_and_swap(self.guard, None, Some(me))?.is_none())
    }

    /// Waits for the guard; says whether it was taken from a dead process.
    #[cold]
    #[inline(never)]
    fn wait_for_guard<M: CompareAndSwap + Mortal>(&self, m: &mut M, me: Owner) -> Result<bool, M::Halt> {
        m.repeat((), |m, ()| {
            m.line(2);
            let Some(other) = m.compare_and_swap(self.guard, None, Some(me))? else { return Ok(Break(false)) };
            m.line(3);
            if m.mutant("waits-for-the-dead") || !m.seems_dead(other, self.deaths(other.process()))? {
                let steals = m.mutant("steals-from-the-living")
                    && m.compare_and_swap(self.guard, Some(other), Some(me))? == Some(other);
                return Ok(if steals { Break(true) } else { Continue(()) });
            }
            m.line(4);
            if m.mutant("steals-without-looking") {
                m.write(self.guard, Some(me))?;
                return Ok(Break(true));
            }
            let held = m.compare_and_swap(self.guard, Some(other), Some(me))?;
            Ok(if held == Some(other) { Break(true) } else { Continue(()) })
        })
    }

    /// Puts everything in order after a dead process.
    #[cold]
    fn recover<M: CompareAndSwap + Mortal>(&self, m: &mut M) -> Result<(), M::Halt> {
        if !m.mutant("counts-nothing") {
            self.count(m)?;
        }
        if m.mutant("grants-nothing-it-finds") { Ok(()) } else { self.grant(m) }
    }

    /// Gives the guard back. If nobody is there the gate is open then.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline(always)]
    pub fn give<M: Registers>(&self, m: &mut M) -> Result<(), M::Halt> {
        self.open(m)?;
        m.line(5);
        m.write(self.guard, None)
    }

    /// Grants free slots to those who wait, in the order of their tickets, with the guard.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[cold]
    #[inline(never)]
    pub fn grant<M: CompareAndSwap + Mortal>(&self, m: &mut M) -> Result<(), M::Halt> {
        m.fold_until(0..self.rows, (), |m, (), _| {
            m.line(20);
            let tally = m.read(self.tally)?;
            if tally.waiting() == 0 || !tally.has_room() {
                return Ok(Break(()));
            }
            // Not every row is looked at: only until all have been seen that wait.
            let none: (Option<(Ticket, usize)>, u16) = (None, tally.waiting());
            let (first, _) = m.fold_until(0..self.rows, none, |m, (first, left), i| {
                m.line(21);
                let State::Waiting(ticket) = m.read(self.state.at(i))? else { return Ok(Continue((first, left))) };
                let earlier = first.is_none_or(|(before, _)| ticket < before) || m.mutant("grants-the-last");
                let first = if earlier { Some((ticket, i)) } else { first };
                Ok(if left <= 1 { Break((first, 0)) } else { Continue((first, left - 1)) })
            })?;
            // Nobody waits only if the count is wrong, and it never is unless somebody has scribbled in the table.
            let Some((ticket, heir)) = first else { return Ok(Break(())) };
            m.line(22);
            let session = m.read(self.asks.at(heir))?;
            if !tally.admits(session) {
                return Ok(Break(()));
            }
            self.admit(m, heir, ticket, session, tally.one_waits_no_more())?;
            m.wake(self.state.at(heir));
            Ok(Continue(()))
        })
    }

    /// Gives a free slot to a row, with the guard. Says which, and whether its last holder died.
    #[inline(always)]
    fn admit<M: Registers>(
        &self,
        m: &mut M,
        row: usize,
        ticket: Ticket,
        session: Session,
        tally: Tally,
    ) -> Result<(u32, bool), M::Halt> {
        m.line(25);
        let top = u32::from(tally.free()) - 1;
        let slot = m.read(self.spare.at(top as usize))?.wrapping_add(usual(tally, top));
        let recovered = m.read(self.orphan.at(slot as usize))?;
        m.line(26);
        m.write(self.held.at(row), slot)?;
        m.line(27);
        m.write(self.state.at(row), State::Holding { ticket, recovered })?;
        if recovered {
            m.write(self.orphan.at(slot as usize), false)?;
        }
        m.line(28);
        m.write(self.tally, tally.one_taken().one_inside(session))?;
        Ok((slot, recovered))
    }

    /// Takes a row for `me` out of these, with the guard: one without an owner, else one whose owner is dead. `None` if there is
    /// neither.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[cold]
    pub fn settle<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        me: Owner,
        rows: Range<usize>,
    ) -> Result<Option<usize>, M::Halt> {
        let vacant = m.find(rows.clone(), |m, i| {
            m.line(30);
            m.test(self.owner.at(i), |owner| owner.is_none())
        })?;
        let found = match vacant {
            Some(_) => vacant,
            None => m.find(rows, |m, i| {
                m.line(31);
                let Some(owner) = m.read(self.owner.at(i))? else { return Ok(true) };
                m.line(32);
                if !m.is_dead(owner, self.deaths(owner.process()))? {
                    return Ok(false);
                }
                // It may have been given to somebody else meanwhile, who lives.
                let takes_anyway = m.mutant("moves-in-with-anybody");
                Ok(m.mutant("moves-in-with-the-dead") || self.evict(m, i, owner)? || takes_anyway)
            })?,
        };
        if let Some(row) = found {
            m.line(33);
            m.write(self.owner.at(row), Some(me))?;
        }
        Ok(found)
    }

    /// Takes a place in line for the owner of a row, with the guard; goes in at once where nobody waits and there is room. This
    /// is the whole doorway but for the guard.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline(always)]
    pub fn join<M: Registers>(&self, m: &mut M, row: usize, session: Session) -> Result<Place, M::Halt> {
        m.line(40);
        let gate = m.read(self.gate)?;
        m.line(41);
        let ticket = gate.ticket();
        m.write(self.gate, Gate::Shut(ticket.succ()))?;
        let tally = m.read(self.tally)?;
        m.write(self.asks.at(row), session)?;
        if (tally.waiting() == 0 || m.mutant("goes-in-ahead")) && tally.admits(session) {
            let (slot, recovered) = self.admit(m, row, ticket, session, tally)?;
            return Ok(Place { ticket, slot: Some(slot), recovered, by_gate: false });
        }
        m.line(42);
        m.write(self.state.at(row), State::Waiting(ticket))?;
        m.line(43);
        m.write(self.tally, tally.one_waits())?;
        Ok(Place { ticket, slot: None, recovered: false, by_gate: false })
    }

    /// Waits until the row holds. From time to time it looks who is dead.
    ///
    /// # Errors
    /// When the memory halts the process, or the wait is given up.
    pub fn wait<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        me: Owner,
        row: usize,
        place: Place,
    ) -> Result<Place, M::Halt> {
        let recovered = m.repeat((), |m, ()| {
            m.line(50);
            let state = m.read(self.state.at(row))?;
            if let State::Holding { recovered, .. } = state {
                return Ok(Break(recovered));
            }
            if m.sleep(self.state.at(row), state)? {
                self.look(m, me, row)?;
            }
            Ok(Continue(()))
        })?;
        m.line(51);
        let slot = m.read(self.held.at(row))?;
        Ok(Place { slot: Some(slot), recovered, ..place })
    }

    /// Leaves, with the guard: the line, or a slot. Whoever comes next is granted it.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn vacate<M: CompareAndSwap + Mortal>(&self, m: &mut M, row: usize, slot: Option<u32>) -> Result<(), M::Halt> {
        if self.release(m, row, slot)? && !m.mutant("leaves-without-a-word") { self.grant(m) } else { Ok(()) }
    }

    /// The same, but that nobody is granted anything yet: says whether somebody waits.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline(always)]
    pub fn release<M: Registers>(&self, m: &mut M, row: usize, slot: Option<u32>) -> Result<bool, M::Halt> {
        m.line(80);
        m.write(self.state.at(row), State::Idle)?;
        let mut tally = m.read(self.tally)?;
        match slot {
            None => tally = tally.one_waits_no_more(),
            Some(slot) => {
                tally = tally.one_left();
                // There may be fewer slots now.
                if slot < u32::from(tally.slots()) {
                    let top = u32::from(tally.free());
                    m.line(81);
                    m.write(self.spare.at(top as usize), slot.wrapping_sub(usual(tally, top)))?;
                    tally = tally.one_given();
                }
            }
        }
        m.line(82);
        m.write(self.tally, tally)?;
        Ok(tally.waiting() > 0)
    }

    /// Leaves the line, or the slot that has come meanwhile.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn abandon<M: CompareAndSwap + Mortal>(&self, m: &mut M, me: Owner, row: usize) -> Result<(), M::Halt> {
        self.take(m, me)?;
        m.line(90);
        match m.read(self.state.at(row))? {
            State::Idle => {}
            State::Waiting(_) => self.vacate(m, row, None)?,
            State::Holding { .. } => {
                let slot = m.read(self.held.at(row))?;
                self.vacate(m, row, Some(slot))?;
            }
        }
        self.give(m)
    }
}

/// Which slot is at this place of the stack when all are free.
#[inline(always)]
pub(super) fn usual(tally: Tally, at: u32) -> u32 {
    u32::from(tally.slots()).wrapping_sub(1).wrapping_sub(at)
}
