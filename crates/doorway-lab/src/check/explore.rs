//! Breadth-first search over all interleavings, level by level, by as many workers as there are cores.
//!
//! Each worker owns a share of the states ([`Plan::owner`]): only it looks them up, stores them and expands them. Successors
//! that belong to another worker are mailed to it in bundles. No lock is taken per state.

use std::sync::{
    Barrier, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use super::{
    expand::{Expander, Interrupt, Rules, Sink, Step, event},
    pack::{Key, Plan, hash},
    space::Space,
    store::Shard,
};
use crate::replay::Fault;

/// How many keys are looked up at once.
const BATCH: usize = 256;
/// How many successors are remembered as passed on already: as many as the processor's nearest caches hold.
const RECENT: usize = 1 << 13;
/// How many keys are mailed at once.
const BUNDLE: usize = 4096;

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
    pub(crate) events: u8,
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
    pub(crate) watch: u8,
    /// Whether an overtaking is a violation, where that depends on the state.
    pub(crate) overtaking: Option<&'a (dyn Fn(&Step<W>) -> bool + Sync)>,
    pub(crate) max_states: u64,
    pub(crate) progress: &'a Progress,
}

/// Keys with their hashes, on their way to the worker that owns them.
type Bundle<const W: usize> = Vec<(Key<W>, u64)>;

struct Shared<const W: usize> {
    mail: Vec<Mutex<Vec<Bundle<W>>>>,
    barrier: Barrier,
    /// Set when the level cannot be finished.
    abort: AtomicBool,
    trouble: Mutex<Option<Interrupt>>,
    found: Mutex<Option<Found<W>>>,
    new_states: AtomicUsize,
    transitions: AtomicU64,
}

/// Explores until there is nothing more, or a reason to stop; `transitions` counts the steps of finished levels.
pub(crate) fn explore<const W: usize>(
    task: &Task<'_, '_, W>,
    shards: &mut [Shard<W>],
    transitions: &mut u64,
) -> End<W> {
    let shared = Shared {
        mail: shards.iter().map(|_| Mutex::new(Vec::new())).collect(),
        barrier: Barrier::new(shards.len()),
        abort: AtomicBool::new(false),
        trouble: Mutex::new(None),
        found: Mutex::new(None),
        new_states: AtomicUsize::new(0),
        transitions: AtomicU64::new(*transitions),
    };
    let workers = shards.len();
    let end = if workers == 1 {
        work(task, &shared, &mut shards[0], 0, 1)
    } else {
        std::thread::scope(|scope| {
            let handles: Vec<_> = shards
                .iter_mut()
                .enumerate()
                .map(|(me, shard)| {
                    let shared = &shared;
                    scope.spawn(move || work(task, shared, shard, me, workers))
                })
                .collect();
            let mut ends = handles.into_iter().map(|handle| handle.join().expect("a worker does not panic"));
            let first = ends.next();
            ends.for_each(drop);
            first.expect("there is a worker")
        })
    };
    *transitions = shared.transitions.load(Relaxed);
    match end {
        Stopped::Exhausted => End::Exhausted,
        Stopped::Full => End::Full,
        Stopped::Cancelled => End::Cancelled,
        Stopped::Trouble => match shared.trouble.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(Interrupt::Fault(fault)) => End::Fault(fault),
            _ => End::Narrow,
        },
        Stopped::Violation => match shared.found.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(found) => End::Violation(found),
            None => unreachable!("a violation was found"),
        },
    }
}

#[derive(Clone, Copy, Debug)]
enum Stopped {
    Exhausted,
    Violation,
    Full,
    Cancelled,
    Trouble,
}

/// What one worker does. All workers return the same.
fn work<const W: usize>(
    task: &Task<'_, '_, W>,
    shared: &Shared<W>,
    shard: &mut Shard<W>,
    me: usize,
    workers: usize,
) -> Stopped {
    let mut worker = Worker {
        task,
        shared,
        expander: Expander::new(task.space, task.plan, task.rules),
        me,
        workers,
        recent: vec![[0; W]; RECENT],
        own: Vec::with_capacity(2 * BATCH),
        out: (0..workers).map(|_| Vec::with_capacity(BUNDLE)).collect(),
    };
    loop {
        let transitions = worker.level(shard);
        shared.barrier.wait();
        if shared.abort.load(Relaxed) {
            // Bundles in flight are dropped: the level will be done again, and then they are sent again.
            return Stopped::Trouble;
        }
        worker.receive(shard);
        let new = shard.log.len() - shard.level_end;
        shared.new_states.fetch_add(new, Relaxed);
        shared.transitions.fetch_add(transitions, Relaxed);
        shared.barrier.wait();
        let found = shared.found.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let new = shared.new_states.load(Relaxed) as u64;
        let states = task.progress.states.load(Relaxed) + new;
        let cancelled = task.progress.cancel.load(Relaxed);
        shard.levels.push(shard.level_end);
        shard.level_end = shard.log.len();
        // Everybody has read the totals before anybody changes them for the next level.
        if shared.barrier.wait().is_leader() {
            shared.new_states.store(0, Relaxed);
            task.progress.states.store(states, Relaxed);
            task.progress.frontier.store(new, Relaxed);
            task.progress.depth.fetch_add(1, Relaxed);
        }
        let stopped = if found {
            Some(Stopped::Violation)
        } else if new == 0 {
            Some(Stopped::Exhausted)
        } else if states > task.max_states {
            Some(Stopped::Full)
        } else if cancelled {
            Some(Stopped::Cancelled)
        } else {
            None
        };
        shared.barrier.wait();
        if let Some(stopped) = stopped {
            return stopped;
        }
    }
}

