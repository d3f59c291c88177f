//! Progress, on the graph of all reachable states.
//!
//! A run without end stays, from some point on, in a strongly connected part of the graph. The run
//! is *fair* if every process that is alive and outside its remainder keeps taking steps there; a
//! failed wait is a step. Crashed processes are a set that takes no step in that part. So a
//! property of progress fails exactly if there is a fair part in which it fails.

use doorway_core::Property;

use super::{
    components::{Next, components},
    graph::Graph,
};
use crate::subject::Region;

/// A run without end that must not exist: it reaches `state`, then goes round among `members` with
/// a step of every process in `movers`.
#[derive(Clone, Debug)]
pub(crate) struct Lasso {
    pub(crate) members: Vec<u32>,
    pub(crate) movers: u32,
    pub(crate) crashed: u32,
    /// The steps that the run may take.
    pub(crate) steps: Steps,
    /// The process that starves, or stays in its exit section.
    pub(crate) victim: usize,
}

/// The steps that a part of the graph is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    kind: What,
    crashed: u32,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// The process stays in its entry section.
    Starves(usize),
    /// The process stays in its entry section, and no process enters.
    NobodyEnters(usize),
    /// The process stays in its doorway or in its exit section.
    Lingers(usize, Region),
    /// The process stays in its entry section, although no active process keeps it out.
    Unopposed(usize),
    /// Like `Unopposed`, although all processes but those inside keep taking steps.
    KeptOut(usize),
    /// The process is never in the region, and does not give up.
    Avoids(usize, Region),
    /// No process makes progress. Any step between states that are alike in this will do.
    StandsStill,
}

impl What {
    /// Returns what violates a property of progress, with `p` as the process that waits or lingers.
    fn of(property: Property, p: usize) -> Self {
        match property {
            Property::StarvationFreedom => Self::Starves(p),
            Property::DeadlockFreedom => Self::NobodyEnters(p),
            Property::BoundedExit => Self::Lingers(p, Region::Exit),
            Property::BoundedDoorway => Self::Lingers(p, Region::Doorway),
            Property::ConcurrentEntry | Property::StrongConcurrentEntry => Self::Unopposed(p),
            Property::ConcurrentOccupancy => Self::KeptOut(p),
            _ => unreachable!("{property} is not about progress"),
        }
    }

    /// Returns whether only the steps of one process count, whatever the other processes do.
    fn is_about_one(self) -> bool {
        matches!(self, Self::Lingers(..) | Self::Unopposed(_))
    }

    /// Returns whether a violation may need crashes.
    fn is_about_crashes(self) -> bool {
        matches!(self, Self::Starves(_) | Self::NobodyEnters(_))
    }

    /// Returns whether every step between states of the part is one of its steps.
    fn allows_every_step(self) -> bool {
        matches!(self, Self::Starves(_) | Self::Lingers(..) | Self::Unopposed(_) | Self::KeptOut(_))
    }
}

impl Steps {
    /// Returns the steps of runs in which the process is never in the region, although it does not
    /// give up.
    pub(crate) fn avoiding(p: usize, region: Region) -> Self {
        Self { kind: What::Avoids(p, region), crashed: 0 }
    }

    /// Returns the steps between states that do not differ in anything that is progress.
    pub(crate) fn standing_still() -> Self {
        Self { kind: What::StandsStill, crashed: 0 }
    }

    pub(crate) fn state(self, graph: &Graph, state: u32) -> bool {
        match self.kind {
            What::Starves(p) | What::NobodyEnters(p) => graph.region(state, p).is_entry(),
            What::Lingers(p, region) => graph.region(state, p) == region,
            What::Unopposed(p) | What::KeptOut(p) => graph.is_unopposed(state, p),
            What::Avoids(p, region) => graph.region(state, p) != region,
            What::StandsStill => true,
        }
    }

