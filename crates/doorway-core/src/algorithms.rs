//! The published algorithms, by problem: one file each, with the paper's line numbers beside the
//! code.

pub mod group;
pub mod k_exclusion;
pub mod mutex;
