//! The reachable states as a graph, for everything that is not decided by looking at one step: progress, enabledness,
//! bounded exits.

use std::sync::Mutex;

use super::{
    expand::{Expander, Interrupt, Rules, Step, event},
    pack::{Key, Plan},
    space::Space,
    store::{Numbers, Store},
};
use crate::subject::Region;

/// Bits of an edge that name its target; the rest name the process.
const TARGET_BITS: u32 = 28;
/// More states than this have no graph.
pub(crate) const MAX_STATES: usize = 1 << TARGET_BITS;
/// More processes than this have no graph.
pub(crate) const MAX_PROCESSES: usize = 16;

/// The graph: states are numbers, edges carry the process that steps.
pub(crate) struct Graph {
    offsets: Vec<u64>,
    edges: Vec<u32>,
    /// For every edge whether it is a remote reference, if that is noticed.
    remote: Vec<bool>,
    /// Four bits per process.
    regions: Vec<u64>,
    /// For every state, the processes that nobody active keeps out (see [`Expander::unopposed`]).
    unopposed: Vec<u16>,
    pub(crate) n: usize,
    /// Every run in it is a true one. Where a new ticket has fallen inside a gap of unknown width, it may not be.
    pub(crate) exact: bool,
}

/// A step of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Edge {
    pub(crate) from: u32,
    pub(crate) p: usize,
    pub(crate) to: u32,
    /// It is a remote reference, if that is noticed.
    pub(crate) remote: bool,
}

/// The bytes that a graph takes while it is built and looked at, about: what is in it, twice for the edges, which are
/// gathered before they are put together; the list of keys; and what finding components takes.
pub(crate) fn bytes(states: usize, edges: u64) -> u64 {
    let looked_at = size_of::<(u32, u32, u32)>() + 3 * size_of::<u32>();
    let per_state = size_of::<u64>() * 2 + size_of::<u16>() + size_of::<u32>() + size_of::<usize>() + looked_at;
    states as u64 * per_state as u64 + edges * 2 * size_of::<u32>() as u64
}

#[derive(Default)]
struct Part {
    counts: Vec<u32>,
    edges: Vec<u32>,
    remote: Vec<bool>,
    regions: Vec<u64>,
    unopposed: Vec<u16>,
    guesses: bool,
}

impl Graph {
    /// Builds the graph of an exhausted search; `None` if it has too many states.
    pub(crate) fn build<const W: usize>(
        space: &Mutex<Space<'_>>,
        plan: &Plan,
        rules: Rules,
        store: &Store<W>,
        numbers: &Numbers,
        workers: usize,
    ) -> Option<Self> {
        let n = plan.locals.len();
        let total = store.states();
        if total >= MAX_STATES || n > MAX_PROCESSES {
            return None;
        }
        let keys: Vec<&Key<W>> = store.keys().collect();
        let build = |keys: &[&Key<W>]| -> Result<Part, Interrupt> {
            let mut expander = Expander::new(space, plan, rules);
            let mut part = Part::default();
            for key in keys {
                let before = part.edges.len();
                expander.expand(key, |step: Step<W>| {
                    let target = store.number(numbers, &step.key).expect("the search is exhausted");
                    part.edges.push((step.p as u32) << TARGET_BITS | target);
                    part.guesses |= step.events & event::GUESSES != 0;
                    if rules.charge.is_some() {
                        part.remote.push(step.events & event::REMOTE != 0);
                    }
                })?;
                part.counts.push((part.edges.len() - before) as u32);
                let regions = (0..n).fold(0, |set, p| set | (expander.region(key, p) as u64) << (4 * p));
                part.regions.push(regions);
                part.unopposed.push(expander.unopposed(key));
            }
            Ok(part)
        };
        let parts: Vec<Part> = std::thread::scope(|scope| {
            let share = total.div_ceil(workers).max(1);
            let handles: Vec<_> = keys.chunks(share).map(|keys| scope.spawn(|| build(keys))).collect();
            handles
                .into_iter()
                .map(|handle| handle.join().expect("a worker does not panic").expect("everything has been learned"))
                .collect()
        });
        let exact = parts.iter().all(|part| !part.guesses);
        let offsets = Vec::with_capacity(total + 1);
        let (edges, remote, regions, unopposed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut graph = Self { offsets, edges, remote, regions, unopposed, n, exact };
        graph.offsets.push(0);
        for part in parts {
            let mut end = graph.edges.len() as u64;
            for count in part.counts {
                end += u64::from(count);
                graph.offsets.push(end);
            }
            graph.edges.extend(part.edges);
            graph.remote.extend(part.remote);
            graph.regions.extend(part.regions);
            graph.unopposed.extend(part.unopposed);
        }
        Some(graph)
    }

    pub(crate) fn states(&self) -> usize {
        self.regions.len()
    }

    pub(crate) fn region(&self, state: u32, p: usize) -> Region {
        match self.regions[state as usize] >> (4 * p) & 15 {
            0 => Region::Remainder,
            1 => Region::Doorway,
            2 => Region::Waiting,
            3 => Region::Critical,
            _ => Region::Exit,
        }
    }

    /// Whether nobody active keeps `p` out, who is in its entry section.
    pub(crate) fn is_unopposed(&self, state: u32, p: usize) -> bool {
        self.unopposed[state as usize] >> p & 1 == 1
    }

    /// The steps from a state: who, and where to.
    #[inline]
    pub(crate) fn steps(&self, state: u32) -> impl Iterator<Item = (usize, u32)> + '_ {
        let (from, to) = (self.offsets[state as usize], self.offsets[state as usize + 1]);
        self.edges[from as usize..to as usize].iter().map(|edge| split(*edge))
    }

