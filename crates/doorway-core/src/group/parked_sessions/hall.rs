//! The group lock that ships: who is inside stands in one word, who waits in a line. What runs here in the lab is what the
//! crate `doorway` runs, function by function; only the [`Hall`] differs.
//!
//! The word says which session is on, how many are inside, and whether anybody waits. While nobody does, coming and going
//! are one step each. Who finds another session on, or somebody waiting, takes the line, says in the word that somebody waits,
//! joins the end, lets in who may go in, and puts the line back. Two things make this right:
//!
//! - Of those inside, the last one to leave finds in the word that somebody waits, unless who joins has come later and finds
//!   in it that nobody is inside. So one of the two lets the next in.
//! - While somebody waits, nobody gets in but through the line; and whoever has the line lets in all who may go in by then. So
//!   nobody who conflicts is overtaken, nobody waits for its own session alone, and nobody can be kept from changing the word
//!   for long: it is only changed by those who leave.
//!
//! Who waits may *sleep*, and may *abandon* its place. With *batching*, later ones of the session that is on may pass those in
//! line, but nobody in line is passed more often than that allows.

use alloc::{collections::VecDeque, vec::Vec};
use core::ops::{
    ControlFlow::{Break, Continue},
    DerefMut,
};

use crate::{Local, Memory, Relabel, Session, plain_local};

/// Who is inside: the session in the upper half, then whether anybody waits, then how many.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Inside(pub u64);

plain_local!(Inside);

impl Inside {
    /// Nobody, and nobody waits.
    pub const NOBODY: Self = Self(0);
    /// Somebody waits.
    pub const WAITED: u64 = 1 << 31;
    /// The most who can be inside at once.
    pub const MOST: u64 = Self::WAITED - 1;

    /// How many are inside.
    #[inline(always)]
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0 & Self::MOST
    }

    /// Whether anybody waits.
    #[inline(always)]
    #[must_use]
    pub const fn is_waited_for(self) -> bool {
        self.0 & Self::WAITED != 0
    }

    /// The session that is on, if anybody is inside.
    #[inline(always)]
    #[must_use]
    pub const fn session(self) -> Session {
        Session((self.0 >> 32) as u32)
    }

    /// Whether one who asks for the session may join those inside, whoever waits.
    #[inline(always)]
    #[must_use]
    pub const fn admits(self, session: Session) -> bool {
        self.count() == 0 || (self.session().0 == session.0 && session.0 != OWN.0 && self.count() < Self::MOST)
    }

    /// The same with so many more inside, of this session.
    #[inline(always)]
    #[must_use]
    pub const fn and(self, more: u64, session: Session) -> Self {
        Self((session.0 as u64) << 32 | self.0 & Self::WAITED | (self.count() + more))
    }

    /// The same with somebody waiting, or nobody.
    #[must_use]
    pub const fn waited_for(self, somebody: bool) -> Self {
        Self(self.0 & !Self::WAITED | if somebody { Self::WAITED } else { 0 })
    }
}

/// What to add when one leaves.
const LEAVES: u64 = u64::MAX;

/// A session of one's own: everybody else's is another one, even if it has the same name.
pub const OWN: Session = Session(u32::MAX);

/// How those in line are let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct How {
    /// How often one in line may be passed.
    batching: u32,
    /// A mutant's way.
    one_at_a_time: bool,
}

/// Who waits, in the order in which they came.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Line<N>(VecDeque<Waiting<N>>);

/// Somebody in line.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Waiting<N> {
    /// Who it is.
    pub name: N,
    /// What it asks for.
    pub session: Session,
    /// How many who came later have gone in.
    pub passed: u32,
}

impl Local for Line<u32> {
    fn relabel(&self, _: Relabel<'_>) -> Self {
        self.clone()
    }
}

impl<N> Line<N> {
    /// Nobody.
    pub const EMPTY: Self = Self(VecDeque::new());

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting<N>> {
        self.0.iter()
    }

    /// Puts somebody at the end.
    pub fn push(&mut self, waiting: Waiting<N>) {
        self.0.push_back(waiting);
    }

    fn remove(&mut self, name: &N) -> bool
    where
        N: PartialEq,
    {
        let at = self.0.iter().position(|waiting| waiting.name == *name);
        at.and_then(|at| self.0.remove(at)).is_some()
    }

    /// Those who may go in, by where they stand, and the session that is then on.
    fn joining(&self, inside: Inside, how: How, mut joins: impl FnMut(usize)) -> Session {
        let Some(first) = self.0.front() else { return inside.session() };
        let session = if inside.count() == 0 { first.session } else { inside.session() };
        let mut count = inside.count();
        let mut full = session == OWN && count > 0;
        let mut room = None; // how many more those may be passed by who stay
        for (at, waiting) in self.0.iter().enumerate() {
            if full || room == Some(0) || count == Inside::MOST {
                break;
            }
            if waiting.session == session {
                joins(at);
                count += 1;
                full = session == OWN || how.one_at_a_time;
                room = room.map(|room| room - 1);
            } else {
                let bears = how.batching - waiting.passed;
                room = Some(room.map_or(bears, |room: u32| room.min(bears)));
            }
        }
        session
    }

    /// Who is inside when those have gone in who may.
    fn next(&self, inside: Inside, how: How) -> Inside {
        let mut count = 0;
        let session = self.joining(inside, how, |_| count += 1);
        inside.and(count, session).waited_for((count as usize) < self.len())
    }

