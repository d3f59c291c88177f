//! The replay engine's memory: one process = its section + what it has been answered.
//!
//! A section is deterministic between answers. To learn what a process does next, its section runs again on the answers
//! recorded so far and stops at the first access without one. The loop combinators cut the record: after an iteration
//! only the carried value stays (a [`Entry::Mark`]), after a loop or a scope only the result (an [`Entry::Done`]). A mark
//! names its loop by the place in the source where it was called, so that nested loops cannot take each other's.
//!
//! With `cut` off nothing is forgotten: that is how counterexamples are replayed before they are printed, and how the
//! tests find out whether cutting changes anything.

use std::{fmt, ops::ControlFlow, panic::Location};

use doorway_core::{
    CompareAndSwap, FetchAndAdd, Local, Memory, Register, Registers, Relabel, Transactions, Value, layout::Erased,
};

use crate::item::Item;

/// Which loop or scope an entry belongs to: where it was called, and inside how many others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Place {
    at: &'static Location<'static>,
    depth: u32,
}

/// One thing that a process remembers within a section.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Entry {
    /// An answer of the memory.
    Answer(Item),
    /// A loop at the beginning of this round, with what it carries.
    Mark(Place, usize, Item),
    /// A finished loop or scope, with its result.
    Done(Place, Item),
}

impl Entry {
    pub(crate) fn relabel(&self, f: Relabel<'_>) -> Self {
        match self {
            Self::Answer(item) => Self::Answer(item.relabel(f)),
            Self::Mark(place, round, item) => Self::Mark(*place, *round, item.relabel(f)),
            Self::Done(place, item) => Self::Done(*place, item.relabel(f)),
        }
    }
}

/// What an access does to its register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Reads and writes it in one step.
    Update,
    /// Touches none: a choice among this many outcomes.
    Choose(u32),
}

/// An access that a process is about to make.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The paper's line.
    pub line: u32,
    /// What it does.
    pub kind: Kind,
    /// The register's word, if it touches one.
    pub register: usize,
    /// Whether a wait may be given up here.
    pub waits: bool,
}

/// The code under test did something that makes exploring it meaningless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An iteration of the loop at this place made no access.
    IdleIteration(&'static Location<'static>),
    /// A section or passage made no access at all.
    IdleSection(&'static str),
    /// The record and the code disagree: the code is not a function of its answers.
    Impure,
    /// Tickets grew beyond what the relabelling can hold.
    TicketRange,
    /// A register's type does not say which values an overlapping read may return.
    NoDomain(String),
    /// Two processes wrote a register at once: safe and regular registers have one writer.
    TwoWriters(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IdleIteration(place) => write!(f, "an iteration of the loop at {place} makes no access"),
            Self::IdleSection(section) => write!(f, "the {section} makes no access"),
            Self::Impure => write!(f, "a section does not follow from its answers: is a closure impure?"),
            Self::TicketRange => write!(f, "more tickets are alive at once than the relabelling can hold"),
            Self::NoDomain(register) => {
                write!(f, "{register} may hold too many values to try them all, which safe registers ask for")
            }
            Self::TwoWriters(register) => {
                write!(
                    f,
                    "{register} has two writers at once, and only registers with one writer can be safe or regular"
                )
            }
        }
    }
}

/// Why a section stops: at an access without an answer, or at a fault.
#[derive(Debug)]
pub struct Stop;

/// What the first access without a recorded answer is to be answered with.
pub(crate) enum Input<'a> {
    /// The register holds this.
    Value(&'a dyn Erased),
    /// The choice falls on this.
    Outcome(u32),
}

