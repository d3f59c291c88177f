//! Yang and Anderson's tournament: *A fast, scalable mutual exclusion algorithm* (Distributed
//! Computing 9, 1995), from reads and writes alone. The papers use it as a building block
//! (Giakkoupis and Woelfel 2014 as a four-process lock) and as the bound to beat.
//!
//! Each node of a binary tree is a two-process lock. A process starts at its leaf and plays every
//! node up to the root. Promises mutual exclusion, starvation freedom and O(log n) remote
//! references in both cost models: all waiting is on `P[level][p]`, which lives with p. Promises no
//! order among processes that wait in different parts of the tree.
//!
//! The lines are those of the two-process lock. The five papers do not print it, so its lines are
//! numbered here. The code is in `tournament.rs`:
//!
//! ```text
//!  1  C[v][side] := p
//!  2  T[v] := p
//!  3  P[p] := 0
//!  4  rival := C[v][1 - side]
//!  5  if rival ≠ ⊥ and T[v] = p then
//!  6    if P[rival] = 0 then P[rival] := 1
//!  7    await P[p] ≥ 1
//!  8    if T[v] = p then await P[p] = 2
//!  9  Critical section
//! 10  C[v][side] := ⊥
//! 11  rival := T[v]
//! 12  if rival ≠ p then P[rival] := 2
//! ```

use alloc::format;

use super::tournament::{Names, Player, Tournament};
use crate::{
    Algorithm, Claims, Exclusion, Fate, Layout, Mutant, Primitive, Problem, Property, RegisterKind,
    Registers, Rmr, Setting, Size, Unfit,
};

/// Yang and Anderson's tournament.
#[derive(Debug)]
pub struct YangAnderson(Tournament<true>);

impl Algorithm for YangAnderson {
    const NAME: &'static str = "yang-anderson";

    const CLAIMS: Claims = Claims {
        problem: Problem::Mutex,
        paper: "Yang, Anderson 1995; the four-process lock of 004 Giakkoupis, Woelfel 2014",
        figure: "tournament of two-process locks",
        primitives: &[Primitive::ReadWrite],
        properties: &[
            Property::MutualExclusion,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
            Property::BoundedExit,
            Property::BoundedRegisters,
        ],
        refuted: &[(Property::Fcfs, Setting::slots(2, 1))],
        invariants: &[],
        registers: RegisterKind::Atomic,
        crashes: |_| 0,
        bound: Some(|size| size.n as u64),
        gap: |_| 2,
        values: &[],
        abandons: false,
        rmr: Rmr { cc: "Θ(log n)", dsm: "Θ(log n)" },
        min_n: 2,
        max_n: None,
        mutants: MUTANTS,
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits(Self::NAME, size)?;
        if size.n < 2 {
            return Err(Unfit(format!("{} is a tournament of at least two: try -n 2", Self::NAME)));
        }
        let names = Names { player: "C", last: "T", spin: "P" };
        Ok(Self(Tournament::new(layout, &names, size.n, size.n)))
    }
}

impl<M: Registers> Exclusion<M> for YangAnderson {
    type Request = ();
    type Pass = ();
    type Keep = ();

    fn keep(&self, _: usize) {}

    /// Does nothing: an announcement at the leaf fixes no place among all processes.
    #[inline]
    fn doorway(&self, _: &mut M, _: usize, (): (), (): ()) -> Result<(), M::Halt> {
        Ok(())
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        self.0.enter(m, Player { leaf: p, p })
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        self.0.leave(m, Player { leaf: p, p })
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "without-line-1",
        change: "nobody announces itself",
        fate: Fate::breaks(Property::MutualExclusion, 2),
    },
    Mutant {
        name: "without-line-3",
        change: "what was told in an earlier passage is believed",
        fate: Fate::breaks(Property::MutualExclusion, 2),
    },
    Mutant {
        name: "without-line-6",
        change: "the rival is not told to look again",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "without-line-8",
        change: "being told to look counts as being told to go",
        fate: Fate::breaks(Property::MutualExclusion, 2),
    },
    Mutant {
        name: "without-line-10",
        change: "nobody takes its name back",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "without-line-12",
        change: "the one who waits is not told to go",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "leaves-from-the-leaf",
        change: "the nodes are left in the order in which they were won",
        fate: Fate::breaks(Property::MutualExclusion, 3),
    },
];
