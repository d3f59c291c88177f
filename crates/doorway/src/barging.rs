//! The same locks where newcomers may barge, for those who want throughput more than order: never
//! the default.
//!
//! ```
//! let counter = doorway::Mutex::barging(0);
//! *counter.lock() += 1;
//! let gpus = doorway::Semaphore::barging(4);
//! let permit = gpus.enter().wait();
//! # drop(permit);
//! ```
//!
//! # What they give up
//!
//! A slot that is given back lies open until somebody takes it, and that may be a newcomer, or the
//! one who has just given it back. So **there is no FIFO**: who comes later may go in first. Those
//! who find nothing open stand in line, in order, and nobody in line loses its place to another in
//! line.
//!
//! Nobody starves: the first in line that has been woken in vain is not overtaken again; what is
//! given back from then on is its own. How many overtake before that is not bounded by a number,
//! only by how long a sleeper takes to wake.
//!
//! What that gives and takes, 16 threads on two cores, 50 ns inside, for a second: 305 times the
//! passages of parking_lot's `FairMutex` where the default has 3.2; the most passages of a thread
//! over the fewest are 2.6 where they are 1.00 with the default, and without bound in shorter
//! times; the longest wait 37 ms where it is 6. Alone, a passage takes twice as long as the
//! default's.
//!
//! All else is as promised by [`Semaphore`](crate::Semaphore): no slot is lost to a place that is
//! dropped, a future that is cancelled or a holder that panics, no wake-up is lost, nothing is
//! poisoned. A place whose turn has come holds no slot before it is looked at again, so a place
//! that is forgotten (`mem::forget`) keeps those behind it waiting. The engine is
//! [`doorway_core::engines::semaphore::barging`], which the checker explores.

#![allow(unsafe_code)]

