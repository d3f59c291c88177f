//! What a process that waits has found out already. A look at a register that has not been written since leads where it
//! led before, so it need not be replayed. That is what makes long runs of many processes fast: most of their steps are
//! such looks. Nothing else changes: a recalled step is the step that a replay would have made.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use rustc_hash::FxHashMap;

use crate::subject::{LocalState, Move};

/// A local state with what the process may do next.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) state: LocalState,
    pub(super) moves: Vec<Move>,
}

impl PartialEq for Local {
    fn eq(&self, other: &Self) -> bool {
        self.state == other.state
    }
}
impl Eq for Local {}
impl Hash for Local {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.state.hash(hasher);
    }
}

/// What one process remembers of the loop that it goes round in.
pub(super) struct Recall {
    /// How many states are remembered at most.
    most: usize,
    /// Where the last round began. Only who comes back there is in a loop, and only then is it worth remembering anything.
    began: Option<Arc<Local>>,
    looping: bool,
    /// The number of the state that the process is in, if it has one.
    at: Option<u32>,
    known: Vec<Known>,
    numbers: FxHashMap<Arc<Local>, u32>,
}

struct Known {
    local: Arc<Local>,
    /// Looks that changed nothing: which move, at which version of its register, and where it led.
    looks: Vec<(usize, u64, u32)>,
}

/// A loop with more states than this is forgotten and learned again: its carried values change, so it hardly repeats.
const MOST: usize = 1 << 14;
/// As many states are remembered for all processes together, or there would be gigabytes of them. A round of a wait has a few
/// states for each other process, so this is enough for some rounds among hundreds.
const MOST_OF_ALL: usize = 1 << 18;

impl Recall {
    /// For one of `n` processes.
    pub(super) fn new(n: usize) -> Self {
        Self::empty((MOST_OF_ALL / n.max(1)).clamp(1 << 9, MOST))
    }

    fn empty(most: usize) -> Self {
        Self { most, began: None, looping: false, at: None, known: Vec::new(), numbers: FxHashMap::default() }
    }

    /// Where the move leads if its register has not changed since the process made it here.
    #[inline]
    pub(super) fn recall(&mut self, index: usize, version: u64) -> Option<&Arc<Local>> {
        let known = &self.known[self.at? as usize];
        let &(_, _, next) = known.looks.iter().find(|(i, v, _)| (*i, *v) == (index, version))?;
        self.at = Some(next);
        Some(&self.known[next as usize].local)
    }

    /// Notes a look that changed nothing shared and led from one state to another.
    pub(super) fn note(&mut self, from: &Arc<Local>, index: usize, version: u64, to: &Arc<Local>) {
        if to.moves.iter().any(|step| step.access.waits) {
            self.looping |= self.began.as_ref() == Some(to);
            self.began = Some(to.clone());
        }
        if !self.looping {
            return;
        }
        if self.known.len() >= self.most {
            self.forget();
            return;
        }
        let from = match self.at {
            Some(at) => at,
            None => self.number(from),
        };
        let next = self.number(to);
        let looks = &mut self.known[from as usize].looks;
        // An older version never comes back.
        looks.retain(|(i, _, _)| *i != index);
        looks.push((index, version, next));
        self.at = Some(next);
    }

    /// The process has done something else than look: it is out of its loop.
    pub(super) fn forget(&mut self) {
        if self.looping || self.began.is_some() {
            *self = Self::empty(self.most);
        }
    }

    fn number(&mut self, local: &Arc<Local>) -> u32 {
        let next = self.known.len() as u32;
        *self.numbers.entry(local.clone()).or_insert_with(|| {
            self.known.push(Known { local: local.clone(), looks: Vec::new() });
            next
        })
    }
}
