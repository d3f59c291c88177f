//! Breadth-first search over all interleavings, level by level, by as many workers as there are
//! cores.
//!
//! The workers share one table of states. Each worker takes a piece of the current level, expands
//! it, and puts the successors into the table a batch at a time. The worker that is first to put a
//! state there has the state in its part of the next level.

use std::{
    io,
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

use super::{
    checkpoint::Keeper,
    expand::{Expander, Interrupt, Rules, Sink, Step},
    keys::Part,
    pack::{Key, Plan, hash},
    room::Room,
    space::Space,
    store::{Apart, Level, Store, Table, size},
    watch::Progress,
};
use crate::fault::Fault;

/// The number of keys that are looked up at once.
const BATCH: usize = 256;
/// The approximate number of pieces of a level per worker. Large pieces keep related states
/// together; small pieces keep all workers busy to the end.
const PIECES: usize = 12;
/// The number of successors that are remembered as passed on already: as many as the processor's
/// nearest caches hold.
const RECENT: usize = 1 << 13;
/// A level with fewer states is not worth a thread.
const SMALL: usize = 2048;

/// A step that violates a property.
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
    /// There are no more states.
    Exhausted,
    /// A watched event happened; no shorter run shows it.
    Violation(Found<W>),
    /// There are more states than the limit.
    Full,
    /// The watcher cancelled the search.
    Cancelled,
    /// Neither memory nor disk holds more states; with the message of the system.
    NoRoom(String),
    /// A number outgrew its field.
    Narrow,
    /// The algorithm cannot be explored.
    Fault(Fault),
}

/// The parameters of a search.
pub(crate) struct Task<'a, 's, const W: usize> {
    pub(crate) space: &'a Mutex<Space<'s>>,
    pub(crate) plan: &'a Plan,
    pub(crate) rules: Rules,
    /// The events that are violations.
    pub(crate) watch: u16,
    pub(crate) max_states: u64,
    pub(crate) workers: usize,
    pub(crate) progress: &'a Progress,
    pub(crate) room: &'a Arc<Room>,
    pub(crate) keeper: Option<&'a Keeper>,
}

/// Explores until there are no more states, or a reason to stop; `transitions` counts the steps of
/// finished levels.
///
/// A level that is not finished because a number outgrew its field stays as it is, with its
/// successors so far in the last level. It is expanded again under a wider plan.
pub(crate) fn explore<const W: usize>(
    task: &Task<'_, '_, W>,
    store: &mut Store<W>,
    transitions: &mut u64,
) -> End<W> {
    if let Some(end) = resumed(task, store) {
        return end;
    }
    let mut workers: Vec<Worker<'_, '_, W>> =
        (0..task.workers).map(|_| Worker::new(task)).collect();
    loop {
        match expand_level(task, store, &mut workers, *transitions) {
            Ok(()) => {}
            Err(Halt::Trouble(Interrupt::Fault(fault))) => return End::Fault(fault),
            Err(Halt::Trouble(Interrupt::Narrow)) => return End::Narrow,
            Err(Halt::NoRoom(error)) => {
                keep(task, store, *transitions);
                store.levels.push(Vec::new());
                return End::NoRoom(no_room(task, &error));
            }
            Err(Halt::Cancelled) => {
                keep(task, store, *transitions);
                // As after a finished level: this level is the last one that counts.
                store.levels.push(Vec::new());
                return End::Cancelled;
            }
        }
        let new = store.levels.last().map_or(0, size);
        *transitions +=
            workers.iter_mut().map(|worker| std::mem::take(&mut worker.transitions)).sum::<u64>();
        // The smallest violation, so that the answer does not depend on which worker was faster.
        let found = workers.iter().filter_map(|worker| worker.found).min();
        store.levels.push(Vec::new());
        let states = task.progress.states.fetch_add(new as u64, Relaxed) + new as u64;
        task.progress.frontier.store(new as u64, Relaxed);
        task.progress.depth.fetch_add(1, Relaxed);
        task.progress.note_level(new as u64, task.room);
        if let Some(found) = found {
            return End::Violation(found);
        }
        if new == 0 {
            if let Some(keeper) = task.keeper.filter(|keeper| keeper.is_worth_finishing()) {
                let kept = keeper.save(task.space, task.plan, &store.levels, &[], *transitions);
                keeper.tell(task.progress, kept);
            }
            return End::Exhausted;
        }
        if states > task.max_states {
            keep(task, store, *transitions);
            return End::Full;
        }
        if task.progress.cancel.load(Relaxed) {
            keep(task, store, *transitions);
            return End::Cancelled;
        }
    }
}

