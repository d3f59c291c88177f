//! The replay engine's memory: a process is its section plus the answers that it has received.
//!
//! A section is deterministic between answers. To find out what a process does next, its section
//! runs again on the record of its answers and stops at the first access without an answer. The
//! combinators cut the record: an open loop keeps only the carried value ([`Entry::Open`]), and a
//! finished loop or scope keeps only its result ([`Entry::Closed`]).
//!
//! **An entry belongs to a call by its position.** With `cut` on, every access takes exactly one
//! entry of the record. So does every combinator that has begun, whether or not it makes an access.
//! So the n-th entry always meets the call that made it, in helpers, recursion and plain `for`
//! loops as well. The source location in an entry is compared as a safeguard; it identifies
//! nothing.
//!
//! The line that a section names inside a loop or scope is forgotten after each round, and after
//! the call. Otherwise it would depend on where the record begins.
//!
//! With `cut` off nothing is forgotten and the record holds only answers. Counterexamples are
//! replayed with `cut` off before they are printed, and every check compares cut with uncut runs
//! first.

use std::{ops::ControlFlow, panic::Location};

use doorway_core::{Local, Register, Relabel, Value, layout::Erased};

mod memory;

use crate::{fault::Fault, item::Item, random::Random};

/// The place where a loop or scope was called.
pub(crate) type Place = &'static Location<'static>;

/// One thing that a process remembers within a section.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Entry {
    /// An answer of the memory.
    Answer(Item),
    /// A loop at the beginning of this round with its carried value, or an unfinished scope. A loop
    /// over items carries nothing into its first round: the code says what it begins with.
    /// `touched` says whether the call has made an access before this round.
    Open { place: Place, round: usize, touched: bool, carried: Item },
    /// A finished loop or scope, with its result and whether it made an access.
    Closed { place: Place, touched: bool, result: Item },
}

impl Entry {
    pub(crate) fn relabel(&self, f: Relabel<'_>) -> Self {
        match self {
            Self::Answer(item) => Self::Answer(item.relabel(f)),
            &Self::Open { place, round, touched, ref carried } => {
                Self::Open { place, round, touched, carried: carried.relabel(f) }
            }
            &Self::Closed { place, touched, ref result } => {
                Self::Closed { place, touched, result: result.relabel(f) }
            }
        }
    }
}

/// The state of a combinator call, according to the record.
enum Call<S, R> {
    /// The call begins now.
    New,
    /// The call is at the beginning of this round and carries this.
    Open(usize, S),
    /// The call has returned this.
    Closed(R),
}

/// What an access does to its register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reads the register.
    Read,
    /// Writes the register.
    Write,
    /// Reads and writes the register in one step.
    Update,
    /// Touches no register: a choice.
    Choose(Odds),
}

/// The outcomes of a choice, and their probabilities where it is made at random.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Odds {
    /// One of `0..outcomes`, all with the same probability.
    Even(u32),
    /// One of `0..=most`. Each is half as likely as the one before, except the last, which is as
    /// likely as the one before.
    Halving(u32),
}

impl Odds {
    /// Returns how many outcomes there are.
    pub fn outcomes(self) -> u32 {
        match self {
            Self::Even(outcomes) => outcomes,
            Self::Halving(most) => most.saturating_add(1),
        }
    }

    /// Returns a fault for a choice without an outcome, or with more outcomes than the lab
    /// explores.
    pub(crate) fn check(self) -> Result<(), Fault> {
        if (1..=MAX_OUTCOMES).contains(&self.outcomes()) {
            Ok(())
        } else {
            Err(Fault::Outcomes(self.outcomes()))
        }
    }

    /// Draws an outcome at random.
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
    /// What the access does.
    pub kind: Kind,
    /// The register's word, if the access touches a register.
    pub register: usize,
    /// Whether a wait may be given up at this access.
    pub waits: bool,
}

/// The largest number of outcomes of a choice.
pub(crate) const MAX_OUTCOMES: u32 = 1 << 12;

/// How many rounds in a row a loop over items may go without an access before it counts as a loop
/// without end.
const IDLE_ROUNDS: usize = 1 << 16;

/// The reason why a section stops: an access without an answer, or a fault.
#[derive(Debug)]
pub struct Stop;

/// The answer to the first access without a recorded answer.
pub(crate) enum Input<'a> {
    /// The register holds this.
    Value(&'a dyn Erased),
    /// The choice has this outcome.
    Outcome(u32),
}

