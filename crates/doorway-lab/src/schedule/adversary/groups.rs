//! Groups of processes that a strategy treats alike, in lists from which one step picks any
//! process.

use super::Locality;
use crate::random::Random;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// The process may go on.
    Free,
    /// The process is held back.
    Held,
    /// The process only looks, so it seems to wait.
    Waits,
    /// The process moves when no other process does.
    Last,
    /// The process makes no more steps.
    Gone,
}

/// The group of every process.
pub(super) struct Groups {
    /// For each process, its group and its position in the list of that group.
    places: Vec<(Group, usize)>,
    lists: [Vec<usize>; Group::Gone as usize],
}

impl Groups {
    /// Makes groups in which all processes are free.
    pub(super) fn new(n: usize) -> Self {
        let places = (0..n).map(|p| (Group::Free, p)).collect();
        Self { places, lists: [(0..n).collect(), Vec::new(), Vec::new(), Vec::new()] }
    }

    pub(super) fn of(&self, group: Group) -> &[usize] {
        &self.lists[group as usize]
    }

    pub(super) fn last(&self, group: Group) -> Option<usize> {
        self.of(group).last().copied()
    }

    pub(super) fn put(&mut self, p: usize, group: Group) {
        let (old, at) = self.places[p];
        if old == group {
            return;
        }
        if old != Group::Gone {
            let list = &mut self.lists[old as usize];
            list.swap_remove(at);
            if let Some(&moved) = list.get(at) {
                self.places[moved].1 = at;
            }
        }
        self.places[p] = (group, 0);
        if group != Group::Gone {
            let list = &mut self.lists[group as usize];
            self.places[p].1 = list.len();
            list.push(p);
        }
    }

    /// Picks a process of a group that still has a pending step. A crash is not reported to the
    /// groups.
    pub(super) fn pick(
        &mut self,
        group: Group,
        view: &Locality<'_>,
        random: &mut Random,
    ) -> Option<usize> {
        loop {
            let list = self.of(group);
            if list.is_empty() {
                return None;
            }
            let p = list[random.below(list.len() as u64) as usize];
            if view.pending(p).is_some() {
                return Some(p);
            }
            self.put(p, Group::Gone);
        }
    }
}
