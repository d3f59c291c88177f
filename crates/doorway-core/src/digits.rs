//! Short sequences of small numbers, such as a queue of processes, a label or a row of colours. A
//! sequence is stored in one machine word if it fits.

use alloc::{boxed::Box, vec};
use core::fmt;

use crate::{Value, plain_local};

/// The length of a sequence, and the bits of each number in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Format {
    /// The length of the sequence.
    pub len: u16,
    /// Bits of each number, from 1 to 32.
    pub width: u8,
}

impl Format {
    /// The format for `len` numbers from 0 to `most`.
    pub const fn up_to(most: usize, len: usize) -> Self {
        let width = usize::BITS - most.leading_zeros();
        Self { len: len as u16, width: if width == 0 { 1 } else { width as u8 } }
    }

    const fn bits(self) -> u32 {
        self.len as u32 * self.width as u32
    }

    #[inline(always)]
    const fn mask(self) -> u128 {
        (1 << self.width) - 1
    }

    /// Returns the word that holds digit `i` and the digit's shift in it, for a sequence of many
    /// words.
    fn place(self, i: usize) -> (usize, usize) {
        let width = usize::from(self.width);
        let per_word = u64::BITS as usize / width;
        (i / per_word, i % per_word * width)
    }
}

/// A sequence of small numbers.
///
/// ```
/// use doorway_core::digits::{Digits, Format};
/// let mut digits = Digits::new(Format::up_to(5, 3), 1);
/// digits.set(2, 4);
/// assert_eq!(digits.iter().collect::<Vec<_>>(), [1, 1, 4]);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Digits {
    format: Format,
    cells: Cells,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Cells {
    Word(u128),
    /// For long values, which only the lab has: each word holds as many whole digits as fit.
    Many(Box<[u64]>),
}

plain_local!(Digits);

impl Digits {
    /// Returns a sequence in which every number is `fill`.
    pub fn new(format: Format, fill: u32) -> Self {
        let cells = if format.bits() > u128::BITS {
            let (last, _) = format.place(usize::from(format.len) - 1);
            Cells::Many(vec![0; last + 1].into())
        } else {
            Cells::Word(0)
        };
        let mut digits = Self { format, cells };
        (0..usize::from(format.len)).for_each(|i| digits.set(i, fill));
        digits
    }

    /// Returns the length of the sequence.
    #[inline(always)]
    pub fn len(&self) -> usize {
        usize::from(self.format.len)
    }

    /// Returns whether the sequence is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns number `i`.
    ///
    /// # Panics
    /// If the sequence has no number `i`.
    #[inline(always)]
    pub fn get(&self, i: usize) -> u32 {
        match &self.cells {
            Cells::Word(word) => {
                assert!(i < self.len(), "digit {i} of {}", self.len());
                (word >> (i * usize::from(self.format.width)) & self.format.mask()) as u32
            }
            Cells::Many(cells) => {
                assert!(i < self.len(), "digit {i} of {}", self.len());
                let (word, shift) = self.format.place(i);
                (u128::from(cells[word] >> shift) & self.format.mask()) as u32
            }
        }
    }

    /// Sets number `i`.
    ///
    /// # Panics
    /// If the sequence has no number `i`, or `number` has too many bits.
    #[inline(always)]
    pub fn set(&mut self, i: usize, number: u32) {
        assert!(
            u128::from(number) <= self.format.mask(),
            "{number} has more than {} bits",
            self.format.width
        );
        match &mut self.cells {
            Cells::Word(word) => {
                assert!(i < usize::from(self.format.len), "digit {i} of {}", self.format.len);
                let shift = i * usize::from(self.format.width);
                *word = *word & !(self.format.mask() << shift) | u128::from(number) << shift;
            }
            Cells::Many(cells) => {
                assert!(i < usize::from(self.format.len), "digit {i} of {}", self.format.len);
                let (word, shift) = self.format.place(i);
                cells[word] = cells[word] & !((self.format.mask() as u64) << shift)
                    | u64::from(number) << shift;
            }
        }
    }

    /// Returns the first index at which two sequences of the same format differ.
    #[inline]
    pub fn first_difference(&self, other: &Self) -> Option<usize> {
        match (&self.cells, &other.cells) {
            // One comparison for all digits: the lowest differing bit is in the first differing
            // digit.
            (Cells::Word(a), Cells::Word(b)) => {
                (a != b).then(|| ((a ^ b).trailing_zeros() / u32::from(self.format.width)) as usize)
            }
            _ => (0..self.len()).find(|&i| self.get(i) != other.get(i)),
        }
    }

    /// Returns all numbers in order.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }
}

impl fmt::Debug for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Value for Digits {
    type Format = Format;

    #[inline(always)]
    fn bits(format: Format) -> u32 {
        format.bits()
    }
    #[inline(always)]
    fn word(&self) -> u128 {
        match self.cells {
            Cells::Word(word) => word,
            Cells::Many(_) => panic!("more than 128 bits are no word"),
        }
    }
    #[inline(always)]
    fn from_word(word: u128, format: Format) -> Self {
        Self { format, cells: Cells::Word(word) }
    }
    fn magnitude(&self) -> u64 {
        self.iter().max().map_or(0, u64::from)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn numbers_stay_apart() {
        for len in [0, 1, 21, 42, 43, 300] {
            let format = Format::up_to(5, len);
            let mut digits = Digits::new(format, 5);
            (0..len).step_by(2).for_each(|i| digits.set(i, (i % 6) as u32));
            let expected: Vec<u32> =
                (0..len).map(|i| if i % 2 == 0 { (i % 6) as u32 } else { 5 }).collect();
            assert_eq!(digits.iter().collect::<Vec<_>>(), expected);
            assert_eq!(Digits::bits(format), 3 * len as u32);
            for i in 0..len {
                let mut other = digits.clone();
                (i..len).for_each(|i| other.set(i, (digits.get(i) + 1) % 6));
                assert_eq!(digits.first_difference(&other), Some(i), "{len} digits");
            }
            assert_eq!(digits.first_difference(&digits.clone()), None);
            if Digits::bits(format) <= 128 {
                assert_eq!(Digits::from_word(digits.word(), format), digits);
            }
        }
    }

    #[test]
    fn widths_follow_from_the_largest_number() {
        let width = |most| Format::up_to(most, 1).width;
        assert_eq!([0, 1, 2, 3, 4, 7, 8].map(width), [1, 1, 2, 2, 3, 3, 4]);
    }

    #[test]
    #[should_panic(expected = "8 has more than 3 bits")]
    fn a_number_too_large_is_refused() {
        Digits::new(Format::up_to(5, 2), 0).set(1, 8);
    }
}
