//! Callers of the engines: threads that wait and sleep, with a time limit or without, and tasks
//! that ask to be woken.

use std::{convert::Infallible, task::Waker, time::Instant};

use doorway_core::Memory;

use crate::{
    place::Late,
    sync::{self, Thread},
};

/// The thread or task to wake.
#[derive(Debug)]
pub(crate) enum Sleeper {
    Thread(Thread),
    Task(Waker),
}

impl Sleeper {
    #[inline(always)]
    pub(crate) fn wake(self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Task(waker) => waker.wake(),
        }
    }
}

/// How a caller sleeps. It only loops besides: the memory accesses are the queue's.
pub(crate) trait Caller: Memory {
    fn sleep(&mut self) -> Result<(), Self::Halt>;

    /// Returns the thread or task to wake.
    fn sleeper(&self) -> Sleeper {
        Sleeper::Thread(sync::current())
    }

    /// Returns whether waking `sleeper` wakes this caller.
    fn is(&self, sleeper: &Sleeper) -> bool {
        matches!(sleeper, Sleeper::Thread(thread) if thread.id() == sync::current().id())
    }
}

/// Blocks without a deadline, or does not block at all.
pub(crate) struct Patient;

/// Blocks until this time at most.
pub(crate) struct Until(pub(crate) Instant);

/// A task that does not sleep, but asks to be woken.
pub(crate) struct Polls<'a>(pub(crate) &'a Waker);

macro_rules! loops_only {
    ($caller:ty, $halt:ty) => {
        impl Memory for $caller {
            type Halt = $halt;

            #[inline(always)]
            fn relax(&mut self, _: u32) -> Result<(), $halt> {
                Ok(())
            }
        }
    };
}

loops_only!(Patient, Infallible);
loops_only!(Until, Late);
loops_only!(Polls<'_>, Infallible);

impl Caller for Patient {
    fn sleep(&mut self) -> Result<(), Infallible> {
        sync::park();
        Ok(())
    }
}

impl Caller for Until {
    fn sleep(&mut self) -> Result<(), Late> {
        if sync::park_until(self.0) { Ok(()) } else { Err(Late) }
    }
}

impl Caller for Polls<'_> {
    fn sleep(&mut self) -> Result<(), Infallible> {
        unreachable!("a task is polled and does not sleep")
    }
    fn sleeper(&self) -> Sleeper {
        Sleeper::Task(self.0.clone())
    }
    fn is(&self, sleeper: &Sleeper) -> bool {
        matches!(sleeper, Sleeper::Task(waker) if waker.will_wake(self.0))
    }
}

/// Spins and yields for a moment before a thread sleeps. Returns whether its turn came meanwhile.
/// `others` is the number of holders and waiters.
pub(crate) fn soon(
    others: usize,
    until: Option<Instant>,
    is_enabled: impl Fn() -> bool,
) -> Result<bool, Late> {
    let enabled_after = |pause: fn()| {
        pause();
        is_enabled()
    };
    // Spinning pays where all threads ahead of this one are running; otherwise it keeps them from
    // running.
    if others <= sync::cores() && (0..sync::SPINS).any(|_| enabled_after(sync::spin_loop)) {
        return Ok(true);
    }
    for _ in 0..sync::YIELDS {
        if enabled_after(sync::yield_now) {
            return Ok(true);
        }
        if until.is_some_and(|until| until <= Instant::now()) {
            return Err(Late);
        }
    }
    Ok(false)
}