/// The memory on which sections run again.
pub struct Replay<'a> {
    answers: &'a [Entry],
    next: usize,
    pub(crate) log: Vec<Entry>,
    pub(crate) input: Option<Input<'a>>,
    /// What the access that took the input left in its register.
    pub(crate) effect: Option<Box<dyn Erased>>,
    /// The access that it stopped at.
    pub(crate) pending: Option<Access>,
    pub(crate) fault: Option<Fault>,
    /// How many accesses the section has made, answered or not: to tell idle iterations.
    accesses: usize,
    /// Where the innermost round of a wait began in the log.
    round: Option<usize>,
    /// How many loops and scopes are open.
    depth: u32,
    line: u32,
    cut: bool,
    mutant: Option<&'static str>,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(answers: &'a [Entry], input: Option<Input<'a>>, cut: bool, mutant: Option<&'static str>) -> Self {
        Self {
            answers,
            next: 0,
            log: Vec::with_capacity(answers.len() + 1),
            input,
            effect: None,
            pending: None,
            fault: None,
            accesses: 0,
            round: None,
            depth: 0,
            line: 0,
            cut,
            mutant,
        }
    }

    /// The section is over: what it was answered is forgotten.
    pub(crate) fn finish_section(&mut self) {
        if self.next < self.answers.len() {
            self.fault = Some(Fault::Impure);
        }
        self.log.clear();
        self.accesses = 0;
    }

    fn recorded(&mut self) -> Option<&'a Entry> {
        let entry = self.answers.get(self.next)?;
        self.next += 1;
        self.accesses += 1;
        self.log.push(entry.clone());
        Some(entry)
    }

    /// The recorded answer to the next access, if there is one.
    fn recall<R: Local>(&mut self) -> Result<Option<R>, Stop> {
        match self.recorded() {
            None => Ok(None),
            Some(Entry::Answer(item)) => match item.get() {
                Some(answer) => Ok(Some(answer)),
                None => self.fail(Fault::Impure),
            },
            Some(_) => self.fail(Fault::Impure),
        }
    }

    fn fail<T>(&mut self, fault: Fault) -> Result<T, Stop> {
        self.fault = Some(fault);
        Err(Stop)
    }

    /// One access: `apply` turns the register's value into its new value, if it changes, and the answer to record.
    fn access<T: Value, R: Local>(
        &mut self,
        kind: Kind,
        register: Register<T>,
        apply: impl FnOnce(T) -> (Option<T>, R),
    ) -> Result<R, Stop> {
        if let Some(answer) = self.recall()? {
            return Ok(answer);
        }
        match self.input.take() {
            Some(Input::Value(value)) => {
                let Some(value) = value.any().downcast_ref::<T>() else { return self.fail(Fault::Impure) };
                let (effect, answer) = apply(*value);
                self.effect = effect.map(|v| Box::new(v) as Box<dyn Erased>);
                self.accesses += 1;
                self.log.push(Entry::Answer(Item::new(answer.clone())));
                Ok(answer)
            }
            Some(Input::Outcome(_)) => self.fail(Fault::Impure),
            None => self.halt(kind, register.index()),
        }
    }

    fn halt<T>(&mut self, kind: Kind, register: usize) -> Result<T, Stop> {
        let waits = self.round == Some(self.log.len());
        self.pending = Some(Access { line: self.line, kind, register, waits });
        Err(Stop)
    }

    /// Goes into the loop or scope that was called at `at`.
    fn enter(&mut self, at: &'static Location<'static>) -> Place {
        self.depth += 1;
        Place { at, depth: self.depth }
    }

    /// Where a loop stands: its round and what it carries, from the record or from the start.
    fn resume<T: Local>(&mut self, place: Place, init: T) -> Result<(usize, T), Stop> {
        match self.answers.get(self.next) {
            Some(Entry::Mark(at, round, carried)) if *at == place => {
                self.recorded();
                match carried.get() {
                    Some(carried) => Ok((*round, carried)),
                    None => self.fail(Fault::Impure),
                }
            }
            _ => Ok((0, init)),
        }
    }

    /// The result of a loop or scope that the record says is over.
    fn finished<T: Local>(&mut self, place: Place) -> Result<Option<T>, Stop> {
        match self.answers.get(self.next) {
            Some(Entry::Done(at, result)) if *at == place => {
                self.recorded();
                self.depth -= 1;
                match result.get() {
                    Some(result) => Ok(Some(result)),
                    None => self.fail(Fault::Impure),
                }
            }
            _ => Ok(None),
        }
    }

    /// Leaves a loop or scope that began at `start` of the log; nothing is kept of one that made no access.
    fn leave<T: Local>(&mut self, place: Place, start: usize, result: &T) {
        self.depth -= 1;
        if self.log.len() > start {
            self.forget(start, Entry::Done(place, Item::new(result.clone())));
        }
    }

    /// Forgets everything since `start` but one entry.
    fn forget(&mut self, start: usize, instead: Entry) {
        if self.cut {
            self.log.truncate(start);
            self.log.push(instead);
        }
    }

    /// The loop behind `each`, `fold` and `find`.
    fn rounds<I, T, F>(&mut self, at: &'static Location<'static>, items: I, init: T, body: F) -> Result<T, Stop>
    where
        I: IntoIterator<Item = usize>,
        T: Local,
        F: Fn(&mut Self, T, usize) -> Result<ControlFlow<T, T>, Stop>,
    {
        let place = self.enter(at);
        if let Some(result) = self.finished(place)? {
            return Ok(result);
        }
        let start = self.log.len();
        let (skip, mut carried) = self.resume(place, init)?;
        for (round, i) in items.into_iter().enumerate().skip(skip) {
            let before = self.accesses;
            match body(self, carried, i)? {
                ControlFlow::Break(result) => {
                    carried = result;
                    break;
                }
                ControlFlow::Continue(next) => carried = next,
            }
            if self.accesses == before {
                return self.fail(Fault::IdleIteration(at));
            }
            self.forget(start, Entry::Mark(place, round + 1, Item::new(carried.clone())));
        }
        self.leave(place, start, &carried);
        Ok(carried)
    }
}

