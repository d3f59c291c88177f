//! The registers of a named lock, and the operations of a passage: enter, wait, release, abandon.
//!
//! Every process that uses the lock owns an *entry* of the process table. One word of the entry,
//! its state, says all that matters about the process, and one write changes it: idle, waiting with
//! a ticket, or holding with a ticket. The rest is bookkeeping: the queue, the free slots, the
//! tally. A process changes the bookkeeping with the *table lock*. A process that takes the table
//! lock from a dead process derives the bookkeeping again from the entries. So it does not matter
//! at which step the dead process died.
//!
//! A process that finds the lock unused does not need the table lock: see
//! [`fast_path`](super::fast_path).

use core::ops::ControlFlow::{Break, Continue};

use super::values::{Ends, FastPath, Link, Owner, Place, State};
use super::{Mortal, Tally};
use crate::{Array, CompareAndSwap, Home, Homes, Layout, Register, Registers, Session, Ticket};

/// The registers. Those of entry `i` live with process `i`, and so do those of slot `i`.
#[derive(Debug)]
pub struct Table {
    pub(super) entries: usize,
    /// Whether processes ask for sessions.
    pub(super) has_sessions: bool,
    /// The next ticket, and the fast path.
    pub(super) fast: Register<FastPath>,
    /// The slot of the fast path.
    pub(super) fast_slot: Register<u32>,
    /// The process that has the table lock and may change the bookkeeping.
    pub(super) table_lock: Register<Option<Owner>>,
    pub(super) tally: Register<Tally>,
    /// The ends of the queue.
    pub(super) ends: Register<Ends>,
    /// How many entries have ever been used. All other entries have no owner and need not be read.
    pub(super) used: Register<u32>,
    pub(super) owner: Array<Option<Owner>>,
    pub(super) state: Array<State>,
    /// The session that the process asks for. The process writes it before it waits.
    pub(super) session: Array<Session>,
    /// The slot that the process holds. It is written before the process holds it.
    pub(super) slot: Array<u32>,
    /// The next entry of the queue.
    pub(super) next: Array<Link>,
    /// The stack of free slots: the positions from [`Tally::top`] on are free. A register holds the
    /// difference of the slot to its position, so that zeros stand for all slots, with the lowest
    /// on top.
    pub(super) free: Array<u32>,
    /// Whether the slot's last holder died with it.
    pub(super) orphaned: Array<bool>,
    /// How often the process has died, for a memory that does not know better.
    pub(super) deaths: Array<u64>,
}

impl Table {
    /// Returns a table with this many entries, and at most as many slots. Registers that belong to
    /// no entry live at `home`.
    pub fn new(
        layout: &mut Layout,
        entries: usize,
        slots: usize,
        has_sessions: bool,
        home: Home,
    ) -> Self {
        let owner = layout.array("Owner", entries, Homes::Column, None);
        let state = layout.array("State", entries, Homes::Column, State::Idle);
        let session = layout.array("Session", entries, Homes::Column, Session::NONE);
        let slot = layout.array("Slot", entries, Homes::Column, 0);
        let next = layout.array("Next", entries, Homes::Column, Link::NONE);
        let free = layout.array("Free", entries, Homes::Column, 0);
        let orphaned = layout.array("Orphaned", entries, Homes::Column, false);
        let deaths = layout.array("Deaths", entries, Homes::Column, 0);
        let table_lock = layout.register("TableLock", home, None);
        let fast = layout.register("Fast", home, FastPath::Open(Ticket::ZERO.succ()));
        let fast_slot = layout.register("FastSlot", home, 0);
        let tally = layout.register("Tally", home, Tally::new(slots as u16));
        let ends = layout.register("Ends", home, Ends::default());
        let used = layout.register("Used", home, 0);
        Self {
            entries,
            has_sessions,
            fast,
            fast_slot,
            table_lock,
            tally,
            ends,
            used,
            owner,
            state,
            session,
            slot,
            next,
            free,
            orphaned,
            deaths,
        }
    }

    /// Returns how many entries there are.
    #[inline(always)]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Returns the register with the process that has the table lock.
    #[inline(always)]
    pub fn table_lock(&self) -> Register<Option<Owner>> {
        self.table_lock
    }

    /// Returns the word of the fast path.
    #[inline(always)]
    pub fn fast(&self) -> Register<FastPath> {
        self.fast
    }

