//! Leaving: deletes a place, and releases its slot if it has one.

use std::sync::Arc;

use crate::{
    Error,
    hall::{Hall, Seat},
    passage::{Slot, deed, held, is_gone},
    proto::etcdserverpb::{RequestOp, TxnRequest},
    txn::{all, changed, created, delete, equal, get, lease, touch, version},
};

/// What is needed to leave.
pub(crate) struct Leaver {
    pub(crate) hall: Arc<Hall>,
    pub(crate) slot: Option<Slot>,
    /// The doorway was answered.
    pub(crate) entered: bool,
}

impl Leaver {
    /// Deletes the place, and grants the slot to the next waiter if the replica knows it. Returns
    /// whether the seat may be used again.
    pub(crate) async fn leave(&self, seat: &mut Seat) -> Result<bool, Error> {
        let (keys, deed) = (&self.hall.keys, deed());
        let mut slot = self.slot.clone();
        // A client whose doorway was not answered does not know whether it has a place or a slot.
        // No place has version -1, so the first attempt fails and tells.
        let mut place_version =
            slot.as_ref().map_or(if self.entered { 1 } else { -1 }, |slot| slot.version);
        loop {
            let mut conditions = vec![
                version(keys.count(&seat.place), seat.count),
                version(keys.place(&seat.place), place_version),
            ];
            conditions
                .extend(slot.iter().map(|slot| equal(keys.slot(slot.number), slot.value.clone())));
            let txn = TxnRequest::when(conditions)
                .then(delete(keys.place(&seat.place)))
                .then(lease(keys.count(&seat.place), deed.clone(), self.hall.lease.id))
                .then_all(slot.iter().map(|slot| self.pass_on(&seat.place, slot.number)))
                .then(
                    TxnRequest::when([equal(keys.last(), seat.place.clone())])
                        .then(delete(keys.last())),
                )
                .otherwise(get(keys.count(&seat.place)))
                .otherwise(get(keys.place(&seat.place)))
                .otherwise(all(keys.slots()));
            let answer = match self.hall.client.txn(txn).await {
                Err(error) if is_gone(&error) => return Ok(false),
                answer => answer?,
            };
            if answer.succeeded {
                seat.count += 1;
                return Ok(true);
            }
            let mut reads = answer.reads().map(|range| range.kvs);
            let [counter, place, slots] = std::array::from_fn(|_| reads.next().unwrap_or_default());
            seat.count = counter.first().map_or(0, |kv| kv.version);
            if counter.first().is_some_and(|kv| kv.value == deed.as_bytes()) {
                return Ok(true);
            }
            place_version = place.first().map_or(0, |kv| kv.version);
            slot = Slot::find(keys, &seat.place, &slots)
                .map(|slot| Slot { version: place_version, ..slot });
        }
    }

    /// Grants the slot to the heir. If the heir has left or has another slot, or the lock has
    /// changed, frees the slot, and the next waiter takes it.
    fn pass_on(&self, leaver: &str, slot: usize) -> RequestOp {
        let keys = &self.hall.keys;
        let heir = self.hall.known(|copy, line| {
            let rule = copy.rule?;
            let (heir, ticket) = line.heir(rule, leaver, slot)?;
            let id = i64::from_str_radix(heir.split('-').next()?, 16).ok()?;
            let conditions = [
                created(keys.place(&heir), ticket),
                version(keys.place(&heir), 1),
                changed(keys.cfg(), rule.revision),
            ];
            let txn = TxnRequest::when(conditions)
                .then(lease(keys.slot(slot), held(&heir), id))
                .then(touch(keys.place(&heir)))
                .otherwise(delete(keys.slot(slot)));
            Some(txn.into())
        });
        heir.flatten().unwrap_or_else(|| delete(keys.slot(slot)).into())
    }
}
