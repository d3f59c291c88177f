//! Breadth-first search over all interleavings, level by level, by as many workers as there are cores.
//!
//! The workers share one table of states. Each takes a piece of the current level, expands it, and puts the successors
//! into the table a batch at a time; whoever is first to put a state there has it in its part of the next level.

use std::{
    ops::Range,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

use super::{
    expand::{Expander, Interrupt, Rules, Sink, Step},
    pack::{Key, Plan, hash},
    space::Space,
    store::{Apart, Level, Store, Table},
};
use crate::fault::Fault;

/// How many keys are looked up at once.
const BATCH: usize = 256;
/// How many pieces of a level each worker gets, about: large pieces keep together what belongs together, small ones
/// keep everybody busy to the end.
const PIECES: usize = 12;
/// How many successors are remembered as passed on already: as many as the processor's nearest caches hold.
const RECENT: usize = 1 << 13;
/// Levels with fewer states are not worth a thread.
const SMALL: usize = 2048;

/// What is going on, for whoever watches.
#[derive(Debug, Default)]
pub struct Progress {
    /// States found.
    pub states: AtomicU64,
    /// States found and not yet expanded.
    pub frontier: AtomicU64,
    /// How many steps the search is away from the start.
    pub depth: AtomicU64,
    /// Set by the watcher to make the search stop.
    pub cancel: AtomicBool,
}

/// A step that must not be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Found<const W: usize> {
    /// The key before the step.
    pub(crate) from: Key<W>,
    /// The key after the step.
    pub(crate) to: Key<W>,
    pub(crate) events: u16,
}

/// Why a search ended.
#[derive(Debug)]
pub(crate) enum End<const W: usize> {
    /// There is nothing more.
    Exhausted,
    /// Something that is watched for happened; no shorter run shows it.
    Violation(Found<W>),
    /// There are more states than wanted.
    Full,
    /// The watcher asked for it.
    Cancelled,
    /// A number outgrew its field.
    Narrow,
    /// The algorithm cannot be explored.
    Fault(Fault),
}

/// All that a search needs to know.
pub(crate) struct Task<'a, 's, const W: usize> {
    pub(crate) space: &'a Mutex<Space<'s>>,
    pub(crate) plan: &'a Plan,
    pub(crate) rules: Rules,
    /// Which events are violations.
    pub(crate) watch: u16,
    pub(crate) max_states: u64,
    pub(crate) workers: usize,
    pub(crate) progress: &'a Progress,
}

/// Explores until there is nothing more, or a reason to stop; `transitions` counts the steps of finished levels.
///
/// A level that could not be finished because a number outgrew its field is left as it is, with what was found from it
/// in the last level: to be expanded again under a wider plan.
pub(crate) fn explore<const W: usize>(task: &Task<'_, '_, W>, store: &mut Store<W>, transitions: &mut u64) -> End<W> {
    let mut workers: Vec<Worker<'_, '_, W>> = (0..task.workers).map(|_| Worker::new(task)).collect();
    loop {
        let [.., frontier, next] = &mut store.levels[..] else { unreachable!("there is a level to expand") };
        let frontier = Frontier::new(frontier, task.workers);
        next.resize_with(task.workers, Vec::new);
        // Levels grow and shrink slowly: the next one will be about as large as this.
        next.iter_mut().for_each(|part| part.reserve(frontier.total / task.workers));
        workers.iter_mut().zip(next.iter_mut()).for_each(|(worker, next)| std::mem::swap(&mut worker.next, next));
        loop {
            let shared = Shared { table: &store.table, frontier: &frontier, stop: AtomicBool::new(false) };
            let (first, others) = workers.split_first_mut().expect("there is a worker");
            std::thread::scope(|scope| {
                if frontier.total >= SMALL {
                    for worker in others {
                        scope.spawn(|| worker.work(task, &shared));
                    }
                }
                first.work(task, &shared);
            });
            let paused = workers.iter().any(Worker::is_paused);
            if !paused || workers.iter().any(|worker| worker.trouble.is_some()) {
                break;
            }
            let more = workers.iter().map(|worker| worker.batch.len() + BATCH).max().unwrap_or(0) * task.workers;
            store.table = store.table.grown(store.table.len() + more, task.workers);
        }
        workers.iter_mut().zip(next.iter_mut()).for_each(|(worker, next)| std::mem::swap(&mut worker.next, next));
        let troubles: Vec<Interrupt> = workers.iter_mut().filter_map(|worker| worker.trouble.take()).collect();
        if !troubles.is_empty() {
            let fault = troubles.into_iter().find_map(|trouble| match trouble {
                Interrupt::Fault(fault) => Some(fault),
                Interrupt::Narrow => None,
            });
            return fault.map_or(End::Narrow, End::Fault);
        }
        let new: usize = next.iter().map(Vec::len).sum();
        *transitions += workers.iter_mut().map(|worker| std::mem::take(&mut worker.transitions)).sum::<u64>();
        // The least of them, so that the answer does not depend on who was faster.
        let found = workers.iter().filter_map(|worker| worker.found).min();
        store.levels.push(Vec::new());
        let states = task.progress.states.fetch_add(new as u64, Relaxed) + new as u64;
        task.progress.frontier.store(new as u64, Relaxed);
        task.progress.depth.fetch_add(1, Relaxed);
        if let Some(found) = found {
            return End::Violation(found);
        }
        if new == 0 {
            return End::Exhausted;
        }
        if states > task.max_states {
            return End::Full;
        }
        if task.progress.cancel.load(Relaxed) {
            return End::Cancelled;
        }
    }
}

