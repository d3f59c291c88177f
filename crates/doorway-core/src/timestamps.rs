//! Concurrent timestamp systems: who came after whom, without numbers that grow.
//!
//! Zehavi's k-exclusion algorithm stands on one (*An Improved k-Exclusion Algorithm*, section III).
//! Each process has two operations. `Label` makes it the last in line; `Scan` returns the line as
//! it is. What they promise, the initial labels counting as operations that were finished before
//! all others:
//!
//! - **P1** There is a total order on the Label operations that extends the order in real time and
//!   agrees with every line that a Scan returned.
//! - **P2** A Scan never returns a label of p older than p's last one that was finished before the
//!   Scan began.
//!
//! From these follow Properties 1 and 2 and the two statements on consistency of the paper's
//! section III. `docs/timestamps.md` says how all six are tested.
//!
//! There are two: [`Abstract`] does each operation in one step and is there to be explored,
//! [`Bounded`] uses reads and writes alone and is what the paper needs.

mod bounded;
mod label;
mod one_step;

pub use bounded::{Bounded, MUTANTS, Mirrors};
pub use one_step::Abstract;

use crate::{Layout, Local, Memory, Primitive, digits::Digits};

/// What there is to know about a timestamp system before it runs.
pub trait Timestamps: Sized + Sync {
    /// Its name, as on the command line.
    const NAME: &'static str;

    /// The instructions that an algorithm of reads and writes uses which stands on it.
    const PRIMITIVES: &'static [Primitive];

    /// The largest number in a register of its own, for `n` processes.
    const BOUND: fn(usize) -> u64;

    /// What a process remembers of the registers that it alone writes, so as not to read them. It
    /// survives from operation to operation: who takes over the id of another takes over this as
    /// well.
    type Mirrors: Local;

    /// Asks for the registers of a system of `n` processes.
    fn new(layout: &mut Layout, n: usize) -> Self;

    /// What process `p` remembers before its first operation.
    fn mirrors(&self, p: usize) -> Self::Mirrors;
}

/// A timestamp system as code.
pub trait LabelScan<M: Memory>: Timestamps {
    /// Makes `p` the last in line.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn label(&self, m: &mut M, p: usize, mirrors: Self::Mirrors) -> Result<Self::Mirrors, M::Halt>;

    /// The line: digit `i` is how many are before process `i`.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn scan(
        &self,
        m: &mut M,
        p: usize,
        mirrors: Self::Mirrors,
    ) -> Result<(Digits, Self::Mirrors), M::Halt>;
}
