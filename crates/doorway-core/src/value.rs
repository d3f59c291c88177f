//! What algorithms compute with: values that registers hold ([`Value`]) and values that a process
//! keeps ([`Local`]).

use alloc::{vec, vec::Vec};
use core::{fmt::Debug, hash::Hash};

use crate::{Extended, Ticket, raw};

/// A function that replaces tickets, applied to every ticket in a value.
pub type Relabel<'a> = &'a mut dyn FnMut(Ticket) -> Ticket;

/// A value that a process keeps between two steps: a `Pass`, a `Keep`, or what a loop carries.
///
/// The lab compares such values, stores them and rewrites the tickets inside. Hence the bounds.
/// `relabel` has no default on purpose: a forgotten ticket would make the checker unsound.
pub trait Local: Clone + Eq + Hash + Debug + Send + Sync + 'static {
    /// Returns the value with every ticket in it replaced by `f(ticket)`.
    #[must_use]
    fn relabel(&self, f: Relabel<'_>) -> Self;
}

/// A value that a register holds.
///
/// Natively a register is one machine word, so a value has a [`word`](Value::word) of
/// [`bits`](Value::bits) bits. Up to 64 bits fit a single word, up to 128 bits a double word. In
/// the lab, registers hold the values themselves, and there is no such limit.
pub trait Value: Local {
    /// What is needed besides a word to decode the value, for example the number of digits. `()`
    /// for most types.
    type Format: Copy + Debug + Send + Sync + 'static;

    /// Returns how many bits the words of this format have.
    fn bits(format: Self::Format) -> u32;

    /// Returns the value as a machine word.
    ///
    /// # Panics
    /// May panic when the format has more than 128 bits.
    fn word(&self) -> u128;

    /// Returns the value for a word: the inverse of [`word`](Value::word).
    fn from_word(word: u128, format: Self::Format) -> Self;

    /// Returns every value that a read of a *safe* register may return while the register is being
    /// written; `None` if there are too many to try. `tickets` lists one ticket for each position
    /// in the order of the existing tickets. Values without a ticket come first, and are in the
    /// list even if `tickets` is empty.
    fn domain(tickets: &[Ticket]) -> Option<Vec<Self>> {
        let _ = tickets;
        None
    }

    /// Returns the largest number inside a value that is meant to be bounded; `bounded-registers`
    /// checks this number. ∞ is not a number: it exceeds no bound, and counts as 0 here.
    fn magnitude(&self) -> u64 {
        self.word() as u64
    }
}

/// Implements the methods of [`Value`] that concern words, for a type whose word is a `u64`.
#[macro_export]
macro_rules! one_word {
    (|$self:ident| $word:expr, |$w:ident| $value:expr) => {
        type Format = ();
        #[inline(always)]
        fn bits((): ()) -> u32 {
            u64::BITS
        }
        #[inline(always)]
        fn word(&self) -> u128 {
            let $self = *self;
            u128::from($word)
        }
        #[inline(always)]
        fn from_word(word: u128, (): ()) -> Self {
            let $w = word as u64;
            $value
        }
    };
}

/// Declares types that hold no ticket as [`Local`].
#[macro_export]
macro_rules! plain_local {
    ($($t:ty),* $(,)?) => {$(
        impl $crate::Local for $t {
            fn relabel(&self, _: $crate::Relabel<'_>) -> Self {
                self.clone()
            }
        }
    )*};
}

plain_local!((), bool, u8, u16, u32, u64, usize);

impl Local for Ticket {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        f(*self)
    }
}

impl Local for Extended {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        if *self == Self::INFINITY { *self } else { Self(f(self.0)) }
    }
}

impl<T: Local> Local for Option<T> {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        self.as_ref().map(|t| t.relabel(f))
    }
}

impl<T: Local> Local for Vec<T> {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        self.iter().map(|t| t.relabel(f)).collect()
    }
}

impl<A: Local, B: Local> Local for (A, B) {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        (self.0.relabel(f), self.1.relabel(f))
    }
}

impl<A: Local, B: Local, C: Local> Local for (A, B, C) {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        (self.0.relabel(f), self.1.relabel(f), self.2.relabel(f))
    }
}

impl Value for bool {
    one_word!(|yes| u64::from(yes), |word| word != 0);

