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

mod checkpoint;
mod cost;
mod counterexample;
mod dearest;
mod enabling;
mod equivalence;
mod expand;
mod explore;
mod graph;
mod keys;
mod lessons;
mod overtaking;
mod pack;
mod progress;
mod relabel;
mod remembering;
mod room;
mod search;
mod space;
mod store;
#[cfg(test)]
mod tests;
mod watch;
#[expect(unsafe_code, reason = "a table of atomic words on mapped memory")]
mod words;

use std::{
    path::PathBuf,
    sync::Mutex,
    time::{Duration, Instant},
};

use doorway_core::{ANY_NUMBER, Property, RegisterKind};

pub(crate) use self::counterexample::repeats_for_ever;
use self::{
    checkpoint::Keeper,
    counterexample::{concretise, ending_in, going_round},
    expand::{Ghost, Rules, event},
    explore::End,
    graph::Graph,
    pack::bits_for,
    remembering::ghost,
    room::Room,
    search::{Search, Searched, Then},
    space::Space,
    store::Numbers,
};
pub use self::{
    checkpoint::{Checkpoint, CheckpointError},
    cost::{Limits, Maxima, Most, most},
    equivalence::{Comparison, Difference, Incomparable, Joint, equivalent},
    room::available_memory,
    watch::Progress,
};
use crate::{fault::Fault, subject::Subject, trace::Trace};

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
    /// The bytes of memory that states and their graph may take; more states go to disk. `None` for no bound.
    pub max_memory: Option<u64>,
    /// Where states go that memory does not hold; `None` for `$TMPDIR`, or else `/var/tmp`.
    pub disk: Option<PathBuf>,
}

/// Any number of passages on atomic registers, no crashes, one worker, at most a million states, and nothing to decide.
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
            max_memory: None,
            disk: None,
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
    /// What was decided.
    pub verdicts: Vec<Verdict>,
    /// Whether there is more to find out: the search was stopped, or something could not be decided from it.
    pub resumable: bool,
    /// What the system said, if neither memory nor disk could hold more states.
    pub no_room: Option<String>,
}

