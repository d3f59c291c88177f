//! An algorithm as the lab sees it: processes with local states and their next moves.

mod run;

use std::ops::Deref;

use doorway_core::{Claims, Layout, Relabel, Session, Size, layout::Erased};

pub use self::run::build;

use crate::{
    fault::Fault,
    item::Item,
    replay::{Access, Entry},
};

/// The section that a process is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Section {
    Remainder,
    Doorway,
    Waiting,
    Exit,
    Abandon,
    Killed,
}

/// The region of a process, as properties see it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Region {
    /// The process asks for nothing: before the first access of a passage.
    Remainder,
    /// The process is in its doorway.
    Doorway,
    /// The process is through its doorway and has not entered yet.
    Waiting,
    /// From the last access of waiting to the first access of exit.
    Critical,
    /// The process leaves, or abandons its place.
    Exit,
}

impl Region {
    /// Returns whether the process is in its doorway or waiting.
    pub fn is_entry(self) -> bool {
        matches!(self, Self::Doorway | Self::Waiting)
    }

    /// Returns the letter of Fischer et al. 1985, section 3.1: remainder, trying, critical or exit.
    pub fn letter(self) -> char {
        match self {
            Self::Remainder => 'R',
            Self::Doorway | Self::Waiting => 'T',
            Self::Critical => 'C',
            Self::Exit => 'E',
        }
    }
}

/// Returns whether processes with these sessions keep one another out. Without sessions, all do.
pub(crate) fn conflict(a: Session, b: Session) -> bool {
    a != b || a == Session::NONE
}

/// The local state of a process: its section, what it holds from before, and its answers since.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LocalState {
    pub(crate) section: Section,
    /// No access has been made in this section. This matters only in the exit section: until its
    /// first access the process is in the critical section.
    pub(crate) fresh: bool,
    /// The session that the process has asked for; none in the remainder.
    pub(crate) session: Session,
    /// The `Keep` in the remainder, the request and the `Keep` in the doorway, the `Pass`
    /// afterwards.
    held: Item,
    log: Vec<Entry>,
}

impl LocalState {
    /// Returns the region of the process.
    pub fn region(&self) -> Region {
        match self.section {
            Section::Remainder => Region::Remainder,
            Section::Doorway => Region::Doorway,
            Section::Waiting => Region::Waiting,
            Section::Exit if self.fresh => Region::Critical,
            Section::Exit | Section::Abandon | Section::Killed => Region::Exit,
        }
    }

    /// Returns the session that the process has asked for; none in the remainder.
    pub fn session(&self) -> Session {
        self.session
    }

    /// Returns the same state with its tickets replaced.
    pub(crate) fn relabel(&self, f: Relabel<'_>) -> Self {
        Self {
            section: self.section,
            fresh: self.fresh,
            session: self.session,
            held: self.held.relabel(f),
            log: self.log.iter().map(|entry| entry.relabel(f)).collect(),
        }
    }

    /// Calls `f` with every ticket in the state, and ignores what `f` returns.
    pub(crate) fn tickets(&self, f: Relabel<'_>) {
        let _ = self.relabel(f);
    }
}

/// The choice of a process when it moves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Choice {
    /// No choice: the process makes its next access.
    Go,
    /// The process leaves the remainder with this request.
    Request(u32),
    /// The process gives up its wait.
    Abandon,
    /// The process is killed.
    Kill,
    /// A choice inside the algorithm has this outcome.
    Outcome(u32),
    /// The process leaves the remainder with this request, and the first choice of its passage has
    /// this outcome.
    RequestOutcome(u32, u32),
}

impl Choice {
    /// Returns the request of the process, if it leaves the remainder.
    pub fn request(self) -> Option<u32> {
        match self {
            Self::Request(request) | Self::RequestOutcome(request, _) => Some(request),
            _ => None,
        }
    }

