//! FIFO enabling and avoidance of k-deadlock (Fischer et al. 1985, sections 3.3 and 3.4), on the
//! graph of all reachable states.
//!
//! The regions are R = remainder, T = doorway or waiting, C = critical, E = exit. For a region Z, a
//! process is *Z-enabled* in a state if it is in Z, or gets there by taking steps of its own,
//! whatever the other processes do. It is *T-waiting* if it is in T and not C-enabled, and
//! *E-waiting* if it is in E and not R-enabled. There is no fairness here: every schedule counts,
//! and a process that takes no more steps has failed.
//!
//! Two things are not in the paper. With passages bounded, a process that has made its own takes no
//! more steps; it stays in R and is not C-enabled. And no process keeps a process that gives up its
//! wait from entering, so its own giving up does not count against its being enabled.

use std::collections::VecDeque;

use super::{
    counterexample::Walk,
    graph::{Graph, NONE},
    kept::{not_enabled, parts_without},
    progress::{Lasso, Steps},
};
use crate::subject::Region;

/// Which processes are enabled in which state; sets of processes are bits.
pub(crate) struct Enabling {
    /// For every state, the processes that are **not** C-enabled.
    pub(crate) kept_out: Vec<u16>,
    /// For every state, the processes that are **not** R-enabled.
    kept_in: Vec<u16>,
    /// For every state, the processes that are T-waiting or E-waiting; the region of a process says
    /// which of the two it is.
    waiting: Vec<u16>,
}

impl Enabling {
    /// Computes the rest from the processes that are not C-enabled.
    pub(crate) fn of(graph: &Graph, kept_out: Vec<u16>, workers: usize) -> Self {
        let kept_in = not_enabled(graph, Region::Remainder, workers);
        let waiting = (0..graph.states() as u32)
            .map(|state| {
                let waits = |p: &usize| match graph.region(state, *p).letter() {
                    'T' => kept_out[state as usize] >> p & 1 == 1,
                    'E' => kept_in[state as usize] >> p & 1 == 1,
                    _ => false,
                };
                (0..graph.n).filter(waits).fold(0, |set, p| set | 1 << p)
            })
            .collect();
        Self { kept_out, kept_in, waiting }
    }

    /// Returns the processes that are T-waiting and those that are E-waiting.
    pub(crate) fn waiting(&self, graph: &Graph, state: u32) -> (u32, u32) {
        let all = u32::from(self.waiting[state as usize]);
        let leaving = (0..graph.n)
            .filter(|&p| graph.region(state, p) == Region::Exit)
            .fold(0, |set, p: usize| set | 1 << p);
        (all & !leaving, all & leaving)
    }

    /// Returns whether the step is no progress of any process: all processes are in the same
    /// regions as before and wait as before.
    fn stands_still(&self, graph: &Graph, from: u32, p: usize, to: u32) -> bool {
        graph.region(from, p).letter() == graph.region(to, p).letter()
            && self.waiting[from as usize] == self.waiting[to as usize]
    }
}

/// Finds a way from the state on which `p` is kept from `goal` for ever, and the loop at its end.
/// There is no loop if the way ends where `p` takes no more steps. `None` if there is no such way,
/// which means that `p` is enabled.
pub(crate) fn kept_from(
    graph: &Graph,
    state: u32,
    p: usize,
    goal: Region,
) -> Option<(Walk, Option<Lasso>)> {
    let steps = Steps::avoiding(p, goal);
    let mut end = vec![NONE; graph.states()];
    let mut parts = 0;
    parts_without(
        graph,
        p,
        goal,
        |state| steps.state(graph, state),
        |part| {
            if part.is_end {
                part.members.iter().for_each(|&member| end[member as usize] = parts);
            }
            parts += 1;
        },
    );
    if !steps.state(graph, state) {
        return None;
    }
    let allowed = |from, q, to| steps.allows(graph, from, q, to);
    let (walk, at) = shortest(graph, state, allowed, |state| end[state as usize] != NONE)?;
    if graph.steps(at).all(|(q, _)| q != p) {
        return Some((walk, None));
    }
    let members =
        (0..graph.states() as u32).filter(|&s| end[s as usize] == end[at as usize]).collect();
    Some((walk, Some(Lasso { members, movers: 1 << p, crashed: 0, steps, victim: p })))
}

