//! Doorway decides who may go in, how many at once, and in what order.
//!
//! - [`Mutex`]: a value that one thread or task at a time has for itself, first come, first served.
//! - [`Semaphore`]: k slots for threads and tasks, first come, first served.
//! - [`shared`]: the same by name, for unrelated processes on one machine, and a group lock. On Linux.
//! - [`papers`] runs any of the published algorithms of [`doorway_core`] as a lock for a fixed set of participants.

#![deny(unsafe_code)]

pub mod mutex;
pub mod papers;
mod queue;
mod raw;
pub mod semaphore;
#[cfg(target_os = "linux")]
pub mod shared;

pub use mutex::Mutex;
pub use raw::RawMutex;
pub use semaphore::Semaphore;

/// The example of the page, kept true.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/papers-as-locks.md")]
struct PapersAsLocks;

/// The examples of the README, kept true.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
