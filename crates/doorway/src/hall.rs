//! The engine of the group lock ([`doorway_core::engines::group_lock::hall`]) for threads and
//! tasks.
//!
//! The engine's word is an atomic. Its queue is behind a lock that a thread or task takes only if
//! it has to wait, or if it leaves while another waits.

use std::{
    sync::{
        PoisonError,
        atomic::Ordering::{Relaxed, SeqCst},
    },
    task::Waker,
    time::Instant,
};

use doorway_core::engines::group_lock::hall::{self, Inside, Line};
pub(crate) use doorway_core::{Session, engines::group_lock::hall::OWN};

use crate::{
    caller::{Caller, Patient, Polls, Sleeper, Until, soon},
    place::Late,
    sync::{self, Arc, AtomicU64, Mutex, MutexGuard},
};

/// How often a newcomer tries to acquire without joining the queue, if the word changes each time.
const TRIES: u32 = 16;

/// The engine's word and its queue.
#[derive(Debug)]
pub(crate) struct Hall {
    inside: AtomicU64,
    line: Mutex<Line<Name>>,
    batching: u32,
}

/// Where a waiter learns of its grant. It also identifies the waiter in the queue.
#[derive(Clone, Debug)]
pub struct Name(Arc<Told>);

#[derive(Debug)]
struct Told {
    standing: AtomicU64,
    sleeper: Mutex<Option<Sleeper>>,
}

const WAITS: u64 = 0;
const SLEEPS: u64 = 1;
const IN: u64 = 2;

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<M: Caller> hall::Hall<M> for Hall {
    type Name = Name;
    type Taken<'a> = MutexGuard<'a, Line<Name>>;

    #[inline(always)]
    fn tries(&self) -> u32 {
        TRIES
    }
    fn batching(&self) -> u32 {
        self.batching
    }
    #[inline(always)]
    fn inside(&self, _: &mut M) -> Result<Inside, M::Halt> {
        Ok(self.look())
    }
    #[inline(always)]
    fn change(&self, _: &mut M, old: Inside, new: Inside) -> Result<bool, M::Halt> {
        Ok(self.inside.compare_exchange_weak(old.0, new.0, SeqCst, Relaxed).is_ok())
    }
    #[inline(always)]
    fn add(&self, _: &mut M, add: u64) -> Result<Inside, M::Halt> {
        Ok(Inside(self.inside.fetch_add(add, SeqCst)))
    }
    fn take(&self, _: &mut M) -> Result<MutexGuard<'_, Line<Name>>, M::Halt> {
        Ok(self.line())
    }
    fn put(&self, _: &mut M, line: MutexGuard<'_, Line<Name>>) -> Result<(), M::Halt> {
        drop(line);
        Ok(())
    }
    fn stand(&self, _: &mut M, _: u32) -> Result<Name, M::Halt> {
        Ok(Name(Arc::new(Told { standing: sync::atomic(WAITS), sleeper: Mutex::new(None) })))
    }
    fn same(&self, name: &Name) -> Name {
        name.clone()
    }
    fn lie_down(&self, _: &mut M, name: &Name) -> Result<bool, M::Halt> {
        Ok(name.0.standing.compare_exchange(WAITS, SLEEPS, SeqCst, SeqCst) == Err(IN))
    }
    fn tell(&self, _: &mut M, name: &Name) -> Result<bool, M::Halt> {
        Ok(name.0.standing.swap(IN, SeqCst) == SLEEPS)
    }
    fn settle(&self, caller: &mut M, name: &Name) -> Result<(), M::Halt> {
        let mut sleeper = name.sleeper();
        if sleeper.as_ref().is_none_or(|sleeper| !caller.is(sleeper)) {
            let before = sleeper.replace(caller.sleeper());
            drop(sleeper);
            drop(before); // dropping a waker may run foreign code
        }
        Ok(())
    }
    fn sleep(&self, caller: &mut M, _: &Name) -> Result<(), M::Halt> {
        caller.sleep()
    }
    fn wake(&self, _: &mut M, name: &Name) -> Result<(), M::Halt> {
        let sleeper = name.sleeper().take();
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
        Ok(())
    }
}

impl Name {
    fn sleeper(&self) -> MutexGuard<'_, Option<Sleeper>> {
        // No thread panics while it has this locked.
        self.0.sleeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the waiter has been granted.
    pub(crate) fn is_in(&self) -> bool {
        self.0.standing.load(SeqCst) == IN
    }
}

impl Hall {
    pub(crate) const fn new(batching: u32) -> Self {
        Self { inside: AtomicU64::new(Inside::NOBODY.0), line: Mutex::new(Line::EMPTY), batching }
    }

    fn line(&self) -> MutexGuard<'_, Line<Name>> {
        // No thread panics while it has this locked.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    fn look(&self) -> Inside {
        Inside(self.inside.load(SeqCst))
    }

    /// Enters. Returns where the place learns of its grant, or `None` if it is granted at once.
    #[inline(always)]
    pub(crate) fn enter(&self, session: Session) -> Option<Name> {
        let Ok(name) = hall::enter(self, &mut Patient, 0, session);
        name
    }

    /// Acquires if no place waits and no holder has another session.
    #[inline(always)]
    pub(crate) fn try_enter(&self, session: Session) -> bool {
        let Ok(goes_in) = hall::try_enter(self, &mut Patient, session, u32::MAX);
        goes_in
    }

    #[inline(always)]
    pub(crate) fn release(&self) {
        let Ok(()) = hall::release(self, &mut Patient);
    }

    #[cold]
    pub(crate) fn abandon(&self, place: Option<&Name>) {
        match place {
            None => self.release(),
            Some(name) => {
                let Ok(()) = hall::abandon(self, &mut Patient, name);
            }
        }
    }

    /// Waits. When the time limit is reached, the place keeps its position in the queue.
    #[inline(always)]
    pub(crate) fn wait(&self, place: Option<&Name>, until: Option<Instant>) -> Result<(), Late> {
        place.map_or(Ok(()), |name| self.wait_in_line(name, until))
    }

    #[cold]
    fn wait_in_line(&self, name: &Name, until: Option<Instant>) -> Result<(), Late> {
        if soon(self.waiters() + self.inside(), until, || name.is_in())? {
            return Ok(());
        }
        match until {
            Some(until) => hall::wait(self, &mut Until(until), name),
            None => {
                let Ok(()) = hall::wait(self, &mut Patient, name);
                Ok(())
            }
        }
    }

    /// Returns whether the place is granted; if not, the waker is woken when it is.
    pub(crate) fn poll(&self, place: Option<&Name>, waker: &Waker) -> bool {
        place.is_none_or(|name| {
            name.is_in() || {
                let Ok(lies) = hall::lies_down(self, &mut Polls(waker), name);
                !lies
            }
        })
    }

    /// Returns the number of holders.
    pub(crate) fn inside(&self) -> usize {
        self.look().count() as usize
    }

    /// Returns the current session, if there is a holder.
    pub(crate) fn session(&self) -> Option<Session> {
        let inside = self.look();
        (inside.count() > 0).then_some(inside.session())
    }

    /// Returns the number of waiters.
    pub(crate) fn waiters(&self) -> usize {
        self.line().len()
    }
}