/// Returns the shortest way to a wanted state.
fn shortest(
    graph: &Graph,
    start: u32,
    allowed: impl Fn(u32, usize, u32) -> bool,
    wanted: impl Fn(u32) -> bool,
) -> Option<(Walk, u32)> {
    let mut tree = Tree::new(graph);
    tree.plant(start);
    let mut queue = VecDeque::from([start]);
    while let Some(from) = queue.pop_front() {
        if wanted(from) {
            return Some((tree.walk(from), from));
        }
        for (p, to) in graph.steps(from) {
            if !tree.holds(to) && allowed(from, p, to) {
                tree.grow(from, p, to);
                queue.push_back(to);
            }
        }
    }
    None
}

/// How each state was reached first.
pub(super) struct Tree {
    came: Vec<(u32, u8)>,
}

impl Tree {
    pub(super) fn new(graph: &Graph) -> Self {
        Self { came: vec![(NONE, 0); graph.states()] }
    }

    pub(super) fn holds(&self, state: u32) -> bool {
        self.came[state as usize].0 != NONE
    }

    /// Adds a state from which ways begin: it is reached from itself.
    pub(super) fn plant(&mut self, root: u32) {
        self.came[root as usize] = (root, 0);
    }

    pub(super) fn grow(&mut self, from: u32, p: usize, to: u32) {
        self.came[to as usize] = (from, p as u8);
    }

    /// Returns the way to a state from its root.
    pub(super) fn walk(&self, mut to: u32) -> Walk {
        let mut walk = Walk::new();
        loop {
            let (from, p) = self.came[to as usize];
            if from == to {
                walk.reverse();
                return walk;
            }
            walk.push((from, usize::from(p), to));
            to = from;
        }
    }
}

/// A run in which a process overtakes another process.
#[derive(Debug)]
pub(crate) struct Overtaking {
    /// The state in which the overtaker is in its remainder, or in its critical section, while the
    /// overtaken process waits.
    pub(crate) start: u32,
    /// The walk from there to the state in which the overtaker is enabled.
    pub(crate) walk: Walk,
    pub(crate) overtaker: usize,
    pub(crate) overtaken: usize,
    /// Whether both processes are leaving.
    pub(crate) leaving: bool,
}

/// Returns a shortest run that violates FIFO enabling, if there is one.
///
/// `depth` is how many steps a state is away from the start; states are numbered in that order.
pub(crate) fn overtaking(
    graph: &Graph,
    enabling: &Enabling,
    depth: impl Fn(u32) -> usize,
) -> Option<Overtaking> {
    let mut best: Option<(usize, Overtaking)> = None;
    for leaving in [false, true] {
        for i in 0..graph.n {
            let waits = |state: u32| {
                enabling.waiting[state as usize] >> i & 1 == 1
                    && (graph.region(state, i) == Region::Exit) == leaving
            };
            for j in (0..graph.n).filter(|&j| j != i) {
                let limit = best.as_ref().map_or(usize::MAX, |(steps, _)| *steps);
                let begins = if leaving { Region::Critical } else { Region::Remainder };
                let kept = if leaving { &enabling.kept_in } else { &enabling.kept_out };
                let found = overtakes(
                    graph,
                    waits,
                    |state| graph.region(state, j) == begins,
                    |state| kept[state as usize] >> j & 1 == 0,
                    &depth,
                    limit,
                );
                if let Some((steps, start, walk)) = found {
                    best = Some((
                        steps,
                        Overtaking { start, walk, overtaker: j, overtaken: i, leaving },
                    ));
                }
            }
        }
    }
    best.map(|(_, overtaking)| overtaking)
}

