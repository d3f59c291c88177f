//! What an algorithm is: three sections of code, and its claims.

use alloc::{string::String, vec, vec::Vec};
use core::fmt;

use crate::{Claims, Layout, Local, Memory, Session};

/// How many processes, slots and sessions an instance serves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Size {
    /// Processes, with ids `0..n`.
    pub n: usize,
    /// Slots: how many processes may be in the critical section at once. In group locks, as many as
    /// there are processes.
    pub k: usize,
    /// Sessions, for group locks; 0 elsewhere.
    pub sessions: usize,
}

impl Size {
    /// `n` processes, one slot.
    pub const fn mutex(n: usize) -> Self {
        Self::slots(n, 1)
    }

    /// `n` processes, `k` slots.
    pub const fn slots(n: usize, k: usize) -> Self {
        Self { n, k, sessions: 0 }
    }

    /// `n` processes that ask for any of `sessions` sessions.
    pub const fn group(n: usize, sessions: usize) -> Self {
        Self { n, k: n, sessions }
    }
}

impl Size {
    /// Returns how many conflicting processes, taken together, a process may not overtake: as many
    /// as there are slots, or one where there are sessions.
    pub const fn in_order(self) -> usize {
        if self.sessions == 0 { self.k } else { 1 }
    }
}

/// Formats the size for use in a sentence: `n = 3, k = 2` or `n = 3, 2 sessions`.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sessions {
            0 => write!(f, "n = {}, k = {}", self.n, self.k),
            1 => write!(f, "n = {}, 1 session", self.n),
            sessions => write!(f, "n = {}, {sessions} sessions", self.n),
        }
    }
}

/// The error for a size that an algorithm cannot serve.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(pub String);

/// What is known about an algorithm before it runs.
pub trait Algorithm: Sized + Sync {
    /// The algorithm's name on the command line.
    const NAME: &'static str;

    /// The variant's name on the command line if several algorithms share one name: the kind of
    /// timestamps. `None` if there is only one variant.
    const VARIANT: Option<&'static str> = None;

    /// How many [attempts](Memory::attempts) within a passage the checker follows unless told
    /// otherwise; `None` if there are no attempts. With attempts, runs are finite only if both
    /// attempts and passages are bounded.
    const ATTEMPTS: Option<u32> = None;

    /// What the paper claims for the algorithm, as data. The lab turns each claim into a check.
    const CLAIMS: Claims;

    /// Requests the algorithm's registers from the layout.
    ///
    /// # Errors
    /// When the algorithm cannot serve that size.
    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit>;

    /// Lays out an instance for a size that the claims allow, as the named mutant if `mutant` names
    /// one.
    ///
    /// # Errors
    /// When the algorithm cannot serve that size.
    fn laid_out(size: Size, mutant: Option<&'static str>) -> Result<(Self, Layout), Unfit> {
        Self::CLAIMS.serves(Self::NAME, size)?;
        Layout::build(size.n, mutant, |layout| Self::new(layout, size))
    }
}

/// An algorithm as code: doorway, waiting, exit.
///
/// The code carries nothing from section to section but the `Pass`, and nothing from passage to
/// passage but the `Keep`. Between `waiting` and `exit` the process is in the critical section. A
/// process knows its own registers, because it is their only writer: it keeps a copy of them in
/// `Pass` or `Keep` and does not read them.
pub trait Exclusion<M: Memory>: Algorithm {
    /// What a process asks for on arrival: `()` except in group locks.
    type Request: Request;
    /// What a process carries from section to section.
    type Pass: Local;
    /// What a process carries from passage to passage.
    type Keep: Local;

    /// Returns what process `p` keeps before its first passage.
    fn keep(&self, p: usize) -> Self::Keep;

    /// Runs the first part of the entry section, which is bounded and never waits. Afterwards the
    /// place in the queue is fixed.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn doorway(
        &self,
        m: &mut M,
        p: usize,
        request: Self::Request,
        keep: Self::Keep,
    ) -> Result<Self::Pass, M::Halt>;

    /// Runs the rest of the entry section. Returns when `p` may enter the critical section.
    ///
    /// # Errors
    /// When the memory halts the process, or the wait is given up.
    fn waiting(&self, m: &mut M, p: usize, pass: Self::Pass) -> Result<Self::Pass, M::Halt>;

    /// Runs the exit section, on leaving the critical section.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn exit(&self, m: &mut M, p: usize, pass: Self::Pass) -> Result<Self::Keep, M::Halt>;

    /// Leaves the queue instead of entering, after `waiting` was given up at one of its waits.
    /// `pass` is the doorway's `Pass`. Returns `None` if the algorithm cannot abandon a place.
    ///
    /// Exclusion and order hold however often processes abandon places. Progress holds as long as
    /// no process does so forever: a process that enters, gives up and enters again may be in its
    /// doorway each time that another process looks.
    fn abandon(
        &self,
        m: &mut M,
        p: usize,
        pass: Self::Pass,
    ) -> Option<Result<Self::Keep, M::Halt>> {
        let _ = (m, p, pass);
        None
    }

    /// Records that `p` has been killed, wherever it was, for other processes to see: one access.
    /// The lab makes it in the name of `p`. From then on `p` is another process in the same place,
    /// with the returned `Keep`. Returns `None` if no process would notice the death.
    fn killed(&self, m: &mut M, p: usize) -> Option<Result<Self::Keep, M::Halt>> {
        let _ = (m, p);
        None
    }
}

/// What a process asks for on arrival.
pub trait Request: Local {
    /// Returns all possible requests. The checker tries each.
    fn all(size: Size) -> Vec<Self>;

    /// Returns the session of this request; [`Session::NONE`] except in group locks.
    fn session(&self) -> Session {
        Session::NONE
    }
}

impl Request for () {
    fn all(_: Size) -> Vec<Self> {
        vec![()]
    }
}

/// Returns all processes but `p`.
///
/// This is one filtered range, not two ranges one after the other: the body of a loop over it is
/// compiled once, and therefore inlined.
#[inline(always)]
pub fn others(p: usize, n: usize) -> impl Iterator<Item = usize> + Clone {
    (0..n).filter(move |&i| i != p)
}
