//! Equivalence of two systems (paper 003, section 3.2): after every schedule, all processes are in the same regions in
//! both, where the regions are R, T, C and E.
//!
//! The product of the two is explored breadth first, both moved by the same process at each step, until a step leads to
//! different regions: a shortest schedule on which they differ. States are compared whole.
//!
//! Tickets of runs without end are narrowed on each side by its own gap (see `relabel.rs`). Where a new ticket falls inside
//! a wide gap, several states would have to be explored for one schedule, and a difference might be between two that
//! belong to different true runs: then nothing is decided.

use std::{
    hash::BuildHasher,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use doorway_core::RegisterKind;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::{
    Progress, has_tickets,
    relabel::{Labels, Map, slack},
    space::{Effect, Space},
};
use crate::{
    fault::Fault,
    machine::{Event, Machine},
    subject::{Region, Subject},
};

/// What came of comparing two systems.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Whether every reachable state of the product was explored.
    pub complete: bool,
    /// How many states of the product were found.
    pub states: u64,
    /// How many steps lead from one to another, failed waits included.
    pub transitions: u64,
    /// The number of steps to the farthest state.
    pub depth: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// Bytes per stored state, tables included.
    pub bytes_per_state: usize,
    /// Whether the tickets of one or the other were relabelled.
    pub relabelled: bool,
    /// The distinct values of the whole shared memory of the first system.
    pub shared_values: usize,
    /// The largest number in a register of the first system, unless its tickets were relabelled.
    pub max_register: Option<u64>,
    /// Whether they are equivalent; `None` if the search could not decide.
    pub holds: Option<bool>,
    /// It could not, because it depends on the width of a gap between tickets; with passages bounded it will.
    pub needs_bound: bool,
    /// How far that was explored, in words.
    pub scope: String,
    /// A shortest schedule on which they differ.
    pub difference: Option<Difference>,
}

/// A schedule on which two systems differ, replayed uncut on both.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Its steps; the last one makes the difference.
    pub steps: Vec<Joint>,
    /// Where everybody is after it in the first system.
    pub first: Vec<Region>,
    /// Where everybody is after it in the second system.
    pub second: Vec<Region>,
}

/// A step of one process in both systems.
#[derive(Clone, Debug)]
pub struct Joint {
    /// What happens in the first.
    pub first: Event,
    /// What happens in the second.
    pub second: Event,
}

