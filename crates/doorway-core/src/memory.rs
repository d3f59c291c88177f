//! What an algorithm may do to shared memory: one trait per primitive.
//!
//! The bound of an algorithm's type parameter is the paper's "instructions used" column: code that
//! is generic over [`Registers`] provably reads and writes and does nothing else. Every shared
//! access is one method call that ends in `?`. Natively [`Halt`](Memory::Halt) is
//! [`Infallible`](core::convert::Infallible) and the `?` vanishes. In the lab a process stops at
//! the `?`, because it has to wait for its turn or because it crashed.
//!
//! Loops that access memory use the combinators below. After each iteration the process forgets
//! everything that it read in it, except what the loop carries; after the loop, everything except
//! the result. That costs nothing natively and keeps the lab's local states few. In return the code
//! promises that **closures are pure**: they take what they need from their arguments and change
//! nothing that they capture. The bounds `Fn` and `Sync` enforce this for variables and cells:
//!
//! ```compile_fail,E0594
//! fn count<M: doorway_core::Memory>(m: &mut M) -> Result<u32, M::Halt> {
//!     let mut rounds = 0;
//!     m.each(0..3, |_, _| {
//!         rounds += 1; // not here: carry it with `fold`
//!         Ok(())
//!     })?;
//!     Ok(rounds)
//! }
//! ```
//!
//! ```compile_fail,E0277
//! fn count<M: doorway_core::Memory>(m: &mut M) -> Result<u32, M::Halt> {
//!     let rounds = core::cell::Cell::new(0);
//!     m.each(0..3, |_, _| {
//!         rounds.set(rounds.get() + 1); // nor here
//!         Ok(())
//!     })?;
//!     Ok(rounds.get())
//! }
//! ```
//!
//! Types do not rule out an atomic, a mutex or a static. Before each check the lab runs processes
//! that forget beside processes that forget nothing, and refuses an algorithm for which the two
//! differ.

use core::ops::ControlFlow;

mod coins;
mod read_modify_write;
mod registers;

pub use coins::Coins;
pub use read_modify_write::{CompareAndSwap, FetchAndAdd, Swap, Transactions};
pub use registers::Registers;

use crate::Local;

/// What every memory offers: loops, and names for lines and mutants.
pub trait Memory: Sized {
    /// Why a process stops in the middle of its code. Natively it never does.
    type Halt;

    /// Names the paper's line that the next accesses belong to.
    #[inline(always)]
    fn line(&mut self, line: u32) {
        let _ = line;
    }

    /// Returns whether this is a run of the named mutant. Always false outside the lab, and folded
    /// away.
    #[inline(always)]
    fn mutant(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Returns whether this is a run of the mutant `without-line-LINE`, which leaves that line out.
    #[inline(always)]
    fn drops(&self, line: u32) -> bool {
        let _ = line;
        false
    }

    /// Pauses between the rounds of a loop that waits; `round` counts them from 0.
    ///
    /// # Errors
    /// In some memories, when the wait is to be given up.
    fn relax(&mut self, round: u32) -> Result<(), Self::Halt>;

    /// Runs `for i in items { body(i) }`.
    ///
    /// # Errors
    /// When the body stops.
    #[inline(always)]
    #[track_caller]
    fn each<I, F>(&mut self, items: I, body: F) -> Result<(), Self::Halt>
    where
        I: IntoIterator<Item = usize> + Sync,
        F: Fn(&mut Self, usize) -> Result<(), Self::Halt> + Sync,
    {
        // The iterator's own loop, not `for`: a filtered range is then one plain loop, not two
        // nested loops.
        items.into_iter().try_for_each(|i| body(self, i))
    }

    /// Carries a value through `items`.
    ///
    /// # Errors
    /// When the body stops.
    #[inline(always)]
    #[track_caller]
    fn fold<I, T, F>(&mut self, items: I, init: T, body: F) -> Result<T, Self::Halt>
    where
        I: IntoIterator<Item = usize> + Sync,
        T: Local,
        F: Fn(&mut Self, T, usize) -> Result<T, Self::Halt> + Sync,
    {
        items.into_iter().try_fold(init, |carried, i| body(self, carried, i))
    }

    /// Carries a value through `items` until the body breaks.
    ///
    /// # Errors
    /// When the body stops.
    #[inline(always)]
    #[track_caller]
    fn fold_until<I, T, F>(&mut self, items: I, init: T, body: F) -> Result<T, Self::Halt>
    where
        I: IntoIterator<Item = usize> + Sync,
        T: Local,
        F: Fn(&mut Self, T, usize) -> Result<ControlFlow<T, T>, Self::Halt> + Sync,
    {
        let mut carried = init;
        for i in items {
            match body(self, carried, i)? {
                ControlFlow::Break(result) => return Ok(result),
                ControlFlow::Continue(next) => carried = next,
            }
        }
        Ok(carried)
    }

    /// Returns the first of `items` for which the body returns true.
    ///
    /// # Errors
    /// When the body stops.
    #[inline(always)]
    #[track_caller]
    fn find<I, F>(&mut self, items: I, body: F) -> Result<Option<usize>, Self::Halt>
    where
        I: IntoIterator<Item = usize> + Sync,
        F: Fn(&mut Self, usize) -> Result<bool, Self::Halt> + Sync,
    {
        for i in items {
            if body(self, i)? {
                return Ok(Some(i));
            }
        }
        Ok(None)
    }

    /// Repeats the body until it breaks, carrying a state: a repeated scan, or a wait on several
    /// registers.
    ///
    /// # Errors
    /// When the body stops, or the wait is given up.
    #[inline(always)]
    #[track_caller]
    fn repeat<S, R, F>(&mut self, init: S, body: F) -> Result<R, Self::Halt>
    where
        S: Local,
        R: Local,
        F: Fn(&mut Self, S) -> Result<ControlFlow<R, S>, Self::Halt> + Sync,
    {
        let mut state = init;
        let mut round = 0;
        loop {
            match body(self, state)? {
                ControlFlow::Break(result) => return Ok(result),
                ControlFlow::Continue(next) => state = next,
            }
            round = once_more(self, round)?;
        }
    }

    /// Repeats like [`repeat`](Self::repeat), but each round is an attempt and not a look. Some
    /// runs have endlessly many attempts, so the checker counts them and follows a process only
    /// through a limited number in one passage.
    ///
    /// # Errors
    /// When the body stops, or the wait is given up.
    #[inline(always)]
    #[track_caller]
    fn attempts<S, R, F>(&mut self, init: S, body: F) -> Result<R, Self::Halt>
    where
        S: Local,
        R: Local,
        F: Fn(&mut Self, S) -> Result<ControlFlow<R, S>, Self::Halt> + Sync,
    {
        self.repeat(init, body)
    }

    /// Runs a subroutine: what it read is forgotten, its result is not.
    ///
    /// # Errors
    /// When the body stops.
    #[inline(always)]
    #[track_caller]
    fn scope<R, F>(&mut self, body: F) -> Result<R, Self::Halt>
    where
        R: Local,
        F: Fn(&mut Self) -> Result<R, Self::Halt> + Sync,
    {
        body(self)
    }
}

/// Lets a round of waiting pass; returns the number of the next round. Cold, so that the code of a
/// process that need not wait runs straight through and has all machine registers to itself.
#[cold]
#[inline]
fn once_more<M: Memory>(m: &mut M, round: u32) -> Result<u32, M::Halt> {
    m.relax(round)?;
    Ok(round.saturating_add(1))
}
