//! Decides from the automata whether sections end after a bounded number of steps.

use doorway_core::Ticket;
use rustc_hash::FxHashMap;

use super::{Identity, Known, Space};
use crate::subject::{LocalState, Region};

impl Space<'_> {
    /// Returns whether the automaton of `p` shows that it leaves the region in a bounded number of
    /// steps.
    ///
    /// Only its own steps count. If `p` cannot go round in the region on its own, it does not go
    /// round among other processes. Tickets are left out, because they are relabelled while the
    /// process stays where it is.
    pub(crate) fn leaves(&self, p: usize, region: Region) -> bool {
        let process = &self.processes[p];
        let mut shapes: FxHashMap<(LocalState, Option<u32>), usize> = FxHashMap::default();
        let shape = |local: &Known| {
            let writing = match local.identity {
                Identity::At(_) => None,
                Identity::Writing(_, index) => Some(index),
            };
            (local.identity.state().relabel(&mut shapeless), writing)
        };
        let of: Vec<usize> = process
            .known
            .iter()
            .map(|local| {
                let next = shapes.len();
                *shapes.entry(shape(local)).or_insert(next)
            })
            .collect();
        let stays = |local: u32| process.known[local as usize].region == region;
        let mut steps = vec![Vec::new(); shapes.len()];
        for ((from, _, _), outcome) in &process.outcomes {
            if stays(*from) && stays(outcome.next) {
                steps[of[*from as usize]].push(of[outcome.next as usize]);
            }
        }
        is_acyclic(&steps)
    }
}

/// Maps all tickets but zero and ∞ to the same ticket.
fn shapeless(ticket: Ticket) -> Ticket {
    if ticket == Ticket::ZERO || ticket == Ticket::INFINITY { ticket } else { Ticket::ZERO.succ() }
}

/// Returns whether the graph has no cycle: nodes without steps are removed until none are left.
fn is_acyclic(steps: &[Vec<usize>]) -> bool {
    let mut before = vec![Vec::new(); steps.len()];
    steps.iter().enumerate().for_each(|(from, to)| to.iter().for_each(|&to| before[to].push(from)));
    let mut left: Vec<usize> = steps.iter().map(Vec::len).collect();
    let mut ends: Vec<usize> = (0..steps.len()).filter(|&node| left[node] == 0).collect();
    let mut gone = 0;
    while let Some(end) = ends.pop() {
        gone += 1;
        for &from in &before[end] {
            left[from] -= 1;
            if left[from] == 0 {
                ends.push(from);
            }
        }
    }
    gone == steps.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_back_are_found() {
        assert!(is_acyclic(&[]));
        assert!(is_acyclic(&[vec![1, 2], vec![2], vec![]]));
        assert!(!is_acyclic(&[vec![0]]), "a step that leads nowhere else is a way back");
        assert!(!is_acyclic(&[vec![1], vec![2], vec![1]]));
    }
}
