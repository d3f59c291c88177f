//! The properties, decided naively on the reference's graph, each from its definition.

use doorway_core::Property;
use doorway_lab::Region;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::reference::{Edge, Graph};

/// A verdict of the reference: whether the property holds and, where runs are finite, how long a shortest violation is.
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
    let inside = |state: usize| graph.regions[state].iter().filter(|&&region| region == Region::Critical).count();
    let shortest = |bad: &dyn Fn(usize) -> bool| {
        let shortest = (0..graph.depth.len()).find(|&state| bad(state)).map(|state| graph.depth[state]);
        Decided { holds: shortest.is_none(), shortest }
    };
    let never = |bad: bool| Decided { holds: !bad, shortest: None };
    let waits_in_doorway = || (0..n).any(|p| lingers(graph, p, Region::Doorway));
    if property.name() == "bounded-doorway" {
        return never(waits_in_doorway());
    }
    // Order is about doorways that are passed in a bounded number of steps.
    if matches!(property, Property::Fcfs | Property::KFcfs | Property::Fife) && waits_in_doorway() {
        return never(true);
    }
    match property {
        Property::MutualExclusion => shortest(&|state| inside(state) > 1),
        Property::KExclusion => shortest(&|state| inside(state) > k),
        Property::BoundedRegisters => shortest(&|state| graph.largest[state] > bound),
        Property::BoundedExit => never((0..n).any(|p| lingers(graph, p, Region::Exit))),
        Property::Fcfs => overtaking(graph, n, |before, _| !before.is_empty()),
        Property::KFcfs => overtaking(graph, n, |before, _| before.len() >= k),
        Property::Fife => {
            let kept: Vec<Vec<bool>> = (0..n).map(|p| not_enabled(graph, p)).collect();
            overtaking(graph, n, |before, state| before.iter().any(|&q| kept[q][state]))
        }
        Property::DeadlockFreedom => never(stuck(graph, n, crashes, true)),
        Property::StarvationFreedom => never(stuck(graph, n, crashes, false)),
        other => unreachable!("{other} is not compared"),
    }
}

fn enters(graph: &Graph, from: usize, edge: &Edge) -> bool {
    graph.regions[from][edge.p] != Region::Critical && graph.regions[edge.to][edge.p] == Region::Critical
}

/// The strongly connected part of each state in the graph of these steps alone, by Kosaraju's algorithm; `None` for
/// states that do not count.
fn parts(graph: &Graph, counts: impl Fn(usize) -> bool, step: impl Fn(usize, &Edge) -> bool) -> Vec<Option<usize>> {
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
        graph.edges[from].iter().filter(|edge| allowed(from, edge)).for_each(|edge| back[edge.to].push(from));
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

/// Whether there is a run in which `p` takes steps for ever and stays in the region.
fn lingers(graph: &Graph, p: usize, region: Region) -> bool {
    let counts = |state: usize| graph.regions[state][p] == region;
    let part = parts(graph, counts, |_, _| true);
    let mut states = 0..graph.edges.len();
    states.any(|from| {
        counts(from)
            && graph.edges[from].iter().any(|edge| edge.p == p && counts(edge.to) && part[edge.to] == part[from])
    })
}

/// Whether there is a fair run in which, from some point on, a live process stays in its entry section; with `deadlock`,
/// one in which no process enters either. Fair is a run in which every process that has not crashed takes steps for ever
/// or stays in its remainder.
fn stuck(graph: &Graph, n: usize, crashes: usize, deadlock: bool) -> bool {
    let sets = (0..1usize << n).filter(|set| set.count_ones() as usize <= crashes);
    sets.flat_map(|set| (0..n).map(move |p| (set, p))).any(|(crashed, victim)| {
        if crashed >> victim & 1 == 1 {
            return false;
        }
        let counts = |state: usize| matches!(graph.regions[state][victim], Region::Doorway | Region::Waiting);
        let step = |from: usize, edge: &Edge| crashed >> edge.p & 1 == 0 && !(deadlock && enters(graph, from, edge));
        let part = parts(graph, counts, step);
        // For each part, the processes that take steps in it, rest in it, or have crashed.
        let mut content: FxHashMap<usize, usize> = FxHashMap::default();
        for from in 0..graph.edges.len() {
            let Some(id) = part[from] else { continue };
            let set = content.entry(id).or_insert(crashed);
            for edge in graph.edges[from].iter().filter(|edge| part[edge.to] == part[from] && step(from, edge)) {
                *set |= 1 << edge.p;
            }
            (0..n).filter(|&p| graph.regions[from][p] == Region::Remainder).for_each(|p| *set |= 1 << p);
        }
        content.values().any(|&set| set == (1 << n) - 1)
    })
}

/// For each state whether `p` is not enabled to enter: there is a run on which `p` does not enter and does not give up,
/// and either takes steps for ever or comes to where it has none.
fn not_enabled(graph: &Graph, p: usize) -> Vec<bool> {
    let counts = |state: usize| graph.regions[state][p] != Region::Critical;
    let step = |from: usize, edge: &Edge| {
        let entry = |state: usize| matches!(graph.regions[state][p], Region::Doorway | Region::Waiting);
        edge.p != p || !entry(from) || entry(edge.to) || graph.regions[edge.to][p] == Region::Critical
    };
    let part = parts(graph, counts, step);
    let total = graph.edges.len();
    let mut kept: Vec<bool> = (0..total)
        .map(|from| {
            let mut mine = graph.edges[from].iter().filter(|edge| edge.p == p).peekable();
            counts(from)
                && (mine.peek().is_none()
                    || mine.any(|edge| counts(edge.to) && step(from, edge) && part[edge.to] == part[from]))
        })
        .collect();
    loop {
        let leads = |from: usize, kept: &[bool]| {
            counts(from) && graph.edges[from].iter().any(|edge| kept[edge.to] && step(from, edge))
        };
        let more: Vec<usize> = (0..total).filter(|&from| !kept[from] && leads(from, &kept)).collect();
        if more.is_empty() {
            return kept;
        }
        more.into_iter().for_each(|state| kept[state] = true);
    }
}

/// A search over states and, for each process in its entry section, those that were through their doorway when it began
/// and have neither entered nor given up since. `bad` judges them when the process enters, in the state after that.
fn overtaking(graph: &Graph, n: usize, bad: impl Fn(&[usize], usize) -> bool) -> Decided {
    let start = (0, vec![Vec::new(); n]);
    let mut seen: FxHashSet<(usize, Vec<Vec<usize>>)> = FxHashSet::from_iter([start.clone()]);
    let mut level = vec![start];
    let mut steps = 0;
    while !level.is_empty() {
        steps += 1;
        let mut following = Vec::new();
        for (from, before) in level {
            for edge in &graph.edges[from] {
                let (p, regions) = (edge.p, &graph.regions[edge.to]);
                let mut before = before.clone();
                if graph.regions[from][p] == Region::Remainder {
                    before[p] = (0..n).filter(|&q| q != p && regions[q] == Region::Waiting).collect();
                }
                if enters(graph, from, edge) && bad(&before[p], edge.to) {
                    return Decided { holds: false, shortest: Some(steps) };
                }
                if enters(graph, from, edge) || edge.gives_up {
                    before[p].clear();
                    before.iter_mut().for_each(|those| those.retain(|&q| q != p));
                }
                if seen.insert((edge.to, before.clone())) {
                    following.push((edge.to, before));
                }
            }
        }
        level = following;
    }
    Decided { holds: true, shortest: None }
}
