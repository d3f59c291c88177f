//! Packs states into a few machine words. The value of every register and the local state of every
//! process is a small number, and the numbers are packed bit by bit. How many bits each number
//! needs is found while the automata are learned. When a number outgrows its field, all states are
//! packed again.

/// A packed state. The top bit of the first word is always set, so that no state is all zero.
pub(crate) type Key<const W: usize> = [u64; W];

const OCCUPIED: u64 = 1 << 63;

/// The position of a number in a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Field {
    word: u32,
    shift: u32,
    pub(crate) mask: u64,
}

impl Field {
    #[inline(always)]
    pub(crate) fn get(self, key: &[u64]) -> u32 {
        ((key[self.word as usize] >> self.shift) & self.mask) as u32
    }

    #[inline(always)]
    pub(crate) fn set<const W: usize>(self, key: &mut Key<W>, number: u32) {
        let word = &mut key[self.word as usize];
        *word = *word & !(self.mask << self.shift) | u64::from(number) << self.shift;
    }

    /// Returns the number of bits.
    pub(crate) fn bits(self) -> u32 {
        self.mask.count_ones()
    }

    #[inline(always)]
    pub(crate) fn fits(self, number: u32) -> bool {
        u64::from(number) <= self.mask
    }
}

/// The number of bits for each number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Widths {
    pub(crate) registers: Vec<u32>,
    pub(crate) locals: Vec<u32>,
    /// Bits for the passages that a process has left; 0 if these are not counted.
    pub(crate) passages: u32,
    /// Bits for the further attempts that a process has begun in its passage; 0 if these are not
    /// counted.
    pub(crate) retries: u32,
    /// Bits for the processes that have been killed; 0 if these are not counted.
    pub(crate) kills: u32,
    /// Bits for what else is remembered of a process; 0 if nothing else is.
    pub(crate) ghost: u32,
    /// Whether one bit per register says if one process has a valid copy of it.
    pub(crate) copies: bool,
}

impl Widths {
    /// Returns the same widths with all left-over bits of the words given out too. Numbers that are
    /// learned later then still fit, and the states need not be packed again.
    pub(crate) fn roomy(mut self) -> Self {
        let words = Plan::new(&self).words;
        loop {
            let mut wider = self.clone();
            wider.locals.iter_mut().for_each(|bits| *bits = (*bits + 1).min(31));
            if wider == self || Plan::new(&wider).words > words {
                return self;
            }
            self = wider.clone();
            wider
                .registers
                .iter_mut()
                .filter(|bits| **bits > 1)
                .for_each(|bits| *bits = (*bits + 1).min(24));
            if Plan::new(&wider).words <= words {
                self = wider;
            }
        }
    }
}

/// Returns the bits needed to count up to `count` different numbers.
pub(crate) fn bits_for(count: usize) -> u32 {
    usize::BITS - count.saturating_sub(1).leading_zeros()
}

/// The position of every number in a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    pub(crate) registers: Vec<Field>,
    pub(crate) locals: Vec<Field>,
    pub(crate) passages: Vec<Field>,
    pub(crate) retries: Vec<Field>,
    pub(crate) kills: Field,
    pub(crate) ghosts: Vec<Field>,
    pub(crate) copies: Vec<Field>,
    pub(crate) words: usize,
    /// The bits of the registers, to distinguish shared values.
    pub(crate) shared: Vec<u64>,
}

impl Plan {
    pub(crate) fn new(widths: &Widths) -> Self {
        let n = widths.locals.len();
        let mut room = Room { used: vec![1] };
        let mut place = |bits: u32| room.place(bits);
        let registers: Vec<Field> = widths.registers.iter().map(|&bits| place(bits)).collect();
        let locals = widths.locals.iter().map(|&bits| place(bits)).collect();
        let passages = (0..n).map(|_| place(widths.passages)).collect();
        let retries = (0..n).map(|_| place(widths.retries)).collect();
        let kills = place(widths.kills);
        let ghosts = (0..n).map(|_| place(widths.ghost)).collect();
        let copies = registers.iter().map(|_| room.place(u32::from(widths.copies))).collect();
        let words = room.used.len();
        let mut shared = vec![0; words];
        for field in &registers {
            shared[field.word as usize] |= field.mask << field.shift;
        }
        Self { registers, locals, passages, retries, kills, ghosts, copies, words, shared }
    }

    pub(crate) fn empty<const W: usize>() -> Key<W> {
        let mut key = [0; W];
        key[0] = OCCUPIED;
        key
    }

    /// Returns whether the number in every field is less than the field's limit, and nothing but
    /// the top bit is set outside the fields.
    pub(crate) fn admits(&self, key: &[u64], limits: &[u64]) -> bool {
        let mut rest = key.to_vec();
        rest[0] ^= OCCUPIED;
        let fits = self.fields().zip(limits).all(|(field, &limit)| {
            rest[field.word as usize] &= !(field.mask << field.shift);
            u64::from(field.get(key)) < limit
        });
        fits && rest.iter().all(|&word| word == 0)
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = Field> + '_ {
        let counts = self.passages.iter().chain(&self.retries).chain([&self.kills]);
        self.registers
            .iter()
            .chain(&self.locals)
            .chain(counts)
            .chain(&self.ghosts)
            .chain(&self.copies)
            .copied()
    }

