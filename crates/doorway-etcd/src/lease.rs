//! A lease: what a client has in the store lasts as long as the client keeps the lease alive.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::watch,
    task::AbortHandle,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    Client, Error,
    client::PAUSE,
    proto::etcdserverpb::{LeaseGrantRequest, LeaseRevokeRequest},
};

/// Until when the lease lasts for certain, by the clock here.
#[derive(Clone, Copy, Debug)]
struct Until {
    deadline: Instant,
    /// The lease was late once. Later answers do not count: a caller may have been told of the
    /// loss.
    lost: bool,
}

#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) id: i64,
    client: Client,
    until: watch::Sender<Until>,
    keeper: AbortHandle,
    runtime: Handle,
}

impl Lease {
    /// Creates a lease, which is kept alive until it is dropped.
    pub(crate) async fn grant(client: &Client) -> Result<Arc<Self>, Error> {
        // The client chooses the ID: the same request sent again makes no second lease.
        let id = (RandomState::new().build_hasher().finish() >> 1).max(1) as i64;
        let ttl = client.config().ttl.as_millis().div_ceil(1000).max(1) as i64;
        let sent = Instant::now();
        let granted = client.grant(LeaseGrantRequest { id, ttl }).await?;
        let ttl = Duration::from_secs(granted.ttl.unsigned_abs());
        let (until, _) = watch::channel(Until { deadline: deadline(sent, ttl), lost: false });
        Ok(Arc::new_cyclic(|lease: &Weak<Self>| {
            let keeper = tokio::spawn(keep(lease.clone(), client.clone(), id, ttl)).abort_handle();
            Self { id, client: client.clone(), until, keeper, runtime: Handle::current() }
        }))
    }

    /// Returns whether the lease may be gone.
    pub(crate) fn is_lost(&self) -> bool {
        let late = |until: &Until| until.lost || Instant::now() >= until.deadline;
        let lost = late(&self.until.borrow());
        if lost {
            self.lose();
        }
        lost
    }

    /// Completes when the lease may be gone.
    pub(crate) async fn lost(&self) {
        let mut until = self.until.subscribe();
        while !self.is_lost() {
            let deadline = until.borrow_and_update().deadline;
            tokio::select! {
                () = sleep_until(deadline) => {}
                _ = until.changed() => {}
            }
        }
    }

    pub(crate) fn lose(&self) {
        self.until.send_if_modified(|until| !std::mem::replace(&mut until.lost, true));
    }

    /// Extends the lease if etcd answered in time. Returns whether to go on.
    fn extend(&self, deadline: Instant) -> bool {
        if self.is_lost() {
            return false;
        }
        self.until.send_if_modified(|until| {
            until.deadline = until.deadline.max(deadline);
            true
        });
        true
    }

    /// Ends the lease now, and deletes all its keys.
    pub(crate) async fn revoke(&self) -> Result<(), Error> {
        self.keeper.abort();
        self.lose();
        match self.client.revoke(LeaseRevokeRequest { id: self.id }).await {
            Err(Error::Store(why)) if why.contains("lease not found") => Ok(()),
            revoked => revoked.map(drop),
        }
    }
}

/// The lease is no longer used: its remaining keys must not block other clients.
impl Drop for Lease {
    fn drop(&mut self) {
        self.keeper.abort();
        let (client, id) = (self.client.clone(), self.id);
        self.runtime.spawn(async move { client.revoke(LeaseRevokeRequest { id }).await });
    }
}

/// etcd counts from when it receives the request. This client counts from when it sent the request,
/// which is earlier, and subtracts a little for clocks that run at different speeds.
fn deadline(sent: Instant, ttl: Duration) -> Instant {
    sent + ttl - (ttl / 20)
}

async fn keep(lease: Weak<Lease>, client: Client, id: i64, mut ttl: Duration) {
    sleep(ttl / 3).await;
    loop {
        let mut sent = Instant::now();
        if let Ok(mut stream) = client.keep_alive(id).await {
            while let Ok(granted) = stream.answer().await {
                let Some(lease) = lease.upgrade() else { return };
                if granted.is_zero() {
                    return lease.lose();
                }
                ttl = granted;
                if !lease.extend(deadline(sent, ttl)) {
                    return;
                }
                drop(lease);
                sleep(ttl / 3).await;
                sent = Instant::now();
                stream.send();
            }
        }
        match lease.upgrade() {
            Some(lease) if !lease.is_lost() => {}
            _ => return,
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_given_up_before_it_ends() {
        let sent = Instant::now();
        assert_eq!(deadline(sent, Duration::from_secs(10)), sent + Duration::from_millis(9500));
    }
}
