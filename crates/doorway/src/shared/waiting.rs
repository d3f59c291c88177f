//! Waiting for a slot, releasing it, and leaving the queue.

mod patience;
mod sleep;
mod watcher;

use std::{sync::atomic::Ordering::Relaxed, time::Instant};

use doorway_core::{
    Registers,
    engines::named_lock::{Owner, Place as Spot, State},
    raw,
};

pub(super) use self::{
    patience::Patience,
    sleep::{Wait, wake},
};
use super::{
    Error, Lock,
    entries::{Position, now},
    file::entry,
    memory::{Mapped, Quick, Stop},
};

impl Lock {
    /// Waits for the slot.
    #[inline(always)]
    pub(super) fn wait(&self, position: &mut Position, until: Option<Instant>) -> Result<(), Stop> {
        if position.holds() { Ok(()) } else { self.wait_slow(position, until) }
    }

    #[cold]
    #[inline(never)]
    fn wait_slow(&self, position: &mut Position, until: Option<Instant>) -> Result<(), Stop> {
        let mut m = Mapped::new(&self.file, until);
        let (table, entry, ticket) = (self.file.table(), position.entry(), position.ticket);
        let me = match self.known() {
            Some(me) if m.read(table.owner(entry))? == Some(me) => me,
            _ => return Err(Error::Forked(self.path().into()).into()),
        };
        let spot = table.wait(
            &mut m,
            me,
            entry,
            Spot { ticket, slot: None, recovered: false, fast: false },
        )?;
        if m.is_untold() {
            self.file.wake_front_that_watches();
        }
        *position = Position::new(entry, spot);
        if let Some(word) = self.file.words().get(entry * entry::WORDS + entry::SINCE) {
            word.store(now(), Relaxed);
        }
        Ok(())
    }

    /// Releases the slot.
    #[inline(always)]
    pub(super) fn release(&self, position: &Position) -> Result<(), Stop> {
        let (table, entry, mut m) =
            (self.file.table(), position.entry(), Quick::new(self.file.words()));
        let released = position.is_fast()
            && matches!(m.read(table.owner(entry)), Ok(owner) if owner.is_some() && owner == self.known())
            && matches!(table.release_fast(&mut m, entry, position.ticket), Ok(true));
        if released { Ok(()) } else { self.release_slow(position) }
    }

    #[cold]
    #[inline(never)]
    fn release_slow(&self, position: &Position) -> Result<(), Stop> {
        let (table, entry, mut m) =
            (self.file.table(), position.entry(), Mapped::new(&self.file, None));
        // A process does not release the slot of the process that forked it.
        let Some(me) = self.known() else { return Ok(()) };
        if m.read(table.owner(entry))? != Some(me) {
            return self.release_for_child(me, position);
        }
        let released = self.locked(&mut m, me, |m| match m.read(table.state(entry))? {
            State::Holding { ticket, .. } if ticket == position.ticket => {
                if self.file.keeper(entry) == Some(me) {
                    // A child may adopt the entry at this moment.
                    return table.release_unless_handed_over(m, me, entry, position.slot());
                }
                table.leave(m, entry, Some(position.slot()))?;
                self.keep_entry(m, entry)?;
                Ok(true)
            }
            _ => Ok(true), // another program has written into the table
        })?;
        if released { Ok(()) } else { self.release_for_child(me, position) }
    }

    /// Leaves the queue, or releases a slot that was granted meanwhile.
    pub(super) fn abandon(&self, position: &Position, until: Option<Instant>) -> Result<(), Stop> {
        // On the fast path no death is told of.
        if position.is_fast() {
            return self.release(position);
        }
        let (table, entry, mut m) =
            (self.file.table(), position.entry(), Mapped::new(&self.file, until));
        let Some(me) = self.known() else { return Ok(()) };
        let ticket = match m.read(table.state(entry))? {
            State::Waiting(ticket) | State::Holding { ticket, .. } => ticket,
            State::Idle => return Ok(()),
        };
        if ticket != position.ticket || m.read(table.owner(entry))? != Some(me) {
            return Ok(());
        }
        table.abandon(&mut m, me, entry)?;
        self.locked(&mut m, me, |m| self.keep_entry(m, entry))
    }

    /// Returns whether an entry still holds the slot of this position.
    pub(super) fn still_holds(
        &self,
        m: &mut Mapped<'_>,
        position: &Position,
    ) -> Result<bool, Stop> {
        let state = m.read(self.file.table().state(position.entry()))?;
        Ok(matches!(state, State::Holding { ticket, .. } if ticket == position.ticket))
    }

    /// Returns how many wait ahead of this place.
    pub(super) fn ahead(&self, position: &Position) -> usize {
        super::status::waiting(self, false)
            .iter()
            .filter(|waiter| waiter.ticket < raw::number(position.ticket))
            .count()
    }

    /// Runs a function with the table lock, and releases the lock whatever the result.
    #[inline(always)]
    pub(super) fn locked<T>(
        &self,
        m: &mut Mapped<'_>,
        me: Owner,
        run: impl FnOnce(&mut Mapped<'_>) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let table = self.file.table();
        table.lock(m, me)?;
        let done = run(m);
        table.unlock(m)?;
        m.wake_heir();
        done
    }
}
