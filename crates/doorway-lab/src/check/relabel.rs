//! Relabels tickets, which makes runs without end finite. The argument is in `docs/relabelling.md`.
//!
//! An algorithm can only distinguish tickets by zero, order and (since it may take successors)
//! small gaps. So in every state all tickets are replaced by the smallest labels in the same order
//! whose gaps are the same up to the algorithm's `gap`. A gap of `gap` stands for itself and
//! everything wider: it is *wide*. When a new ticket falls inside a wide gap, the rest of the gap
//! above it may have any width that agrees with that, and all widths are explored.

use doorway_core::{Ticket, raw};

use crate::fault::Fault;

/// A set of labels 1..=127. Zero is always there and ∞ is not a label.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Labels(pub(crate) u128);

impl Labels {
    /// Returns the labels of the tickets that `visit` shows.
    pub(crate) fn of(visit: impl FnOnce(&mut dyn FnMut(Ticket) -> Ticket)) -> Result<Self, Fault> {
        let mut labels = 0u128;
        let mut lost = false;
        visit(&mut |ticket| {
            if ticket != Ticket::ZERO && ticket != Ticket::INFINITY {
                match 1u128.checked_shl(u32::try_from(raw::number(ticket)).unwrap_or(u32::MAX)) {
                    Some(bit) => labels |= bit,
                    None => lost = true,
                }
            }
            ticket
        });
        // Without relabelling no code looks at labels, and large tickets are allowed.
        Ok(Self(if lost { u128::MAX } else { labels }))
    }

    #[inline(always)]
    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[inline(always)]
    pub(crate) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u32> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let label = rest.trailing_zeros();
                rest &= rest - 1;
                label
            })
        })
    }

    /// Returns the label right below `label`, or zero.
    pub(crate) fn below(self, label: u32) -> u32 {
        let under = self.0 & ((1 << label) - 1);
        127u32.saturating_sub(under.leading_zeros())
    }

    /// Returns the label right above `label`.
    pub(crate) fn above(self, label: u32) -> Option<u32> {
        if label >= 127 {
            return None;
        }
        let over = self.0 & (u128::MAX << (label + 1));
        (over != 0).then(|| over.trailing_zeros())
    }
}

/// A renaming of labels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Map {
    to: [u8; 128],
    /// The labels that the renaming changes.
    pub(crate) changes: Labels,
}

impl Map {
    /// Returns the renaming that keeps the order of `labels`, shifts those from `split` on up by
    /// `extra`, and narrows every gap to `gap`.
    pub(crate) fn narrowing(labels: Labels, split: u32, extra: u32, gap: u32) -> Self {
        Self::shifting(labels, split, extra, gap)
    }

    /// Returns the renaming that shifts the labels from `split` on up by `extra`.
    pub(crate) fn widening(labels: Labels, split: u32, extra: u32) -> Self {
        Self::shifting(labels, split, extra, u32::MAX)
    }

    fn shifting(labels: Labels, split: u32, extra: u32, gap: u32) -> Self {
        let mut to = [0; 128];
        let mut changes = 0;
        let (mut last, mut image) = (0, 0);
        for label in labels.iter() {
            let moved = if label >= split { label + extra } else { label };
            image += (moved - last).min(gap);
            last = moved;
            to[label as usize] = image as u8;
            if image != label {
                changes |= 1 << label;
            }
        }
        Self { to, changes: Labels(changes) }
    }

    /// Returns every label of the renaming, in order, with its new label.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (u8, u8)> + '_ {
        (0..).zip(&self.to).filter(|&(_, &image)| image != 0).map(|(label, &image)| (label, image))
    }

    /// Returns the renaming with these pairs, if it is one: it keeps the order and leaves zero
    /// alone.
    pub(crate) fn of_pairs(pairs: impl Iterator<Item = (u8, u8)>) -> Option<Self> {
        let mut map = Self { to: [0; 128], changes: Labels::default() };
        let mut last = (0, 0);
        for (label, image) in pairs {
            if label <= last.0 || image <= last.1 || label > 127 || image > 127 {
                return None;
            }
            map.to[usize::from(label)] = image;
            if label != image {
                map.changes.0 |= 1 << label;
            }
            last = (label, image);
        }
        Some(map)
    }

    /// Returns whether the renaming covers all these labels.
    pub(crate) fn covers(&self, labels: Labels) -> bool {
        labels.0 != u128::MAX && labels.iter().all(|label| self.to[label as usize] != 0)
    }

    pub(crate) fn apply(&self, ticket: Ticket) -> Ticket {
        if ticket == Ticket::ZERO || ticket == Ticket::INFINITY {
            return ticket;
        }
        raw::ticket(u64::from(self.to[raw::number(ticket) as usize]))
    }
}

