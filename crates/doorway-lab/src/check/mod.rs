//! The checker: explores every interleaving of an algorithm and decides its properties.
//!
//! - *Safety* (exclusion, bounded registers) is decided by the search itself, breadth first, so that what it finds is
//!   shortest.
//! - *Progress* (deadlock, starvation, bounded exit) and enabledness are decided on the graph of all states, under weak
//!   fairness, with up to as many crashes as asked for.
//! - *Order* (FCFS, k-FCFS, FIFE) is decided on the graph, too, by following which process began
//!   after which others were through their doorways; so are FIFO enabling and the avoidance of
//!   k-deadlock, which only ask which process is enabled where.
//! - *Strong concurrent entry* and the *invariants* that an algorithm declares are decided by a
//!   second search that remembers what they are about.
//! - *Equivalence* of two systems is decided by a search of its own over their product.
//!
//! Nothing is reported wider than what was explored: see [`Verdict::scope`].

mod bounds;
mod components;
mod cost;
mod counterexample;
mod dearest;
mod decide;
mod domain;
mod enabling;
mod equivalence;
mod expand;
mod explore;
mod graph;
mod kept;
mod minimise;
mod order;
mod overtaking;
mod pack;
mod parallel;
mod progress;
mod promela;
mod rehearse;
mod relabel;
mod remembering;
mod search;
mod space;
mod store;
mod stretch;
#[cfg(test)]
mod tests;
mod timings;
#[expect(unsafe_code, reason = "a table of atomic words on mapped memory")]
mod words;

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use doorway_core::{ANY_NUMBER, Property, RegisterKind, Ticket};

pub(crate) use self::search::MAX_WORDS;
pub use self::{
    cost::{Limits, Maxima, Most, most},
    equivalence::{Comparison, Difference, Incomparable, Joint, equivalent},
    explore::Progress,
    promela::{Unmodelled, promela},
};
use self::{
    decide::{Conclude, safety_event},
    expand::{Ghost, Rules, event},
    minimise::Merging,
    search::Search,
    space::Space,
    timings::Timings,
};
use crate::{fault::Fault, monitor::Oversized, subject::Subject, trace::Trace};

/// What to check, and how far.
#[derive(Clone, Debug)]
pub struct Options {
    /// Passages per process; `None` for no bound.
    pub passages: Option<u32>,
    /// A process that makes any number of passages, whatever the others do.
    pub endless: Option<usize>,
    /// Attempts per passage that are followed, or [`ANY_NUMBER`] of them; `None` for as many as the algorithm says. Who
    /// begins one more takes no further step: what would come of it is not known.
    pub retries: Option<u32>,
    /// The registers that the algorithm runs on.
    pub registers: RegisterKind,
    /// How many processes may crash.
    pub crashes: usize,
    /// What to decide.
    pub properties: Vec<Property>,
    /// How many states to explore at most.
    pub max_states: u64,
    /// How many workers search.
    pub workers: usize,
    /// Whether tickets are relabelled; `None` where that is needed: in runs without end and on safe registers.
    pub relabel: Option<bool>,
    /// Whether bisimilar local states of a process are merged, where they can be found.
    pub minimise: bool,
}

/// Any number of passages on atomic registers, no crashes, one worker, at most a million states, bisimilar local states
/// merged, and nothing to decide.
impl Default for Options {
    fn default() -> Self {
        Self {
            passages: None,
            endless: None,
            retries: None,
            registers: RegisterKind::Atomic,
            crashes: 0,
            properties: Vec::new(),
            max_states: 1_000_000,
            workers: 1,
            relabel: None,
            minimise: true,
        }
    }
}

impl Options {
    /// How many passages are made, as in a sentence.
    pub fn passages_in_words(&self) -> String {
        let Some(passages) = self.passages else { return "any number of passages".into() };
        let plural = if passages == 1 { "" } else { "s" };
        let but = self.endless.map_or(String::new(), |p| format!(", but any number of process {p}"));
        format!("{passages} passage{plural} per process{but}")
    }
}

/// What was found out about one property.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The property.
    pub property: Property,
    /// Whether it holds; `None` if the search could not decide.
    pub holds: Option<bool>,
    /// How far that was explored, in words.
    pub scope: String,
    /// A run that violates it.
    pub trace: Option<Trace>,
}

/// What was found out.
#[derive(Clone, Debug)]
pub struct Report {
    /// Whether every reachable state was explored.
    pub complete: bool,
    /// How many states were found.
    pub states: u64,
    /// How many steps lead from one to another, failed waits included.
    pub transitions: u64,
    /// The number of steps to the farthest state.
    pub depth: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// How long the first search took: what `states` and `transitions` count.
    pub search: Duration,
    /// The stages, in the order in which they ended, each with how long it took. Some run at the
    /// same time.
    pub timings: Vec<(String, Duration)>,
    /// Bytes per stored state, tables included.
    pub bytes_per_state: usize,
    /// Whether tickets were relabelled.
    pub relabelled: bool,
    /// The distinct values of the whole shared memory.
    pub shared_values: usize,
    /// The largest number in a register, unless tickets were relabelled.
    pub max_register: Option<u64>,
    /// The bits that tell the values apart which the registers took, one register after the other, unless tickets were
    /// relabelled.
    pub bits: Option<u64>,
    /// The attempts per passage that were followed; `None` for any number, or if there are no attempts.
    pub retries: Option<u32>,
    /// The local states of all processes together before bisimilar ones were merged, and after; `None` if none were looked
    /// for. Both count every state that could be reached if a register could hold any of its values at any time.
    pub locals: Option<(usize, usize)>,
    /// What was decided.
    pub verdicts: Vec<Verdict>,
}

