//! The reachable states as a graph, for everything that is not decided by looking at one step:
//! progress, enabledness, bounded exits.

use std::sync::Mutex;

use super::{
    components::{Found, Next, components},
    expand::{Expander, Step, event},
    pack::Key,
    parallel,
    search::Searched,
    store::Numbers,
};
use crate::subject::Region;

/// The bits of an edge that name its target; the remaining bits name the process.
const TARGET_BITS: u32 = 28;
/// The largest number of states of a graph.
pub(crate) const MAX_STATES: usize = 1 << TARGET_BITS;
/// The largest number of passes over the graph at the same time: each takes up to sixteen bytes for
/// every state.
pub(crate) const MOST_AT_ONCE: usize = 4;
/// The largest number of processes of a graph.
pub(crate) const MAX_PROCESSES: usize = 16;

/// The graph: states are numbers, edges carry the process that steps.
pub(crate) struct Graph {
    offsets: Vec<u64>,
    edges: Vec<u32>,
    /// For every edge, whether it is a remote reference, if references are noticed.
    remote: Vec<bool>,
    /// The regions of the processes, four bits for each process.
    regions: Vec<u64>,
    /// For every state, the processes that no active process keeps out (see
    /// [`Expander::unopposed`]), if requested.
    unopposed: Vec<u16>,
    /// The steps with which passages begin while other processes wait, in the order of the states,
    /// if requested.
    pub(crate) beginnings: Vec<Beginning>,
    pub(crate) n: usize,
    /// Whether every run in the graph is a true run. If a new ticket has fallen inside a gap of
    /// unknown width, a run may not be.
    pub(crate) exact: bool,
}

/// What a graph has beside states and steps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extras {
    pub(crate) unopposed: bool,
    pub(crate) beginnings: bool,
}

/// A step with which a process begins a passage while other processes are through their doorways;
/// sets of processes are bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Beginning {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) p: u8,
    /// The waiting processes that keep it out.
    pub(crate) conflicting: u16,
    /// The waiting processes that have asked for the same.
    pub(crate) alike: u16,
}

/// A step of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Edge {
    pub(crate) from: u32,
    pub(crate) p: usize,
    pub(crate) to: u32,
    /// Whether the step is a remote reference, if references are noticed.
    pub(crate) remote: bool,
}

/// Returns about how many bytes the numbers and the graph of a search take, while the graph is
/// built and used.
pub(crate) fn bytes<const W: usize>(
    searched: &Searched<'_, '_, W>,
    extras: Extras,
    workers: usize,
) -> u64 {
    let (states, edges) = (searched.store.states() as u64, searched.transitions);
    let unopposed = if extras.unopposed { size_of::<u16>() } else { 0 };
    // Assumes that every second state has one.
    let beginnings = if extras.beginnings { size_of::<Beginning>() / 2 } else { 0 };
    let per_state = 2 * size_of::<u64>() + unopposed + beginnings;
    let graph =
        (states * per_state as u64).saturating_add(edges.saturating_mul(size_of::<u32>() as u64));
    // Finding components takes up to 16 bytes for each state and process; following claims takes no
    // more.
    let looks = states * (16 * workers.min(MOST_AT_ONCE) + size_of::<u16>()) as u64;
    // The graph exists twice while its pieces are put together; nothing reads it before that.
    searched.store.numbers_bytes().saturating_add(graph.saturating_add(graph.max(looks)))
}

/// The graph of a piece of the states.
#[derive(Default)]
struct Part {
    counts: Vec<u32>,
    edges: Vec<u32>,
    remote: Vec<bool>,
    regions: Vec<u64>,
    unopposed: Vec<u16>,
    beginnings: Vec<Beginning>,
    guesses: bool,
}

/// The number of successors whose numbers are looked up at once.
const BATCH: usize = 512;

