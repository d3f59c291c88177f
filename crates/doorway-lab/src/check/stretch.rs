//! Checks in every run what relabelling rests on. An algorithm compares tickets and takes fewer
//! than `gap` successors of a ticket before it meets another. It does nothing else with tickets.
//!
//! A step sees the tickets of its local state and of its register. The same step is run again on
//! *stretched* tickets: every difference between neighbours that is `gap` or more is widened, and
//! smaller differences stay. An algorithm that keeps to the rules cannot notice. So the outcome of
//! the step has to be the same up to the stretching. Every old ticket is at its stretched place.
//! Every new ticket is as far above the ticket below it as before, less than `gap`.

use doorway_core::{Ticket, layout::Erased, raw};

use super::relabel::Labels;
use crate::{
    random::Random,
    subject::{LocalState, Stepped},
};

/// How much a wide gap is widened: by more than any algorithm counts to. It is no multiple of a
/// power of two, so that an algorithm that looks at a part of the number notices, too.
const HUGE: u64 = 3_000_000_019;

/// The largest small widening: enough for both parities and for comparisons with small constants.
const SMALL: u64 = 8;

/// How often all small widenings are tried; after that, one at random.
const THOROUGH: u64 = 1 << 10;

/// The tickets and their places after stretching.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    /// Each visible ticket with its place, from zero on.
    places: Vec<(u64, u64)>,
    gap: u64,
}

impl Stretch {
    /// Widens each wide gap between these tickets by what `widen` returns.
    fn new(visible: Labels, gap: u32, mut widen: impl FnMut() -> u64) -> Self {
        let gap = u64::from(gap);
        let mut places = vec![(0, 0)];
        for label in visible.iter().map(u64::from) {
            let (low, place) = places[places.len() - 1];
            let wide = if label - low >= gap { widen() } else { 0 };
            places.push((label, place + (label - low) + wide));
        }
        Self { places, gap }
    }

    /// Returns the stretchings on which the `nth` learned thing is tried; none if no gap is wide.
    pub(crate) fn all(visible: Labels, gap: u32, nth: u64) -> Vec<Self> {
        let mut random = Random::new(nth, 0);
        let mut any = false;
        let huge = Self::new(visible, gap, || {
            any = true;
            HUGE
        });
        if !any {
            return Vec::new();
        }
        let mut all = vec![huge, Self::new(visible, gap, || 1 + random.below(SMALL))];
        if nth < THOROUGH {
            all.extend((1..=SMALL).map(|by| Self::new(visible, gap, || by)));
        }
        all
    }

    /// Returns the stretching that leaves all tickets where they are.
    pub(crate) fn none(visible: Labels, gap: u32) -> Self {
        Self::new(visible, gap, || 0)
    }

    /// Returns where a ticket is after stretching; `None` if it is a new ticket, `gap` or more
    /// above the visible ticket below it.
    fn place(&self, ticket: Ticket) -> Option<Ticket> {
        if ticket == Ticket::INFINITY {
            return Some(ticket);
        }
        let number = raw::number(ticket);
        let above = self.places.partition_point(|&(visible, _)| visible <= number);
        let (below, place) = self.places[above - 1];
        let up = number - below;
        (up == 0 || up < self.gap).then(|| raw::ticket(place + up))
    }

    /// Returns the same local state, stretched.
    pub(crate) fn local(&self, local: &LocalState) -> Option<LocalState> {
        self.within(|f| local.relabel(f))
    }

    /// Returns the same value, stretched.
    pub(crate) fn value(&self, value: &dyn Erased) -> Option<Box<dyn Erased>> {
        self.within(|f| value.relabelled(f))
    }

    fn within<T>(&self, relabel: impl FnOnce(&mut dyn FnMut(Ticket) -> Ticket) -> T) -> Option<T> {
        let mut lost = false;
        let all = relabel(&mut |ticket| {
            self.place(ticket).unwrap_or_else(|| {
                lost = true;
                ticket
            })
        });
        (!lost).then_some(all)
    }

    /// Returns whether two outcomes of a step are the same up to the stretching.
    pub(crate) fn agrees(&self, plain: &Stepped, stretched: &Stepped) -> bool {
        let effects = match (&plain.effect, &stretched.effect) {
            (Some(plain), Some(stretched)) => {
                self.value(&**plain).is_some_and(|value| value.same(&**stretched))
            }
            (None, None) => true,
            _ => false,
        };
        effects
            && plain.retries == stretched.retries
            && self.local(&plain.local).is_some_and(|local| local == stretched.local)
    }

    /// Returns whether every ticket in the outcome of a step has a place: it was there, or is less
    /// than `gap` above a ticket that was.
    pub(crate) fn holds(&self, stepped: &Stepped) -> bool {
        stepped.effect.as_ref().is_none_or(|value| self.value(&**value).is_some())
            && self.local(&stepped.local).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(list: &[u32]) -> Labels {
        Labels(list.iter().fold(0, |set, label| set | 1 << label))
    }

    fn places(stretch: &Stretch, tickets: &[u64]) -> Vec<Option<u64>> {
        tickets.iter().map(|&ticket| stretch.place(raw::ticket(ticket)).map(raw::number)).collect()
    }

    #[test]
    fn wide_gaps_are_widened_and_narrow_ones_stay() {
        let stretch = Stretch::new(labels(&[1, 3, 4, 7]), 2, || 10);
        assert_eq!(places(&stretch, &[0, 1, 3, 4, 7]), [0, 1, 13, 14, 27].map(Some));
        // New tickets move with the ticket below them, unless they are too far above it.
        assert_eq!(places(&stretch, &[2, 5, 6, 8, 9]), [Some(2), Some(15), None, Some(28), None]);
        assert_eq!(places(&stretch, &[u64::MAX]), [Some(u64::MAX)]);
    }

    #[test]
    fn there_is_nothing_to_stretch_without_a_wide_gap() {
        assert!(Stretch::all(labels(&[1, 2, 3]), 2, 0).is_empty());
        assert!(Stretch::all(labels(&[]), 2, 0).is_empty());
        assert_eq!(places(&Stretch::none(labels(&[]), 2), &[0, 1, 2]), [Some(0), Some(1), None]);
    }

    /// Both parities and every small constant are tried, and later one of them at a time.
    #[test]
    fn small_widenings_are_all_tried_at_first() {
        let tried = |nth| {
            Stretch::all(labels(&[2]), 2, nth)
                .into_iter()
                .map(|s| s.places[1].1 - 2)
                .collect::<Vec<_>>()
        };
        let first = tried(0);
        assert_eq!(first[0], HUGE);
        assert_eq!(first[2..], [1, 2, 3, 4, 5, 6, 7, 8]);
        let later: std::collections::BTreeSet<u64> =
            (THOROUGH..THOROUGH + 100).map(|nth| tried(nth)[1]).collect();
        assert_eq!(later, (1..=SMALL).collect());
        assert_eq!(tried(THOROUGH).len(), 2);
    }
}