/// Why nothing was decided.
#[derive(Debug, thiserror::Error)]
pub enum Unchecked {
    /// The algorithm cannot be run in the lab.
    #[error("{0}")]
    Fault(Fault),
    /// The search that was kept cannot be used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

impl From<Fault> for Unchecked {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Decides the properties of a subject.
///
/// # Errors
/// When the algorithm cannot be run in the lab.
pub fn check(subject: &dyn Subject, options: &Options, progress: &Progress) -> Result<Report, Fault> {
    checked(subject, options, progress, None).map_err(|error| match error {
        Unchecked::Fault(fault) => fault,
        Unchecked::Checkpoint(_) => unreachable!("no search was kept"),
    })
}

/// Decides the properties of a subject, and keeps the first search in a file: if that is there, the search goes on with
/// it. The file is removed when everything has been decided.
///
/// # Errors
/// When the algorithm cannot be run in the lab, or the file is not of this search.
pub fn check_kept(
    subject: &dyn Subject,
    options: &Options,
    progress: &Progress,
    checkpoint: &Checkpoint,
) -> Result<Report, Unchecked> {
    checked(subject, options, progress, Some(checkpoint))
}

fn checked(
    subject: &dyn Subject,
    options: &Options,
    progress: &Progress,
    checkpoint: Option<&Checkpoint>,
) -> Result<Report, Unchecked> {
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
    let space = Mutex::new(Space::new(subject, options.registers)?);
    let room = Room::new(options.max_memory, options.disk.as_deref());
    let started = Instant::now();
    let search = Search {
        space: &space,
        rules,
        passages: options.passages.unwrap_or(0),
        watch: options.properties.iter().fold(0, |watch, &property| watch | safety_event(property)),
        judge: None,
        max_states: options.max_states,
        workers: options.workers.max(1),
        progress,
        room: &room,
        keeper: None,
    };
    let mut conclude = Conclude { subject, options, search, started, before: Duration::ZERO };
    let mut report = match checkpoint {
        None => search.run(&mut conclude)?,
        Some(checkpoint) => {
            let decides = options.properties.iter().any(|&property| safety_event(property) == 0);
            let mut keeper = Keeper::new(checkpoint, conclude.asked(&checkpoint.more), decides);
            space.lock().expect("no worker panics").lessons = Some(Vec::new());
            let saved = keeper.load(&search)?;
            conclude.before = keeper.before();
            let report = Search { keeper: Some(&keeper), ..search }.run_from(saved, &mut conclude)?;
            if !report.resumable {
                keeper.remove();
            }
            report
        }
    };
    report.elapsed = conclude.before + started.elapsed();
    Ok(report)
}

/// Whether any register holds tickets.
fn has_tickets(subject: &dyn Subject) -> bool {
    let mut found = false;
    for cell in subject.layout().cells() {
        let _ = cell.init.relabelled(&mut |ticket| {
            found = true;
            ticket
        });
    }
    found
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

/// The graph of a search, with the numbers of its states.
struct Numbered {
    graph: Graph,
    numbers: Numbers,
}

/// Why there is no graph.
const TOO_MANY: &str = "too many states for a graph of them in memory: raise --max-memory, or try a smaller size";

impl Numbered {
    /// `None` if there are too many states, or more than memory holds a graph of.
    fn of<const W: usize>(searched: &Searched<'_, '_, W>, workers: usize) -> Option<Self> {
        let bytes = searched.store.numbers_bytes() + graph::bytes(searched.store.states(), searched.transitions);
        if bytes > searched.room.limit() - searched.room.used() {
            return None;
        }
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
    /// How long the search had taken before it was interrupted.
    before: Duration,
}

impl Then for Conclude<'_, '_> {
    type Out = Result<Report, Fault>;

    fn then<const W: usize>(&mut self, searched: &Searched<'_, '_, W>) -> Self::Out {
        if let End::Fault(fault) = &searched.end {
            return Err(fault.clone());
        }
        let search_time = self.before + self.started.elapsed();
        let complete = matches!(searched.end, End::Exhausted);
        let needs_graph = |&property: &Property| {
            property == Property::Fife || safety_event(property) == 0 && ghost(property, self.subject).is_none()
        };
        let graph = (complete && self.options.properties.iter().any(needs_graph))
            .then(|| Numbered::of(searched, self.search.workers))
            .flatten();
        let mut verdicts = Vec::new();
        for &property in &self.options.properties {
            let verdict = match (&searched.end, &graph) {
                (End::Violation(found), _) if found.events & safety_event(property) != 0 => {
                    let trail = ending_in(searched, found);
                    self.violated(property, concretise(searched, self.subject, &trail, property, None))
                }
                (End::Exhausted, _) if safety_event(property) != 0 => self.holds(property),
                (End::Exhausted, graph) if ghost(property, self.subject).is_some() => {
                    self.remembering(searched, graph.as_ref(), property)?
                }
                (End::Exhausted, Some(graph)) => match property {
                    Property::FifoEnabling => self.fifo_enabling(searched, graph),
                    Property::KDeadlockAvoidance => self.k_deadlock_avoidance(searched, graph),
                    _ => self.progress(searched, graph, property),
                },
                (End::Exhausted, None) => self.undecided(property, TOO_MANY),
                (End::Violation(_), _) => self.undecided(property, "the search stopped at the violation of another"),
                (End::Cancelled, _) => self.undecided(property, "the search was interrupted"),
                (End::NoRoom(why), _) => self.undecided(property, &format!("no room for more states: {why}")),
                _ => self.undecided(
                    property,
                    &format!("the search stopped at {} states: raise --max-states", searched.store.states()),
                ),
            };
            verdicts.push(verdict);
        }
        let resumable = match &searched.end {
            End::Exhausted => verdicts.iter().any(|verdict| verdict.holds.is_none()),
            end => !matches!(end, End::Violation(_)),
        };
        let cancelled = matches!(searched.end, End::Cancelled);
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
            // That takes a while, and a search that is interrupted is to end.
            shared_values: if cancelled { 0 } else { searched.shared_values(self.search.workers) },
            max_register: if searched.rules.relabel { None } else { numbers.max() },
            bits: (!searched.rules.relabel)
                .then(|| space.registers.iter().map(|values| u64::from(bits_for(values.len()))).sum()),
            retries: searched.rules.retries,
            verdicts,
            resumable,
            no_room: if let End::NoRoom(why) = &searched.end { Some(why.clone()) } else { None },
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

    /// All that tells this search from others, in words.
    fn asked(&self, more: &str) -> String {
        let subject = self.subject;
        let variant = subject.variant().map_or(String::new(), |variant| format!(" ({variant})"));
        let mutant = subject.mutant().map_or(String::new(), |mutant| format!(", mutant {mutant}"));
        let mut words = format!("{}{variant}{mutant}, {}{more}", subject.name(), self.reach());
        // The search stops at what violates these.
        let safe = |property: &&Property| safety_event(**property) != 0;
        let mut watched: Vec<&str> =
            self.options.properties.iter().filter(safe).map(|property| property.name()).collect();
        watched.sort_unstable();
        watched.dedup();
        if !watched.is_empty() {
            words.push_str(&format!(", {}", watched.join(", ")));
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