    pub(crate) fn step(self, graph: &Graph, from: u32, p: usize, to: u32) -> bool {
        if self.crashed >> p & 1 == 1 {
            return false;
        }
        match self.kind {
            What::NobodyEnters(_) => {
                graph.region(from, p) == Region::Critical || graph.region(to, p) != Region::Critical
            }
            // A process leaves its entry section by entering or by giving up.
            What::Avoids(q, _) => {
                p != q
                    || !graph.region(from, p).is_entry()
                    || matches!(graph.region(to, p).letter(), 'T' | 'C')
            }
            What::Starves(_)
            | What::Lingers(..)
            | What::Unopposed(_)
            | What::KeptOut(_)
            | What::StandsStill => true,
        }
    }

    /// Returns the process that is never in a region, and the region, if these steps are about
    /// that.
    pub(crate) fn avoided(self) -> Option<(usize, Region)> {
        match self.kind {
            What::Avoids(p, region) => Some((p, region)),
            _ => None,
        }
    }

    /// Returns whether a run may go from the first state to the second.
    pub(crate) fn allows(self, graph: &Graph, from: u32, p: usize, to: u32) -> bool {
        self.state(graph, from) && self.state(graph, to) && self.step(graph, from, p, to)
    }
}

/// Looks for violations of properties of progress by runs in which one process waits or lingers.
///
/// A violation of such a property is strongly connected, and in it the process takes steps that do
/// not lead into the critical section. So it lies inside a component of the graph of all states in
/// which the process is outside the critical section, with all other processes alive. Leaving out
/// more states and more steps only makes components finer. These components are found once for each
/// process; then every property looks inside, for every set of crashed processes.
pub(super) struct Inquiry<'a> {
    pub(super) graph: &'a Graph,
    /// The process that waits or lingers.
    pub(super) p: usize,
    /// How many processes may crash.
    pub(super) crashes: usize,
    /// How many steps a state is away from the start; states are numbered in that order.
    pub(super) depth: &'a (dyn Fn(u32) -> usize + Sync),
    /// Each property with the best lasso so far.
    pub(super) best: Vec<(Property, Option<Ranked>)>,
}

/// A lasso with its rank. Of several lassos, the one that begins earliest is shown. Then fewer and
/// lower-numbered crashed processes come first, then victims, then states, so that the choice does
/// not depend on which thread was faster.
pub(super) struct Ranked {
    pub(super) rank: (usize, u32, usize, u32),
    pub(super) lasso: Lasso,
}

