//! What the registers of a [`Table`](super::Table) hold, and what a process keeps.

use core::fmt;

use crate::{Local, Relabel, Session, Ticket, Value, one_word, plain_local, raw};

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

/// Whether one may come in without the guard, who has, and the next ticket.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Gate {
    /// Nobody may; the rows say all. The next has this ticket.
    Shut(Ticket),
    /// Nobody is there, and the next has this ticket.
    Open(Ticket),
    /// This row holds, and nobody else is there.
    Held {
        /// Which.
        row: u32,
        /// Its ticket.
        ticket: Ticket,
    },
    /// The same, and somebody who has the guard is about to write so in the row.
    Closing {
        /// Which.
        row: u32,
        /// Its ticket.
        ticket: Ticket,
    },
}

impl Local for Gate {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        match *self {
            Self::Shut(ticket) => Self::Shut(f(ticket)),
            Self::Open(ticket) => Self::Open(f(ticket)),
            Self::Held { row, ticket } => Self::Held { row, ticket: f(ticket) },
            Self::Closing { row, ticket } => Self::Closing { row, ticket: f(ticket) },
        }
    }
}

impl Gate {
    /// The next ticket; that of its holder, if it has one.
    #[inline(always)]
    #[must_use]
    pub const fn ticket(self) -> Ticket {
        match self {
            Self::Shut(ticket) | Self::Open(ticket) | Self::Held { ticket, .. } | Self::Closing { ticket, .. } => {
                ticket
            }
        }
    }
}

/// Bits of the row in a gate, and of what it is.
const ROW: u32 = Tally::WIDTH;
const KIND: u32 = 2;

impl Value for Gate {
    one_word!(
        |gate| {
            let word = |kind: u64, row: u32, ticket: Ticket| {
                (raw::number(ticket) << ROW | u64::from(row) & ((1 << ROW) - 1)) << KIND | kind
            };
            match gate {
                Self::Shut(ticket) => word(0, 0, ticket),
                Self::Open(ticket) => word(1, 0, ticket),
                Self::Held { row, ticket } => word(2, row, ticket),
                Self::Closing { row, ticket } => word(3, row, ticket),
            }
        },
        |word| {
            let ticket = raw::ticket(word >> (ROW + KIND));
            let row = (word >> KIND) as u32 & ((1 << ROW) - 1);
            match word & 3 {
                0 => Self::Shut(ticket),
                1 => Self::Open(ticket),
                2 => Self::Held { row, ticket },
                _ => Self::Closing { row, ticket },
            }
        }
    );
}

/// What is counted, and what is allowed: numbers of 12 bits each, in one word.
///
/// ```text
/// 61       60      48       36       24     12        0
/// removed  closed  slots    session  inside free      waiting
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tally(u64);

impl Tally {
    /// Bits of each number.
    const WIDTH: u32 = 12;

    /// The largest of the numbers, and so of rows, slots and sessions.
    pub const MOST: u16 = (1 << Self::WIDTH) - 1;

    const FREE: u32 = Self::WIDTH;
    const INSIDE: u32 = 2 * Self::WIDTH;
    const SESSION: u32 = 3 * Self::WIDTH;
    const SLOTS: u32 = 4 * Self::WIDTH;
    const CLOSED: u32 = 5 * Self::WIDTH;
    const REMOVED: u32 = Self::CLOSED + 1;

    /// So many slots, all free.
    #[must_use]
    pub const fn new(slots: u16) -> Self {
        Self(0).with_slots(slots).with_free(slots)
    }

    #[inline(always)]
    const fn number(self, shift: u32) -> u16 {
        (self.0 >> shift) as u16 & Self::MOST
    }

    #[inline(always)]
    const fn with(self, shift: u32, number: u16) -> Self {
        Self(self.0 & !((Self::MOST as u64) << shift) | ((number & Self::MOST) as u64) << shift)
    }

    /// How many rows wait.
    #[inline(always)]
    #[must_use]
    pub const fn waiting(self) -> u16 {
        self.number(0)
    }

    /// How many slots are free.
    #[inline(always)]
    #[must_use]
    pub const fn free(self) -> u16 {
        self.number(Self::FREE)
    }

    /// How many rows hold.
    #[inline(always)]
    #[must_use]
    pub const fn inside(self) -> u16 {
        self.number(Self::INSIDE)
    }

    /// What they have asked for, if there are any.
    #[inline(always)]
    #[must_use]
    pub const fn session(self) -> Session {
        Session(self.number(Self::SESSION) as u32)
    }

    /// How many slots there are. Not counted: it is what it is.
    #[inline(always)]
    #[must_use]
    pub const fn slots(self) -> u16 {
        self.number(Self::SLOTS)
    }

    /// Whether nobody is to be let in. Not counted either.
    #[inline(always)]
    #[must_use]
    pub const fn closed(self) -> bool {
        self.0 >> Self::CLOSED & 1 != 0
    }

    /// Whether the lock has been removed: no slot is ever granted again. Not counted either.
    #[inline(always)]
    #[must_use]
    pub const fn removed(self) -> bool {
        self.0 >> Self::REMOVED & 1 != 0
    }

    /// The same, removed.
    #[must_use]
    pub const fn with_removed(self) -> Self {
        Self(self.0 | 1 << Self::REMOVED)
    }

