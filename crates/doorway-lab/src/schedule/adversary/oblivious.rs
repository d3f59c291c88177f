//! The oblivious adversary: its schedule is fixed before the run.

use super::{ScheduleError, Scheduler, View};
use crate::random::Random;

/// A schedule that is fixed before the run: a sequence of processes that depends on nothing.
pub trait Oblivious {
    /// Returns the process whose turn is next. The schedule does not ask whether the process can
    /// move: a process that has made its passages loses its turn.
    fn turn(&mut self) -> usize;
}

/// Follows a fixed schedule.
pub(super) struct Blind<S>(pub(super) S);

/// A schedule ends if it passes over all processes that can still move this many times in a row.
const PATIENCE: u32 = 1 << 28;

impl<S: Oblivious> Scheduler for Blind<S> {
    fn next(&mut self, view: &View<'_>) -> Result<Option<usize>, ScheduleError> {
        if view.able.is_empty() {
            return Ok(None);
        }
        // Lost turns change nothing, so no strategy needs to see them.
        for _ in 0..PATIENCE {
            let p = self.0.turn();
            // Mostly every process can move. Then process `p` is at index `p` of `able`.
            if view.able.get(p) == Some(&p) || view.able.binary_search(&p).is_ok() {
                return Ok(Some(p));
            }
        }
        Ok(None)
    }
}

/// Any process, all with the same probability.
pub(super) struct Anybody {
    n: u64,
    random: Random,
}

impl Anybody {
    pub(super) fn new(n: usize, random: Random) -> Self {
        Self { n: n as u64, random }
    }
}

impl Oblivious for Anybody {
    fn turn(&mut self) -> usize {
        self.random.below(self.n) as usize
    }
}

/// `oblivious:bursts`: one process moves many times in a row, then another. Bursts of 1, 2, 4, …
/// and 128 turns have the same probability. Some end in the middle of a doorway, and some are
/// passages.
pub struct Bursts {
    n: u64,
    random: Random,
    process: usize,
    left: u32,
}

impl Bursts {
    /// Makes a schedule among `n` processes.
    pub fn new(n: usize, random: Random) -> Self {
        Self { n: n as u64, random, process: 0, left: 0 }
    }
}

impl Oblivious for Bursts {
    fn turn(&mut self) -> usize {
        if self.left == 0 {
            self.process = self.random.below(self.n) as usize;
            self.left = 1 << self.random.below(8);
        }
        self.left -= 1;
        self.process
    }
}

/// `oblivious:skewed`: process i is i + 1 times as slow as process 0, so that the last processes
/// are overtaken again and again.
pub struct Skewed {
    random: Random,
    /// The cumulative weight of the turns of processes 0 up to this one.
    up_to: Vec<u64>,
}

impl Skewed {
    /// Makes a schedule among `n` processes.
    pub fn new(n: usize, random: Random) -> Self {
        let mut total = 0;
        let up_to = (1..=n as u64).map(|slow| {
            total += (1 << 32) / slow;
            total
        });
        Self { random, up_to: up_to.collect() }
    }
}

impl Oblivious for Skewed {
    fn turn(&mut self) -> usize {
        let all = self.up_to.last().copied().unwrap_or(1);
        let turn = self.random.below(all);
        self.up_to.partition_point(|&up_to| up_to <= turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(mut schedule: impl Oblivious, turns: usize) -> Vec<usize> {
        (0..turns).map(|_| schedule.turn()).collect()
    }

    #[test]
    fn bursts_are_bursts() {
        let turns = turns(Bursts::new(8, Random::new(1, 1)), 100_000);
        let changes = turns.windows(2).filter(|pair| pair[0] != pair[1]).count();
        // Eight bursts are 255 turns together, and one in eight goes on with the same process.
        assert!((2600..2900).contains(&changes), "{changes} changes");
        assert!((0..8).all(|p| turns.contains(&p)));
    }

    #[test]
    fn the_last_are_slower() {
        let turns = turns(Skewed::new(8, Random::new(1, 1)), 100_000);
        let of = |p| turns.iter().filter(|&&q| q == p).count() as f64;
        for p in 1..8 {
            let slower = of(0) / of(p);
            assert!(
                (slower / (p as f64 + 1.0) - 1.0).abs() < 0.1,
                "process {p} is {slower} times as slow"
            );
        }
    }

    /// A schedule is fixed before the run: the same seed gives the same schedule, whatever happens.
    #[test]
    fn a_schedule_follows_from_its_seed() {
        let with = |seed| turns(Bursts::new(5, Random::new(seed, 1)), 1000);
        assert_eq!(with(3), with(3));
        assert_ne!(with(3), with(4));
    }
}
