//! A seat, its place in the queue, and its guard.

use std::fmt;

use doorway_core::{
    Request, Session,
    native::{Arena, Backoff, Own, Relax},
};

use super::{Lock, Paper, View};

/// How a seat waits: without end, except while a place is dropped.
#[derive(Debug)]
pub struct Patience {
    endless: bool,
}

/// The halt of a wait that has been given up.
#[derive(Debug)]
pub struct GivenUp;

impl Relax for Patience {
    type Halt = GivenUp;
    #[inline(always)]
    fn relax(&mut self, round: u32) -> Result<(), GivenUp> {
        if !self.endless {
            return Err(GivenUp);
        }
        let Ok(()) = Backoff.relax(round);
        Ok(())
    }
}

/// The lock has no such session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{name}: there is no session {session:?}, as they go from 1 to {sessions}; make the lock with more of them"
)]
pub struct NoSuchSession {
    /// The algorithm.
    pub name: &'static str,
    /// The session that was asked for.
    pub session: Session,
    /// How many sessions there are.
    pub sessions: usize,
}

/// A seat of a [`Lock`]: one process of the paper.
///
/// A seat makes one passage at a time, which the borrow checker ensures:
///
/// ```compile_fail,E0499
/// use doorway::papers::{Bakery, Lock};
/// let lock = Lock::<Bakery>::new(2).unwrap();
/// let mut seat = lock.seat().unwrap();
/// let (_first, _second) = (seat.lock(), seat.lock());
/// ```
///
/// Dropping a seat frees it. Its next holder takes over what the algorithm keeps between passages.
pub struct Seat<'a, A: Paper<S::Word>, S: Arena = Own> {
    lock: &'a Lock<A, S>,
    p: usize,
    m: View<'a, S::Word>,
    /// `None` during a passage.
    keep: Option<A::Keeps>,
}

impl<'a, A: Paper<S::Word>, S: Arena> Seat<'a, A, S> {
    pub(super) fn new(lock: &'a Lock<A, S>, p: usize, keep: A::Keeps) -> Self {
        let m = lock.instance.view(Patience { endless: true }, lock.seed.wrapping_add(p as u64));
        Self { lock, p, m, keep: Some(keep) }
    }

    /// Returns the number of the seat: the id of the process, of `0..n`.
    pub fn id(&self) -> usize {
        self.p
    }

    /// Goes through the doorway, which never waits, to a place in the queue.
    ///
    /// # Panics
    /// As [`enter_for`](Self::enter_for) does.
    pub fn enter(&mut self) -> Place<'_, 'a, A, S>
    where
        A: Paper<S::Word, Asks = ()>,
    {
        self.doorway(())
    }

    /// Acquires the lock: the doorway and the wait in one.
    ///
    /// # Panics
    /// As [`enter_for`](Self::enter_for) does.
    pub fn lock(&mut self) -> Guard<'_, 'a, A, S>
    where
        A: Paper<S::Word, Asks = ()>,
    {
        self.enter().wait()
    }

    /// Goes through the doorway with a request: a [`Session`] in group locks.
    ///
    /// # Errors
    /// When the lock has no such session.
    ///
    /// # Panics
    /// If a place or a guard of this seat was forgotten ([`std::mem::forget`]): the seat is still
    /// in its last passage.
    pub fn enter_for(&mut self, request: A::Asks) -> Result<Place<'_, 'a, A, S>, NoSuchSession> {
        let (session, sessions) = (request.session(), self.lock.size.sessions);
        let offered = if sessions == 0 {
            session == Session::NONE
        } else {
            (1..=sessions).contains(&(session.0 as usize))
        };
        if !offered {
            return Err(NoSuchSession { name: A::NAME, session, sessions });
        }
        Ok(self.doorway(request))
    }

    /// Acquires the lock with a request: a [`Session`] in group locks.
    ///
    /// # Errors
    /// When the lock has no such session.
    ///
    /// # Panics
    /// As [`enter_for`](Self::enter_for) does.
    pub fn lock_for(&mut self, request: A::Asks) -> Result<Guard<'_, 'a, A, S>, NoSuchSession> {
        Ok(self.enter_for(request)?.wait())
    }

    fn doorway(&mut self, request: A::Asks) -> Place<'_, 'a, A, S> {
        let Some(keep) = self.keep.take() else {
            panic!(
                "{}: seat {} is still in the passage whose place or guard was forgotten",
                A::NAME,
                self.p
            )
        };
        let pass =
            patient(self.lock.instance.algorithm().doorway(&mut self.m, self.p, request, keep));
        Place(Some(Passage { seat: self, pass }))
    }
}

