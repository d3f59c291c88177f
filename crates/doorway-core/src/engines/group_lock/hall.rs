//! The group lock that ships: who is inside stands in one word, who waits in a line. What runs here
//! in the lab is what the crate `doorway` runs, function by function; only the [`Hall`] differs.
//!
//! The word says which session is on, how many are inside, and whether anybody waits. While nobody
//! does, coming and going are one step each. Who finds another session on, or somebody waiting,
//! takes the line, says in the word that somebody waits, joins the end, lets in who may go in, and
//! puts the line back. Two things make this right:
//!
//! - Of those inside, the last one to leave finds in the word that somebody waits, unless who joins
//!   has come later and finds in it that nobody is inside. So one of the two lets the next in.
//! - While somebody waits, nobody gets in but through the line; and whoever has the line lets in
//!   all who may go in by then. So nobody who conflicts is overtaken, nobody waits for its own
//!   session alone, and nobody can be kept from changing the word for long: it is only changed by
//!   those who leave.
//!
//! Who waits may *sleep*, and may *abandon* its place. With *batching*, later ones of the session
//! that is on may pass those in line, but nobody in line is passed more often than that allows.

use core::ops::{
    ControlFlow::{Break, Continue},
    DerefMut,
};

use super::line::{How, LEAVES};
pub use super::line::{Inside, Line, OWN, Waiting};
use crate::{Memory, Session};

/// The word, the line, and where each of those in line is told that it may go in.
pub trait Hall<M: Memory>: Sync {
    /// Where somebody in line is told.
    type Name: PartialEq + Sync;
    /// The line, taken by one process.
    type Taken<'a>: DerefMut<Target = Line<Self::Name>> + Sync
    where
        Self: 'a;

    /// How often one tries to go in without joining the line.
    fn tries(&self) -> u32;

    /// How often one in line may be passed by others of the session that is on.
    fn batching(&self) -> u32;

    /// Who is inside.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn inside(&self, m: &mut M) -> Result<Inside, M::Halt>;

    /// Changes who is inside, if that is still `old`; whether it was.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn change(&self, m: &mut M, old: Inside, new: Inside) -> Result<bool, M::Halt>;

    /// Adds to the word; who was inside before.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn add(&self, m: &mut M, add: u64) -> Result<Inside, M::Halt>;

    /// Waits until nobody else has the line, and takes it.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn take(&self, m: &mut M) -> Result<Self::Taken<'_>, M::Halt>;

    /// Puts it back.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn put(&self, m: &mut M, line: Self::Taken<'_>) -> Result<(), M::Halt>;

    /// Where process `p` will be told. It has not been.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn stand(&self, m: &mut M, p: u32) -> Result<Self::Name, M::Halt>;

    /// The same again, for who keeps the first.
    fn same(&self, name: &Self::Name) -> Self::Name;

    /// Says that it sleeps, unless it has been told; whether it had.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn lie_down(&self, m: &mut M, name: &Self::Name) -> Result<bool, M::Halt>;

    /// Tells it; whether it sleeps.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn tell(&self, m: &mut M, name: &Self::Name) -> Result<bool, M::Halt>;

    /// Makes it possible to wake `p`. That it was woken before is forgotten.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn settle(&self, m: &mut M, name: &Self::Name) -> Result<(), M::Halt>;

    /// Sleeps until woken.
    ///
    /// # Errors
    /// In the lab, where a process may stop here; natively when the wait is given up.
    fn sleep(&self, m: &mut M, name: &Self::Name) -> Result<(), M::Halt>;

    /// Wakes it.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn wake(&self, m: &mut M, name: &Self::Name) -> Result<(), M::Halt>;
}

/// Goes in if that overtakes nobody; whether it did. If others go in or out each time, it tries so
/// many times.
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

/// The doorway: goes in, or joins the line. Where it will be told when it may go in, unless it has
/// gone in.
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

/// Lets those in line in who may go in, puts the line back, and tells them.
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

/// Makes it possible to wake the one who waits, unless it may go in; whether it did.
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

/// The exit section. The last to leave lets the next in, if anybody waits.
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

/// Leaves the line instead of going in, or the hall, if it might have gone in by now. Those behind
/// may go in for it.
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
