//! Named locks for unrelated processes on one machine: [`Semaphore`], [`Mutex`] and [`GroupLock`].
//! No daemon: a lock is a file in shared memory.
//!
//! ```
//! # let place = tempfile::tempdir()?;
//! # let locks = doorway::shared::Directory::at(place.path())?;
//! let gpus = locks.semaphore("gpu", 2)?;  // or `shared::Semaphore::open("gpu", 2)`, in the directory of the user
//! let place = gpus.enter()?;              // the doorway: the place in the queue is fixed
//! let permit = place.wait()?;             // or `place.wait_timeout(…)`, which keeps the place
//! assert!(permit.slot() < 2);             // no other holder has this number
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//!
//! - There are never more holders than slots, and in a group lock all holders are of one session.
//! - **FIFO** across processes: if one `enter` returns before another begins, it is granted first.
//!   In a group lock, too: a process does not join the holders of its session ahead of a waiter.
//! - **A process that is killed at any instruction loses nothing but itself**, whether it enters,
//!   waits, holds or releases. The kernel tells the waiter at the front of the queue, which
//!   reclaims the slot within a few milliseconds. Nothing has to be started for it. The next holder
//!   of the slot is told: [`Permit::recovered`].
//! - A place or a permit belongs to the process that took it. A process that is forked does not
//!   inherit it: what it does to its copy has no effect. It may enter for itself. How a slot is
//!   handed to a child on purpose: [`Permit::spawn`], [`Permit::start`], [`Permit::hand_over`].
//! - Where no other process is, acquiring and releasing take one compare-and-swap each and no
//!   system call. Where another process is and there is a slot, they take a few dozen instructions.
//! - A waiter sleeps, and costs nothing. After 50 ms it starts a thread that waits for the end of
//!   other processes in its stead.
//!
//! The engine is [`doorway_core::engines::named_lock`], which the checker explores with processes
//! that are killed between any two steps: the checker runs the same functions as these locks.
//!
//! # What is not promised
//!
//! - A process that is *stopped* (SIGSTOP, a frozen container, a debugger) is alive: it keeps its
//!   slot or its place. If it is stopped in the few dozen instructions in which it has the table
//!   lock, no other process can enter or release until it goes on.
//! - A process counts as dead when its PID, start time and boot ID no longer match a live process:
//!   the table is in the module `liveness` of the source. In another PID namespace, as that of a
//!   container, it counts as dead when the kernel has unlocked its byte of the file. A command that
//!   closes its descriptor for that is not covered if its parent is killed in the same instant.
//! - A process that is always too late for the table lock does not even get a place in the queue.
//!   With a place no process starves.
//! - A process that may write the file can do harm: break the exclusion, or, by truncating the
//!   file, have its users killed (SIGBUS). It cannot make them touch other memory. Files have mode
//!   0600.
//! - `exit` without dropping permits is a death as far as [`Permit::recovered`] is concerned.
//!
//! # Where things are
//!
//! An acquire goes through `acquire` (the doorway), `entries` (an entry of the process table),
//! `waiting` (the sleep, what ends it, and the watch for deaths) and ends in `place` (the permit).
//! `hand_over` gives a slot to a child, `management` changes the settings, `status` shows the lock,
//! `liveness` decides which process is dead, `file` is the file, and `memory` is what the engine
//! sees of it.

mod acquire;
mod directory;
mod entries;
mod error;
mod file;
#[expect(unsafe_code, reason = "between fork and exec")]
mod hand_over;
mod liveness;
mod management;
#[expect(unsafe_code, reason = "mapped memory as atomic words")]
mod map;
mod memory;
mod place;
mod sessions;
mod status;
#[expect(unsafe_code, reason = "a child in the memory of its parent")]
mod vfork;
mod waiting;

use std::{fmt, ops::Deref};

pub use self::{
    directory::Directory,
    entries::Lock,
    error::Error,
    hand_over::HandOver,
    place::{NotYet, Permit, Place},
    status::{Holder, Status, Waiter},
    vfork::let_programs_ignore_sigpipe,
};

/// The kind of a named lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u64)]
pub enum Kind {
    /// A [`Semaphore`].
    Semaphore = 1,
    /// A [`Mutex`].
    Mutex = 2,
    /// A [`GroupLock`].
    GroupLock = 3,
}

