//! The algorithms, by problem. Each has a file of its own, with the paper's line numbers beside the
//! code.

pub mod group;
pub mod k_exclusion;
pub mod mutex;
