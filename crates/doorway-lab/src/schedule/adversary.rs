//! Adversaries: schedulers that are defined by what they may know.
//!
//! There are three kinds, from the weakest to the strongest. Each is a trait of its own, whose
//! argument is all that the strategy learns. A strategy that used more would not compile.
//!
//! | kind | sees | trait |
//! |---|---|---|
//! | oblivious | nothing: its schedule is fixed before the run | [`Oblivious`] |
//! | locality-aware (Giakkoupis and Woelfel 2014, section II) | of each past and each pending step whether it reads or writes and whether it is local; when a `lock()` or `release()` call responds | [`LocalityAware`] |
//! | strong adaptive | everything: registers, local states, outcomes of coins | [`StrongAdaptive`] |
//!
//! ```compile_fail,E0616
//! use doorway_lab::schedule::adversary::Locality;
//! fn peeks(view: &Locality<'_>) -> usize {
//!     view.view.machine.registers() // not for this one
//! }
//! ```
//!
//! ```compile_fail,E0050
//! use doorway_lab::schedule::adversary::{Locality, Oblivious};
//! struct Peeks;
//! impl Oblivious for Peeks {
//!     fn turn(&mut self, view: &Locality<'_>) -> usize {
//!         view.processes()
//!     }
//! }
//! ```

mod backpack;
mod groups;
mod locality;
mod oblivious;
mod strong;

pub use self::{
    backpack::{Backpack, EmptyBackpack},
    locality::{Glimpse, Hold, Locality, LocalityAware, Past, Response, Type},
    oblivious::{Bursts, Oblivious, Skewed},
    strong::{StrongAdaptive, Victim},
};
use self::{locality::Restricted, oblivious::Blind, strong::Free};
use super::{ScheduleError, Scheduler, Uniform, View};
use crate::random::Random;

/// The names of all adversaries. A name without a strategy picks any process, all with the same
/// probability.
pub const ADVERSARIES: [&str; 10] = [
    "oblivious",
    "oblivious:bursts",
    "oblivious:skewed",
    "locality-aware",
    "locality-aware:hold-writes",
    "locality-aware:hold-release",
    "locality-aware:backpack",
    "strong-adaptive",
    "strong-adaptive:victim",
    "strong-adaptive:backpack",
];

/// Returns the adversary of that name among `n` processes.
pub(super) fn named(name: &str, n: usize, random: Random) -> Option<Box<dyn Scheduler>> {
    Some(match name {
        "oblivious" => Box::new(Blind(oblivious::Anybody::new(n, random))),
        "oblivious:bursts" => Box::new(Blind(Bursts::new(n, random))),
        "oblivious:skewed" => Box::new(Blind(Skewed::new(n, random))),
        "locality-aware" => Box::new(Restricted(locality::Anybody(random))),
        "locality-aware:hold-writes" => Box::new(Restricted(Hold::writes(n, random))),
        "locality-aware:hold-release" => Box::new(Restricted(Hold::release(n, random))),
        "locality-aware:backpack" => Box::new(Restricted(Backpack::new(n, random))),
        // This adversary sees everything and uses none of it.
        "strong-adaptive" => Box::new(Uniform(random)),
        "strong-adaptive:victim" => Box::new(Free(Victim::new(n, random))),
        "strong-adaptive:backpack" => Box::new(Free(EmptyBackpack::new(random))),
        _ => return None,
    })
}
