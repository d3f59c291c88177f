//! The properties, decided naively on the reference's graph, each from its definition.

use doorway_core::{Property, Session};
use doorway_lab::Region;
use rustc_hash::FxHashMap;

use crate::{
    enabling,
    reference::{Edge, Graph},
};

/// A verdict of the reference: whether the property holds and, where runs are finite, how long a
/// shortest violation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Decided {
    pub(crate) holds: bool,
    pub(crate) shortest: Option<usize>,
}

/// Sizes and bounds that properties speak of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) bound: u64,
    pub(crate) crashes: usize,
}

pub(crate) fn decide(graph: &Graph, property: Property, terms: Terms) -> Decided {
    let Terms { n, k, bound, crashes } = terms;
    let inside = |state: usize| {
        graph.regions[state].iter().filter(|&&region| region == Region::Critical).count()
    };
    let shortest = |bad: &dyn Fn(usize) -> bool| {
        let shortest =
            (0..graph.depth.len()).find(|&state| bad(state)).map(|state| graph.depth[state]);
        Decided { holds: shortest.is_none(), shortest }
    };
    let never = |bad: bool| Decided { holds: !bad, shortest: None };
    let linger = |region: Region| {
        (0..n).any(|p| lingers(graph, p, |state| graph.regions[state][p] == region))
    };
    // Order is about doorways that are passed in a bounded number of steps, but for ordered entry.
    let order = matches!(
        property,
        Property::Fcfs | Property::KFcfs | Property::Fife | Property::StrongConcurrentEntry
    );
    if order && linger(Region::Doorway) {
        return never(true);
    }
    let conflicting = |state: usize, p: usize, q: usize| {
        conflict(graph.sessions[state][p], graph.sessions[state][q])
    };
    match property {
        Property::MutualExclusion => shortest(&|state| inside(state) > 1),
        Property::KExclusion => shortest(&|state| inside(state) > k),
        Property::SessionExclusion => shortest(&|state| {
            let is_inside = |p: usize| graph.regions[state][p] == Region::Critical;
            let pairs = || (0..n).flat_map(|p| (0..p).map(move |q| (p, q)));
            pairs().any(|(p, q)| is_inside(p) && is_inside(q) && conflicting(state, p, q))
        }),
        Property::BoundedRegisters => shortest(&|state| graph.largest[state] > bound),
        Property::BoundedExit => never(linger(Region::Exit)),
        Property::BoundedDoorway => never(linger(Region::Doorway)),
        Property::Fcfs => overtaking(graph, n, conflicting, |before, _| !before.is_empty()),
        Property::KFcfs => overtaking(graph, n, conflicting, |before, _| before.len() >= k),
        Property::OrderedEntry => {
            let sessions = graph.sessions.iter().flatten().any(|&session| session != Session::NONE);
            let most = if sessions { 1 } else { k };
            overtaking(graph, n, conflicting, |before, _| before.len() >= most)
        }
        Property::Fife => {
            let kept: Vec<Vec<bool>> =
                (0..n).map(|p| enabling::not_enabled(graph, p, Region::Critical)).collect();
            let alike = |state: usize, p: usize, q: usize| {
                graph.sessions[state][p] == graph.sessions[state][q]
            };
            overtaking(graph, n, alike, |before, state| before.iter().any(|&q| kept[q][state]))
        }
        Property::DeadlockFreedom | Property::StarvationFreedom => {
            let deadlock = property == Property::DeadlockFreedom;
            never((0..n).any(|p| {
                let enters = |from: usize, edge: &Edge| deadlock && enters(graph, from, edge);
                let rests = |state: usize, q: usize| graph.regions[state][q] == Region::Remainder;
                stuck(
                    graph,
                    n,
                    p,
                    crashes,
                    |state| graph.regions[state][p].is_entry(),
                    enters,
                    rests,
                )
            }))
        }
        Property::ConcurrentEntry => {
            never((0..n).any(|p| lingers(graph, p, |state| is_unopposed(graph, state, p))))
        }
        Property::ConcurrentOccupancy => never((0..n).any(|p| {
            let rests = |state: usize, q: usize| {
                matches!(graph.regions[state][q], Region::Remainder | Region::Critical)
            };
            stuck(graph, n, p, 0, |state| is_unopposed(graph, state, p), |_, _| false, rests)
        })),
        Property::StrongConcurrentEntry => never(leader_waits(graph, n)),
        Property::FifoEnabling => never(enabling::overtaking(graph, n)),
        Property::KDeadlockAvoidance => never(enabling::standstill(graph, n, k)),
        Property::Invariant(_) => unreachable!("{property} is not compared"),
    }
}

