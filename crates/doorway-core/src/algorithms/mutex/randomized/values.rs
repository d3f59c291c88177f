//! The register values of the randomized lock: sequence numbers with other data beside them.
//!
//! Natively a sequence number has 56 bits and a process 14, so that a sequence number and a name
//! fit together in a double word. At ten million attempts a second, 56 bits last for two centuries.

use core::fmt;

use crate::{Local, Relabel, Ticket, Value, plain_local, raw};

const SEQ_BITS: u32 = 56;
const PROCESS_BITS: u32 = 14;

/// The largest number of processes for which there is room.
pub(super) const MOST: usize = 1 << PROCESS_BITS;

fn seq(word: u128) -> Ticket {
    raw::ticket(word as u64 & ((1 << SEQ_BITS) - 1))
}

/// A process in one of its attempts: (p, c).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name {
    /// p
    pub process: u32,
    /// c
    pub seq: Ticket,
}

impl Name {
    pub(super) fn new(p: usize, seq: Ticket) -> Self {
        Self { process: p as u32, seq }
    }

    fn pack(self) -> u128 {
        u128::from(self.process) << SEQ_BITS | u128::from(raw::number(self.seq))
    }

    fn unpack(word: u128) -> Self {
        Self { process: (word >> SEQ_BITS) as u32 & ((1 << PROCESS_BITS) - 1), seq: seq(word) }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {:?})", self.process, self.seq)
    }
}

impl Local for Name {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        Self { seq: f(self.seq), ..*self }
    }
}

/// Implements [`Value`] by a double word.
macro_rules! double_word {
    ($bits:expr, |$self:ident| $word:expr, |$w:ident| $value:expr, $magnitude:expr) => {
        type Format = ();
        fn bits((): ()) -> u32 {
            $bits
        }
        #[inline(always)]
        fn word(&self) -> u128 {
            let $self = *self;
            $word
        }
        #[inline(always)]
        fn from_word($w: u128, (): ()) -> Self {
            $value
        }
        fn magnitude(&self) -> u64 {
            let $self = *self;
            $magnitude
        }
    };
}

impl Value for Name {
    double_word!(
        SEQ_BITS + PROCESS_BITS,
        |name| name.pack(),
        |word| Self::unpack(word),
        raw::number(name.seq)
    );
}

/// A name, or (⊥, ⊥): with one bit more than a name.
impl Value for Option<Name> {
    double_word!(
        SEQ_BITS + PROCESS_BITS + 1,
        |name| name.map_or(0, |name| name.pack() << 1 | 1),
        |word| (word & 1 == 1).then(|| Name::unpack(word >> 1)),
        name.map_or(0, |name| raw::number(name.seq))
    );
}

/// The status of a process, in A.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It wants the lock, and may become a leader.
    Want,
    /// It is a leader whose backpack is closed, or it has not entered yet.
    Done,
    /// It tries to get into the backpack of this leader.
    Joins(Name),
}

/// What a process announces: `A[p]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Announcement {
    /// seq
    pub seq: Ticket,
    /// str
    pub status: Status,
}

impl fmt::Debug for Announcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Status::Want => write!(f, "({:?}, want)", self.seq),
            Status::Done => write!(f, "({:?}, done)", self.seq),
            Status::Joins(leader) => write!(f, "({:?}, {leader:?})", self.seq),
        }
    }
}

impl Local for Announcement {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        let status = match self.status {
            Status::Joins(leader) => Status::Joins(leader.relabel(f)),
            other => other,
        };
        Self { seq: f(self.seq), status }
    }
}

impl Value for Announcement {
    double_word!(
        2 * SEQ_BITS + PROCESS_BITS + 2,
        |said| {
            let (tag, leader) = match said.status {
                Status::Done => (0, 0),
                Status::Want => (1, 0),
                Status::Joins(leader) => (2, leader.pack()),
            };
            leader << (SEQ_BITS + 2) | tag << SEQ_BITS | u128::from(raw::number(said.seq))
        },
        |word| {
            let status = match word >> SEQ_BITS & 3 {
                0 => Status::Done,
                1 => Status::Want,
                _ => Status::Joins(Name::unpack(word >> (SEQ_BITS + 2))),
            };
            Self { seq: seq(word), status }
        },
        raw::number(said.seq)
    );
}

/// How far a process has got with a backpack, in B.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stat {
    /// It is not in the backpack, not yet or not any more.
    Done,
    /// It tries to get in.
    Trying,
    /// It is in the backpack, and waits to be promoted.
    Waiting,
    /// It has been promoted.
    Promoted,
}

plain_local!(Stat);

/// A place in a backpack: `B[w][p]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// seq
    pub seq: Ticket,
    /// stat
    pub stat: Stat,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stat = match self.stat {
            Stat::Done => "done",
            Stat::Trying => "trying",
            Stat::Waiting => "waiting",
            Stat::Promoted => "promoted",
        };
        write!(f, "({:?}, {stat})", self.seq)
    }
}

impl Local for Place {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        Self { seq: f(self.seq), ..*self }
    }
}

impl Value for Place {
    double_word!(
        SEQ_BITS + 2,
        |place| u128::from(raw::number(place.seq)) << 2 | place.stat as u128,
        |word| {
            let stat = [Stat::Done, Stat::Trying, Stat::Waiting, Stat::Promoted][word as usize & 3];
            Self { seq: seq(word >> 2), stat }
        },
        raw::number(place.seq)
    );
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn round_trip<T: Value<Format = ()>>(values: &[T]) {
        for (i, value) in values.iter().enumerate() {
            assert_eq!(T::from_word(value.word(), ()), *value);
            assert!(T::bits(()) == 128 || value.word() >> T::bits(()) == 0, "{value:?}");
            assert!(values[..i].iter().all(|other| other.word() != value.word()), "{value:?}");
        }
    }

    #[test]
    fn words_stand_for_one_value_each() {
        let seqs = [0, 1, (1 << SEQ_BITS) - 1].map(raw::ticket);
        let names: Vec<Name> =
            seqs.iter().flat_map(|&c| [0, 5, MOST - 1].map(|p| Name::new(p, c))).collect();
        round_trip(&names);
        round_trip(&names.iter().copied().map(Some).chain([None]).collect::<Vec<_>>());
        let statuses: Vec<Status> =
            names.iter().copied().map(Status::Joins).chain([Status::Want, Status::Done]).collect();
        let all = seqs
            .iter()
            .flat_map(|&seq| statuses.iter().map(move |&status| Announcement { seq, status }));
        round_trip(&all.collect::<Vec<_>>());
        let stats = [Stat::Done, Stat::Trying, Stat::Waiting, Stat::Promoted];
        round_trip(
            &seqs.iter().flat_map(|&seq| stats.map(|stat| Place { seq, stat })).collect::<Vec<_>>(),
        );
    }
}