/// Returns which labels may have to be shifted up, and by how much at most, after a step from
/// `before` to `after`. The reason for a shift is that a new label fell inside a wide gap.
#[inline]
pub(crate) fn slack(before: Labels, after: Labels, gap: u32) -> (u32, u32) {
    let new = after.0 & !before.0;
    if new == 0 {
        return (0, 0);
    }
    let label = new.trailing_zeros();
    match before.above(label) {
        Some(above) if above - before.below(label) >= gap => {
            (above, gap.saturating_sub(above - label))
        }
        _ => (0, 0),
    }
}

/// A value that an overlapping read may return, as a position among the labels. First the labels
/// from `split` on are shifted up by `extra` to make room; then this label is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Position {
    pub(crate) label: u32,
    pub(crate) split: u32,
    pub(crate) extra: u32,
}

/// Returns every position that a ticket can have among `labels`.
pub(crate) fn positions(labels: Labels, wide: u32) -> Vec<Position> {
    let at = |label| Position { label, split: 0, extra: 0 };
    let mut all = vec![at(0)];
    let mut low = 0;
    for high in labels.iter() {
        let gap = high - low;
        if gap < wide {
            all.extend((low + 1..high).map(at));
        } else {
            for up in 1..=wide {
                for down in 1..=wide {
                    if up + down >= wide {
                        all.push(Position {
                            label: low + up,
                            split: high,
                            extra: up + down - wide,
                        });
                    }
                }
            }
        }
        all.push(at(high));
        low = high;
    }
    all.extend((1..=wide).map(|up| at(low + up)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(list: &[u32]) -> Labels {
        Labels(list.iter().fold(0, |set, l| set | 1 << l))
    }

    fn image(map: &Map, list: &[u32]) -> Vec<u64> {
        list.iter().map(|&l| raw::number(map.apply(raw::ticket(u64::from(l))))).collect()
    }

    #[test]
    fn gaps_are_narrowed_and_order_is_kept() {
        let map = Map::narrowing(labels(&[3, 4, 9, 40]), 0, 0, 2);
        assert_eq!(image(&map, &[3, 4, 9, 40]), [2, 3, 5, 7]);
        assert_eq!(map.apply(Ticket::ZERO), Ticket::ZERO);
        assert_eq!(map.apply(Ticket::INFINITY), Ticket::INFINITY);
        assert_eq!(Map::narrowing(labels(&[1, 3, 4]), 0, 0, 2).changes, Labels(0));
        // An algorithm that takes more than one successor before it meets another ticket
        // distinguishes wider gaps.
        let map = Map::narrowing(labels(&[3, 4, 9, 40]), 0, 0, 4);
        assert_eq!(image(&map, &[3, 4, 9, 40]), [3, 4, 8, 12]);
    }

    #[test]
    fn neighbours() {
        let set = labels(&[2, 5]);
        assert_eq!([1, 2, 3, 5, 9].map(|l| set.below(l)), [0, 0, 2, 2, 5]);
        assert_eq!([0, 2, 4, 5].map(|l| set.above(l)), [Some(2), Some(5), Some(5), None]);
    }

    #[test]
    fn a_ticket_inside_a_wide_gap_leaves_its_width_open() {
        // 0 ‥wide‥ 2: the new ticket 1 may be right below it or far below it.
        assert_eq!(slack(labels(&[2]), labels(&[1, 2]), 2), (2, 1));
        assert_eq!(image(&Map::narrowing(labels(&[1, 2]), 2, 0, 2), &[1, 2]), [1, 2]);
        assert_eq!(image(&Map::narrowing(labels(&[1, 2]), 2, 1, 2), &[1, 2]), [1, 3]);
        // On top there is nothing to leave open.
        assert_eq!(slack(labels(&[2]), labels(&[2, 3]), 2), (0, 0));
    }

    #[test]
    fn overlapping_reads_see_every_position() {
        // Around one ticket with a wide gap below: at it, beside it, far from it, on either side.
        let seen: Vec<_> =
            positions(labels(&[2]), 2).iter().map(|p| (p.label, 2 + p.extra)).collect();
        assert_eq!(seen, [(0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (2, 2), (3, 2), (4, 2)]);
    }
}