impl Memory for Replay<'_> {
    type Halt = Stop;

    fn line(&mut self, line: u32) {
        self.line = line;
    }

    fn mutant(&self, name: &str) -> bool {
        self.mutant == Some(name)
    }

    fn drops(&self, line: u32) -> bool {
        self.mutant.and_then(|name| name.strip_prefix("without-line-")).is_some_and(|l| l.parse() == Ok(line))
    }

    fn choose(&mut self, outcomes: u32) -> Result<u32, Stop> {
        if let Some(answer) = self.recall()? {
            return Ok(answer);
        }
        match self.input.take() {
            Some(Input::Outcome(outcome)) => {
                self.accesses += 1;
                self.log.push(Entry::Answer(Item::new(outcome)));
                Ok(outcome)
            }
            Some(Input::Value(_)) => self.fail(Fault::Impure),
            None => self.halt(Kind::Choose(outcomes), usize::MAX),
        }
    }

    fn relax(&mut self, _: u32) -> Result<(), Stop> {
        Ok(())
    }

    #[track_caller]
    fn each<I, F>(&mut self, items: I, body: F) -> Result<(), Stop>
    where
        I: IntoIterator<Item = usize>,
        F: Fn(&mut Self, usize) -> Result<(), Stop>,
    {
        self.rounds(Location::caller(), items, (), |m, (), i| body(m, i).map(ControlFlow::Continue))
    }

    #[track_caller]
    fn fold<I, T, F>(&mut self, items: I, init: T, body: F) -> Result<T, Stop>
    where
        I: IntoIterator<Item = usize>,
        T: Local,
        F: Fn(&mut Self, T, usize) -> Result<T, Stop>,
    {
        let at = Location::caller();
        self.rounds(at, items, init, |m, carried, i| body(m, carried, i).map(ControlFlow::Continue))
    }

    #[track_caller]
    fn find<I, F>(&mut self, items: I, body: F) -> Result<Option<usize>, Stop>
    where
        I: IntoIterator<Item = usize>,
        F: Fn(&mut Self, usize) -> Result<bool, Stop>,
    {
        self.rounds(Location::caller(), items, None, |m, _, i| {
            Ok(if body(m, i)? { ControlFlow::Break(Some(i)) } else { ControlFlow::Continue(None) })
        })
    }

    #[track_caller]
    fn repeat<S, R, F>(&mut self, init: S, body: F) -> Result<R, Stop>
    where
        S: Local,
        R: Local,
        F: Fn(&mut Self, S) -> Result<ControlFlow<R, S>, Stop>,
    {
        let place = self.enter(Location::caller());
        if let Some(result) = self.finished(place)? {
            return Ok(result);
        }
        let start = self.log.len();
        let outer = self.round;
        let (_, mut state) = self.resume(place, init)?;
        // The round is not counted, or the states would never end; and the first one is marked like the others, or
        // it would count as a state of its own.
        self.forget(start, Entry::Mark(place, 0, Item::new(state.clone())));
        loop {
            self.round = Some(self.log.len());
            let before = self.accesses;
            match body(self, state)? {
                ControlFlow::Break(result) => {
                    self.round = outer;
                    self.leave(place, start, &result);
                    return Ok(result);
                }
                ControlFlow::Continue(next) => state = next,
            }
            if self.accesses == before {
                return self.fail(Fault::IdleIteration(place.at));
            }
            self.forget(start, Entry::Mark(place, 0, Item::new(state.clone())));
        }
    }

    #[track_caller]
    fn scope<R, F>(&mut self, body: F) -> Result<R, Stop>
    where
        R: Local,
        F: Fn(&mut Self) -> Result<R, Stop>,
    {
        let place = self.enter(Location::caller());
        if let Some(result) = self.finished(place)? {
            return Ok(result);
        }
        let start = self.log.len();
        let result = body(self)?;
        self.leave(place, start, &result);
        Ok(result)
    }
}

