//! A timestamp system with one step per operation: the order of processes in one variable.
//!
//! It is the specification as code. The algorithm of Zehavi 2014 is explored on it, without the
//! many steps of a construction. The system also works natively, by compare-and-swap, as far as an
//! order of n ids fits in a double word: up to n = 25.

use super::{LabelScan, Timestamps};
use crate::{
    Home, Layout, Primitive, Register, Transactions,
    digits::{Digits, Format},
};

/// Label and Scan in one step each.
#[derive(Debug)]
pub struct Abstract {
    /// The processes in the order of their last Labels.
    line: Register<Digits>,
}

impl Timestamps for Abstract {
    const NAME: &'static str = "abstract";
    const PRIMITIVES: &'static [Primitive] = &[Primitive::ReadWrite, Primitive::Transaction];
    const BOUND: fn(usize) -> u64 = |n| n as u64 - 1;

    type Mirrors = ();

    fn new(layout: &mut Layout, n: usize) -> Self {
        let format = Format::up_to(n - 1, n);
        let mut line = Digits::new(format, 0);
        (0..n).for_each(|p| line.set(p, p as u32));
        Self { line: layout.formatted("Line", Home::Nobody, line, format) }
    }

    fn mirrors(&self, _: usize) {}
}

impl<M: Transactions> LabelScan<M> for Abstract {
    #[inline]
    fn label(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.transact(self.line, |line| (moved_to_the_end(&line, p), ()))
    }

    #[inline]
    fn scan(&self, m: &mut M, _: usize, (): ()) -> Result<(Digits, ()), M::Halt> {
        let ranks = m.transact(self.line, |line| {
            let ranks = inverse(&line);
            (line, ranks)
        })?;
        Ok((ranks, ()))
    }
}

fn moved_to_the_end(line: &Digits, p: usize) -> Digits {
    let mut moved = line.clone();
    let others = line.iter().filter(|&i| i as usize != p);
    others.chain([p as u32]).enumerate().for_each(|(place, i)| moved.set(place, i));
    moved
}

/// Returns the place of each process, from the process at each place.
fn inverse(line: &Digits) -> Digits {
    let mut ranks = line.clone();
    line.iter().enumerate().for_each(|(place, i)| ranks.set(i as usize, place as u32));
    ranks
}
