//! The transactions of one passage.
//!
//! Each may be sent more than once, and may arrive late. Therefore each is conditional on the counter of the seat, and all but the doorway
//! count it on: what arrives late finds another count and does nothing. The doorway is conditional on the place not being there as well.
//! What was done last stands in the counter, so that one whose answer was lost can be told from one that was not done.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::{runtime::Handle, sync::Mutex, time::sleep};

use crate::{
    Error,
    admission::{Admission, Rule, Turn},
    hall::{Hall, Next, Seat, Standing},
    lease::PAUSE,
    proto::etcdserverpb::{RequestOp, TxnRequest},
    reading::Reading,
    status::Note,
    txn::{changed, created, delete, equal, get, lease, none, version},
};

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// A name for a transaction that no other of this process has.
fn deed() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed).to_string()
}

/// A lease that is not there any more took everything with it.
fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Store(why) if why.contains("lease not found"))
}

/// One passage, from the doorway on. Dropping it leaves the line or gives the slot back.
#[derive(Debug)]
pub(crate) struct Passage {
    hall: Arc<Hall>,
    standing: Arc<Standing>,
    /// Until it has left.
    seat: Option<Mutex<Seat>>,
    place: String,
    session: Vec<u8>,
    /// When the lock was made.
    made: i64,
    ticket: Option<i64>,
    slot: Option<usize>,
    /// The slots that it may have taken, with the values that it wrote.
    claims: BTreeMap<usize, String>,
    runtime: Handle,
}