/// Decides the properties of a subject.
///
/// # Errors
/// When the algorithm cannot be run in the lab.
pub fn check(subject: &dyn Subject, options: &Options, progress: &Progress) -> Result<Report, Fault> {
    let started = Instant::now();
    let timings = Timings::default();
    timings.stage("rehearse", || rehearse::rehearse(subject, options.registers))?;
    let bound = subject.claims().bound.map(|bound| bound(subject.size()));
    let merging = timings
        .stage("minimise", || options.minimise.then(|| Merging::of(subject, options.registers, bound)).flatten());
    // A fault with merged local states may be that of another state, or none at all.
    let merged = merging.and_then(|merging| explored(subject, options, Some(merging), progress, &timings).ok());
    let mut report = merged.map_or_else(|| explored(subject, options, None, progress, &timings), Ok)?;
    report.elapsed = started.elapsed();
    report.timings = timings.list();
    Ok(report)
}

/// Decides the properties of a subject, some of whose local states may be merged.
fn explored(
    subject: &dyn Subject,
    options: &Options,
    merging: Option<Merging>,
    progress: &Progress,
    timings: &Timings,
) -> Result<Report, Fault> {
    let rules = rules(subject, options);
    let started = Instant::now();
    let mut space = Space::new(subject, options.registers, rules.relabel.then_some(rules.gap))?;
    let locals = merging.as_ref().map(|merging| merging.locals);
    if let Some(merging) = merging {
        space.merge(merging);
    }
    let space = Mutex::new(space);
    let search = Search {
        space: &space,
        rules,
        passages: options.passages.unwrap_or(0),
        watch: watched(subject, &options.properties),
        max_states: options.max_states,
        workers: options.workers.max(1),
        progress,
    };
    let mut conclude = Conclude { subject, options, search, started, timings };
    let mut report = search.run(&mut conclude)?;
    report.locals = locals;
    Ok(report)
}

/// What the search for these options is about.
fn rules(subject: &dyn Subject, options: &Options) -> Rules {
    let size = subject.size();
    let retries = subject.attempts().map(|most| options.retries.unwrap_or(most));
    // With any number of attempts tickets have to be relabelled, or there would be no end of them.
    let endless = options.passages.is_none() || options.endless.is_some() || retries == Some(ANY_NUMBER);
    let relabel = options.relabel.unwrap_or(endless || options.registers == RegisterKind::Safe) && has_tickets(subject);
    Rules {
        k: size.k,
        bounded: options.passages.is_some(),
        endless: options.endless,
        retries: retries.filter(|&most| most != ANY_NUMBER),
        kills: subject.kills().filter(|&most| most != ANY_NUMBER),
        kind: options.registers,
        relabel,
        gap: (subject.claims().gap)(size),
        ghost: Ghost::Nothing,
        bound: subject.claims().bound.map(|bound| bound(size)),
        charge: None,
    }
}

/// The events at which the search stops, because they violate one of the properties.
fn watched(subject: &dyn Subject, properties: &[Property]) -> u16 {
    let watch = properties.iter().fold(0, |watch, &property| watch | safety_event(property));
    // What is too large at the start is known already, and must not stop the search for the other properties.
    if Oversized::at_start(subject).is_some() { watch & !event::EXCEEDS } else { watch }
}

/// Whether any register holds tickets, or may return one where a read overlaps a write: a register
/// that begins with ∞ shows none.
fn has_tickets(subject: &dyn Subject) -> bool {
    let mut found = false;
    for cell in subject.layout().cells() {
        found |= ticket_values(|tickets| cell.domain(tickets).map(|values| values.len()));
        let _ = cell.init.relabelled(&mut |ticket| {
            found = true;
            ticket
        });
    }
    found
}

/// Whether a domain has more values with a ticket than without, by how many it has with these tickets.
fn ticket_values(count: impl Fn(&[Ticket]) -> Option<usize>) -> bool {
    count(&[Ticket::ZERO]) > count(&[])
}

/// As in a list: how many attempts are followed, if the algorithm makes any.
pub fn attempts(subject: &dyn Subject, most: Option<u32>) -> String {
    match most {
        _ if subject.attempts().is_none() => String::new(),
        None => ", any number of attempts".into(),
        Some(1) => ", at most 1 attempt per passage".into(),
        Some(most) => format!(", at most {most} attempts per passage"),
    }
}

/// As in a list: how many processes are killed, if any are.
pub fn kills(subject: &dyn Subject) -> String {
    match subject.kills() {
        None => String::new(),
        Some(ANY_NUMBER) => ", any passage killed at any step".into(),
        Some(1) => ", at most 1 kill, at any step, and the passage made again".into(),
        Some(most) => format!(", at most {most} kills, at any step, and the passages made again"),
    }
}
