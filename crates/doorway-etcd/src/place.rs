//! Places in the queue, and permits.

use std::{fmt, time::Duration};

use tokio::time::timeout;

use crate::{Error, passage::Passage, proto::etcdserverpb::RequestOp};

/// A place in the queue. Dropping it leaves the queue in the background; [`leave`](Self::leave)
/// waits until that is done.
#[must_use = "dropping a place leaves the line"]
pub struct Place(Passage);

/// The result of a wait that ended without a permit.
#[derive(Debug)]
pub enum NotYet {
    /// The time limit is reached. The place keeps its position in the queue.
    Late(Place),
    /// The wait failed.
    Failed(Error),
}

impl Place {
    pub(crate) fn new(passage: Passage) -> Self {
        Self(passage)
    }

    /// Waits until this place is granted a slot. While etcd does not answer it keeps waiting, for
    /// as long as the lease may last.
    ///
    /// Cancel safety: dropping the future leaves the queue. The future of [`ready`](Self::ready)
    /// can be dropped without losing the place.
    ///
    /// # Errors
    /// When the lease may be gone and with it the place, or the lock has been removed.
    pub async fn wait(mut self) -> Result<Permit, Error> {
        self.ready().await?;
        Ok(Permit(self.0))
    }

    /// Waits until this place is granted a slot, but no longer than `limit`.
    ///
    /// # Errors
    /// Returns the place when the limit is reached; otherwise as [`wait`](Self::wait) does.
    pub async fn wait_timeout(mut self, limit: Duration) -> Result<Permit, NotYet> {
        match timeout(limit, self.ready()).await {
            Ok(Ok(())) => Ok(Permit(self.0)),
            Ok(Err(error)) => Err(NotYet::Failed(error)),
            Err(_) => Err(NotYet::Late(self)),
        }
    }

    /// Completes when [`wait`](Self::wait) would return at once. Dropping the future keeps the
    /// place.
    ///
    /// # Errors
    /// As [`wait`](Self::wait) does.
    pub async fn ready(&mut self) -> Result<(), Error> {
        self.0.ready().await
    }

    /// Returns a permit if it is this place's turn.
    pub(crate) async fn now(mut self) -> Result<Option<Permit>, Error> {
        match self.0.try_ready().await? {
            true => Ok(Some(Permit(self.0))),
            false => self.leave().await.map(|()| None),
        }
    }

    /// Returns the place's ticket: places are granted in the order of their tickets.
    pub fn ticket(&self) -> u64 {
        self.0.ticket()
    }

    /// Returns how many places wait ahead of it, as far as this client knows.
    pub fn ahead(&self) -> usize {
        self.0.ahead()
    }

    /// Leaves the queue.
    ///
    /// # Errors
    /// When etcd does not answer. Then it tries again in the background.
    pub async fn leave(mut self) -> Result<(), Error> {
        self.0.leave().await
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("ticket", &self.ticket()).finish_non_exhaustive()
    }
}

/// A slot. Dropping the permit releases it in the background; [`release`](Self::release) waits
/// until that is done.
#[must_use = "dropping a permit gives its slot to the next in line"]
pub struct Permit(Passage);

impl Permit {
    /// Returns the number of the slot, which no other holder has.
    pub fn slot(&self) -> usize {
        self.0.slot()
    }

    /// Returns the permit's ticket, which no other place of this store ever has: for fencing where
    /// there is one slot. A later holder has a greater ticket, and a resource can reject tickets
    /// smaller than the greatest it has seen.
    ///
    /// Where there are more slots that would be wrong: a holder with an older ticket may hold
    /// another slot. See [`fence`](Self::fence).
    pub fn ticket(&self) -> u64 {
        self.0.ticket()
    }

    /// Returns the revision at which it took its slot: for fencing where there are more slots. A
    /// later holder of the same slot has a greater revision, and a resource can reject revisions
    /// smaller than the greatest it has seen *with that slot*. (Tickets do not work for this: a
    /// place with a smaller ticket may take the slot of a place with a greater one.)
    pub fn fence(&self) -> u64 {
        self.0.fence()
    }

    /// Writes to the store in one transaction that takes effect only while this permit holds, and
    /// once.
    ///
    /// ```no_run
    /// # async fn example(permit: doorway_etcd::Permit) -> Result<(), doorway_etcd::Error> {
    /// use doorway_etcd::txn::put;
    /// permit.guarded([put("/config/leader", "me")]).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] when the permit no longer holds: nothing is written.
    /// [`Error::Unreachable`] when etcd did not answer: the write may have happened or not, and may
    /// still happen until the next guarded write or the release succeeds.
    pub async fn guarded(
        &self,
        operations: impl IntoIterator<Item = impl Into<RequestOp>>,
    ) -> Result<(), Error> {
        self.0.guarded(operations.into_iter().map(Into::into).collect()).await
    }

    /// Completes when another client may get the slot soon: when etcd has not answered for nearly
    /// as long as the lease lasts, or when it reports that the place is gone. The future can be
    /// kept apart from the permit.
    ///
    /// This needs clocks that run at the same speed here and there, and a running process: a
    /// process that is stopped learns of the loss when it continues. A write that must not happen
    /// without the slot belongs in a [`guarded`](Self::guarded) write.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        self.0.lost()
    }

    /// Returns whether [`lost`](Self::lost) would complete.
    pub fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    /// Releases the slot, which is granted to the next waiter.
    ///
    /// # Errors
    /// When etcd does not answer. Then it tries again in the background.
    pub async fn release(mut self) -> Result<(), Error> {
        self.0.leave().await
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("slot", &self.slot())
            .field("ticket", &self.ticket())
            .finish_non_exhaustive()
    }
}