impl Graph {
    /// Builds the graph of an exhausted search; `None` if it has too many states.
    pub(crate) fn build<const W: usize>(
        searched: &Searched<'_, '_, W>,
        numbers: &Numbers,
        extras: Extras,
        workers: usize,
    ) -> Option<Self> {
        if !Self::can_hold(searched) {
            return None;
        }
        let (n, total) = (searched.plan.locals.len(), searched.store.states());
        let pieces = searched.store.pieces();
        // An expander learns what it needs, so each worker makes one expander for all of its
        // pieces.
        let expanders = Mutex::new(Vec::new());
        let parts = parallel::each(pieces.len(), workers, |i| {
            let kept = expanders.lock().expect("no worker panics").pop();
            let mut expander = kept
                .unwrap_or_else(|| Expander::new(searched.space, searched.plan, searched.rules));
            let part = Part::of(searched, numbers, extras, &mut expander, pieces[i]);
            expanders.lock().expect("no worker panics").push(expander);
            part
        });
        let edges = parts.iter().map(|part| part.edges.len()).sum();
        let mut graph = Self {
            offsets: Vec::with_capacity(total + 1),
            edges: Vec::with_capacity(edges),
            remote: Vec::new(),
            regions: Vec::with_capacity(total),
            unopposed: Vec::new(),
            beginnings: Vec::new(),
            n,
            exact: parts.iter().all(|part| !part.guesses),
        };
        graph.offsets.push(0);
        let mut end = 0;
        for part in parts {
            graph.offsets.extend(part.counts.iter().map(|&count| {
                end += u64::from(count);
                end
            }));
            graph.edges.extend(part.edges);
            graph.remote.extend(part.remote);
            graph.regions.extend(part.regions);
            graph.unopposed.extend(part.unopposed);
            graph.beginnings.extend(part.beginnings);
        }
        Some(graph)
    }

    /// Returns whether states and processes have numbers in a graph.
    pub(crate) fn can_hold<const W: usize>(searched: &Searched<'_, '_, W>) -> bool {
        searched.store.states() < MAX_STATES && searched.plan.locals.len() <= MAX_PROCESSES
    }

    /// Makes a graph with these steps from each state, and the regions of all processes there.
    #[cfg(test)]
    pub(crate) fn of_steps(
        steps: &[Vec<(usize, u32)>],
        regions: &[Vec<Region>],
        beginnings: Vec<Beginning>,
    ) -> Self {
        let lengths = steps.iter().scan(0, |end, steps| {
            *end += steps.len() as u64;
            Some(*end)
        });
        Self {
            offsets: [0].into_iter().chain(lengths).collect(),
            edges: steps.iter().flatten().map(|&(p, to)| (p as u32) << TARGET_BITS | to).collect(),
            remote: Vec::new(),
            regions: regions
                .iter()
                .map(|all| (0..).zip(all).fold(0, |set, (p, &r)| set | (r as u64) << (4 * p)))
                .collect(),
            unopposed: Vec::new(),
            beginnings,
            n: regions[0].len(),
            exact: true,
        }
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

    /// Returns whether no active process keeps `p` out, which must be in its entry section.
    pub(crate) fn is_unopposed(&self, state: u32, p: usize) -> bool {
        self.unopposed[state as usize] >> p & 1 == 1
    }

    /// Returns the steps from a state: the process, and the next state.
    #[inline]
    pub(crate) fn steps(&self, state: u32) -> impl Iterator<Item = (usize, u32)> + '_ {
        let (from, to) = (self.offsets[state as usize], self.offsets[state as usize + 1]);
        self.edges[from as usize..to as usize].iter().map(|edge| split(*edge))
    }

