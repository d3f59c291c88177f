//! What the engine asks of its memory besides accesses: which processes are dead, and sleep.

use super::{Owner, State};
use crate::{Register, Registers};

/// Memory of processes that may be killed at any step, and can be found dead by others.
///
/// Natively the operating system says which processes are dead. In the lab a register says it,
/// which counts how often a process has died.
pub trait Mortal: Registers {
    /// Whether a process is dead. A dead process stays dead. `deaths` counts its deaths.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    #[inline]
    fn is_dead(&mut self, owner: Owner, deaths: Register<u64>) -> Result<bool, Self::Halt> {
        self.test(deaths, |deaths| deaths != owner.life())
    }

    /// The same, of a process that is most likely alive: it may take some rounds of waiting until
    /// this returns `true`.
    ///
    /// # Errors
    /// In the lab, where a process may stop here.
    #[inline]
    fn seems_dead(&mut self, owner: Owner, deaths: Register<u64>) -> Result<bool, Self::Halt> {
        self.is_dead(owner, deaths)
    }

    /// Sleeps until the state is no longer `seen`, or for a while. Returns whether it is time to
    /// look for dead processes.
    ///
    /// # Errors
    /// When the wait is given up, in memories that can.
    #[inline]
    fn sleep(&mut self, state: Register<State>, seen: State) -> Result<bool, Self::Halt> {
        let _ = (state, seen);
        Ok(true)
    }

    /// Wakes the process that sleeps until this state changes, which it has. Nothing depends on it
    /// but how soon the process goes on.
    #[inline]
    fn wake(&mut self, state: Register<State>) {
        let _ = state;
    }
}
