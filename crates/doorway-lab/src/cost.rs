//! Remote memory references, as the papers count them.
//!
//! **CC** (coherent caches, write-through, write-invalidate): a read costs 1 unless the process has
//! a valid copy, and gives the process a valid copy. A write or update costs 1, invalidates the
//! copies of all other processes and keeps the copy of the writing process. Caches persist from
//! passage to passage. **DSM** (distributed shared memory): an access costs 1 unless the register's
//! home is the process itself. A process reads its own registers from a private copy, at no cost in
//! either model, because the algorithms do not read them. A passage begins with its first access.

use crate::{
    machine::{Event, Half},
    replay::Kind,
    subject::Region,
};

/// The references of finished passages.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Cost {
    /// The number of passages.
    pub passages: u64,
    /// The references of all passages together.
    pub total: u64,
    /// The references of the passage with the most.
    pub max: u64,
}

impl Cost {
    /// Returns the references per passage.
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
    n: usize,
    /// For each touched register, the processes that have a valid copy.
    copies: Vec<Copies>,
    running: Vec<(u64, u64)>,
    /// What passages cost with coherent caches.
    pub cc: Cost,
    /// What passages cost with distributed shared memory.
    pub dsm: Cost,
    /// The costs for each process: CC, DSM.
    pub by_process: Vec<(Cost, Cost)>,
}

impl Meter {
    /// Makes a meter for `n` processes.
    pub fn new(n: usize) -> Self {
        Self {
            n,
            copies: Vec::new(),
            running: vec![(0, 0); n],
            cc: Cost::default(),
            dsm: Cost::default(),
            by_process: vec![Default::default(); n],
        }
    }

    /// Notes a step; returns its cost in CC and DSM.
    #[inline]
    pub fn observe(&mut self, event: &Event) -> (u64, u64) {
        let p = event.process;
        let cost = match event.register {
            // A write in two halves counts as one access.
            Some(_) if event.half == Some(Half::Begin) => (0, 0),
            Some(_) => (self.cached_access(event.slot, p, event.kind), u64::from(event.remote)),
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

    /// Notes that process `p` has looked again at a register of which it has a valid copy.
    #[inline]
    pub(crate) fn looked_again(&mut self, p: usize, remote: bool) {
        if remote {
            self.running[p].1 += 1;
        }
    }

    /// Returns what an access to a register would cost process `p` in CC.
    pub fn would_cost(&self, slot: usize, p: usize, kind: Kind) -> u64 {
        match kind {
            Kind::Read => u64::from(!self.copies.get(slot).is_some_and(|copies| copies.has(p))),
            Kind::Write | Kind::Update => 1,
            Kind::Choose(_) => 0,
        }
    }

    #[inline]
    fn cached_access(&mut self, slot: usize, p: usize, kind: Kind) -> u64 {
        if slot >= self.copies.len() {
            self.copies.resize(slot + 1, Copies::NONE);
        }
        let copies = &mut self.copies[slot];
        match kind {
            Kind::Read if copies.has(p) => 0,
            Kind::Read => {
                copies.add(p, self.n);
                1
            }
            Kind::Write | Kind::Update => {
                copies.leave_only(p);
                1
            }
            Kind::Choose(_) => 0,
        }
    }
}

/// The processes that have a valid copy of a register. There may be many registers, and few
/// processes look at most of them.
#[derive(Clone, Debug)]
#[expect(
    clippy::box_collection,
    reason = "a register of which few have copies takes 16 bytes and not 32"
)]
enum Copies {
    /// Up to three processes, padded with [`NOBODY`].
    Few([u32; 3]),
    /// A bit for each process.
    Many(Box<Vec<u64>>),
}

const NOBODY: u32 = u32::MAX;

impl Copies {
    const NONE: Self = Self::Few([NOBODY; 3]);

    #[inline]
    fn has(&self, p: usize) -> bool {
        match self {
            Self::Few(few) => few.contains(&(p as u32)),
            Self::Many(bits) => bits[p / 64] & 1 << (p % 64) != 0,
        }
    }

