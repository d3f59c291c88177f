//! Who is inside, in a word; who waits, in a line; and which of those may go in.

use alloc::{collections::VecDeque, vec::Vec};

use crate::{Local, Relabel, Session, plain_local};

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
        self.count() == 0
            || (self.session().0 == session.0 && session.0 != OWN.0 && self.count() < Self::MOST)
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
pub(super) const LEAVES: u64 = u64::MAX;

/// A session of one's own: everybody else's is another one, even if it has the same name.
pub const OWN: Session = Session(u32::MAX);

/// How those in line are let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct How {
    /// How often one in line may be passed.
    pub(super) batching: u32,
    /// A mutant's way.
    pub(super) one_at_a_time: bool,
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

    pub(super) fn remove(&mut self, name: &N) -> bool
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
    pub(super) fn next(&self, inside: Inside, how: How) -> Inside {
        let mut count = 0;
        let session = self.joining(inside, how, |_| count += 1);
        inside.and(count, session).waited_for((count as usize) < self.len())
    }

    /// Takes those out who may go in.
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