    /// Returns all numbers of a state, in the order of the plan.
    pub(crate) fn unpack(&self, key: &[u64]) -> Vec<u32> {
        self.fields().map(|field| field.get(key)).collect()
    }

    /// Returns the same state under another plan.
    pub(crate) fn repack<const W: usize>(&self, key: &[u64], to: &Self) -> Key<W> {
        let mut packed = Self::empty();
        self.fields().zip(to.fields()).for_each(|(old, new)| new.set(&mut packed, old.get(key)));
        packed
    }
}

/// Free bits, word by word; no number crosses a word.
struct Room {
    used: Vec<u32>,
}

impl Room {
    /// Places a field by first fit. The top bit of the first word is taken from the start; fields
    /// grow from the low end.
    fn place(&mut self, bits: u32) -> Field {
        let mask = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
        let word = match self.used.iter().position(|used| used + bits <= 64) {
            Some(word) => word,
            None => {
                self.used.push(0);
                self.used.len() - 1
            }
        };
        let taken = if word == 0 { self.used[0] - 1 } else { self.used[word] };
        self.used[word] += bits;
        Field { word: word as u32, shift: taken.min(63), mask }
    }
}

/// Spreads keys over tables and shards. Only speed depends on it: keys are compared whole.
#[inline(always)]
pub(crate) fn hash<const W: usize>(key: &Key<W>) -> u64 {
    let mut h: u64 = 0x243f_6a88_85a3_08d3;
    for &word in key {
        let product = u128::from(word ^ h) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
        h = (product >> 64) as u64 ^ product as u64;
    }
    h
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widths(locals: u32) -> Widths {
        Widths {
            registers: vec![1, 3, 17, 1],
            locals: vec![locals, locals + 1, 9],
            passages: 1,
            retries: 1,
            kills: 1,
            ghost: 3,
            copies: false,
        }
    }

    #[test]
    fn fields_keep_apart_and_survive_repacking() {
        let (narrow, wide) = (Plan::new(&widths(7)), Plan::new(&widths(30)));
        assert_eq!((narrow.words, wide.words), (1, 2));
        let mut key: Key<1> = Plan::empty();
        for (i, field) in narrow.fields().enumerate() {
            field.set(&mut key, (i as u32 * 5 + 3) & field.mask as u32);
        }
        let wider: Key<2> = narrow.repack(&key, &wide);
        for (i, (old, new)) in narrow.fields().zip(wide.fields()).enumerate() {
            let number = (i as u32 * 5 + 3) & old.mask as u32;
            assert_eq!((old.get(&key), new.get(&wider)), (number, number), "field {i}");
        }
        assert_eq!(wide.repack::<1>(&wider, &narrow), key);
    }

    #[test]
    fn left_over_bits_are_given_out_and_no_more_words_taken() {
        let roomy = widths(7).roomy();
        assert_eq!(
            (Plan::new(&roomy).words, &roomy.locals[..2]),
            (1, &[7, 8][..]),
            "there was no room for one more each"
        );
        let roomy = Widths {
            registers: vec![1, 3],
            locals: vec![4, 4],
            passages: 0,
            retries: 0,
            kills: 0,
            ghost: 0,
            copies: false,
        }
        .roomy();
        assert_eq!(Plan::new(&roomy).words, 1);
        assert!(roomy.locals.iter().all(|&bits| bits > 15), "{roomy:?}");
        assert_eq!(roomy.registers[0], 1, "a bit is a bit");
    }

    #[test]
    fn numbers_of_zero_bits_take_no_room() {
        let widths = Widths {
            registers: vec![63],
            locals: vec![0],
            passages: 0,
            retries: 0,
            kills: 0,
            ghost: 0,
            copies: false,
        };
        let plan = Plan::new(&widths);
        assert_eq!(plan.words, 1);
        let mut key: Key<1> = Plan::empty();
        plan.registers[0].set(&mut key, u32::MAX);
        assert_eq!((plan.registers[0].get(&key), plan.locals[0].get(&key)), (u32::MAX, 0));
        assert!(key[0] >> 63 == 1);
    }

    /// A state of the k-Bakery with three processes: 21 tickets, three processes with many local
    /// states each, passages and order. A table is at least a third full, so a state takes three
    /// slots and an entry in its level at most.
    #[test]
    fn a_state_of_k_bakery_size_takes_less_than_100_bytes() {
        let widths = Widths {
            registers: vec![5; 21],
            locals: vec![14; 3],
            passages: 2,
            retries: 0,
            kills: 0,
            ghost: 3,
            copies: false,
        };
        assert!(
            Plan::new(&widths).words * size_of::<u64>() * (3 + 1) <= 100,
            "{}",
            Plan::new(&widths).words
        );
    }

    #[test]
    fn bits() {
        assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(bits_for), [0, 0, 1, 2, 2, 3, 8, 9]);
    }
}