    /// The same with so many slots.
    #[must_use]
    pub const fn with_slots(self, slots: u16) -> Self {
        self.with(Self::SLOTS, slots)
    }

    /// The same, closed or not.
    #[must_use]
    pub const fn with_closed(self, closed: bool) -> Self {
        Self(self.0 & !(1 << Self::CLOSED) | (closed as u64) << Self::CLOSED)
    }

    /// What is not counted, and so many free slots.
    pub(super) const fn with_free(self, free: u16) -> Self {
        self.with(Self::FREE, free)
    }

    /// What is not counted, and nothing else.
    pub(super) const fn uncounted(self) -> Self {
        Self(self.0 & (1 << Self::CLOSED | 1 << Self::REMOVED)).with_slots(self.slots())
    }

    /// Whether nobody is there, and whoever comes may go in.
    #[inline(always)]
    pub(super) const fn is_quiet(self) -> bool {
        self.waiting() == 0 && self.inside() == 0 && self.has_room()
    }

    /// One more waits.
    #[inline(always)]
    pub(super) const fn one_waits(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// One waits no more, if any did.
    #[inline(always)]
    pub(super) const fn one_waits_no_more(self) -> Self {
        if self.waiting() == 0 { self } else { Self(self.0 - 1) }
    }

    /// One more is inside, and all have asked for this.
    #[inline(always)]
    pub(super) const fn one_inside(self, session: Session) -> Self {
        Self(self.0.wrapping_add(1 << Self::INSIDE)).with(Self::SESSION, session.0 as u16)
    }

    /// One is inside no more, if any was.
    #[inline(always)]
    pub(super) const fn one_left(self) -> Self {
        if self.inside() == 0 { self } else { Self(self.0 - (1 << Self::INSIDE)) }
    }

    /// One slot less is free; there was one.
    #[inline(always)]
    pub(super) const fn one_taken(self) -> Self {
        Self(self.0.wrapping_sub(1 << Self::FREE))
    }

    /// One slot more is free.
    #[inline(always)]
    pub(super) const fn one_given(self) -> Self {
        Self(self.0.wrapping_add(1 << Self::FREE))
    }

    /// Whether there is a slot for anybody.
    #[inline(always)]
    #[must_use]
    pub const fn has_room(self) -> bool {
        self.free() > 0 && !self.closed() && !self.removed()
    }

    /// Whether who asks for this may go in.
    #[inline(always)]
    #[must_use]
    pub const fn admits(self, session: Session) -> bool {
        self.has_room() && (self.inside() == 0 || session.0 == self.session().0 && session.0 != 0)
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} wait, {} of {} free, {} inside", self.waiting(), self.free(), self.slots(), self.inside())?;
        if self.inside() > 0 {
            write!(f, " for {}", self.session().0)?;
        }
        if self.removed() {
            return f.write_str(", removed");
        }
        if self.closed() { f.write_str(", closed") } else { Ok(()) }
    }
}

plain_local!(Tally);

impl Value for Tally {
    one_word!(|tally| tally.0, |word| Self(word));
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
    /// It came in through the gate.
    pub by_gate: bool,
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
        round_trip(State::Waiting(raw::ticket(7)));
        for recovered in [false, true] {
            round_trip(State::Holding { ticket: raw::ticket(1 << 61), recovered });
        }
        let ticket = raw::ticket(1 << 49);
        round_trip(Gate::Shut(ticket));
        round_trip(Gate::Open(ticket));
        round_trip(Gate::Held { row: 0, ticket });
        round_trip(Gate::Closing { row: Tally::MOST.into(), ticket });
        round_trip(None::<Owner>);
        round_trip(Some(Owner::new(0, 0)));
        round_trip(Some(Owner::new(4_194_302, (1 << 42) - 1)));
        round_trip(Tally::new(7).with_closed(true));
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
        let one = |session| Tally::new(2).one_taken().one_inside(session);
        assert!(one(Session(2)).admits(Session(2)) && !one(Session(2)).admits(Session(3)));
        assert!(!one(Session::NONE).admits(Session::NONE));
        assert!(Tally::new(2).admits(Session::NONE));
        assert!(!one(Session(2)).with_closed(true).admits(Session(2)));
        assert!(!one(Session(2)).with_removed().admits(Session(2)) && !Tally::new(2).with_removed().is_quiet());
        assert!(!one(Session(2)).one_taken().one_inside(Session(2)).admits(Session(2)), "there are two slots");
    }

    #[test]
    fn numbers_keep_apart() {
        let tally = Tally::new(Tally::MOST).one_waits().one_inside(Session(9)).one_taken();
        assert_eq!((tally.waiting(), tally.free(), tally.inside()), (1, Tally::MOST - 1, 1));
        assert_eq!((tally.session(), tally.slots(), tally.closed()), (Session(9), Tally::MOST, false));
        let back = tally.one_waits_no_more().one_left().one_given();
        assert_eq!((back.waiting(), back.free(), back.inside(), back.slots()), (0, Tally::MOST, 0, Tally::MOST));
        assert_eq!(Tally::new(3).one_left().one_waits_no_more(), Tally::new(3), "nobody was there");
        assert_eq!(tally.with_closed(true).uncounted(), Tally::new(Tally::MOST).with_closed(true).with_free(0));
        assert!(tally.with_removed().uncounted().removed() && !tally.with_removed().closed());
    }
}