impl Passage {
    pub(crate) fn new(hall: &Arc<Hall>, session: &str, made: i64) -> Self {
        let (seat, standing) = hall.sit();
        Self {
            hall: hall.clone(),
            standing,
            place: seat.place.clone(),
            seat: Some(Mutex::new(seat)),
            session: session.into(),
            made,
            ticket: None,
            slot: None,
            claims: BTreeMap::new(),
            runtime: Handle::current(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.hall.keys.name()
    }

    pub(crate) fn ticket(&self) -> u64 {
        self.ticket.unwrap_or(0).unsigned_abs()
    }

    pub(crate) fn slot(&self) -> usize {
        self.slot.unwrap_or(0)
    }

    pub(crate) fn ahead(&self) -> usize {
        self.standing.admission(Admission::waiting_ahead).unwrap_or(0)
    }

    fn lost_error(&self) -> Error {
        Error::Lost(self.name().into())
    }

    /// Whether the place or the slot may be somebody else's already.
    pub(crate) fn is_lost(&self) -> bool {
        self.hall.lease.is_lost() || self.standing.next() == Next::Gone
    }

    /// Completes when it may be.
    pub(crate) fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        let (hall, standing) = (self.hall.clone(), self.standing.clone());
        async move {
            tokio::select! {
                () = hall.lease.lost() => {}
                () = standing.gone() => {}
            }
        }
    }

    /// The value of a slot that is this passage's.
    fn claim_value(&mut self, slot: usize) -> String {
        self.claims.entry(slot).or_insert_with(|| format!("{} {}", self.place, now())).clone()
    }

    fn count(&mut self) -> i64 {
        self.seat.as_mut().map_or(0, |seat| seat.get_mut().count)
    }

    /// The doorway: one transaction. If nobody is there at all, it takes a slot as well.
    pub(crate) async fn enter(&mut self, rule: Rule, note: &Note) -> Result<(), Error> {
        let (hall, id) = (self.hall.clone(), self.hall.lease.id);
        let (keys, place) = (&hall.keys, self.place.clone());
        let note = note.entered(now());
        let value = self.claim_value(0);
        loop {
            let breaks = self.standing.asks();
            let conditions = [
                created(keys.place(&place), 0),
                version(keys.count(&place), self.count()),
                created(keys.cfg(), self.made),
            ];
            let mut txn = TxnRequest::when(conditions)
                .then(lease(keys.place(&place), self.session.clone(), id))
                .then(lease(keys.note(&place), note.clone(), id));
            if !rule.drained {
                let alone = [none(keys.line()), changed(keys.cfg(), rule.revision)];
                txn = txn.then(TxnRequest::when(alone).then(lease(keys.slot(0), value.clone(), id)));
            }
            let reads = Reading::operations(keys, &place);
            let answer = hall.client.txn(txn.then_all(reads.clone()).otherwise_all(reads)).await;
            let reading = self.read(answer)?;
            let count = reading.count.0;
            match reading.admission(&place) {
                Some(admission) => {
                    self.ticket = Some(admission.ticket());
                    self.standing.knows(admission, breaks);
                    return Ok(());
                }
                // The seat has done more than is known here.
                None if count != self.count() => self.correct(count),
                None => return Err(self.lost_error()),
            }
        }
    }

    fn correct(&mut self, count: i64) {
        if let Some(seat) = &mut self.seat {
            seat.get_mut().count = count;
        }
    }

    /// What was read, unless the lock or the lease is not there any more.
    fn read(&self, answer: Result<crate::proto::etcdserverpb::TxnResponse, Error>) -> Result<Reading, Error> {
        let answer = answer.map_err(|error| if is_gone(&error) { self.gone() } else { error })?;
        let reading = Reading::new(&self.hall.keys, answer)?;
        match reading.cfg {
            Some((_, made, _)) if made == self.made => Ok(reading),
            _ => Err(Error::Removed(self.name().into())),
        }
    }

    fn gone(&self) -> Error {
        self.hall.lease.lose();
        self.lost_error()
    }

    /// Reads the line again.
    async fn look(&mut self) -> Result<(), Error> {
        let breaks = self.standing.asks();
        let reads = Reading::operations(&self.hall.keys, &self.place);
        let answer = self.hall.client.txn(TxnRequest::when([]).then_all(reads)).await;
        let reading = self.read(answer)?;
        self.learn(reading, breaks)
    }

    fn learn(&mut self, reading: Reading, breaks: u64) -> Result<(), Error> {
        self.correct(reading.count.0);
        match reading.admission(&self.place) {
            Some(admission) if Some(admission.ticket()) == self.ticket => {
                self.standing.knows(admission, breaks);
                Ok(())
            }
            _ => Err(self.lost_error()),
        }
    }

    /// Takes a slot, or learns why not.
    async fn claim(&mut self, slot: usize) -> Result<(), Error> {
        let Some(rule) = self.standing.admission(Admission::rule) else { return Ok(()) };
        let (hall, id, deed) = (self.hall.clone(), self.hall.lease.id, deed());
        let (keys, place) = (&hall.keys, self.place.clone());
        let value = self.claim_value(slot);
        let conditions = [
            created(keys.place(&place), self.ticket.unwrap_or(0)),
            version(keys.count(&place), self.count()),
            created(keys.slot(slot), 0),
            changed(keys.cfg(), rule.revision),
        ];
        let txn = TxnRequest::when(conditions)
            .then(lease(keys.slot(slot), value, id))
            .then(lease(keys.count(&place), deed, id))
            .otherwise_all(Reading::operations(keys, &place));
        let breaks = self.standing.asks();
        let answer = hall.client.txn(txn).await;
        if let Ok(answer) = &answer
            && answer.succeeded
        {
            self.standing.knows_enough();
            let count = self.count() + 1;
            self.correct(count);
            self.slot = Some(slot);
            return Ok(());
        }
        let reading = self.read(answer)?;
        self.learn(reading, breaks)
    }

    /// Waits until it has a slot.
    pub(crate) async fn ready(&mut self) -> Result<(), Error> {
        while self.slot.is_none() {
            let (standing, hall) = (self.standing.clone(), self.hall.clone());
            let changed = standing.changed();
            if self.try_ready().await?.is_some() {
                break;
            }
            tokio::select! {
                () = changed => {}
                () = hall.lease.lost() => {}
            }
        }
        Ok(())
    }

    /// Does what there is to do until it has a slot, or can only wait.
    pub(crate) async fn try_ready(&mut self) -> Result<Option<usize>, Error> {
        while self.slot.is_none() {
            if self.hall.lease.is_lost() {
                return Err(self.lost_error());
            }
            let done = match self.standing.next() {
                Next::Gone => return Err(self.lost_error()),
                Next::Read => self.look().await,
                Next::Turn(Turn::Wait) => return Ok(None),
                Next::Turn(Turn::Take(slot)) => self.claim(slot).await,
                Next::Turn(Turn::Holds(slot)) => {
                    self.slot = Some(slot);
                    Ok(())
                }
            };
            match done {
                Ok(()) => {}
                // Its place is kept for as long as its lease is.
                Err(Error::Unreachable { .. }) => sleep(PAUSE).await,
                Err(error) => return Err(error),
            }
        }
        Ok(self.slot)
    }

    /// Writes, if it still holds.
    pub(crate) async fn guarded(&self, operations: Vec<RequestOp>) -> Result<(), Error> {
        let refused = || Error::Refused { name: self.name().into(), ticket: self.ticket() };
        let (Some(seat), Some(ticket)) = (&self.seat, self.ticket) else { return Err(refused()) };
        let mut seat = seat.lock().await;
        let (keys, place, id, deed) = (&self.hall.keys, &self.place, self.hall.lease.id, deed());
        loop {
            let txn = TxnRequest::when([created(keys.place(place), ticket), version(keys.count(place), seat.count)])
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
            let mut reads = answer.reads().map(|range| range.kvs.into_iter().next());
            let (line, count) = (reads.next().flatten(), reads.next().flatten());
            let (counted, last) = count.map_or((0, Vec::new()), |kv| (kv.version, kv.value));
            let was_done = last == deed.as_bytes();
            if !was_done && (line.is_none_or(|kv| kv.create_revision != ticket) || counted == seat.count) {
                return Err(refused());
            }
            seat.count = counted;
            if was_done {
                return Ok(());
            }
        }
    }

    /// Leaves the line, or gives the slot back. If that fails it is tried again when this is dropped.
    pub(crate) async fn leave(&mut self) -> Result<(), Error> {
        let Some(seat) = &mut self.seat else { return Ok(()) };
        let again = leave(&self.hall, seat.get_mut(), &self.claims).await?;
        if let Some(seat) = self.seat.take() {
            self.hall.stand_up(seat.into_inner(), again);
        }
        Ok(())
    }
}

/// Says whether the seat may be used again.
async fn leave(hall: &Hall, seat: &mut Seat, claims: &BTreeMap<usize, String>) -> Result<bool, Error> {
    let (keys, deed) = (&hall.keys, deed());
    let slots = claims.iter().map(|(slot, value)| {
        let slot = keys.slot(*slot);
        TxnRequest::when([equal(slot.clone(), value.clone())]).then(delete(slot))
    });
    loop {
        let txn = TxnRequest::when([version(keys.count(&seat.place), seat.count)])
            .then(delete(keys.place(&seat.place)))
            .then(lease(keys.count(&seat.place), deed.clone(), hall.lease.id))
            .then_all(slots.clone())
            .otherwise(get(keys.count(&seat.place)));
        let answer = match hall.client.txn(txn).await {
            Err(error) if is_gone(&error) => return Ok(false),
            answer => answer?,
        };
        if answer.succeeded {
            seat.count += 1;
            return Ok(true);
        }
        let count = answer.reads().next().and_then(|range| range.kvs.into_iter().next());
        let (counted, last) = count.map_or((0, Vec::new()), |kv| (kv.version, kv.value));
        seat.count = counted;
        if last == deed.as_bytes() {
            return Ok(true);
        }
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let Some(seat) = self.seat.take() else { return };
        let (hall, mut seat, claims) = (self.hall.clone(), seat.into_inner(), std::mem::take(&mut self.claims));
        self.runtime.spawn(async move {
            let again = loop {
                match leave(&hall, &mut seat, &claims).await {
                    Ok(again) => break again,
                    // With the lease it ends anyway.
                    Err(_) if hall.lease.is_lost() => break false,
                    Err(_) => sleep(PAUSE).await,
                }
            };
            hall.stand_up(seat, again);
        });
    }
}