/// Two systems cannot be compared.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Incomparable {
    /// They have different numbers of processes.
    #[error("{0} and {1} processes: a schedule has to be one of both systems")]
    Sizes(usize, usize),
    /// A process has a choice.
    #[error("{0}: its processes make choices, and a schedule has to say all that happens")]
    Choices(&'static str),
    /// One of them cannot be run in the lab.
    #[error("{0}: {1}")]
    Fault(&'static str, Fault),
}

/// Decides whether two systems are equivalent, on atomic registers, with so many passages per process or any number.
///
/// ```
/// use doorway_core::Size;
/// use doorway_lab::{Entrant, Progress, equivalent};
///
/// let build = |name| Entrant::named(name).unwrap().build(Size::mutex(2), None, false).unwrap();
/// let (one, other) = (build("bakery"), build("burns-lamport"));
/// let compared = equivalent(&*one, &*other, Some(2), 10_000, &Progress::default()).unwrap();
/// assert_eq!(compared.holds, Some(false));
/// assert_eq!(compared.difference.unwrap().steps.len(), 2);
/// ```
///
/// # Errors
/// When they cannot be compared.
pub fn equivalent(
    first: &dyn Subject,
    second: &dyn Subject,
    passages: Option<u32>,
    max_states: u64,
    progress: &Progress,
) -> Result<Comparison, Incomparable> {
    let (n, m) = (first.size().n, second.size().n);
    if n != m {
        return Err(Incomparable::Sizes(n, m));
    }
    let started = Instant::now();
    let mut sides = [Side::new(first, passages.is_none())?, Side::new(second, passages.is_none())?];
    let start: Vec<u32> =
        sides.iter().flat_map(|side| vec![0; side.width()]).chain(vec![passages.unwrap_or(1); n]).collect();
    let mut product = Product::new(start);
    let end = product.explore(&mut sides, passages.is_some(), max_states, progress)?;
    let difference = match end {
        End::Difference(from, p) => replay(first, second, &product.schedule(from, p))?,
        _ => None,
    };
    let complete = matches!(end, End::Exhausted);
    let holds = match end {
        End::Exhausted => Some(true),
        End::Difference(..) => difference.is_some().then_some(false),
        _ => None,
    };
    let mut reach = format!("n = {n}, k = {}", first.size().k);
    reach.push_str(&match passages {
        None => ", any number of passages".into(),
        Some(1) => ", 1 passage per process".into(),
        Some(passages) => format!(", {passages} passages per process"),
    });
    reach.push_str(", atomic registers");
    let relabelled = sides.iter().any(|side| side.relabel);
    if relabelled {
        reach.push_str(", tickets relabelled");
    }
    let undecided = |why: &str| format!("not decided, {why}: {reach}");
    let scope = match end {
        End::Exhausted => format!("every schedule: {reach}"),
        End::Difference(..) => match &difference {
            Some(difference) => format!("a schedule of {} steps, replayed: {reach}", difference.steps.len()),
            None => undecided("the relabelled schedule has no true run"),
        },
        End::Guess(name) => undecided(&format!(
            "a new ticket of {name} falls inside a gap of unknown width; bound the passages, say with --passages 3"
        )),
        End::Full => undecided(&format!("the search stopped at {} states: raise --max-states", product.len())),
        End::Cancelled => undecided("the search was interrupted"),
    };
    let registers = sides[0].registers;
    let shared: FxHashSet<&[u32]> = (0..product.len()).map(|state| &product.state(state)[..registers]).collect();
    let values = sides[0].space.registers.iter().flat_map(|values| values.iter());
    Ok(Comparison {
        complete,
        states: product.len() as u64,
        transitions: product.transitions,
        depth: product.depth as u64,
        bytes_per_state: product.bytes() / product.len(),
        relabelled,
        shared_values: shared.len(),
        max_register: if sides[0].relabel { None } else { values.map(|value| value.magnitude()).max() },
        holds,
        needs_bound: matches!(end, End::Guess(_)),
        scope,
        difference,
        elapsed: started.elapsed(),
    })
}

/// One of the two systems, in numbers.
struct Side<'s> {
    space: Space<'s>,
    name: &'static str,
    registers: usize,
    n: usize,
    relabel: bool,
    gap: u32,
    maps: FxHashMap<Labels, Map>,
}

/// What a step of one side is.
enum Stepped {
    /// One step, which leaves the process in this region.
    To(Region),
    /// One of several, and which depends on the width of a gap.
    Guess,
}

impl<'s> Side<'s> {
    fn new(subject: &'s dyn Subject, unbounded: bool) -> Result<Self, Incomparable> {
        let size = subject.size();
        let space =
            Space::new(subject, RegisterKind::Atomic).map_err(|fault| Incomparable::Fault(subject.name(), fault))?;
        Ok(Self {
            registers: space.registers.len(),
            space,
            name: subject.name(),
            n: size.n,
            relabel: unbounded && has_tickets(subject),
            gap: (subject.claims().gap)(size),
            maps: FxHashMap::default(),
        })
    }

    /// How many numbers a state has.
    fn width(&self) -> usize {
        self.registers + self.n
    }

    fn region(&self, state: &[u32], p: usize) -> Region {
        self.space.known(p, state[self.registers + p]).region
    }

