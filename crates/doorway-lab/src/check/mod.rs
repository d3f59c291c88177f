//! The checker: explores every interleaving of an algorithm and decides its properties.
//!
//! - *Safety* (exclusion, bounded registers) is decided by the search itself, breadth first, so that what it finds is
//!   shortest.
//! - *Progress* (deadlock, starvation, bounded exit) and enabledness are decided on the graph of all states, under weak
//!   fairness, with up to as many crashes as asked for.
//! - *Order* (FCFS, k-FCFS, FIFE, strong concurrent entry) is decided by a second search that remembers who was before
//!   whom; FIFO enabling and the avoidance of k-deadlock, which only ask who is enabled where, on the graph.
//! - *Invariants* that an algorithm declares are decided by a second search that remembers what they are about.
//! - *Equivalence* of two systems is decided by a search of its own over their product.
//!
//! Nothing is reported wider than what was explored: see [`Verdict::scope`].

mod bounds;
mod cost;
mod counterexample;
mod dearest;
mod domain;
mod enabling;
mod equivalence;
mod expand;
mod explore;
mod graph;
mod minimise;
mod overtaking;
mod pack;
mod progress;
mod rehearse;
mod relabel;
mod remembering;
mod search;
mod space;
mod store;
mod stretch;
#[cfg(test)]
mod tests;
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
};
use self::{
    counterexample::{concretise, ending_in, going_round},
    expand::{Ghost, Rules, event},
    explore::End,
    graph::Graph,
    minimise::Merging,
    pack::bits_for,
    remembering::ghost,
    search::{Search, Searched, Then},
    space::Space,
    store::Numbers,
};
use crate::{
    fault::Fault,
    monitor::Oversized,
    subject::{Region, Subject},
    trace::Trace,
};

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
    rehearse::rehearse(subject, options.registers)?;
    let bound = subject.claims().bound.map(|bound| bound(subject.size()));
    let merging = options.minimise.then(|| Merging::of(subject, options.registers, bound)).flatten();
    // A fault with merged local states may be that of another state, or none at all.
    let merged = merging.and_then(|merging| explored(subject, options, Some(merging), progress).ok());
    let mut report = merged.map_or_else(|| explored(subject, options, None, progress), Ok)?;
    report.elapsed = started.elapsed();
    Ok(report)
}

/// Decides the properties of a subject, some of whose local states may be merged.
fn explored(
    subject: &dyn Subject,
    options: &Options,
    merging: Option<Merging>,
    progress: &Progress,
) -> Result<Report, Fault> {
    let size = subject.size();
    let retries = subject.attempts().map(|most| options.retries.unwrap_or(most));
    // With any number of attempts tickets have to be relabelled, or there would be no end of them.
    let endless = options.passages.is_none() || options.endless.is_some() || retries == Some(ANY_NUMBER);
    let relabel = options.relabel.unwrap_or(endless || options.registers == RegisterKind::Safe) && has_tickets(subject);
    let rules = Rules {
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
    };
    let started = Instant::now();
    let mut space = Space::new(subject, options.registers, relabel.then_some(rules.gap))?;
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
        judge: None,
        max_states: options.max_states,
        workers: options.workers.max(1),
        progress,
    };
    let mut conclude = Conclude { subject, options, search, started };
    let mut report = search.run(&mut conclude)?;
    report.locals = locals;
    Ok(report)
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

/// The events at which the search stops, because they violate one of the properties.
fn watched(subject: &dyn Subject, properties: &[Property]) -> u16 {
    let watch = properties.iter().fold(0, |watch, &property| watch | safety_event(property));
    // What is too large at the start is known already, and must not stop the search for the other properties.
    if Oversized::at_start(subject).is_some() { watch & !event::EXCEEDS } else { watch }
}

/// The event that violates a property of safety; 0 for the others.
fn safety_event(property: Property) -> u16 {
    match property {
        Property::MutualExclusion => event::MEETS,
        Property::KExclusion => event::CROWDED,
        Property::SessionExclusion => event::MIXED,
        Property::BoundedRegisters => event::EXCEEDS,
        _ => 0,
    }
}

/// The region that a property says processes leave in a bounded number of their own steps.
fn region_to_leave(property: Property) -> Option<Region> {
    match property {
        Property::BoundedExit => Some(Region::Exit),
        Property::BoundedDoorway
        | Property::Fcfs
        | Property::KFcfs
        | Property::Fife
        | Property::StrongConcurrentEntry => Some(Region::Doorway),
        _ => None,
    }
}

