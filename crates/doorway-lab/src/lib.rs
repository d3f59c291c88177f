//! Doorway's judge: runs the algorithms of `doorway-core` on other memories.
//!
//! - [`check`](check()) explores every interleaving and decides properties, with counterexamples that can be replayed;
//! - [`machine`] runs one schedule, step by step;
//! - [`trace`] keeps schedules in files.
//!
//! An algorithm gets here through the registry of `doorway-core`, as an [`Entrant`]. Nothing about it is written twice:
//! what is explored is the code that ships.

#![forbid(unsafe_code)]

mod check;
mod item;
pub mod machine;
pub mod monitor;
mod replay;
mod subject;
pub mod trace;

pub use check::{Options, Progress, Report, Verdict, check};
pub use replay::{Access, Fault, Kind, Replay, Stop};
pub use subject::{Choice, Entrant, LocalState, Move, Region, Stepped, Subject};
