//! What the engine needs from its memory besides accesses: detection of dead processes, and sleep.

use super::{Owner, State};
use crate::{Register, Registers};

/// Memory of processes that may be killed at any step, and whose deaths other processes can detect.
///
/// Natively the operating system says which processes are dead. In the lab a register says it: it
/// counts how often a process has died.
pub trait Mortal: Registers {
    /// Returns whether a process is dead. A dead process stays dead. `deaths` counts its deaths.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    #[inline]
    fn is_dead(&mut self, owner: Owner, deaths: Register<u64>) -> Result<bool, Self::Halt> {
        self.test(deaths, |deaths| deaths != owner.life())
    }

    /// Returns whether a process is dead that is most likely alive. It may take some rounds of
    /// waiting until this returns `true`.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    #[inline]
    fn seems_dead(&mut self, owner: Owner, deaths: Register<u64>) -> Result<bool, Self::Halt> {
        self.is_dead(owner, deaths)
    }

    /// Sleeps until the state is no longer `seen`, or for a limited time. Returns whether it is
    /// time to look for dead processes.
    ///
    /// # Errors
    /// In some memories, when the wait is given up.
    #[inline]
    fn sleep(&mut self, state: Register<State>, seen: State) -> Result<bool, Self::Halt> {
        let _ = (state, seen);
        Ok(true)
    }

    /// Wakes the process that sleeps until this state changes; the state has changed. Correctness
    /// does not depend on it, only how soon the process goes on.
    #[inline]
    fn wake(&mut self, state: Register<State>) {
        let _ = state;
    }
}
