//! The one variable of the Colored Ticket Algorithm, packed into one word.
//!
//! It holds two tickets, and for each colour the number of valid tickets. `colored_ticket.rs` names
//! the paper.

use core::fmt;

use super::tickets::{Colored, Pointers};
use crate::{Value, plain_local};

/// The layout of the word, from the lowest bit on.
///
/// The parts are `ISSUE.VALUE`, `ISSUE.COLOR`, `VALID.VALUE`, `VALID.COLOR`, and 2k bits of
/// `QUANT`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Format {
    /// Bits of a value.
    value: u8,
    /// Bits of a colour.
    color: u8,
    k: u8,
}

impl Format {
    /// Returns the format for values up to `last` and `k` + 1 colours.
    pub(super) fn new(last: u32, k: u8) -> Self {
        Self {
            value: (u32::BITS - last.leading_zeros()) as u8,
            color: (u8::BITS - k.leading_zeros()) as u8,
            k,
        }
    }

    #[inline(always)]
    fn ticket(self) -> u32 {
        u32::from(self.value) + u32::from(self.color)
    }

    #[inline(always)]
    fn pack(self, ticket: Colored<u8>) -> u128 {
        u128::from(ticket.color) << self.value | u128::from(ticket.value)
    }

    #[inline(always)]
    fn unpack(self, word: u128) -> Colored<u8> {
        let low = |word: u128, bits: u8| word as u64 & ((1 << bits) - 1);
        Colored {
            value: low(word, self.value) as u32,
            color: low(word >> self.value, self.color) as u8,
        }
    }
}

/// `QUANT` in unary: for each colour as many ones as it has valid tickets, then a zero.
///
/// There are k + 1 colours and k valid tickets, and all bits after the last one-bit are zeros
/// anyway. So 2k bits are enough, of which k are ones, hence the paper's C(2k, k) values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Quant(u128);

impl Quant {
    /// The largest k whose `QUANT` fits with one ticket to spare.
    pub(super) const MOST: usize = 63;

    /// No ticket is valid.
    pub(super) const NONE: Self = Self(0);

    /// Returns the position where the ones of a colour begin.
    #[inline(always)]
    fn begin(self, color: u8) -> u32 {
        (0..color).fold(0, |at, _| at + (self.0 >> at).trailing_ones() + 1)
    }

    /// `QUANT(c)`
    #[inline(always)]
    pub(super) fn get(self, color: u8) -> u32 {
        (self.0 >> self.begin(color)).trailing_ones()
    }

    /// `QUANT(c) := QUANT(c) + 1`, but not beyond k in all. Only mutants would go beyond, and the
    /// word has no room for it.
    #[inline(always)]
    pub(super) fn increment(&mut self, color: u8, k: u8) {
        if self.0.count_ones() < u32::from(k) {
            let at = self.begin(color);
            let below = (1 << at) - 1;
            self.0 = (self.0 & !below) << 1 | 1 << at | self.0 & below;
        }
    }

    /// `QUANT(c) := QUANT(c) - 1`, but not below 0. Only mutants would go below.
    #[inline(always)]
    pub(super) fn decrement(&mut self, color: u8) {
        let at = self.begin(color);
        let below = (1 << at) - 1;
        if self.0 >> at & 1 == 1 {
            self.0 = self.0 >> 1 & !below | self.0 & below;
        }
    }

    /// `NEW_COLOR`, Figure 6: the first colour that has no valid ticket.
    #[inline(always)]
    pub(super) fn new_color(self) -> u8 {
        let (mut color, mut rest) = (0, self.0);
        while rest & 1 == 1 {
            rest >>= rest.trailing_ones() + 1;
            color += 1;
        }
        color
    }
}

/// What the shared variable holds: the pointers, and how many tickets of each colour are valid.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Counted {
    pub(super) format: Format,
    pub(super) pointers: Pointers<u8>,
    pub(super) quant: Quant,
}

plain_local!(Counted);

/// As the paper writes it: `ISSUE (2, 0), VALID (1, 1), QUANT [1, 1, 0]`.
impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, QUANT ", self.pointers)?;
        f.debug_list().entries((0..=self.format.k).map(|color| self.quant.get(color))).finish()
    }
}

impl Value for Counted {
    type Format = Format;

