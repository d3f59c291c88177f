//! Places in line and permits.

use std::{
    fmt, io,
    mem::ManuallyDrop,
    sync::Arc,
    time::{Duration, Instant},
};

use doorway_core::{
    Registers, Ticket, raw,
    recoverable::{Owner, State},
};
use rustix::io::Errno;

use super::{
    Error, Lock,
    file::File,
    liveness,
    lock::Standing,
    memory::{Quick, Stop},
};

/// A place in line. Dropping it leaves the line.
#[must_use = "dropping a place leaves the line"]
pub struct Place<'a> {
    lock: &'a Lock,
    standing: Standing,
}

/// There is no permit.
#[derive(Debug)]
pub enum NotYet<'a> {
    /// Time is over; here is the place, which still stands where it stood.
    Late(Place<'a>),
    /// It went wrong.
    Failed(Error),
}

impl<'a> Place<'a> {
    #[inline(always)]
    pub(super) fn new(lock: &'a Lock, standing: Standing) -> Self {
        Self { lock, standing }
    }

    /// Waits until it is this place's turn.
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

    /// Waits for so long at most.
    ///
    /// # Errors
    /// Gives the place back when time is over; and as [`wait`](Self::wait) does.
    pub fn wait_timeout(self, limit: Duration) -> Result<Permit<'a>, NotYet<'a>> {
        // A limit that no clock reaches is none.
        self.wait_until(Instant::now().checked_add(limit))
    }

    #[inline(always)]
    fn wait_until(mut self, until: Option<Instant>) -> Result<Permit<'a>, NotYet<'a>> {
        match self.lock.wait(&mut self.standing, until) {
            Ok(()) => {
                let place = ManuallyDrop::new(self);
                Ok(Permit { lock: place.lock, standing: place.standing })
            }
            Err(Stop::Late) => Err(NotYet::Late(self)),
            Err(stop) => Err(NotYet::Failed(self.lock.error(stop))),
        }
    }

    /// Leaves the queue, as dropping the place does, but waits at most this long for the table lock, which a stopped process may
    /// hold.
    ///
    /// # Errors
    /// Returns the place, which still is where it was, when that took too long. A process that ends then leaves the queue by that.
    pub fn leave(self, limit: Duration) -> Result<(), Self> {
        let place = ManuallyDrop::new(self);
        match place.lock.abandon(&place.standing, Instant::now().checked_add(limit)) {
            Err(Stop::Late) => Err(ManuallyDrop::into_inner(place)),
            // A lock that is lost has no queue.
            _ => Ok(()),
        }
    }

    /// Its ticket: places go in in the order of their tickets.
    pub fn ticket(&self) -> u64 {
        raw::number(self.standing.ticket)
    }

    /// How many wait before it.
    pub fn ahead(&self) -> usize {
        self.lock.ahead(&self.standing)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // Of a file that is lost nobody cares.
        let _ = self.lock.abandon(&self.standing, None);
    }
}

impl fmt::Debug for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("ticket", &self.ticket()).finish_non_exhaustive()
    }
}

/// A slot. Dropping it hands it to the next in line.
#[must_use = "dropping a permit gives its slot to the next in line"]
pub struct Permit<'a> {
    lock: &'a Lock,
    standing: Standing,
}

impl<'a> Permit<'a> {
    #[inline(always)]
    pub(super) fn of(lock: &'a Lock, standing: Standing) -> Result<Self, Error> {
        if standing.holds() { Ok(Self { lock, standing }) } else { Place::new(lock, standing).wait() }
    }

    /// Returns the lock that this is a permit of.
    pub fn lock(&self) -> &'a Lock {
        self.lock
    }

    /// The number of the slot, which no other holder has.
    #[inline]
    pub fn slot(&self) -> usize {
        self.standing.slot() as usize
    }

    /// Its ticket. While the permit lives no other place of this lock has the same.
    pub fn ticket(&self) -> u64 {
        raw::number(self.standing.ticket)
    }

    /// Whether the last holder of this slot died in it, so that what it was at work on may be half done. It may be said
    /// of a death more than once, and is never left out.
    pub fn recovered(&self) -> bool {
        self.standing.recovered()
    }

    /// Whether the file is still there: see [`Lock::check`].
    ///
    /// # Errors
    /// When it is not.
    pub fn check(&self) -> Result<(), Error> {
        self.lock.check()
    }

    /// Notes for [`status`](Lock::status) that it is held from now on. Who has waited for its slot has noted it already; who has not
    /// saves the time that a look at the clock takes, which is more than that of a whole passage.
    pub fn note(&self) {
        self.lock.stamp_holder(&self.standing);
    }

    /// What a child needs to make the slot its own: see [`HandOver::adopt`].
    pub fn hand_over(&self) -> HandOver {
        // Should the file be damaged, the child will find that it is not given the row.
        let _ = self.lock.part_with(self.standing.row());
        let (file, row, ticket) = (self.lock.file.clone(), self.standing.row(), self.standing.ticket);
        HandOver { file, row, ticket, from: self.lock.known(), proc: liveness::proc_device() }
    }

    /// Takes the slot back from a child to which it was [handed over](Self::hand_over), and which has ended, so that its end does
    /// not count as a death in the slot. Says whether there was something to take back: somebody may have found the child dead
    /// before.
    ///
    /// Without this, dropping the permit leaves the slot to the child for as long as that lives, and passes it on then.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn take_back(&self) -> Result<bool, Error> {
        self.lock.take_back(&self.standing).map_err(|stop| self.lock.error(stop))
    }
}

impl Drop for Permit<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // Of a file that is lost nobody cares.
        let _ = self.lock.leave(&self.standing);
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("slot", &self.slot()).field("ticket", &self.ticket()).finish_non_exhaustive()
    }
}

/// What a child needs to make the slot of its parent its own.
#[derive(Clone, Debug)]
pub struct HandOver {
    file: Arc<File>,
    row: usize,
    ticket: Ticket,
    /// The parent; `None` if it was forked since it acquired the slot, which is not its own then.
    from: Option<Owner>,
    /// The device of the parent's `/proc`.
    proc: Result<u64, Errno>,
}

impl HandOver {
    /// Makes the slot this process's own, by one compare-and-swap. For [`pre_exec`](std::os::unix::process::CommandExt::pre_exec):
    /// allocates nothing and takes no lock. After `exec` it is still the same process, which keeps the slot for as long as it lives,
    /// whatever becomes of its parent.
    ///
    /// # Errors
    /// `ESTALE` when the parent has lost the slot: it has released it, or it has died and the slot was reclaimed. `EXDEV` when this
    /// process was moved to other namespaces and cannot know by which PID its parent knows it; another error when `/proc` cannot be
    /// read. Do not go on then.
    pub fn adopt(&self) -> io::Result<()> {
        let (table, mut m) = (self.file.table(), Quick::new(self.file.words()));
        let holds = matches!(m.read(table.state(self.row)), Ok(State::Holding { ticket, .. }) if ticket == self.ticket);
        let (true, Some(from)) = (holds, self.from) else { return Err(Errno::STALE.into()) };
        let me = liveness::myself_in(self.file.namespaces(), self.proc?)?;
        // A parent that releases the slot while it hands it over loses it.
        match table.hand(&mut m, self.row, from, me) {
            Ok(true) => Ok(()),
            _ => Err(Errno::STALE.into()),
        }
    }
}