/// Whether processes that have asked for these keep one another out.
fn conflict(a: Session, b: Session) -> bool {
    a != b || a == Session::NONE
}

/// Whether `p` is in its entry section, and no process in a passage keeps it out.
fn is_unopposed(graph: &Graph, state: usize, p: usize) -> bool {
    let (regions, sessions) = (&graph.regions[state], &graph.sessions[state]);
    let is_free =
        |q: usize| q == p || regions[q] == Region::Remainder || !conflict(sessions[p], sessions[q]);
    regions[p].is_entry() && (0..regions.len()).all(is_free)
}

fn enters(graph: &Graph, from: usize, edge: &Edge) -> bool {
    graph.regions[from][edge.p] != Region::Critical
        && graph.regions[edge.to][edge.p] == Region::Critical
}

/// The strongly connected part of each state in the graph of these steps alone, by Kosaraju's
/// algorithm; `None` for states that do not count.
pub(crate) fn parts(
    graph: &Graph,
    counts: impl Fn(usize) -> bool,
    step: impl Fn(usize, &Edge) -> bool,
) -> Vec<Option<usize>> {
    let total = graph.edges.len();
    let allowed = |from: usize, edge: &Edge| counts(from) && counts(edge.to) && step(from, edge);
    let mut order = Vec::new();
    let mut seen = vec![false; total];
    for root in (0..total).filter(|&state| counts(state)) {
        let mut calls = vec![(root, 0)];
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        while let Some((state, next)) = calls.last_mut() {
            match graph.edges[*state].get(*next) {
                None => {
                    order.push(*state);
                    calls.pop();
                }
                Some(edge) => {
                    *next += 1;
                    if allowed(*state, edge) && !std::mem::replace(&mut seen[edge.to], true) {
                        calls.push((edge.to, 0));
                    }
                }
            }
        }
    }
    let mut back = vec![Vec::new(); total];
    for from in 0..total {
        graph.edges[from]
            .iter()
            .filter(|edge| allowed(from, edge))
            .for_each(|edge| back[edge.to].push(from));
    }
    let mut part = vec![None; total];
    for &root in order.iter().rev() {
        let mut open = vec![root];
        while let Some(state) = open.pop() {
            if part[state].is_none() {
                part[state] = Some(root);
                open.extend(&back[state]);
            }
        }
    }
    part
}

/// Whether there is a run in which `p` takes steps for ever, from some point on between states that
/// count.
fn lingers(graph: &Graph, p: usize, counts: impl Fn(usize) -> bool) -> bool {
    let part = parts(graph, &counts, |_, _| true);
    let mut states = 0..graph.edges.len();
    states.any(|from| {
        counts(from)
            && graph.edges[from]
                .iter()
                .any(|edge| edge.p == p && counts(edge.to) && part[edge.to] == part[from])
    })
}

/// Whether there is a fair run without steps that are `left_out`, from some point on between states
/// that count. Fair is a run in which every process that has not crashed takes steps for ever or
/// rests; `victim` does not crash.
fn stuck(
    graph: &Graph,
    n: usize,
    victim: usize,
    crashes: usize,
    counts: impl Fn(usize) -> bool,
    left_out: impl Fn(usize, &Edge) -> bool,
    rests: impl Fn(usize, usize) -> bool,
) -> bool {
    let mut sets = (0..1usize << n)
        .filter(|set| set.count_ones() as usize <= crashes && set >> victim & 1 == 0);
    sets.any(|crashed| {
        let step = |from: usize, edge: &Edge| crashed >> edge.p & 1 == 0 && !left_out(from, edge);
        let part = parts(graph, &counts, step);
        // For each part, the processes that take steps in it, rest in it, or have crashed.
        let mut content: FxHashMap<usize, usize> = FxHashMap::default();
        for from in 0..graph.edges.len() {
            let Some(id) = part[from] else { continue };
            let set = content.entry(id).or_insert(crashed);
            for edge in graph.edges[from]
                .iter()
                .filter(|edge| part[edge.to] == part[from] && step(from, edge))
            {
                *set |= 1 << edge.p;
            }
            (0..n).filter(|&p| rests(from, p)).for_each(|p| *set |= 1 << p);
        }
        content.values().any(|&set| set == (1 << n) - 1)
    })
}

