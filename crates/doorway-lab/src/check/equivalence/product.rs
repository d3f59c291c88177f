//! The product of two systems, explored breadth first.

use std::{hash::BuildHasher, sync::atomic::Ordering::Relaxed};

use rustc_hash::FxBuildHasher;

use super::{
    Incomparable,
    side::{Side, Stepped},
};
use crate::{check::Progress, subject::Region};

/// The reason why the search ended.
pub(super) enum End {
    Exhausted,
    /// A step of this process from this state leads to different regions.
    Difference(usize, usize),
    Guess(&'static str),
    Full,
    Cancelled,
}

/// The states of the product found so far, one after another in one vector, and a table of their
/// positions.
pub(super) struct Product {
    numbers: Vec<u32>,
    stride: usize,
    /// For each state, the state from which it was found first, and the process that stepped.
    came: Vec<(u32, u16)>,
    slots: Vec<u32>,
    pub(super) transitions: u64,
    pub(super) depth: usize,
}

const FREE: u32 = u32::MAX;

impl Product {
    pub(super) fn new(start: Vec<u32>) -> Self {
        let mut product = Self {
            stride: start.len(),
            numbers: Vec::new(),
            came: Vec::new(),
            slots: vec![FREE; 1 << 12],
            transitions: 0,
            depth: 0,
        };
        product.insert(&start, 0, 0);
        product
    }

    pub(super) fn len(&self) -> usize {
        self.came.len()
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.numbers[..]) + size_of_val(&self.came[..]) + size_of_val(&self.slots[..])
    }

    pub(super) fn state(&self, state: usize) -> &[u32] {
        &self.numbers[state * self.stride..][..self.stride]
    }

    /// Returns the slot that the state is in, or is to be put in.
    fn slot(&self, state: &[u32]) -> usize {
        // The upper bits of this hash are the good ones.
        let home = FxBuildHasher.hash_one(state) >> 32;
        let mut slot = home as usize & (self.slots.len() - 1);
        while self.slots[slot] != FREE && self.state(self.slots[slot] as usize) != state {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    /// Adds a state; returns whether it is new.
    fn insert(&mut self, state: &[u32], from: usize, p: usize) -> bool {
        let slot = self.slot(state);
        if self.slots[slot] != FREE {
            return false;
        }
        self.slots[slot] = self.len() as u32;
        self.numbers.extend_from_slice(state);
        self.came.push((from as u32, p as u16));
        if self.len() * 2 > self.slots.len() {
            self.slots = vec![FREE; self.slots.len() * 2];
            for number in 0..self.len() {
                let slot = self.slot(self.state(number));
                self.slots[slot] = number as u32;
            }
        }
        true
    }

    pub(super) fn explore(
        &mut self,
        sides: &mut [Side<'_>; 2],
        bounded: bool,
        max_states: u64,
        progress: &Progress,
    ) -> Result<End, Incomparable> {
        let n = sides[0].n;
        let split = sides[0].width();
        let left = split + sides[1].width();
        let mut next_level = 1;
        let mut from = 0;
        while from < self.len() {
            if from == next_level {
                next_level = self.len();
                self.depth += 1;
                progress.states.store(self.len() as u64, Relaxed);
                progress.frontier.store((self.len() - from) as u64, Relaxed);
                progress.depth.store(self.depth as u64, Relaxed);
                if progress.cancel.load(Relaxed) {
                    return Ok(End::Cancelled);
                }
            }
            if self.len() as u64 > max_states.min(u64::from(FREE - 1)) {
                return Ok(End::Full);
            }
            for p in 0..n {
                let mut state = self.state(from).to_vec();
                // The process is in the same region in both systems, so one system is enough.
                if bounded && sides[0].region(&state[..split], p) == Region::Remainder {
                    if state[left + p] == 0 {
                        continue;
                    }
                    state[left + p] -= 1;
                }
                let mut regions = ['R'; 2];
                for (side, (region, range)) in
                    sides.iter_mut().zip(regions.iter_mut().zip([0..split, split..left]))
                {
                    match side.step(&mut state[range], p)? {
                        Stepped::To(to) => *region = to.letter(),
                        Stepped::Guess => return Ok(End::Guess(side.name)),
                    }
                }
                self.transitions += 1;
                if regions[0] != regions[1] {
                    return Ok(End::Difference(from, p));
                }
                self.insert(&state, from, p);
            }
            from += 1;
        }
        Ok(End::Exhausted)
    }

    /// Returns the schedule that leads to a state, followed by a step of `p`.
    pub(super) fn schedule(&self, mut state: usize, p: usize) -> Vec<usize> {
        let mut schedule = vec![p];
        while state != 0 {
            let (from, p) = self.came[state];
            schedule.push(usize::from(p));
            state = from as usize;
        }
        schedule.reverse();
        schedule
    }
}
