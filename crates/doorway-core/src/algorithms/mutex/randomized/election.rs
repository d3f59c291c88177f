//! Who leads: the one object of the lock that is more than a register.

use crate::{CompareAndSwap, Home, Layout, Local, Memory, Register, Value};

/// An object that elects a leader, by a name of type `N`, among those who come while there is none.
/// The lock asks nothing else of it than that it is linearizable, so anything that is will do; one
/// from reads and writes alone would make the whole lock so.
pub trait Election<N>: Sized + Sync {
    /// Asks for its registers.
    fn new(layout: &mut Layout, name: &str) -> Self;
}

/// The operations of an [`Election`].
pub trait Elect<M: Memory, N>: Election<N> {
    /// Makes `me` the leader if there is none; the leader that there was before.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn elect(&self, m: &mut M, me: N) -> Result<Option<N>, M::Halt>;

    /// The leader.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn leader(&self, m: &mut M) -> Result<Option<N>, M::Halt>;

    /// Ends the time of `me`, if that is the leader.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn resign(&self, m: &mut M, me: N) -> Result<(), M::Halt>;
}

/// The paper's S: by compare-and-swap.
#[derive(Debug)]
pub struct ByCompareAndSwap<N>(Register<Option<N>>)
where
    Option<N>: Value;

impl<N: Local> Election<N> for ByCompareAndSwap<N>
where
    Option<N>: Value<Format = ()>,
{
    fn new(layout: &mut Layout, name: &str) -> Self {
        Self(layout.register(name, Home::Nobody, None))
    }
}

impl<M: CompareAndSwap, N: Local> Elect<M, N> for ByCompareAndSwap<N>
where
    Option<N>: Value<Format = ()>,
{
    #[inline(always)]
    fn elect(&self, m: &mut M, me: N) -> Result<Option<N>, M::Halt> {
        m.compare_and_swap(self.0, None, Some(me))
    }

    #[inline(always)]
    fn leader(&self, m: &mut M) -> Result<Option<N>, M::Halt> {
        m.read(self.0)
    }

    #[inline(always)]
    fn resign(&self, m: &mut M, me: N) -> Result<(), M::Halt> {
        m.compare_and_swap(self.0, Some(me), None)?;
        Ok(())
    }
}
