//! The rounds: every lock runs once in each, and the results are computed here.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::{
    group::{Bench, Plan},
    histogram::Histogram,
    order::Verdict,
    work::{Sample, Spin, Work},
};

/// How far a bench is, for a caller that shows progress.
#[derive(Default, Debug)]
pub struct Watch {
    /// How many measurements are done.
    pub done: AtomicU32,
}

/// The result of one lock in one setting.
#[derive(Debug)]
pub struct Row {
    /// The lock.
    pub lock: &'static str,
    /// Passages of all processes together; the median over the rounds.
    pub ops_per_second: f64,
    /// For each reference, this lock's passages per second over its own in the same round; the
    /// median over the rounds.
    pub ratios: Vec<f64>,
    /// The most passages of a process over the fewest; the median over the rounds, and infinite if
    /// a process had none.
    pub share_max_min: f64,
    /// From before the doorway until inside, over all rounds; empty if it was not measured.
    pub waits: Histogram,
    /// What the judge of order found, over all rounds.
    pub verdict: Verdict,
    /// Whether the verdict is by the lock's own doorway. If not, the order is that in which
    /// processes began, and overtaking is no fault: a process may have lost the processor on its
    /// way to the lock.
    pub doorway: bool,
}

impl Row {
    /// Returns whether the lock is wrong: it let too many in, or a process ahead of processes that
    /// were through its doorway.
    pub fn is_wrong(&self) -> bool {
        self.verdict.intrusions > 0 || self.doorway && self.verdict.overtakings > 0
    }
}

impl Bench {
    /// Returns how many measurements it makes.
    pub fn measurements(&self, plan: &Plan) -> u32 {
        let (before, rounds) = self.rounds(plan);
        (before + rounds) * self.contenders.len() as u32
    }

    /// Makes the measurements; returns a row for each lock.
    pub fn run(&self, plan: &Plan, watch: &Watch) -> Vec<Row> {
        let work =
            Work { setting: self.setting, times: self.times(plan), spin: Spin::of_this_machine() };
        let (before, rounds) = self.rounds(plan);
        let mut samples: Vec<Vec<Sample>> = self.contenders.iter().map(|_| Vec::new()).collect();
        for round in 0..before + rounds {
            for i in turn(self.contenders.len(), round as usize) {
                let sample = (self.contenders[i].measure)(&work);
                if round >= before {
                    samples[i].push(sample);
                }
                watch.done.fetch_add(1, Relaxed);
            }
        }
        let position = |name: &&str| self.contenders.iter().position(|lock| lock.name == *name);
        let references: Vec<&[Sample]> = self
            .references
            .iter()
            .filter_map(position)
            .map(|reference| &samples[reference][..])
            .collect();
        let row = |(i, samples): (usize, &Vec<Sample>)| {
            row(self.contenders[i].name, samples, &references)
        };
        samples.iter().enumerate().map(row).collect()
    }
}

/// Returns the order in a round. Another lock begins each time, and every other round goes
/// backwards, so that no lock always runs after the same one.
fn turn(count: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.rotate_left(round % count.max(1));
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

fn row(lock: &'static str, samples: &[Sample], references: &[&[Sample]]) -> Row {
    let ratio = |reference: &&[Sample]| {
        median(
            samples
                .iter()
                .zip(*reference)
                .map(|(mine, theirs)| mine.ops_per_second / theirs.ops_per_second),
        )
    };
    let mut waits = Histogram::default();
    let mut verdict = Verdict::default();
    for sample in samples {
        waits.merge(&sample.waits);
        verdict.add(sample.verdict);
    }
    Row {
        lock,
        ops_per_second: median(samples.iter().map(|sample| sample.ops_per_second)),
        ratios: references.iter().map(ratio).collect(),
        share_max_min: median(samples.iter().map(share)),
        waits,
        verdict,
        doorway: samples.iter().any(|sample| sample.doorway),
    }
}

/// Returns the most passages of a process over the fewest.
fn share(sample: &Sample) -> f64 {
    match sample.share {
        (_, 0) => f64::INFINITY,
        (most, fewest) => most as f64 / fewest as f64,
    }
}

/// Returns the middle value, or the mean of the two in the middle.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3.0, f64::INFINITY, 1.0].into_iter()), 3.0);
        assert_eq!(median([4.0, 1.0, 2.0, 9.0].into_iter()), 3.0);
    }

    #[test]
    fn everybody_has_a_turn_in_each_round_and_not_always_the_same() {
        for round in 0..8 {
            let mut order = turn(5, round);
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4]);
        }
        let first: Vec<usize> = (0..10).map(|round| turn(5, round)[0]).collect();
        assert!((0..5).all(|lock| first.contains(&lock)), "{first:?}");
    }

    #[test]
    fn a_ratio_is_of_one_round() {
        let sample = |ops_per_second| Sample { ops_per_second, share: (3, 2), ..Sample::default() };
        // The machine halves its speed after the first round: medians of speeds would say 5 : 2.
        let (mine, theirs) = ([10.0, 5.0, 5.0].map(sample), [4.0, 2.0, 1.0].map(sample));
        let row = row("mine", &mine, &[&theirs, &mine]);
        assert_eq!((row.ratios, row.share_max_min), (vec![2.5, 1.0], 1.5));
    }
}