/// Reports the progress of a search at its beginning, which may be anywhere. Returns how it ended,
/// if it has ended.
fn resumed<const W: usize>(task: &Task<'_, '_, W>, store: &Store<W>) -> Option<End<W>> {
    let [before @ .., next] = &store.levels[..] else { unreachable!("there is a level to expand") };
    let states: usize = before.iter().map(size).sum();
    let frontier = before.last().map_or(0, size);
    task.progress.states.store(states as u64, Relaxed);
    task.progress.frontier.store(frontier as u64, Relaxed);
    task.progress.depth.store(before.len() as u64 - 1, Relaxed);
    task.progress.begin(before.iter().map(|level| size(level) as u64), task.room);
    match () {
        () if frontier == 0 => Some(End::Exhausted),
        () if before.len() > 1 && size(next) == 0 && states as u64 > task.max_states => {
            Some(End::Full)
        }
        () => None,
    }
}

/// Writes a stopped search to its file, if it has one.
fn keep<const W: usize>(task: &Task<'_, '_, W>, store: &Store<W>, transitions: u64) {
    if let Some(keeper) = task.keeper {
        let kept = keeper.save(task.space, task.plan, &store.levels, &[], transitions);
        keeper.tell(task.progress, kept);
    }
}

/// Why a level was not finished.
enum Halt {
    Trouble(Interrupt),
    NoRoom(io::Error),
    Cancelled,
}

/// Expands the last level but one into the last level.
fn expand_level<const W: usize>(
    task: &Task<'_, '_, W>,
    store: &mut Store<W>,
    workers: &mut [Worker<'_, '_, W>],
    transitions: u64,
) -> Result<(), Halt> {
    let mut next = store.levels.pop().expect("there is a level to fill");
    next.resize_with(task.workers, Part::default);
    workers.iter_mut().zip(next).for_each(|(worker, part)| worker.next = part);
    let result = fill_level(task, store, workers, transitions);
    store.levels.push(workers.iter_mut().map(|worker| std::mem::take(&mut worker.next)).collect());
    store.levels.last_mut().expect("it was pushed").iter_mut().for_each(Part::seal);
    result
}

/// Expands a level into the parts of the workers. Whenever a worker cannot go on, all workers pause
/// until it can.
fn fill_level<const W: usize>(
    task: &Task<'_, '_, W>,
    store: &mut Store<W>,
    workers: &mut [Worker<'_, '_, W>],
    transitions: u64,
) -> Result<(), Halt> {
    let next = Apart(AtomicUsize::new(0));
    loop {
        let frontier = Frontier::new(
            store.levels.last().expect("there is a level to expand"),
            task.workers,
            &next,
        );
        // Levels grow and shrink slowly: the next level has about as many states as this one.
        let likely = (frontier.total / task.workers).saturating_sub(workers[0].next.len());
        workers
            .iter_mut()
            .try_for_each(|worker| worker.next.reserve(likely, task.room))
            .map_err(Halt::NoRoom)?;
        let shared =
            Shared { table: &store.table, frontier: &frontier, stop: AtomicBool::new(false) };
        let (first, others) = workers.split_first_mut().expect("there is a worker");
        std::thread::scope(|scope| {
            if frontier.total >= SMALL {
                for worker in others {
                    scope.spawn(|| worker.work(task, &shared));
                }
            }
            first.work(task, &shared);
        });
        let mut troubles: Vec<Halt> =
            workers.iter_mut().filter_map(|worker| worker.trouble.take()).collect();
        if !troubles.is_empty() {
            // A fault is more informative than other trouble.
            let fault = troubles
                .iter()
                .position(|trouble| matches!(trouble, Halt::Trouble(Interrupt::Fault(_))));
            return Err(troubles.swap_remove(fault.unwrap_or(0)));
        }
        if !workers.iter().any(Worker::is_paused) {
            return Ok(());
        }
        if task.progress.cancel.load(Relaxed) {
            return Err(Halt::Cancelled);
        }
        if let Some(keeper) = task.keeper.filter(|keeper| keeper.is_due()) {
            let parts: Vec<&Part<W>> = workers.iter().map(|worker| &worker.next).collect();
            let kept = keeper.save(task.space, task.plan, &store.levels, &parts, transitions);
            keeper.tell(task.progress, kept);
        }
        let more = workers.iter().map(|worker| worker.batch.len() + BATCH).max().unwrap_or(0)
            * task.workers;
        if store.table.is_full(more) {
            store.grow(store.table.len() + more, task.workers, task.room).map_err(Halt::NoRoom)?;
        }
        task.progress.note_room(task.room);
    }
}