    fn add(&mut self, p: usize, n: usize) {
        match self {
            Self::Few(few) => match few.iter_mut().find(|place| **place == NOBODY) {
                Some(place) => *place = p as u32,
                None => {
                    let all = few.map(|q| q as usize);
                    let mut many = Self::Many(Box::new(vec![0; n.div_ceil(64)]));
                    all.into_iter().chain([p]).for_each(|q| many.add(q, n));
                    *self = many;
                }
            },
            Self::Many(bits) => bits[p / 64] |= 1 << (p % 64),
        }
    }

    /// Invalidates the copies of all other processes.
    #[inline]
    fn leave_only(&mut self, p: usize) {
        match self {
            Self::Few(few) => *few = [p as u32, NOBODY, NOBODY],
            Self::Many(bits) => {
                bits.fill(0);
                bits[p / 64] = 1 << (p % 64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an access to one of two registers. The first register lives with process 0, the
    /// second with no process.
    fn access(process: usize, kind: Kind, register: usize) -> Event {
        Event {
            process,
            line: 0,
            kind,
            half: None,
            register: Some(register),
            slot: register,
            remote: (process, register) != (0, 0),
            access: String::new(),
            from: Region::Waiting,
            to: Region::Waiting,
            session: doorway_core::Session::NONE,
            abandons: false,
            idle: false,
            changed: false,
        }
    }

    #[test]
    fn caches_and_homes() {
        let mut meter = Meter::new(2);
        assert_eq!(meter.would_cost(0, 0, Kind::Read), 1, "nobody has looked yet");
        assert_eq!(
            meter.observe(&access(0, Kind::Read, 0)),
            (1, 0),
            "first read: not cached, but at home"
        );
        assert_eq!(meter.would_cost(0, 0, Kind::Read), 0);
        assert_eq!(meter.observe(&access(0, Kind::Read, 0)), (0, 0), "cached now");
        assert_eq!(
            meter.observe(&access(1, Kind::Read, 0)),
            (1, 1),
            "another process, another cache"
        );
        assert_eq!(
            meter.observe(&access(1, Kind::Write, 0)),
            (1, 1),
            "a write always goes to memory"
        );
        assert_eq!(meter.observe(&access(1, Kind::Read, 0)), (0, 1), "and keeps one's own copy");
        assert_eq!(meter.observe(&access(0, Kind::Read, 0)), (1, 0), "but not the others'");
        assert_eq!(meter.observe(&access(0, Kind::Update, 1)), (1, 1), "remote to everybody");
    }

    /// A set of many copies has another representation than a set of few, with the same counts.
    #[test]
    fn many_have_copies() {
        for n in [3, 64, 65, 200] {
            let mut meter = Meter::new(n);
            for round in 0..3 {
                let writer = (round * 7) % n;
                meter.observe(&access(writer, Kind::Write, 1));
                for p in (0..n).rev() {
                    let first = u64::from(p != writer);
                    assert_eq!(meter.observe(&access(p, Kind::Read, 1)).0, first, "{p} of {n}");
                    assert_eq!(meter.observe(&access(p, Kind::Read, 1)).0, 0, "{p} of {n}");
                }
            }
        }
    }

    #[test]
    fn passages_are_counted_when_they_end() {
        let mut meter = Meter::new(2);
        for _ in 0..2 {
            meter.observe(&Event { from: Region::Remainder, ..access(0, Kind::Write, 1) });
            meter.observe(&access(0, Kind::Read, 1));
            meter.observe(&Event { to: Region::Remainder, ..access(0, Kind::Write, 1) });
        }
        assert_eq!(meter.cc, Cost { passages: 2, total: 4, max: 2 });
        assert_eq!(meter.dsm, Cost { passages: 2, total: 6, max: 3 });
        assert_eq!((meter.dsm.mean(), Cost::default().mean()), (3.0, 0.0));
    }
}
