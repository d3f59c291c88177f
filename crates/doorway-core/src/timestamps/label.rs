//! Labels: which of two labels is later, and which label is later than all.
//!
//! A label has n-1 components in 1..=5. Read as a path in a tree, 1 and 2 are the nodes that lead
//! into the cycle 3 → 4 → 5 → 3 of each level. They keep a level from going round the cycle while a
//! process still has a label at a node that would be reached (mutant `no-low-nodes`).

use alloc::vec::Vec;

use crate::{
    digits::{Digits, Format},
    others,
};

/// The largest component.
pub(super) const LARGEST: usize = 5;

/// The format of labels among `n` processes.
pub(super) fn format(n: usize) -> Format {
    Format::up_to(LARGEST, n - 1)
}

/// Returns the next component: 1 → 2 → 3 → 4 → 5 → 3.
fn next(component: u32) -> u32 {
    if component == 5 { 3 } else { component + 1 }
}

/// Returns whether component `a` is before another component `b`: 1 < 2 < {3, 4, 5}, 3 < 4 < 5 < 3.
fn before(a: u32, b: u32) -> bool {
    if a < 3 || b < 3 { a < b } else { next(a) == b }
}

/// Returns whether label `a` of process `i` is before label `b` of process `j`. The first component
/// that differs decides, then the id.
fn precedes(a: &Digits, i: usize, b: &Digits, j: usize) -> bool {
    match a.first_difference(b) {
        Some(h) => before(a.get(h), b.get(h)),
        None => i < j,
    }
}

/// Returns how many processes are before each process, by counting.
///
/// # Panics
/// Panics if the labels have no total order. The relation is cyclic on three labels at 3, 4 and 5
/// of one level. A correct snapshot never returns them; a sort would not notice the cycle.
pub(super) fn ranks(labels: &[Digits]) -> Digits {
    let n = labels.len();
    let format = Format::up_to(n - 1, n);
    let (mut ranks, mut seen) = (Digits::new(format, 0), Digits::new(Format::up_to(1, n), 0));
    for (i, label) in labels.iter().enumerate() {
        let rank = others(i, n).filter(|&j| precedes(&labels[j], j, label, i)).count();
        assert!(seen.get(rank) == 0, "labels that go round in a circle: {labels:?}");
        seen.set(rank, 1);
        ranks.set(i, rank as u32);
    }
    ranks
}

/// Returns a label for process `i` that is later than all of `labels`.
///
/// The process `last` has the latest label. `crowd(h, _)` returns how many other processes have to
/// share the first h components of the latest label before the new label leaves this prefix.
pub(super) fn later(
    i: usize,
    labels: &[Digits],
    last: usize,
    lowest: u32,
    crowd: impl Fn(usize, u32) -> usize,
) -> Digits {
    let latest = &labels[last];
    if last == i {
        return latest.clone();
    }
    let n = labels.len();
    let mut sharing: Vec<usize> = others(i, n).collect();
    let mut label = Digits::new(format(n), lowest);
    for h in 1..n {
        let component = latest.get(h - 1);
        sharing.retain(|&j| labels[j].get(h - 1) == component);
        if sharing.len() >= crowd(h, component) || h == n - 1 {
            label.set(h - 1, next(component));
            break;
        }
        label.set(h - 1, component);
    }
    label
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn label(components: &[u32]) -> Digits {
        let mut label = Digits::new(format(components.len() + 1), 1);
        components.iter().enumerate().for_each(|(h, &component)| label.set(h, component));
        label
    }

    #[test]
    fn components_lead_into_a_cycle() {
        let all = |a: u32| (1..=5).filter(|&b| before(a, b)).collect::<Vec<_>>();
        assert_eq!(
            [1, 2, 3, 4, 5].map(all),
            [vec![2, 3, 4, 5], vec![3, 4, 5], vec![4], vec![5], vec![3]]
        );
        (1..=5).for_each(|a| assert!(before(a, next(a)) && !before(next(a), a)));
    }

    #[test]
    fn the_first_difference_decides_and_then_the_id() {
        assert!(precedes(&label(&[5, 1]), 1, &label(&[3, 1]), 0));
        assert!(precedes(&label(&[3, 1]), 1, &label(&[3, 2]), 0));
        assert!(precedes(&label(&[1, 1]), 0, &label(&[1, 1]), 1));
        assert!(!precedes(&label(&[1, 1]), 1, &label(&[1, 1]), 0));
    }

    #[test]
    fn ranks_are_counted() {
        let labels = [label(&[5, 1]), label(&[3, 2]), label(&[3, 1])];
        assert_eq!(ranks(&labels).iter().collect::<Vec<_>>(), [0, 2, 1]);
    }

    #[test]
    #[should_panic(expected = "go round in a circle")]
    fn a_circle_is_noticed() {
        ranks(&[label(&[3, 1]), label(&[4, 1]), label(&[5, 1])]);
    }

    /// Processes take labels one after the other, any number of times. Each process is last
    /// afterwards, and no other process changes place.
    #[test]
    fn a_new_label_is_later_than_all() {
        for n in 1..=6 {
            let mut labels = vec![Digits::new(format(n), 1); n];
            let mut line: Vec<usize> = (0..n).collect();
            let mut random = 1_u64;
            for _ in 0..20_000 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let p = (random >> 33) as usize % n;
                let last = *line.last().expect("there is a process");
                labels[p] = later(p, &labels, last, 1, |h, _| n - h);
                line.retain(|&i| i != p);
                line.push(p);
                let ranks = ranks(&labels);
                line.iter()
                    .enumerate()
                    .for_each(|(place, &i)| assert_eq!(ranks.get(i) as usize, place, "{labels:?}"));
            }
        }
    }
}
