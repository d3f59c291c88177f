//! Doorway's judge: runs the algorithms of `doorway-core` on other memories.
//!
//! - [`check`](check()) explores every interleaving and decides properties, with counterexamples
//!   that can be replayed;
//! - [`promela`](promela()) writes down the learned automata, for SPIN to explore;
//! - [`simulate`](simulate::simulate) makes long runs under a scheduler and counts remote memory
//!   references;
//! - [`rmr`] does so for increasing n and says how the references grow; [`most`](most()) finds
//!   their maximum over all runs;
//! - [`machine`] runs one schedule, step by step;
//! - [`trace`] keeps schedules in files, and [`viewer`] shows them.
//!
//! An algorithm gets here through the registry of `doorway-core`, as an [`Entrant`]. No algorithm
//! is written twice: the lab explores the code that ships.

#![deny(unsafe_code)]

mod check;
pub mod cost;
mod entrant;
mod fault;
mod item;
mod judge;
pub mod machine;
pub mod monitor;
mod random;
mod replay;
pub mod rmr;
pub mod schedule;
pub mod simulate;
mod subject;
pub mod trace;
pub mod viewer;

pub use check::{
    Checkpoint, CheckpointError, Comparison, Difference, Incomparable, Joint, Limits, Maxima, Most,
    Options, Progress, Report, Unchecked, Unmodelled, Verdict, attempts, available_memory, check,
    check_kept, equivalent, kills, most, promela,
};
pub use entrant::Entrant;
pub use fault::Fault;
pub use random::Random;
pub use replay::{Access, Kind, Odds, Replay, Stop};
pub use subject::{Choice, LocalState, Move, Moves, Region, Stepped, Subject, build};
