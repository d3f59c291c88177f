//! Which processes are enabled to enter or to leave, and the properties that speak of that, each
//! from its definition.

use doorway_lab::Region;

use crate::{
    decide::parts,
    reference::{Edge, Graph},
};

/// For each state whether `p` is not enabled to get to the region: there is a run on which `p` is
/// never there and does not give up, and either takes steps for ever or comes to where it has none.
pub(crate) fn not_enabled(graph: &Graph, p: usize, goal: Region) -> Vec<bool> {
    let counts = |state: usize| graph.regions[state][p] != goal;
    let step = |from: usize, edge: &Edge| {
        let region = |state: usize| graph.regions[state][p];
        edge.p != p
            || !region(from).is_entry()
            || region(edge.to).is_entry()
            || region(edge.to) == Region::Critical
    };
    let part = parts(graph, counts, step);
    let total = graph.edges.len();
    let mut kept: Vec<bool> = (0..total)
        .map(|from| {
            let mut mine = graph.edges[from].iter().filter(|edge| edge.p == p).peekable();
            counts(from)
                && (mine.peek().is_none()
                    || mine.any(|edge| {
                        counts(edge.to) && step(from, edge) && part[edge.to] == part[from]
                    }))
        })
        .collect();
    loop {
        let leads = |from: usize, kept: &[bool]| {
            counts(from) && graph.edges[from].iter().any(|edge| kept[edge.to] && step(from, edge))
        };
        let more: Vec<usize> =
            (0..total).filter(|&from| !kept[from] && leads(from, &kept)).collect();
        if more.is_empty() {
            return kept;
        }
        more.into_iter().for_each(|state| kept[state] = true);
    }
}

/// Which processes wait in which state: in their entry section and not enabled to enter, or in
/// their exit section and not enabled to leave.
struct Waiting {
    /// For each process and state, whether it is not enabled to enter.
    kept_out: Vec<Vec<bool>>,
    /// The same for leaving.
    kept_in: Vec<Vec<bool>>,
}

impl Waiting {
    fn of(graph: &Graph, n: usize) -> Self {
        let kept = |goal: Region| (0..n).map(|p| not_enabled(graph, p, goal)).collect();
        Self { kept_out: kept(Region::Critical), kept_in: kept(Region::Remainder) }
    }

    fn to_enter(&self, graph: &Graph, state: usize, p: usize) -> bool {
        graph.regions[state][p].is_entry() && self.kept_out[p][state]
    }

    fn to_leave(&self, graph: &Graph, state: usize, p: usize) -> bool {
        graph.regions[state][p] == Region::Exit && self.kept_in[p][state]
    }
}

/// Whether FIFO enabling is violated: a process comes while another waits to enter, and becomes
/// enabled to enter while that one still waits; or it is in its critical section while another
/// waits to leave, and becomes enabled to leave.
pub(crate) fn overtaking(graph: &Graph, n: usize) -> bool {
    let waiting = Waiting::of(graph, n);
    let pairs = (0..n).flat_map(|i| (0..n).filter(move |&j| j != i).map(move |j| (i, j)));
    pairs.flat_map(|(i, j)| [(i, j, false), (i, j, true)]).any(|(i, j, leaving)| {
        let waits = |state: usize| {
            if leaving {
                waiting.to_leave(graph, state, i)
            } else {
                waiting.to_enter(graph, state, i)
            }
        };
        let begins = if leaving { Region::Critical } else { Region::Remainder };
        let kept = if leaving { &waiting.kept_in[j] } else { &waiting.kept_out[j] };
        let mut open: Vec<usize> = (0..graph.edges.len())
            .filter(|&state| waits(state) && graph.regions[state][j] == begins)
            .collect();
        let mut seen = vec![false; graph.edges.len()];
        open.iter().for_each(|&state| seen[state] = true);
        while let Some(state) = open.pop() {
            if !kept[state] {
                return true;
            }
            for edge in &graph.edges[state] {
                if waits(edge.to) && !std::mem::replace(&mut seen[edge.to], true) {
                    open.push(edge.to);
                }
            }
        }
        false
    })
}

/// Whether k-deadlock is not avoided: a process waits to leave, or waits to enter while fewer than
/// k processes are enabled to, and from there on steps are made for ever with which no process gets
/// to another region or ceases or begins to wait.
pub(crate) fn standstill(graph: &Graph, n: usize, k: usize) -> bool {
    let waiting = Waiting::of(graph, n);
    let total = graph.edges.len();
    let waits = |state: usize| -> Vec<bool> {
        (0..n)
            .map(|p| waiting.to_enter(graph, state, p) || waiting.to_leave(graph, state, p))
            .collect()
    };
    let waits: Vec<Vec<bool>> = (0..total).map(waits).collect();
    let is_still = |from: usize, edge: &Edge| {
        let region = |state: usize| graph.regions[state][edge.p].letter();
        region(from) == region(edge.to) && waits[from] == waits[edge.to]
    };
    // The states from which steps of that kind can be made for ever: what is left when all others
    // are taken out.
    let mut stays = vec![true; total];
    loop {
        let goes_on = |state: usize, stays: &[bool]| {
            graph.edges[state].iter().any(|edge| stays[edge.to] && is_still(state, edge))
        };
        let out: Vec<usize> =
            (0..total).filter(|&state| stays[state] && !goes_on(state, &stays)).collect();
        if out.is_empty() {
            break;
        }
        out.into_iter().for_each(|state| stays[state] = false);
    }
    (0..total).filter(|&state| stays[state]).any(|state| {
        let enabled = (0..n).filter(|&p| !waiting.kept_out[p][state]).count();
        (0..n).any(|p| {
            waiting.to_leave(graph, state, p) || waiting.to_enter(graph, state, p) && enabled < k
        })
    })
}