/// The memory on which sections run again.
pub struct Replay<'a> {
    answers: &'a [Entry],
    next: usize,
    pub(crate) log: Vec<Entry>,
    pub(crate) input: Option<Input<'a>>,
    /// The value that the access that took the input left in its register.
    pub(crate) effect: Option<Box<dyn Erased>>,
    /// The access at which the section stopped.
    pub(crate) pending: Option<Access>,
    pub(crate) fault: Option<Fault>,
    /// The number of accesses: each access that is made, and one for each entry that stands for
    /// some.
    accesses: usize,
    /// The value of `accesses` when the innermost round of a wait began.
    round: Option<usize>,
    /// Whether the access that took the input was the last of an attempt, and another attempt
    /// begins.
    pub(crate) retries: bool,
    line: u32,
    cut: bool,
    mutant: Option<&'static str>,
    tampering: Option<Tampering>,
}

/// A change to one line that can be applied to any algorithm, whatever its code says:
/// `line-7-writes-nothing`, `line-7-asks-the-opposite`. The fuzzer makes mutants of all algorithms
/// in this way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tampering {
    /// Writes and updates of the line leave the register as it is.
    WritesNothing(u32),
    /// Tests and waits of the line ask for the opposite.
    AsksTheOpposite(u32),
}

impl Tampering {
    fn named(name: &str) -> Option<Self> {
        let (line, what) = name.strip_prefix("line-")?.split_once('-')?;
        match what {
            "writes-nothing" => line.parse().ok().map(Self::WritesNothing),
            "asks-the-opposite" => line.parse().ok().map(Self::AsksTheOpposite),
            _ => None,
        }
    }
}

