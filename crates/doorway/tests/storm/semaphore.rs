use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use doorway::{
    Semaphore,
    semaphore::{OwnedPermit, OwnedPlace},
};

use super::{Stormy, Tally, leaves, stays};

const SLOTS: usize = 2;

/// Two slots, one more for a while, and places for one or two.
#[derive(Debug)]
pub(crate) struct Slots(Arc<Semaphore>);

impl Stormy for Slots {
    type Place = OwnedPlace;
    type Guard = OwnedPermit;

    fn new() -> Self {
        Self(Arc::new(Semaphore::new(SLOTS)))
    }

    fn enters(self: &Arc<Self>, dice: u64) -> OwnedPlace {
        Arc::clone(&self.0).enter_owned(1 + usize::from(dice >> 8 & 3 == 0))
    }

    fn wait(place: OwnedPlace) -> OwnedPermit {
        place.wait()
    }

    fn wait_timeout(place: OwnedPlace, limit: Duration) -> Result<OwnedPermit, OwnedPlace> {
        place.wait_timeout(limit)
    }

    fn holds(self: &Arc<Self>, permit: OwnedPermit, tally: &Tally, dice: u64, is_task: bool) {
        let weight = permit.weight() as u64;
        // How many slots there are is known if nobody resizes all the while.
        let (resized, begun) = (tally.resized.load(SeqCst), tally.begun.load(SeqCst));
        let now = tally.in_use.fetch_add(weight, SeqCst) + weight;
        let wrong = now > SLOTS as u64 || dice >> 12 & 7 == 0 && permit.slot() >= SLOTS;
        stays(dice);
        if wrong && begun == resized && tally.begun.load(SeqCst) == begun {
            tally.wrong.store(true, SeqCst);
        }
        tally.in_use.fetch_sub(weight, SeqCst);
        if dice >> 16 & 255 != 0 || is_task {
            return leaves(permit, tally, dice);
        }
        // A slot more, and then the next one that is free taken out for good.
        tally.begun.fetch_add(1, SeqCst);
        self.0.add_slots(1);
        drop(permit);
        self.0.acquire().forget();
        tally.resized.fetch_add(1, SeqCst);
    }

    fn is_as_new(&self) -> bool {
        (self.0.slots(), self.0.available(), self.0.waiters()) == (SLOTS, SLOTS, 0)
    }
}
