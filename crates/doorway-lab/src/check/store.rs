//! The set of reached states. It is an open-addressing table of whole keys that all workers share,
//! and the keys level by level in the order in which they were found. This order is both the queue
//! of the breadth-first search and the numbering of states.

use std::{
    io,
    ops::Range,
    sync::{
        Arc,
        atomic::{
            AtomicU32, AtomicU64,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
};

use super::{
    keys::Part,
    pack::{Key, hash},
    parallel,
    room::Room,
    words::Words,
};

/// The keys of one level, as each worker found them.
pub(crate) type Level<const W: usize> = Vec<Part<W>>;

/// Returns how many keys a level has.
pub(crate) fn size<const W: usize>(level: &Level<W>) -> usize {
    level.iter().map(|part| part.len()).sum()
}

/// Keys, each in a slot of `W` words.
///
/// The first word of a slot is 0 while it is free; every key has the top bit of its first word set.
/// A key of several words is written behind [`BUSY`] in the first word, which is replaced last. So
/// a worker that sees a key sees all of it.
///
/// A key's home is given by the upper bits of its hash, so that a larger table has the keys in the
/// same order, and growing reads one table and writes the other from front to back.
pub(crate) struct Table<const W: usize> {
    words: Words,
    capacity: usize,
    /// The shift that turns a hash into a home.
    shift: u32,
    len: Apart<AtomicU64>,
}

/// A value that is written often, kept apart from values that are only read.
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

const BUSY: u64 = 1;
/// The number of states per piece: small enough to keep all workers busy to the end.
const PIECE: usize = 1 << 15;

impl<const W: usize> Table<W> {
    /// Makes a table for at least this many keys.
    pub(crate) fn new(keys: usize, room: &Arc<Room>) -> io::Result<Self> {
        let capacity = Self::capacity(keys);
        let shift = u64::BITS - capacity.trailing_zeros();
        Ok(Self {
            words: Words::new(capacity * W, room)?,
            capacity,
            shift,
            len: Apart(AtomicU64::new(0)),
        })
    }

    fn capacity(keys: usize) -> usize {
        (keys * 2).next_power_of_two().max(1 << 12)
    }

    /// Returns the bytes of a table for at least this many keys.
    pub(crate) fn bytes(keys: usize) -> u64 {
        (Self::capacity(keys) * size_of::<Key<W>>()) as u64
    }

    /// Returns how many keys there are, except those that workers have not counted yet.
    pub(crate) fn len(&self) -> usize {
        self.len.0.load(Relaxed) as usize
    }

    /// Returns whether this many more keys would make the table slow, or not fit at all.
    #[inline(always)]
    pub(crate) fn is_full(&self, more: usize) -> bool {
        (self.len() + more) * 3 > self.capacity * 2
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// Adds keys, each with its hash, and calls `new` with every key that was not there. First
    /// touches all the memory that the keys will need, so that the processor waits for many cache
    /// misses at once instead of one after the other.
    pub(crate) fn insert_all(&self, keys: &[(Key<W>, u64)], mut new: impl FnMut(&Key<W>)) {
        let words: &[AtomicU64] = &self.words;
        let touched =
            keys.iter().fold(0, |sum, (_, hash)| sum ^ words[self.home(*hash) * W].load(Relaxed));
        std::hint::black_box(touched);
        let mut added = 0;
        for (key, hash) in keys {
            if self.insert(words, key, *hash) {
                added += 1;
                new(key);
            }
        }
        self.len.0.fetch_add(added, Relaxed);
    }

    #[inline(always)]
    fn insert(&self, words: &[AtomicU64], key: &Key<W>, hash: u64) -> bool {
        let mut slot = self.home(hash);
        loop {
            let at = &words[slot * W..][..W];
            let mut first = at[0].load(Acquire);
            if first == 0 {
                let claim = if W == 1 { key[0] } else { BUSY };
                match at[0].compare_exchange(0, claim, AcqRel, Acquire) {
                    Ok(_) => {
                        if W > 1 {
                            at[1..]
                                .iter()
                                .zip(&key[1..])
                                .for_each(|(word, value)| word.store(*value, Relaxed));
                            at[0].store(key[0], Release);
                        }
                        return true;
                    }
                    Err(held) => first = held,
                }
            }
            while W > 1 && first == BUSY {
                std::hint::spin_loop();
                first = at[0].load(Acquire);
            }
            if first == key[0]
                && at[1..].iter().zip(&key[1..]).all(|(word, value)| word.load(Relaxed) == *value)
            {
                return false;
            }
            slot = (slot + 1) & (self.capacity - 1);
        }
    }

    /// Returns the slot that a key is in.
    pub(crate) fn slot(&self, key: &Key<W>) -> Option<usize> {
        let mut slot = self.home(hash(key));
        loop {
            let held = self.key(slot);
            if held[0] == 0 {
                return None;
            }
            if held == *key {
                return Some(slot);
            }
            slot = (slot + 1) & (self.capacity - 1);
        }
    }

    fn key(&self, slot: usize) -> Key<W> {
        std::array::from_fn(|i| self.words[slot * W + i].load(Relaxed))
    }

    /// Returns a table of the same keys for at least this many, moved by this many workers.
    pub(crate) fn grown(&self, keys: usize, workers: usize, room: &Arc<Room>) -> io::Result<Self> {
        let larger = Self::new(keys, room)?;
        let share = self.capacity.div_ceil(workers);
        let copy = |slots: Range<usize>| {
            for slot in slots {
                let key = self.key(slot);
                if key[0] != 0 {
                    larger.insert(&larger.words, &key, hash(&key));
                }
            }
        };
        std::thread::scope(|scope| {
            for worker in 1..workers {
                let slots = worker * share..((worker + 1) * share).min(self.capacity);
                scope.spawn(|| copy(slots));
            }
            copy(0..share);
        });
        larger.len.0.store(self.len.0.load(Relaxed), Relaxed);
        Ok(larger)
    }
}

/// All states found so far.
pub(crate) struct Store<const W: usize> {
    pub(crate) table: Table<W>,
    /// The states by how many steps they are away from the start. The last level holds what has
    /// been found from the level before, which is being expanded.
    pub(crate) levels: Vec<Level<W>>,
}

impl<const W: usize> Store<W> {
    /// Makes a store of states that were found before.
    pub(crate) fn new(levels: Vec<Level<W>>, room: &Arc<Room>) -> io::Result<Self> {
        let table = Table::new(levels.iter().map(size).sum(), room)?;
        for part in levels.iter().flatten() {
            for batch in part.chunks(256) {
                let batch: Vec<_> = batch.iter().map(|key| (*key, hash(key))).collect();
                table.insert_all(&batch, |_| ());
            }
        }
        Ok(Self { table, levels })
    }

    /// Makes the table larger. If memory does not suffice, the levels go to files first: levels are
    /// read and written from front to back, the table at random.
    pub(crate) fn grow(&mut self, keys: usize, workers: usize, room: &Arc<Room>) -> io::Result<()> {
        if room.limit() - room.used() < Table::<W>::bytes(keys) {
            self.levels.iter_mut().flatten().try_for_each(|part| part.spill(room))?;
        }
        self.table = self.table.grown(keys, workers, room)?;
        Ok(())
    }

    /// Returns how many states there are.
    pub(crate) fn states(&self) -> usize {
        self.levels.iter().map(size).sum()
    }

    /// Returns all states, in the order of their numbers.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key<W>> {
        self.levels.iter().flatten().flatten()
    }

    /// Returns all states in pieces for workers to share, each with the number of its first state.
    pub(crate) fn pieces(&self) -> Vec<(u32, &[Key<W>])> {
        let pieces = self.levels.iter().flatten().flat_map(|part| part.chunks(PIECE));
        pieces
            .scan(0, |next, piece| {
                let first = *next;
                *next += piece.len() as u32;
                Some((first, piece))
            })
            .collect()
    }

    /// Returns the bytes that the states take.
    pub(crate) fn bytes(&self) -> usize {
        (self.table.capacity + self.states()) * size_of::<Key<W>>()
    }

    /// Returns the bytes that the numbers of all states take.
    pub(crate) fn numbers_bytes(&self) -> u64 {
        (self.table.capacity * size_of::<u32>()) as u64
    }

    /// Returns the numbers of all states, looked up by this many workers.
    pub(crate) fn numbers(&self, workers: usize) -> Numbers {
        let of_slot: Vec<AtomicU32> =
            (0..self.table.capacity).map(|_| AtomicU32::new(u32::MAX)).collect();
        let pieces = self.pieces();
        parallel::each(pieces.len(), workers, |i| {
            let (first, keys) = pieces[i];
            let mut next = first;
            for batch in keys.chunks(256) {
                self.touch(&of_slot, batch);
                for key in batch {
                    let slot = self.table.slot(key).expect("every state is in the table");
                    of_slot[slot].store(next, Relaxed);
                    next += 1;
                }
            }
        });
        let starts = self
            .levels
            .iter()
            .flatten()
            .scan(0, |next, part| {
                let start = *next;
                *next += part.len();
                Some(start)
            })
            .collect();
        let level_starts = self
            .levels
            .iter()
            .scan(0, |next, level| {
                let start = *next;
                *next += size(level);
                Some(start)
            })
            .collect();
        Numbers { of_slot, starts, level_starts }
    }

    /// Returns the number of a state.
    pub(crate) fn number(&self, numbers: &Numbers, key: &Key<W>) -> Option<u32> {
        self.table.slot(key).map(|slot| numbers.of_slot[slot].load(Relaxed))
    }

    /// Looks up the numbers of many states at once, which is faster than one after the other.
    pub(crate) fn number_all(
        &self,
        numbers: &Numbers,
        keys: &[Key<W>],
        mut each: impl FnMut(Option<u32>),
    ) {
        self.touch(&numbers.of_slot, keys);
        keys.iter().for_each(|key| each(self.number(numbers, key)));
    }

    /// Touches the memory that looking up these keys will need, so that the processor waits for
    /// many cache misses at once.
    fn touch(&self, of_slot: &[AtomicU32], keys: &[Key<W>]) {
        let words: &[AtomicU64] = &self.table.words;
        let touched = keys.iter().fold(0, |sum, key| {
            let slot = self.table.home(hash(key));
            sum ^ words[slot * W].load(Relaxed) ^ u64::from(of_slot[slot].load(Relaxed))
        });
        std::hint::black_box(touched);
    }

    /// Returns the state of a number.
    pub(crate) fn key(&self, numbers: &Numbers, number: u32) -> Key<W> {
        let number = number as usize;
        // If several parts start here, all but the last are empty.
        let part = numbers.starts.partition_point(|&start| start <= number) - 1;
        let keys = self.levels.iter().flatten().nth(part).expect("there is a part");
        keys[number - numbers.starts[part]]
    }
}

/// The numbers of states: by the slot of each state, and where each part and level begins.
pub(crate) struct Numbers {
    of_slot: Vec<AtomicU32>,
    starts: Vec<usize>,
    level_starts: Vec<usize>,
}

impl Numbers {
    /// Returns how many steps a state is away from the start.
    pub(crate) fn depth(&self, number: u32) -> usize {
        self.level_starts.partition_point(|&start| start <= number as usize) - 1
    }

    /// Returns the number of the first state that is more than this many steps away from the start.
    pub(crate) fn end_of_level(&self, depth: usize) -> usize {
        self.level_starts.get(depth + 1).copied().unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// States are distinguished by their keys, not by their hashes: different keys with the same
    /// hash are all kept.
    #[test]
    fn hashes_may_collide() {
        let keys: Vec<Key<2>> = (0..500).map(|i| [(1 << 63) | (i % 7), i]).collect();
        let table = Table::new(1000, &Room::new(None, None)).expect("there is memory");
        let mut new = 0;
        for _ in 0..2 {
            let batch: Vec<_> = keys.iter().map(|key| (*key, 0x1234_5678_9abc_def0)).collect();
            table.insert_all(&batch, |_| new += 1);
        }
        assert_eq!((new, table.len()), (500, 500));
    }

    #[test]
    fn workers_agree_on_who_was_first() {
        fn insert<const W: usize>(limit: Option<u64>) {
            let keys: Vec<Key<W>> = (0..50_000u64)
                .map(|i| std::array::from_fn(|w| (i + w as u64) | (1 << 63)))
                .collect();
            let room = Room::new(limit, None);
            let table = Table::new(keys.len(), &room).expect("there is memory");
            let counts: Vec<usize> = std::thread::scope(|scope| {
                let handles: Vec<_> = (0..4)
                    .map(|_| {
                        scope.spawn(|| {
                            let mut mine = 0;
                            for batch in keys.chunks(100) {
                                let batch: Vec<_> =
                                    batch.iter().map(|key| (*key, hash(key))).collect();
                                table.insert_all(&batch, |_| mine += 1);
                            }
                            mine
                        })
                    })
                    .collect();
                handles.into_iter().map(|handle| handle.join().expect("no worker panics")).collect()
            });
            assert_eq!(counts.iter().sum::<usize>(), keys.len());
            let grown = table.grown(200_000, 3, &room).expect("there is memory");
            assert!(keys.iter().all(|key| grown.slot(key).is_some()));
            assert_eq!(grown.len(), keys.len());
        }
        for limit in [None, Some(4 << 20), Some(0)] {
            insert::<1>(limit);
            insert::<3>(limit);
        }
    }

    #[test]
    fn numbers_lead_back_to_keys() {
        let key = |i: u64| -> Key<1> { [(1 << 63) | i] };
        let room = Room::new(None, None);
        let levels = [[&[9][..], &[]], [&[], &[4, 5]], [&[1], &[2]], [&[], &[]]];
        let part =
            |numbers: &[u64]| Part::of(&numbers.iter().map(|&i| key(i)).collect::<Vec<_>>(), &room);
        let levels = levels
            .iter()
            .map(|level| level.iter().map(|numbers| part(numbers)).collect())
            .collect();
        let store = Store::new(levels, &room).expect("there is memory");
        let numbers = store.numbers(2);
        assert_eq!(store.states(), 5);
        for (number, (key, depth)) in
            [(key(9), 0), (key(4), 1), (key(5), 1), (key(1), 2), (key(2), 2)]
                .into_iter()
                .enumerate()
        {
            let number = number as u32;
            assert_eq!(store.number(&numbers, &key), Some(number));
            assert_eq!((store.key(&numbers, number), numbers.depth(number)), (key, depth));
        }
        assert_eq!(store.number(&numbers, &key(7)), None);
    }
}
