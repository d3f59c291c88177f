//! Concurrent timestamp systems: they order processes without numbers that grow.
//!
//! The k-exclusion algorithm of Zehavi 2014 (*An Improved k-Exclusion Algorithm*, section III) runs
//! on such a system. Each process has two operations. `Label` makes the process the last in the
//! order; `Scan` returns the current order. A system promises two properties, where the initial
//! labels count as Label operations that finished before all others:
//!
//! - **P1** There is a total order on the Label operations. It extends their real-time order and
//!   agrees with every order that a Scan returned.
//! - **P2** A Scan never returns a label of p that is older than p's last label that was finished
//!   before the Scan began.
//!
//! P1 and P2 imply Properties 1 and 2 and the two statements on consistency of the paper's section
//! III. `docs/timestamps.md` says how all six are tested.
//!
//! There are two systems. [`Abstract`] does each operation in one step and exists to be explored.
//! [`Bounded`] uses reads and writes alone, which is what the paper needs.

mod bounded;
mod label;
mod one_step;

pub use bounded::{Bounded, MUTANTS, Mirrors};
pub use one_step::Abstract;

use crate::{Layout, Local, Memory, Primitive, digits::Digits};

/// A timestamp system: its name, its primitives, its bound and its registers.
pub trait Timestamps: Sized + Sync {
    /// Its name, as on the command line.
    const NAME: &'static str;

    /// The instructions that a read-write algorithm uses when it runs on this system.
    const PRIMITIVES: &'static [Primitive];

    /// The largest number in a register of this system, for `n` processes.
    const BOUND: fn(usize) -> u64;

    /// What a process remembers of the registers that it alone writes, so as not to read them.
    ///
    /// The mirrors survive from operation to operation. A process that takes over the id of another
    /// process takes over its mirrors as well.
    type Mirrors: Local;

    /// Asks `layout` for the registers of a system of `n` processes.
    fn new(layout: &mut Layout, n: usize) -> Self;

    /// Returns what process `p` remembers before its first operation.
    fn mirrors(&self, p: usize) -> Self::Mirrors;
}

/// The operations of a timestamp system on the memory `M`.
pub trait LabelScan<M: Memory>: Timestamps {
    /// Makes `p` the last in the order.
    ///
    /// # Errors
    /// When the memory halts the process.
    fn label(&self, m: &mut M, p: usize, mirrors: Self::Mirrors) -> Result<Self::Mirrors, M::Halt>;

    /// Returns the order: digit `i` is the number of processes before process `i`.
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