/// Returns a message that there is no room for more states, and where.
fn no_room<const W: usize>(task: &Task<'_, '_, W>, error: &io::Error) -> String {
    format!("{} in {}", error, task.room.directory().display())
}

/// The states of the level that is being expanded, in pieces for the workers.
struct Frontier<'l, const W: usize> {
    parts: &'l [Part<W>],
    total: usize,
    piece: usize,
    next: &'l Apart<AtomicUsize>,
}

impl<'l, const W: usize> Frontier<'l, W> {
    fn new(parts: &'l Level<W>, workers: usize, next: &'l Apart<AtomicUsize>) -> Self {
        let total = size(parts);
        Self { parts, total, piece: total / (workers * PIECES) + 1, next }
    }

    /// Takes the next piece that no worker has taken.
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

/// The state of one worker, on cache lines of its own because it is written all the time.
#[repr(align(128))]
struct Worker<'a, 's, const W: usize> {
    expander: Expander<'a, 's, W>,
    /// The rest of the piece that the worker has taken.
    piece: Range<usize>,
    /// Successors that are not in the table yet.
    batch: Vec<(Key<W>, u64)>,
    recent: Vec<Key<W>>,
    /// The states that this worker was first to find.
    next: Part<W>,
    transitions: u64,
    found: Option<Found<W>>,
    trouble: Option<Halt>,
}

impl<'a, 's, const W: usize> Worker<'a, 's, W> {
    fn new(task: &Task<'a, 's, W>) -> Self {
        Self {
            expander: Expander::new(task.space, task.plan, task.rules),
            piece: 0..0,
            batch: Vec::with_capacity(2 * BATCH),
            recent: vec![[0; W]; RECENT],
            next: Part::default(),
            transitions: 0,
            found: None,
            trouble: None,
        }
    }

    /// Returns whether the worker stopped before it was done.
    fn is_paused(&self) -> bool {
        !self.batch.is_empty() || !self.piece.is_empty()
    }

    /// Expands pieces of the level until there are no more, or there is trouble or no room.
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
                self.trouble = Some(Halt::Trouble(trouble));
                shared.stop.store(true, Relaxed);
                return;
            }
            if self.batch.len() >= BATCH {
                self.flush(task, shared);
            }
        }
    }

    /// Puts the batch into the table, or requests a larger table. Then pauses if there is anything
    /// else to do.
    fn flush(&mut self, task: &Task<'_, '_, W>, shared: &Shared<'_, W>) {
        // Other workers may be about to put in as many keys, and have not counted them yet.
        let full = shared.table.is_full((self.batch.len() + BATCH) * task.workers);
        if full || task.progress.cancel.load(Relaxed) || task.keeper.is_some_and(Keeper::is_due) {
            shared.stop.store(true, Relaxed);
            return;
        }
        if let Err(error) = self.next.reserve(self.batch.len(), task.room) {
            self.trouble = Some(Halt::NoRoom(error));
            shared.stop.store(true, Relaxed);
            return;
        }
        let next = &mut self.next;
        shared.table.insert_all(&self.batch, |key| next.push(key));
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
        // Two steps of different processes mostly commute, so most states are found twice within a
        // short time.
        let recent = &mut self.recent[hash as usize % RECENT];
        if *recent != key {
            *recent = key;
            self.batch.push((key, hash));
        }
    }
}
