//! Finds the most expensive passage in a graph whose remote references are marked. That is the
//! longest path through the states in which the process is in a passage, or a cycle on which it can
//! pay again and again.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::{Edge, Graph};
use crate::subject::Region;

/// The largest cost of the passages of one process.
pub(crate) enum Dearest {
    /// The largest cost, and a walk that pays it: from a state in the remainder of the process
    /// through as much of a passage as needed.
    Bounded(u64, Vec<Edge>),
    /// There is a cycle inside a passage on which the process pays: from some state back to it.
    Unbounded(Vec<Edge>),
}

/// Returns the largest cost of the passages of process `p`.
pub(crate) fn dearest(graph: &Graph, p: usize) -> Dearest {
    let inside = |state: u32| graph.region(state, p) != Region::Remainder;
    let price = |edge: &Edge| u32::from(edge.p == p && edge.remote);
    let mut best = vec![0u32; graph.states()];
    let mut round: Option<(FxHashSet<u32>, Edge)> = None;
    graph.components(
        inside,
        |_, _, _| true,
        |members, number, found| {
            let mut most = 0;
            for edge in members.iter().flat_map(|&state| graph.charged(state)) {
                let to = edge.to as usize;
                if !inside(edge.to) {
                    most = most.max(price(&edge));
                } else if found.of(edge.to) != Some(number) {
                    most = most.max(price(&edge) + best[to]);
                } else if price(&edge) > 0 && round.is_none() {
                    round = Some((members.iter().copied().collect(), edge));
                }
            }
            members.iter().for_each(|&state| best[state as usize] = most);
        },
    );
    if let Some((members, edge)) = round {
        let mut walk = vec![edge];
        if edge.to != edge.from {
            walk.extend(way(graph, edge.to, |e| members.contains(&e.to), |e| e.to == edge.from));
        }
        return Dearest::Unbounded(walk);
    }
    // The cost that remains after a step.
    let rest = |edge: &Edge| if inside(edge.to) { best[edge.to as usize] } else { 0 };
    let first = (0..graph.states() as u32)
        .filter(|&state| !inside(state))
        .flat_map(|state| graph.charged(state).filter(|edge| edge.p == p))
        // The first of the most expensive walks: states are numbered by how far they are from the
        // start.
        .reduce(|a, b| if price(&b) + rest(&b) > price(&a) + rest(&a) { b } else { a });
    let Some(first) = first else { return Dearest::Bounded(0, Vec::new()) };
    let mut walk = vec![first];
    let mut at = first.to;
    for left in (1..=rest(&first)).rev() {
        let free = |e: &Edge| price(e) == 0 && inside(e.to) && best[e.to as usize] == left;
        walk.extend(way(graph, at, free, |e| price(e) == 1 && rest(e) == left - 1));
        at = walk.last().expect("there is a first step").to;
    }
    Dearest::Bounded(u64::from(price(&first) + rest(&first)), walk)
}

/// Returns the shortest way from a state along `allowed` steps, up to and including a `wanted`
/// step.
fn way(
    graph: &Graph,
    start: u32,
    allowed: impl Fn(&Edge) -> bool,
    wanted: impl Fn(&Edge) -> bool,
) -> Vec<Edge> {
    let mut came: FxHashMap<u32, Edge> = FxHashMap::default();
    let mut queue = VecDeque::from([start]);
    while let Some(from) = queue.pop_front() {
        for edge in graph.charged(from) {
            if wanted(&edge) {
                let mut walk = vec![edge];
                while let Some(before) = came.get(&walk[walk.len() - 1].from) {
                    walk.push(*before);
                }
                walk.reverse();
                return walk;
            }
            if allowed(&edge) && edge.to != start && !came.contains_key(&edge.to) {
                came.insert(edge.to, edge);
                queue.push_back(edge.to);
            }
        }
    }
    unreachable!("somebody has found that there is a way")
}