    /// Returns the register with the slot of the fast path.
    #[inline(always)]
    pub fn fast_slot(&self) -> Register<u32> {
        self.fast_slot
    }

    /// Returns the word that counts waiters and holders while the fast path is closed, and the
    /// settings.
    #[inline(always)]
    pub fn tally(&self) -> Register<Tally> {
        self.tally
    }

    /// Returns the register with the ends of the queue.
    #[inline(always)]
    pub fn ends(&self) -> Register<Ends> {
        self.ends
    }

    /// Returns the register that counts the entries that have ever been used.
    #[inline(always)]
    pub fn used(&self) -> Register<u32> {
        self.used
    }

    /// Returns the register with the owner of an entry.
    #[inline(always)]
    pub fn owner(&self, entry: usize) -> Register<Option<Owner>> {
        self.owner.at(entry)
    }

    /// Returns the register with the state of an entry's owner.
    #[inline(always)]
    pub fn state(&self, entry: usize) -> Register<State> {
        self.state.at(entry)
    }

    /// Returns the register with the session that an entry's owner has asked for, unless it is
    /// idle.
    #[inline(always)]
    pub fn session(&self, entry: usize) -> Register<Session> {
        self.session.at(entry)
    }

    /// Returns the register with the slot of an entry that holds one.
    #[inline(always)]
    pub fn slot(&self, entry: usize) -> Register<u32> {
        self.slot.at(entry)
    }

    /// Returns the link to the entry behind this entry in the queue.
    #[inline(always)]
    pub fn next(&self, entry: usize) -> Register<Link> {
        self.next.at(entry)
    }

    /// Returns a position of the stack of free slots: how far the slot there is from its position.
    pub fn free(&self, at: usize) -> Register<u32> {
        self.free.at(at)
    }

    /// Returns the register that counts how often process `p` has died.
    pub fn deaths(&self, p: usize) -> Register<u64> {
        self.deaths.at(p.min(self.entries - 1)) // a damaged table may say anything
    }

    /// Reads how many entries have ever been used.
    pub(super) fn read_used<M: Registers>(&self, m: &mut M) -> Result<usize, M::Halt> {
        Ok((m.read(self.used)? as usize).min(self.entries))
    }
}

impl Table {
    /// Enters the queue for the owner of an entry, with the table lock; acquires a slot at once if
    /// no process waits and there is room. This and the table lock are the whole doorway.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[inline(always)]
    pub fn enter<M: Registers>(
        &self,
        m: &mut M,
        entry: usize,
        session: Session,
    ) -> Result<Place, M::Halt> {
        m.line(40);
        let ticket = m.read(self.fast)?.ticket();
        m.line(41);
        m.write(self.fast, FastPath::Closed(ticket.succ()))?;
        let tally = m.read(self.tally)?;
        m.write(self.session.at(entry), session)?;
        if (tally.waiting() == 0 || m.mutant("overtakes-its-session")) && tally.admits(session) {
            let (slot, recovered) = self.admit(m, entry, ticket, session, tally)?;
            return Ok(Place { ticket, slot: Some(slot), recovered, fast: false });
        }
        m.line(42);
        m.write(self.state.at(entry), State::Waiting(ticket))?;
        self.append(m, entry)?;
        m.line(43);
        m.write(self.tally, tally.one_more_waits())?;
        Ok(Place { ticket, slot: None, recovered: false, fast: false })
    }

    /// Grants free slots to the waiting entries, in the order of the queue, with the table lock.
    ///
    /// # Errors
    /// When the memory halts the process.
    #[cold]
    #[inline(never)]
    pub fn grant<M: CompareAndSwap + Mortal>(&self, m: &mut M) -> Result<(), M::Halt> {
        m.fold_until(0..self.entries, (), |m, (), _| {
            m.line(20);
            let tally = m.read(self.tally)?;
            if tally.waiting() == 0 || !tally.has_room() {
                return Ok(Break(()));
            }
            let ends = m.read(self.ends)?;
            let heir = if m.mutant("grants-the-last") { ends.back } else { ends.front };
            // Only in a damaged table is the queue empty or its front not waiting.
            let Some(heir) = heir.entry() else { return Ok(Break(())) };
            m.line(21);
            let State::Waiting(ticket) = m.read(self.state.at(heir))? else { return Ok(Break(())) };
            m.line(22);
            let session = m.read(self.session.at(heir))?;
            if !tally.admits(session) {
                return Ok(Break(()));
            }
            self.unlink(m, heir)?;
            self.admit(m, heir, ticket, session, tally.one_less_waits())?;
            m.wake(self.state.at(heir));
            Ok(Continue(()))
        })
    }