/// The graph of a search, with the numbers of its states.
struct Numbered {
    graph: Graph,
    numbers: Numbers,
}

impl Numbered {
    /// `None` if there are too many states.
    fn of<const W: usize>(searched: &Searched<'_, '_, W>, workers: usize) -> Option<Self> {
        let numbers = searched.store.numbers();
        let (space, store) = (searched.space, &searched.store);
        let graph = Graph::build(space, searched.plan, searched.rules, store, &numbers, workers)?;
        Some(Self { graph, numbers })
    }
}

/// Draws the conclusions from the first search, and makes the second one for properties of order.
struct Conclude<'a, 's> {
    subject: &'a dyn Subject,
    options: &'a Options,
    search: Search<'a, 's>,
    started: Instant,
}

impl Then for Conclude<'_, '_> {
    type Out = Result<Report, Fault>;

    fn then<const W: usize>(&mut self, searched: &Searched<'_, '_, W>) -> Self::Out {
        if let End::Fault(fault) = &searched.end {
            return Err(fault.clone());
        }
        let search_time = self.started.elapsed();
        let complete = matches!(searched.end, End::Exhausted);
        // Most doorways and exit sections end whatever the memory answers, and then no graph is needed to say so.
        let lingers = |property: Property| {
            let space = searched.space.lock().expect("no worker panics");
            complete
                && region_to_leave(property)
                    .is_some_and(|region| !(0..self.subject.size().n).all(|p| space.leaves(p, region)))
        };
        let needs_graph = |&property: &Property| match property {
            Property::Fife => true,
            Property::BoundedDoorway | Property::BoundedExit => lingers(property),
            _ => safety_event(property) == 0 && ghost(property, self.subject).is_none() || lingers(property),
        };
        let graph = (complete && self.options.properties.iter().any(needs_graph))
            .then(|| Numbered::of(searched, self.search.workers))
            .flatten();
        let mut verdicts = Vec::new();
        for &property in &self.options.properties {
            if property == Property::BoundedRegisters
                && let Some(verdict) = self.oversized()
            {
                verdicts.push(verdict);
                continue;
            }
            let verdict = match (&searched.end, &graph) {
                (End::Exhausted, None) if lingers(property) => {
                    self.undecided(property, "too many states for a graph of them")
                }
                (End::Exhausted, Some(graph))
                    if lingers(property) && self.lingers(searched, graph, property).is_some() =>
                {
                    self.lingers(searched, graph, property).expect("it does")
                }
                (End::Exhausted, _) if matches!(property, Property::BoundedDoorway | Property::BoundedExit) => {
                    self.holds(property)
                }
                (End::Violation(found), _) if found.events & safety_event(property) != 0 => {
                    let trail = ending_in(searched, found);
                    self.violated(property, concretise(searched, self.subject, &trail, property, None))
                }
                (End::Exhausted, _) if property == Property::BoundedRegisters => self.bounded(searched),
                (End::Exhausted, _) if safety_event(property) != 0 => self.holds(property),
                (End::Exhausted, graph) if ghost(property, self.subject).is_some() => {
                    self.remembering(searched, graph.as_ref(), property)?
                }
                (End::Exhausted, Some(graph)) => match property {
                    Property::FifoEnabling => self.fifo_enabling(searched, graph),
                    Property::KDeadlockAvoidance => self.k_deadlock_avoidance(searched, graph),
                    _ => self.progress(searched, graph, property),
                },
                (End::Exhausted, None) => self.undecided(property, "too many states for a graph of them"),
                (End::Violation(_), _) => self.undecided(property, "the search stopped at the violation of another"),
                (End::Cancelled, _) => self.undecided(property, "the search was interrupted"),
                _ => self.undecided(
                    property,
                    &format!("the search stopped at {} states: raise --max-states", searched.store.states()),
                ),
            };
            verdicts.push(verdict);
        }
        let space = searched.space.lock().expect("no worker panics");
        let numbers = space.registers.iter().flat_map(|values| values.iter()).map(|value| value.magnitude());
        Ok(Report {
            complete,
            states: searched.store.states() as u64,
            transitions: searched.transitions,
            depth: searched.store.levels.len() as u64 - 3,
            elapsed: search_time,
            search: search_time,
            bytes_per_state: searched.bytes_per_state(),
            relabelled: searched.rules.relabel,
            shared_values: searched.shared_values(self.search.workers),
            max_register: if searched.rules.relabel { None } else { numbers.max() },
            bits: (!searched.rules.relabel)
                .then(|| space.registers.iter().map(|values| u64::from(bits_for(values.len()))).sum()),
            retries: searched.rules.retries,
            locals: None,
            verdicts,
        })
    }
}

