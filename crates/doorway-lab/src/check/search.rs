//! A search from beginning to end: finds out how wide keys have to be, widens them as automata are learned, and hands the
//! finished search over to whoever wants to look at it.

use std::sync::{Mutex, atomic::Ordering::Relaxed};

use rustc_hash::FxHashSet;

use super::{
    expand::{Charge, Expander, Rules, Step},
    explore::{End, Progress, Task, explore},
    pack::{Key, Plan, Widths, bits_for, hash},
    space::Space,
    store::{Level, Store},
};
use crate::fault::Fault;

/// The most words that a packed state may take.
pub(crate) const MAX_WORDS: usize = 64;

/// A search that has ended.
pub(crate) struct Searched<'a, 's, const W: usize> {
    pub(crate) space: &'a Mutex<Space<'s>>,
    pub(crate) plan: &'a Plan,
    pub(crate) rules: Rules,
    pub(crate) store: Store<W>,
    pub(crate) end: End<W>,
    pub(crate) transitions: u64,
}

/// What to do with a search that has ended, whatever the width of its keys.
pub(crate) trait Then {
    type Out;
    fn then<const W: usize>(&mut self, searched: &Searched<'_, '_, W>) -> Self::Out;
}

/// What to search for, and how.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a, 's> {
    pub(crate) space: &'a Mutex<Space<'s>>,
    pub(crate) rules: Rules,
    /// Passages per process, if they are bounded.
    pub(crate) passages: u32,
    pub(crate) watch: u16,
    pub(crate) max_states: u64,
    pub(crate) workers: usize,
    pub(crate) progress: &'a Progress,
}

/// What has been found under a plan that turned out too narrow.
struct Saved {
    plan: Plan,
    /// For each level, the words of its states; the last one is not complete.
    levels: Vec<Vec<u64>>,
    /// Words per state.
    stride: usize,
    transitions: u64,
}

enum Attempt<T> {
    Done(T),
    Narrow(Box<Saved>),
}

impl Search<'_, '_> {
    /// Searches, and hands the result over.
    pub(crate) fn run<T: Then>(&self, then: &mut T) -> T::Out {
        let mut saved = None;
        loop {
            let plan = Plan::new(&self.widths().roomy());
            macro_rules! attempt {
                ($($w:literal),*) => {
                    match plan.words {
                        $(w if w <= $w => self.attempt::<$w, T>(&plan, saved.take(), then),)*
                        w => return self.refuse(Fault::StateTooLarge(w), &plan, then),
                    }
                };
            }
            match attempt!(1, 2, 3, 4, 8, 16, 64) {
                Attempt::Done(out) => return out,
                Attempt::Narrow(so_far) => saved = Some(*so_far),
            }
        }
    }

    /// Hands over a search that cannot be made.
    fn refuse<T: Then>(&self, fault: Fault, plan: &Plan, then: &mut T) -> T::Out {
        let (store, end) = (Store::<1>::new(Vec::new()), End::Fault(fault));
        then.then(&Searched { space: self.space, plan, rules: self.rules, store, end, transitions: 0 })
    }

    /// The bits that what is known so far needs.
    fn widths(&self) -> Widths {
        let space = self.space.lock().expect("no worker panics");
        Widths {
            registers: space.registers.iter().map(|values| bits_for(values.len().max(2))).collect(),
            locals: (0..space.subject.size().n).map(|p| bits_for(space.count(p).max(8))).collect(),
            passages: if self.rules.bounded { bits_for(self.passages as usize + 1) } else { 0 },
            retries: self.rules.retries.map_or(0, |most| bits_for(most as usize + 1)),
            kills: self.rules.kills.map_or(0, |most| bits_for(most as usize + 1)),
            ghost: self.rules.ghost.bits(space.subject.size().n),
            copies: matches!(self.rules.charge, Some(Charge::Caches(_))),
        }
    }

