//! Places in line and permits.

use std::{fmt, time::Duration};

use tokio::time::timeout;

use crate::{Error, passage::Passage, proto::etcdserverpb::RequestOp};

/// A place in line. Dropping it leaves the line, in the background; [`leave`](Self::leave) waits
/// until that is done.
#[must_use = "dropping a place leaves the line"]
pub struct Place(Passage);

/// There is no permit.
#[derive(Debug)]
pub enum NotYet {
    /// Time is over; here is the place, which still stands where it stood.
    Late(Place),
    /// It went wrong.
    Failed(Error),
}

impl Place {
    pub(crate) fn new(passage: Passage) -> Self {
        Self(passage)
    }

    /// Waits until it is this place's turn. While etcd does not answer it keeps waiting, for as
    /// long as the lease may last.
    ///
    /// Dropping the future leaves the line; [`ready`](Self::ready) is the one to drop without
    /// losing the place.
    ///
    /// # Errors
    /// When the lease may be gone and with it the place, or the lock has been removed.
    pub async fn wait(mut self) -> Result<Permit, Error> {
        self.ready().await?;
        Ok(Permit(self.0))
    }

    /// Waits for so long at most.
    ///
    /// # Errors
    /// Gives the place back when time is over; and as [`wait`](Self::wait) does.
    pub async fn wait_timeout(mut self, limit: Duration) -> Result<Permit, NotYet> {
        match timeout(limit, self.ready()).await {
            Ok(Ok(())) => Ok(Permit(self.0)),
            Ok(Err(error)) => Err(NotYet::Failed(error)),
            Err(_) => Err(NotYet::Late(self)),
        }
    }

    /// Completes when [`wait`](Self::wait) will return at once. The place is still there when the
    /// future is dropped.
    ///
    /// # Errors
    /// As [`wait`](Self::wait) does.
    pub async fn ready(&mut self) -> Result<(), Error> {
        self.0.ready().await
    }

    /// A permit if it is this place's turn.
    pub(crate) async fn now(mut self) -> Result<Option<Permit>, Error> {
        match self.0.try_ready().await? {
            true => Ok(Some(Permit(self.0))),
            false => self.leave().await.map(|()| None),
        }
    }

    /// Its ticket: places go in in the order of their tickets.
    pub fn ticket(&self) -> u64 {
        self.0.ticket()
    }

    /// How many wait before it, as far as it has heard.
    pub fn ahead(&self) -> usize {
        self.0.ahead()
    }

    /// Leaves the line.
    ///
    /// # Errors
    /// When etcd does not answer. It is tried again in the background then.
    pub async fn leave(mut self) -> Result<(), Error> {
        self.0.leave().await
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("ticket", &self.ticket()).finish_non_exhaustive()
    }
}

/// A slot. Dropping it gives it back, in the background; [`release`](Self::release) waits until
/// that is done.
#[must_use = "dropping a permit gives its slot to the next in line"]
pub struct Permit(Passage);

impl Permit {
    /// The number of the slot, which no other holder has.
    pub fn slot(&self) -> usize {
        self.0.slot()
    }

    /// Its ticket, which no other place of this store ever has: for fencing where there is one
    /// slot. Whoever comes later has a greater ticket, and a resource can reject smaller ones than
    /// it has seen.
    ///
    /// Where there are more slots that would be wrong: older co-holders are in their rights. See
    /// [`fence`](Self::fence).
    pub fn ticket(&self) -> u64 {
        self.0.ticket()
    }

    /// The revision at which it took its slot: for fencing where there are more slots. Whoever has
    /// the same slot later has a greater one, and a resource can reject smaller ones than it has
    /// seen *with that slot*. (Not so tickets: who was ahead may take the slot of one who was
    /// behind.)
    pub fn fence(&self) -> u64 {
        self.0.fence()
    }

    /// Writes to the store what takes effect only while this permit holds, in one transaction, and
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
    /// [`Error::Refused`] when it holds no more: nothing is written. [`Error::Unreachable`] when
    /// etcd did not answer: it may be written or not, and may still be until the next guarded write
    /// or the release is through.
    pub async fn guarded(
        &self,
        operations: impl IntoIterator<Item = impl Into<RequestOp>>,
    ) -> Result<(), Error> {
        self.0.guarded(operations.into_iter().map(Into::into).collect()).await
    }

    /// Completes when the slot may be somebody else's soon: when etcd has not answered for nearly
    /// as long as the lease lasts, or when it says that the place is gone. The future can be kept
    /// apart from the permit.
    ///
    /// Clocks must run alike here and there, and this process must run: one that is stopped learns
    /// it when it goes on. What must not happen without the slot belongs into a
    /// [`guarded`](Self::guarded) write.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        self.0.lost()
    }

    /// Whether [`lost`](Self::lost) has come.
    pub fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    /// Gives the slot to the next in line.
    ///
    /// # Errors
    /// When etcd does not answer. It is tried again in the background then.
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
