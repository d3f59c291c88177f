//! The checker: explores every interleaving of an algorithm and decides its properties.
//!
//! - *Safety* (exclusion, bounded registers) is decided by the search itself, breadth first, so
//!   that the runs that it finds are shortest.
//! - *Progress* (deadlock, starvation, bounded exit) and enabledness are decided on the graph of
//!   all states, under weak fairness, with up to as many crashes as requested.
//! - *Order* (FCFS, k-FCFS, FIFE) is decided on the graph, too. The checker follows which process
//!   began after which other processes were through their doorways. FIFO enabling and the avoidance
//!   of k-deadlock are decided there as well; they only ask which process is enabled where.
//! - *Strong concurrent entry* and the *invariants* that an algorithm declares are decided by a
//!   second search that remembers what they are about.
//! - *Equivalence* of two systems is decided by a search of its own over their product.
//!
//! No result is reported wider than what was explored: see [`Verdict::scope`].

mod bounds;
mod checkpoint;
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
mod keys;
mod lessons;
mod minimise;
mod options;
mod order;
mod overtaking;
mod pack;
mod parallel;
mod progress;
mod promela;
mod rehearse;
mod relabel;
mod remembering;
mod report;
mod room;
mod search;
mod space;
mod store;
mod stretch;
#[cfg(test)]
mod tests;
mod timings;
mod watch;
mod wording;
#[expect(unsafe_code, reason = "a table of atomic words on mapped memory")]
mod words;

use std::{
    sync::{Mutex, atomic::Ordering::Relaxed},
    time::Instant,
};

use doorway_core::{ANY_NUMBER, Property, RegisterKind, Ticket};

pub(crate) use self::search::MAX_WORDS;
use self::{
    checkpoint::Keeper,
    decide::{Conclude, safety_event},
    expand::{Ghost, Rules, event},
    minimise::Merging,
    room::Room,
    search::Search,
    space::Space,
    timings::Timings,
};
pub use self::{
    checkpoint::{Checkpoint, CheckpointError},
    cost::{Limits, Maxima, Most, most},
    equivalence::{Comparison, Difference, Incomparable, Joint, equivalent},
    options::Options,
    promela::{Unmodelled, promela},
    report::{Report, Unchecked, Verdict},
    room::available_memory,
    watch::Progress,
};
use crate::{fault::Fault, monitor::Oversized, subject::Subject};

/// Decides the properties of a subject.
///
/// # Errors
/// When the algorithm cannot be run in the lab.
pub fn check(
    subject: &dyn Subject,
    options: &Options,
    progress: &Progress,
) -> Result<Report, Fault> {
    let timings = Timings::default();
    let task = Task { subject, options, progress, checkpoint: None, timings: &timings };
    task.checked().map_err(|error| match error {
        Unchecked::Fault(fault) => fault,
        Unchecked::Checkpoint(_) => unreachable!("no search was kept"),
    })
}

/// Decides the properties of a subject, and keeps the first search in a file.
///
/// If the file exists, the search continues from it. The file is removed when everything has been
/// decided.
///
/// # Errors
/// When the algorithm cannot be run in the lab, or the file does not belong to this search.
pub fn check_kept(
    subject: &dyn Subject,
    options: &Options,
    progress: &Progress,
    checkpoint: &Checkpoint,
) -> Result<Report, Unchecked> {
    let timings = Timings::default();
    Task { subject, options, progress, checkpoint: Some(checkpoint), timings: &timings }.checked()
}

/// What is done with bisimilar local states.
enum Locals {
    /// None are known, or none are to be merged.
    AsTheyAre,
    /// They are merged.
    Merged(Merging),
    /// They were merged, and that search ended with a fault.
    MergedNoMore,
}

impl Locals {
    /// Returns a list item that distinguishes a search with these from other searches.
    fn in_words(&self) -> &'static str {
        match self {
            Self::AsTheyAre => "",
            Self::Merged(_) => ", local states merged",
            Self::MergedNoMore => MERGED_NO_MORE,
        }
    }
}

const MERGED_NO_MORE: &str = ", local states no longer merged after a fault";

/// The parameters of a check.
#[derive(Clone, Copy)]
struct Task<'a> {
    subject: &'a dyn Subject,
    options: &'a Options,
    progress: &'a Progress,
    checkpoint: Option<&'a Checkpoint>,
    timings: &'a Timings,
}

