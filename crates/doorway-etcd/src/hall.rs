//! A copy of the line, kept by a watch: one for all places of this client.
//!
//! First the watch stands, then the line is read once, and from then on every change is applied in the order in which it happened. So the copy is
//! the store at some revision, a little late. The watch has no start revision: etcd serves a watch that begins in the past every 100 ms
//! only. When the watch is broken there is no copy until it stands again and the line has been read.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use tokio::{
    sync::{Notify, futures::Notified},
    task::AbortHandle,
    time::{Instant, sleep, timeout},
};

use crate::{
    Client, Error, Watch,
    admission::{Line, Rule, Turn},
    cfg::Cfg,
    client::PAUSE,
    keys::Keys,
    lease::Lease,
    proto::{
        etcdserverpb::{RangeRequest, WatchCreateRequest, WatchResponse},
        mvccpb::{KeyValue, event::EventType},
    },
    txn::get,
};

/// `cfg`, the line and the slots, as they were in the store at one revision.
#[derive(Clone, Default, Debug)]
pub(crate) struct Copy {
    pub(crate) revision: i64,
    /// The revision at which the lock was made; 0 if there is none.
    made: i64,
    /// None if there is no such lock, or it is damaged.
    pub(crate) rule: Option<Rule>,
    pub(crate) line: Line,
}

impl Copy {
    fn put(&mut self, keys: &Keys, kv: &KeyValue) {
        let (Ok(key), Ok(value)) = (str::from_utf8(&kv.key), str::from_utf8(&kv.value)) else { return };
        if key == keys.cfg() {
            self.made = kv.create_revision;
            self.rule = Cfg::parse(keys, &kv.value).ok().map(|cfg| cfg.rule(kv.mod_revision));
        } else if let Some(place) = key.strip_prefix(&keys.line()) {
            self.line.enters(place, kv.create_revision, &kv.value);
        } else if let Some(slot) = key.strip_prefix(&keys.slots()).and_then(|slot| slot.parse().ok()) {
            self.line.takes(slot, value, kv.mod_revision);
        }
    }

    fn delete(&mut self, keys: &Keys, kv: &KeyValue) {
        let Ok(key) = str::from_utf8(&kv.key) else { return };
        if key == keys.cfg() {
            (self.made, self.rule) = (0, None);
        } else if let Some(place) = key.strip_prefix(&keys.line()) {
            self.line.leaves(place);
        } else if let Some(slot) = key.strip_prefix(&keys.slots()).and_then(|slot| slot.parse().ok()) {
            self.line.frees(slot);
        }
    }
}

/// A name in the line that is used for one place after the other.
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

/// What there is to do for a place.
#[derive(Debug)]
pub(crate) enum Next {
    Turn(Turn, Rule),
    /// Wait: the copy is missing or too old.
    Unknown,
    /// The lock has been removed.
    Removed,
}

/// A copy of the line, and the seats of this client.
#[derive(Debug)]
pub(crate) struct Hall {
    pub(crate) client: Client,
    pub(crate) lease: Arc<Lease>,
    pub(crate) keys: Keys,
    copy: Mutex<Option<Copy>>,
    changed: Notify,
    seats: Mutex<Seats>,
    watcher: OnceLock<AbortHandle>,
}

impl Hall {
    /// Opens the watch, and reads the line.
    pub(crate) async fn open(client: &Client, lease: &Arc<Lease>, keys: &Keys) -> Result<Arc<Self>, Error> {
        let hall = Arc::new(Self {
            client: client.clone(),
            lease: lease.clone(),
            keys: keys.clone(),
            copy: Mutex::default(),
            changed: Notify::new(),
            seats: Mutex::default(),
            watcher: OnceLock::new(),
        });
        let end = Instant::now() + client.config().patience;
        let watch = loop {
            match hall.stand().await {
                Ok(watch) => break watch,
                Err(Error::Unreachable { .. } | Error::Login(_)) if Instant::now() < end => sleep(PAUSE).await,
                Err(error) => return Err(error),
            }
        };
        let watcher = tokio::spawn(attend(Arc::downgrade(&hall), client.clone(), watch));
        let _ = hall.watcher.set(watcher.abort_handle());
        Ok(hall)
    }

    /// The watch stands, then the line is read.
    async fn stand(&self) -> Result<Watch, Error> {
        let (key, range_end) = (self.keys.cfg().into_bytes(), self.keys.end().into_bytes());
        let watch = WatchCreateRequest { key, range_end: range_end.clone(), ..Default::default() };
        let watch = self.client.watch([watch]).await?;
        let range = self.client.range(RangeRequest { range_end, ..get(self.keys.cfg()) }).await?;
        let mut copy = Copy { revision: range.header.map_or(0, |header| header.revision), ..Copy::default() };
        range.kvs.iter().for_each(|kv| copy.put(&self.keys, kv));
        *self.copy() = Some(copy);
        self.changed.notify_waiters();
        Ok(watch)
    }

