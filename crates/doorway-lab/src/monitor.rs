//! Watches a run for violations that a single step shows.

use std::fmt;

use doorway_core::{Invariant, Property, Session, layout::Erased};

use crate::{
    machine::Event,
    replay::Kind,
    subject::{Region, Subject, conflict},
};

/// The region and session of each process, and which processes were before it.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    regions: Vec<Region>,
    sessions: Vec<Session>,
    /// For each process, the processes that were through their doorway when it began and have not
    /// entered since.
    before: Vec<Vec<bool>>,
}

impl Standing {
    pub(crate) fn new(n: usize) -> Self {
        Self {
            regions: vec![Region::Remainder; n],
            sessions: vec![Session::NONE; n],
            before: vec![vec![false; n]; n],
        }
    }

    /// Notes a step. Returns the processes that it overtakes.
    pub(crate) fn observe(&mut self, event: &Event) -> Vec<usize> {
        let p = event.process;
        if event.from == Region::Remainder {
            for q in 0..self.regions.len() {
                self.before[p][q] = q != p && self.regions[q] == Region::Waiting;
            }
        }
        self.regions[p] = event.to;
        self.sessions[p] = event.session;
        let enters = event.to == Region::Critical && event.from != Region::Critical;
        let overtaken = if enters {
            (0..self.regions.len()).filter(|&q| self.before[p][q]).collect()
        } else {
            Vec::new()
        };
        if event.to == Region::Critical || event.abandons {
            self.before.iter_mut().for_each(|before| before[p] = false);
        }
        overtaken
    }

    /// Returns the processes in the critical section.
    fn inside(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.regions.len()).filter(|&q| self.regions[q] == Region::Critical)
    }

    fn conflict(&self, p: usize, q: usize) -> bool {
        conflict(self.sessions[p], self.sessions[q])
    }

    /// Returns the processes in a passage that keep `p` out.
    fn opponents(&self, p: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.regions.len())
            .filter(move |&q| q != p && self.regions[q] != Region::Remainder && self.conflict(p, q))
    }

    /// Returns whether `p` is in its entry section and no active process keeps it out.
    pub(crate) fn is_unopposed(&self, p: usize) -> bool {
        self.regions[p].is_entry() && self.opponents(p).next().is_none()
    }

    /// Returns whether `p` was through its doorway before every active process that keeps it out
    /// began.
    pub(crate) fn leads(&self, p: usize) -> bool {
        self.regions[p] == Region::Waiting && self.opponents(p).all(|q| self.before[q][p])
    }
}

/// A register that holds more than the stated bound before the first step.
#[derive(Clone, Debug)]
pub(crate) struct Oversized {
    register: String,
    value: String,
    bound: u64,
}

impl Oversized {
    /// Returns the first such register of a subject, if there is one.
    pub(crate) fn at_start(subject: &dyn Subject) -> Option<Self> {
        let bound = subject.claims().bound?(subject.size());
        let cell = subject.layout().cells().find(|cell| cell.init.magnitude() > bound)?;
        Some(Self { register: cell.name(), value: cell.init.text(), bound })
    }
}

impl fmt::Display for Oversized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { register, value, bound } = self;
        write!(f, "{register} holds {value} before the first step, and the bound is {bound}")
    }
}

/// Watches a run.
pub struct Monitor {
    k: usize,
    /// How many processes have to be overtaken to violate `ordered-entry`.
    ordered: usize,
    bound: Option<u64>,
    standing: Standing,
    /// The processes that have been overtaken and have not entered yet. Only an overtaker of the
    /// same session counts; without sessions every overtaker does.
    behind: Vec<bool>,
    invariants: Vec<Watched>,
}

/// An invariant, and what has to be remembered to watch it.
struct Watched {
    invariant: Invariant,
    register: usize,
    /// What the register holds.
    value: Box<dyn Erased>,
    /// For each process that has read the register, how often it has changed since.
    changes: Vec<Option<u32>>,
}

impl Monitor {
    /// Makes a monitor for a subject.
    pub fn new(subject: &dyn Subject) -> Self {
        let (size, claims) = (subject.size(), subject.claims());
        let watched = |invariant: &Invariant| {
            let (register, cell) = subject.layout().named(invariant.register)?;
            let value = cell.init.copy();
            Some(Watched { invariant: *invariant, register, value, changes: vec![None; size.n] })
        };
        Self {
            k: size.k,
            ordered: size.in_order(),
            bound: claims.bound.map(|bound| bound(size)),
            standing: Standing::new(size.n),
            behind: vec![false; size.n],
            invariants: claims.invariants.iter().filter_map(watched).collect(),
        }
    }

    /// Notes a step and what its register holds afterwards. Returns the properties that the step
    /// violates.
    pub fn observe(&mut self, event: &Event, value: Option<&dyn Erased>) -> Vec<Property> {
        let p = event.process;
        let mut violated = Vec::new();
        let overtaken = self.standing.observe(event);
        if event.to == Region::Critical && event.from != Region::Critical {
            let standing = &self.standing;
            let inside = standing.inside().count();
            let conflicting = overtaken.iter().filter(|&&q| standing.conflict(p, q)).count();
            let found = [
                (inside > 1, Property::MutualExclusion),
                (inside > self.k, Property::KExclusion),
                (
                    standing.inside().any(|q| q != p && standing.conflict(p, q)),
                    Property::SessionExclusion,
                ),
                (conflicting >= 1, Property::Fcfs),
                (conflicting >= self.k, Property::KFcfs),
                (conflicting >= self.ordered, Property::OrderedEntry),
            ];
            violated
                .extend(found.iter().filter(|(found, _)| *found).map(|(_, property)| *property));
            for q in overtaken {
                self.behind[q] |= standing.sessions[p] == standing.sessions[q];
            }
        }
        if event.to == Region::Critical || event.abandons {
            self.behind[p] = false;
        }
        if let (Some(bound), Some(value)) = (self.bound, value)
            && value.magnitude() > bound
        {
            violated.push(Property::BoundedRegisters);
        }
        violated
            .extend(self.invariants.iter_mut().filter_map(|watched| watched.observe(event, value)));
        violated
    }

    /// Returns whether an invariant is about this register, so that no step on it may be left out.
    pub(crate) fn watches(&self, register: usize) -> bool {
        self.invariants.iter().any(|watched| watched.register == register)
    }

    /// Returns the processes that have been overtaken since their doorway and have not entered yet.
    ///
    /// Only an overtaker that could be inside together with the process counts.
    pub fn behind(&self) -> impl Iterator<Item = usize> + '_ {
        self.behind.iter().enumerate().filter(|(_, behind)| **behind).map(|(q, _)| q)
    }
}

impl Watched {
    fn observe(&mut self, event: &Event, value: Option<&dyn Erased>) -> Option<Property> {
        let (p, mut broken) = (event.process, false);
        if let Some(value) =
            value.filter(|value| event.register == Some(self.register) && !self.value.same(*value))
        {
            self.value = value.copy();
            for changes in self.changes.iter_mut().flatten() {
                *changes += 1;
                broken |= *changes > self.invariant.most;
            }
        }
        let looks = event.register == Some(self.register) && event.line == self.invariant.line;
        if looks && event.kind == Kind::Read {
            self.changes[p] = Some(0);
        }
        if event.to == Region::Remainder {
            self.changes[p] = None;
        }
        broken.then_some(Property::Invariant(self.invariant.name))
    }
}
