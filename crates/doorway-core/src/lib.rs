//! The published algorithms behind Doorway: mutual exclusion, k-exclusion and group mutual
//! exclusion.
//!
//! Each algorithm is written once, as plain generic Rust that reads like the paper's pseudocode,
//! and runs on any memory that offers the primitives it names:
//!
//! - on [`native`] atomics, as a lock;
//! - in `doorway-lab`'s simulator, which counts remote memory references;
//! - in `doorway-lab`'s checker, which explores every interleaving.
//!
//! An algorithm is an [`Exclusion`]: a doorway, a waiting section and an exit section. Its
//! [`Claims`] say what holds for it. [`for_each_algorithm!`] lists all algorithms.
//!
//! This crate does not park threads, does not hand out RAII guards and does not detect dead
//! processes. It is the base for code that does.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod algorithms;
mod claims;
pub mod digits;
pub mod engines;
mod exclusion;
pub mod layout;
mod memory;
pub mod native;

mod registry;
mod session;
mod set;
mod ticket;
pub mod timestamps;
mod value;

pub use claims::{
    ANY_NUMBER, Claims, Fate, Formula, Invariant, Mutant, Primitive, Problem, Property,
    RegisterKind, Rmr, Setting,
};
pub use exclusion::{Algorithm, Exclusion, Request, Size, Unfit, others};
pub use layout::{Array, Grid, Home, Homes, Layout, Register};
pub use memory::{Coins, CompareAndSwap, FetchAndAdd, Memory, Registers, Swap, Transactions};
pub use session::Session;
pub use set::Set;
pub use ticket::{Extended, Ticket, raw};
pub use value::{Local, Relabel, Value};
