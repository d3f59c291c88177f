//! A replica of the queue, kept by a watch: one for all places of this client.
//!
//! First the watch is opened, then the queue is read once, and from then on every change is applied
//! in the order in which it happened. So the replica is the store at some revision, a little late.
//! The watch has no start revision: etcd serves a watch that begins in the past only every 100 ms.
//! When the watch is broken, there is no replica until a new watch is open and the queue has been
//! read again.
//!
//! While the queue is long and all places of this client are far from the front, or it has none,
//! the client keeps no replica: it watches the predecessors alone ([`crate::far`]). It changes to
//! that when its replica shows that this is enough. It changes back by opening the watch on the
//! whole queue and reading the queue, as at the beginning.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use tokio::{
    sync::{Notify, futures::Notified},
    task::AbortHandle,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    Client, Error, Watch,
    admission::{Line, Rule, Turn},
    client::PAUSE,
    far::{Far, NEAR, Predecessor, Step},
    keys::Keys,
    lease::Lease,
    proto::{
        etcdserverpb::{RangeRequest, WatchCreateRequest, WatchResponse},
        mvccpb::KeyValue,
    },
    replica::{Copy, View},
    txn::{get, prefix_end},
};

/// A client far back reads the whole queue again after this many times the TTL, in case a key was
/// deleted by hand.
const FRESH: u32 = 6;

/// A name in the queue that is used for one place after another.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub(crate) place: String,
    /// The version of its counter in the store.
    pub(crate) count: i64,
}

#[derive(Debug, Default)]
struct Seats {
    free: Vec<Seat>,
    made: usize,
}

/// What a place has to do.
#[derive(Debug)]
pub(crate) enum Next {
    Turn(Turn, Rule),
    /// The same, for a place far back.
    Far(Step, Rule),
    /// Wait: the replica is missing or too old.
    Unknown,
    /// The lock has been removed.
    Removed,
}

/// A replica of the queue, and the seats of this client.
#[derive(Debug)]
pub(crate) struct Hall {
    pub(crate) client: Client,
    pub(crate) lease: Arc<Lease>,
    pub(crate) keys: Keys,
    copy: Mutex<Option<Copy>>,
    changed: Notify,
    /// Notified when the whole queue is to be read.
    looks: Arc<Notify>,
    seats: Mutex<Seats>,
    watcher: OnceLock<AbortHandle>,
}

impl Hall {
    /// Opens the watch, and reads the queue.
    pub(crate) async fn open(
        client: &Client,
        lease: &Arc<Lease>,
        keys: &Keys,
    ) -> Result<Arc<Self>, Error> {
        let hall = Arc::new(Self {
            client: client.clone(),
            lease: lease.clone(),
            keys: keys.clone(),
            copy: Mutex::default(),
            changed: Notify::new(),
            looks: Arc::default(),
            seats: Mutex::default(),
            watcher: OnceLock::new(),
        });
        let end = Instant::now() + client.config().patience;
        let watch = loop {
            match hall.stand().await {
                Ok(watch) => break watch,
                Err(Error::Unreachable { .. } | Error::Login(_)) if Instant::now() < end => {
                    sleep(PAUSE).await
                }
                Err(error) => return Err(error),
            }
        };
        let watcher =
            tokio::spawn(attend(Arc::downgrade(&hall), client.clone(), hall.looks.clone(), watch));
        let _ = hall.watcher.set(watcher.abort_handle());
        Ok(hall)
    }

    /// Opens the watch, then reads the queue.
    async fn stand(&self) -> Result<Watch, Error> {
        let (key, range_end) = (self.keys.cfg().into_bytes(), self.keys.end().into_bytes());
        let watch = WatchCreateRequest { key, range_end: range_end.clone(), ..Default::default() };
        let watch = self.client.watch([watch]).await?;
        let range = self.client.range(RangeRequest { range_end, ..get(self.keys.cfg()) }).await?;
        let mut copy = Copy::new(range.header.map_or(0, |header| header.revision));
        range.kvs.iter().for_each(|kv| copy.put(&self.keys, kv));
        *self.copy() = Some(copy);
        self.changed.notify_waiters();
        Ok(watch)
    }

