//! Minimises the learned automata: bisimilar local states of a process are merged before the
//! search. So the search forgets what is dead, although the algorithm's author has not said so.
//!
//! Two local states of a process are *bisimilar* if they show the same (region, session, moves) and
//! every move, for every value that its register may hold, writes the same value and leads to
//! bisimilar states. The search then stores one *representative* for each class of them. A run with
//! representatives is a run of the algorithm with every local state replaced by a bisimilar one:
//! the same processes take the same steps through the same regions with the same values in the
//! registers. So the verdicts and the lengths of shortest runs are the same.
//!
//! **Which values a register may hold** is not known before the search. It is over-approximated:
//! every value that any local state can write, where a local state is whatever a process can get
//! into if every register may hold any of its values at any time. Where the algorithm states a
//! bound on its registers, larger values are left out, because a number that is one more than
//! another would otherwise have no end.
//!
//! **What the merging rests on is checked.** The search may learn what a merged state does with a
//! value that was not foreseen here. Then it stops ([`Fault::Unforeseen`]), and the check begins
//! again without merging, as after any other fault. Here the code also runs on values that can
//! never occur together. It may then fail or panic: such a step has no known outcome, which is
//! compared like any other.
//!
//! Nothing is merged
//!
//! - where there are tickets. If tickets are relabelled, a dead ticket still takes a label of the
//!   state. So bisimilar states would have to hold the same tickets and stay bisimilar under every
//!   relabelling. If tickets are not relabelled, they grow.
//! - where there are too many values or outcomes (see [`MOST_VALUES`] and [`MOST_OUTCOMES`]).

use std::{
    cell::Cell,
    hash::Hash,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    sync::{Arc, Once},
};

use doorway_core::RegisterKind;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    has_tickets,
    space::{Effect, Identity, KnownMove, Outcome, Space},
};
use crate::{item::Whole, subject::Subject};

/// With more values than this in one register, nothing is merged.
const MOST_VALUES: usize = 256;

/// With more outcomes of moves than this, nothing is merged. An outcome takes some microseconds, so
/// a vain attempt costs a fraction of a second.
const MOST_OUTCOMES: usize = 1 << 16;

/// Which local states stand for others, and for which values of the registers that holds.
pub(crate) struct Merging {
    /// For each process, the local states that another state represents.
    representatives: Vec<FxHashMap<Identity, Identity>>,
    /// For each process, the local states that represent other states.
    merged: Vec<FxHashSet<Identity>>,
    /// For each register, the values for which the states have been compared.
    values: Vec<FxHashSet<Arc<Whole>>>,
    /// The number of local states of all processes together, before and after.
    pub(crate) locals: (usize, usize),
}

impl Merging {
    /// Returns the local state that stands for this one.
    pub(super) fn representative(&self, p: usize, identity: Identity) -> Identity {
        self.representatives[p].get(&identity).cloned().unwrap_or(identity)
    }

    /// Returns whether a state does the same with this value of the register as all states that it
    /// represents.
    pub(super) fn foresees(
        &self,
        p: usize,
        identity: &Identity,
        register: u16,
        value: &Whole,
    ) -> bool {
        !self.merged[p].contains(identity) || self.values[register as usize].contains(value)
    }

    /// Finds the bisimilar local states of a subject whose registers are not to hold more than
    /// `bound`; `None` if there are tickets or too many outcomes.
    pub(crate) fn of(
        subject: &dyn Subject,
        kind: RegisterKind,
        bound: Option<u64>,
    ) -> Option<Self> {
        if has_tickets(subject) {
            return None;
        }
        let closure = Closure::new(subject, kind, bound)?.complete()?;
        let n = subject.size().n;
        let (mut representatives, mut merged) =
            (vec![FxHashMap::default(); n], vec![FxHashSet::default(); n]);
        let mut locals = (0, 0);
        for p in 0..n {
            let classes = closure.classes(p);
            let identity = |local: u32| closure.space.known(p, local).identity.clone();
            let mut first: FxHashMap<u32, u32> = FxHashMap::default();
            for (local, &class) in (0..).zip(&classes) {
                let representative = *first.entry(class).or_insert(local);
                if representative != local {
                    representatives[p].insert(identity(local), identity(representative));
                    merged[p].insert(identity(representative));
                }
            }
            locals = (locals.0 + classes.len(), locals.1 + first.len());
        }
        let whole = |(r, values): (usize, &Vec<u32>)| {
            values.iter().map(|&v| closure.space.registers[r].whole(v)).collect()
        };
        let values = closure.values.iter().enumerate().map(whole).collect();
        Some(Self { representatives, merged, values, locals })
    }
}

/// All that can be learned if every register may hold any of its values at any time.
struct Closure<'s> {
    space: Space<'s>,
    bound: Option<u64>,
    /// For each register, the values that are tried, in the order in which they were found.
    values: Vec<Vec<u32>>,
    /// For each register, how many of its values have been looked at.
    seen: Vec<usize>,
    /// For each process and local state, the outcome of each move for each value that is tried;
    /// `None` if the code fails.
    outcomes: Vec<Vec<Vec<Vec<Option<Outcome>>>>>,
    /// The number of outcomes.
    count: usize,
}

