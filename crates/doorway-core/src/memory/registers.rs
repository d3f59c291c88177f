//! Reads and writes.

use super::{Memory, once_more};
use crate::{Register, Value};

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

    /// Reads a register and returns the answer to a question about its value. Only the answer is
    /// kept.
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

    /// Waits until the register's value satisfies `until`.
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
