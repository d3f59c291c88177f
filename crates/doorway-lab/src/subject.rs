//! An algorithm as the lab sees it: processes with local states, and what each may do next.

mod run;

use std::ops::Deref;

use doorway_core::{Claims, Layout, Relabel, Session, Size, layout::Erased};

pub use self::run::build;

use crate::{
    fault::Fault,
    item::Item,
    replay::{Access, Entry},
};

/// Which section a process is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Section {
    Remainder,
    Doorway,
    Waiting,
    Exit,
    Abandon,
    Killed,
}

/// Where a process is, for properties.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Region {
    /// Not asking for anything: before the first access of a passage.
    Remainder,
    /// In its doorway.
    Doorway,
    /// Through its doorway, not yet in.
    Waiting,
    /// From the last access of waiting to the first of exit.
    Critical,
    /// Leaving, or abandoning its place.
    Exit,
}

impl Region {
    /// In its doorway or waiting.
    pub fn is_entry(self) -> bool {
        matches!(self, Self::Doorway | Self::Waiting)
    }

    /// The region in the sense of paper 003, section 3.1: remainder, trying, critical or exit.
    pub fn letter(self) -> char {
        match self {
            Self::Remainder => 'R',
            Self::Doorway | Self::Waiting => 'T',
            Self::Critical => 'C',
            Self::Exit => 'E',
        }
    }
}

/// Whether processes that have asked for these keep one another out. Where there are no sessions,
/// all do.
pub(crate) fn conflict(a: Session, b: Session) -> bool {
    a != b || a == Session::NONE
}

/// All that a process is: its section, what it holds from before, and what it has been answered
/// since.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LocalState {
    pub(crate) section: Section,
    /// No access has been made in this section. Matters in the exit section alone: until then the
    /// process is in the critical section.
    pub(crate) fresh: bool,
    /// What it has asked for; nothing in the remainder.
    pub(crate) session: Session,
    /// The `Keep` in the remainder, request and `Keep` in the doorway, the `Pass` afterwards.
    held: Item,
    log: Vec<Entry>,
}

impl LocalState {
    /// Where the process is.
    pub fn region(&self) -> Region {
        match self.section {
            Section::Remainder => Region::Remainder,
            Section::Doorway => Region::Doorway,
            Section::Waiting => Region::Waiting,
            Section::Exit if self.fresh => Region::Critical,
            Section::Exit | Section::Abandon | Section::Killed => Region::Exit,
        }
    }

    /// What the process has asked for; nothing in the remainder.
    pub fn session(&self) -> Session {
        self.session
    }

    /// The same state with its tickets replaced.
    pub(crate) fn relabel(&self, f: Relabel<'_>) -> Self {
        Self {
            section: self.section,
            fresh: self.fresh,
            session: self.session,
            held: self.held.relabel(f),
            log: self.log.iter().map(|entry| entry.relabel(f)).collect(),
        }
    }

    /// Calls `f` with every ticket inside, and ignores what it returns.
    pub(crate) fn tickets(&self, f: Relabel<'_>) {
        let _ = self.relabel(f);
    }
}

/// What a process chooses when it moves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Choice {
    /// Nothing: it makes its next access.
    Go,
    /// It leaves the remainder and asks for this.
    Request(u32),
    /// It gives up its wait.
    Abandon,
    /// It is killed.
    Kill,
    /// A choice of its own falls on this.
    Outcome(u32),
    /// It leaves the remainder and asks for this, and the choice that its passage begins with falls
    /// on that.
    RequestOutcome(u32, u32),
}

impl Choice {
    /// What the process asks for, if it leaves the remainder.
    pub fn request(self) -> Option<u32> {
        match self {
            Self::Request(request) | Self::RequestOutcome(request, _) => Some(request),
            _ => None,
        }
    }

    /// What a choice of the process falls on, if it makes one.
    pub fn outcome(self) -> Option<u32> {
        match self {
            Self::Outcome(outcome) | Self::RequestOutcome(_, outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Whether the process then has no place in line any more.
    pub fn gives_up(self) -> bool {
        matches!(self, Self::Abandon | Self::Kill)
    }
}

/// One thing that a process may do next.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// What it chooses.
    pub choice: Choice,
    /// The access that it then makes.
    pub access: Access,
}

/// What a process may do next: mostly one thing.
#[derive(Debug)]
pub enum Moves {
    /// This.
    One([Move; 1]),
    /// One of these.
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

/// What came of a step.
pub struct Stepped {
    /// What the register holds now, if it was written.
    pub effect: Option<Box<dyn Erased>>,
    /// Where the process is now.
    pub local: LocalState,
    /// The access that it stopped at, if it is in the middle of a passage.
    pub pending: Option<Access>,
    /// It begins another [attempt](doorway_core::Memory::attempts).
    pub retries: bool,
}

impl Stepped {
    /// Whether the same came of another run of the same step.
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
    /// Its name.
    fn name(&self) -> &'static str;
    /// Which of several under that name.
    fn variant(&self) -> Option<&'static str>;
    /// What is claimed of it.
    fn claims(&self) -> Claims;
    /// How many attempts within a passage are followed unless told otherwise; `None` if there are
    /// no attempts.
    fn attempts(&self) -> Option<u32>;
    /// Its size.
    fn size(&self) -> Size;
    /// The mutant that it is, if it is one.
    fn mutant(&self) -> Option<&'static str>;
    /// From now on processes may be killed, so many times or [any number](doorway_core::ANY_NUMBER)
    /// of times, at any step of any passage, and come back as others in the same place; if so many
    /// times, to make the passage again. Says whether that can be noticed; nothing has changed if
    /// not.
    fn let_kill(&mut self, most: u32) -> bool;
    /// How many kills there may be, if any.
    fn kills(&self) -> Option<u32>;
    /// Its registers.
    fn layout(&self) -> &Layout;
    /// The session that a [request](Choice::Request) asks for.
    fn session(&self, request: u32) -> Session;
    /// Where process `p` starts.
    fn start(&self, p: usize) -> LocalState;
    /// What process `p` may do next.
    ///
    /// # Errors
    /// When the algorithm cannot be run in the lab.
    fn moves(&self, p: usize, local: &LocalState, cut: bool) -> Result<Vec<Move>, Fault>;
    /// The same after a step, which has found out most of it already: the access that it stopped
    /// at.
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
    /// Makes one move, the register holding `value`.
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