    /// Applies what the watch says. What had happened when the line was read is known already.
    fn deliver(&self, answer: &WatchResponse) {
        if let Some(copy) = &mut *self.copy() {
            for event in &answer.events {
                let Some(kv) = event.kv.as_ref().filter(|kv| kv.mod_revision >= copy.revision) else { continue };
                match event.r#type() {
                    EventType::Put => copy.put(&self.keys, kv),
                    EventType::Delete => copy.delete(&self.keys, kv),
                }
                copy.revision = kv.mod_revision;
            }
        }
        self.changed.notify_waiters();
    }

    fn copy(&self) -> MutexGuard<'_, Option<Copy>> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something about the line, as far as it is known.
    pub(crate) fn known<T>(&self, ask: impl FnOnce(&Copy) -> T) -> Option<T> {
        self.copy().as_ref().map(ask)
    }

    /// What there is to do for the place with this ticket of a lock that was made then.
    pub(crate) fn next(&self, ticket: i64, made: i64) -> Next {
        match &*self.copy() {
            Some(copy) if copy.revision >= ticket => match copy.rule {
                Some(rule) if copy.made == made => Next::Turn(copy.line.turn(rule, ticket), rule),
                _ => Next::Removed,
            },
            _ => Next::Unknown,
        }
    }

    /// Whether the lock that was made then has been removed since this ticket was handed out, or made anew.
    pub(crate) fn is_removed(&self, ticket: i64, made: i64) -> bool {
        self.known(|copy| copy.revision >= ticket && copy.made != made).unwrap_or(false)
    }

    /// Completes when there may be something else to do. Nothing is missed from when this is called.
    pub(crate) fn changed(&self) -> Pin<Box<Notified<'_>>> {
        let mut changed = Box::pin(self.changed.notified());
        changed.as_mut().enable();
        changed
    }

    /// A seat that nobody sits in.
    pub(crate) fn sit(&self) -> Seat {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats.free.pop().unwrap_or_else(|| {
            seats.made += 1;
            Seat { place: format!("{:016x}-{}", self.lease.id, seats.made), count: 0 }
        })
    }

    /// Nobody sits in this seat any more.
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

/// Keeps the copy, for as long as somebody wants it and the lease is alive.
async fn attend(hall: Weak<Hall>, client: Client, mut watch: Watch) {
    let limit = client.config().limit;
    loop {
        let mut poked = false;
        loop {
            match timeout(limit, watch.next()).await {
                Ok(Ok(answer)) => {
                    let Some(hall) = hall.upgrade() else { return };
                    hall.deliver(&answer);
                    poked = false;
                }
                Ok(Err(_)) => break,
                // Nothing may have happened, or nobody is there.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn kv(key: String, value: &str, created: i64, changed: i64) -> KeyValue {
        let (key, value) = (key.into_bytes(), value.as_bytes().to_vec());
        KeyValue { key, value, create_revision: created, mod_revision: changed, ..Default::default() }
    }

    #[test]
    fn a_copy_follows_the_store() {
        let keys = Keys::new("gpu").expect("a name");
        let mut copy = Copy::default();
        copy.put(&keys, &kv(keys.cfg(), r#"{"kind":"semaphore","slots":1}"#, 2, 3));
        let rule = copy.rule.expect("there is one");
        assert_eq!((rule, copy.made), (Rule { slots: Some(1), drained: false, revision: 3 }, 2));
        copy.put(&keys, &kv(keys.place("1-1"), "", 4, 4));
        copy.put(&keys, &kv(keys.place("2-1"), "", 5, 5));
        copy.put(&keys, &kv(keys.slot(0), "1-1 7", 6, 6));
        // That it has a slot is written at its place as well, which keeps its ticket.
        copy.put(&keys, &kv(keys.place("1-1"), "", 4, 6));
        let Turn::Holds(0, held) = copy.line.turn(rule, 4) else { panic!("it holds slot 0") };
        assert_eq!((&*held.value, held.revision), ("1-1 7", 6));
        assert_eq!(copy.line.turn(rule, 5), Turn::Wait);
        copy.delete(&keys, &kv(keys.place("1-1"), "", 0, 7));
        copy.delete(&keys, &kv(keys.slot(0), "", 0, 7));
        assert_eq!((copy.line.turn(rule, 4), copy.line.turn(rule, 5)), (Turn::Gone, Turn::Take(0)));
        copy.put(&keys, &kv(keys.cfg(), "scribbled", 2, 8));
        assert_eq!(copy.rule, None);
    }
}