/// Finds the shortest run of fewer than `limit` steps that ends with a way from `begins` to `ends`,
/// where `waits` holds in all states of the way. Returns the number of steps, where the way begins,
/// and the way.
fn overtakes(
    graph: &Graph,
    waits: impl Fn(u32) -> bool,
    begins: impl Fn(u32) -> bool,
    ends: impl Fn(u32) -> bool,
    depth: impl Fn(u32) -> usize,
    limit: usize,
) -> Option<(usize, u32, Walk)> {
    let mut tree = Tree::new(graph);
    // Breadth first from all beginnings at once; each enters the queue when its turn comes.
    let mut roots =
        (0..graph.states() as u32).filter(|&state| waits(state) && begins(state)).peekable();
    let mut queue: VecDeque<(u32, usize)> = VecDeque::new();
    loop {
        let root_first = match (roots.peek(), queue.front()) {
            (None, None) => return None,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(&root), Some(&(_, steps))) => depth(root) <= steps,
        };
        let (state, steps) = if root_first {
            let root = roots.next()?;
            if tree.holds(root) {
                continue;
            }
            tree.plant(root);
            (root, depth(root))
        } else {
            queue.pop_front()?
        };
        if steps >= limit {
            return None;
        }
        if ends(state) {
            let walk = tree.walk(state);
            let start = walk.first().map_or(state, |&(from, _, _)| from);
            return Some((steps, start, walk));
        }
        for (p, to) in graph.steps(state) {
            if !tree.holds(to) && waits(to) {
                tree.grow(state, p, to);
                queue.push_back((to, steps + 1));
            }
        }
    }
}

/// A run in which no process makes progress, although a process could.
#[derive(Debug)]
pub(crate) struct Standstill {
    /// The state in which it begins.
    pub(crate) start: u32,
    /// The walk from there to the loop.
    pub(crate) walk: Walk,
    pub(crate) at: u32,
    pub(crate) lasso: Lasso,
}

/// Returns a run that exhibits k-deadlock, if there is one; of several, one that begins as early as
/// possible.
pub(crate) fn standstill(graph: &Graph, enabling: &Enabling, k: usize) -> Option<Standstill> {
    let still = |from: u32, p: usize, to: u32| enabling.stands_still(graph, from, p, to);
    // For each state, the part in which no process makes progress for ever, if the state is in one.
    // For each part, whether there is a way to such a part.
    let mut part = vec![NONE; graph.states()];
    let mut leads: Vec<bool> = Vec::new();
    let mut start = NONE;
    graph.components(
        |_| true,
        still,
        |members, number, found| {
            let goes_round = members.iter().any(|&state| {
                graph
                    .steps(state)
                    .any(|(p, to)| found.of(to) == Some(number) && still(state, p, to))
            });
            let stops = goes_round
                || members.iter().any(|&state| {
                    graph.steps(state).any(|(p, to)| {
                        let leads =
                            found.of(to).is_some_and(|at| at != number && leads[at as usize]);
                        leads && still(state, p, to)
                    })
                });
            leads.push(stops);
            if goes_round {
                members.iter().for_each(|&state| part[state as usize] = number);
            }
            if stops {
                let blamed =
                    members.iter().copied().filter(|&state| is_to_blame(graph, enabling, state, k));
                start = start.min(blamed.min().unwrap_or(NONE));
            }
        },
    );
    if start == NONE {
        return None;
    }
    let (walk, at) = shortest(graph, start, still, |state| part[state as usize] != NONE)?;
    let members: Vec<u32> = (0..graph.states() as u32)
        .filter(|&state| part[state as usize] == part[at as usize])
        .collect();
    let inside = |to: &u32| part[*to as usize] == part[at as usize];
    // A failed wait makes the shortest loop.
    let rounds = || graph.steps(at).filter(|(p, to)| inside(to) && still(at, *p, *to));
    let (mover, _) = rounds().find(|(_, to)| *to == at).or_else(|| rounds().next())?;
    let (entering, leaving) = enabling.waiting(graph, start);
    let victim = (entering | leaving).trailing_zeros() as usize;
    let lasso =
        Lasso { members, movers: 1 << mover, crashed: 0, steps: Steps::standing_still(), victim };
    Some(Standstill { start, walk, at, lasso })
}

/// Returns whether a run without progress from here exhibits k-deadlock: a process is T-waiting and
/// the state is not k-full, or a process is E-waiting.
fn is_to_blame(graph: &Graph, enabling: &Enabling, state: u32, k: usize) -> bool {
    let (entering, leaving) = enabling.waiting(graph, state);
    let enabled = graph.n - enabling.kept_out[state as usize].count_ones() as usize;
    leaving != 0 || entering != 0 && enabled < k
}
