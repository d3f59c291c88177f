//! The set of states that have been reached: an open-addressing table of whole keys, and the keys in the order in which
//! they were found. The latter is at once the queue of the breadth-first search, its levels, and the numbering of states.

use super::pack::{Key, hash};

/// The states of one worker.
pub(crate) struct Shard<const W: usize> {
    table: Vec<Key<W>>,
    /// All states, in the order in which they were found.
    pub(crate) log: Vec<Key<W>>,
    /// Where each level of the search begins in the log; the last one is being expanded.
    pub(crate) levels: Vec<usize>,
    /// Where the level being expanded ends.
    pub(crate) level_end: usize,
}

impl<const W: usize> Shard<W> {
    /// From states that were found before, in their order.
    pub(crate) fn rebuilt(log: Vec<Key<W>>, levels: Vec<usize>, level_end: usize) -> Self {
        let mut shard = Self { table: Vec::new(), log, levels, level_end };
        shard.rehash((shard.log.len() * 2).next_power_of_two().max(1 << 10));
        shard
    }

    fn rehash(&mut self, capacity: usize) {
        self.table = vec![[0; W]; capacity];
        let mask = capacity - 1;
        for key in &self.log {
            let mut slot = hash(key) as usize & mask;
            while self.table[slot][0] != 0 {
                slot = (slot + 1) & mask;
            }
            self.table[slot] = *key;
        }
    }

    /// Adds keys, each with its hash; the memory that they will need is touched first, all of it, so that the processor
    /// waits for many cache misses at once instead of one after the other.
    pub(crate) fn insert_all(&mut self, keys: &[(Key<W>, u64)]) {
        if (self.log.len() + keys.len()) * 5 > self.table.len() * 3 {
            self.rehash(((self.log.len() + keys.len()) * 4).next_power_of_two());
        }
        let mask = self.table.len() - 1;
        let touched = keys.iter().fold(0, |sum, (_, hash)| sum ^ self.table[*hash as usize & mask][0]);
        std::hint::black_box(touched);
        for (key, hash) in keys {
            let mut slot = *hash as usize & mask;
            loop {
                let held = &self.table[slot];
                if held[0] == 0 {
                    self.table[slot] = *key;
                    self.log.push(*key);
                    break;
                }
                if held == key {
                    break;
                }
                slot = (slot + 1) & mask;
            }
        }
    }

    fn slot(&self, key: &Key<W>, hash: u64) -> Option<usize> {
        let mask = self.table.len() - 1;
        let mut slot = hash as usize & mask;
        while self.table[slot][0] != 0 {
            if self.table[slot] == *key {
                return Some(slot);
            }
            slot = (slot + 1) & mask;
        }
        None
    }

    /// For every slot of the table, the number of its state.
    pub(crate) fn numbers(&self) -> Numbers {
        let mut of_slot = vec![u32::MAX; self.table.len()];
        for (number, key) in self.log.iter().enumerate() {
            if let Some(slot) = self.slot(key, hash(key)) {
                of_slot[slot] = number as u32;
            }
        }
        Numbers { of_slot }
    }

    /// The number of a state in the log.
    pub(crate) fn number(&self, numbers: &Numbers, key: &Key<W>, hash: u64) -> Option<u32> {
        self.slot(key, hash).map(|slot| numbers.of_slot[slot])
    }

    /// The bytes that the states take.
    pub(crate) fn bytes(&self) -> usize {
        (self.table.len() + self.log.len()) * size_of::<Key<W>>()
    }
}

/// The numbers of states by the slot that they are in.
pub(crate) struct Numbers {
    of_slot: Vec<u32>,
}

/// Which worker owns a state.
#[inline(always)]
pub(crate) fn owner(hash: u64, workers: usize) -> usize {
    ((u128::from(hash) * workers as u128) >> 64) as usize
}