impl Task<'_> {
    fn checked(&self) -> Result<Report, Unchecked> {
        let Self { subject, options, timings, .. } = *self;
        let started = Instant::now();
        if options.rehearse {
            timings.stage("rehearse", || rehearse::rehearse(subject, options.registers))?;
        }
        let bound = subject.claims().bound.map(|bound| bound(subject.size()));
        let merging = timings.stage("minimise", || {
            options.minimise.then(|| Merging::of(subject, options.registers, bound)).flatten()
        });
        let mut report = match merging {
            None => self.explored(Locals::AsTheyAre),
            Some(merging) => match self.explored(Locals::Merged(merging)) {
                // A fault with merged local states may be that of another state, or none at all.
                Err(Unchecked::Fault(_)) => self.explored(Locals::MergedNoMore),
                // The kept search has already ended without merging.
                Err(Unchecked::Checkpoint(CheckpointError::Asked { theirs, .. }))
                    if theirs.ends_with(MERGED_NO_MORE) =>
                {
                    self.explored(Locals::MergedNoMore)
                }
                report => report,
            },
        }?;
        report.elapsed += started.elapsed();
        report.timings = timings.list();
        Ok(report)
    }

    /// Decides the properties of a subject, some of whose local states may be merged. The reported
    /// time before this call is only that of the kept search.
    fn explored(&self, locals: Locals) -> Result<Report, Unchecked> {
        let Self { subject, options, progress, checkpoint, timings } = *self;
        let rules = rules(subject, options);
        let started = Instant::now();
        // An earlier search with merged local states may have ended.
        progress.finished.store(false, Relaxed);
        [&progress.resumed, &progress.kept].into_iter().for_each(|count| count.store(0, Relaxed));
        let mut space = Space::new(subject, options.registers, rules.relabel.then_some(rules.gap))?;
        let (mut merged, in_words) = (None, locals.in_words());
        if let Locals::Merged(merging) = locals {
            merged = Some(merging.locals);
            space.merge(merging);
        }
        let space = Mutex::new(space);
        let room = Room::new(options.max_memory, options.disk.as_deref());
        let search = Search {
            space: &space,
            rules,
            passages: options.passages.unwrap_or(0),
            watch: watched(subject, &options.properties),
            max_states: options.max_states,
            workers: options.workers.max(1),
            progress,
            room: &room,
            keeper: None,
        };
        let mut conclude = Conclude::new(subject, options, search, started, timings);
        let mut report = match checkpoint {
            None => search.run(&mut conclude)?,
            Some(checkpoint) => {
                let decides =
                    options.properties.iter().any(|&property| safety_event(property) == 0);
                let asked = conclude.asked(&checkpoint.more, in_words);
                let mut keeper = Keeper::new(checkpoint, asked, decides);
                space.lock().expect("no worker panics").lessons = Some(Vec::new());
                let saved = keeper.load(&search)?;
                conclude.before = keeper.before();
                let report =
                    Search { keeper: Some(&keeper), ..search }.run_from(saved, &mut conclude);
                let useless = report.as_ref().map_or(merged.is_some(), |report| !report.resumable);
                if useless {
                    keeper.remove();
                }
                report?
            }
        };
        report.locals = merged;
        report.elapsed = conclude.before;
        Ok(report)
    }
}

/// Returns the rules of the search for these options.
fn rules(subject: &dyn Subject, options: &Options) -> Rules {
    let size = subject.size();
    let retries = subject.attempts().map(|most| options.retries.unwrap_or(most));
    // With any number of attempts, tickets have to be relabelled. Otherwise there would be no end
    // of them.
    let endless =
        options.passages.is_none() || options.endless.is_some() || retries == Some(ANY_NUMBER);
    let relabel = options.relabel.unwrap_or(endless || options.registers == RegisterKind::Safe)
        && has_tickets(subject);
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

/// Returns the events at which the search stops, because they violate one of the properties.
fn watched(subject: &dyn Subject, properties: &[Property]) -> u16 {
    let watch = properties.iter().fold(0, |watch, &property| watch | safety_event(property));
    // A register that is too large at the start is known already, and must not stop the search for
    // the other properties.
    if Oversized::at_start(subject).is_some() { watch & !event::EXCEEDS } else { watch }
}

/// Returns whether any register holds tickets, or may return one where a read overlaps a write: a
/// register that begins with ∞ shows none.
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

/// Returns whether a domain has more values with a ticket than without; `count` counts its values
/// with these tickets.
fn ticket_values(count: impl Fn(&[Ticket]) -> Option<usize>) -> bool {
    count(&[Ticket::ZERO]) > count(&[])
}

/// Returns as a list item how many attempts are followed, if the algorithm makes any.
pub fn attempts(subject: &dyn Subject, most: Option<u32>) -> String {
    match most {
        _ if subject.attempts().is_none() => String::new(),
        None => ", any number of attempts".into(),
        Some(1) => ", at most 1 attempt per passage".into(),
        Some(most) => format!(", at most {most} attempts per passage"),
    }
}

/// Returns as a list item how many processes are killed, if any are.
pub fn kills(subject: &dyn Subject) -> String {
    match subject.kills() {
        None => String::new(),
        Some(ANY_NUMBER) => ", any passage killed at any step".into(),
        Some(1) => ", at most 1 kill, at any step, and the passage made again".into(),
        Some(most) => format!(", at most {most} kills, at any step, and the passages made again"),
    }
}
