//! An algorithm as the lab sees it: processes with local states, and what each may do next.

use doorway_core::{
    Claims, Exclusion, Layout, Local, Relabel, Request, Session, Size, Unfit,
    layout::{Cell, Erased},
};

use crate::{
    fault::Fault,
    item::Item,
    replay::{Access, Entry, Input, Kind, Replay},
};

/// Which section a process is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Section {
    Remainder,
    Doorway,
    Waiting,
    Exit,
    Abandon,
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

/// Whether processes that have asked for these keep one another out. Where there are no sessions, all do.
pub(crate) fn conflict(a: Session, b: Session) -> bool {
    a != b || a == Session::NONE
}

/// All that a process is: its section, what it holds from before, and what it has been answered since.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LocalState {
    pub(crate) section: Section,
    /// No access has been made in this section. Matters in the exit section alone: until then the process is in the
    /// critical section.
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
            Section::Exit | Section::Abandon => Region::Exit,
        }
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
    /// A choice of its own falls on this.
    Outcome(u32),
}

/// One thing that a process may do next.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// What it chooses.
    pub choice: Choice,
    /// The access that it then makes.
    pub access: Access,
}

/// What came of a step.
pub struct Stepped {
    /// What the register holds now, if it was written.
    pub effect: Option<Box<dyn Erased>>,
    /// Where the process is now.
    pub local: LocalState,
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
    /// How many attempts within a passage are followed unless told otherwise; `None` if there are no attempts.
    fn attempts(&self) -> Option<u32>;
    /// Its size.
    fn size(&self) -> Size;
    /// The mutant that it is, if it is one.
    fn mutant(&self) -> Option<&'static str>;
    /// Its registers.
    fn cells(&self) -> &[Cell];
    /// The session that a [request](Choice::Request) asks for.
    fn session(&self, request: u32) -> Session;
    /// Where process `p` starts.
    fn start(&self, p: usize) -> LocalState;
    /// What process `p` may do next.
    ///
    /// # Errors
    /// When the algorithm cannot be run in the lab.
    fn moves(&self, p: usize, local: &LocalState, cut: bool) -> Result<Vec<Move>, Fault>;
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

/// What the lab asks of an algorithm's code: that it runs on the replay memory, whatever that memory's lifetime.
struct Run<A> {
    algorithm: A,
    layout: Layout,
    size: Size,
    mutant: Option<&'static str>,
    abandons: bool,
}

impl<A, Q, P, K> Run<A>
where
    A: for<'a> Exclusion<Replay<'a>, Request = Q, Pass = P, Keep = K> + Send + Sync,
    Q: Request,
    P: Local,
    K: Local,
{
    /// Runs `p` from where it is to its next access without an answer, or to the remainder. The state that it stopped
    /// in has no request in the remainder, so `moves` asks for each.
    fn drive(&self, p: usize, m: &mut Replay<'_>, local: &LocalState) -> Result<LocalState, Fault> {
        let mut section = local.section;
        let mut held = local.held.clone();
        let mut taken = m.input.is_none();
        let mut fresh = local.fresh;
        let session = local.session;
        loop {
            let run = self.section(p, m, section, &held);
            if let Some(fault) = m.fault.take() {
                return Err(fault);
            }
            if !taken && m.input.is_none() {
                taken = true;
                // Elsewhere it would only tell states apart that are the same.
                fresh = section != Section::Exit;
            }
            let Some(next) = run? else {
                return Ok(LocalState { section, fresh, session, held, log: std::mem::take(&mut m.log) });
            };
            m.finish_section();
            if let Some(fault) = m.fault.take() {
                return Err(fault);
            }
            held = next;
            section = match section {
                Section::Remainder => unreachable!("the remainder makes no access"),
                Section::Doorway => Section::Waiting,
                Section::Waiting => Section::Exit,
                Section::Exit if fresh => return Err(Fault::IdleSection("exit section")),
                Section::Exit | Section::Abandon => Section::Remainder,
            };
            fresh = true;
            if section == Section::Remainder {
                return if taken {
                    Ok(LocalState { section, fresh, session: Session::NONE, held, log: Vec::new() })
                } else {
                    Err(Fault::IdleSection("passage"))
                };
            }
        }
    }

    /// Runs one section; `None` if it stopped at an access.
    fn section(&self, p: usize, m: &mut Replay<'_>, section: Section, held: &Item) -> Result<Option<Item>, Fault> {
        let done = match section {
            Section::Remainder => unreachable!("the remainder has no code"),
            Section::Doorway => {
                let (request, keep) = held.get::<(Q, K)>().ok_or(Fault::Impure)?;
                self.algorithm.doorway(m, p, request, keep).map(Item::new)
            }
            Section::Waiting => {
                let pass = held.get::<P>().ok_or(Fault::Impure)?;
                self.algorithm.waiting(m, p, pass).map(Item::new)
            }
            Section::Exit => {
                let pass = held.get::<P>().ok_or(Fault::Impure)?;
                self.algorithm.exit(m, p, pass).map(Item::new)
            }
            Section::Abandon => {
                let pass = held.get::<P>().ok_or(Fault::Impure)?;
                self.algorithm.abandon(m, p, pass).ok_or(Fault::Impure)?.map(Item::new)
            }
        };
        Ok(done.ok())
    }

    /// Whether the algorithm has a way to abandon a place.
    fn knows_how_to_abandon(&self, p: usize, local: &LocalState) -> bool {
        let mut m = Replay::new(&[], None, true, self.mutant);
        local.held.get::<P>().is_some_and(|pass| self.algorithm.abandon(&mut m, p, pass).is_some())
    }

    /// The state from which the choice makes its access.
    fn chosen(&self, local: &LocalState, choice: Choice) -> Result<LocalState, Fault> {
        Ok(match choice {
            Choice::Go | Choice::Outcome(_) => local.clone(),
            Choice::Request(r) => {
                let request = Q::all(self.size).into_iter().nth(r as usize).ok_or(Fault::Impure)?;
                let keep = local.held.get::<K>().ok_or(Fault::Impure)?;
                let session = request.session();
                let held = Item::new((request, keep));
                LocalState { section: Section::Doorway, fresh: true, session, held, log: Vec::new() }
            }
            Choice::Abandon => {
                let (session, held) = (local.session, local.held.clone());
                LocalState { section: Section::Abandon, fresh: true, session, held, log: Vec::new() }
            }
        })
    }
}

impl<A, Q, P, K> Subject for Run<A>
where
    A: for<'a> Exclusion<Replay<'a>, Request = Q, Pass = P, Keep = K> + Send + Sync,
    Q: Request,
    P: Local,
    K: Local,
{
    fn name(&self) -> &'static str {
        A::NAME
    }
    fn variant(&self) -> Option<&'static str> {
        A::VARIANT
    }
    fn claims(&self) -> Claims {
        A::CLAIMS
    }
    fn attempts(&self) -> Option<u32> {
        A::ATTEMPTS
    }
    fn size(&self) -> Size {
        self.size
    }
    fn mutant(&self) -> Option<&'static str> {
        self.mutant
    }
    fn cells(&self) -> &[Cell] {
        self.layout.cells()
    }
    fn session(&self, request: u32) -> Session {
        Q::all(self.size).get(request as usize).map_or(Session::NONE, Request::session)
    }

    fn start(&self, p: usize) -> LocalState {
        let held = Item::new(self.algorithm.keep(p));
        LocalState { section: Section::Remainder, fresh: true, session: Session::NONE, held, log: Vec::new() }
    }

    fn moves(&self, p: usize, local: &LocalState, cut: bool) -> Result<Vec<Move>, Fault> {
        let mut moves = Vec::new();
        let ask = |choice| -> Result<Option<Access>, Fault> {
            let from = self.chosen(local, choice)?;
            let mut m = Replay::new(&from.log, None, cut, self.mutant);
            self.drive(p, &mut m, &from)?;
            Ok(m.pending)
        };
        if local.section == Section::Remainder {
            for r in 0..Q::all(self.size).len() as u32 {
                let access = ask(Choice::Request(r))?.ok_or(Fault::IdleSection("passage"))?;
                moves.push(Move { choice: Choice::Request(r), access });
            }
            return Ok(moves);
        }
        let access = ask(Choice::Go)?.ok_or(Fault::Impure)?;
        match access.kind {
            Kind::Choose(odds) => {
                moves.extend((0..odds.outcomes()).map(|o| Move { choice: Choice::Outcome(o), access }));
            }
            _ => moves.push(Move { choice: Choice::Go, access }),
        }
        if self.abandons && access.waits && local.section == Section::Waiting && self.knows_how_to_abandon(p, local) {
            let access = ask(Choice::Abandon)?.ok_or(Fault::IdleSection("abandon section"))?;
            moves.push(Move { choice: Choice::Abandon, access });
        }
        Ok(moves)
    }

    fn step(
        &self,
        p: usize,
        local: &LocalState,
        choice: Choice,
        value: Option<&dyn Erased>,
        cut: bool,
    ) -> Result<Stepped, Fault> {
        let from = self.chosen(local, choice)?;
        let input = match choice {
            Choice::Outcome(outcome) => Input::Outcome(outcome),
            _ => Input::Value(value.ok_or(Fault::Impure)?),
        };
        let mut m = Replay::new(&from.log, Some(input), cut, self.mutant);
        let local = self.drive(p, &mut m, &from)?;
        if m.input.is_some() {
            return Err(Fault::IdleSection("passage"));
        }
        Ok(Stepped { effect: m.effect.take(), local, retries: m.retries })
    }
}

/// An instance of any algorithm, in the registry or not, to run in the lab. With `abandons`, processes may give up their
/// waits.
///
/// # Errors
/// When the algorithm does not serve that size.
pub fn build<A, Q, P, K>(size: Size, mutant: Option<&'static str>, abandons: bool) -> Result<Box<dyn Subject>, Unfit>
where
    A: for<'a> Exclusion<Replay<'a>, Request = Q, Pass = P, Keep = K> + Send + Sync + 'static,
    Q: Request,
    P: Local,
    K: Local,
{
    let (algorithm, layout) = Layout::build(size.n, mutant, |layout| A::new(layout, size))?;
    Ok(Box::new(Run { algorithm, layout, size, mutant, abandons }))
}
