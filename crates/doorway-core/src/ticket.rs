//! Tickets: numbers with a zero, a successor, ∞ and an order, and no other operation.
//!
//! The bakeries hand out numbers that grow without bound. They use few operations on them: start at
//! zero, take one more than the largest number seen, compare. [`Ticket`] offers only these. So the
//! checker may replace the tickets of a state by smaller tickets in the same order, and endless
//! runs become finite (see `docs/relabelling.md`).

use core::fmt;

/// A place in the queue. A larger ticket is a later place.
///
/// ```
/// use doorway_core::Ticket;
/// let first = Ticket::ZERO.succ();
/// assert!(Ticket::ZERO < first && first < Ticket::INFINITY);
/// assert_eq!(first.max(Ticket::ZERO), first);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticket(u64);

impl Ticket {
    /// No ticket, or the first ticket: the papers use 0 for both.
    pub const ZERO: Self = Self(0);
    /// Later than every other ticket.
    pub const INFINITY: Self = Self(u64::MAX);

    /// Returns the ticket right after this one.
    #[inline(always)]
    #[must_use]
    pub const fn succ(self) -> Self {
        // 2⁶⁴ passages at one per nanosecond take 584 years, so an overflow check is not worth its
        // branch.
        Self(self.0.wrapping_add(1))
    }
}

/// The numbers behind tickets: for memories, for machine words and for printing.
///
/// Algorithms do not use them. If an algorithm's behaviour depended on the number behind a ticket,
/// the checker's relabelling would not be exact. The checker tests this on every step that it
/// learns, and refuses an algorithm that depends on it.
pub mod raw {
    use super::Ticket;

    /// Returns the number behind a ticket.
    #[inline(always)]
    pub const fn number(ticket: Ticket) -> u64 {
        ticket.0
    }

    /// Returns the ticket with this number.
    #[inline(always)]
    pub const fn ticket(number: u64) -> Ticket {
        Ticket(number)
    }
}

/// A ticket or ∞: what a register of the papers' ℕ ∪ {∞} holds.
///
/// A type of its own, because a read of a safe register that overlaps a write may return ∞ here. A
/// read of a [`Ticket`] may not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extended(pub Ticket);

impl Extended {
    /// Later than every ticket.
    pub const INFINITY: Self = Self(Ticket::INFINITY);
}

impl fmt::Debug for Extended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::INFINITY { f.write_str("∞") } else { write!(f, "{}", self.0) }
    }
}
