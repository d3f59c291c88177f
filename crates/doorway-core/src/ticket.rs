//! Tickets: numbers of which only zero, successor, ∞ and order are known.
//!
//! The bakeries hand out numbers that grow for ever. What they do with them is very little: start
//! at zero, take one more than the largest seen, compare. [`Ticket`] offers just that, so the
//! checker may replace the tickets of a state by smaller ones in the same order, and runs without
//! end become finite (see `docs/relabelling.md`).

use core::fmt;

/// A place in line. Larger is later.
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
    /// No ticket, or the first there is: the papers use 0 for both.
    pub const ZERO: Self = Self(0);
    /// Later than every other ticket.
    pub const INFINITY: Self = Self(u64::MAX);

    /// The ticket right after this one.
    #[inline(always)]
    #[must_use]
    pub const fn succ(self) -> Self {
        // 2⁶⁴ passages at one per nanosecond take 584 years; no check is worth its branch here.
        Self(self.0.wrapping_add(1))
    }
}

/// The numbers behind tickets: for memories, for words and for printing.
///
/// Algorithms have no use for them. What an algorithm does must not depend on the number behind a
/// ticket, or the checker's relabelling is not exact; the checker tries that on every step that it
/// learns, and refuses the algorithm if it does.
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
/// Apart from [`Ticket`] because a read of a safe register that overlaps a write may return ∞ here
/// and may not there.
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