    /// Applies the events of the watch. Events up to the revision that was read are known already.
    fn deliver(&self, answer: &WatchResponse) {
        if let Some(copy) = &mut *self.copy() {
            answer.events.iter().for_each(|event| copy.apply(&self.keys, event));
        }
        self.changed.notify_waiters();
    }

    fn copy(&self) -> MutexGuard<'_, Option<Copy>> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `ask` on the replica, if it has the whole queue.
    pub(crate) fn known<T>(&self, ask: impl FnOnce(&Copy, &Line) -> T) -> Option<T> {
        match &*self.copy() {
            Some(copy @ Copy { view: View::Whole(line), .. }) => Some(ask(copy, line)),
            _ => None,
        }
    }

    /// Returns what this place, with this ticket, has to do. `made` is when its lock was created.
    pub(crate) fn next(&self, place: &str, ticket: i64, made: i64) -> Next {
        let copy = self.copy();
        let Some(copy) = &*copy else { return Next::Unknown };
        match (copy.rule.filter(|_| copy.made == made), &copy.view) {
            (Some(rule), View::Far(far)) => Next::Far(far.step(rule, place, ticket), rule),
            _ if copy.revision < ticket => Next::Unknown,
            (Some(rule), View::Whole(line)) => Next::Turn(line.turn(rule, ticket), rule),
            (None, _) => Next::Removed,
        }
    }

    /// Returns how many places wait ahead of this ticket, as far as is known.
    pub(crate) fn ahead(&self, ticket: i64) -> usize {
        let ahead = |copy: &Copy| match &copy.view {
            View::Whole(line) => Some(line.waiting_ahead(ticket)),
            View::Far(far) => far.ahead(ticket),
        };
        self.copy().as_ref().and_then(ahead).unwrap_or(0)
    }

    /// Returns whether the lock created at `made` has been removed since this ticket was issued, or
    /// created anew.
    pub(crate) fn is_removed(&self, ticket: i64, made: i64) -> bool {
        self.copy().as_ref().is_some_and(|copy| copy.revision >= ticket && copy.made != made)
    }

    /// Records that a place has entered, right behind the place in `last`, with `count` places in
    /// the queue. If the client is far back already, the new place is far back as well, or the
    /// whole queue is read.
    pub(crate) fn entered(&self, ticket: i64, last: Option<&KeyValue>, count: usize) {
        let mut copy = self.copy();
        let Some(Copy { view: View::Far(far), rule, .. }) = &mut *copy else { return };
        // With more slots the predecessor may hold one already, and that has to be known.
        let one = rule.is_some_and(|rule| rule.slots == Some(1));
        match last.and_then(|kv| Some((str::from_utf8(&kv.value).ok()?, kv.mod_revision))) {
            Some((place, before)) if one && count > NEAR + 1 => {
                // All places except this one and the holder.
                let predecessor = Predecessor::new(place, before, count - 2);
                far.follow(ticket, predecessor, self.keys.place(place), ticket);
            }
            _ => {
                drop(copy);
                self.look();
            }
        }
    }

    /// Records that the place with this ticket has a slot, or leaves.
    pub(crate) fn forget(&self, ticket: i64) {
        if let Some(Copy { view: View::Far(far), .. }) = &mut *self.copy() {
            far.forget(ticket);
        }
    }

    /// Requests a read of the whole queue. The replica is empty until then.
    pub(crate) fn look(&self) {
        *self.copy() = None;
        self.looks.notify_one();
    }

    /// If the queue is long, and all places of this client, if any, are far back: returns the
    /// revision at which that is so, and their predecessors.
    fn far_behind(&self) -> Option<(i64, Vec<(i64, Predecessor)>)> {
        let made = self.seats.lock().unwrap_or_else(PoisonError::into_inner).made;
        let far = self.known(|copy, line| {
            if line.len() <= NEAR + 1 {
                return None;
            }
            let ours = (1..=made).filter_map(|number| line.ticket(&self.seat(number)));
            let far: Option<Vec<_>> =
                ours.map(|ticket| Some((ticket, line.far_behind(ticket)?))).collect();
            Some((copy.revision, far?))
        });
        far.flatten()
    }

