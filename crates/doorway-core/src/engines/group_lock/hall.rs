//! The group lock of the product: one word for the processes inside, and a queue of waiters. The
//! lab runs the functions that the crate `doorway` runs; only the [`Hall`] differs.
//!
//! The word holds the current session, how many processes are inside, and whether a process waits.
//! While no process waits, one compare-and-swap acquires and one subtraction releases. A process
//! that finds another session inside, or a waiter, takes the queue, says in the word that a process
//! waits, joins the end, admits the waiters that may enter, and puts the queue back. Two things
//! make this right:
//!
//! - The last process to leave finds in the word that a process waits, unless the waiter joins
//!   later. In that case the waiter finds in the word that no process is inside. So one of the two
//!   admits the next waiter.
//! - While a process waits, processes enter only through the queue, and a process with the queue
//!   admits all waiters that may enter by then. So no conflicting process is overtaken, and no
//!   process waits for its own session alone. A process with the queue is not kept from changing
//!   the word for long, because apart from it only leaving processes change the word.
//!
//! A waiter may *sleep*, and may *abandon* its place. With *batching*, later processes of the
//! current session may pass waiters, but no waiter is passed more often than batching allows.

use core::ops::{
    ControlFlow::{Break, Continue},
    DerefMut,
};

use super::line::{How, LEAVES};
pub use super::line::{Inside, Line, OWN, Waiting};
use crate::{Memory, Session};

/// The word, the queue, and where each waiter is told that it may enter.
pub trait Hall<M: Memory>: Sync {
    /// Where a waiter is told that it may enter.
    type Name: PartialEq + Sync;
    /// The queue, taken by one process.
    type Taken<'a>: DerefMut<Target = Line<Self::Name>> + Sync
    where
        Self: 'a;

    /// Returns how often a process tries to enter before it joins the queue.
    fn tries(&self) -> u32;

    /// Returns how often a waiter may be passed by later processes of the current session.
    fn batching(&self) -> u32;

    /// Reads the word.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn inside(&self, m: &mut M) -> Result<Inside, M::Halt>;

    /// Changes the word if it is still `old`; returns whether it was.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn change(&self, m: &mut M, old: Inside, new: Inside) -> Result<bool, M::Halt>;

    /// Adds to the word; returns the previous word.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn add(&self, m: &mut M, add: u64) -> Result<Inside, M::Halt>;

    /// Waits until no other process has the queue, and takes it.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn take(&self, m: &mut M) -> Result<Self::Taken<'_>, M::Halt>;

    /// Puts the queue back.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn put(&self, m: &mut M, line: Self::Taken<'_>) -> Result<(), M::Halt>;

    /// Returns where process `p` will be told that it may enter. It has not been told yet.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn stand(&self, m: &mut M, p: u32) -> Result<Self::Name, M::Halt>;

    /// Returns a second handle to `name`, for a caller that keeps the first.
    fn same(&self, name: &Self::Name) -> Self::Name;

    /// Records that the waiter sleeps, unless it has been told; returns whether it had been told.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn lie_down(&self, m: &mut M, name: &Self::Name) -> Result<bool, M::Halt>;

    /// Tells the waiter that it may enter; returns whether it sleeps.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn tell(&self, m: &mut M, name: &Self::Name) -> Result<bool, M::Halt>;

    /// Makes it possible to wake the waiter. An earlier wake-up is forgotten.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn settle(&self, m: &mut M, name: &Self::Name) -> Result<(), M::Halt>;

    /// Sleeps until woken.
    ///
    /// # Errors
    /// In the lab, where a process may stop here; natively when the wait is given up.
    fn sleep(&self, m: &mut M, name: &Self::Name) -> Result<(), M::Halt>;

    /// Wakes the waiter.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn wake(&self, m: &mut M, name: &Self::Name) -> Result<(), M::Halt>;
}

/// Enters if that overtakes no process; returns whether it did. If other processes enter or leave
/// each time, it tries `tries` times.
///
/// # Errors
/// When the memory halts the process.
#[inline(always)]
#[track_caller]
pub fn try_enter<M: Memory, H: Hall<M>>(
    hall: &H,
    m: &mut M,
    session: Session,
    tries: u32,
) -> Result<bool, M::Halt> {
    m.repeat(tries, |m, tries| {
        let inside = hall.inside(m)?;
        if inside.is_waited_for() && !m.mutant("does-not-mind-the-line") || !inside.admits(session)
        {
            return Ok(Break(false));
        }
        let goes_in = hall.change(m, inside, inside.and(1, session))?;
        Ok(if goes_in || tries == 1 { Break(goes_in) } else { Continue(tries - 1) })
    })
}