use std::{
    cell::UnsafeCell,
    fmt,
    future::Future,
    ops::{Deref, DerefMut},
    pin::Pin,
    sync::atomic::Ordering::SeqCst,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use doorway_core::engines::semaphore::{
    barging::{self, Open},
    line,
};

use crate::{
    caller::{Caller, Patient, Sleeper, Until},
    place::Late,
    queue::{MOST, Queue, Standing},
    sync::{self, AtomicU64},
};

/// Slots for threads and tasks where newcomers may barge. See the [module](self).
pub struct Semaphore(Slots);

/// What it is made of.
struct Slots {
    open: AtomicU64,
    line: Queue,
}

impl<M: Caller> Open<M> for Slots {
    type Line = Queue;

    #[inline(always)]
    fn line(&self) -> &Queue {
        &self.line
    }
    #[inline(always)]
    fn open(&self, _: &mut M) -> Result<u64, M::Halt> {
        Ok(self.open.load(SeqCst))
    }
    #[inline(always)]
    fn add(&self, _: &mut M, add: u64) -> Result<(), M::Halt> {
        self.open.fetch_add(add, SeqCst);
        Ok(())
    }
    #[inline(always)]
    fn replace(&self, _: &mut M, old: u64, new: u64) -> Result<bool, M::Halt> {
        Ok(self.open.compare_exchange(old, new, SeqCst, SeqCst).is_ok())
    }
}

impl Semaphore {
    /// A semaphore with so many slots.
    ///
    /// # Panics
    /// If there are more than [`Semaphore::MOST`](crate::Semaphore::MOST).
    pub const fn new(slots: usize) -> Self {
        assert!(slots <= MOST, "a semaphore has a million slots at most");
        Self(Slots { open: AtomicU64::new(barging::slots(slots as u64)), line: Queue::new(1) })
    }

    /// The doorway: takes a slot that lies open, or a place in line. Never blocks.
    ///
    /// # Panics
    /// If half a million are in line already.
    #[inline]
    pub fn enter(&self) -> Place<'_> {
        self.enter_many(1)
    }

    /// The same for so many slots at once.
    ///
    /// # Panics
    /// If that is none, or more than [`Semaphore::MOST`](crate::Semaphore::MOST); or if half a
    /// million are in line already.
    #[inline]
    pub fn enter_many(&self, weight: usize) -> Place<'_> {
        let weight = crate::semaphore::weight_of(weight);
        let Ok(standing) = barging::enter(&self.0, &mut Patient, weight);
        if !standing.enabled {
            self.0.line.joins_a_line(Standing { weight: 1, ..standing });
        }
        Place { standing, semaphore: Some(self), in_vain: false }
    }

    /// Waits for a slot: `enter().wait()`.
    #[inline]
    pub fn acquire(&self) -> Permit<'_> {
        self.enter().wait()
    }

    /// A slot, if one lies open and is not reserved for the first in line.
    #[inline]
    pub fn try_acquire(&self) -> Option<Permit<'_>> {
        let Ok(taken) = barging::barge(&self.0, &mut Patient, 1);
        taken.then_some(Permit { semaphore: self, weight: 1 })
    }

    /// How many slots lie open.
    pub fn available(&self) -> usize {
        (self.0.open.load(SeqCst) / barging::slots(1)) as usize
    }

    /// How many are in line, abandoned places included until they are passed over.
    pub fn waiters(&self) -> usize {
        self.0.line.waiters() + usize::from(self.0.line.free() == 0)
    }

    #[inline]
    fn release(&self, slots: u32) {
        let Ok(()) = barging::release(&self.0, &mut Patient, slots);
    }

    /// Waits. With a time limit, the place keeps standing when it is over.
    #[cold]
    fn wait(&self, place: Standing, until: Option<Instant>) -> Result<(), Late> {
        let taken = (0..sync::YIELDS).any(|_| {
            sync::yield_now();
            self.takes(place)
        });
        if !taken {
            match until {
                Some(until) => barging::wait(&self.0, &mut Until(until), 0, place)?,
                None => {
                    let Ok(()) = barging::wait(&self.0, &mut Patient, 0, place);
                }
            }
        }
        let Ok(()) = barging::step_aside(&self.0, &mut Patient);
        Ok(())
    }

    /// Takes its slots if it is first and they are there.
    fn takes(&self, place: Standing) -> bool {
        self.0.line.is_enabled(place) && {
            let Ok(taken) = barging::take(&self.0, &mut Patient, place.weight);
            taken
        }
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available", &self.available())
            .field("waiters", &self.waiters())
            .finish_non_exhaustive()
    }
}

/// A place in line, or a slot that lay open. Dropping it leaves the line.
#[must_use = "dropping a place leaves the line"]
pub struct Place<'a> {
    standing: Standing,
    /// Taken out when the place has become a permit.
    semaphore: Option<&'a Semaphore>,
    /// A task has looked as the first in line, and found nothing.
    in_vain: bool,
}

impl<'a> Place<'a> {
    fn semaphore(&self) -> &'a Semaphore {
        self.semaphore.expect("the place has become a permit: a future must not be polled again")
    }

    fn permit(&mut self) -> Permit<'a> {
        let semaphore = self.semaphore.take().expect("a place becomes one permit");
        Permit { semaphore, weight: self.standing.weight }
    }

    /// Waits for its slots.
    #[inline]
    pub fn wait(mut self) -> Permit<'a> {
        if !self.standing.enabled {
            let waited = self.semaphore().wait(self.standing, None);
            debug_assert!(waited.is_ok(), "nobody is late who has no limit");
        }
        self.permit()
    }

    /// Waits for so long at most.
    ///
    /// # Errors
    /// Gives the place back, which still stands where it stood.
    pub fn wait_timeout(mut self, limit: Duration) -> Result<Permit<'a>, Self> {
        let until = Instant::now().checked_add(limit);
        if self.standing.enabled || self.semaphore().wait(self.standing, until).is_ok() {
            return Ok(self.permit());
        }
        Err(self)
    }

    /// Looks, and leaves the waker in line if it is not its turn.
    fn is_ready(&mut self, context: &Context<'_>) -> bool {
        let (semaphore, place) = (self.semaphore(), self.standing);
        if place.enabled {
            return true;
        }
        let waker = || Sleeper::Task(context.waker().clone());
        if !semaphore.0.line.is_enabled(place) {
            let Ok(lies) = line::lie_down(&semaphore.0.line, &mut Patient, waker(), place);
            if lies {
                return false;
            }
        }
        let taken = semaphore.takes(place) || {
            let Ok(lies) =
                barging::lie_down(&semaphore.0, &mut Patient, waker(), place, self.in_vain);
            self.in_vain = true;
            !lies
        };
        if taken {
            let Ok(()) = barging::step_aside(&semaphore.0, &mut Patient);
        }
        taken
    }
}