    /// Returns the steps from a state of a graph in which remote references are noticed.
    pub(crate) fn charged(&self, from: u32) -> impl Iterator<Item = Edge> + '_ {
        let remote = &self.remote[self.offsets[from as usize] as usize..];
        self.steps(from).zip(remote).map(move |((p, to), &remote)| Edge { from, p, to, remote })
    }

    /// Returns the `i`th step from a state.
    #[inline(always)]
    pub(crate) fn step_at(&self, state: u32, i: usize) -> Option<(usize, u32)> {
        let at = self.offsets[state as usize] as usize + i;
        (at < self.offsets[state as usize + 1] as usize).then(|| split(self.edges[at]))
    }

    /// Finds the strongly connected components of the part of the graph in which `states` and
    /// `steps` hold: see [`components`].
    pub(crate) fn components(
        &self,
        states: impl Fn(u32) -> bool,
        steps: impl Fn(u32, usize, u32) -> bool,
        visit: impl FnMut(&[u32], u32, &Found),
    ) {
        let edge = |from: u32, i: u32| match self.step_at(from, i as usize) {
            None => Next::End,
            Some((_, to)) if to == from => Next::Skip,
            Some((p, to)) if steps(from, p, to) => Next::To(to),
            Some(_) => Next::Skip,
        };
        components(self.states(), states, edge, visit);
    }
}

impl Part {
    fn of<const W: usize>(
        searched: &Searched<'_, '_, W>,
        numbers: &Numbers,
        extras: Extras,
        expander: &mut Expander<'_, '_, W>,
        (first, keys): (u32, &[Key<W>]),
    ) -> Self {
        let n = searched.plan.locals.len();
        let charged = searched.rules.charge.is_some();
        let mut part = Self::default();
        let mut batch: Vec<Key<W>> = Vec::with_capacity(2 * BATCH);
        let mut begun: Vec<(usize, usize, Key<W>)> = Vec::new();
        for (from, key) in (first..).zip(keys) {
            let before = part.edges.len();
            let expanded = expander.expand(key, |step: Step<W>| {
                if extras.beginnings && step.events & event::BEGINS != 0 {
                    begun.push((part.edges.len(), step.p, step.key));
                }
                // The target is set when the numbers of the whole batch are looked up.
                part.edges.push((step.p as u32) << TARGET_BITS);
                batch.push(step.key);
                part.guesses |= step.events & event::GUESSES != 0;
                if charged {
                    part.remote.push(step.events & event::REMOTE != 0);
                }
            });
            expanded.expect("everything has been learned");
            for (edge, p, key) in begun.drain(..) {
                let (conflicting, alike) = expander.waiting_beside(&key, p);
                if conflicting | alike != 0 {
                    let (conflicting, alike) = (conflicting as u16, alike as u16);
                    part.beginnings.push(Beginning {
                        from,
                        to: edge as u32,
                        p: p as u8,
                        conflicting,
                        alike,
                    });
                }
            }
            part.counts.push((part.edges.len() - before) as u32);
            let regions =
                (0..n).fold(0, |set, p| set | (expander.region(key, p) as u64) << (4 * p));
            part.regions.push(regions);
            if extras.unopposed {
                part.unopposed.push(expander.unopposed(key));
            }
            if batch.len() >= BATCH {
                part.resolve(searched, numbers, &mut batch);
            }
        }
        part.resolve(searched, numbers, &mut batch);
        for begins in &mut part.beginnings {
            (_, begins.to) = split(part.edges[begins.to as usize]);
        }
        part
    }

    /// Sets the targets of the last edges.
    fn resolve<const W: usize>(
        &mut self,
        searched: &Searched<'_, '_, W>,
        numbers: &Numbers,
        batch: &mut Vec<Key<W>>,
    ) {
        let first = self.edges.len() - batch.len();
        let mut edges = self.edges[first..].iter_mut();
        searched.store.number_all(numbers, batch, |number| {
            let target = number.expect("the search is exhausted");
            *edges.next().expect("there is an edge for every key") |= target;
        });
        batch.clear();
    }
}

/// No state.
pub(crate) const NONE: u32 = u32::MAX;

#[inline(always)]
fn split(edge: u32) -> (usize, u32) {
    ((edge >> TARGET_BITS) as usize, edge & (MAX_STATES as u32 - 1))
}