impl Registers for Replay<'_> {
    fn read<T: Value>(&mut self, register: Register<T>) -> Result<T, Stop> {
        self.access(Kind::Read, register, |value| (None, value))
    }

    fn write<T: Value>(&mut self, register: Register<T>, value: T) -> Result<(), Stop> {
        self.access(Kind::Write, register, |_| (Some(value), ()))
    }

    #[track_caller]
    fn test<T: Value, F>(&mut self, register: Register<T>, ask: F) -> Result<bool, Stop>
    where
        F: Fn(T) -> bool,
    {
        if self.cut {
            self.access(Kind::Read, register, |value| (None, ask(value)))
        } else {
            Ok(ask(self.read(register)?))
        }
    }

    #[track_caller]
    fn wait<T: Value, F>(&mut self, register: Register<T>, until: F) -> Result<(), Stop>
    where
        F: Fn(T) -> bool,
    {
        let place = self.enter(Location::caller());
        if self.finished::<()>(place)?.is_some() {
            return Ok(());
        }
        let start = self.log.len();
        let outer = self.round;
        loop {
            self.round = Some(self.log.len());
            let done = until(self.read(register)?);
            if done {
                self.round = outer;
                self.leave(place, start, &());
                return Ok(());
            }
            if self.cut {
                self.log.truncate(start);
            }
        }
    }
}

impl CompareAndSwap for Replay<'_> {
    fn compare_and_swap<T: Value>(&mut self, register: Register<T>, old: T, new: T) -> Result<T, Stop> {
        self.access(Kind::Update, register, |held| (Some(if held == old { new } else { held }), held))
    }
}

impl FetchAndAdd for Replay<'_> {
    fn fetch_and_add(&mut self, register: Register<u64>, add: u64) -> Result<u64, Stop> {
        self.access(Kind::Update, register, |held| (Some(held.wrapping_add(add)), held))
    }
}

impl Transactions for Replay<'_> {
    fn transact<T: Value, R: Local, F>(&mut self, variable: Register<T>, change: F) -> Result<R, Stop>
    where
        F: Fn(T) -> (T, R),
    {
        self.access(Kind::Update, variable, |held| {
            let (next, answer) = change(held);
            (Some(next), answer)
        })
    }
}
