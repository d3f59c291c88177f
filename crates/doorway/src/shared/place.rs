//! Places in the queue, and permits.

use std::{
    fmt,
    mem::ManuallyDrop,
    time::{Duration, Instant},
};

use doorway_core::raw;

use super::{Error, Lock, entries::Position, memory::Stop};

/// A place in the queue. Dropping it leaves the queue.
#[must_use = "dropping a place leaves the line"]
pub struct Place<'a> {
    lock: &'a Lock,
    position: Position,
}

/// The result of a wait that ended without a permit.
#[derive(Debug)]
pub enum NotYet<'a> {
    /// The time limit is reached. The place keeps its position in the queue.
    Late(Place<'a>),
    /// The wait failed.
    Failed(Error),
}

impl<'a> Place<'a> {
    #[inline(always)]
    pub(super) fn new(lock: &'a Lock, position: Position) -> Self {
        Self { lock, position }
    }

    /// Blocks until this place is granted a slot.
    ///
    /// # Errors
    /// When the file is lost or damaged, or the place was taken before a fork.
    #[inline]
    pub fn wait(self) -> Result<Permit<'a>, Error> {
        match self.wait_until(None) {
            Ok(permit) => Ok(permit),
            Err(NotYet::Failed(error)) => Err(error),
            Err(NotYet::Late(place)) => Err(place.lock.error(Stop::Late)),
        }
    }

    /// Blocks until this place is granted a slot, but no longer than `limit`.
    ///
    /// # Errors
    /// Returns the place when the limit is reached; otherwise as [`wait`](Self::wait) does.
    pub fn wait_timeout(self, limit: Duration) -> Result<Permit<'a>, NotYet<'a>> {
        // A limit beyond what the clock can represent means no limit.
        self.wait_until(Instant::now().checked_add(limit))
    }

    #[inline(always)]
    fn wait_until(mut self, until: Option<Instant>) -> Result<Permit<'a>, NotYet<'a>> {
        match self.lock.wait(&mut self.position, until) {
            Ok(()) => {
                let place = ManuallyDrop::new(self);
                Ok(Permit { lock: place.lock, position: place.position })
            }
            Err(Stop::Late) => Err(NotYet::Late(self)),
            Err(stop) => Err(NotYet::Failed(self.lock.error(stop))),
        }
    }

    /// Leaves the queue, as dropping the place does, but waits at most this long for the table
    /// lock, which a stopped process may hold.
    ///
    /// # Errors
    /// Returns the place, which keeps its position, when that took too long. If the process then
    /// ends, that takes it out of the queue.
    pub fn leave(self, limit: Duration) -> Result<(), Self> {
        let place = ManuallyDrop::new(self);
        match place.lock.abandon(&place.position, Instant::now().checked_add(limit)) {
            Err(Stop::Late) => Err(ManuallyDrop::into_inner(place)),
            // A lock that is lost has no queue.
            _ => Ok(()),
        }
    }

    /// Returns the place's ticket: places are granted in the order of their tickets.
    pub fn ticket(&self) -> u64 {
        raw::number(self.position.ticket)
    }

    /// Returns how many processes wait ahead of it.
    pub fn ahead(&self) -> usize {
        self.lock.ahead(&self.position)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // A lock that is lost has nothing to release.
        let _ = self.lock.abandon(&self.position, None);
    }
}

impl fmt::Debug for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("ticket", &self.ticket()).finish_non_exhaustive()
    }
}

/// A slot. Dropping the permit grants it to the next waiter.
#[must_use = "dropping a permit gives its slot to the next in line"]
pub struct Permit<'a> {
    pub(super) lock: &'a Lock,
    pub(super) position: Position,
}

impl<'a> Permit<'a> {
    #[inline(always)]
    pub(super) fn of(lock: &'a Lock, position: Position) -> Result<Self, Error> {
        if position.holds() {
            Ok(Self { lock, position })
        } else {
            Place::new(lock, position).wait()
        }
    }

    /// Returns the lock that this is a permit of.
    pub fn lock(&self) -> &'a Lock {
        self.lock
    }

    /// Returns the number of the slot, which no other holder has.
    #[inline]
    pub fn slot(&self) -> usize {
        self.position.slot() as usize
    }

    /// Returns the permit's ticket. While the permit lives no other place of this lock has the
    /// same.
    pub fn ticket(&self) -> u64 {
        raw::number(self.position.ticket)
    }

    /// Returns whether the last holder of this slot died with it, so that its work may be half
    /// done. One death may be reported more than once, and is never left out.
    pub fn recovered(&self) -> bool {
        self.position.recovered()
    }

    /// Checks that the file is still there: see [`Lock::check`].
    ///
    /// # Errors
    /// When it is not.
    pub fn check(&self) -> Result<(), Error> {
        self.lock.check()
    }

    /// Records for [`status`](Lock::status) that the slot is held from now on. A process that has
    /// waited for its slot has recorded that already. A process that has not waited saves the time
    /// of reading a clock, which is longer than a whole passage.
    pub fn note(&self) {
        self.lock.stamp_holder(&self.position);
    }
}

impl Drop for Permit<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // A lock that is lost has nothing to release.
        let _ = self.lock.release(&self.position);
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("slot", &self.slot())
            .field("ticket", &self.ticket())
            .finish_non_exhaustive()
    }
}