    /// Changes to watching the predecessors alone, if that is enough.
    async fn step_back(&self) -> Result<Option<Watch>, Error> {
        let Some((known, far_behind)) = self.far_behind() else { return Ok(None) };
        let (prefix, start_revision) = (format!("{:016x}-", self.lease.id), known + 1);
        let cfg = WatchCreateRequest {
            key: self.keys.cfg().into_bytes(),
            start_revision,
            ..Default::default()
        };
        let (key, range_end) =
            (self.keys.place(&prefix).into_bytes(), prefix_end(self.keys.place(&prefix)));
        let ours = WatchCreateRequest { key, range_end, start_revision, ..Default::default() };
        let watch = self.client.watch([cfg, ours]).await?;
        let mut far = Far::new(watch.sender(), prefix);
        for (ticket, predecessor) in far_behind {
            let key = self.keys.place(&predecessor.place);
            far.follow(ticket, predecessor, key, known);
        }
        if let Some(copy) = &mut *self.copy() {
            copy.view = View::Far(far);
        }
        self.changed.notify_waiters();
        Ok(Some(watch))
    }

    /// Returns the name of a seat.
    fn seat(&self, number: usize) -> String {
        format!("{:016x}-{number}", self.lease.id)
    }

    /// Completes when a place may have something else to do. No change after this call is missed.
    pub(crate) fn changed(&self) -> Pin<Box<Notified<'_>>> {
        let mut changed = Box::pin(self.changed.notified());
        changed.as_mut().enable();
        changed
    }

    /// Returns a seat that no place uses.
    pub(crate) fn sit(&self) -> Seat {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats.free.pop().unwrap_or_else(|| {
            seats.made += 1;
            Seat { place: self.seat(seats.made), count: 0 }
        })
    }

    /// Marks a seat as unused.
    pub(crate) fn stand_up(&self, seat: Seat) {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner).free.push(seat);
    }
}

impl Drop for Hall {
    fn drop(&mut self) {
        if let Some(watcher) = self.watcher.get() {
            watcher.abort();
        }
    }
}

/// Keeps the replica for as long as it is used and the lease is alive.
async fn attend(hall: Weak<Hall>, client: Client, looks: Arc<Notify>, mut watch: Watch) {
    let (limit, ttl) = (client.config().limit, client.config().ttl);
    loop {
        let (mut poked, mut far_since) = (false, None);
        loop {
            if far_since.is_none() {
                let Some(hall) = hall.upgrade() else { return };
                match hall.step_back().await {
                    Ok(None) => {}
                    Ok(Some(far)) => (watch, far_since, poked) = (far, Some(Instant::now()), false),
                    Err(_) => break,
                }
            }
            // A client far back has time, and there may be a thousand such clients.
            let quiet = if far_since.is_some() && !poked { limit.max(ttl / 3) } else { limit };
            let stale = far_since.unwrap_or_else(Instant::now) + FRESH * ttl;
            let answer = tokio::select! {
                answer = timeout(quiet, watch.next()) => answer,
                () = looks.notified() => break,
                () = sleep_until(stale), if far_since.is_some() => break,
            };
            match answer {
                Ok(Ok(answer)) => {
                    let Some(hall) = hall.upgrade() else { return };
                    hall.deliver(&answer);
                    poked = false;
                }
                Ok(Err(_)) => break,
                // Nothing may have happened, or the endpoint may be gone.
                Err(_) if !poked => {
                    watch.poke();
                    poked = true;
                }
                Err(_) => {
                    watch.give_up();
                    break;
                }
            }
        }
        watch = loop {
            let Some(hall) = hall.upgrade().filter(|hall| !hall.lease.is_lost()) else { return };
            *hall.copy() = None;
            if let Ok(watch) = hall.stand().await {
                break watch;
            }
            drop(hall);
            sleep(PAUSE).await;
        };
    }
}
