//! The most remote references that one passage can make, over all runs.
//!
//! DSM: the step itself shows whether it is a remote reference. CC: that depends on the cache. So
//! one process at a time is explored together with a bit per register, which says whether the
//! process has a valid copy. In either graph, a passage is a path through the states in which the
//! process is not in its remainder. The passage is unbounded if and only if the process can pay on
//! a cycle.
//!
//! Relabelled tickets cover every true run step by step, register by register, so the maximum is
//! never too small. That it is not too large is checked each time: the run that pays it is run with
//! true tickets and counted again.

use std::{fmt, sync::Mutex};

use doorway_core::RegisterKind;

use super::{
    Progress,
    counterexample::{along, turn},
    dearest::{Dearest, dearest},
    expand::{Charge, Ghost, Rules, Step},
    explore::End,
    graph::{Edge, Extras, Graph},
    has_tickets,
    pack::Key,
    room::Room,
    search::{Search, Searched, Then},
    space::Space,
    store::Numbers,
};
use crate::{
    cost::Meter,
    fault::Fault,
    judge::Judge,
    machine::{Event, Machine},
    subject::{Region, Subject},
    trace::{Run, Turn},
};

/// The limits of the search.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Passages per process; `None` for no bound.
    pub passages: Option<u32>,
    /// The largest number of states of a search.
    pub max_states: u64,
    /// The number of workers that search.
    pub workers: usize,
}

/// The most references that one passage can make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Most {
    /// Exactly this many, and a run makes them.
    Exactly(u64),
    /// No more than this many: no true run was found that makes them.
    AtMost(u64),
    /// There is no bound.
    Unbounded,
    /// Not decided, for this reason.
    Unknown(String),
}

impl fmt::Display for Most {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(most) => f.pad(&most.to_string()),
            Self::AtMost(most) => f.pad(&format!("≤ {most}")),
            Self::Unbounded => f.pad("unbounded"),
            Self::Unknown(_) => f.pad("unknown"),
        }
    }
}

impl Most {
    /// Returns the largest of these.
    fn of_all(all: impl Iterator<Item = Self>) -> Self {
        let rank = |most: &Self| match *most {
            Self::Exactly(m) => (0, m, 1),
            Self::AtMost(m) => (0, m, 0),
            Self::Unknown(_) => (1, 0, 0),
            Self::Unbounded => (2, 0, 0),
        };
        all.max_by_key(rank).unwrap_or(Self::Exactly(0))
    }

    /// Returns whether a passage may make this many, as far as is known.
    pub fn allows(&self, references: u64) -> bool {
        match *self {
            Self::Exactly(most) | Self::AtMost(most) => references <= most,
            Self::Unbounded | Self::Unknown(_) => true,
        }
    }
}

/// The most references that passages make, in both models.
#[derive(Clone, Debug)]
pub struct Maxima {
    /// With coherent caches.
    pub cc: Most,
    /// With distributed shared memory.
    pub dsm: Most,
    /// The maxima for each process: CC, DSM.
    pub by_process: Vec<(Most, Most)>,
    /// The states of the largest search.
    pub states: u64,
    /// How far the maximum was explored, in words.
    pub scope: String,
}

/// Finds the most references that one passage can make over all runs, for as many processes as the
/// search can explore.
///
/// # Errors
/// When the algorithm cannot be run in the lab.
///
/// ```
/// use doorway_core::Size;
/// use doorway_lab::{Entrant, Limits, Most, Progress, most};
/// let bakery = Entrant::named("bakery").unwrap().build(Size::mutex(2), None, false)?;
/// let limits = Limits { passages: None, max_states: 100_000, workers: 1 };
/// let maxima = most(&*bakery, &limits, &Progress::default()).unwrap();
/// assert_eq!((maxima.dsm, maxima.cc), (Most::Unbounded, Most::Exactly(9)));
/// # Ok::<(), doorway_core::Unfit>(())
/// ```
pub fn most(subject: &dyn Subject, limits: &Limits, progress: &Progress) -> Result<Maxima, Fault> {
    let size = subject.size();
    let relabel = limits.passages.is_none() && has_tickets(subject);
    let rules = Rules {
        k: size.k,
        bounded: limits.passages.is_some(),
        endless: None,
        retries: None,
        kills: None,
        kind: RegisterKind::Atomic,
        relabel,
        gap: (subject.claims().gap)(size),
        ghost: Ghost::Nothing,
        bound: None,
        charge: None,
    };
    let space =
        Mutex::new(Space::new(subject, RegisterKind::Atomic, relabel.then_some(rules.gap))?);
    let room = Room::new(None, None);
    let search = |charge| Search {
        space: &space,
        rules: Rules { charge: Some(charge), ..rules },
        passages: limits.passages.unwrap_or(0),
        watch: 0,
        max_states: limits.max_states,
        workers: limits.workers.max(1),
        progress,
        room: &room,
        keeper: None,
    };
    let mut find = Find { subject, workers: limits.workers.max(1), states: 0 };
    let dsm = search(Charge::Homes).run(&mut find)?;
    let mut cc = Vec::new();
    for p in 0..size.n {
        cc.extend(search(Charge::Caches(p)).run(&mut find)?);
    }
    let passages = match limits.passages {
        None => "any number of passages".into(),
        Some(passages) => format!("{passages} passages per process"),
    };
    let mut scope = format!("{size}, {passages}");
    if relabel {
        scope.push_str(", tickets relabelled");
    }
    Ok(Maxima {
        cc: Most::of_all(cc.iter().cloned()),
        dsm: Most::of_all(dsm.iter().cloned()),
        by_process: cc.into_iter().zip(dsm).collect(),
        states: find.states,
        scope,
    })
}

