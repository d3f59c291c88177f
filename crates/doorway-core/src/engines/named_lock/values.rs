//! What the registers of a [`Table`](super::Table) hold, and what a process keeps.

use core::fmt;

use super::Tally;
use crate::{Local, Relabel, Ticket, Value, one_word, plain_local, raw};

/// The identity of a process: its number, and a *life* that distinguishes it from other processes
/// with that number. Never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner(u64);

impl Owner {
    /// Bits of the process's number. Linux has no larger process IDs.
    pub const PROCESS: u32 = 22;

    /// Returns the process with this number, in this life.
    #[inline(always)]
    #[must_use]
    pub const fn new(process: usize, life: u64) -> Self {
        // Plus one, because 0 stands for no owner.
        Self(life << Self::PROCESS | (process as u64 + 1) & ((1 << Self::PROCESS) - 1))
    }

    /// Returns the process's number.
    #[inline(always)]
    #[must_use]
    pub const fn process(self) -> usize {
        ((self.0 & ((1 << Self::PROCESS) - 1)) as usize).wrapping_sub(1)
    }

    /// Returns the life.
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
    one_word!(|owner| owner.map_or(0, |owner| owner.0), |word| if word == 0 {
        None
    } else {
        Some(Owner(word))
    });

    fn magnitude(&self) -> u64 {
        0
    }
}

/// What the owner of an entry does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// It neither waits nor holds a slot.
    Idle,
    /// It waits in the queue.
    Waiting(Ticket),
    /// It holds a slot.
    Holding {
        /// The holder's ticket.
        ticket: Ticket,
        /// Whether the slot's last holder died with it.
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
            Self::Waiting(ticket) => raw::number(ticket) << 2 | 1,
            Self::Holding { ticket, recovered } => raw::number(ticket) << 2 | 2 | recovered as u64,
        },
        |word| {
            let ticket = raw::ticket(word >> 2);
            match word & 3 {
                0 => Self::Idle,
                1 => Self::Waiting(ticket),
                low => Self::Holding { ticket, recovered: low == 3 },
            }
        }
    );
}

/// The word of the fast path: whether a process may acquire a slot without the table lock, which
/// entry has done so, and the next ticket.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FastPath {
    /// Closed: the entries say all. Contains the next ticket.
    Closed(Ticket),
    /// Open: no process holds or waits. Contains the next ticket.
    Open(Ticket),
    /// This entry holds a slot, and no other entry holds or waits.
    Held {
        /// The entry.
        entry: u32,
        /// The entry's ticket.
        ticket: Ticket,
    },
    /// The same as `Held`, and the process with the table lock is about to write it into the entry.
    Closing {
        /// The entry.
        entry: u32,
        /// The entry's ticket.
        ticket: Ticket,
    },
}

impl Local for FastPath {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        match *self {
            Self::Closed(ticket) => Self::Closed(f(ticket)),
            Self::Open(ticket) => Self::Open(f(ticket)),
            Self::Held { entry, ticket } => Self::Held { entry, ticket: f(ticket) },
            Self::Closing { entry, ticket } => Self::Closing { entry, ticket: f(ticket) },
        }
    }
}

impl FastPath {
    /// Returns the next ticket, or the holder's ticket if there is a holder.
    #[inline(always)]
    #[must_use]
    pub const fn ticket(self) -> Ticket {
        match self {
            Self::Closed(ticket)
            | Self::Open(ticket)
            | Self::Held { ticket, .. }
            | Self::Closing { ticket, .. } => ticket,
        }
    }
}

/// Bits of the entry in the word of the fast path, and bits of the kind of word.
const ENTRY: u32 = Tally::WIDTH;
const KIND: u32 = 2;

impl Value for FastPath {
    one_word!(
        |fast| {
            let word = |kind: u64, entry: u32, ticket: Ticket| {
                (raw::number(ticket) << ENTRY | u64::from(entry) & ((1 << ENTRY) - 1)) << KIND
                    | kind
            };
            match fast {
                Self::Closed(ticket) => word(0, 0, ticket),
                Self::Open(ticket) => word(1, 0, ticket),
                Self::Held { entry, ticket } => word(2, entry, ticket),
                Self::Closing { entry, ticket } => word(3, entry, ticket),
            }
        },
        |word| {
            let ticket = raw::ticket(word >> (ENTRY + KIND));
            let entry = (word >> KIND) as u32 & ((1 << ENTRY) - 1);
            match word & 3 {
                0 => Self::Closed(ticket),
                1 => Self::Open(ticket),
                2 => Self::Held { entry, ticket },
                _ => Self::Closing { entry, ticket },
            }
        }
    );
}

/// A link of the queue to an entry, or to none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Link(u32);

impl Link {
    /// A link to no entry.
    pub const NONE: Self = Self(0);

    /// Returns a link to this entry.
    #[inline(always)]
    #[must_use]
    pub const fn to(entry: usize) -> Self {
        Self(entry as u32 + 1)
    }

    /// Returns the entry.
    #[inline(always)]
    #[must_use]
    pub const fn entry(self) -> Option<usize> {
        (self.0 as usize).checked_sub(1)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry() {
            Some(entry) => write!(f, "{entry}"),
            None => f.write_str("-"),
        }
    }
}

plain_local!(Link, Ends);

impl Value for Link {
    one_word!(|link| u64::from(link.0), |word| Self(word as u32));
}

/// The ends of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Ends {
    /// The entry that has waited longest.
    pub front: Link,
    /// The entry that entered last.
    pub back: Link,
}

impl Value for Ends {
    one_word!(|ends| u64::from(ends.front.0) << 32 | u64::from(ends.back.0), |word| Self {
        front: Link((word >> 32) as u32),
        back: Link(word as u32)
    });
}

/// A place in the queue, or a slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// The place's ticket.
    pub ticket: Ticket,
    /// The slot, once it is granted.
    pub slot: Option<u32>,
    /// Whether the slot's last holder died with it.
    pub recovered: bool,
    /// Whether the slot was acquired on the fast path.
    pub fast: bool,
}

impl Local for Place {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        Self { ticket: f(self.ticket), ..*self }
    }
}

/// What a process keeps from passage to passage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Life {
    /// How many processes with its number have died before it.
    pub number: u64,
    /// Whether the process owns an entry.
    pub has_entry: bool,
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
        round_trip(State::Waiting(raw::ticket(7)));
        for recovered in [false, true] {
            round_trip(State::Holding { ticket: raw::ticket(1 << 61), recovered });
        }
        let ticket = raw::ticket(1 << 49);
        round_trip(FastPath::Closed(ticket));
        round_trip(FastPath::Open(ticket));
        round_trip(FastPath::Held { entry: 0, ticket });
        round_trip(FastPath::Closing { entry: Tally::MAX.into(), ticket });
        round_trip(None::<Owner>);
        round_trip(Some(Owner::new(0, 0)));
        round_trip(Some(Owner::new(4_194_302, (1 << 42) - 1)));
        round_trip(Link::NONE);
        round_trip(Link::to(0));
        round_trip(Ends { front: Link::to(7), back: Link::to(4094) });
    }

    #[test]
    fn an_owner_is_a_process_in_one_of_its_lives() {
        let owner = Owner::new(41, 7);
        assert_eq!((owner.process(), owner.life()), (41, 7));
        assert_ne!(owner, Owner::new(41, 8));
    }

    #[test]
    fn links_name_entries() {
        assert_eq!(
            (Link::NONE.entry(), Link::to(0).entry(), Link::to(9).entry()),
            (None, Some(0), Some(9))
        );
    }
}
