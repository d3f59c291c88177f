//! What a run has learned of a process.
//!
//! To find out what a step does, a section runs again on its answers. The outcome is kept under two
//! numbers, that of the local state and that of the value found, so that the same step is not
//! replayed a second time. So a process becomes an automaton that is learned while it runs, as in
//! the checker. Nothing else changes: a known step is the step that a replay would have made.
//!
//! Tickets and sequence numbers make local states that never come back. Such states cost more to
//! keep than to replay. So each process keeps a limited number of states; at the limit it forgets
//! all but its present state. If the kept states have been of little use, it keeps no others until
//! it goes round in a wait.

use std::sync::Arc;

use doorway_core::Session;
use rustc_hash::FxHashMap;

use super::memory::{MANY, Memory};
use crate::{
    fault::Fault,
    replay::Kind,
    subject::{LocalState, Move, Moves, Region},
};

/// No register, no effect.
pub(super) const NONE: u32 = u32::MAX;
/// Found by a move that does not read: a write does the same whatever the register held before.
const UNSEEN: u32 = u32::MAX - 1;
/// Nothing has been found yet.
const NEVER: u32 = u32::MAX - 2;

/// The outcome of a step: the next local state, and the value that is left in the register or
/// [`NONE`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Outcome {
    pub(super) next: u32,
    pub(super) effect: u32,
}

/// What is needed at every step of a local state, in as few words as possible.
#[derive(Clone, Copy)]
pub(super) struct State {
    /// The register of its first move.
    pub(super) slot: u32,
    pub(super) line: u32,
    pub(super) kind: Kind,
    pub(super) region: Region,
    pub(super) session: Session,
    pub(super) waits: bool,
    /// The state has other moves than the first.
    pub(super) several: bool,
    /// What the first move found the last time, and the outcome.
    found: u32,
    outcome: Outcome,
}

impl State {
    /// Returns what a move of this kind finds in its register.
    #[inline]
    pub(super) fn finds(kind: Kind, slot: u32, memory: &Memory<'_>) -> u32 {
        match kind {
            Kind::Write | Kind::Choose(_) => UNSEEN,
            Kind::Read | Kind::Update => memory.at(slot as usize).value,
        }
    }
}

/// The rest of a local state.
struct Whole {
    local: Arc<LocalState>,
    moves: Moves,
}

/// What has been learned of one process, and its present state. The fields that every step needs
/// come first, in one cache line.
#[repr(C, align(64))]
pub(super) struct Learned {
    /// The number of the present state.
    at: u32,
    /// The present state itself.
    pub(super) now: State,
    /// How often a known state has been of use since all states were forgotten.
    used: u32,
    /// The write count of the register at which the last step looked in vain; [`NOT_IN_VAIN`] if
    /// the last step did not look in vain.
    pub(super) looked: u32,
    states: Vec<State>,
    wholes: Vec<Whole>,
    ids: FxHashMap<Arc<LocalState>, u32>,
    /// The outcomes of moves of a state that found a value, where the states themselves have no
    /// room for them.
    outcomes: FxHashMap<(u32, u32, u32), Outcome>,
    /// How many states are kept before all are forgotten.
    most: usize,
    /// New states are not kept.
    plain: bool,
    /// Where the last round of a wait began. A process that comes back there goes round, and then
    /// keeping states is of use.
    began: Option<Arc<LocalState>>,
}

/// Stands for no write count.
pub(super) const NOT_IN_VAIN: u32 = MANY;

/// The number of states that are kept at first.
const FEW: usize = 1 << 8;

impl Learned {
    pub(super) fn new(local: LocalState, moves: Moves, memory: &mut Memory<'_>) -> Self {
        let local = Arc::new(local);
        let now = state(&local, &moves, memory);
        Self {
            at: 0,
            now,
            used: 0,
            looked: NOT_IN_VAIN,
            states: vec![now],
            wholes: vec![Whole { local, moves }],
            ids: FxHashMap::default(),
            outcomes: FxHashMap::default(),
            most: FEW,
            plain: false,
            began: None,
        }
    }

    pub(super) fn local(&self) -> &Arc<LocalState> {
        &self.wholes[self.at as usize].local
    }

    pub(super) fn moves(&self) -> &[Move] {
        &self.wholes[self.at as usize].moves
    }

    /// Goes to a known state; returns whether it is another state.
    #[inline]
    pub(super) fn go(&mut self, to: u32) -> bool {
        let moves = to != self.at;
        if moves {
            self.at = to;
            self.now = self.states[to as usize];
            self.used = self.used.saturating_add(1);
        }
        moves
    }

