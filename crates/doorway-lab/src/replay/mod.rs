//! The replay engine's memory: one process = its section + what it has been answered.
//!
//! A section is deterministic between answers. To learn what a process does next, its section runs again on the answers
//! recorded so far and stops at the first access without one. The loop combinators cut the record: after an iteration
//! only the carried value stays (a [`Entry::Mark`]), after a loop or a scope only the result (an [`Entry::Done`]). A mark
//! names its loop by the place in the source where it was called, so that nested loops cannot take each other's.
//!
//! With `cut` off nothing is forgotten: that is how counterexamples are replayed before they are printed, and how the
//! tests find out whether cutting changes anything.

use std::{ops::ControlFlow, panic::Location};

use doorway_core::{Local, Register, Relabel, Value, layout::Erased};

mod memory;

use crate::{fault::Fault, item::Item, random::Random};

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
    /// Touches none: a choice.
    Choose(Odds),
}

/// What may come of a choice, and how likely it is where it is made at random.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Odds {
    /// One of `0..outcomes`, each as likely.
    Even(u32),
    /// One of `0..=most`, each half as likely as the one before, but for the last, which is as likely.
    Halving(u32),
}

impl Odds {
    /// How many outcomes there are.
    pub fn outcomes(self) -> u32 {
        match self {
            Self::Even(outcomes) => outcomes,
            Self::Halving(most) => most + 1,
        }
    }

    /// One of them at random.
    pub fn draw(self, random: &mut Random) -> u32 {
        match self {
            Self::Even(outcomes) => random.below(u64::from(outcomes)) as u32,
            Self::Halving(most) => random.below(1 << most.min(63)).trailing_ones().min(most),
        }
    }
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
    /// Whether the access that took the input was the last of an attempt, and another one begins.
    pub(crate) retries: bool,
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
            retries: false,
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
                let (effect, answer) = apply(value.clone());
                self.effect = effect.map(|v| Box::new(v) as Box<dyn Erased>);
                self.accesses += 1;
                self.log.push(Entry::Answer(Item::new(answer.clone())));
                Ok(answer)
            }
            Some(Input::Outcome(_)) => self.fail(Fault::Impure),
            None => self.halt(kind, register.id()),
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

    /// A choice.
    fn outcome(&mut self, odds: Odds) -> Result<u32, Stop> {
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
            None => self.halt(Kind::Choose(odds), usize::MAX),
        }
    }

    /// The loop behind `repeat` and `attempts`.
    fn go_round<S, R, F>(&mut self, at: &'static Location<'static>, attempts: bool, init: S, body: F) -> Result<R, Stop>
    where
        S: Local,
        R: Local,
        F: Fn(&mut Self, S) -> Result<ControlFlow<R, S>, Stop>,
    {
        let place = self.enter(at);
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
            // Rounds that are replayed come before the input is taken.
            self.retries |= attempts && self.input.is_none();
            self.forget(start, Entry::Mark(place, 0, Item::new(state.clone())));
        }
    }
}
