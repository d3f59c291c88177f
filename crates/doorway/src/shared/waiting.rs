//! Waiting for a slot, leaving it, and leaving the line.

use std::{sync::atomic::Ordering::Relaxed, time::Instant};

use doorway_core::{
    CompareAndSwap, Registers,
    recoverable::{Owner, Place as Spot, State},
};

use super::{
    Error, Lock,
    file::ROW,
    identity,
    lock::{Standing, now},
    memory::{Mapped, OutOfBounds, Quick, Stop, row},
};

impl Lock {
    /// Waits for the slot.
    pub(super) fn wait(&self, standing: &mut Standing, until: Option<Instant>) -> Result<(), Stop> {
        if standing.holds() { Ok(()) } else { self.wait_long(standing, until) }
    }

    #[cold]
    #[inline(never)]
    fn wait_long(&self, standing: &mut Standing, until: Option<Instant>) -> Result<(), Stop> {
        let mut m = Mapped::new(&self.file, until);
        let (table, row, ticket) = (self.file.table(), standing.row(), standing.ticket);
        let me = match self.known() {
            Some(me) if m.read(table.owner(row))? == Some(me) => me,
            _ => return Err(Error::Forked(self.path().into()).into()),
        };
        let spot = table.wait(&mut m, me, row, Spot { ticket, slot: None, recovered: false })?;
        *standing = Standing::new(row, spot);
        if let Some(word) = self.file.words().get(row * ROW + row::SINCE) {
            word.store(now(), Relaxed);
        }
        Ok(())
    }

    /// Leaves the slot.
    #[inline(always)]
    pub(super) fn leave(&self, standing: &Standing) -> Result<(), Stop> {
        let (table, row) = (self.file.table(), standing.row());
        let mut m = Quick::new(self.file.words());
        let (Some(me), slot) = (self.is_mine(&mut m, standing), standing.slot()) else {
            return self.leave_for_another(standing);
        };
        if !matches!(table.try_take(&mut m, me), Ok(true)) {
            return self.leave_long(me, standing);
        }
        let kept = self.keep_row(&mut m, row);
        match (table.release(&mut m, row, Some(slot)), kept) {
            (Ok(false), Ok(())) => table.give(&mut m).map_err(|OutOfBounds| Stop::Damaged),
            (Ok(true), Ok(())) => self.hand_on(),
            _ => table.give(&mut m).and(Err(OutOfBounds)).map_err(|OutOfBounds| Stop::Damaged),
        }
    }

    /// Grants what has been left, with the guard, and gives that back.
    #[cold]
    #[inline(never)]
    fn hand_on(&self) -> Result<(), Stop> {
        let (table, mut m) = (self.file.table(), Mapped::with_guard(&self.file));
        let granted = table.grant(&mut m);
        table.give(&mut m)?;
        granted
    }

    /// Leaves, if the guard has to be waited for.
    #[cold]
    #[inline(never)]
    fn leave_long(&self, me: Owner, standing: &Standing) -> Result<(), Stop> {
        let mut m = Mapped::new(&self.file, None);
        self.guarded(&mut m, me, |m| {
            self.file.table().vacate(m, standing.row(), Some(standing.slot()))?;
            self.keep_row(m, standing.row())
        })
    }

    /// This process, if it has the row still, and for that ticket. A process does not leave for the one that forked it.
    #[inline(always)]
    fn is_mine(&self, m: &mut Quick<'_>, standing: &Standing) -> Option<Owner> {
        let (table, row) = (self.file.table(), standing.row());
        let ticket = match m.read(table.state(row)).ok()? {
            State::Waiting(ticket) | State::Holding { ticket, .. } => ticket,
            State::Idle => return None,
        };
        let owner = m.read(table.owner(row)).ok()?;
        if ticket == standing.ticket && owner == self.known() { owner } else { None }
    }

    /// The row has been given to a child. If that is dead it is buried; else it stays.
    #[cold]
    #[inline(never)]
    fn leave_for_another(&self, standing: &Standing) -> Result<(), Stop> {
        let (table, row, m) = (self.file.table(), standing.row(), &mut Mapped::new(&self.file, None));
        let (Some(me), Some(other)) = (self.known(), m.read(table.owner(row))?) else { return Ok(()) };
        let holds = matches!(m.read(table.state(row))?, State::Holding { ticket, .. } if ticket == standing.ticket);
        if holds && other != me && identity::is_dead(other) { table.bury(m, me, row, other) } else { Ok(()) }
    }

    /// Leaves the line, or a slot that has come meanwhile.
    pub(super) fn abandon(&self, standing: &Standing) -> Result<(), Stop> {
        let Some(me) = self.is_mine(&mut Quick::new(self.file.words()), standing) else { return Ok(()) };
        let mut m = Mapped::new(&self.file, None);
        self.file.table().abandon(&mut m, me, standing.row())?;
        self.guarded(&mut m, me, |m| self.keep_row(m, standing.row()))
    }

    /// Takes a row back from a child to which it was given, and which is dead. Says whether it was there still.
    pub(super) fn take_back(&self, standing: &Standing) -> Result<bool, Stop> {
        let me = self.me();
        let mut m = Mapped::new(&self.file, None);
        let owner = self.file.table().owner(standing.row());
        match m.read(owner)? {
            Some(other) if other == me => Ok(true),
            Some(other) if identity::is_dead(other) => {
                Ok(m.compare_and_swap(owner, Some(other), Some(me))? == Some(other))
            }
            _ => Ok(false),
        }
    }

    /// How many wait before this place.
    pub(super) fn ahead(&self, standing: &Standing) -> usize {
        super::status::waiting(self).iter().filter(|waiter| waiter.ticket < standing.ticket.label()).count()
    }
}
