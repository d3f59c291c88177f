//! The answers of the checker.

use std::time::Duration;

use doorway_core::Property;

use super::checkpoint::CheckpointError;
use crate::{fault::Fault, trace::Trace};

/// The verdict on one property.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The property.
    pub property: Property,
    /// Whether it holds; `None` if the search could not decide.
    pub holds: Option<bool>,
    /// How far the property was explored, in words.
    pub scope: String,
    /// A run that violates it.
    pub trace: Option<Trace>,
}

/// The results of a check.
#[derive(Clone, Debug)]
pub struct Report {
    /// Whether every reachable state was explored.
    pub complete: bool,
    /// The number of states that were found.
    pub states: u64,
    /// The number of steps between states, failed waits included.
    pub transitions: u64,
    /// The number of steps to the farthest state.
    pub depth: u64,
    /// The time that the check took.
    pub elapsed: Duration,
    /// The time that the first search took, whose states and steps `states` and `transitions`
    /// count.
    pub search: Duration,
    /// The stages, in the order in which they ended, each with its time. Some stages run at the
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
    /// The bits that distinguish the values of the registers, one register after another, unless
    /// tickets were relabelled.
    pub bits: Option<u64>,
    /// The attempts per passage that were followed; `None` for any number, or if there are no
    /// attempts.
    pub retries: Option<u32>,
    /// The local states of all processes together, before and after bisimilar ones were merged;
    /// `None` if merging was not tried. Both numbers count every state that could be reached if a
    /// register could hold any of its values at any time.
    pub locals: Option<(usize, usize)>,
    /// The verdicts.
    pub verdicts: Vec<Verdict>,
    /// Whether more can be decided: the search was stopped, or something could not be decided from
    /// it.
    pub resumable: bool,
    /// The message of the system, if neither memory nor disk could hold more states.
    pub no_room: Option<String>,
}

/// The reason why nothing was decided.
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
