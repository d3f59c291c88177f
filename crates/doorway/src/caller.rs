//! Who calls: threads that wait and sleep, with a time limit or without, and tasks that ask to be woken.

use std::{
    convert::Infallible,
    sync::OnceLock,
    task::Waker,
    thread::{self, Thread},
    time::Instant,
};

use doorway_core::Memory;

use crate::place::Late;

/// Looks at the word before a thread that may hope to go in soon lets others run.
const SPINS: u32 = 200;

/// How often a thread lets others run before it sleeps. To wake a thread costs more than to let a few run, and whoever is
/// awake when its turn comes need not be woken; but nobody is to keep a core busy for long.
const YIELDS: u32 = 8;

/// Who is to be woken.
#[derive(Debug)]
pub(crate) enum Sleeper {
    Thread(Thread),
    Task(Waker),
}

impl Sleeper {
    pub(crate) fn wake(self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Task(waker) => waker.wake(),
        }
    }
}

/// How a caller sleeps. Nothing but loops is asked of it besides: the accesses are the line's.
pub(crate) trait Caller: Memory {
    fn sleep(&mut self) -> Result<(), Self::Halt>;

    /// Whom to wake.
    fn sleeper(&self) -> Sleeper {
        Sleeper::Thread(thread::current())
    }

    /// Whether that wakes this one.
    fn is(&self, sleeper: &Sleeper) -> bool {
        matches!(sleeper, Sleeper::Thread(thread) if thread.id() == thread::current().id())
    }
}

/// A caller that does not, or for as long as it takes.
pub(crate) struct Patient;

/// A caller that has no more time after that.
pub(crate) struct Until(pub(crate) Instant);

/// A task that does not sleep, but asks to be woken.
pub(crate) struct Polls<'a>(pub(crate) &'a Waker);

macro_rules! loops_only {
    ($caller:ty, $halt:ty) => {
        impl Memory for $caller {
            type Halt = $halt;

            fn choose(&mut self, _: u32) -> Result<u32, $halt> {
                unreachable!("the engine throws no coins")
            }
            fn toss(&mut self, _: u32) -> Result<u32, $halt> {
                unreachable!("the engine throws no coins")
            }
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
        thread::park();
        Ok(())
    }
}

impl Caller for Until {
    fn sleep(&mut self) -> Result<(), Late> {
        let left = self.0.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()).ok_or(Late)?;
        thread::park_timeout(left);
        Ok(())
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

/// Whether it is this one's turn soon: what a thread waits for before it sleeps, with so many before it.
pub(crate) fn soon(others: usize, until: Option<Instant>, is_enabled: impl Fn() -> bool) -> Result<bool, Late> {
    let enabled_after = |pause: fn()| {
        pause();
        is_enabled()
    };
    // Spinning pays where everybody who is before this one is running; else it keeps them from running.
    if others <= cores() && (0..SPINS).any(|_| enabled_after(std::hint::spin_loop)) {
        return Ok(true);
    }
    for _ in 0..YIELDS {
        if enabled_after(thread::yield_now) {
            return Ok(true);
        }
        if until.is_some_and(|until| until <= Instant::now()) {
            return Err(Late);
        }
    }
    Ok(false)
}

/// How many threads of this process can run at once.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| {
        // Not only what this thread may use: it may be bound to a core of its own.
        #[cfg(target_os = "linux")]
        if let Ok(set) = rustix::thread::sched_getaffinity(Some(rustix::process::getpid())) {
            return set.count() as usize;
        }
        thread::available_parallelism().map_or(1, usize::from)
    })
}
