//! The watch on a lock, one for all places of this client.
//!
//! It watches without a start revision: etcd serves a watch that begins in the past every 100 ms only. So first the watch stands, then a
//! place reads the line, and what the watch says of earlier revisions is known already. When the watch has been broken, each place
//! reads the line again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use tokio::{
    sync::Notify,
    task::AbortHandle,
    time::{Instant, sleep, timeout},
};

use crate::{
    Client, Error, Watch,
    admission::{Admission, Turn},
    keys::Keys,
    lease::{Lease, PAUSE},
    proto::{
        etcdserverpb::{WatchCreateRequest, WatchResponse, watch_create_request::FilterType},
        mvccpb::event::EventType,
    },
    reading::{slot, spot},
    txn::{all, prefix_end},
};

/// What the watch says.
#[derive(Clone, Debug)]
enum Event {
    /// A place has left the line.
    Left(String),
    /// A slot has passed to somebody, or to nobody.
    Passed(usize, Option<String>),
    /// The lock has changed.
    Changed,
}

/// What a place knows.
#[derive(Debug, Default)]
struct View {
    /// `None` until it has read the line.
    admission: Option<Admission>,
    /// What the watch says while it reads the line: some of it may be later than what it reads.
    backlog: Option<Vec<(i64, Event)>>,
    /// How often the watch was broken, and how often it had been when the line was read last.
    breaks: u64,
    breaks_read: u64,
    /// When the lock has changed last.
    changed: i64,
    /// It is not in line any more.
    gone: bool,
}

impl View {
    fn hear(&mut self, revision: i64, event: &Event) {
        if let Some(backlog) = &mut self.backlog {
            backlog.push((revision, event.clone()));
        }
        self.apply(revision, event);
    }

    fn apply(&mut self, revision: i64, event: &Event) {
        match (event, &mut self.admission) {
            (Event::Changed, _) => self.changed = self.changed.max(revision),
            (Event::Left(place), Some(admission)) => self.gone |= admission.left(place, revision),
            (Event::Passed(slot, holder), Some(admission)) => admission.passed(*slot, holder.as_deref(), revision),
            (_, None) => {}
        }
    }
}

/// What a place is told by the watch.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    view: Mutex<View>,
    changed: Notify,
}

/// What there is to do for a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    Turn(Turn),
    /// Read the line again.
    Read,
    /// It is not in line any more.
    Gone,
}

impl Standing {
    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is about to read the line. Returns what [`knows`](Self::knows) wants back.
    pub(crate) fn asks(&self) -> u64 {
        let mut view = self.view();
        view.backlog = Some(Vec::new());
        view.breaks
    }

    /// It has read the line.
    pub(crate) fn knows(&self, admission: Admission, breaks: u64) {
        let mut view = self.view();
        view.admission = Some(admission);
        view.breaks_read = breaks;
        for (revision, event) in view.backlog.take().unwrap_or_default() {
            view.apply(revision, &event);
        }
    }

    /// It has not read the line after all.
    pub(crate) fn knows_enough(&self) {
        self.view().backlog = None;
    }

    pub(crate) fn next(&self) -> Next {
        let view = self.view();
        match &view.admission {
            _ if view.gone => Next::Gone,
            Some(admission) if view.breaks == view.breaks_read && view.changed <= admission.rule().revision => {
                Next::Turn(admission.turn())
            }
            _ => Next::Read,
        }
    }

    /// What it goes by, if it knows the line.
    pub(crate) fn admission<T>(&self, ask: impl FnOnce(&Admission) -> T) -> Option<T> {
        self.view().admission.as_ref().map(ask)
    }

    /// Completes when there may be something else to do. Nothing is missed from when this is called.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> + '_ {
        let mut changed = Box::pin(self.changed.notified());
        changed.as_mut().enable();
        changed
    }

    /// Completes when it is not in line any more.
    pub(crate) async fn gone(&self) {
        loop {
            let changed = self.changed();
            if self.view().gone {
                return;
            }
            changed.await;
        }
    }

    fn tell(&self, change: impl FnOnce(&mut View)) {
        change(&mut self.view());
        self.changed.notify_waiters();
    }
}

/// A name in the line that is used for one place after the other.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub(crate) place: String,
    /// What it has done, as the version of its counter in the store has it.
    pub(crate) count: i64,
}

#[derive(Debug, Default)]
struct Seats {
    free: Vec<Seat>,
    made: usize,
}

/// The watch on a lock, and whom it tells.
#[derive(Debug)]
pub(crate) struct Hall {
    pub(crate) client: Client,
    pub(crate) lease: Arc<Lease>,
    pub(crate) keys: Keys,
    standings: Mutex<HashMap<String, Arc<Standing>>>,
    seats: Mutex<Seats>,
    watcher: OnceLock<AbortHandle>,
}

