//! The transactions of one passage.
//!
//! Each transaction may be sent more than once, and may arrive late. A repeated or late
//! transaction must have no effect:
//!
//! - the doorway is conditional on the place not being there and on the counter of the seat, which
//!   every leaving place increments;
//! - a slot is taken, or handed over, only by or to a place of version 1, which the transaction
//!   raises to 2. A slot that is taken in the doorway is created together with the place, so no
//!   client that knows of the place misses the slot;
//! - leaving and guarded writes are conditional on the counter, and increment it. The counter's
//!   value names the last transaction, so a transaction whose answer was lost can be told from one
//!   that did not happen.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::{runtime::Handle, sync::Mutex, time::sleep};

use crate::{
    Error,
    admission::{Rule, Turn},
    client::PAUSE,
    far::Step,
    hall::{Hall, Next, Seat},
    keys::Keys,
    leave::Leaver,
    proto::{
        etcdserverpb::{Compare, RequestOp, TxnRequest, TxnResponse},
        mvccpb::KeyValue,
    },
    status::Note,
    txn::{
        all, all_created_by, changed, count as count_all, created, get, lease, none, replace,
        touch, version,
    },
};

/// Returns the milliseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Returns a name for a transaction that no other transaction of this process has. No other process
/// writes into the counters of its seats.
pub(crate) fn deed() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed).to_string()
}

/// Returns the value of a slot that this place holds.
pub(crate) fn held(place: &str) -> String {
    format!("{place} {}", now())
}

/// Returns whether the lease is gone, and everything on it.
pub(crate) fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Store(why) if why.contains("lease not found"))
}

/// Returns the first key of each read.
fn firsts<const N: usize>(answer: TxnResponse) -> [Option<KeyValue>; N] {
    let mut reads = answer.reads().map(|range| range.kvs.into_iter().next());
    std::array::from_fn(|_| reads.next().flatten())
}

/// A slot, and the value of its key.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) number: usize,
    pub(crate) value: String,
    /// The revision at which it was taken.
    pub(crate) taken: i64,
    /// The version of the place: it shows whether the slot was taken in the doorway, or later.
    pub(crate) version: i64,
}

impl Slot {
    /// Returns the slot of this place, if one of these keys is its slot. It was taken after the
    /// doorway.
    pub(crate) fn find(keys: &Keys, place: &str, slots: &[KeyValue]) -> Option<Self> {
        slots.iter().find_map(|kv| {
            let number = str::from_utf8(&kv.key).ok()?.strip_prefix(&keys.slots())?.parse().ok()?;
            let value = String::from_utf8(kv.value.clone()).ok()?;
            let is_mine = value.split(' ').next() == Some(place);
            is_mine.then_some(Self { number, value, taken: kv.mod_revision, version: 2 })
        })
    }
}

/// One passage, from the doorway on. Dropping it leaves the queue or releases the slot.
#[derive(Debug)]
pub(crate) struct Passage {
    hall: Arc<Hall>,
    /// `None` once the place has left.
    seat: Option<Mutex<Seat>>,
    place: String,
    session: String,
    /// The revision at which the lock was created.
    made: i64,
    ticket: Option<i64>,
    slot: Option<Slot>,
    runtime: Handle,
}

impl Passage {
    pub(crate) fn new(hall: Arc<Hall>, session: &str, made: i64) -> Self {
        let seat = hall.sit();
        let (place, session, runtime) = (seat.place.clone(), session.into(), Handle::current());
        Self {
            hall,
            place,
            seat: Some(Mutex::new(seat)),
            session,
            made,
            ticket: None,
            slot: None,
            runtime,
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.hall.keys.name()
    }

    pub(crate) fn ticket(&self) -> u64 {
        self.ticket.unwrap_or(0).unsigned_abs()
    }

    pub(crate) fn slot(&self) -> usize {
        self.slot.as_ref().map_or(0, |slot| slot.number)
    }

    pub(crate) fn fence(&self) -> u64 {
        self.slot.as_ref().map_or(0, |slot| slot.taken.unsigned_abs())
    }

    pub(crate) fn ahead(&self) -> usize {
        self.hall.ahead(self.ticket.unwrap_or(0))
    }

    fn lost_error(&self) -> Error {
        Error::Lost(self.name().into())
    }

    /// Returns whether the place or the slot may belong to another client already.
    pub(crate) fn is_lost(&self) -> bool {
        is_lost(&self.hall, &self.place, self.ticket.unwrap_or(0), self.made)
    }

    /// Completes when [`is_lost`](Self::is_lost) may hold.
    pub(crate) fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        let (hall, ticket, made) = (self.hall.clone(), self.ticket.unwrap_or(0), self.made);
        let place = self.place.clone();
        async move {
            loop {
                let changed = hall.changed();
                if is_lost(&hall, &place, ticket, made) {
                    return;
                }
                tokio::select! {
                    () = changed => {}
                    () = hall.lease.lost() => {}
                }
            }
        }
    }

