//! A histogram of waits: millions of values take no more memory and no more time than one.

use std::fmt;

/// Each power of two is cut into this many parts, so a value is known to 1/32.
const PARTS: u64 = 32;
const SIZE: usize = (64 - PARTS.ilog2() as usize + 1) * PARTS as usize;

/// How often each value occurred, approximately.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; SIZE], total: 0, max: 0 }
    }
}

impl Histogram {
    /// Counts a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.counts[place(value)] += 1;
        self.total += 1;
        self.max = self.max.max(value);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    /// Returns the value that this share, in thousandths, does not exceed; `None` for no values.
    pub fn per_mille(&self, share: u64) -> Option<u64> {
        let rank = (self.total * share).div_ceil(1000).max(1);
        let mut seen = 0;
        let reached = |count: &u64| {
            seen += count;
            seen >= rank
        };
        self.counts.iter().position(reached).map(|place| floor(place).min(self.max))
    }

    /// Returns the largest value.
    pub fn max(&self) -> Option<u64> {
        (self.total > 0).then_some(self.max)
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99] = [500, 990].map(|share| self.per_mille(share));
        write!(f, "{} values, p50 {p50:?}, p99 {p99:?}, max {:?}", self.total, self.max())
    }
}

/// Returns where a value is counted: below `PARTS` each value has its own place.
#[inline]
fn place(value: u64) -> usize {
    let shift = (value | PARTS).ilog2() - PARTS.ilog2();
    (u64::from(shift) * PARTS + (value >> shift)) as usize
}

/// Returns the least value that is counted there.
fn floor(place: usize) -> u64 {
    let place = place as u64;
    let shift = (place / PARTS).saturating_sub(1);
    (place - shift * PARTS) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_to_a_part_of_it() {
        for value in (0..200).chain([1000, 12_345, 1 << 40, u64::MAX >> 1, u64::MAX]) {
            let known = floor(place(value));
            assert!(known <= value && value - known <= value / PARTS, "{value} became {known}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.per_mille(500), histogram.max()), (None, None));
        (1..=20).for_each(|value| histogram.add(value));
        let mut other = Histogram::default();
        (21..=31).for_each(|value| other.add(value));
        histogram.merge(&other);
        assert_eq!(
            [1, 500, 990, 1000].map(|share| histogram.per_mille(share)),
            [1, 16, 31, 31].map(Some)
        );
        assert_eq!(histogram.max(), Some(31));
    }
}
