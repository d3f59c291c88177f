//! Doorway decides who may go in, how many at once, and in what order.
//!
//! - [`Mutex`]: a value that one thread or task at a time has for itself, first come, first served.
//! - [`Semaphore`]: k slots for threads and tasks, first come, first served.
//! - [`GroupLock`]: a value that any number share as long as all ask for the same session;
//!   [`KeyedGroupLock`]: the same with sessions that have names.
//! - [`barging`]: both where newcomers may overtake, by name and never by default.
//! - [`shared`]: the same by name, for unrelated processes on one machine, and a group lock. On
//!   Linux.
//! - [`papers`] runs any of the published algorithms of [`doorway_core`] as a lock for a fixed set
//!   of participants.

#![deny(unsafe_code)]

pub mod barging;
mod caller;
pub mod group;
mod hall;
pub mod keyed;
pub mod mutex;
pub mod papers;
pub mod place;
mod queue;
mod raw;
pub mod semaphore;
#[cfg(target_os = "linux")]
pub mod shared;
mod sync;

pub use group::GroupLock;
pub use keyed::KeyedGroupLock;
pub use mutex::Mutex;
pub use raw::{RawMutex, RawRwLock};
pub use semaphore::Semaphore;

/// The example of the page, kept true.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/papers-as-locks.md")]
struct PapersAsLocks;

/// The example of the page, kept true.
#[cfg(all(doctest, target_os = "linux"))]
#[doc = include_str!("../../../docs/named-locks.md")]
struct NamedLocks;

/// The examples of the README, kept true.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The example of the page, kept true.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/algorithms/README.md")]
struct Algorithms;
