//! What the registers of a [`Table`](super::Table) hold, and what a process keeps.

use core::fmt;

use crate::{Local, Relabel, Session, Ticket, Value, one_word, plain_local};

/// Who somebody is: a process, and which of those that bear its number one after the other. Never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner(u64);

impl Owner {
    /// Bits of the process's number. Linux has no larger process ids.
    pub const PROCESS: u32 = 22;

    /// The process with this number, in this life.
    #[inline(always)]
    #[must_use]
    pub const fn new(process: usize, life: u64) -> Self {
        // One more: 0 is nobody.
        Self(life << Self::PROCESS | (process as u64 + 1) & ((1 << Self::PROCESS) - 1))
    }

    /// The process's number.
    #[inline(always)]
    #[must_use]
    pub const fn process(self) -> usize {
        ((self.0 & ((1 << Self::PROCESS) - 1)) as usize).wrapping_sub(1)
    }

    /// Which of its lives it is.
    #[inline(always)]
    #[must_use]
    pub const fn life(self) -> u64 {
        self.0 >> Self::PROCESS
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.process())?;
        if self.life() == 0 { Ok(()) } else { write!(f, " in life {}", self.life()) }
    }
}

plain_local!(Owner);

impl Value for Option<Owner> {
    one_word!(|owner| owner.map_or(0, |owner| owner.0), |word| if word == 0 { None } else { Some(Owner(word)) });

    fn magnitude(&self) -> u64 {
        0
    }
}

/// What a process does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// Nothing.
    Idle,
    /// It is in line.
    Waiting(Ticket),
    /// It has a slot.
    Holding {
        /// Its ticket.
        ticket: Ticket,
        /// The slot's last holder died in it.
        recovered: bool,
    },
}

impl Local for State {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        match *self {
            Self::Idle => Self::Idle,
            Self::Waiting(ticket) => Self::Waiting(f(ticket)),
            Self::Holding { ticket, recovered } => Self::Holding { ticket: f(ticket), recovered },
        }
    }
}

impl Value for State {
    one_word!(
        |state| match state {
            Self::Idle => 0,
            Self::Waiting(ticket) => ticket.label() << 2 | 1,
            Self::Holding { ticket, recovered } => ticket.label() << 2 | 2 | recovered as u64,
        },
        |word| {
            let ticket = Ticket::from_label(word >> 2);
            match word & 3 {
                0 => Self::Idle,
                1 => Self::Waiting(ticket),
                low => Self::Holding { ticket, recovered: low == 3 },
            }
        }
    );
}

/// What is counted, and what is allowed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Tally {
    /// How many rows wait.
    pub waiting: u16,
    /// How many slots are free.
    pub free: u16,
    /// How many rows hold.
    pub inside: u16,
    /// What they have asked for, if there are any.
    pub session: u16,
    /// How many slots there are. Not counted: it is what it is.
    pub slots: u16,
    /// Nobody is to be let in. Not counted either.
    pub closed: bool,
}

impl Tally {
    /// Bits of each number.
    const WIDTH: u32 = 12;

    /// The largest of the numbers, and so of rows, slots and sessions.
    pub const MOST: u16 = (1 << Self::WIDTH) - 1;

    /// Whether there is a slot for anybody.
    #[inline(always)]
    #[must_use]
    pub const fn has_room(self) -> bool {
        self.free > 0 && !self.closed
    }

    /// Whether who asks for this may go in.
    #[inline(always)]
    #[must_use]
    pub const fn admits(self, session: Session) -> bool {
        self.has_room() && (self.inside == 0 || session.0 == self.session as u32 && session.0 != 0)
    }
}

plain_local!(Tally);

impl Value for Tally {
    one_word!(
        |tally| {
            let Self { waiting, free, inside, session, slots, closed } = tally;
            [slots, session, inside, free, waiting]
                .iter()
                .fold(u64::from(closed), |word, &number| word << Self::WIDTH | u64::from(number & Self::MOST))
        },
        |word| {
            let number = |i: u32| (word >> (i * Self::WIDTH)) as u16 & Self::MOST;
            Self {
                waiting: number(0),
                free: number(1),
                inside: number(2),
                session: number(3),
                slots: number(4),
                closed: word >> (5 * Self::WIDTH) & 1 != 0,
            }
        }
    );
}

/// A place in line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// Its ticket.
    pub ticket: Ticket,
    /// The slot, once it has one.
    pub slot: Option<u32>,
    /// The slot's last holder died in it.
    pub recovered: bool,
}

impl Local for Place {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        Self { ticket: f(self.ticket), ..*self }
    }
}

/// What a process keeps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Life {
    /// How often it has died before.
    pub number: u64,
    /// It has a row.
    pub settled: bool,
}

plain_local!(Life);

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Value<Format = ()>>(value: T) {
        assert_eq!(T::from_word(value.word(), ()), value);
    }

    #[test]
    fn words_stand_for_one_value_each() {
        round_trip(State::Idle);
        round_trip(State::Waiting(Ticket::from_label(7)));
        for recovered in [false, true] {
            round_trip(State::Holding { ticket: Ticket::from_label(1 << 61), recovered });
        }
        round_trip(None::<Owner>);
        round_trip(Some(Owner::new(0, 0)));
        round_trip(Some(Owner::new(4_194_302, (1 << 42) - 1)));
        round_trip(Tally { waiting: 1, free: 2, inside: 3, session: 4, slots: Tally::MOST, closed: true });
        round_trip(Tally::default());
    }

    #[test]
    fn an_owner_is_a_process_in_one_of_its_lives() {
        let owner = Owner::new(41, 7);
        assert_eq!((owner.process(), owner.life()), (41, 7));
        assert_ne!(owner, Owner::new(41, 8));
    }

    #[test]
    fn sessions_share_and_nobodys_session_is_shared() {
        let tally = Tally { free: 1, inside: 1, session: 2, slots: 2, ..Tally::default() };
        assert!(tally.admits(Session(2)) && !tally.admits(Session(3)));
        assert!(!Tally { session: 0, ..tally }.admits(Session::NONE));
        assert!(Tally { inside: 0, ..tally }.admits(Session::NONE));
        assert!(!Tally { closed: true, ..tally }.admits(Session(2)));
    }
}
