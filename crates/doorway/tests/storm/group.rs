use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering::SeqCst},
    task::{Context, Poll},
    time::Duration,
};

use doorway::{
    GroupLock,
    group::{OwnedGuard, OwnedGuardAlone, OwnedPlace, OwnedPlaceAlone},
};

use super::{Stormy, Tally, leaves, stays};

/// Three sessions, and some who want to be alone.
#[derive(Debug)]
pub(crate) struct Sessions(Arc<GroupLock<()>>);

pub(crate) enum Place {
    Shared(OwnedPlace<()>, u32),
    Alone(OwnedPlaceAlone<()>),
}

pub(crate) enum Guard {
    Shared { _held: OwnedGuard<()>, session: u32 },
    Alone { _held: OwnedGuardAlone<()> },
}

impl Guard {
    fn shared(_held: OwnedGuard<()>, session: u32) -> Self {
        Self::Shared { _held, session }
    }

    fn alone(_held: OwnedGuardAlone<()>) -> Self {
        Self::Alone { _held }
    }
}

impl Future for Place {
    type Output = Guard;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Guard> {
        match self.get_mut() {
            Self::Shared(place, session) => {
                Pin::new(place).poll(context).map(|guard| Guard::shared(guard, *session))
            }
            Self::Alone(place) => Pin::new(place).poll(context).map(Guard::alone),
        }
    }
}

impl Stormy for Sessions {
    type Place = Place;
    type Guard = Guard;

    fn new() -> Self {
        Self(Arc::new(GroupLock::new(())))
    }

    fn enters(self: &Arc<Self>, dice: u64) -> Place {
        let lock = Arc::clone(&self.0);
        match dice >> 8 & 7 {
            0 => Place::Alone(lock.enter_alone_owned()),
            other => {
                let session = other as u32 % 3;
                Place::Shared(lock.enter_owned(session), session)
            }
        }
    }

    fn wait(place: Place) -> Guard {
        match place {
            Place::Shared(place, session) => Guard::shared(place.wait(), session),
            Place::Alone(place) => Guard::alone(place.wait()),
        }
    }

    fn wait_timeout(place: Place, limit: Duration) -> Result<Guard, Place> {
        match place {
            Place::Shared(place, session) => match place.wait_timeout(limit) {
                Ok(guard) => Ok(Guard::shared(guard, session)),
                Err(place) => Err(Place::Shared(place, session)),
            },
            Place::Alone(place) => {
                place.wait_timeout(limit).map(Guard::alone).map_err(Place::Alone)
            }
        }
    }

    /// In sixteen bits for each session, and for those alone: how many are inside.
    fn holds(self: &Arc<Self>, guard: Guard, tally: &Tally, dice: u64, _: bool) {
        let (shift, most) = match guard {
            Guard::Shared { session, .. } => (16 * session, u64::from(u16::MAX)),
            Guard::Alone { .. } => (48, 1),
        };
        let now = tally.in_use.fetch_add(1 << shift, SeqCst) + (1 << shift);
        if now & !(0xffff << shift) != 0 || now >> shift > most {
            tally.wrong.store(true, SeqCst);
        }
        stays(dice);
        tally.in_use.fetch_sub(1 << shift, SeqCst);
        leaves(guard, tally, dice);
    }

    fn is_as_new(&self) -> bool {
        (self.0.inside(), self.0.waiters()) == (0, 0)
    }
}