/// Returns the result of a section that is never given up.
#[inline(always)]
fn patient<T>(answer: Result<T, GivenUp>) -> T {
    answer.unwrap_or_else(|GivenUp| unreachable!("only who leaves the line gives up"))
}

impl<A: Paper<S::Word>, S: Arena> Drop for Seat<'_, A, S> {
    fn drop(&mut self) {
        // During a passage no other holder may have the seat: there is no state to continue from.
        if let Some(keep) = self.keep.take() {
            *self.lock.slip(self.p) = Some(keep);
        }
    }
}

/// A passage in progress.
struct Passage<'s, 'a, A: Paper<S::Word>, S: Arena> {
    seat: &'s mut Seat<'a, A, S>,
    pass: A::Passes,
}

impl<'s, 'a, A: Paper<S::Word>, S: Arena> Passage<'s, 'a, A, S> {
    /// Waits for its turn.
    fn wait(self) -> Self {
        let Self { seat, pass } = self;
        let pass = patient(seat.lock.instance.algorithm().waiting(&mut seat.m, seat.p, pass));
        Self { seat, pass }
    }

    /// Leaves the critical section.
    fn exit(self) {
        let Self { seat, pass } = self;
        seat.keep = Some(patient(seat.lock.instance.algorithm().exit(&mut seat.m, seat.p, pass)));
    }

    /// Leaves the queue, if the algorithm has a way to: runs until it would have to wait, as the
    /// checker does.
    fn abandon(self) {
        let Self { seat, pass } = self;
        let algorithm = seat.lock.instance.algorithm();
        seat.m.relax_mut().endless = false;
        let waited = algorithm.waiting(&mut seat.m, seat.p, pass.clone());
        seat.m.relax_mut().endless = true;
        match waited {
            Ok(pass) => Self { seat, pass }.exit(),
            Err(GivenUp) => {
                let left = algorithm.abandon(&mut seat.m, seat.p, pass);
                seat.keep =
                    Some(patient(left.expect("its claims say that a place can be abandoned")));
            }
        }
    }
}

/// A place in the queue. Call [`wait`](Self::wait), or drop the place to leave.
///
/// Dropping it leaves the queue at once where the algorithm has a way to (`abandons` in its
/// [claims](doorway_core::Claims)): no process waits for it any more. **Otherwise dropping it waits
/// for its turn and leaves then**, because all places behind it wait for that. So a thread that
/// drops such a place while it is inside from another seat of the lock waits for ever.
///
/// ```
/// use doorway::papers::{Bakery, Lock};
/// let lock = Lock::<Bakery>::new(2)?;
/// let [mut first, mut second] = [lock.claim(0)?, lock.claim(1)?];
/// let (place, behind) = (first.enter(), second.enter());
/// drop(place);
/// let _inside = behind.wait(); // no place is ahead of it now
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a place in line is left when it is dropped; wait there"]
pub struct Place<'s, 'a, A: Paper<S::Word>, S: Arena = Own>(Option<Passage<'s, 'a, A, S>>);

impl<'s, 'a, A: Paper<S::Word>, S: Arena> Place<'s, 'a, A, S> {
    /// Waits for its turn and acquires the lock.
    pub fn wait(mut self) -> Guard<'s, 'a, A, S> {
        Guard(self.0.take().map(Passage::wait))
    }
}

impl<A: Paper<S::Word>, S: Arena> Drop for Place<'_, '_, A, S> {
    fn drop(&mut self) {
        match self.0.take() {
            None => {} // `wait` has taken the passage
            Some(passage) if A::CLAIMS.abandons => passage.abandon(),
            Some(passage) => passage.wait().exit(),
        }
    }
}

/// Marks a seat as inside. Dropping it leaves, also during a panic.
#[must_use = "whoever drops the guard is outside again"]
pub struct Guard<'s, 'a, A: Paper<S::Word>, S: Arena = Own>(Option<Passage<'s, 'a, A, S>>);

impl<A: Paper<S::Word>, S: Arena> Drop for Guard<'_, '_, A, S> {
    fn drop(&mut self) {
        if let Some(passage) = self.0.take() {
            passage.exit();
        }
    }
}

/// Formats a seat as in a sentence: `bakery seat 0`.
impl<A: Paper<S::Word>, S: Arena> fmt::Debug for Seat<'_, A, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} seat {}", A::NAME, self.p)
    }
}

impl<A: Paper<S::Word>, S: Arena> fmt::Debug for Place<'_, '_, A, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place of {:?}", self.0.as_ref().map(|passage| &*passage.seat))
    }
}

impl<A: Paper<S::Word>, S: Arena> fmt::Debug for Guard<'_, '_, A, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guard of {:?}", self.0.as_ref().map(|passage| &*passage.seat))
    }
}
