//! The engine of the semaphore ([`doorway_core::engines::semaphore::line`]) for threads and tasks.
//!
//! The engine's word is an atomic. Its queue of marks is behind a lock that only waiters and the
//! threads that wake them take. Sleeping threads and tasks are woken.

use std::{
    cmp::Ordering::{Equal, Greater, Less},
    collections::VecDeque,
    mem,
    sync::{
        PoisonError,
        atomic::Ordering::{Relaxed, SeqCst},
    },
    task::Waker,
    time::Instant,
};

pub(crate) use doorway_core::engines::semaphore::line::Place as Standing;
use doorway_core::engines::semaphore::line::{self, Format, Line, Mark};

use crate::{
    caller::{Caller, Patient, Sleeper, Until, soon},
    place::Late,
    sync::{AtomicU64, Mutex, MutexGuard},
};

const FORMAT: Format = Format::SHIPPED;

/// The most slots that there can be.
pub(crate) const MOST: usize = (1 << (FORMAT.free - 2)) - 1;

/// The most tickets that may wait before another place enters. With that place, of any weight,
/// there is still room for as many places that enter at the same moment.
pub(crate) const LONGEST: usize = MOST / 2;

/// The engine's word and its queue of marks.
#[derive(Debug)]
pub(crate) struct Queue {
    word: AtomicU64,
    /// In the order of tickets. The thread that has this locked runs no foreign code meanwhile.
    marks: Mutex<Marks>,
}

/// Marks with their tickets.
type Marks = VecDeque<(u64, Mark<Sleeper>)>;

impl<M: Caller> Line<M> for Queue {
    type Sleeper = Sleeper;

    #[inline(always)]
    fn format(&self) -> Format {
        FORMAT
    }

    #[inline(always)]
    fn add(&self, _: &mut M, add: u64) -> Result<u64, M::Halt> {
        Ok(self.word.fetch_add(add, SeqCst))
    }

    #[inline(always)]
    fn word(&self, _: &mut M) -> Result<u64, M::Halt> {
        Ok(self.word.load(SeqCst))
    }

    #[inline(always)]
    fn leave(
        &self,
        _: &mut M,
        ticket: u64,
        mark: Option<Mark<Sleeper>>,
    ) -> Result<Option<Mark<Sleeper>>, M::Halt> {
        // A waker that is no longer needed is dropped by the caller that receives it, outside the
        // lock: dropping it may run foreign code.
        Ok(exchange(&mut self.marks(), ticket, mark))
    }

    /// A thread with an earlier wake-up pending notices when it checks the word, and sleeps again.
    fn settle(&self, caller: &mut M, _: u32) -> Result<Sleeper, M::Halt> {
        Ok(caller.sleeper())
    }

    fn sleep(&self, caller: &mut M, _: u32) -> Result<(), M::Halt> {
        caller.sleep()
    }

    #[inline(always)]
    fn wake(&self, _: &mut M, sleeper: Sleeper) -> Result<(), M::Halt> {
        sleeper.wake();
        Ok(())
    }
}

/// Puts `new` in the place of a ticket, and returns what was there. Most marks are added at the
/// back and removed at the front, so those two positions are tried first.
#[inline(always)]
fn exchange(marks: &mut Marks, ticket: u64, new: Option<Mark<Sleeper>>) -> Option<Mark<Sleeper>> {
    let order = |(other, _): &(u64, Mark<Sleeper>)| FORMAT.order(*other, ticket);
    let Some(new) = new else {
        return match marks.front().map(order)? {
            Equal => marks.pop_front().map(|(_, mark)| mark),
            Less => take(marks, ticket),
            Greater => None,
        };
    };
    match marks.back().map(order) {
        None | Some(Less) => {
            marks.push_back((ticket, new));
            None
        }
        Some(_) => replace(marks, ticket, new),
    }
}

#[cold]
fn take(marks: &mut Marks, ticket: u64) -> Option<Mark<Sleeper>> {
    let at = marks.binary_search_by(|(other, _)| FORMAT.order(*other, ticket)).ok()?;
    marks.remove(at).map(|(_, mark)| mark)
}

