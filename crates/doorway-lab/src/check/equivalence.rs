//! Equivalence of two systems (Fischer et al. 1985, section 3.2): after every schedule, all
//! processes are in the same regions in both systems. The regions are R, T, C and E.
//!
//! The product of the two systems is explored breadth first. At each step the same process moves in
//! both, until a step leads to different regions: a shortest schedule on which they differ. States
//! are compared whole.
//!
//! Tickets of runs without end are narrowed on each side by its own gap (see `relabel.rs`). If a
//! new ticket falls inside a wide gap, several states would have to be explored for one schedule,
//! and a difference might be between two states of different true runs. Then nothing is decided.

mod product;
mod side;

use std::time::{Duration, Instant};

use doorway_core::RegisterKind;
use rustc_hash::FxHashSet;

use self::{
    product::{End, Product},
    side::Side,
};
use super::Progress;
use crate::{
    fault::Fault,
    machine::{Event, Machine},
    subject::{Region, Subject},
};

/// The result of comparing two systems.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Whether every reachable state of the product was explored.
    pub complete: bool,
    /// The number of states of the product that were found.
    pub states: u64,
    /// The number of steps between states, failed waits included.
    pub transitions: u64,
    /// The number of steps to the farthest state.
    pub depth: u64,
    /// The time that the search took.
    pub elapsed: Duration,
    /// Bytes per stored state, tables included.
    pub bytes_per_state: usize,
    /// Whether the tickets of either system were relabelled.
    pub relabelled: bool,
    /// The distinct values of the whole shared memory of the first system.
    pub shared_values: usize,
    /// The largest number in a register of the first system, unless its tickets were relabelled.
    pub max_register: Option<u64>,
    /// Whether the systems are equivalent; `None` if the search could not decide.
    pub holds: Option<bool>,
    /// The search could not decide, because the answer depends on the width of a gap between
    /// tickets. With bounded passages it can decide.
    pub needs_bound: bool,
    /// How far equivalence was explored, in words.
    pub scope: String,
    /// A shortest schedule on which the systems differ.
    pub difference: Option<Difference>,
}

/// A schedule on which two systems differ, replayed uncut on both.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The steps of the schedule; the last step makes the difference.
    pub steps: Vec<Joint>,
    /// The region of each process after the schedule in the first system.
    pub first: Vec<Region>,
    /// The region of each process after the schedule in the second system.
    pub second: Vec<Region>,
}

/// A step of one process in both systems.
#[derive(Clone, Debug)]
pub struct Joint {
    /// What happens in the first system.
    pub first: Event,
    /// What happens in the second system.
    pub second: Event,
}

/// Why two systems cannot be compared.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Incomparable {
    /// The systems have different numbers of processes.
    #[error("{0} and {1} processes: a schedule has to be one of both systems")]
    Sizes(usize, usize),
    /// A process has a choice.
    #[error("{0}: its processes make choices, and a schedule has to say all that happens")]
    Choices(&'static str),
    /// One of the systems cannot be run in the lab.
    #[error("{0}: {1}")]
    Fault(&'static str, Fault),
}

/// Decides whether two systems are equivalent, on atomic registers.
///
/// Each process makes so many passages, or any number.
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
/// When the systems cannot be compared.
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
    let start: Vec<u32> = sides
        .iter()
        .flat_map(|side| vec![0; side.width()])
        .chain(vec![passages.unwrap_or(1); n])
        .collect();
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
            Some(difference) => {
                format!("a schedule of {} steps, replayed: {reach}", difference.steps.len())
            }
            None => undecided("the relabelled schedule has no true run"),
        },
        End::Guess(name) => undecided(&format!(
            "a new ticket of {name} falls inside a gap of unknown width; bound the passages, say with --passages 3"
        )),
        End::Full => undecided(&format!(
            "the search stopped at {} states: raise --max-states",
            product.len()
        )),
        End::Cancelled => undecided("the search was interrupted"),
    };
    let registers = sides[0].registers;
    let shared: FxHashSet<&[u32]> =
        (0..product.len()).map(|state| &product.state(state)[..registers]).collect();
    let values = sides[0].space.registers.iter().flat_map(|values| values.iter());
    Ok(Comparison {
        complete,
        states: product.len() as u64,
        transitions: product.transitions,
        depth: product.depth as u64,
        bytes_per_state: product.bytes() / product.len(),
        relabelled,
        shared_values: shared.len(),
        max_register: if sides[0].relabel {
            None
        } else {
            values.map(|value| value.magnitude()).max()
        },
        holds,
        needs_bound: matches!(end, End::Guess(_)),
        scope,
        difference,
        elapsed: started.elapsed(),
    })
}

/// Runs a schedule on both systems, with true tickets and without forgetting; `None` unless the
/// last step makes the difference.
fn replay(
    first: &dyn Subject,
    second: &dyn Subject,
    schedule: &[usize],
) -> Result<Option<Difference>, Incomparable> {
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
    let regions =
        |machine: &Machine<'_>| (0..machine.processes()).map(|p| machine.region(p)).collect();
    Ok(Some(Difference { steps, first: regions(&one), second: regions(&two) }))
}
