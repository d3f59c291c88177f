//! Doorway's locks and their peers, measured side by side.
//!
//! A lock describes itself in a few lines, as [`lock`] asks; a line in `contender` gives it every
//! bench of its kind. In each round every lock runs once, and what counts is the ratio to a
//! reference in the same round: machines are noisy, and the noise is the same for both. Each
//! measurement goes through stages, and all processes compete in all of them: a warm-up; a time in
//! which passages are counted and nothing else is done; a time in which passages are stamped, for
//! the waits and for the judge of order ([`judge`]).
//!
//! ```
//! use doorway_bench::{GROUPS, Plan, Watch};
//!
//! let plan = Plan { rounds: 1, seconds: 0.001, quick: true, threads: Some(vec![2]), locks: vec!["std".into()] };
//! let turns = GROUPS.iter().find(|group| group.name == "turns").expect("it is there");
//! let bench = &turns.benches(&plan)[0];
//! let rows = bench.run(&plan, &Watch::default());
//! assert_eq!(bench.references[0], "parking_lot FairMutex");
//! assert!(rows.iter().any(|row| row.lock == "std Mutex" && row.ratios.len() == bench.references.len()));
//! ```

#![forbid(unsafe_code)]

mod alone;
mod contender;
mod crowd;
mod group;
mod histogram;
pub mod lock;
mod order;
mod ours;
mod peers;
mod pin;
mod run;
mod tasks;
#[cfg(test)]
mod tests;
mod work;

pub use contender::Contender;
pub use group::{Bench, GROUPS, Group, Plan};
pub use histogram::Histogram;
pub use order::{Stamps, Verdict, judge};
pub use run::{Row, Watch};
pub use work::{How, Setting};
