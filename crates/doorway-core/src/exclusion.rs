//! What an algorithm is: three sections of code, and the claims that it makes.

use alloc::{string::String, vec, vec::Vec};
use core::fmt;

use crate::{Claims, Layout, Local, Memory, Session};

/// How many processes, slots and sessions an instance serves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Size {
    /// Processes, with ids `0..n`.
    pub n: usize,
    /// Slots: how many may be in the critical section at once. In group locks as many as there are
    /// processes.
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
    /// How many processes that conflict with it one process may not overtake, all of them at once:
    /// as many as there are slots, and one where there are sessions.
    pub const fn in_order(self) -> usize {
        if self.sessions == 0 { self.k } else { 1 }
    }
}

/// As in a sentence: `n = 3, k = 2` or `n = 3, 2 sessions`.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sessions {
            0 => write!(f, "n = {}, k = {}", self.n, self.k),
            1 => write!(f, "n = {}, 1 session", self.n),
            sessions => write!(f, "n = {}, {sessions} sessions", self.n),
        }
    }
}

/// An algorithm cannot serve that size.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(pub String);

/// What there is to know about an algorithm before it runs.
pub trait Algorithm: Sized + Sync {
    /// Its name, as on the command line.
    const NAME: &'static str;

    /// Which of several under one name, as on the command line: the kind of timestamps. `None` if
    /// it is the only one.
    const VARIANT: Option<&'static str> = None;

    /// How many [attempts](Memory::attempts) within a passage the checker follows unless told
    /// otherwise; `None` if there are no attempts. Where there are, runs are finite only with
    /// attempts and passages bounded.
    const ATTEMPTS: Option<u32> = None;

    /// What the paper says about it, as data: the lab turns each claim into a check.
    const CLAIMS: Claims;

    /// Asks for the registers.
    ///
    /// # Errors
    /// When the algorithm cannot serve that size.
    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit>;

    /// Lays out an instance for a size that the claims allow, as the named mutant if there is one.
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
/// Nothing survives from section to section but the `Pass`, and nothing from passage to passage but
/// the `Keep`. Between `waiting` and `exit` the process is in the critical section. A process's own
/// registers, of which it is the only writer, are known to it: it keeps a copy in `Pass` or `Keep`
/// and does not read them.
pub trait Exclusion<M: Memory>: Algorithm {
    /// What a process asks for on arrival: `()` except in group locks.
    type Request: Request;
    /// What passes from section to section.
    type Pass: Local;
    /// What passes from passage to passage.
    type Keep: Local;

    /// What process `p` keeps before its first passage.
    fn keep(&self, p: usize) -> Self::Keep;

    /// The first part of entry: bounded, never waits; afterwards the place in line is fixed.
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

    /// The rest of entry. Returns when `p` may go in.
    ///
    /// # Errors
    /// When the memory halts the process, or the wait is given up.
    fn waiting(&self, m: &mut M, p: usize, pass: Self::Pass) -> Result<Self::Pass, M::Halt>;

    /// What to do on leaving the critical section.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn exit(&self, m: &mut M, p: usize, pass: Self::Pass) -> Result<Self::Keep, M::Halt>;

    /// Leaves the line instead of going in: what to do with the doorway's `Pass` when `waiting` was
    /// given up at one of its waits. `None` where the algorithm has no way to.
    ///
    /// Exclusion and order hold however often this is done. Progress holds as long as nobody does
    /// it for ever: who comes, gives up and comes again can be seen in its doorway each time that
    /// somebody looks.
    fn abandon(
        &self,
        m: &mut M,
        p: usize,
        pass: Self::Pass,
    ) -> Option<Result<Self::Keep, M::Halt>> {
        let _ = (m, p, pass);
        None
    }

    /// What there is to see when `p` has been killed, wherever it was: one access. The lab makes it
    /// in the name of `p`, which then is another process in the same place, with this `Keep`.
    /// `None` where nobody would notice.
    fn killed(&self, m: &mut M, p: usize) -> Option<Result<Self::Keep, M::Halt>> {
        let _ = (m, p);
        None
    }
}

/// What a process asks for on arrival.
pub trait Request: Local {
    /// All that may be asked for: the checker tries each.
    fn all(size: Size) -> Vec<Self>;

    /// The session that this asks for; [`Session::NONE`] except in group locks.
    fn session(&self) -> Session {
        Session::NONE
    }
}

impl Request for () {
    fn all(_: Size) -> Vec<Self> {
        vec![()]
    }
}

/// All processes but `p`.
///
/// One filtered range rather than two ranges one after the other: a loop over it has its body
/// compiled once, and therefore inline.
#[inline(always)]
pub fn others(p: usize, n: usize) -> impl Iterator<Item = usize> + Clone {
    (0..n).filter(move |&i| i != p)
}