impl Hall {
    /// Opens the watch.
    pub(crate) async fn open(client: &Client, lease: &Arc<Lease>, keys: &Keys) -> Result<Arc<Self>, Error> {
        let end = Instant::now() + client.config().patience;
        let watch = loop {
            match client.watch(watches(keys)).await {
                Ok(watch) => break watch,
                Err(error @ (Error::Unreachable { .. } | Error::Login(_))) if Instant::now() >= end => {
                    return Err(error);
                }
                Err(Error::Unreachable { .. } | Error::Login(_)) => sleep(PAUSE).await,
                Err(error) => return Err(error),
            }
        };
        let hall = Arc::new(Self {
            client: client.clone(),
            lease: lease.clone(),
            keys: keys.clone(),
            standings: Mutex::default(),
            seats: Mutex::default(),
            watcher: OnceLock::new(),
        });
        let watcher = tokio::spawn(attend(Arc::downgrade(&hall), client.clone(), keys.clone(), watch));
        let _ = hall.watcher.set(watcher.abort_handle());
        Ok(hall)
    }

    /// A seat that nobody sits in, and what the watch tells it.
    pub(crate) fn sit(&self) -> (Seat, Arc<Standing>) {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let seat = seats.free.pop().unwrap_or_else(|| {
            seats.made += 1;
            Seat { place: format!("{:016x}-{}", self.lease.id, seats.made), count: 0 }
        });
        let standing = Arc::new(Standing::default());
        self.standings().insert(seat.place.clone(), standing.clone());
        (seat, standing)
    }

    /// Nobody sits in this seat any more. It is used again if what it has done is known.
    pub(crate) fn stand_up(&self, seat: Seat, again: bool) {
        self.standings().remove(&seat.place);
        if again {
            self.seats.lock().unwrap_or_else(PoisonError::into_inner).free.push(seat);
        }
    }

    fn standings(&self) -> MutexGuard<'_, HashMap<String, Arc<Standing>>> {
        self.standings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deliver(&self, answer: &WatchResponse) {
        let mut events = Vec::new();
        for event in &answer.events {
            let Some(kv) = &event.kv else { continue };
            let deleted = event.r#type() == EventType::Delete;
            let said = if kv.key == self.keys.cfg().as_bytes() {
                Some(Event::Changed)
            } else if let Some(spot) = spot(&self.keys, kv) {
                deleted.then_some(Event::Left(spot.place))
            } else if deleted {
                let key = str::from_utf8(&kv.key).ok().and_then(|key| key.strip_prefix(&self.keys.slots()));
                key.and_then(|slot| slot.parse().ok()).map(|slot| Event::Passed(slot, None))
            } else {
                slot(&self.keys, kv).map(|(slot, place)| Event::Passed(slot, Some(place)))
            };
            events.extend(said.map(|said| (kv.mod_revision, said)));
        }
        if events.is_empty() {
            return;
        }
        for standing in self.standings().values() {
            standing.tell(|view| events.iter().for_each(|(revision, event)| view.hear(*revision, event)));
        }
    }

    /// The watch was broken, and stands again: who is not in line any more learns it, and the others read the line again.
    async fn catch_up(&self) -> Result<(), Error> {
        let range = self.client.range(all(self.keys.line())).await?;
        let revision = range.header.map_or(0, |header| header.revision);
        let line: HashMap<_, _> =
            range.kvs.iter().filter_map(|kv| spot(&self.keys, kv)).map(|s| (s.place, s.ticket)).collect();
        for (place, standing) in self.standings().iter() {
            standing.tell(|view| {
                let ticket = view.admission.as_ref().map(Admission::ticket).filter(|&ticket| ticket <= revision);
                view.gone |= ticket.is_some() && ticket != line.get(place).copied();
                view.breaks += 1;
            });
        }
        Ok(())
    }
}

impl Drop for Hall {
    fn drop(&mut self) {
        if let Some(watcher) = self.watcher.get() {
            watcher.abort();
        }
    }
}

fn watches(keys: &Keys) -> [WatchCreateRequest; 3] {
    let range = |prefix: String| WatchCreateRequest {
        range_end: prefix_end(prefix.clone()),
        key: prefix.into(),
        ..Default::default()
    };
    [
        WatchCreateRequest { filters: vec![FilterType::Noput.into()], ..range(keys.line()) },
        range(keys.slots()),
        WatchCreateRequest { key: keys.cfg().into(), ..Default::default() },
    ]
}

/// Tells the places what the watch says, for as long as there are any and their lease is alive.
async fn attend(hall: Weak<Hall>, client: Client, keys: Keys, mut watch: Watch) {
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
            match hall.upgrade() {
                Some(hall) if !hall.lease.is_lost() => {}
                _ => return,
            }
            if let Ok(watch) = client.watch(watches(&keys)).await {
                let Some(hall) = hall.upgrade() else { return };
                if hall.catch_up().await.is_ok() {
                    break watch;
                }
            }
            sleep(PAUSE).await;
        };
    }
}