    /// Forgets the known states if there are many; `limit` is the largest number allowed.
    pub(super) fn make_room(&mut self, limit: usize) {
        if self.states.len() < self.most.min(limit) {
            return;
        }
        self.plain = (self.used as usize) < self.states.len();
        self.most = if self.plain { FEW } else { (2 * self.most).min(limit) };
        self.forget();
    }

    /// Returns the outcome of a move that finds this value, if it has been learned.
    #[inline]
    pub(super) fn outcome(&mut self, index: usize, found: u32) -> Option<Outcome> {
        if index == 0 && self.now.found == found {
            return Some(self.now.outcome);
        }
        self.remembered(index, found)
    }

    fn remembered(&mut self, index: usize, found: u32) -> Option<Outcome> {
        if self.outcomes.is_empty() {
            return None;
        }
        let outcome = *self.outcomes.get(&(self.at, index as u32, found))?;
        if index == 0 {
            self.put_at_hand(found, outcome);
        }
        Some(outcome)
    }

    fn put_at_hand(&mut self, found: u32, outcome: Outcome) {
        (self.now.found, self.now.outcome) = (found, outcome);
        self.states[self.at as usize] = self.now;
    }

    /// Notes the outcome of a move that finds this value.
    fn learn(&mut self, index: usize, found: u32, outcome: Outcome) {
        if index == 0 {
            if self.now.found != NEVER {
                // Both outcomes are kept: the previous one and this one.
                self.outcomes.insert((self.at, 0, self.now.found), self.now.outcome);
                self.outcomes.insert((self.at, 0, found), outcome);
            }
            self.put_at_hand(found, outcome);
        } else {
            self.outcomes.insert((self.at, index as u32, found), outcome);
        }
    }

    /// Goes to the state that a move has led to. Notes the outcome if states are kept. Returns
    /// whether it is another state.
    pub(super) fn arrive(
        &mut self,
        (index, found, effect): (usize, u32, u32),
        local: LocalState,
        moves: impl FnOnce(&LocalState) -> Result<Moves, Fault>,
        memory: &mut Memory<'_>,
    ) -> Result<bool, Fault> {
        if let Some(next) = self.known(&local) {
            self.learn(index, found, Outcome { next, effect });
            return Ok(self.go(next));
        }
        let moves = moves(&local)?;
        if self.plain {
            let local = Arc::new(local);
            self.now = state(&local, &moves, memory);
            if self.now.waits {
                self.plain = self.began.as_ref() != Some(&local);
                self.began = Some(local.clone());
            }
            self.states[0] = self.now;
            self.wholes[0] = Whole { local, moves };
            self.outcomes.clear();
        } else {
            let next = self.add(local, moves, memory);
            self.learn(index, found, Outcome { next, effect });
            self.at = next;
            self.now = self.states[next as usize];
        }
        Ok(true)
    }

    /// Returns the number of a state, if it is known.
    fn known(&self, local: &LocalState) -> Option<u32> {
        if *self.wholes[self.at as usize].local == *local {
            return Some(self.at);
        }
        self.ids.get(local).copied()
    }

    /// Adds a state that is not known yet and returns its number.
    fn add(&mut self, local: LocalState, moves: Moves, memory: &mut Memory<'_>) -> u32 {
        if self.ids.is_empty() {
            self.ids.insert(self.wholes[0].local.clone(), 0);
        }
        let id = self.states.len() as u32;
        let local = Arc::new(local);
        self.states.push(state(&local, &moves, memory));
        self.wholes.push(Whole { local: local.clone(), moves });
        self.ids.insert(local, id);
        id
    }

    /// Forgets everything but the present state.
    pub(super) fn forget(&mut self) {
        let at = std::mem::take(&mut self.at) as usize;
        self.wholes.swap(0, at);
        self.wholes.truncate(1);
        self.now.found = NEVER;
        self.states.clear();
        self.states.push(self.now);
        self.ids.clear();
        self.outcomes.clear();
        self.used = 0;
    }
}

fn state(local: &LocalState, moves: &[Move], memory: &mut Memory<'_>) -> State {
    let Move { access, .. } = moves[0];
    State {
        slot: memory.slot(access.register).map_or(NONE, |slot| slot as u32),
        line: access.line,
        kind: access.kind,
        region: local.region(),
        session: local.session,
        waits: access.waits,
        several: moves.len() > 1,
        found: NEVER,
        outcome: Outcome { next: 0, effect: NONE },
    }
}
