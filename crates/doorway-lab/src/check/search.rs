//! A search from beginning to end. It finds out how wide keys have to be, widens them while
//! automata are learned, and hands the finished search over to its caller.

use std::{
    io,
    sync::{Arc, Mutex, atomic::Ordering::Relaxed},
};

use rustc_hash::FxHashSet;

use super::{
    checkpoint::Keeper,
    expand::{Charge, Expander, Rules, Step},
    explore::{End, Task, explore},
    keys::{List, Part},
    pack::{Key, Plan, Widths, bits_for, hash},
    room::Room,
    space::Space,
    store::{Level, Store},
    watch::Progress,
};
use crate::fault::Fault;

/// The largest number of words of a packed state.
pub(crate) const MAX_WORDS: usize = 64;

/// A search that has ended.
pub(crate) struct Searched<'a, 's, const W: usize> {
    pub(crate) space: &'a Mutex<Space<'s>>,
    pub(crate) plan: &'a Plan,
    pub(crate) rules: Rules,
    pub(crate) store: Store<W>,
    pub(crate) end: End<W>,
    pub(crate) transitions: u64,
    pub(crate) room: &'a Arc<Room>,
}

/// What to do with a search that has ended, for any width of its keys.
pub(crate) trait Then {
    type Out;
    fn then<const W: usize>(&mut self, searched: &Searched<'_, '_, W>) -> Self::Out;
}

/// The parameters of a search.
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
    pub(crate) room: &'a Arc<Room>,
    /// Saves the search in a file, if it is kept.
    pub(crate) keeper: Option<&'a Keeper>,
}

/// The levels so far of a search that was interrupted, or whose plan was too narrow.
pub(crate) struct Saved {
    pub(crate) plan: Plan,
    /// Whether a wider plan is needed.
    pub(crate) narrow: bool,
    /// For each level, the words of its states; the last level is not complete.
    pub(crate) levels: Vec<Vec<List>>,
    /// Words per state.
    pub(crate) stride: usize,
    pub(crate) transitions: u64,
}

enum Attempt<T> {
    Done(T),
    Narrow(Box<Saved>),
}

/// The possible numbers of words of a key.
macro_rules! with_words {
    ($words:expr, $w:ident => $do:expr) => {
        with_words!(@ $words, $w => $do; 1, 2, 3, 4, 8, 16, 64)
    };
    (@ $words:expr, $w:ident => $do:expr; $($width:literal),*) => {
        match $words {
            $(words if words <= $width => {
                const $w: usize = $width;
                $do
            })*
            words => unreachable!("no key has {words} words"),
        }
    };
}

/// Returns the words of a key that needs this many; `None` if that is too many.
pub(crate) fn stride(words: usize) -> Option<usize> {
    (words <= MAX_WORDS).then(|| with_words!(words, W => W))
}

impl Search<'_, '_> {
    /// Searches, and hands the result over.
    pub(crate) fn run<T: Then>(&self, then: &mut T) -> T::Out {
        self.run_from(None, then)
    }

    /// Continues a search, and hands the result over.
    pub(crate) fn run_from<T: Then>(&self, mut saved: Option<Saved>, then: &mut T) -> T::Out {
        loop {
            let plan = match &saved {
                Some(saved) if !saved.narrow => saved.plan.clone(),
                _ => Plan::new(&self.widths().roomy()),
            };
            let Some(stride) = stride(plan.words) else {
                return self.refuse(Fault::StateTooLarge(plan.words), &plan, then);
            };
            match with_words!(stride, W => self.attempt::<W, T>(&plan, saved.take(), then)) {
                Attempt::Done(out) => return out,
                Attempt::Narrow(so_far) => saved = Some(*so_far),
            }
        }
    }

    /// Hands over a search that cannot be made.
    fn refuse<T: Then>(&self, fault: Fault, plan: &Plan, then: &mut T) -> T::Out {
        let store = Store::<1>::new(Vec::new(), &Room::new(None, None))
            .expect("there is memory for no state");
        let (space, rules, room) = (self.space, self.rules, self.room);
        then.then(&Searched {
            space,
            plan,
            rules,
            store,
            end: End::Fault(fault),
            transitions: 0,
            room,
        })
    }

