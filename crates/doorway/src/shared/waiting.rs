//! Waiting for a slot, leaving it, and leaving the line.

use std::{sync::atomic::Ordering::Relaxed, time::Instant};

use doorway_core::{
    Registers, raw,
    recoverable::{Owner, Place as Spot, State},
};

use super::{
    Error, Lock,
    file::ROW,
    liveness,
    lock::{Standing, now},
    memory::{Mapped, Quick, Stop, row},
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
        let spot = table.wait(&mut m, me, row, Spot { ticket, slot: None, recovered: false, by_gate: false })?;
        *standing = Standing::new(row, spot);
        if let Some(word) = self.file.words().get(row * ROW + row::SINCE) {
            word.store(now(), Relaxed);
        }
        Ok(())
    }

    /// Leaves the slot.
    #[inline(always)]
    pub(super) fn leave(&self, standing: &Standing) -> Result<(), Stop> {
        let (table, row, mut m) = (self.file.table(), standing.row(), Quick::new(self.file.words()));
        let left = standing.by_gate()
            && matches!(m.read(table.owner(row)), Ok(owner) if owner.is_some() && owner == self.known())
            && matches!(table.go(&mut m, row, standing.ticket), Ok(true));
        if left { Ok(()) } else { self.leave_long(standing) }
    }

    #[cold]
    #[inline(never)]
    fn leave_long(&self, standing: &Standing) -> Result<(), Stop> {
        let (table, row, mut m) = (self.file.table(), standing.row(), Mapped::new(&self.file, None));
        // A process does not leave for the one that forked it.
        let Some(me) = self.known() else { return Ok(()) };
        if m.read(table.owner(row))? != Some(me) {
            return self.leave_for_another(me, standing);
        }
        self.guarded(&mut m, me, |m| match m.read(table.state(row))? {
            State::Holding { ticket, .. } if ticket == standing.ticket => {
                table.vacate(m, row, Some(standing.slot()))?;
                self.keep_row(m, row)
            }
            _ => Ok(()), // somebody has scribbled in the table
        })
    }

    /// The row has been given to a child. If that is dead it is buried; else it stays.
    fn leave_for_another(&self, me: Owner, standing: &Standing) -> Result<(), Stop> {
        let (table, row, m) = (self.file.table(), standing.row(), &mut Mapped::new(&self.file, None));
        let Some(other) = m.read(table.owner(row))? else { return Ok(()) };
        if self.still_holds(m, standing)? && other != me && liveness::is_dead(other) {
            table.bury(m, me, row, other)
        } else {
            Ok(())
        }
    }

    /// Whether its row is not another's by now.
    fn still_holds(&self, m: &mut Mapped<'_>, standing: &Standing) -> Result<bool, Stop> {
        let state = m.read(self.file.table().state(standing.row()))?;
        Ok(matches!(state, State::Holding { ticket, .. } if ticket == standing.ticket))
    }

    /// Leaves the line, or a slot that has come meanwhile.
    pub(super) fn abandon(&self, standing: &Standing, until: Option<Instant>) -> Result<(), Stop> {
        if standing.holds() {
            return self.leave(standing);
        }
        let (table, row, mut m) = (self.file.table(), standing.row(), Mapped::new(&self.file, until));
        let Some(me) = self.known() else { return Ok(()) };
        let ticket = match m.read(table.state(row))? {
            State::Waiting(ticket) | State::Holding { ticket, .. } => ticket,
            State::Idle => return Ok(()),
        };
        if ticket != standing.ticket || m.read(table.owner(row))? != Some(me) {
            return Ok(());
        }
        table.abandon(&mut m, me, row)?;
        self.guarded(&mut m, me, |m| self.keep_row(m, row))
    }

    /// Takes a row back from a child to which it was given, and which is dead. Says whether it was there still.
    pub(super) fn take_back(&self, standing: &Standing) -> Result<bool, Stop> {
        let me = self.me()?;
        let mut m = Mapped::new(&self.file, None);
        match m.read(self.file.table().owner(standing.row()))? {
            Some(other) if other == me => Ok(true),
            Some(other) if liveness::is_dead(other) && self.still_holds(&mut m, standing)? => {
                self.file.table().hand(&mut m, standing.row(), other, me)
            }
            _ => Ok(false),
        }
    }

    /// How many wait before this place.
    pub(super) fn ahead(&self, standing: &Standing) -> usize {
        super::status::waiting(self).iter().filter(|waiter| waiter.ticket < raw::number(standing.ticket)).count()
    }
}