#[cold]
fn replace(marks: &mut Marks, ticket: u64, new: Mark<Sleeper>) -> Option<Mark<Sleeper>> {
    match marks.binary_search_by(|(other, _)| FORMAT.order(*other, ticket)) {
        Ok(at) => Some(mem::replace(&mut marks[at].1, new)),
        Err(at) => {
            marks.insert(at, (ticket, new));
            None
        }
    }
}

impl Queue {
    /// # Panics
    /// If there are too many slots.
    pub(crate) const fn new(slots: usize) -> Self {
        Self::after(0, slots)
    }

    /// Creates a queue that has already issued this many tickets.
    pub(crate) const fn after(tickets: u64, slots: usize) -> Self {
        assert!(slots <= MOST, "a semaphore has a million slots at most");
        Self {
            word: AtomicU64::new(FORMAT.word(tickets, slots as i64)),
            marks: Mutex::new(VecDeque::new()),
        }
    }

    #[inline(always)]
    fn marks(&self) -> MutexGuard<'_, Marks> {
        // No thread panics while it has the marks locked.
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    pub(crate) fn enter(&self, weight: u32) -> Standing {
        let Ok(place) = line::enter(self, &mut Patient, weight);
        if !place.enabled {
            self.joins_a_line(place);
        }
        place
    }

    /// # Panics
    /// If the queue is too long.
    #[cold]
    pub(crate) fn joins_a_line(&self, place: Standing) {
        if self.waiters().saturating_sub(place.weight as usize) > LONGEST {
            self.abandon(place);
            panic!(
                "more than {LONGEST} slots are waited for: limit how many come, or let those go who have waited for long"
            );
        }
    }

    /// Takes slots if they are free, and returns a place that is enabled. Never overtakes a waiter.
    #[inline(always)]
    pub(crate) fn try_enter(&self, weight: u32) -> Option<Standing> {
        let mut word = self.word.load(Relaxed);
        loop {
            if FORMAT.free(word) < i64::from(weight) {
                return None;
            }
            let next = word.wrapping_add(FORMAT.issue(u64::from(weight)));
            match self.word.compare_exchange_weak(word, next, SeqCst, Relaxed) {
                Ok(_) => {
                    return Some(Standing { ticket: FORMAT.issued(word), weight, enabled: true });
                }
                Err(now) => word = now,
            }
        }
    }

    #[inline(always)]
    pub(crate) fn release(&self, slots: u32) {
        let Ok(()) = line::release(self, &mut Patient, slots);
    }

    #[cold]
    pub(crate) fn abandon(&self, place: Standing) {
        if place.enabled {
            self.release(place.weight);
        } else {
            let Ok(()) = line::abandon(self, &mut Patient, place);
        }
    }

    /// Returns whether it is the place's turn.
    pub(crate) fn is_enabled(&self, place: Standing) -> bool {
        place.enabled || FORMAT.is_valid(self.word.load(SeqCst), place.ticket)
    }

    /// Waits. When the time limit is reached, the place keeps its position in the queue.
    #[inline(always)]
    pub(crate) fn wait(
        &self,
        place: Standing,
        slots: usize,
        until: Option<Instant>,
    ) -> Result<(), Late> {
        if place.enabled { Ok(()) } else { self.wait_in_line(place, slots, until) }
    }

    #[cold]
    fn wait_in_line(
        &self,
        place: Standing,
        slots: usize,
        until: Option<Instant>,
    ) -> Result<(), Late> {
        if soon(self.waiters() + slots, until, || self.is_enabled(place))? {
            return Ok(());
        }
        match until {
            Some(until) => line::wait(self, &mut Until(until), 0, place),
            None => {
                let Ok(()) = line::wait(self, &mut Patient, 0, place);
                Ok(())
            }
        }
    }

    /// Returns whether it is the place's turn; if not, the waker is woken when it is.
    pub(crate) fn poll(&self, place: Standing, waker: &Waker) -> bool {
        if self.is_enabled(place) {
            return true;
        }
        let Ok(lies) = line::lie_down(self, &mut Patient, Sleeper::Task(waker.clone()), place);
        !lies
    }

    /// Returns how many slots are free.
    pub(crate) fn free(&self) -> usize {
        FORMAT.free(self.word.load(SeqCst)).max(0) as usize
    }

    /// Returns how many tickets wait.
    pub(crate) fn waiters(&self) -> usize {
        FORMAT.free(self.word.load(SeqCst)).min(0).unsigned_abs() as usize
    }
}