impl<'s> Closure<'s> {
    fn new(subject: &'s dyn Subject, kind: RegisterKind, bound: Option<u64>) -> Option<Self> {
        let mut space = Space::new(subject, kind, None).ok()?;
        let registers = space.registers.len();
        if kind == RegisterKind::Safe {
            for r in 0..registers {
                // A register without a domain is a fault only if a read of it overlaps a write.
                let _ = space.domain(r as u16, &[]);
            }
        }
        // The initial value of a register may be read whatever the bound.
        let values: Vec<Vec<u32>> =
            space.registers.iter().map(|values| (0..values.len() as u32).collect()).collect();
        let seen = values.iter().map(Vec::len).collect();
        let n = subject.size().n;
        let outcomes = vec![Vec::new(); n];
        Some(Self { space, bound, values, seen, outcomes, count: 0 })
    }

    /// Tries every move with every value until nothing new comes of it; `None` if that takes too
    /// many values or outcomes.
    fn complete(mut self) -> Option<Self> {
        loop {
            let before = self.count;
            for p in 0..self.outcomes.len() {
                let mut local = 0;
                while local < self.space.count(p) {
                    self.complete_local(p, local)?;
                    local += 1;
                }
            }
            if self.count == before {
                return Some(self);
            }
        }
    }

    fn complete_local(&mut self, p: usize, local: usize) -> Option<()> {
        let moves = self.space.known(p, local as u32).moves.clone();
        if self.outcomes[p].len() == local {
            self.outcomes[p].push(vec![Vec::new(); moves.len()]);
        }
        for (index, step) in moves.iter().enumerate() {
            while let Some(value) = self.untried(step, self.outcomes[p][local][index].len()) {
                let space = &mut self.space;
                let outcome =
                    quietly(|| space.outcome(p, local as u32, index as u32, value).ok()).flatten();
                self.outcomes[p][local][index].push(outcome);
                self.count += 1;
                if let Some(r) = step.register {
                    self.admit(r as usize);
                    if self.values[r as usize].len() > MOST_VALUES {
                        return None;
                    }
                }
                if self.count > MOST_OUTCOMES {
                    return None;
                }
            }
        }
        Some(())
    }

    /// Returns the next value to try a move with, after so many.
    fn untried(&self, step: &KnownMove, tried: usize) -> Option<u32> {
        match (step.register, step.effect) {
            // The beginning of a write does not depend on what the register holds.
            (None, _) | (_, Effect::Begin) => (tried == 0).then_some(0),
            (Some(r), _) => self.values[r as usize].get(tried).copied(),
        }
    }

    /// Adds the values of a register that have been found since the last call.
    fn admit(&mut self, r: usize) {
        let found = &self.space.registers[r];
        for value in self.seen[r]..found.len() {
            if self.bound.is_none_or(|bound| found.value(value as u32).magnitude() <= bound) {
                self.values[r].push(value as u32);
            }
        }
        self.seen[r] = found.len();
    }

    /// Returns the number of the class of each local state of `p`: bisimilar states have the same
    /// number.
    ///
    /// States are first distinguished by what they show and what they write. Then they are
    /// distinguished by the classes of the states to which their moves lead, until no more classes
    /// split (Moore 1956).
    fn classes(&self, p: usize) -> Vec<u32> {
        let each = self.outcomes[p].iter().zip(0..);
        let mut classes = number(each.map(|(moves, local)| {
            let written = |outcome: &Option<Outcome>| {
                outcome.map(|Outcome { value, retries, .. }| (value, retries))
            };
            let written: Vec<_> = moves.iter().flatten().map(written).collect();
            (self.space.known(p, local).shows(), written)
        }));
        loop {
            let next =
                |outcome: &Option<Outcome>| outcome.map(|outcome| classes.0[outcome.next as usize]);
            let signature = |(moves, class): (&Vec<Vec<_>>, &u32)| {
                (*class, moves.iter().flatten().map(next).collect::<Vec<_>>())
            };
            let finer = number(self.outcomes[p].iter().zip(&classes.0).map(signature));
            if finer.1 == classes.1 {
                return finer.0;
            }
            classes = finer;
        }
    }
}

/// Numbers things in the order of first occurrence, equal things alike. Returns the numbers and how
/// many there are.
fn number<T: Hash + Eq>(things: impl Iterator<Item = T>) -> (Vec<u32>, usize) {
    let mut numbers: FxHashMap<T, u32> = FxHashMap::default();
    let list = things.map(|thing| {
        let next = numbers.len() as u32;
        *numbers.entry(thing).or_insert(next)
    });
    (list.collect(), numbers.len())
}

thread_local! {
    /// Panics of this thread are expected and are not reported.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs an algorithm's code on values that may never occur, where it may panic. `None` if it does.
pub(super) fn quietly<T>(run: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |info| {
            if !QUIET.get() {
                report(info);
            }
        }));
    });
    QUIET.set(true);
    // The space is changed only after the algorithm's code has run, and that code is a function of
    // its answers.
    let outcome = catch_unwind(AssertUnwindSafe(run));
    QUIET.set(false);
    outcome.ok()
}
