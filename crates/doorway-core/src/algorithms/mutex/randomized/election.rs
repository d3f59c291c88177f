//! Leader election: the only object of the lock that is more than a register.

use crate::{CompareAndSwap, Home, Layout, Local, Memory, Register, Value};

/// An object that elects a leader, by a name of type `N`, if there is none.
///
/// The lock only requires that the object is linearizable, so any linearizable object will do. An
/// object from reads and writes alone would make the whole lock a lock from reads and writes alone.
pub trait Election<N>: Sized + Sync {
    /// Asks `layout` for the registers of the object.
    fn new(layout: &mut Layout, name: &str) -> Self;
}

/// The operations of an [`Election`].
pub trait Elect<M: Memory, N>: Election<N> {
    /// Makes `me` the leader if there is none. Returns the leader that there was before.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn elect(&self, m: &mut M, me: N) -> Result<Option<N>, M::Halt>;

    /// Returns the leader.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn leader(&self, m: &mut M) -> Result<Option<N>, M::Halt>;

    /// Ends the leadership of `me`, if `me` is the leader.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn resign(&self, m: &mut M, me: N) -> Result<(), M::Halt>;
}

/// The paper's S, from compare-and-swap.
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