    /// Returns the bits that the numbers known so far need.
    pub(crate) fn widths(&self) -> Widths {
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

    fn attempt<const W: usize, T: Then>(
        &self,
        plan: &Plan,
        saved: Option<Saved>,
        then: &mut T,
    ) -> Attempt<T::Out> {
        let task = Task {
            space: self.space,
            plan,
            rules: self.rules,
            watch: self.watch,
            max_states: self.max_states,
            workers: self.workers,
            progress: self.progress,
            room: self.room,
            keeper: self.keeper,
        };
        let first = || Expander::<W>::new(self.space, plan, self.rules).initial(self.passages);
        let mut transitions = saved.as_ref().map_or(0, |saved| saved.transitions);
        let levels = match saved {
            None => one(&first(), self.room).map(|part| vec![vec![part], vec![]]),
            Some(saved) => self.repacked(saved, plan),
        };
        let (store, end) = match levels.and_then(|levels| Store::new(levels, self.room)) {
            Ok(mut store) => {
                let end = explore(&task, &mut store, &mut transitions);
                (store, end)
            }
            Err(error) => {
                let part = one(&first(), self.room).unwrap_or_default();
                let levels = vec![vec![part], vec![], vec![]];
                let room = Room::new(None, None);
                let store = Store::new(levels, &room).expect("there is memory for one state");
                (store, End::NoRoom(format!("{error} in {}", self.room.directory().display())))
            }
        };
        if let End::Narrow = end {
            let lists = |level: Level<W>| level.into_iter().map(Part::into_list).collect();
            let levels = store.levels.into_iter().map(lists).collect();
            let saved = Saved { plan: plan.clone(), narrow: true, levels, stride: W, transitions };
            return Attempt::Narrow(Box::new(saved));
        }
        if self.keeper.is_some() {
            self.progress.finished.store(true, Relaxed);
        }
        let (space, rules, room) = (self.space, self.rules, self.room);
        Attempt::Done(then.then(&Searched { space, plan, rules, store, end, transitions, room }))
    }

    /// Packs the levels of a search under this plan. Each old level is freed as soon as the new one
    /// exists.
    fn repacked<const W: usize>(&self, saved: Saved, plan: &Plan) -> io::Result<Vec<Level<W>>> {
        let Saved { plan: old, levels, stride, .. } = saved;
        let repack = |list: List| -> io::Result<Part<W>> {
            if old == *plan && stride == W {
                return Ok(Part::new(list));
            }
            let mut part = Part::default();
            part.reserve(list.words().len() / stride, self.room)?;
            list.words().chunks_exact(stride).for_each(|key| part.push(&old.repack(key, plan)));
            part.seal();
            Ok(part)
        };
        levels.into_iter().map(|level| level.into_iter().map(repack).collect()).collect()
    }
}

/// Returns a part with one key.
fn one<const W: usize>(key: &Key<W>, room: &Arc<Room>) -> io::Result<Part<W>> {
    let mut part = Part::default();
    part.reserve(1, room)?;
    part.push(key);
    Ok(part)
}

impl<const W: usize> Searched<'_, '_, W> {
    /// Returns a shortest run from the start to a state of this depth: every state on it with the
    /// step taken there.
    ///
    /// No data is stored for this. Each state was found from a state of the level before, so that
    /// level is looked through again. At worst the whole search is done once more, and only when
    /// there is a run to show.
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

    /// Counts the distinct values of the whole shared memory.
    pub(crate) fn shared_values(&self, workers: usize) -> usize {
        let count = |worker: usize| {
            let mut values: FxHashSet<Key<W>> = FxHashSet::default();
            // States that were found together mostly have the same memory, so most do not need a
            // look into the set. No value of a memory is all ones, because the top bit is not part
            // of it. The value that the memory starts with is all zeros.
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
            let others: Vec<_> =
                (1..workers).map(|worker| scope.spawn(move || count(worker))).collect();
            let mut all = count(0);
            others
                .into_iter()
                .for_each(|other| all.extend(other.join().expect("no worker panics")));
            all.len()
        })
    }

    /// Returns the bytes that a state takes, tables included.
    pub(crate) fn bytes_per_state(&self) -> usize {
        self.store.bytes() / self.store.states().max(1)
    }
}

/// Returns the step that leads from the first state to the second, if there is one.
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
