//! Doorway decides who may go in, how many at once, and in what order.
//!
//! So far there is one thing here: [`papers`], which runs any of the published algorithms of [`doorway_core`] as a lock for
//! a fixed set of participants. Locks that need no such set are planned beside it.

#![deny(unsafe_code)]

pub mod papers;

/// The example of the page, kept true.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/papers-as-locks.md")]
struct PapersAsLocks;