    /// The doorway: one transaction. If a slot is free for the place, it takes that as well, unless
    /// another client has entered meanwhile.
    pub(crate) async fn enter(&mut self, note: &Note) -> Result<(), Error> {
        let (hall, id) = (self.hall.clone(), self.hall.lease.id);
        let (keys, place) = (&hall.keys, self.place.clone());
        let note = note.entered(now());
        loop {
            let Some(seat) = &mut self.seat else { return Err(self.lost_error()) };
            let count = seat.get_mut().count;
            let conditions = [
                created(keys.place(&place), 0),
                version(keys.count(&place), count),
                created(keys.cfg(), self.made),
            ];
            let mut txn = TxnRequest::when(conditions)
                .then(lease(keys.place(&place), self.session.clone(), id))
                .then(lease(keys.note(&place), note.clone(), id))
                .then(replace(keys.last(), place.clone(), id))
                .then(count_all(keys.line()));
            let slot = hall.known(|copy, line| {
                let number = line.place_for_newcomer(copy.rule?, self.session.as_bytes())?;
                Some((
                    copy.revision,
                    copy.rule?,
                    Slot { number, value: held(&place), taken: 0, version: 1 },
                ))
            });
            let slot = slot.flatten();
            if let Some((known, rule, slot)) = &slot {
                let still = [
                    all_created_by(keys.line(), *known),
                    created(keys.slot(slot.number), 0),
                    changed(keys.cfg(), rule.revision),
                ];
                txn = txn.then(TxnRequest::when(still).then(lease(
                    keys.slot(slot.number),
                    slot.value.clone(),
                    id,
                )));
            }
            let txn = txn
                .otherwise(get(keys.place(&place)))
                .otherwise(get(keys.count(&place)))
                .otherwise(get(keys.cfg()));
            let answer = hall.client.txn(txn).await.map_err(|error| self.unless_gone(error))?;
            if answer.succeeded {
                let taken = answer.revision();
                self.ticket = Some(taken);
                self.slot = slot
                    .filter(|_| answer.nested_succeeded())
                    .map(|(_, _, slot)| Slot { taken, ..slot });
                let last = answer.replaced().cloned();
                let count = answer.reads().next().map_or(0, |range| range.count as usize);
                hall.entered(taken, last.as_ref(), count);
                return Ok(());
            }
            let [place, counter, cfg] = firsts(answer);
            if cfg.is_none_or(|cfg| cfg.create_revision != self.made) {
                return Err(Error::Removed(self.name().into()));
            }
            // The request was sent before, and the answer was lost.
            if let Some(place) = place {
                self.ticket = Some(place.create_revision);
                return Ok(());
            }
            let counted = counter.map_or(0, |kv| kv.version);
            match &mut self.seat {
                Some(seat) if counted != count => seat.get_mut().count = counted,
                _ => return Err(self.lost_error()),
            }
        }
    }

    fn unless_gone(&self, error: Error) -> Error {
        if !is_gone(&error) {
            return error;
        }
        self.hall.lease.lose();
        self.lost_error()
    }

    /// Takes a slot, on one more condition. If that fails, another client was faster, and the
    /// replica will show it.
    async fn take(
        &mut self,
        number: usize,
        rule: Rule,
        besides: Option<Compare>,
    ) -> Result<(), Error> {
        let (hall, id) = (&self.hall, self.hall.lease.id);
        let (keys, place) = (&hall.keys, &self.place);
        let slot = Slot { number, value: held(place), taken: 0, version: 2 };
        let conditions = [
            created(keys.place(place), self.ticket.unwrap_or(0)),
            version(keys.place(place), 1),
            created(keys.slot(number), 0),
            changed(keys.cfg(), rule.revision),
        ];
        let txn = TxnRequest::when(conditions.into_iter().chain(besides))
            .then(lease(keys.slot(number), slot.value.clone(), id))
            .then(touch(keys.place(place)));
        let answer = hall.client.txn(txn).await.map_err(|error| self.unless_gone(error))?;
        self.slot = answer.succeeded.then(|| Slot { taken: answer.revision(), ..slot });
        Ok(())
    }

    /// Finds the slot that was handed to this place.
    async fn find(&mut self) -> Result<(), Error> {
        let keys = &self.hall.keys;
        let slots = self.hall.client.range(all(keys.slots())).await?;
        self.slot = Slot::find(keys, &self.place, &slots.kvs);
        Ok(())
    }

    /// Waits until the place has a slot.
    pub(crate) async fn ready(&mut self) -> Result<(), Error> {
        while !self.step(true).await? {}
        Ok(())
    }

    /// Returns whether it has a slot, or can have one without waiting for other places to leave.
    pub(crate) async fn try_ready(&mut self) -> Result<bool, Error> {
        self.step(false).await
    }