impl Conclude<'_, '_> {
    /// How far a verdict reaches, in words.
    fn reach(&self) -> String {
        let size = self.subject.size();
        let mut words = size.to_string();
        words.push_str(&format!(", {}", self.options.passages_in_words()));
        words.push_str(&attempts(self.subject, self.search.rules.retries));
        words.push_str(&format!(", {} registers", self.options.registers));
        words.push_str(&kills(self.subject));
        if self.search.rules.relabel {
            words.push_str(", tickets relabelled");
        }
        words
    }

    fn scope(&self, property: Property) -> String {
        let mut words = format!("every reachable state: {}", self.reach());
        if matches!(property, Property::StarvationFreedom | Property::DeadlockFreedom) {
            words.push_str(&match self.options.crashes {
                0 => ", no crashes".into(),
                crashes => format!(", up to {crashes} crashed"),
            });
            match (self.options.passages, self.options.endless) {
                (None, _) => {}
                (Some(_), None) => words.push_str("; with passages bounded, this only says that nobody gets stuck"),
                (Some(_), Some(p)) => words.push_str(&format!("; nobody gets stuck, whatever process {p} does")),
            }
            if self.search.rules.retries.is_some() {
                words.push_str(", and of runs in which somebody would try more often it says nothing");
            }
        }
        words.push_str(self.caveat(property));
        words
    }

    /// What has to be said of a verdict whichever way it goes.
    fn caveat(&self, property: Property) -> &'static str {
        match property {
            Property::FifoEnabling | Property::KDeadlockAvoidance if self.options.passages.is_some() => {
                "; with passages bounded, who has made its own stays in its remainder for ever and is not enabled, \
                 which says nothing of runs with more passages"
            }
            _ => "",
        }
    }

    fn holds(&self, property: Property) -> Verdict {
        Verdict { property, holds: Some(true), scope: self.scope(property), trace: None }
    }

    fn undecided(&self, property: Property, why: &str) -> Verdict {
        Verdict { property, holds: None, scope: format!("not decided, {why}: {}", self.reach()), trace: None }
    }

    /// A violation, if its run could be run with true values.
    fn violated(&self, property: Property, trace: Option<Trace>) -> Verdict {
        match trace {
            Some(trace) => Verdict {
                property,
                holds: Some(false),
                scope: format!(
                    "a run of {} steps, replayed: {}{}",
                    trace.steps.len(),
                    self.reach(),
                    self.caveat(property)
                ),
                trace: Some(trace),
            },
            None => self.undecided(property, "the relabelled counterexample has no true run"),
        }
    }

    /// The verdict on a property if a process can stay in its doorway or exit section for ever, which the property forbids.
    fn lingers<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        numbered: &Numbered,
        property: Property,
    ) -> Option<Verdict> {
        let bounded = match region_to_leave(property)? {
            Region::Doorway => Property::BoundedDoorway,
            _ => Property::BoundedExit,
        };
        let verdict = self.progress(searched, numbered, bounded);
        (verdict.holds != Some(true)).then(|| {
            let scope = match property == bounded {
                true => verdict.scope,
                false => format!("its doorway is not bounded, and so fixes no order: {}", verdict.scope),
            };
            Verdict { property, scope, ..verdict }
        })
    }

    fn progress<const W: usize>(
        &self,
        searched: &Searched<'_, '_, W>,
        Numbered { graph, numbers }: &Numbered,
        property: Property,
    ) -> Verdict {
        match progress::violation(graph, property, self.options.crashes, |state| numbers.depth(state)) {
            None => self.holds(property),
            Some(lasso) => {
                let (trail, stem) = going_round(searched, graph, numbers, &lasso);
                let trace = concretise(searched, self.subject, &trail, property, Some((&lasso, stem)));
                self.violated(property, trace)
            }
        }
    }
}
