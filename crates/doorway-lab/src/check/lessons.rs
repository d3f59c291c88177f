//! What was learned of an algorithm, in order. A replay of these lessons gives values and local
//! states the same numbers again, and knows again what every move leads to.
//!
//! States are kept as numbers. The meaning of a number depends on the order of learning, which
//! differs from run to run when several workers learn. So a [checkpoint](super::checkpoint) keeps
//! the order, and the algorithm is run again in that order. Whether a section ends is decided from
//! all known outcomes, so outcomes that gave no new number are kept as well. Nothing is left out,
//! so what is tried on stretched tickets is the same again, too.

use doorway_core::{Ticket, raw};

use super::{relabel::Map, space::Space};

/// One lesson: an outcome, or something that gave at least one new number.
#[derive(Clone, Debug)]
pub(crate) enum Lesson {
    /// The outcome of a move.
    Outcome { p: usize, local: u32, index: u32, value: u32 },
    /// What an overlapping read may return.
    Domain { register: u16, ticket: Option<Ticket> },
    /// A register's value with its tickets replaced.
    Value { register: u16, value: u32, map: Box<Map> },
    /// A local state with its tickets replaced.
    Local { p: usize, local: u32, map: Box<Map> },
}

const OUTCOME: u64 = 1;
const DOMAIN: u64 = 2;
const VALUE: u64 = 3;
const LOCAL: u64 = 4;

/// The bits of the first word of a lesson that give its kind; the remaining bits say what it is
/// about.
const TAG: u32 = 8;

impl Lesson {
    /// Appends the lesson as words.
    pub(crate) fn encode(&self, to: &mut Vec<u64>) {
        match self {
            &Self::Outcome { p, local, index, value } => {
                to.extend([
                    OUTCOME | (p as u64) << TAG,
                    u64::from(local) << 32 | u64::from(index),
                    value.into(),
                ]);
            }
            Self::Domain { register, ticket } => {
                let ticket = ticket.map(raw::number);
                to.extend([
                    DOMAIN | u64::from(*register) << TAG,
                    ticket.is_some().into(),
                    ticket.unwrap_or(0),
                ]);
            }
            Self::Value { register, value, map } => {
                to.extend([VALUE | u64::from(*register) << TAG, (*value).into()]);
                encode_map(map, to);
            }
            Self::Local { p, local, map } => {
                to.extend([LOCAL | (*p as u64) << TAG, (*local).into()]);
                encode_map(map, to);
            }
        }
    }

    /// Takes a lesson off the front of the words, if there is one.
    pub(crate) fn decode(words: &mut &[u64]) -> Option<Self> {
        let first = take(words)?;
        let of = first >> TAG;
        Some(match first & ((1 << TAG) - 1) {
            OUTCOME => {
                let (from, value) = (take(words)?, take(words)?);
                let p = usize::try_from(of).ok()?;
                Self::Outcome {
                    p,
                    local: (from >> 32) as u32,
                    index: from as u32,
                    value: value.try_into().ok()?,
                }
            }
            DOMAIN => {
                let (is_some, label) = (take(words)?, take(words)?);
                let ticket = (is_some == 1).then(|| raw::ticket(label));
                Self::Domain { register: of.try_into().ok()?, ticket }
            }
            VALUE => {
                let value = take(words)?.try_into().ok()?;
                Self::Value { register: of.try_into().ok()?, value, map: decode_map(words)? }
            }
            LOCAL => {
                let local = take(words)?.try_into().ok()?;
                Self::Local { p: usize::try_from(of).ok()?, local, map: decode_map(words)? }
            }
            _ => return None,
        })
    }
}

fn take(words: &mut &[u64]) -> Option<u64> {
    words.split_off_first().copied()
}

fn encode_map(map: &Map, to: &mut Vec<u64>) {
    let at = to.len();
    to.push(0);
    to.extend(map.pairs().map(|(label, image)| u64::from(label) << 8 | u64::from(image)));
    to[at] = (to.len() - at - 1) as u64;
}

fn decode_map(words: &mut &[u64]) -> Option<Box<Map>> {
    let count = usize::try_from(take(words)?).ok()?;
    let pairs = words.split_off(..count)?;
    let halves = |&pair: &u64| ((pair >> 8) as u8, pair as u8);
    pairs.iter().all(|pair| pair >> 16 == 0).then_some(())?;
    Map::of_pairs(pairs.iter().map(halves)).map(Box::new)
}

impl Space<'_> {
    /// Learns a lesson again. `None` if that lesson is impossible: a number is not known yet, or
    /// nothing is new.
    ///
    /// The local states that stand for others have to be [known](Self::merge) by then.
    pub(crate) fn learn_again(&mut self, lesson: &Lesson) -> Option<()> {
        let before = self.learned();
        let processes = self.subject.size().n;
        match lesson {
            &Lesson::Outcome { p, local, index, value } => {
                let known = (p < processes && (local as usize) < self.count(p))
                    .then(|| self.known(p, local))?;
                if let Some(register) = known.moves.get(index as usize)?.register {
                    self.is_value(register, value).then_some(())?;
                }
                (!self.knows_outcome(p, local, index, value)).then_some(())?;
                return self.outcome(p, local, index, value).ok().map(|_| ());
            }
            Lesson::Domain { register, ticket } => {
                self.is_value(*register, 0).then_some(())?;
                self.domain(*register, ticket.as_slice()).ok()?;
            }
            Lesson::Value { register, value, map } => {
                self.is_value(*register, *value).then_some(())?;
                map.covers(self.registers[usize::from(*register)].labels[*value as usize])
                    .then_some(())?;
                self.relabel_value(*register, *value, map).ok()?;
            }
            &Lesson::Local { p, local, ref map } => {
                let known = (p < processes && (local as usize) < self.count(p))
                    .then(|| self.known(p, local))?;
                map.covers(known.labels).then_some(())?;
                self.relabel_local(p, local, map).ok()?;
            }
        }
        (self.learned() > before).then_some(())
    }

    fn is_value(&self, register: u16, value: u32) -> bool {
        self.registers
            .get(usize::from(register))
            .is_some_and(|values| (value as usize) < values.len())
    }
}