    /// Does what the place has to do, and returns whether it has a slot. Without `patient` it
    /// returns `false` only when that is certain.
    async fn step(&mut self, patient: bool) -> Result<bool, Error> {
        let hall = self.hall.clone();
        while self.slot.is_none() {
            let changed = hall.changed();
            if hall.lease.is_lost() {
                return Err(self.lost_error());
            }
            let ticket = self.ticket.unwrap_or(0);
            let taken = match hall.next(&self.place, ticket, self.made) {
                Next::Removed => return Err(Error::Removed(self.name().into())),
                Next::Turn(Turn::Gone, _) | Next::Far(Step::Gone, _) => {
                    return Err(self.lost_error());
                }
                Next::Turn(Turn::Holds(number, held), _) => {
                    // In the doorway, if the answer was lost; otherwise it was handed over. Leaving
                    // finds out which.
                    self.slot =
                        Some(Slot { number, value: held.value, taken: held.revision, version: 2 });
                    break;
                }
                Next::Turn(Turn::Wait, _) | Next::Far(Step::Sleep, _) if !patient => {
                    return Ok(false);
                }
                Next::Turn(Turn::Wait, _) | Next::Far(Step::Sleep, _) | Next::Unknown => Ok(()),
                Next::Far(step, rule) => {
                    let taken = match step {
                        // A place that was granted when there were more slots may still hold one.
                        Step::Take => self.take(0, rule, Some(none(hall.keys.slots()))).await,
                        Step::Find => self.find().await,
                        _ => Ok(()),
                    };
                    match self.slot {
                        Some(_) => hall.forget(ticket),
                        None if taken.is_ok() => hall.look(),
                        None => {}
                    }
                    taken
                }
                Next::Turn(Turn::Take(slot), rule) => self.take(slot, rule, None).await,
            };
            match taken {
                // The place is kept for as long as its lease lasts.
                Err(Error::Unreachable { .. }) => {
                    sleep(PAUSE).await;
                    continue;
                }
                taken => taken?,
            }
            if self.slot.is_none() {
                tokio::select! {
                    () = changed => {}
                    () = hall.lease.lost() => {}
                }
            }
        }
        Ok(true)
    }

    /// Writes if the place still holds.
    pub(crate) async fn guarded(&self, operations: Vec<RequestOp>) -> Result<(), Error> {
        let refused = || Error::Refused { name: self.name().into(), ticket: self.ticket() };
        let (Some(seat), Some(ticket)) = (&self.seat, self.ticket) else { return Err(refused()) };
        let mut seat = seat.lock().await;
        let (keys, place, id, deed) = (&self.hall.keys, &self.place, self.hall.lease.id, deed());
        loop {
            let txn = TxnRequest::when([
                created(keys.place(place), ticket),
                version(keys.count(place), seat.count),
            ])
            .then_all(operations.iter().cloned())
            .then(lease(keys.count(place), deed.clone(), id))
            .otherwise(get(keys.place(place)))
            .otherwise(get(keys.count(place)));
            let answer = match self.hall.client.txn(txn).await {
                Err(error) if is_gone(&error) => return Err(refused()),
                answer => answer?,
            };
            if answer.succeeded {
                seat.count += 1;
                return Ok(());
            }
            let [line, counter] = firsts(answer);
            let (counted, last) = counter.map_or((0, Vec::new()), |kv| (kv.version, kv.value));
            if last == deed.as_bytes() {
                seat.count = counted;
                return Ok(());
            }
            if line.is_none_or(|kv| kv.create_revision != ticket) || counted == seat.count {
                return Err(refused());
            }
            seat.count = counted;
        }
    }

    /// Leaves the queue, or releases the slot. If that fails, dropping the passage tries again.
    pub(crate) async fn leave(&mut self) -> Result<(), Error> {
        let Some(seat) = &mut self.seat else { return Ok(()) };
        self.hall.forget(self.ticket.unwrap_or(0));
        let leaver = Leaver {
            hall: self.hall.clone(),
            slot: self.slot.clone(),
            entered: self.ticket.is_some(),
        };
        if leaver.leave(seat.get_mut()).await?
            && let Some(seat) = self.seat.take()
        {
            self.hall.stand_up(seat.into_inner());
        }
        self.seat = None;
        Ok(())
    }
}

fn is_lost(hall: &Hall, place: &str, ticket: i64, made: i64) -> bool {
    hall.lease.is_lost()
        || hall.is_removed(ticket, made)
        || matches!(
            hall.next(place, ticket, made),
            Next::Turn(Turn::Gone, _) | Next::Far(Step::Gone, _)
        )
}

impl Drop for Passage {
    fn drop(&mut self) {
        let Some(seat) = self.seat.take() else { return };
        let mut seat = seat.into_inner();
        self.hall.forget(self.ticket.unwrap_or(0));
        let leaver = Leaver {
            hall: self.hall.clone(),
            slot: self.slot.take(),
            entered: self.ticket.is_some(),
        };
        self.runtime.spawn(async move {
            loop {
                match leaver.leave(&mut seat).await {
                    Ok(true) => return leaver.hall.stand_up(seat),
                    Ok(false) => return,
                    // The place ends with its lease anyway.
                    Err(_) if leaver.hall.lease.is_lost() => return,
                    Err(_) => sleep(leaver.hall.client.config().limit).await,
                }
            }
        });
    }
}