/// Runs the doorway: enters, or joins the queue. Returns where the process will be told that it may
/// enter, or `None` if it has entered.
///
/// # Errors
/// When the memory halts the process.
#[inline(always)]
#[track_caller]
pub fn enter<M: Memory, H: Hall<M>>(
    hall: &H,
    m: &mut M,
    p: u32,
    session: Session,
) -> Result<Option<H::Name>, M::Halt> {
    if try_enter(hall, m, session, hall.tries())? {
        Ok(None)
    } else {
        join(hall, m, p, session).map(Some)
    }
}

#[cold]
#[track_caller]
fn join<M: Memory, H: Hall<M>>(
    hall: &H,
    m: &mut M,
    p: u32,
    session: Session,
) -> Result<H::Name, M::Halt> {
    let name = hall.stand(m, p)?;
    let mut line = hall.take(m)?;
    if line.is_empty() {
        hall.add(m, Inside::WAITED)?;
    }
    line.push(Waiting { name: hall.same(&name), session, passed: 0 });
    attend(hall, m, line)?;
    Ok(name)
}

/// Admits the waiters that may enter, puts the queue back, and tells those waiters.
#[track_caller]
fn attend<M: Memory, H: Hall<M>>(
    hall: &H,
    m: &mut M,
    mut line: H::Taken<'_>,
) -> Result<(), M::Halt> {
    let how = How { batching: hall.batching(), one_at_a_time: m.mutant("lets-in-one-at-a-time") };
    let before = m.repeat((), |m, ()| {
        let inside = hall.inside(m)?;
        let next = line.next(inside, how);
        Ok(if next == inside || hall.change(m, inside, next)? {
            Break(inside)
        } else {
            Continue(())
        })
    })?;
    let names = line.let_in(before, how);
    hall.put(m, line)?;
    m.each(0..names.len(), |m, i| {
        let sleeps = hall.tell(m, &names[i])?;
        if sleeps && !m.mutant("wakes-nobody") { hall.wake(m, &names[i]) } else { Ok(()) }
    })
}

/// Waits, asleep.
///
/// # Errors
/// When the memory halts the process, or the wait is given up.
#[track_caller]
pub fn wait<M: Memory, H: Hall<M>>(hall: &H, m: &mut M, name: &H::Name) -> Result<(), M::Halt> {
    m.repeat((), |m, ()| {
        if lies_down(hall, m, name)? {
            hall.sleep(m, name)?;
            return Ok(Continue(()));
        }
        Ok(Break(()))
    })
}

/// Makes it possible to wake a waiter, unless the waiter may enter; returns whether it did.
///
/// # Errors
/// When the memory halts the process.
#[track_caller]
pub fn lies_down<M: Memory, H: Hall<M>>(
    hall: &H,
    m: &mut M,
    name: &H::Name,
) -> Result<bool, M::Halt> {
    hall.settle(m, name)?;
    Ok(!hall.lie_down(m, name)?)
}

/// Runs the exit section. The last process to leave admits the next waiters, if any process waits.
///
/// # Errors
/// When the memory halts the process.
#[inline(always)]
#[track_caller]
pub fn release<M: Memory, H: Hall<M>>(hall: &H, m: &mut M) -> Result<(), M::Halt> {
    let before = hall.add(m, LEAVES)?;
    if before.is_waited_for() && before.count() == 1 && !m.mutant("leaves-them-waiting") {
        next(hall, m)
    } else {
        Ok(())
    }
}

#[cold]
#[track_caller]
fn next<M: Memory, H: Hall<M>>(hall: &H, m: &mut M) -> Result<(), M::Halt> {
    let line = hall.take(m)?;
    attend(hall, m, line)
}

/// Leaves the queue instead of entering, or releases if the process has been admitted by now.
/// Waiters behind it may then enter.
///
/// # Errors
/// When the memory halts the process.
#[track_caller]
pub fn abandon<M: Memory, H: Hall<M>>(hall: &H, m: &mut M, name: &H::Name) -> Result<(), M::Halt> {
    let mut line = hall.take(m)?;
    if line.remove(name) {
        return if m.mutant("goes-silently") { hall.put(m, line) } else { attend(hall, m, line) };
    }
    hall.put(m, line)?;
    if m.mutant("keeps-its-share") { Ok(()) } else { release(hall, m) }
}