/// The states of the level that is being expanded, dealt out in pieces.
struct Frontier<'l, const W: usize> {
    parts: &'l [Vec<Key<W>>],
    total: usize,
    piece: usize,
    next: Apart<AtomicUsize>,
}

impl<'l, const W: usize> Frontier<'l, W> {
    fn new(parts: &'l Level<W>, workers: usize) -> Self {
        let total: usize = parts.iter().map(Vec::len).sum();
        Self { parts, total, piece: total / (workers * PIECES) + 1, next: Apart(AtomicUsize::new(0)) }
    }

    /// The next piece that nobody has taken.
    fn take(&self) -> Range<usize> {
        let start = self.next.0.fetch_add(self.piece, Relaxed).min(self.total);
        start..(start + self.piece).min(self.total)
    }

    fn get(&self, mut index: usize) -> Key<W> {
        for part in self.parts {
            if index < part.len() {
                return part[index];
            }
            index -= part.len();
        }
        unreachable!("a piece is inside the level")
    }
}

struct Shared<'l, const W: usize> {
    table: &'l Table<W>,
    frontier: &'l Frontier<'l, W>,
    /// Set when the level cannot go on, because of trouble or for lack of room.
    stop: AtomicBool,
}

/// What one worker has at hand, on cache lines of its own: it is written all the time.
#[repr(align(128))]
struct Worker<'a, 's, const W: usize> {
    expander: Expander<'a, 's, W>,
    /// What is left of the piece that it has taken.
    piece: Range<usize>,
    /// Successors that are not in the table yet.
    batch: Vec<(Key<W>, u64)>,
    recent: Vec<Key<W>>,
    /// The states that it was first to find.
    next: Vec<Key<W>>,
    transitions: u64,
    found: Option<Found<W>>,
    trouble: Option<Interrupt>,
}

impl<'a, 's, const W: usize> Worker<'a, 's, W> {
    fn new(task: &Task<'a, 's, W>) -> Self {
        Self {
            expander: Expander::new(task.space, task.plan, task.rules),
            piece: 0..0,
            batch: Vec::with_capacity(2 * BATCH),
            recent: vec![[0; W]; RECENT],
            next: Vec::new(),
            transitions: 0,
            found: None,
            trouble: None,
        }
    }

    /// Whether it stopped for lack of room.
    fn is_paused(&self) -> bool {
        !self.batch.is_empty() || !self.piece.is_empty()
    }

    /// Expands pieces of the level until there are none, or there is trouble or no room.
    fn work(&mut self, task: &Task<'_, '_, W>, shared: &Shared<'_, W>) {
        while !shared.stop.load(Relaxed) {
            if self.piece.is_empty() {
                self.piece = shared.frontier.take();
            }
            let Some(index) = self.piece.next() else {
                self.flush(task, shared);
                return;
            };
            let key = shared.frontier.get(index);
            if let Err(trouble) = self.expand(task, &key) {
                self.trouble = Some(trouble);
                shared.stop.store(true, Relaxed);
                return;
            }
            if self.batch.len() >= BATCH {
                self.flush(task, shared);
            }
        }
    }

    /// Puts the batch into the table, or asks for a larger one.
    fn flush(&mut self, task: &Task<'_, '_, W>, shared: &Shared<'_, W>) {
        // Others may be about to put in as much as this, and have not counted it yet.
        if shared.table.is_full((self.batch.len() + BATCH) * task.workers) {
            shared.stop.store(true, Relaxed);
            return;
        }
        let next = &mut self.next;
        shared.table.insert_all(&self.batch, |key| next.push(*key));
        self.batch.clear();
    }

    #[inline(always)]
    fn expand(&mut self, task: &Task<'_, '_, W>, key: &Key<W>) -> Result<(), Interrupt> {
        let Self { expander, batch, recent, transitions, found, .. } = self;
        expander.expand(key, Collect { task, from: key, batch, recent, transitions, found })
    }
}

/// Collects the successors of one state.
struct Collect<'e, 'a, 's, const W: usize> {
    task: &'e Task<'a, 's, W>,
    from: &'e Key<W>,
    batch: &'e mut Vec<(Key<W>, u64)>,
    recent: &'e mut [Key<W>],
    transitions: &'e mut u64,
    found: &'e mut Option<Found<W>>,
}

impl<const W: usize> Sink<W> for Collect<'_, '_, '_, W> {
    fn step(&mut self, step: Step<W>) {
        if step.events & self.task.watch != 0 {
            let new = Found { from: *self.from, to: step.key, events: step.events };
            *self.found = Some(self.found.map_or(new, |old| old.min(new)));
        }
        self.plain(step.p, step.index, step.key);
    }

    #[inline(always)]
    fn plain(&mut self, _: usize, _: u32, key: Key<W>) {
        *self.transitions += 1;
        if key == *self.from {
            return; // a failed wait
        }
        let hash = hash(&key);
        // Two steps of different processes mostly commute, so most states are found twice within a short time.
        let recent = &mut self.recent[hash as usize % RECENT];
        if *recent != key {
            *recent = key;
            self.batch.push((key, hash));
        }
    }
}
