//! The word for the processes inside, the queue of waiters, and which waiters may enter.

use alloc::{collections::VecDeque, vec::Vec};

use crate::{Local, Relabel, Session, plain_local};

/// The current session in the upper half, then whether a process waits, then how many are inside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Inside(pub u64);

plain_local!(Inside);

impl Inside {
    /// No process is inside, and no process waits.
    pub const NOBODY: Self = Self(0);
    /// The bit that says that a process waits.
    pub const WAITED: u64 = 1 << 31;
    /// The most processes that can be inside at once.
    pub const MOST: u64 = Self::WAITED - 1;

    /// Returns how many processes are inside.
    #[inline(always)]
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0 & Self::MOST
    }

    /// Returns whether a process waits.
    #[inline(always)]
    #[must_use]
    pub const fn is_waited_for(self) -> bool {
        self.0 & Self::WAITED != 0
    }

    /// Returns the current session, if a process is inside.
    #[inline(always)]
    #[must_use]
    pub const fn session(self) -> Session {
        Session((self.0 >> 32) as u32)
    }

    /// Returns whether a process of this session may join the processes inside, whatever the queue.
    #[inline(always)]
    #[must_use]
    pub const fn admits(self, session: Session) -> bool {
        self.count() == 0
            || (self.session().0 == session.0 && session.0 != OWN.0 && self.count() < Self::MOST)
    }

    /// Returns the word with `more` more processes inside, of this session.
    #[inline(always)]
    #[must_use]
    pub const fn and(self, more: u64, session: Session) -> Self {
        Self((session.0 as u64) << 32 | self.0 & Self::WAITED | (self.count() + more))
    }

    /// Returns the word that says that a process waits, or that none does.
    #[must_use]
    pub const fn waited_for(self, somebody: bool) -> Self {
        Self(self.0 & !Self::WAITED | if somebody { Self::WAITED } else { 0 })
    }
}

/// What to add when a process leaves.
pub(super) const LEAVES: u64 = u64::MAX;

/// A session of a process's own. It differs from every other process's session, even from one of
/// the same name.
pub const OWN: Session = Session(u32::MAX);

/// How waiters are admitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct How {
    /// How often a waiter may be passed.
    pub(super) batching: u32,
    /// A mutant's behaviour.
    pub(super) one_at_a_time: bool,
}

/// The waiters, in the order in which they joined.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Line<N>(VecDeque<Waiting<N>>);

/// A waiter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Waiting<N> {
    /// Where the waiter is told that it may enter.
    pub name: N,
    /// The session that it asks for.
    pub session: Session,
    /// How many processes that joined later have entered.
    pub passed: u32,
}

impl Local for Line<u32> {
    fn relabel(&self, _: Relabel<'_>) -> Self {
        self.clone()
    }
}

impl<N> Line<N> {
    /// The empty queue.
    pub const EMPTY: Self = Self(VecDeque::new());

    /// Returns how many waiters there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all waiters, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting<N>> {
        self.0.iter()
    }

    /// Appends a waiter.
    pub fn push(&mut self, waiting: Waiting<N>) {
        self.0.push_back(waiting);
    }

    pub(super) fn remove(&mut self, name: &N) -> bool
    where
        N: PartialEq,
    {
        let at = self.0.iter().position(|waiting| waiting.name == *name);
        at.and_then(|at| self.0.remove(at)).is_some()
    }

    /// Reports the position of each waiter that may enter, and returns the session that is then
    /// current.
    fn joining(&self, inside: Inside, how: How, mut joins: impl FnMut(usize)) -> Session {
        let Some(first) = self.0.front() else { return inside.session() };
        let session = if inside.count() == 0 { first.session } else { inside.session() };
        let mut count = inside.count();
        let mut full = session == OWN && count > 0;
        let mut room = None; // how many more may pass the waiters that stay
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

    /// Returns the word for when all waiters that may enter have entered.
    pub(super) fn next(&self, inside: Inside, how: How) -> Inside {
        let mut count = 0;
        let session = self.joining(inside, how, |_| count += 1);
        inside.and(count, session).waited_for((count as usize) < self.len())
    }

    /// Removes the waiters that may enter, and returns their names.
    pub(super) fn let_in(&mut self, inside: Inside, how: How) -> Vec<N> {
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
        sessions
            .iter()
            .enumerate()
            .for_each(|(name, &session)| line.push(Waiting { name, session, passed: 0 }));
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
        assert_eq!(
            line(&[OWN, A]).next(nobody.and(1, OWN), TWO),
            nobody.and(1, OWN).waited_for(true)
        );
    }

    /// No waiter is passed more often than batching says, in any order of sessions.
    #[test]
    fn nobody_is_passed_too_often() {
        let mut line = line(&[B, A, OWN, A, A, A]);
        let inside = Inside::NOBODY.and(1, A).waited_for(true);
        assert_eq!(line.let_in(inside, TWO), [1, 3]);
        let left: Vec<_> = line.iter().map(|waiting| (waiting.name, waiting.passed)).collect();
        assert_eq!(left, [(0, 2), (2, 1), (4, 0), (5, 0)]);
        // A waiter that has been passed that often is not passed again, and does not pass.
        assert_eq!(line.let_in(Inside::NOBODY.and(1, A), TWO), []);
        assert_eq!(line.let_in(Inside::NOBODY, TWO), [0]);
        assert_eq!(line.let_in(Inside::NOBODY, TWO), [2]);
        assert_eq!(line.let_in(Inside::NOBODY, TWO), [4, 5]);
    }
}
