//! Counts what the proof of Giakkoupis and Woelfel 2014, section IV, counts, in a run. That is
//! writes to R, *good* writes to R, and passages.
//!
//! On each side, *phase* 0 begins with the run, and the next phase whenever S is reset in line 32.
//! The leader of a phase is the process that wins S in it, in line 6. A *good interval* begins with
//! a phase. It ends when the leader of that phase has L: after its last step in line 9. A write to
//! R in line 5 is *good* if it falls in a good interval of its own side.
//!
//! Lemma 5: in expectation at least half of the writes are good. At any time, at least one side is
//! in a good interval, and the coin of line 3 falls on that side with probability 1/2. Lemma 6: in
//! expectation a phase has at least 1/36 as many passages as good writes. This module counts the
//! sum over all phases of one run, as in the proof of Theorem 1; it counts no single phase and no
//! expectation. A process counts as having passed when it has entered the critical section. In a
//! run that is cut off, the last phase of each side has its writes counted, and perhaps not all of
//! its passages.
//!
//! Line 9 here is the hand-over from the previous leader, and then L: a good interval ends after
//! both.

use std::ops::Range;

use crate::{
    machine::{Event, Machine},
    replay::Kind,
    subject::{Region, Subject},
};

/// The counts of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lemmas {
    sides: [Side; 2],
    /// Writes to R, in line 5.
    pub writes: u64,
    /// Writes in a good interval of their side.
    pub good_writes: u64,
    /// Writes at a time when neither side was in a good interval. The paper's "critical
    /// observation" is that there are none.
    pub uncovered: u64,
    /// Entries into the critical section.
    pub passages: u64,
}

/// One side of the lock.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Side {
    /// R, as the layout numbers registers
    found: Range<usize>,
    /// S
    leader: Range<usize>,
    /// The leader of this phase.
    led_by: Option<usize>,
    /// This side is in a good interval.
    good: bool,
}

impl Lemmas {
    /// Lemma 5: the share of good writes is at least this, in expectation.
    pub const LEMMA_5: f64 = 1.0 / 2.0;
    /// Lemma 6: passages per good write are at least this, in expectation.
    pub const LEMMA_6: f64 = 1.0 / 36.0;

    /// Returns zero counts, if the subject is the lock that the lemmas are about.
    pub(crate) fn of(subject: &dyn Subject) -> Option<Self> {
        if !subject.claims().paper.contains("004 ") {
            return None;
        }
        let registers = |name: &str| subject.layout().block(name);
        let side = |found: &str, leader: &str| {
            Some(Side {
                found: registers(found)?,
                leader: registers(leader)?,
                led_by: None,
                good: true,
            })
        };
        let sides = [side("R0", "S0")?, side("R1", "S1")?];
        Some(Self { sides, writes: 0, good_writes: 0, uncovered: 0, passages: 0 })
    }

    /// Counts a step that has just been made.
    #[inline]
    pub(crate) fn observe(&mut self, event: &Event, machine: &Machine<'_>) {
        let p = event.process;
        match (event.line, event.register) {
            (5, Some(register)) => {
                if let Some(side) = self.sides.iter().find(|side| side.found.contains(&register)) {
                    self.writes += 1;
                    self.good_writes += u64::from(side.good);
                    self.uncovered += u64::from(self.sides.iter().all(|side| !side.good));
                }
            }
            (6, Some(register)) if event.changed => {
                if let Some(side) =
                    self.sides.iter_mut().find(|side| side.leader.contains(&register))
                {
                    side.led_by = Some(p);
                }
            }
            (9, _) if machine.line(p) != 9 => {
                if let Some(side) = self.sides.iter_mut().find(|side| side.led_by == Some(p)) {
                    side.good = false;
                }
            }
            (32, Some(register)) if event.kind == Kind::Update => {
                if let Some(side) =
                    self.sides.iter_mut().find(|side| side.leader.contains(&register))
                {
                    (side.led_by, side.good) = (None, true);
                }
            }
            _ => {}
        }
        self.passages += u64::from(event.to == Region::Critical && event.from != Region::Critical);
    }

    /// Returns the share of good writes, if there were writes.
    pub fn share_of_good_writes(&self) -> Option<f64> {
        ratio(self.good_writes, self.writes)
    }

    /// Returns the passages per good write, if there were good writes.
    pub fn passages_per_good_write(&self) -> Option<f64> {
        ratio(self.passages, self.good_writes)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
