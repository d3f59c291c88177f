//! What has been learned of a process. Its section is run again on its answers to find out what a
//! step does; what came of it is kept under the number of its local state and the number of the
//! value that it found, so that the same step is not replayed a second time. So a process becomes
//! an automaton, as in the checker, learned while it runs. Nothing else changes: a step that is
//! known is the step that a replay would have made.
//!
//! Tickets and sequence numbers make local states that never come back, and it costs more to keep
//! them than to replay. So a process may know so many states, and then it forgets all but the one
//! that it is in. If it has been little use to know them it keeps no others from then on, until it
//! goes round in a wait.

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
/// What is found by who does not look: a write does the same whatever was there before.
const UNSEEN: u32 = u32::MAX - 1;
/// Nothing has been found yet.
const NEVER: u32 = u32::MAX - 2;

/// What comes of a step: the next local state, and the value that is left in the register or
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
    /// There are other moves than the first.
    pub(super) several: bool,
    /// What its first move found the last time, and what came of that.
    found: u32,
    outcome: Outcome,
}

impl State {
    /// What a move of this kind finds in its register.
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

/// What has been learned of one process, and where it is. What every step needs comes first, in one
/// line of the cache.
#[repr(C, align(64))]
pub(super) struct Learned {
    /// Where it is.
    at: u32,
    /// The same, at hand.
    pub(super) now: State,
    /// How often it has been of use to know a state since all were forgotten.
    used: u32,
    /// How often the register had been written that it looked at in vain with its last step;
    /// [`NOT_IN_VAIN`] if it did not.
    pub(super) looked: u32,
    states: Vec<State>,
    wholes: Vec<Whole>,
    ids: FxHashMap<Arc<LocalState>, u32>,
    /// What came of a move of a state that found a value: what the states themselves have no room
    /// for.
    outcomes: FxHashMap<(u32, u32, u32), Outcome>,
    /// How many states are kept before all are forgotten.
    most: usize,
    /// States are not kept.
    plain: bool,
    /// Where the last round of a wait began: who comes back there goes round, and then it is of use
    /// to keep states.
    began: Option<Arc<LocalState>>,
}

/// No register has been written as often.
pub(super) const NOT_IN_VAIN: u32 = MANY;

/// So many states are kept at first.
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

    /// Goes to a state that is known; says whether it is another.
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

    /// Forgets what is known, if that is much; `limit` is the most there may be.
    pub(super) fn make_room(&mut self, limit: usize) {
        if self.states.len() < self.most.min(limit) {
            return;
        }
        self.plain = (self.used as usize) < self.states.len();
        self.most = if self.plain { FEW } else { (2 * self.most).min(limit) };
        self.forget();
    }

    /// What comes of a move that finds this value, if that has been learned.
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

    /// Notes what comes of a move that finds this value.
    fn learn(&mut self, index: usize, found: u32, outcome: Outcome) {
        if index == 0 {
            if self.now.found != NEVER {
                // Both are kept: the one that was at hand, and this one.
                self.outcomes.insert((self.at, 0, self.now.found), self.now.outcome);
                self.outcomes.insert((self.at, 0, found), outcome);
            }
            self.put_at_hand(found, outcome);
        } else {
            self.outcomes.insert((self.at, index as u32, found), outcome);
        }
    }

    /// Goes to a state that a move has led to and notes that, if states are kept. Says whether it
    /// is another state.
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

    /// The number of a state, if it is known.
    fn known(&self, local: &LocalState) -> Option<u32> {
        if *self.wholes[self.at as usize].local == *local {
            return Some(self.at);
        }
        self.ids.get(local).copied()
    }

    /// The number of a state that is not known yet.
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

    /// Forgets everything but where the process is.
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
