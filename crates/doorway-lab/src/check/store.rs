//! The set of states that have been reached: an open-addressing table of whole keys, and the keys in the order in which
//! they were found. The latter is at once the queue of the breadth-first search, its levels, and the numbering of states.

use memmap2::MmapMut;

use super::pack::{Key, hash};

/// Slots for keys, all zero at first.
///
/// On memory straight from the system, in huge pages where there are any: the table is read at random places and grows
/// all the time, and two workers that take page faults wait for each other in the kernel.
///
/// A key's slot is given by the upper bits of its hash, so that a larger table has the keys in the same order,
/// and growing reads one table and writes the other from front to back.
struct Table<const W: usize> {
    map: MmapMut,
    /// How far to shift a hash for a slot.
    shift: u32,
}

impl<const W: usize> Table<W> {
    fn new(capacity: usize) -> Self {
        let map = MmapMut::map_anon(capacity * size_of::<Key<W>>()).expect("there is memory for the states");
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage); // only advice: without it, the same but slower
        Self { map, shift: u64::BITS - capacity.trailing_zeros() }
    }

    #[inline(always)]
    fn home(shift: u32, hash: u64) -> usize {
        (hash >> shift) as usize
    }

    #[inline(always)]
    fn slots(&self) -> &[Key<W>] {
        bytemuck::cast_slice(&self.map)
    }

    #[inline(always)]
    fn slots_mut(&mut self) -> &mut [Key<W>] {
        bytemuck::cast_slice_mut(&mut self.map)
    }
}

/// The states of one worker.
pub(crate) struct Shard<const W: usize> {
    table: Table<W>,
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
        let capacity = (log.len() * 2).next_power_of_two().max(0x400);
        let mut shard = Self { table: Table::new(capacity), log: Vec::new(), levels, level_end };
        let keys: Vec<_> = log.iter().map(|key| (*key, hash(key))).collect();
        keys.chunks(256).for_each(|batch| shard.insert_all(batch));
        shard
    }

    fn grow(&mut self, capacity: usize) {
        let mut larger = Table::new(capacity);
        let (shift, mask) = (larger.shift, capacity - 1);
        let slots = larger.slots_mut();
        for key in self.table.slots().iter().filter(|key| key[0] != 0) {
            let mut slot = Table::<W>::home(shift, hash(key));
            while slots[slot][0] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = *key;
        }
        self.table = larger;
    }

    /// Adds keys, each with its hash; the memory that they will need is touched first, all of it, so that the processor
    /// waits for many cache misses at once instead of one after the other.
    pub(crate) fn insert_all(&mut self, keys: &[(Key<W>, u64)]) {
        let capacity = self.table.slots().len();
        if (self.log.len() + keys.len()) * 3 > capacity * 2 {
            self.grow(((self.log.len() + keys.len()) * 2).next_power_of_two().max(capacity * 2));
        }
        let shift = self.table.shift;
        let slots = self.table.slots_mut();
        let mask = slots.len() - 1;
        let touched = keys.iter().fold(0, |sum, (_, hash)| sum ^ slots[Table::<W>::home(shift, *hash)][0]);
        std::hint::black_box(touched);
        for (key, hash) in keys {
            let mut slot = Table::<W>::home(shift, *hash);
            loop {
                let held = &slots[slot];
                if held[0] == 0 {
                    slots[slot] = *key;
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
        let slots = self.table.slots();
        let mask = slots.len() - 1;
        let mut slot = Table::<W>::home(self.table.shift, hash);
        while slots[slot][0] != 0 {
            if slots[slot] == *key {
                return Some(slot);
            }
            slot = (slot + 1) & mask;
        }
        None
    }

    /// For every slot of the table, the number of its state.
    pub(crate) fn numbers(&self) -> Numbers {
        let mut of_slot = vec![u32::MAX; self.table.slots().len()];
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
        (self.table.slots().len() + self.log.len()) * size_of::<Key<W>>()
    }
}

/// The numbers of states by the slot that they are in.
pub(crate) struct Numbers {
    of_slot: Vec<u32>,
}