/// The graph with what is remembered of the order of arrival: for each process in a passage, the
/// processes that `counts` which were through their doorway when it began, and have neither entered
/// nor given up since.
struct Remembering {
    graph: Graph,
    /// For each state, the state of the graph without memory.
    state: Vec<usize>,
    before: Vec<Vec<Vec<usize>>>,
}

impl Remembering {
    /// `forget` says whether a process's own memory ends when it enters or gives up, or at the end
    /// of its passage. Stops where `bad` says so of a process that enters, those that it overtakes
    /// and the state after that; the steps to there.
    fn new(
        graph: &Graph,
        n: usize,
        counts: impl Fn(usize, usize, usize) -> bool,
        forget: bool,
        bad: impl Fn(&[usize], usize) -> bool,
    ) -> Result<Self, usize> {
        let start = (0, vec![Vec::new(); n]);
        let mut ids = FxHashMap::from_iter([(start.clone(), 0)]);
        let mut states = vec![start];
        let mut product = Graph { depth: vec![0], ..Graph::default() };
        while product.edges.len() < states.len() {
            let (from, before) = states[product.edges.len()].clone();
            let steps = product.depth[product.edges.len()] + 1;
            let mut edges = Vec::new();
            for edge in &graph.edges[from] {
                let (p, regions) = (edge.p, &graph.regions[edge.to]);
                let mut before = before.clone();
                if graph.regions[from][p] == Region::Remainder {
                    let others = (0..n).filter(|&q| q != p && regions[q] == Region::Waiting);
                    before[p] = others.filter(|&q| counts(edge.to, p, q)).collect();
                }
                if enters(graph, from, edge) && bad(&before[p], edge.to) {
                    return Err(steps);
                }
                if enters(graph, from, edge) || edge.gives_up {
                    before.iter_mut().for_each(|those| those.retain(|&q| q != p));
                    if forget {
                        before[p].clear();
                    }
                }
                if regions[p] == Region::Remainder {
                    before[p].clear();
                }
                let to = *ids.entry((edge.to, before)).or_insert_with_key(|to| {
                    states.push(to.clone());
                    product.depth.push(steps);
                    states.len() - 1
                });
                edges.push(Edge { to, ..*edge });
            }
            product.edges.push(edges);
            product.regions.push(graph.regions[from].clone());
        }
        let (state, before) = states.into_iter().unzip();
        Ok(Self { graph: product, state, before })
    }
}

/// A search over states and, for each process in its entry section, the processes that it
/// overtakes. `bad` judges them when the process enters, in the state after that.
fn overtaking(
    graph: &Graph,
    n: usize,
    counts: impl Fn(usize, usize, usize) -> bool,
    bad: impl Fn(&[usize], usize) -> bool,
) -> Decided {
    let shortest = Remembering::new(graph, n, counts, true, bad).err();
    Decided { holds: shortest.is_none(), shortest }
}

/// Whether a process takes steps for ever and waits, although every process in a passage that keeps
/// it out began after it was through its doorway.
fn leader_waits(graph: &Graph, n: usize) -> bool {
    let conflicting = |state: usize, p: usize, q: usize| {
        conflict(graph.sessions[state][p], graph.sessions[state][q])
    };
    let Ok(product) = Remembering::new(graph, n, conflicting, false, |_, _| false) else {
        unreachable!()
    };
    (0..n).any(|p| {
        let leads = |at: usize| {
            let (state, regions) = (product.state[at], &product.graph.regions[at]);
            let is_behind =
                |q: usize| regions[q] == Region::Remainder || product.before[at][q].contains(&p);
            regions[p] == Region::Waiting
                && (0..n).all(|q| q == p || is_behind(q) || !conflicting(state, p, q))
        };
        lingers(&product.graph, p, leads)
    })
}
