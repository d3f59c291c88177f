//! Schedulers that are not adversaries: every process moves again and again.

use super::{ScheduleError, Scheduler, View};
use crate::random::Random;

/// Round robin: one process after another.
#[derive(Debug, Default)]
pub struct RoundRobin {
    next: usize,
}

impl Scheduler for RoundRobin {
    fn next(&mut self, view: &View<'_>) -> Result<Option<usize>, ScheduleError> {
        let at = view.able.partition_point(|&p| p < self.next);
        let chosen = view.able.get(at).or(view.able.first()).copied();
        self.next = chosen.map_or(0, |p| p + 1);
        Ok(chosen)
    }
}

/// Any process, all with the same probability.
#[derive(Debug)]
pub struct Uniform(pub Random);

impl Scheduler for Uniform {
    fn next(&mut self, view: &View<'_>) -> Result<Option<usize>, ScheduleError> {
        Ok((!view.able.is_empty())
            .then(|| view.able[self.0.below(view.able.len() as u64) as usize]))
    }
}

/// Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte 2010).
///
/// The process with the highest priority moves. Priorities are random and are lowered at random
/// moments. As in all uses of it on code that spins, a process whose wait fails gets the lowest
/// priority. Otherwise no other process would ever move.
#[derive(Debug)]
pub struct Pct {
    random: Random,
    /// Priorities, larger first.
    priority: Vec<i64>,
    lowest: i64,
    until_change: u64,
    /// The process that was first the last time and has not been lowered since.
    first: Option<usize>,
}

/// Mean number of steps between two changes of priority.
const CHANGE_EVERY: u64 = 64;

impl Pct {
    /// Makes a scheduler for `n` processes.
    pub fn new(n: usize, mut random: Random) -> Self {
        let mut priority: Vec<i64> = (1..=n as i64).collect();
        for i in (1..n).rev() {
            priority.swap(i, random.below(i as u64 + 1) as usize);
        }
        let until_change = random.below(2 * CHANGE_EVERY);
        Self { random, priority, lowest: 0, until_change, first: None }
    }

    fn lower(&mut self, p: usize) {
        self.lowest -= 1;
        self.priority[p] = self.lowest;
        self.first = None;
    }
}

impl Scheduler for Pct {
    fn next(&mut self, view: &View<'_>) -> Result<Option<usize>, ScheduleError> {
        if let Some(last) = view.last {
            self.until_change = self.until_change.saturating_sub(1);
            if last.idle || self.until_change == 0 {
                self.lower(last.process);
            }
            if self.until_change == 0 {
                self.until_change = 1 + self.random.below(2 * CHANGE_EVERY);
            }
        }
        // Priorities are only ever lowered, so the first process stays first.
        self.first = match self.first {
            Some(first) if view.able.binary_search(&first).is_ok() => Some(first),
            _ => view.able.iter().copied().max_by_key(|&p| self.priority[p]),
        };
        Ok(self.first)
    }
}
