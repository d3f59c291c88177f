//! Remote memory references, as the papers count them.
//!
//! **CC** (coherent caches, write-through, write-invalidate): a read costs 1 unless the process has a valid copy, and
//! gives it one; a write or update costs 1, invalidates the others' copies and keeps one's own. Caches persist from
//! passage to passage. **DSM** (distributed shared memory): an access costs 1 unless the register's home is the process
//! itself. A process's own registers are read from a private copy and cost nothing in either model, because the
//! algorithms do not read them. A passage begins with its first access.

use doorway_core::Home;

use crate::{
    machine::{Event, Half},
    replay::Kind,
    subject::Region,
};

/// References of passages that are over.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Cost {
    /// Passages.
    pub passages: u64,
    /// References of all of them together.
    pub total: u64,
    /// References of the dearest one.
    pub max: u64,
}

impl Cost {
    /// References per passage.
    pub fn mean(&self) -> f64 {
        if self.passages == 0 { 0.0 } else { self.total as f64 / self.passages as f64 }
    }

    fn add(&mut self, references: u64) {
        self.passages += 1;
        self.total += references;
        self.max = self.max.max(references);
    }
}

/// Counts the references of a run.
#[derive(Clone, Debug)]
pub struct Meter {
    homes: Vec<Home>,
    /// For each register, who has a valid copy.
    cached: Vec<Vec<u64>>,
    running: Vec<(u64, u64)>,
    /// What passages cost with coherent caches.
    pub cc: Cost,
    /// What passages cost with distributed shared memory.
    pub dsm: Cost,
    /// The same for each process: CC, DSM.
    pub by_process: Vec<(Cost, Cost)>,
}

impl Meter {
    /// A meter for registers with these homes and `n` processes.
    pub fn new(homes: impl Iterator<Item = Home>, n: usize) -> Self {
        let homes: Vec<Home> = homes.collect();
        Self {
            cached: vec![vec![0; n.div_ceil(64)]; homes.len()],
            homes,
            running: vec![(0, 0); n],
            cc: Cost::default(),
            dsm: Cost::default(),
            by_process: vec![Default::default(); n],
        }
    }

    /// Notes a step; returns what it cost in CC and DSM.
    pub fn observe(&mut self, event: &Event) -> (u64, u64) {
        let p = event.process;
        let cost = match event.register {
            // Half a write is not two accesses.
            Some(_) if event.half == Some(Half::Begin) => (0, 0),
            Some(r) => (self.cached_access(r, p, event.kind), u64::from(self.homes[r] != Home::Process(p))),
            None => (0, 0),
        };
        self.running[p].0 += cost.0;
        self.running[p].1 += cost.1;
        if event.to == Region::Remainder && event.from != Region::Remainder {
            let (cc, dsm) = std::mem::take(&mut self.running[p]);
            self.cc.add(cc);
            self.dsm.add(dsm);
            self.by_process[p].0.add(cc);
            self.by_process[p].1.add(dsm);
        }
        cost
    }

    fn cached_access(&mut self, r: usize, p: usize, kind: Kind) -> u64 {
        let (word, bit) = (p / 64, 1 << (p % 64));
        match kind {
            Kind::Read => {
                let valid = self.cached[r][word] & bit != 0;
                self.cached[r][word] |= bit;
                u64::from(!valid)
            }
            Kind::Write | Kind::Update => {
                self.cached[r].fill(0);
                self.cached[r][word] |= bit;
                1
            }
            Kind::Choose(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(process: usize, kind: Kind, register: usize) -> Event {
        Event {
            process,
            line: 0,
            kind,
            half: None,
            register: Some(register),
            access: String::new(),
            from: Region::Waiting,
            to: Region::Waiting,
            abandons: false,
            idle: false,
            changed: false,
        }
    }

    #[test]
    fn caches_and_homes() {
        let mut meter = Meter::new([Home::Process(0), Home::Nobody].into_iter(), 2);
        assert_eq!(meter.observe(&access(0, Kind::Read, 0)), (1, 0), "first read: not cached, but at home");
        assert_eq!(meter.observe(&access(0, Kind::Read, 0)), (0, 0), "cached now");
        assert_eq!(meter.observe(&access(1, Kind::Read, 0)), (1, 1), "another process, another cache");
        assert_eq!(meter.observe(&access(1, Kind::Write, 0)), (1, 1), "a write always goes to memory");
        assert_eq!(meter.observe(&access(1, Kind::Read, 0)), (0, 1), "and keeps one's own copy");
        assert_eq!(meter.observe(&access(0, Kind::Read, 0)), (1, 0), "but not the others'");
        assert_eq!(meter.observe(&access(0, Kind::Update, 1)), (1, 1), "remote to everybody");
    }

    #[test]
    fn passages_are_counted_when_they_end() {
        let mut meter = Meter::new([Home::Nobody].into_iter(), 1);
        for _ in 0..2 {
            meter.observe(&Event { from: Region::Remainder, ..access(0, Kind::Write, 0) });
            meter.observe(&access(0, Kind::Read, 0));
            meter.observe(&Event { to: Region::Remainder, ..access(0, Kind::Write, 0) });
        }
        assert_eq!(meter.cc, Cost { passages: 2, total: 4, max: 2 });
        assert_eq!(meter.dsm, Cost { passages: 2, total: 6, max: 3 });
        assert_eq!((meter.dsm.mean(), Cost::default().mean()), (3.0, 0.0));
    }
}