impl<'a> Replay<'a> {
    pub(crate) fn new(
        answers: &'a [Entry],
        input: Option<Input<'a>>,
        cut: bool,
        mutant: Option<&'static str>,
    ) -> Self {
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
            line: 0,
            cut,
            mutant,
            tampering: mutant.and_then(Tampering::named),
        }
    }

    /// Notes that the section is over, and forgets its answers.
    pub(crate) fn finish_section(&mut self) {
        if self.next < self.answers.len() {
            self.fault = Some(Fault::Impure);
        }
        self.log.clear();
        self.accesses = 0;
    }

    /// Returns the next entry of the record, which goes into the log again.
    fn recorded(&mut self) -> Option<&'a Entry> {
        let entry = self.answers.get(self.next)?;
        self.next += 1;
        self.accesses += match entry {
            Entry::Answer(_) => 1,
            Entry::Open { touched, .. } | Entry::Closed { touched, .. } => usize::from(*touched),
        };
        self.log.push(entry.clone());
        Some(entry)
    }

    /// Returns the recorded answer to the next access, if there is one.
    fn recall<R: Local>(&mut self) -> Result<Option<R>, Stop> {
        match self.recorded() {
            None => Ok(None),
            Some(Entry::Answer(item)) => self.item(item).map(Some),
            Some(_) => self.fail(Fault::Impure),
        }
    }

    /// Returns the value that the record holds for a call.
    fn item<T: Local>(&mut self, item: &Item) -> Result<T, Stop> {
        item.get().map_or_else(|| self.fail(Fault::Impure), Ok)
    }

    fn fail<T>(&mut self, fault: Fault) -> Result<T, Stop> {
        self.fault = Some(fault);
        Err(Stop)
    }

    /// Makes one access: `apply` turns the register's value into its new value, if it changes, and
    /// the answer to record.
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
                let Some(value) = value.any().downcast_ref::<T>() else {
                    return self.fail(Fault::Impure);
                };
                let (mut effect, answer) = apply(value.clone());
                if self.tampering == Some(Tampering::WritesNothing(self.line)) {
                    effect = None;
                }
                self.effect = effect.map(|v| Box::new(v) as Box<dyn Erased>);
                self.accesses += 1;
                self.log.push(Entry::Answer(Item::new(answer.clone())));
                Ok(answer)
            }
            Some(Input::Outcome(_)) => self.fail(Fault::Impure),
            None => self.halt(kind, register.id()),
        }
    }

    /// Returns whether the tests of this line ask for the opposite.
    fn asks_the_opposite(&self) -> bool {
        self.tampering == Some(Tampering::AsksTheOpposite(self.line))
    }

    fn halt<T>(&mut self, kind: Kind, register: usize) -> Result<T, Stop> {
        let waits = self.round == Some(self.accesses);
        self.pending = Some(Access { line: self.line, kind, register, waits });
        Err(Stop)
    }

    /// Looks up the state of the loop or scope that is called now. A new call goes into the log as
    /// open.
    fn call<S: Local, R: Local>(&mut self, place: Place, init: S) -> Result<Call<S, R>, Stop> {
        if !self.cut {
            return Ok(Call::New);
        }
        match self.recorded() {
            None => {
                self.log.push(Entry::Open {
                    place,
                    round: 0,
                    touched: false,
                    carried: Item::new(init),
                });
                Ok(Call::New)
            }
            Some(Entry::Open { place: at, round, carried, .. }) if *at == place => {
                Ok(Call::Open(*round, self.item(carried)?))
            }
            Some(Entry::Closed { place: at, result, .. }) if *at == place => {
                Ok(Call::Closed(self.item(result)?))
            }
            Some(_) => self.fail(Fault::Impure),
        }
    }

    /// Forgets everything since the call at `start` of the log except its result.
    fn close<R: Local>(&mut self, place: Place, start: usize, touched: bool, result: &R) {
        if self.cut {
            self.log.truncate(start);
            self.log.push(Entry::Closed { place, touched, result: Item::new(result.clone()) });
        }
    }

    /// Forgets everything since the call at `start` of the log except the value that it carries
    /// into this round.
    fn carry<S: Local>(
        &mut self,
        place: Place,
        start: usize,
        round: usize,
        touched: bool,
        carried: &S,
    ) {
        if self.cut {
            self.log.truncate(start);
            self.log.push(Entry::Open {
                place,
                round,
                touched,
                carried: Item::new(carried.clone()),
            });
        }
    }

    /// Runs the loop behind `each`, `fold` and `find`.
    fn rounds<I, T, F>(&mut self, place: Place, items: I, init: T, body: F) -> Result<T, Stop>
    where
        I: IntoIterator<Item = usize>,
        T: Local,
        F: Fn(&mut Self, T, usize) -> Result<ControlFlow<T, T>, Stop>,
    {
        let (start, entered) = (self.log.len(), self.accesses);
        let (skip, mut carried) = match self.call(place, None)? {
            Call::New => (0, init),
            Call::Open(round, carried) => (round, carried.unwrap_or(init)),
            Call::Closed(result) => return Ok(result),
        };
        let (mut before, mut idle, line) = (self.accesses, 0, self.line);
        for (round, i) in items.into_iter().enumerate().skip(skip) {
            self.line = line;
            match body(self, carried, i)? {
                ControlFlow::Break(result) => {
                    carried = result;
                    break;
                }
                ControlFlow::Continue(next) => carried = next,
            }
            idle = if self.accesses == before { idle + 1 } else { 0 };
            before = self.accesses;
            if idle > IDLE_ROUNDS {
                return self.fail(Fault::IdleIteration(place));
            }
            self.carry(place, start, round + 1, self.accesses > entered, &Some(carried.clone()));
        }
        self.line = line;
        self.close(place, start, self.accesses > entered, &carried);
        Ok(carried)
    }

    /// Makes a choice.
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

    /// Runs the loop behind `repeat` and `attempts`.
    fn go_round<S, R, F>(
        &mut self,
        place: Place,
        attempts: bool,
        init: S,
        body: F,
    ) -> Result<R, Stop>
    where
        S: Local,
        R: Local,
        F: Fn(&mut Self, S) -> Result<ControlFlow<R, S>, Stop>,
    {
        let (start, entered, outer) = (self.log.len(), self.accesses, self.round);
        let mut state = match self.call(place, init.clone())? {
            Call::New => init,
            Call::Open(_, state) => state,
            Call::Closed(result) => return Ok(result),
        };
        // Neither the round nor whether it is the first is kept. Otherwise there would be no end of
        // states.
        self.carry(place, start, 0, true, &state);
        let line = self.line;
        loop {
            let before = self.accesses;
            self.round = Some(before);
            self.line = line;
            match body(self, state)? {
                ControlFlow::Break(result) => {
                    self.round = outer;
                    self.line = line;
                    self.close(place, start, self.accesses > entered, &result);
                    return Ok(result);
                }
                ControlFlow::Continue(next) => state = next,
            }
            if self.accesses == before {
                return self.fail(Fault::IdleIteration(place));
            }
            // Replayed rounds come before the input is taken.
            self.retries |= attempts && self.input.is_none();
            self.carry(place, start, 0, true, &state);
        }
    }
}