impl Inquiry<'_> {
    /// Looks inside a component in which `movers` take steps, the process among them.
    pub(super) fn look_inside(&mut self, members: &[u32], movers: u32) {
        let first = members.iter().copied().min().expect("a component has a member");
        let begins = (self.depth)(first);
        for i in 0..self.best.len() {
            let (property, best) = &self.best[i];
            let kind = What::of(*property, self.p);
            let inside = Steps { kind, crashed: 0 };
            let is_late = best.as_ref().is_some_and(|best| best.rank.0 < begins);
            if is_late || !members.iter().any(|&state| inside.state(self.graph, state)) {
                continue;
            }
            if kind.is_about_one() {
                self.search(i, inside, members, movers);
                continue;
            }
            // Inside the component, no more processes move or rest than in the whole of it: the
            // remaining processes must have crashed.
            let missing = self.all_processes() & !(movers | resting(self.graph, kind, members));
            let crashes = if kind.is_about_crashes() { self.crashes } else { 0 };
            // A process starves in here only if this many may crash, with no other process crashed.
            // A run in which no process enters starves every waiting process, under the same
            // fairness and with the same crashed set. So where starvation freedom holds, deadlocks
            // are not searched for.
            if missing.count_ones() as usize > crashes {
                continue;
            }
            let mut sufficient: Vec<u32> = Vec::new();
            for crashed in sets(self.graph.n, crashes) {
                let is_possible = crashed >> self.p & 1 == 0 && missing & !crashed == 0;
                // If the whole component is a violation, more crashes show nothing that begins
                // earlier.
                let is_covered = sufficient.iter().any(|fewer| fewer & !crashed == 0);
                if is_possible
                    && !is_covered
                    && self.search(i, Steps { kind, crashed }, members, movers)
                {
                    sufficient.push(crashed);
                }
            }
        }
    }

    fn all_processes(&self) -> u32 {
        (1 << self.graph.n) - 1
    }

    /// Looks for violations of the `i`th property by these steps among the members. Returns whether
    /// all members together are a violation.
    fn search(&mut self, i: usize, steps: Steps, members: &[u32], movers: u32) -> bool {
        let graph = self.graph;
        let is_whole = steps.kind.allows_every_step()
            && steps.crashed & movers == 0
            && members.iter().all(|&state| steps.state(graph, state));
        if is_whole {
            return self.offer(i, steps, members, movers);
        }
        let mut whole = false;
        refine(graph, steps, members, |part, movers| {
            whole |= self.offer(i, steps, part, movers) && part.len() == members.len();
        });
        whole
    }

    /// Returns whether the component is a violation of the `i`th property, and keeps it if it is
    /// the best so far.
    fn offer(&mut self, i: usize, steps: Steps, members: &[u32], movers: u32) -> bool {
        let (p, kind) = (self.p, steps.kind);
        // The property bounds the process's own steps, whatever the other processes do.
        let is_violation = if kind.is_about_one() {
            movers >> p & 1 == 1
        } else {
            movers | resting(self.graph, kind, members) | steps.crashed == self.all_processes()
        };
        if !is_violation {
            return false;
        }
        let first = members.iter().copied().min().expect("a component has a member");
        let rank = ((self.depth)(first), steps.crashed, p, first);
        let best = &mut self.best[i].1;
        if best.as_ref().is_none_or(|best| rank < best.rank) {
            let movers = if kind.is_about_one() { 1 << p } else { movers };
            let lasso = Lasso {
                members: members.to_vec(),
                movers,
                crashed: steps.crashed,
                steps,
                victim: p,
            };
            *best = Some(Ranked { rank, lasso });
        }
        true
    }
}

/// Finds the strongly connected components of a component in which only these steps are taken;
/// `visit` gets the members and the processes that take steps among them.
fn refine(graph: &Graph, steps: Steps, members: &[u32], mut visit: impl FnMut(&[u32], u32)) {
    let mut states: Vec<u32> =
        members.iter().copied().filter(|&state| steps.state(graph, state)).collect();
    states.sort_unstable();
    let place = |state: u32| states.binary_search(&state).ok().map(|place| place as u32);
    let edge = |from: u32, i: u32| {
        let from = states[from as usize];
        match graph.step_at(from, i as usize) {
            None => Next::End,
            Some((p, to)) if to != from && steps.step(graph, from, p, to) => {
                place(to).map_or(Next::Skip, Next::To)
            }
            Some(_) => Next::Skip,
        }
    };
    components(
        states.len(),
        |_| true,
        edge,
        |places, number, found| {
            let part: Vec<u32> = places.iter().map(|&place| states[place as usize]).collect();
            let mut movers = 0;
            for &from in &part {
                for (p, to) in graph.steps(from).filter(|&(p, to)| steps.step(graph, from, p, to)) {
                    if place(to).is_some_and(|place| found.of(place) == Some(number)) {
                        movers |= 1 << p;
                    }
                }
            }
            visit(&part, movers);
        },
    );
}

/// Returns the processes that are at rest in one of the states: in the remainder, or in the
/// critical section where that is allowed.
fn resting(graph: &Graph, kind: What, members: &[u32]) -> u32 {
    let mut resting = 0;
    for &state in members {
        for p in 0..graph.n {
            let region = graph.region(state, p);
            let stays = matches!(kind, What::KeptOut(_)) && region == Region::Critical;
            if region == Region::Remainder || stays {
                resting |= 1 << p;
            }
        }
    }
    resting
}

/// Returns every set of at most `most` processes, smaller ones before those that contain them.
fn sets(n: usize, most: usize) -> impl Iterator<Item = u32> {
    (0..1u32 << n).filter(move |set| set.count_ones() as usize <= most)
}
