//! What algorithms compute with: values that registers hold ([`Value`]) and values that a process keeps ([`Local`]).

use alloc::{vec, vec::Vec};
use core::{fmt::Debug, hash::Hash};

use crate::Ticket;

/// A change of tickets, applied wherever they stand.
pub type Relabel<'a> = &'a mut dyn FnMut(Ticket) -> Ticket;

/// A value that a process keeps between two steps: a `Pass`, a `Keep`, what a loop carries.
///
/// The lab compares such values, stores them and rewrites the tickets inside; hence the bounds. `relabel` has no
/// default on purpose: a forgotten ticket would make the checker unsound.
pub trait Local: Clone + Eq + Hash + Debug + Send + Sync + 'static {
    /// The same value with every ticket in it replaced by `f(ticket)`.
    #[must_use]
    fn relabel(&self, f: Relabel<'_>) -> Self;
}

/// A value that fits a register.
///
/// Natively a register is one 64-bit word, so a value has a [`word`](Value::word).
pub trait Value: Local + Copy {
    /// The value as a machine word.
    fn word(self) -> u64;

    /// The value that a word stands for: the inverse of [`word`](Value::word).
    fn from_word(word: u64) -> Self;

    /// Every value that a read of a *safe* register may return while the register is being written. `tickets` lists one
    /// ticket for each position in the order of those that exist.
    fn domain(tickets: &[Ticket]) -> Vec<Self>;

    /// The largest number inside, where one is meant to be bounded: what `bounded-registers` looks at.
    fn magnitude(self) -> u64 {
        self.word()
    }
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
    #[inline(always)]
    fn word(self) -> u64 {
        u64::from(self)
    }
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        word != 0
    }
    fn domain(_: &[Ticket]) -> Vec<Self> {
        vec![false, true]
    }
}

impl Value for Ticket {
    #[inline(always)]
    fn word(self) -> u64 {
        self.label()
    }
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Ticket::from_label(word)
    }
    fn domain(tickets: &[Ticket]) -> Vec<Self> {
        tickets.to_vec()
    }
}

/// A process, or nobody: the papers' `⊥`.
impl Value for Option<u32> {
    #[inline(always)]
    fn word(self) -> u64 {
        match self {
            None => 0,
            Some(p) => u64::from(p) + 1,
        }
    }
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        word.checked_sub(1).map(|p| p as u32)
    }
    fn domain(_: &[Ticket]) -> Vec<Self> {
        unbounded_domain("Option<u32>")
    }
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Value for $t {
            #[inline(always)]
            fn word(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn from_word(word: u64) -> Self {
                word as $t
            }
            fn domain(_: &[Ticket]) -> Vec<Self> {
                unbounded_domain(stringify!($t))
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, usize);

/// Integers have no domain that a search could range over; an algorithm for safe registers gives its values a type of
/// their own that has one. The lab checks `Claims::registers` before it gets here.
fn unbounded_domain<T>(name: &str) -> Vec<T> {
    panic!("{name} has no finite domain: give the register a type whose domain is finite before exploring it as safe")
}