    /// Makes process `p` take its step.
    fn step(&mut self, state: &mut [u32], p: usize) -> Result<Stepped, Incomparable> {
        let at = self.registers + p;
        let local = state[at];
        let (register, effect) = match &*self.space.known(p, local).moves {
            [only] => (only.register, only.effect),
            _ => return Err(Incomparable::Choices(self.name)),
        };
        let Some(register) = register.filter(|_| effect != Effect::Choose).map(usize::from) else {
            return Err(Incomparable::Choices(self.name));
        };
        let was = self.labels(state);
        let outcome =
            self.space.outcome(p, local, 0, state[register]).map_err(|fault| Incomparable::Fault(self.name, fault))?;
        state[register] = outcome.value;
        state[at] = outcome.next;
        if self.relabel {
            let is = self.labels(state);
            if (is.0 & !was.0).count_ones() > 1 {
                return Err(Incomparable::Fault(self.name, Fault::TwoTickets));
            }
            if slack(was, is, self.gap).1 > 0 {
                return Ok(Stepped::Guess);
            }
            self.narrow(state, was, is).map_err(|fault| Incomparable::Fault(self.name, fault))?;
        }
        Ok(Stepped::To(self.region(state, p)))
    }

    /// The tickets that stand anywhere in a state.
    fn labels(&self, state: &[u32]) -> Labels {
        if !self.relabel {
            return Labels::default();
        }
        let (values, locals) = state.split_at(self.registers);
        let in_registers = self.space.registers.iter().zip(values).map(|(known, &value)| known.labels[value as usize]);
        let in_locals = locals.iter().enumerate().map(|(p, &local)| self.space.known(p, local).labels);
        in_registers.chain(in_locals).fold(Labels::default(), Labels::or)
    }

    /// Brings the tickets of a state into their one form.
    fn narrow(&mut self, state: &mut [u32], was: Labels, is: Labels) -> Result<(), Fault> {
        if was == is {
            return Ok(());
        }
        if is.0 == u128::MAX {
            return Err(Fault::TicketRange);
        }
        let gap = self.gap;
        let map = self.maps.entry(is).or_insert_with(|| Map::narrowing(is, 0, 0, gap));
        if map.changes == Labels::default() {
            return Ok(());
        }
        let (values, locals) = state.split_at_mut(self.registers);
        for (r, value) in values.iter_mut().enumerate() {
            if self.space.registers[r].labels[*value as usize].meets(map.changes) {
                *value = self.space.relabel_value(r as u16, *value, map)?;
            }
        }
        for (p, local) in locals.iter_mut().enumerate() {
            if self.space.known(p, *local).labels.meets(map.changes) {
                *local = self.space.relabel_local(p, *local, map)?;
            }
        }
        Ok(())
    }
}

/// Why the search ended.
enum End {
    Exhausted,
    /// A step of this process from this state leads to different regions.
    Difference(usize, usize),
    Guess(&'static str),
    Full,
    Cancelled,
}

/// The states of the product that have been found, one after the other in one vector, and a table of where they are.
struct Product {
    numbers: Vec<u32>,
    stride: usize,
    /// The state from which each was found first, and the process that stepped.
    came: Vec<(u32, u16)>,
    slots: Vec<u32>,
    transitions: u64,
    depth: usize,
}

const FREE: u32 = u32::MAX;

impl Product {
    fn new(start: Vec<u32>) -> Self {
        let mut product = Self {
            stride: start.len(),
            numbers: Vec::new(),
            came: Vec::new(),
            slots: vec![FREE; 1 << 12],
            transitions: 0,
            depth: 0,
        };
        product.insert(&start, 0, 0);
        product
    }

    fn len(&self) -> usize {
        self.came.len()
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.numbers[..]) + size_of_val(&self.came[..]) + size_of_val(&self.slots[..])
    }

    fn state(&self, state: usize) -> &[u32] {
        &self.numbers[state * self.stride..][..self.stride]
    }