/// Finds the passages with the most references in a finished search.
struct Find<'a> {
    subject: &'a dyn Subject,
    workers: usize,
    states: u64,
}

impl Then for Find<'_> {
    type Out = Result<Vec<Most>, Fault>;

    fn then<const W: usize>(&mut self, searched: &Searched<'_, '_, W>) -> Self::Out {
        self.states = self.states.max(searched.store.states() as u64);
        let n = searched.plan.locals.len();
        let charge = searched.rules.charge.expect("it is noticed what steps cost");
        let processes = match charge {
            Charge::Homes => 0..n,
            Charge::Caches(p) => p..p + 1,
        };
        let unknown =
            |why: String| Ok(processes.clone().map(|_| Most::Unknown(why.clone())).collect());
        match &searched.end {
            End::Fault(fault) => return Err(fault.clone()),
            End::Exhausted => {}
            End::Cancelled => return unknown("interrupted".into()),
            End::NoRoom(why) => return unknown(format!("no room for more states: {why}")),
            _ => return unknown(format!("more than {} states", searched.store.states())),
        }
        let numbers = searched.store.numbers(self.workers);
        let graph = Graph::build(searched, &numbers, Extras::default(), self.workers);
        let Some(graph) = graph else {
            return unknown("too many states for a graph of them".into());
        };
        let confirm = Confirm { searched, numbers: &numbers, subject: self.subject };
        Ok(processes
            .map(|p| match dearest(&graph, p) {
                Dearest::Bounded(most, walk) if confirm.pays(p, &walk) == Some(most) => {
                    Most::Exactly(most)
                }
                Dearest::Bounded(most, _) => Most::AtMost(most),
                Dearest::Unbounded(walk) if confirm.pays_for_ever(p, &walk) => Most::Unbounded,
                Dearest::Unbounded(_) => {
                    Most::Unknown("unbounded, but only with relabelled tickets".into())
                }
            })
            .collect())
    }
}

/// Confirms the walks found on the graph by runs with true tickets.
struct Confirm<'a, 'c, 's, const W: usize> {
    searched: &'a Searched<'c, 's, W>,
    numbers: &'a Numbers,
    subject: &'a dyn Subject,
}

impl<const W: usize> Confirm<'_, '_, '_, W> {
    /// Returns the turns of a run to where a walk begins, and the turns of the walk.
    fn turns(&self, walk: &[Edge]) -> Option<[Vec<Turn>; 2]> {
        let start = walk.first()?.from;
        let key = self.searched.store.key(self.numbers, start);
        let stem = self.searched.trail(key, self.numbers.depth(start));
        let walk = along(self.searched, self.numbers, walk);
        // Without overlapping reads a turn does not depend on where the run stands.
        let machine = Machine::new(self.subject, RegisterKind::Atomic, true).ok()?;
        let turns = |trail: &[(Key<W>, Step<W>)]| -> Option<Vec<Turn>> {
            trail.iter().map(|(key, step)| turn(self.searched, &machine, key, step, 0)).collect()
        };
        Some([turns(&stem)?, turns(&walk)?])
    }

    /// Returns what process `p` has paid for its passage at the end of a walk that begins in its
    /// remainder.
    fn pays(&self, p: usize, walk: &[Edge]) -> Option<u64> {
        if walk.is_empty() {
            return Some(0); // it never leaves its remainder
        }
        let [stem, walk] = self.turns(walk)?;
        let mut payer = Payer::new(self, p);
        // Without forgetting: the result rests on this run.
        let mut run = Run::new(self.subject, RegisterKind::Atomic, false).ok()?;
        for turn in stem.into_iter().chain(walk) {
            payer.note(&run.take(turn).ok()?.0);
        }
        Some(payer.paid)
    }

    /// Returns whether process `p` can repeat the walk for ever, within one passage, and pays in
    /// each round.
    fn pays_for_ever(&self, p: usize, walk: &[Edge]) -> bool {
        let Some([stem, walk]) = self.turns(walk) else { return false };
        let mut payer = Payer::new(self, p);
        let Ok(mut judge) = Judge::new(self.subject, RegisterKind::Atomic) else { return false };
        for turn in stem {
            let Ok((event, _)) = judge.take(turn) else { return false };
            payer.note(&event);
        }
        let (mut steps, mut before) = (0, payer.paid);
        judge.repeats(&walk, |event| {
            payer.note(event);
            steps += 1;
            let ends = event.process == p && event.to == Region::Remainder;
            let unpaid =
                steps % walk.len() == 0 && std::mem::replace(&mut before, payer.paid) == payer.paid;
            ends || unpaid
        })
    }
}

/// Counts what one process pays for its present passage.
struct Payer {
    meter: Meter,
    charge: Charge,
    p: usize,
    paid: u64,
}

impl Payer {
    fn new<const W: usize>(confirm: &Confirm<'_, '_, '_, W>, p: usize) -> Self {
        let subject = confirm.subject;
        let charge = confirm.searched.rules.charge.expect("it is noticed what steps cost");
        Self { meter: Meter::new(subject.size().n), charge, p, paid: 0 }
    }

    fn note(&mut self, event: &Event) {
        let (cc, dsm) = self.meter.observe(event);
        if event.process != self.p {
            return;
        }
        if event.from == Region::Remainder {
            self.paid = 0;
        }
        self.paid += match self.charge {
            Charge::Homes => dsm,
            Charge::Caches(_) => cc,
        };
    }
}
