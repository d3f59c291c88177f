//! Watches one run for violations that a single step shows.

use doorway_core::{Property, layout::Erased};

use crate::{machine::Event, subject::Region};

/// Watches a run.
#[derive(Clone, Debug)]
pub struct Monitor {
    k: usize,
    bound: Option<u64>,
    regions: Vec<Region>,
    /// For each process, those who were through their doorway when it began and have not entered since.
    before: Vec<Vec<bool>>,
    /// Those who have been overtaken and are not in yet.
    behind: Vec<bool>,
}

impl Monitor {
    /// A watch over `n` processes of which `k` may be inside, and over registers with a bound.
    pub fn new(n: usize, k: usize, bound: Option<u64>) -> Self {
        Self { k, bound, regions: vec![Region::Remainder; n], before: vec![vec![false; n]; n], behind: vec![false; n] }
    }

    /// Notes a step and what its register holds afterwards; returns what it violates.
    pub fn observe(&mut self, event: &Event, value: Option<&dyn Erased>) -> Vec<Property> {
        let p = event.process;
        let mut violated = Vec::new();
        if event.from == Region::Remainder {
            for q in 0..self.regions.len() {
                self.before[p][q] = q != p && self.regions[q] == Region::Waiting;
            }
        }
        self.regions[p] = event.to;
        if event.to == Region::Critical && event.from != Region::Critical {
            // With one slot both names mean the same.
            let mut note = |with_one_slot, property| {
                if self.k == 1 {
                    violated.push(with_one_slot);
                }
                violated.push(property);
            };
            if self.regions.iter().filter(|&&region| region == Region::Critical).count() > self.k {
                note(Property::MutualExclusion, Property::KExclusion);
            }
            for q in self.overtaken(p).collect::<Vec<_>>() {
                self.behind[q] = true;
            }
            if self.overtaken(p).count() >= self.k {
                note(Property::Fcfs, Property::KFcfs);
            }
        }
        if event.to == Region::Critical || event.abandons {
            self.behind[p] = false;
            self.before[p].fill(false);
            self.before.iter_mut().for_each(|before| before[p] = false);
        }
        if let (Some(bound), Some(value)) = (self.bound, value)
            && value.magnitude() > bound
        {
            violated.push(Property::BoundedRegisters);
        }
        violated
    }

    /// Those who have been overtaken since they were through their doorway, and are not in yet.
    pub fn behind(&self) -> impl Iterator<Item = usize> + '_ {
        self.behind.iter().enumerate().filter(|(_, behind)| **behind).map(|(q, _)| q)
    }

    /// Those whom `p` would overtake by entering now.
    pub fn overtaken(&self, p: usize) -> impl Iterator<Item = usize> + '_ {
        self.before[p].iter().enumerate().filter(|(_, before)| **before).map(|(q, _)| q)
    }
}