    /// The slot that the state is in, or is to be put in.
    fn slot(&self, state: &[u32]) -> usize {
        // The upper bits of this hash are the good ones.
        let home = FxBuildHasher.hash_one(state) >> 32;
        let mut slot = home as usize & (self.slots.len() - 1);
        while self.slots[slot] != FREE && self.state(self.slots[slot] as usize) != state {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    /// Adds a state; says whether it is new.
    fn insert(&mut self, state: &[u32], from: usize, p: usize) -> bool {
        let slot = self.slot(state);
        if self.slots[slot] != FREE {
            return false;
        }
        self.slots[slot] = self.len() as u32;
        self.numbers.extend_from_slice(state);
        self.came.push((from as u32, p as u16));
        if self.len() * 2 > self.slots.len() {
            self.slots = vec![FREE; self.slots.len() * 2];
            for number in 0..self.len() {
                let slot = self.slot(self.state(number));
                self.slots[slot] = number as u32;
            }
        }
        true
    }

    fn explore(
        &mut self,
        sides: &mut [Side<'_>; 2],
        bounded: bool,
        max_states: u64,
        progress: &Progress,
    ) -> Result<End, Incomparable> {
        let n = sides[0].n;
        let split = sides[0].width();
        let left = split + sides[1].width();
        let mut next_level = 1;
        let mut from = 0;
        while from < self.len() {
            if from == next_level {
                next_level = self.len();
                self.depth += 1;
                progress.states.store(self.len() as u64, Relaxed);
                progress.frontier.store((self.len() - from) as u64, Relaxed);
                progress.depth.store(self.depth as u64, Relaxed);
                if progress.cancel.load(Relaxed) {
                    return Ok(End::Cancelled);
                }
            }
            if self.len() as u64 > max_states.min(u64::from(FREE - 1)) {
                return Ok(End::Full);
            }
            for p in 0..n {
                let mut state = self.state(from).to_vec();
                // Both are in the same region, so one of them tells for both.
                if bounded && sides[0].region(&state[..split], p) == Region::Remainder {
                    if state[left + p] == 0 {
                        continue;
                    }
                    state[left + p] -= 1;
                }
                let mut regions = ['R'; 2];
                for (side, (region, range)) in sides.iter_mut().zip(regions.iter_mut().zip([0..split, split..left])) {
                    match side.step(&mut state[range], p)? {
                        Stepped::To(to) => *region = to.letter(),
                        Stepped::Guess => return Ok(End::Guess(side.name)),
                    }
                }
                self.transitions += 1;
                if regions[0] != regions[1] {
                    return Ok(End::Difference(from, p));
                }
                self.insert(&state, from, p);
            }
            from += 1;
        }
        Ok(End::Exhausted)
    }

    /// The schedule that leads to a state, and then a step of `p`.
    fn schedule(&self, mut state: usize, p: usize) -> Vec<usize> {
        let mut schedule = vec![p];
        while state != 0 {
            let (from, p) = self.came[state];
            schedule.push(usize::from(p));
            state = from as usize;
        }
        schedule.reverse();
        schedule
    }
}

/// Runs a schedule on both, with true tickets and without forgetting; `None` unless it is the last step that makes the
/// difference.
fn replay(first: &dyn Subject, second: &dyn Subject, schedule: &[usize]) -> Result<Option<Difference>, Incomparable> {
    let failed = |subject: &dyn Subject| {
        let name = subject.name();
        move |fault| Incomparable::Fault(name, fault)
    };
    let mut one = Machine::new(first, RegisterKind::Atomic, false).map_err(failed(first))?;
    let mut two = Machine::new(second, RegisterKind::Atomic, false).map_err(failed(second))?;
    let take = |machine: &mut Machine<'_>, p: usize| {
        let choice = machine.moves(p)[0].choice;
        machine.step(p, choice, None)
    };
    let mut steps = Vec::new();
    for (i, &p) in schedule.iter().enumerate() {
        let joint = Joint {
            first: take(&mut one, p).map_err(failed(first))?,
            second: take(&mut two, p).map_err(failed(second))?,
        };
        let differs = joint.first.to.letter() != joint.second.to.letter();
        steps.push(joint);
        if differs != (i + 1 == schedule.len()) {
            return Ok(None);
        }
    }
    let regions = |machine: &Machine<'_>| (0..machine.processes()).map(|p| machine.region(p)).collect();
    Ok(Some(Difference { steps, first: regions(&one), second: regions(&two) }))
}