    fn attempt<const W: usize, T: Then>(&self, plan: &Plan, saved: Option<Saved>, then: &mut T) -> Attempt<T::Out> {
        let task = Task {
            space: self.space,
            plan,
            rules: self.rules,
            watch: self.watch,
            max_states: self.max_states,
            workers: self.workers,
            progress: self.progress,
        };
        let (mut store, mut transitions) = match saved {
            None => {
                let first = Expander::<W>::new(self.space, plan, self.rules).initial(self.passages);
                self.progress.states.store(1, Relaxed);
                self.progress.depth.store(0, Relaxed);
                (Store::new(vec![vec![vec![first]], vec![]]), 0)
            }
            Some(saved) => {
                let repack = |words: &Vec<u64>| -> Level<W> {
                    vec![words.chunks_exact(saved.stride).map(|key| saved.plan.repack(key, plan)).collect()]
                };
                (Store::new(saved.levels.iter().map(repack).collect()), saved.transitions)
            }
        };
        let end = explore(&task, &mut store, &mut transitions);
        if let End::Narrow = end {
            let words = |level: &Level<W>| level.iter().flatten().flatten().copied().collect();
            let levels = store.levels.iter().map(words).collect();
            return Attempt::Narrow(Box::new(Saved { plan: plan.clone(), levels, stride: W, transitions }));
        }
        let searched = Searched { space: self.space, plan, rules: self.rules, store, end, transitions };
        Attempt::Done(then.then(&searched))
    }
}

impl<const W: usize> Searched<'_, '_, W> {
    /// A shortest run from the start to a state of this depth: every state on it with the step taken there.
    ///
    /// Nothing was stored for this. Each state was found from one of the level before, so that level is looked through
    /// again: at worst the whole search is done once more, and only when there is something to show.
    pub(crate) fn trail(&self, to: Key<W>, depth: usize) -> Vec<(Key<W>, Step<W>)> {
        let mut expander = Expander::new(self.space, self.plan, self.rules);
        let mut trail = Vec::new();
        let mut target = to;
        for level in (0..depth).rev() {
            let (from, step) = self.store.levels[level]
                .iter()
                .flatten()
                .find_map(|key| step_to(&mut expander, key, &target).map(|step| (*key, step)))
                .expect("every state was found from one of the level before");
            trail.push((from, step));
            target = from;
        }
        trail.reverse();
        trail
    }

    /// The distinct values of the whole shared memory.
    pub(crate) fn shared_values(&self, workers: usize) -> usize {
        let count = |worker: usize| {
            let mut values: FxHashSet<Key<W>> = FxHashSet::default();
            // States that were found together mostly have the same memory, so most are not worth a look into the set.
            // No value of a memory is all ones: the top bit is not part of it. All zeros is what it starts with.
            let mut recent = [[u64::MAX; W]; 1 << 12];
            for part in self.store.levels.iter().flatten().skip(worker).step_by(workers) {
                for key in part {
                    let mut value = *key;
                    value.iter_mut().zip(&self.plan.shared).for_each(|(word, mask)| *word &= mask);
                    let seen = &mut recent[hash(&value) as usize % (1 << 12)];
                    if *seen != value {
                        *seen = value;
                        values.insert(value);
                    }
                }
            }
            values
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..workers).map(|worker| scope.spawn(move || count(worker))).collect();
            let mut all = count(0);
            others.into_iter().for_each(|other| all.extend(other.join().expect("no worker panics")));
            all.len()
        })
    }

    /// The bytes that a state takes, tables included.
    pub(crate) fn bytes_per_state(&self) -> usize {
        self.store.bytes() / self.store.states().max(1)
    }
}

/// The step that leads from one state to the other, if there is one.
pub(crate) fn step_to<const W: usize>(
    expander: &mut Expander<'_, '_, W>,
    from: &Key<W>,
    to: &Key<W>,
) -> Option<Step<W>> {
    let mut found = None;
    let expanded = expander.expand(from, |step: Step<W>| {
        if found.is_none() && step.key == *to {
            found = Some(step);
        }
    });
    expanded.ok().and(found)
}
