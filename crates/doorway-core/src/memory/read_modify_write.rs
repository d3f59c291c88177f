//! Primitives that read and write in one step.

use super::{Memory, Registers};
use crate::{Local, Register, Value};

/// Compare-and-swap on a register.
pub trait CompareAndSwap: Registers {
    /// Writes `new` if the register holds `old`; returns the previous value.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn compare_and_swap<T: Value>(
        &mut self,
        register: Register<T>,
        old: T,
        new: T,
    ) -> Result<T, Self::Halt>;
}

/// Swap on a register.
pub trait Swap: Registers {
    /// Writes the register; returns the previous value.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn swap<T: Value>(&mut self, register: Register<T>, new: T) -> Result<T, Self::Halt>;
}

/// Fetch-and-add on a register.
pub trait FetchAndAdd: Registers {
    /// Adds to the register, wrapping; returns the previous value.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn fetch_and_add(&mut self, register: Register<u64>, add: u64) -> Result<u64, Self::Halt>;
}

/// Transactions: a read, a local computation and a write of one variable, all in one step. This is
/// the model of Fischer et al. 1985.
pub trait Transactions: Memory {
    /// Replaces the variable's value `v` by `change(v).0`; returns `change(v).1`. `change` may be
    /// called more than once.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    fn transact<T: Value, R: Local, F>(
        &mut self,
        variable: Register<T>,
        change: F,
    ) -> Result<R, Self::Halt>
    where
        F: Fn(T) -> (T, R) + Sync;
}
