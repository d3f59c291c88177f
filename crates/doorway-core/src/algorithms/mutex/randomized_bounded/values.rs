//! The register values of the bounded lock: at most a process and a few bits each, O(log n) bits in
//! all.

use core::fmt;

use crate::{Value, one_word, plain_local};

/// What a process announces: `A[p]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Said {
    /// It is not there, or it leads a side and has closed its backpack.
    Done,
    /// It wants the lock, and may become the leader of this side.
    Wants(u8),
    /// It tries to get into the backpack of the leader `w` of a side.
    Joins {
        /// α
        side: u8,
        /// w
        w: u32,
    },
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Wants(side) => write!(f, "want {side}"),
            Self::Joins { side, w } => write!(f, "({side}, {w})"),
        }
    }
}

plain_local!(Said);

impl Value for Said {
    one_word!(
        |said| match said {
            Self::Done => 0,
            Self::Wants(side) => u64::from(side) << 2 | 1,
            Self::Joins { side, w } => u64::from(w) << 3 | u64::from(side) << 2 | 2,
        },
        |word| {
            let side = (word >> 2 & 1) as u8;
            match word & 3 {
                0 => Self::Done,
                1 => Self::Wants(side),
                _ => Self::Joins { side, w: (word >> 3) as u32 },
            }
        }
    );
}

/// How far a process has got with a backpack, in B.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stat {
    /// It is not in the backpack, not yet or not any more.
    Done,
    /// It tries to get in.
    Trying,
    /// It is in the backpack, and waits to be promoted.
    Waiting,
}

/// A place in a backpack: `B[w][p]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// stat
    pub stat: Stat,
    /// Flipped whenever p starts to use the backpack of w again. This is what is left of the
    /// paper's number.
    pub bit: bool,
}

impl Place {
    /// Returns the same place with `stat` written to it.
    pub(super) const fn with(self, stat: Stat) -> Self {
        Self { stat, ..self }
    }

    /// Returns the place as it is after use: `Done`, with the bit flipped.
    pub(super) const fn flipped(self) -> Self {
        Self { stat: Stat::Done, bit: !self.bit }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stat = match self.stat {
            Stat::Done => "done",
            Stat::Trying => "trying",
            Stat::Waiting => "waiting",
        };
        write!(f, "({}, {stat})", u8::from(self.bit))
    }
}

plain_local!(Place);

impl Value for Place {
    one_word!(|place| u64::from(place.bit) << 2 | place.stat as u64, |word| Self {
        stat: [Stat::Done, Stat::Trying, Stat::Waiting][word as usize & 3],
        bit: word >> 2 == 1
    });
}

/// What a process asks of the leaders: `Help[p]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Help {
    /// Nothing.
    No,
    /// To be waited for, as soon as it knows on which side.
    Needs,
    /// To be waited for on this side, which it does not leave before it has been inside.
    Stays(u8),
}

plain_local!(Help);

impl Value for Help {
    one_word!(
        |help| match help {
            Self::No => 0,
            Self::Needs => 1,
            Self::Stays(side) => 2 + u64::from(side),
        },
        |word| match word {
            0 => Self::No,
            1 => Self::Needs,
            other => Self::Stays((other - 2) as u8),
        }
    );
}

/// The process whose turn it is: `Next`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Turn {
    /// The process.
    pub of: u32,
    /// Whether a leader is about to go on to the next process, and looks once more first.
    pub ending: bool,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.of, if self.ending { "?" } else { "" })
    }
}

plain_local!(Turn);

impl Value for Turn {
    one_word!(|turn| u64::from(turn.of) << 1 | u64::from(turn.ending), |word| Self {
        of: (word >> 1) as u32,
        ending: word & 1 == 1
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Value<Format = ()>>(values: &[T]) {
        for (i, value) in values.iter().enumerate() {
            assert_eq!(T::from_word(value.word(), ()), *value);
            assert!(values[..i].iter().all(|other| other.word() != value.word()), "{value:?}");
        }
    }

    #[test]
    fn words_stand_for_one_value_each() {
        let joins = |w| [Said::Joins { side: 0, w }, Said::Joins { side: 1, w }];
        round_trip(
            &[
                [Said::Done, Said::Wants(0)].as_slice(),
                &[Said::Wants(1)],
                &joins(0),
                &joins(u32::MAX),
            ]
            .concat(),
        );
        let place = |stat| [false, true].map(|bit| Place { stat, bit });
        round_trip(&[place(Stat::Done), place(Stat::Trying), place(Stat::Waiting)].concat());
        round_trip(&[Help::No, Help::Needs, Help::Stays(0), Help::Stays(1)]);
        let turn = |of| [false, true].map(|ending| Turn { of, ending });
        round_trip(&[turn(0), turn(1), turn(u32::MAX)].concat());
    }
}