    /// Returns the outcome of a choice of the process, if it makes one.
    pub fn outcome(self) -> Option<u32> {
        match self {
            Self::Outcome(outcome) | Self::RequestOutcome(_, outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Returns whether the process then has no place in the queue any more.
    pub fn gives_up(self) -> bool {
        matches!(self, Self::Abandon | Self::Kill)
    }
}

/// One next move of a process.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// The choice that the process makes.
    pub choice: Choice,
    /// The access that the process then makes.
    pub access: Access,
}

/// The next moves of a process, mostly one.
#[derive(Debug)]
pub enum Moves {
    /// One move.
    One([Move; 1]),
    /// Several moves.
    Several(Box<[Move]>),
}

impl From<Vec<Move>> for Moves {
    fn from(moves: Vec<Move>) -> Self {
        match moves[..] {
            [only] => Self::One([only]),
            _ => Self::Several(moves.into()),
        }
    }
}

impl Deref for Moves {
    type Target = [Move];

    fn deref(&self) -> &[Move] {
        match self {
            Self::One(only) => only,
            Self::Several(moves) => moves,
        }
    }
}

/// The result of a step.
pub struct Stepped {
    /// What the register holds now, if it was written.
    pub effect: Option<Box<dyn Erased>>,
    /// The local state of the process after the step.
    pub local: LocalState,
    /// The access at which the process stopped, if it is in the middle of a passage.
    pub pending: Option<Access>,
    /// The process begins another [attempt](doorway_core::Memory::attempts).
    pub retries: bool,
}

impl Stepped {
    /// Returns whether another run of the same step had the same result.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let effects = match (&self.effect, &other.effect) {
            (Some(a), Some(b)) => a.same(&**b),
            (None, None) => true,
            _ => false,
        };
        effects && self.local == other.local && self.retries == other.retries
    }
}

/// An instance of an algorithm, ready to be run step by step.
pub trait Subject: Send + Sync {
    /// Returns the name of the algorithm.
    fn name(&self) -> &'static str;
    /// Returns the variant, if several algorithms have that name.
    fn variant(&self) -> Option<&'static str>;
    /// Returns what is claimed of the algorithm.
    fn claims(&self) -> Claims;
    /// Returns how many attempts within a passage are followed by default; `None` if there are no
    /// attempts.
    fn attempts(&self) -> Option<u32>;
    /// Returns the size of the instance.
    fn size(&self) -> Size;
    /// Returns the mutant, if the algorithm is one.
    fn mutant(&self) -> Option<&'static str>;
    /// Lets processes be killed so many times or [any number](doorway_core::ANY_NUMBER) of times.
    ///
    /// A process may be killed at any step of any passage. It comes back as another process in the
    /// same place. If the number is bounded, the new process makes the passage again. Returns
    /// whether that can be noticed; if not, nothing has changed.
    fn let_kill(&mut self, most: u32) -> bool;
    /// Returns how many kills there may be, if any.
    fn kills(&self) -> Option<u32>;
    /// Returns the registers.
    fn layout(&self) -> &Layout;
    /// Returns the session that a [request](Choice::Request) asks for.
    fn session(&self, request: u32) -> Session;
    /// Returns the local state in which process `p` starts.
    fn start(&self, p: usize) -> LocalState;
    /// Returns the next moves of process `p`.
    ///
    /// # Errors
    /// When the algorithm cannot be run in the lab.
    fn moves(&self, p: usize, local: &LocalState, cut: bool) -> Result<Vec<Move>, Fault>;
    /// Like [`moves`](Self::moves), after a step. The step has already found the access at which
    /// the process stopped.
    ///
    /// # Errors
    /// When the algorithm cannot be run in the lab.
    fn moves_at(
        &self,
        p: usize,
        local: &LocalState,
        pending: Option<Access>,
        cut: bool,
    ) -> Result<Moves, Fault>;
    /// Makes one move while the register holds `value`.
    ///
    /// # Errors
    /// When the algorithm cannot be run in the lab.
    fn step(
        &self,
        p: usize,
        local: &LocalState,
        choice: Choice,
        value: Option<&dyn Erased>,
        cut: bool,
    ) -> Result<Stepped, Fault>;
}