    /// Takes those out who may go in.
    fn let_in(&mut self, inside: Inside, how: How) -> Vec<N> {
        let mut joining = Vec::new();
        self.joining(inside, how, |at| joining.push(at));
        let mut names = Vec::with_capacity(joining.len());
        for at in joining {
            let at = at - names.len();
            let Some(waiting) = self.0.remove(at) else { break };
            names.push(waiting.name);
            for stays in self.0.range_mut(..at) {
                stays.passed += 1;
            }
        }
        names
    }
}

/// The word, the line, and where each of those in line is told that it may go in.
pub trait Hall<M: Memory> {
    /// Where somebody in line is told.
    type Name: PartialEq;
    /// The line, taken by one process.
    type Taken<'a>: DerefMut<Target = Line<Self::Name>>
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

/// Goes in if that overtakes nobody; whether it did. If others go in or out each time, it tries so many times.
///
/// # Errors
/// When the memory halts the process.
#[inline(always)]
#[track_caller]
pub fn try_enter<M: Memory, H: Hall<M>>(hall: &H, m: &mut M, session: Session, tries: u32) -> Result<bool, M::Halt> {
    m.repeat(tries, |m, tries| {
        let inside = hall.inside(m)?;
        if inside.is_waited_for() && !m.mutant("does-not-mind-the-line") || !inside.admits(session) {
            return Ok(Break(false));
        }
        let goes_in = hall.change(m, inside, inside.and(1, session))?;
        Ok(if goes_in || tries == 1 { Break(goes_in) } else { Continue(tries - 1) })
    })
}

/// The doorway: goes in, or joins the line. Where it will be told when it may go in, unless it has gone in.
///
/// # Errors
/// When the memory halts the process.
#[inline(always)]
#[track_caller]
pub fn enter<M: Memory, H: Hall<M>>(hall: &H, m: &mut M, p: u32, session: Session) -> Result<Option<H::Name>, M::Halt> {
    if try_enter(hall, m, session, hall.tries())? { Ok(None) } else { join(hall, m, p, session).map(Some) }
}

#[cold]
#[track_caller]
fn join<M: Memory, H: Hall<M>>(hall: &H, m: &mut M, p: u32, session: Session) -> Result<H::Name, M::Halt> {
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
fn attend<M: Memory, H: Hall<M>>(hall: &H, m: &mut M, mut line: H::Taken<'_>) -> Result<(), M::Halt> {
    let how = How { batching: hall.batching(), one_at_a_time: m.mutant("lets-in-one-at-a-time") };
    let before = m.repeat((), |m, ()| {
        let inside = hall.inside(m)?;
        let next = line.next(inside, how);
        Ok(if next == inside || hall.change(m, inside, next)? { Break(inside) } else { Continue(()) })
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
pub fn lies_down<M: Memory, H: Hall<M>>(hall: &H, m: &mut M, name: &H::Name) -> Result<bool, M::Halt> {
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

/// Leaves the line instead of going in, or the hall, if it might have gone in by now. Those behind may go in for it.
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

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const A: Session = Session(1);
    const B: Session = Session(2);
    const FIFO: How = How { batching: 0, one_at_a_time: false };
    const TWO: How = How { batching: 2, one_at_a_time: false };

    fn line(sessions: &[Session]) -> Line<usize> {
        let mut line = Line::EMPTY;
        sessions.iter().enumerate().for_each(|(name, &session)| line.push(Waiting { name, session, passed: 0 }));
        line
    }

    #[test]
    fn the_first_go_in_with_those_of_their_session_right_behind() {
        let nobody = Inside::NOBODY;
        for (sessions, expected) in [
            (vec![A, A, B, A], vec![0, 1]),
            (vec![B, A], vec![0]),
            (vec![OWN, OWN, A], vec![0]),
            (vec![A, OWN, A], vec![0]),
        ] {
            let mut line = line(&sessions);
            let next = line.next(nobody, FIFO);
            assert_eq!(
                (next.count(), next.session(), next.is_waited_for()),
                (expected.len() as u64, sessions[0], true)
            );
            assert_eq!(line.let_in(nobody, FIFO), expected);
        }
        assert_eq!(line(&[]).next(nobody.and(2, A).waited_for(true), FIFO), nobody.and(2, A));
        assert_eq!(line(&[A, A]).next(nobody.and(2, A), FIFO), nobody.and(4, A));
        assert_eq!(line(&[B, A]).next(nobody.and(2, A), FIFO), nobody.and(2, A).waited_for(true));
        assert_eq!(line(&[OWN, A]).next(nobody.and(1, OWN), TWO), nobody.and(1, OWN).waited_for(true));
    }

    /// Nobody is passed more often than batching says, however the sessions come.
    #[test]
    fn nobody_is_passed_too_often() {
        let mut line = line(&[B, A, OWN, A, A, A]);
        let inside = Inside::NOBODY.and(1, A).waited_for(true);
        assert_eq!(line.let_in(inside, TWO), [1, 3]);
        let left: Vec<_> = line.iter().map(|waiting| (waiting.name, waiting.passed)).collect();
        assert_eq!(left, [(0, 2), (2, 1), (4, 0), (5, 0)]);
        // Whoever has been passed as often is not passed again, and does not pass.
        assert_eq!(line.let_in(Inside::NOBODY.and(1, A), TWO), []);
        assert_eq!(line.let_in(Inside::NOBODY, TWO), [0]);
        assert_eq!(line.let_in(Inside::NOBODY, TWO), [2]);
        assert_eq!(line.let_in(Inside::NOBODY, TWO), [4, 5]);
    }
}