impl Kind {
    fn from_word(word: u64) -> Option<Self> {
        [Self::Semaphore, Self::Mutex, Self::GroupLock]
            .into_iter()
            .find(|&kind| kind as u64 == word)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Semaphore => "semaphore",
            Self::Mutex => "mutex",
            Self::GroupLock => "group lock",
        })
    }
}

/// A named semaphore: k slots for processes, first come, first served.
#[derive(Debug)]
pub struct Semaphore(Lock);

/// A named mutex: one process at a time, first come, first served.
#[derive(Debug)]
pub struct Mutex(Lock);

/// A named group lock: processes of one session at a time, first come, first served.
#[derive(Debug)]
pub struct GroupLock(Lock);

macro_rules! is_a_lock {
    ($($type:ident),*) => {$(
        impl $type {
            pub(crate) fn new(lock: Lock) -> Self {
                Self(lock)
            }
        }

        impl Deref for $type {
            type Target = Lock;

            #[inline(always)]
            fn deref(&self) -> &Lock {
                &self.0
            }
        }
    )*};
}

is_a_lock!(Semaphore, Mutex, GroupLock);

macro_rules! knows_no_sessions {
    ($($type:ident),*) => {$(
        impl $type {
            /// The doorway: takes a place in the queue.
            ///
            /// # Errors
            /// When the table is full, or the file is lost or damaged.
            #[inline(always)]
            pub fn enter(&self) -> Result<Place<'_>, Error> {
                Ok(Place::new(&self.0, self.0.position()?))
            }

            /// Waits for a slot: `enter()?.wait()`.
            ///
            /// # Errors
            /// When the table is full, or the file is lost or damaged.
            #[inline(always)]
            pub fn acquire(&self) -> Result<Permit<'_>, Error> {
                Permit::of(&self.0, self.0.position()?)
            }

            /// Acquires a slot if one is free and no process waits.
            ///
            /// # Errors
            /// When the table is full, or the file is lost or damaged.
            pub fn try_acquire(&self) -> Result<Option<Permit<'_>>, Error> {
                self.0.try_enter(None)?.map(Place::wait).transpose()
            }
        }
    )*};
}

knows_no_sessions!(Semaphore, Mutex);

impl Semaphore {
    /// Opens the semaphore of that name in the [directory of the user](Directory::of_user), or
    /// creates it.
    ///
    /// # Errors
    /// When something else has that name, or the lock cannot be created.
    pub fn open(name: &str, slots: usize) -> Result<Self, Error> {
        Directory::of_user()?.semaphore(name, slots)
    }
}

impl Mutex {
    /// Opens the mutex of that name in the [directory of the user](Directory::of_user), or creates
    /// it.
    ///
    /// # Errors
    /// When something else has that name, or the lock cannot be created.
    pub fn open(name: &str) -> Result<Self, Error> {
        Directory::of_user()?.mutex(name)
    }
}

impl GroupLock {
    /// Opens the group lock of that name in the [directory of the user](Directory::of_user), or
    /// creates it.
    ///
    /// # Errors
    /// When something else has that name, or the lock cannot be created.
    pub fn open(name: &str, slots: Option<usize>) -> Result<Self, Error> {
        Directory::of_user()?.group_lock(name, slots)
    }

    /// The doorway: takes a place in the queue for this session.
    ///
    /// # Errors
    /// When the table is full, the session's name does not fit, or the file is lost or damaged.
    #[inline(always)]
    pub fn enter(&self, session: &str) -> Result<Place<'_>, Error> {
        Ok(Place::new(&self.0, self.0.position_for(session)?))
    }

    /// Waits until this process may hold the session: `enter(session)?.wait()`.
    ///
    /// # Errors
    /// When the table is full, the session's name does not fit, or the file is lost or damaged.
    #[inline(always)]
    pub fn acquire(&self, session: &str) -> Result<Permit<'_>, Error> {
        Permit::of(&self.0, self.0.position_for(session)?)
    }

    /// Acquires a slot if the session's processes may hold one and no process waits.
    ///
    /// # Errors
    /// When the table is full, the session's name does not fit, or the file is lost or damaged.
    pub fn try_acquire(&self, session: &str) -> Result<Option<Permit<'_>>, Error> {
        self.0.try_enter(Some(session))?.map(Place::wait).transpose()
    }
}
