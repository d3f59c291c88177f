//! Fair locks for threads, tasks and processes: first come, first served.
//!
//! - [`Mutex`]: a value for one thread or task at a time, first come, first served.
//! - [`Semaphore`]: k slots for threads and tasks, first come, first served.
//! - [`GroupLock`]: a value that any number of threads and tasks share as long as all ask for the
//!   same session; [`KeyedGroupLock`]: the same with named sessions.
//! - [`barging`]: a mutex and a semaphore where newcomers may overtake waiters; never the default.
//! - [`shared`]: mutex, semaphore and group lock by name, for unrelated processes on one machine.
//!   Linux only.
//! - [`papers`] runs any of the published algorithms of [`doorway_core`] as a lock for a fixed set
//!   of processes.

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

/// Compiles and runs the example of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/papers-as-locks.md")]
struct PapersAsLocks;

/// Compiles and runs the example of the page.
#[cfg(all(doctest, target_os = "linux"))]
#[doc = include_str!("../../../docs/named-locks.md")]
struct NamedLocks;

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles and runs the example of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/algorithms/README.md")]
struct Algorithms;