struct Worker<'a, 's, 't, const W: usize> {
    task: &'t Task<'a, 's, W>,
    shared: &'t Shared<W>,
    expander: Expander<'a, 's, W>,
    me: usize,
    workers: usize,
    recent: Vec<Key<W>>,
    own: Bundle<W>,
    out: Vec<Bundle<W>>,
}

impl<const W: usize> Worker<'_, '_, '_, W> {
    /// Expands the states of the current level; returns how many steps there are.
    fn level(&mut self, shard: &mut Shard<W>) -> u64 {
        let mut transitions = 0;
        let (start, end) = (*shard.levels.last().expect("there is a level"), shard.level_end);
        for at in start..end {
            let key = shard.log[at];
            if let Err(interrupt) = self.expand(&key, &mut transitions) {
                let mut trouble = self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner);
                if !matches!(*trouble, Some(Interrupt::Fault(_))) {
                    *trouble = Some(interrupt);
                }
                self.shared.abort.store(true, Relaxed);
                break;
            }
            if self.own.len() >= BATCH {
                shard.insert_all(&self.own);
                self.own.clear();
                if self.workers > 1 {
                    self.receive(shard);
                }
                if self.shared.abort.load(Relaxed) {
                    break;
                }
            }
        }
        shard.insert_all(&self.own);
        self.own.clear();
        for other in 0..self.workers {
            self.send(other);
        }
        transitions
    }

    #[inline(always)]
    fn expand(&mut self, key: &Key<W>, transitions: &mut u64) -> Result<(), Interrupt> {
        let Self { task, shared, expander, me, workers, recent, own, out } = self;
        let (me, workers) = (*me, *workers);
        expander.expand(key, Dispatch { task, shared, me, workers, recent, own, out, from: key, transitions })
    }

    fn send(&mut self, other: usize) {
        if !self.out[other].is_empty() {
            let bundle = std::mem::take(&mut self.out[other]);
            self.shared.mail[other].lock().unwrap_or_else(PoisonError::into_inner).push(bundle);
        }
    }

    fn receive(&mut self, shard: &mut Shard<W>) {
        let bundles = std::mem::take(&mut *self.shared.mail[self.me].lock().unwrap_or_else(PoisonError::into_inner));
        for bundle in bundles {
            for batch in bundle.chunks(BATCH) {
                shard.insert_all(batch);
            }
        }
    }
}

/// Sends the successors of one state to the workers that own them.
struct Dispatch<'e, 'a, 's, const W: usize> {
    task: &'e Task<'a, 's, W>,
    shared: &'e Shared<W>,
    me: usize,
    workers: usize,
    recent: &'e mut [Key<W>],
    own: &'e mut Bundle<W>,
    out: &'e mut [Bundle<W>],
    from: &'e Key<W>,
    transitions: &'e mut u64,
}

impl<const W: usize> Sink<W> for Dispatch<'_, '_, '_, W> {
    fn step(&mut self, step: Step<W>) {
        if (step.events & self.task.watch != 0 || step.overtaken != 0) && is_violation(self.task, &step) {
            let new = Found { from: *self.from, to: step.key, events: step.events };
            let mut found = self.shared.found.lock().unwrap_or_else(PoisonError::into_inner);
            // The least of them, so that the answer does not depend on who was faster.
            if found.is_none_or(|old| new < old) {
                *found = Some(new);
            }
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
        if *recent == key {
            return;
        }
        *recent = key;
        if self.workers == 1 {
            self.own.push((key, hash));
            return;
        }
        match self.task.plan.owner(&key, self.workers) {
            mine if mine == self.me => self.own.push((key, hash)),
            other => {
                self.out[other].push((key, hash));
                if self.out[other].len() >= BUNDLE {
                    let bundle = std::mem::replace(&mut self.out[other], Vec::with_capacity(BUNDLE));
                    self.shared.mail[other].lock().unwrap_or_else(PoisonError::into_inner).push(bundle);
                }
            }
        }
    }
}

fn is_violation<const W: usize>(task: &Task<'_, '_, W>, step: &Step<W>) -> bool {
    step.events & task.watch & !event::OVERTAKES != 0
        || match task.overtaking {
            Some(judge) => step.overtaken != 0 && judge(step),
            None => step.events & task.watch & event::OVERTAKES != 0,
        }
}