/// Cancel safety: dropping the future leaves the line; `&mut place` in a `select!` keeps the place.
impl<'a> Future for Place<'a> {
    type Output = Permit<'a>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit<'a>> {
        if self.is_ready(context) { Poll::Ready(self.permit()) } else { Poll::Pending }
    }
}

impl Drop for Place<'_> {
    #[inline]
    fn drop(&mut self) {
        let Some(semaphore) = self.semaphore.take() else { return };
        if self.standing.enabled {
            semaphore.release(self.standing.weight);
        } else {
            let Ok(()) = barging::abandon(&semaphore.0, &mut Patient, self.standing);
        }
    }
}

impl fmt::Debug for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("weight", &self.standing.weight).finish_non_exhaustive()
    }
}

/// One slot or several. Dropping it gives them back.
#[must_use = "dropping a permit gives its slot back"]
#[derive(Debug)]
pub struct Permit<'a> {
    semaphore: &'a Semaphore,
    weight: u32,
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.release(self.weight);
    }
}

/// A value that one at a time has for itself, where newcomers may barge. See the [module](self).
pub struct Mutex<T: ?Sized> {
    semaphore: Semaphore,
    value: UnsafeCell<T>,
}

// SAFETY: the semaphore has one slot, so one at a time has the value, whichever thread that is.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// SAFETY: the value is owned.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}

impl<T> Mutex<T> {
    /// A mutex around a value.
    pub const fn new(value: T) -> Self {
        Self { semaphore: Semaphore::new(1), value: UnsafeCell::new(value) }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the value.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        Guard { _permit: self.semaphore.acquire(), value: &self.value }
    }

    /// The value, if nobody has it and it is not reserved for the first in line.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.semaphore.try_acquire().map(|permit| Guard { _permit: permit, value: &self.value })
    }

    /// Waits for the value in a task. The place in line is taken when this is first polled.
    pub async fn lock_async(&self) -> Guard<'_, T> {
        Guard { _permit: self.semaphore.enter().await, value: &self.value }
    }

    /// The value: nobody else can have it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T: ?Sized> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").field("waiters", &self.semaphore.waiters()).finish_non_exhaustive()
    }
}

/// The value. Dropping this gives it back.
#[must_use = "dropping a guard gives the value back"]
pub struct Guard<'a, T: ?Sized> {
    _permit: Permit<'a>,
    value: &'a UnsafeCell<T>,
}

// SAFETY: sending a guard sends its `&mut T`; who gives it back does not matter.
unsafe impl<T: ?Sized + Send> Send for Guard<'_, T> {}
// SAFETY: sharing a guard shares a `&T`.
unsafe impl<T: ?Sized + Sync> Sync for Guard<'_, T> {}

impl<T: ?Sized> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: there is one slot, and this guard has its permit.
        unsafe { &*self.value.get() }
    }
}

impl<T: ?Sized> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and this guard is borrowed mutably.
        unsafe { &mut *self.value.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Guard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
