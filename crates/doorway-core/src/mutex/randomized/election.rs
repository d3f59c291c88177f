//! Who leads: the one object of the lock that is more than a register.

use super::values::Name;
use crate::{CompareAndSwap, Home, Layout, Memory, Register};

/// An object that elects a leader among those who come while there is none. The lock asks nothing else of it than that it
/// is linearizable, so anything that is will do; one from reads and writes alone would make the whole lock so.
pub trait Election: Sized {
    /// Asks for its registers.
    fn new(layout: &mut Layout, name: &str) -> Self;
}

/// The operations of an [`Election`].
pub trait Elect<M: Memory>: Election {
    /// Makes `me` the leader if there is none; the leader that there was before.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn elect(&self, m: &mut M, me: Name) -> Result<Option<Name>, M::Halt>;

    /// The leader.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn leader(&self, m: &mut M) -> Result<Option<Name>, M::Halt>;

    /// Ends the time of `me`, if that is the leader.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn resign(&self, m: &mut M, me: Name) -> Result<(), M::Halt>;
}

/// The paper's S: by compare-and-swap.
#[derive(Debug)]
pub struct ByCompareAndSwap(Register<Option<Name>>);

impl Election for ByCompareAndSwap {
    fn new(layout: &mut Layout, name: &str) -> Self {
        Self(layout.register(name, Home::Nobody, None))
    }
}

impl<M: CompareAndSwap> Elect<M> for ByCompareAndSwap {
    #[inline(always)]
    fn elect(&self, m: &mut M, me: Name) -> Result<Option<Name>, M::Halt> {
        m.compare_and_swap(self.0, None, Some(me))
    }

    #[inline(always)]
    fn leader(&self, m: &mut M) -> Result<Option<Name>, M::Halt> {
        m.read(self.0)
    }

    #[inline(always)]
    fn resign(&self, m: &mut M, me: Name) -> Result<(), M::Halt> {
        m.compare_and_swap(self.0, Some(me), None)?;
        Ok(())
    }
}