    /// Grants a free slot to an entry, with the table lock. Returns the slot, and whether its last
    /// holder died with it.
    #[inline(always)]
    fn admit<M: Registers>(
        &self,
        m: &mut M,
        entry: usize,
        ticket: Ticket,
        session: Session,
        tally: Tally,
    ) -> Result<(u32, bool), M::Halt> {
        m.line(25);
        let top = tally.top();
        let slot = m.read(self.free.at(top as usize))?.wrapping_add(top);
        let recovered = m.read(self.orphaned.at(slot as usize))?;
        m.line(26);
        m.write(self.slot.at(entry), slot)?;
        m.line(27);
        m.write(self.state.at(entry), State::Holding { ticket, recovered })?;
        if recovered {
            m.write(self.orphaned.at(slot as usize), false)?;
        }
        m.line(28);
        m.write(self.tally, tally.one_less_free().one_more_inside(session))?;
        Ok((slot, recovered))
    }

    /// Waits until the entry holds a slot. From time to time it [watches](Self::watch) for deaths.
    ///
    /// # Errors
    /// When the memory halts the process, or its time is over.
    pub fn wait<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        me: Owner,
        entry: usize,
        place: Place,
    ) -> Result<Place, M::Halt> {
        let recovered = m.repeat((), |m, ()| {
            m.line(50);
            let state = m.read(self.state.at(entry))?;
            if let State::Holding { recovered, .. } = state {
                return Ok(Break(recovered));
            }
            if m.sleep(self.state.at(entry), state)? {
                self.watch(m, me, entry, place.ticket)?;
            }
            Ok(Continue(()))
        })?;
        m.line(51);
        let slot = m.read(self.slot.at(entry))?;
        Ok(Place { slot: Some(slot), recovered, ..place })
    }

    /// Makes a waiting or holding entry idle, with the table lock, and grants what that frees.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn leave<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        entry: usize,
        slot: Option<u32>,
    ) -> Result<(), M::Halt> {
        m.line(80);
        m.write(self.state.at(entry), State::Idle)?;
        let mut tally = m.read(self.tally)?;
        match slot {
            None => {
                // The entry behind now has another process ahead of it, or none: it has to watch
                // different processes.
                if let Some(behind) = self.unlink(m, entry)? {
                    m.wake(self.state.at(behind));
                }
                tally = tally.one_less_waits();
            }
            Some(slot) => {
                tally = tally.one_less_inside();
                // The slot no longer exists if there are fewer slots now.
                if slot < u32::from(tally.slots()) {
                    tally = tally.one_more_free();
                    m.line(81);
                    m.write(self.free.at(tally.top() as usize), slot.wrapping_sub(tally.top()))?;
                }
            }
        }
        m.line(82);
        m.write(self.tally, tally)?;
        if tally.waiting() > 0 && !m.mutant("releases-without-granting") {
            self.grant(m)
        } else {
            Ok(())
        }
    }

    /// Releases the slot of an entry. Takes and releases the table lock.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn release<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        me: Owner,
        entry: usize,
        slot: Option<u32>,
    ) -> Result<(), M::Halt> {
        self.lock(m, me)?;
        self.leave(m, entry, slot)?;
        self.unlock(m)
    }

    /// Leaves the queue, or releases the slot that was granted meanwhile.
    ///
    /// # Errors
    /// When the memory halts the process.
    pub fn abandon<M: CompareAndSwap + Mortal>(
        &self,
        m: &mut M,
        me: Owner,
        entry: usize,
    ) -> Result<(), M::Halt> {
        self.lock(m, me)?;
        m.line(90);
        match m.read(self.state.at(entry))? {
            State::Idle => {}
            State::Waiting(_) => self.leave(m, entry, None)?,
            State::Holding { .. } if m.mutant("abandons-waiters-only") => {}
            State::Holding { recovered, .. } => {
                let slot = m.read(self.slot.at(entry))?;
                if recovered {
                    // This process has not learned of the death, so the next holder has to.
                    m.line(91);
                    m.write(self.orphaned.at(slot as usize), true)?;
                }
                self.leave(m, entry, Some(slot))?;
            }
        }
        self.unlock(m)
    }
}
