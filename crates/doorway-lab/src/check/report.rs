//! What the checker answers.

use std::time::Duration;

use doorway_core::Property;

use super::checkpoint::CheckpointError;
use crate::{fault::Fault, trace::Trace};

/// What was found out about one property.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The property.
    pub property: Property,
    /// Whether it holds; `None` if the search could not decide.
    pub holds: Option<bool>,
    /// How far that was explored, in words.
    pub scope: String,
    /// A run that violates it.
    pub trace: Option<Trace>,
}

/// What was found out.
#[derive(Clone, Debug)]
pub struct Report {
    /// Whether every reachable state was explored.
    pub complete: bool,
    /// How many states were found.
    pub states: u64,
    /// How many steps lead from one to another, failed waits included.
    pub transitions: u64,
    /// The number of steps to the farthest state.
    pub depth: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// How long the first search took: what `states` and `transitions` count.
    pub search: Duration,
    /// The stages, in the order in which they ended, each with how long it took. Some run at the
    /// same time.
    pub timings: Vec<(String, Duration)>,
    /// Bytes per stored state, tables included.
    pub bytes_per_state: usize,
    /// Whether tickets were relabelled.
    pub relabelled: bool,
    /// The distinct values of the whole shared memory.
    pub shared_values: usize,
    /// The largest number in a register, unless tickets were relabelled.
    pub max_register: Option<u64>,
    /// The bits that tell the values apart which the registers took, one register after the other,
    /// unless tickets were relabelled.
    pub bits: Option<u64>,
    /// The attempts per passage that were followed; `None` for any number, or if there are no
    /// attempts.
    pub retries: Option<u32>,
    /// The local states of all processes together before bisimilar ones were merged, and after;
    /// `None` if none were looked for. Both count every state that could be reached if a register
    /// could hold any of its values at any time.
    pub locals: Option<(usize, usize)>,
    /// What was decided.
    pub verdicts: Vec<Verdict>,
    /// Whether there is more to find out: the search was stopped, or something could not be decided
    /// from it.
    pub resumable: bool,
    /// What the system said, if neither memory nor disk could hold more states.
    pub no_room: Option<String>,
}

/// Why nothing was decided.
#[derive(Debug, thiserror::Error)]
pub enum Unchecked {
    /// The algorithm cannot be run in the lab.
    #[error("{0}")]
    Fault(Fault),
    /// The search that was kept cannot be used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

impl From<Fault> for Unchecked {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
