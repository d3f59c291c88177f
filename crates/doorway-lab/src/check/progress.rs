//! Progress, on the graph of all reachable states.
//!
//! A run without end stays, from some point on, in a strongly connected part of the graph. It is *fair* if every process
//! that is alive and outside its remainder keeps taking steps there; a failed wait is a step. Crashed processes are a set
//! that takes no step in that part. So a property of progress fails exactly if there is a fair part in which it fails.

use doorway_core::Property;

use super::graph::Graph;
use crate::subject::Region;

/// A run without end that must not be: reach `state`, then go round among `members` with a step of every process in
/// `movers`.
#[derive(Clone, Debug)]
pub(crate) struct Lasso {
    pub(crate) members: Vec<u32>,
    pub(crate) movers: u32,
    pub(crate) crashed: u32,
    /// The steps that the run may take.
    pub(crate) steps: Steps,
    /// Who starves, or stays in its exit section.
    pub(crate) victim: usize,
}

/// Which steps a part of the graph is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    kind: What,
    crashed: u32,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// The process stays in its entry section.
    Starves(usize),
    /// The process stays in its entry section, and nobody enters.
    NobodyEnters(usize),
    /// The process stays in its doorway or in its exit section.
    Lingers(usize, Region),
    /// The process stays in its entry section, although nobody active keeps it out.
    Unopposed(usize),
    /// The same, although all but those inside keep taking steps.
    KeptOut(usize),
    /// The process is never in the region, and does not give up.
    Avoids(usize, Region),
    /// Nobody makes progress. Between states that are all alike in this, any step will do.
    StandsStill,
}

impl Steps {
    /// Those of the runs in which the process is never in the region, although it does not give up.
    pub(crate) fn avoiding(p: usize, region: Region) -> Self {
        Self { kind: What::Avoids(p, region), crashed: 0 }
    }

    /// Those between states that differ in nothing that is progress.
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
            // Out of its entry section a process gets by entering or by giving up.
            What::Avoids(q, _) => {
                p != q || !graph.region(from, p).is_entry() || matches!(graph.region(to, p).letter(), 'T' | 'C')
            }
            What::Starves(_) | What::Lingers(..) | What::Unopposed(_) | What::KeptOut(_) | What::StandsStill => true,
        }
    }

    /// The process that never is in a region, and the region, if that is what these steps are about.
    pub(crate) fn avoided(self) -> Option<(usize, Region)> {
        match self.kind {
            What::Avoids(p, region) => Some((p, region)),
            _ => None,
        }
    }

    /// Whether a run may go from one state to the other.
    pub(crate) fn allows(self, graph: &Graph, from: u32, p: usize, to: u32) -> bool {
        self.state(graph, from) && self.state(graph, to) && self.step(graph, from, p, to)
    }
}

/// A run that violates the property, if there is one; of several, one that begins as early as possible by `depth`.
pub(crate) fn violation(
    graph: &Graph,
    property: Property,
    crashes: usize,
    depth: impl Fn(u32) -> usize,
) -> Option<Lasso> {
    let mut best: Option<(usize, Lasso)> = None;
    let mut consider = |steps: Steps, victim: usize| {
        graph.components(
            |state| steps.state(graph, state),
            |from, p, to| steps.step(graph, from, p, to),
            |members, component, id| {
                let (movers, resting) = inhabitants(graph, steps, members, component, id);
                let fair = match steps.kind {
                    // A bounded number of its own steps: whatever the others do.
                    What::Lingers(p, _) | What::Unopposed(p) => movers >> p & 1 == 1,
                    _ => (movers | resting | steps.crashed) + 1 == 1 << graph.n,
                };
                let begins = members.iter().map(|&s| depth(s)).min().unwrap_or(0);
                if fair && best.as_ref().is_none_or(|(depth, _)| begins < *depth) {
                    let movers = match steps.kind {
                        What::Lingers(p, _) | What::Unopposed(p) => 1 << p,
                        _ => movers,
                    };
                    let members = members.to_vec();
                    best = Some((begins, Lasso { members, movers, crashed: steps.crashed, steps, victim }));
                }
            },
        );
    };
    match property {
        Property::BoundedExit => {
            (0..graph.n).for_each(|p| consider(Steps { kind: What::Lingers(p, Region::Exit), crashed: 0 }, p));
        }
        Property::BoundedDoorway => {
            (0..graph.n).for_each(|p| consider(Steps { kind: What::Lingers(p, Region::Doorway), crashed: 0 }, p));
        }
        Property::ConcurrentEntry | Property::StrongConcurrentEntry => {
            (0..graph.n).for_each(|p| consider(Steps { kind: What::Unopposed(p), crashed: 0 }, p));
        }
        Property::ConcurrentOccupancy => {
            (0..graph.n).for_each(|p| consider(Steps { kind: What::KeptOut(p), crashed: 0 }, p));
        }
        Property::DeadlockFreedom => {
            live(graph.n, crashes).for_each(|(p, crashed)| {
                consider(Steps { kind: What::NobodyEnters(p), crashed }, p);
            });
        }
        Property::StarvationFreedom => {
            live(graph.n, crashes).for_each(|(p, crashed)| consider(Steps { kind: What::Starves(p), crashed }, p));
        }
        _ => unreachable!("{property} is not about progress"),
    }
    best.map(|(_, lasso)| lasso)
}

/// Who takes steps inside a component, and who is at rest there: in its remainder, or inside where that is allowed.
fn inhabitants(graph: &Graph, steps: Steps, members: &[u32], component: &[u32], id: u32) -> (u32, u32) {
    let (mut movers, mut resting) = (0, 0);
    for &state in members {
        for (p, to) in graph.steps(state) {
            if component[to as usize] == id && steps.step(graph, state, p, to) {
                movers |= 1 << p;
            }
        }
        for p in 0..graph.n {
            let region = graph.region(state, p);
            let stays = matches!(steps.kind, What::KeptOut(_)) && region == Region::Critical;
            if region == Region::Remainder || stays {
                resting |= 1 << p;
            }
        }
    }
    (movers, resting)
}

/// Every set of at most `most` crashed processes, with every process that is not in it.
fn live(n: usize, most: usize) -> impl Iterator<Item = (usize, u32)> {
    (0..1u32 << n)
        .filter(move |crashed| crashed.count_ones() as usize <= most)
        .flat_map(move |crashed| (0..n).filter(move |p| crashed >> p & 1 == 0).map(move |p| (p, crashed)))
}
