//! What an algorithm may do to shared memory: one trait per primitive.
//!
//! An algorithm's bound is the paper's "instructions used" column: code that is generic over [`Registers`] provably reads
//! and writes and does nothing else. Every shared access is one method call that ends in `?`. Natively
//! [`Halt`](Memory::Halt) is [`Infallible`](core::convert::Infallible) and the `?` vanishes; in the lab it is where a
//! process stops, because it has to wait for its turn or because it crashed.
//!
//! Loops that access memory are written with the combinators below. After each iteration everything that was read in it
//! is forgotten, except what the loop carries; after the loop, everything except its result. That costs nothing
//! natively and keeps the lab's local states few. It is also a promise that the code makes: **closures are pure**. They
//! take what they need from their arguments and change nothing that they capture. The bounds `Fn` and `Sync` enforce this
//! for variables and cells:
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
//! Types do not keep an atomic, a mutex or a static out. Before each check the lab runs processes that forget beside
//! processes that forget nothing, and refuses an algorithm for which the two differ.

use core::ops::ControlFlow;

use crate::{
    Local, Register, Value,
    engines::named_lock::{Owner, State},
};

/// What every memory offers: loops, choices, and names for lines and mutants.
pub trait Memory: Sized {
    /// Why a process stops in the middle of its code. Natively it never does.
    type Halt;

    /// Names the paper's line that the next accesses belong to.
    #[inline(always)]
    fn line(&mut self, line: u32) {
        let _ = line;
    }

    /// Whether this is the run of the named mutant: always false, and folded away, outside the lab.
    #[inline(always)]
    fn mutant(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Whether this is the run of the mutant `without-line-LINE`, which leaves that line out.
    #[inline(always)]
    fn drops(&self, line: u32) -> bool {
        let _ = line;
        false
    }

    /// One of `0..outcomes`: at random natively, every one of them in the checker.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn choose(&mut self, outcomes: u32) -> Result<u32, Self::Halt>;

    /// How many of `most` fair coins fall on heads before the first falls on tails: 0 with probability 1/2, 1 with 1/4 and
    /// so on, `most` as often as `most - 1`. Every number in the checker.
    ///
    /// One step in the lab, like every choice, whatever comes of it: coins that were steps of their own would tell a
    /// scheduler how they fell.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn toss(&mut self, most: u32) -> Result<u32, Self::Halt>;

    /// Called between the rounds of a loop that waits; `round` counts them from 0.
    ///
    /// # Errors
    /// When the wait is to be given up, in memories that can.
    fn relax(&mut self, round: u32) -> Result<(), Self::Halt>;

    /// `for i in items { body(i) }`.
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
        // The iterator's own loop, not `for`: a filtered range then is one plain loop and not one in another.
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

    /// The first of `items` for which the body says yes.
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

    /// Goes round until the body breaks, carrying a state: a scan that is repeated, a wait on several registers.
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

    /// The same, of rounds that are attempts at something rather than looks: in some runs there is no end of them, so the
    /// checker counts them and follows a process only through so many in one passage.
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

    /// A subroutine: what it read is forgotten, its result is not.
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

/// Lets a round of waiting pass; gives the number of the next. Cold, so that the code of a process that need not wait runs
/// straight through and has the machine's registers to itself.
#[cold]
#[inline]
fn once_more<M: Memory>(m: &mut M, round: u32) -> Result<u32, M::Halt> {
    m.relax(round)?;
    Ok(round.saturating_add(1))
}

/// Atomic registers: reads and writes, nothing else.
pub trait Registers: Memory {
    /// Reads a register.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn read<T: Value>(&mut self, register: Register<T>) -> Result<T, Self::Halt>;

    /// Writes a register.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn write<T: Value>(&mut self, register: Register<T>, value: T) -> Result<(), Self::Halt>;

    /// Reads a register of which only one answer matters.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    #[inline(always)]
    #[track_caller]
    fn test<T: Value, F>(&mut self, register: Register<T>, ask: F) -> Result<bool, Self::Halt>
    where
        F: Fn(T) -> bool + Sync,
    {
        Ok(ask(self.read(register)?))
    }

    /// Waits until the register holds what is asked for.
    ///
    /// # Errors
    /// In the lab, where a process may stop here; natively when the wait is given up.
    #[inline(always)]
    #[track_caller]
    fn wait<T: Value, F>(&mut self, register: Register<T>, until: F) -> Result<(), Self::Halt>
    where
        F: Fn(T) -> bool + Sync,
    {
        let mut round = 0;
        while !until(self.read(register)?) {
            round = once_more(self, round)?;
        }
        Ok(())
    }
}

/// Compare-and-swap on a register.
pub trait CompareAndSwap: Registers {
    /// Writes `new` if the register holds `old`; returns what it held.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn compare_and_swap<T: Value>(&mut self, register: Register<T>, old: T, new: T) -> Result<T, Self::Halt>;
}

/// Swap on a register.
pub trait Swap: Registers {
    /// Writes the register; returns what it held.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn swap<T: Value>(&mut self, register: Register<T>, new: T) -> Result<T, Self::Halt>;
}

/// Fetch-and-add on a register.
pub trait FetchAndAdd: Registers {
    /// Adds to the register, wrapping; returns what it held.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn fetch_and_add(&mut self, register: Register<u64>, add: u64) -> Result<u64, Self::Halt>;
}

/// Transactions: a read, a local computation and a write of one variable, all in one step. Paper 003's model.
pub trait Transactions: Memory {
    /// Replaces the variable's value `v` by `change(v).0`; returns `change(v).1`. `change` may be called more than once.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn transact<T: Value, R: Local, F>(&mut self, variable: Register<T>, change: F) -> Result<R, Self::Halt>
    where
        F: Fn(T) -> (T, R) + Sync;
}

/// Memory of processes that may be killed, each at any time, and can be found dead by others.
///
/// Who is dead is for the memory to know: natively the operating system says so. Where processes are not killed but by the
/// lab, a register says it, which counts how often a process has died.
pub trait Mortal: Registers {
    /// Whether somebody is dead. Whoever is, stays so. `deaths` counts the deaths of its process.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    #[inline]
    fn is_dead(&mut self, owner: Owner, deaths: Register<u64>) -> Result<bool, Self::Halt> {
        self.test(deaths, |deaths| deaths != owner.life())
    }

    /// The same, of somebody who is most likely alive: it may take some rounds of waiting until this says so.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    #[inline]
    fn seems_dead(&mut self, owner: Owner, deaths: Register<u64>) -> Result<bool, Self::Halt> {
        self.is_dead(owner, deaths)
    }

    /// Rests until the state is no longer `seen`, or for a while. Says whether it is time to look for the dead.
    ///
    /// # Errors
    /// When the wait is given up, in memories that can.
    #[inline]
    fn sleep(&mut self, state: Register<State>, seen: State) -> Result<bool, Self::Halt> {
        let _ = (state, seen);
        Ok(true)
    }

    /// Ends the rest of whoever waits for that state to change, which it has. Nothing depends on it but how soon.
    #[inline]
    fn wake(&mut self, state: Register<State>) {
        let _ = state;
    }
}
