//! Makes one pass over the graph for each process. A pass finds where the process can be kept from
//! a region for ever, and what that violates.
//!
//! The passes of different processes are independent and run at the same time. Each pass decides
//! all properties of progress. It also finds the states in which its process is not enabled to
//! enter, for `fife` and the enabling properties.

use doorway_core::Property;

use super::{
    graph::{Graph, MOST_AT_ONCE},
    progress::{Inquiry, Lasso, Ranked, Steps},
    timings::Timings,
};
use crate::{check::parallel, subject::Region};

/// What the passes have to find.
pub(super) struct Wanted {
    /// Properties of progress.
    pub(super) progress: Vec<Property>,
    /// Whether to find the processes that are not enabled to enter.
    pub(super) kept_out: bool,
    /// How many processes may crash.
    pub(super) crashes: usize,
}

/// What the passes have found.
pub(super) struct Kept {
    /// The violated properties of progress, each with the run to show.
    pub(super) lassos: Vec<(Property, Lasso)>,
    /// For every state, the processes that are not enabled to enter, as bits; empty unless
    /// requested.
    pub(super) kept_out: Vec<u16>,
}

/// Makes the passes.
pub(super) fn look(
    graph: &Graph,
    wanted: &Wanted,
    depth: &(dyn Fn(u32) -> usize + Sync),
    workers: usize,
    timings: &Timings,
) -> Kept {
    if wanted.progress.is_empty() && !wanted.kept_out {
        return Kept { lassos: Vec::new(), kept_out: Vec::new() };
    }
    let wants = |exit: bool| {
        wanted.progress.iter().any(|&property| (property == Property::BoundedExit) == exit)
    };
    let (entry, exit, all) = (wants(false), wants(true), wanted.kept_out);
    let passes = parallel::each(graph.n, workers.min(MOST_AT_ONCE), |p| {
        timings.stage(format!("process {p} kept out"), || {
            let best = wanted.progress.iter().map(|&property| (property, None)).collect();
            let mut inquiry = Inquiry { graph, p, crashes: wanted.crashes, depth, best };
            let included = |state: u32| match graph.region(state, p) {
                Region::Critical => false,
                Region::Doorway | Region::Waiting => all || entry,
                Region::Exit => all || exit,
                Region::Remainder => all,
            };
            let kept = parts_without(graph, p, Region::Critical, included, |part| {
                if part.movers >> p & 1 == 1 {
                    inquiry.look_inside(part.members, part.movers);
                }
            });
            (inquiry.best, kept)
        })
    });
    let mut best: Vec<(Property, Option<Ranked>)> =
        wanted.progress.iter().map(|&property| (property, None)).collect();
    let mut kept_out = if all { vec![0; graph.states()] } else { Vec::new() };
    for (p, (found, kept)) in passes.into_iter().enumerate() {
        for ((_, best), (_, new)) in best.iter_mut().zip(found) {
            if let Some(new) = new
                && best.as_ref().is_none_or(|best| new.rank < best.rank)
            {
                *best = Some(new);
            }
        }
        kept.put_into(&mut kept_out, p);
    }
    let lassos =
        best.into_iter().filter_map(|(property, best)| Some((property, best?.lasso))).collect();
    Kept { lassos, kept_out }
}

/// Returns for every state the processes that are **not** enabled to get to the region.
///
/// A process is not enabled if there is a run from here in which it takes steps for ever and is
/// never there, or a run after which it takes none.
pub(super) fn not_enabled(graph: &Graph, goal: Region, workers: usize) -> Vec<u16> {
    let mut kept = vec![0; graph.states()];
    let passes = parallel::each(graph.n, workers.min(MOST_AT_ONCE), |p| {
        parts_without(graph, p, goal, |state| graph.region(state, p) != goal, |_| ())
    });
    passes.iter().enumerate().for_each(|(p, states)| states.put_into(&mut kept, p));
    kept
}

/// A strongly connected part of the graph in which a process is never where it wants to go.
pub(super) struct Without<'a> {
    pub(super) members: &'a [u32],
    /// The processes that take steps among the members.
    pub(super) movers: u32,
    /// Whether the process can take steps for ever among the members, or take none at all.
    pub(super) is_end: bool,
}

/// Visits the strongly connected parts among the included states, in none of which `p` is in
/// `goal`. Every part comes after all parts that can be reached from it. Returns the states from
/// which there is a way to an end.
pub(super) fn parts_without(
    graph: &Graph,
    p: usize,
    goal: Region,
    included: impl Fn(u32) -> bool,
    mut visit: impl FnMut(&Without<'_>),
) -> States {
    let steps = Steps::avoiding(p, goal);
    let allowed = |from: u32, q: usize, to: u32| q != p || steps.step(graph, from, q, to);
    let mut kept = States::none(graph.states());
    graph.components(included, allowed, |members, number, found| {
        let (mut movers, mut is_end, mut is_kept) = (0, false, false);
        for &from in members {
            let mut moves = false;
            for (q, to) in graph.steps(from) {
                moves |= q == p;
                match found.of(to) {
                    Some(at) if at == number => movers |= u32::from(allowed(from, q, to)) << q,
                    Some(_) => is_kept = is_kept || kept.has(to) && allowed(from, q, to),
                    None => {}
                }
            }
            is_end |= !moves;
        }
        is_end |= movers >> p & 1 == 1;
        if is_end || is_kept {
            members.iter().for_each(|&state| kept.add(state));
        }
        visit(&Without { members, movers, is_end });
    });
    kept
}

/// A set of states.
pub(super) struct States(Vec<u64>);

impl States {
    fn none(total: usize) -> Self {
        Self(vec![0; total.div_ceil(64)])
    }

    fn add(&mut self, state: u32) {
        self.0[state as usize / 64] |= 1 << (state % 64);
    }

    fn has(&self, state: u32) -> bool {
        self.0[state as usize / 64] >> (state % 64) & 1 == 1
    }

    /// Puts `p` into the process sets of these states.
    fn put_into(&self, sets: &mut [u16], p: usize) {
        for (state, set) in sets.iter_mut().enumerate() {
            *set |= u16::from(self.has(state as u32)) << p;
        }
    }
}