    fn domain(_: &[Ticket]) -> Option<Vec<Self>> {
        Some(vec![false, true])
    }
}

impl Value for Ticket {
    one_word!(|ticket| raw::number(ticket), |word| raw::ticket(word));

    fn domain(tickets: &[Ticket]) -> Option<Vec<Self>> {
        Some(tickets.to_vec())
    }

    fn magnitude(&self) -> u64 {
        if *self == Self::INFINITY { 0 } else { raw::number(*self) }
    }
}

impl Value for Extended {
    one_word!(|ticket| raw::number(ticket.0), |word| Self(raw::ticket(word)));

    fn domain(tickets: &[Ticket]) -> Option<Vec<Self>> {
        Some([Self::INFINITY].into_iter().chain(tickets.iter().copied().map(Self)).collect())
    }

    fn magnitude(&self) -> u64 {
        self.0.magnitude()
    }
}

/// A process, or none: the papers' `⊥`.
impl Value for Option<u32> {
    one_word!(|process| process.map_or(0, |p| u64::from(p) + 1), |word| word
        .checked_sub(1)
        .map(|p| p as u32));
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Value for $t {
            one_word!(|number| number as u64, |word| word as $t);
        }
    )*};
}

integers!(u8, u16, u32, u64, usize);

#[cfg(test)]
mod tests {
    use core::fmt::Debug;

    use super::*;
    use crate::algorithms::mutex::{Color, ColoredTicket};

    fn round_trip<T: Value<Format = ()> + Debug>(values: &[T]) {
        for (i, value) in values.iter().enumerate() {
            assert_eq!(T::from_word(value.word(), ()), *value);
            for other in &values[..i] {
                assert_ne!(other.word(), value.word(), "{other:?} and {value:?}");
            }
        }
    }

    #[test]
    fn words_stand_for_one_value_each() {
        round_trip(&[false, true]);
        round_trip(&[Ticket::ZERO, Ticket::ZERO.succ(), raw::ticket(1 << 40), Ticket::INFINITY]);
        round_trip(&[Extended(Ticket::ZERO), Extended(raw::ticket(7)), Extended::INFINITY]);
        round_trip(&[None, Some(0), Some(1), Some(u32::MAX)]);
        round_trip(&[0, 1, u8::MAX]);
        round_trip(&[0, 1, u16::MAX]);
        round_trip(&[0, 1, u32::MAX]);
        round_trip(&[0, 1, u64::MAX]);
        round_trip(&[0, 1, usize::MAX]);
        round_trip(&[Color::Black, Color::White]);
        let token = |color, number| ColoredTicket { color, number };
        let both = |number| [token(Color::Black, number), token(Color::White, number)];
        round_trip(&[both(0), both(1), both(u32::MAX)].concat());
    }

    /// Every value in a type's domain has a word of its own, too.
    #[test]
    fn domains_have_words() {
        let tickets = [1, 2, 3].map(raw::ticket);
        round_trip(&bool::domain(&tickets).expect("there are two"));
        assert_eq!(Ticket::domain(&tickets).expect("as many as are given"), tickets);
        assert_eq!(Extended::domain(&tickets).expect("one more").len(), 4);
        assert_eq!(u64::domain(&tickets), None);
    }

    #[test]
    fn infinity_exceeds_no_bound() {
        assert_eq!(
            [Ticket::ZERO, raw::ticket(7), Ticket::INFINITY].map(|ticket| ticket.magnitude()),
            [0, 7, 0]
        );
        assert_eq!(
            [Extended(raw::ticket(7)), Extended::INFINITY].map(|ticket| ticket.magnitude()),
            [7, 0]
        );
    }

    #[test]
    fn relabelling_reaches_every_ticket() {
        let five = raw::ticket(5);
        let nine = raw::ticket(9);
        let mut shift = |ticket: Ticket| if ticket == five { nine } else { ticket };
        assert_eq!(five.relabel(&mut shift), nine);
        assert_eq!(Some(five).relabel(&mut shift), Some(nine));
        assert_eq!(vec![Ticket::ZERO, five].relabel(&mut shift), [Ticket::ZERO, nine]);
        assert_eq!((five, true).relabel(&mut shift), (nine, true));
        assert_eq!((1_u32, five, Some(five)).relabel(&mut shift), (1, nine, Some(nine)));
    }
}