    /// The steps from a state of a graph in which remote references are noticed.
    pub(crate) fn charged(&self, from: u32) -> impl Iterator<Item = Edge> + '_ {
        let remote = &self.remote[self.offsets[from as usize] as usize..];
        self.steps(from).zip(remote).map(move |((p, to), &remote)| Edge { from, p, to, remote })
    }

    fn step_at(&self, state: u32, i: usize) -> Option<(usize, u32)> {
        let at = self.offsets[state as usize] as usize + i;
        (at < self.offsets[state as usize + 1] as usize).then(|| split(self.edges[at]))
    }

    /// The strongly connected components of the part of the graph in which `states` and `steps` hold, every component
    /// after all that can be reached from it (Tarjan 1972, without recursion). `visit` gets the members and, for every
    /// state, the component that it is in so far.
    pub(crate) fn components(
        &self,
        states: impl Fn(u32) -> bool,
        steps: impl Fn(u32, usize, u32) -> bool,
        mut visit: impl FnMut(&[u32], &[u32], u32),
    ) {
        const UNSEEN: u32 = 0;
        let total = self.states();
        let mut low = vec![UNSEEN; total];
        let mut component = vec![NONE; total];
        let mut stack: Vec<u32> = Vec::new();
        let mut calls: Vec<(u32, u32, u32)> = Vec::new(); // state, next edge, index
        let mut next_index = 1;
        let mut components = 0;
        for root in 0..total as u32 {
            if low[root as usize] != UNSEEN || !states(root) {
                continue;
            }
            calls.push((root, 0, next_index));
            low[root as usize] = next_index;
            stack.push(root);
            next_index += 1;
            while let Some(&mut (state, ref mut edge, index)) = calls.last_mut() {
                if let Some((p, to)) = self.step_at(state, *edge as usize) {
                    *edge += 1;
                    if to == state || !states(to) || !steps(state, p, to) {
                        continue;
                    }
                    if low[to as usize] == UNSEEN {
                        low[to as usize] = next_index;
                        stack.push(to);
                        calls.push((to, 0, next_index));
                        next_index += 1;
                    } else if component[to as usize] == NONE {
                        low[state as usize] = low[state as usize].min(low[to as usize]);
                    }
                    continue;
                }
                calls.pop();
                let least = low[state as usize];
                if let Some(&(caller, _, _)) = calls.last() {
                    low[caller as usize] = low[caller as usize].min(least);
                }
                if least == index {
                    let at = stack.iter().rposition(|&s| s == state).expect("a root is on the stack");
                    for &member in &stack[at..] {
                        component[member as usize] = components;
                    }
                    visit(&stack[at..], &component, components);
                    stack.truncate(at);
                    components += 1;
                }
            }
        }
    }
}

/// Not in any component yet.
pub(crate) const NONE: u32 = u32::MAX;

#[inline(always)]
fn split(edge: u32) -> (usize, u32) {
    ((edge >> TARGET_BITS) as usize, edge & (MAX_STATES as u32 - 1))
}