    #[inline(always)]
    fn bits(format: Format) -> u32 {
        2 * format.ticket() + 2 * u32::from(format.k)
    }
    #[inline(always)]
    fn word(&self) -> u128 {
        let (format, Pointers { issue, valid }) = (self.format, self.pointers);
        (self.quant.0 << format.ticket() | format.pack(valid)) << format.ticket()
            | format.pack(issue)
    }
    #[inline(always)]
    fn from_word(word: u128, format: Format) -> Self {
        let rest = word >> format.ticket();
        let pointers = Pointers { issue: format.unpack(word), valid: format.unpack(rest) };
        Self { format, pointers, quant: Quant(rest >> format.ticket()) }
    }
    /// Returns the largest of all the numbers inside.
    fn magnitude(&self) -> u64 {
        let tickets = [self.pointers.issue, self.pointers.valid];
        let numbers =
            tickets.into_iter().flat_map(|ticket| [ticket.value, u32::from(ticket.color)]);
        numbers
            .chain((0..=self.format.k).map(|color| self.quant.get(color)))
            .max()
            .map_or(0, u64::from)
    }
}

#[cfg(test)]
mod tests {
    use alloc::{collections::BTreeSet, format, vec, vec::Vec};

    use super::*;

    /// Returns all ways to share `k` among so many counters.
    fn partitions(k: u32, counters: usize) -> Vec<Vec<u32>> {
        if counters == 1 {
            return vec![vec![k]];
        }
        let first = (0..=k).flat_map(|first| {
            partitions(k - first, counters - 1).into_iter().map(move |rest| (first, rest))
        });
        first.map(|(first, rest)| [vec![first], rest].concat()).collect()
    }

    fn counts(quant: Quant, k: u8) -> Vec<u32> {
        (0..=k).map(|color| quant.get(color)).collect()
    }

    fn quant(counts: &[u32], k: u8) -> Quant {
        let mut quant = Quant::NONE;
        // From the last to the first, so that every increment has something to move.
        for (color, &count) in counts.iter().enumerate().rev() {
            (0..count).for_each(|_| quant.increment(color as u8, k));
        }
        quant
    }

    /// There are C(2k, k) values in 2k bits, and they count correctly.
    #[test]
    fn counts_in_unary() {
        for (k, values) in [(1, 2), (2, 6), (3, 20), (4, 70), (5, 252)] {
            let all = partitions(k, k as usize + 1);
            let words: BTreeSet<u128> = all.iter().map(|counts| quant(counts, k as u8).0).collect();
            assert_eq!((all.len(), words.len()), (values, values), "k = {k}");
            assert!(words.iter().all(|word| word >> (2 * k) == 0), "k = {k}");
            for expected in &all {
                let unary = quant(expected, k as u8);
                assert_eq!(counts(unary, k as u8), *expected);
                let free = expected
                    .iter()
                    .position(|&count| count == 0)
                    .expect("there are more colours than tickets");
                assert_eq!(usize::from(unary.new_color()), free);
                for color in (0..=k as u8).filter(|&color| unary.get(color) > 0) {
                    let mut less = unary;
                    less.decrement(color);
                    let mut one_less = expected.clone();
                    one_less[usize::from(color)] -= 1;
                    assert_eq!(counts(less, k as u8), one_less);
                }
            }
        }
    }

    /// An operation that only mutants ask for does nothing, instead of spoiling the word.
    #[test]
    fn counts_stay_in_range() {
        for k in [1, 2, Quant::MOST as u8] {
            let mut quant = Quant::NONE;
            quant.decrement(k);
            assert_eq!(quant, Quant::NONE);
            (0..2 * k).for_each(|_| quant.increment(k, k));
            assert_eq!((quant.get(k), quant.get(k - 1)), (u32::from(k), 0));
        }
    }

    #[test]
    fn words_stand_for_one_value_each() {
        for (last, k) in [(0, 1), (1, 1), (2, 2), (5, 3), (40, 20)] {
            let format = Format::new(last, k);
            let mut quant = Quant::NONE;
            (0..k).for_each(|i| quant.increment(i % 3 % (k + 1), k));
            for value in [0, last / 2, last] {
                for color in [0, 1, k] {
                    let (issue, valid) = (
                        Colored { value, color },
                        Colored { value: last - value, color: k - color },
                    );
                    let counted = Counted { format, pointers: Pointers { issue, valid }, quant };
                    assert!(counted.word().checked_shr(Counted::bits(format)).unwrap_or(0) == 0);
                    assert_eq!(Counted::from_word(counted.word(), format), counted);
                }
            }
        }
    }

    #[test]
    fn printed_as_the_paper_writes_it() {
        let (issue, valid) = (Colored { value: 2, color: 0 }, Colored { value: 1, color: 1 });
        let pointers = Pointers { issue, valid };
        let counted = Counted { format: Format::new(2, 2), pointers, quant: quant(&[1, 1, 0], 2) };
        assert_eq!(format!("{counted:?}"), "ISSUE (2, 0), VALID (1, 1), QUANT [1, 1, 0]");
        assert_eq!(counted.magnitude(), 2);
    }
}
