//! Yang and Anderson's tournament: *A fast, scalable mutual exclusion algorithm* (Distributed Computing 9, 1995), from reads
//! and writes alone. The papers here use it as a building block (004 as a four-process lock) and as the bound to beat.
//!
//! Each node of a binary tree is a two-process lock; a process goes in at its leaf and plays every node up to the root.
//! Promises mutual exclusion, starvation freedom and O(log n) remote references in both cost models: all waiting is on
//! `P[level][p]`, which lives with p. No order is promised among those who wait in different parts of the tree.
//!
//! The lines are those of the two-process lock, numbered here as there is no print of it among the papers:
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

use crate::{
    Algorithm, Array, Claims, Exclusion, Fate, Grid, Homes, Layout, Mutant, Primitive, Problem, Property, RegisterKind,
    Registers, Rmr, Setting, Size, Unfit, Value, one_word, plain_local,
};

/// What the rival has told a waiting process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Spin {
    Wait,
    Look,
    Go,
}

plain_local!(Spin);

impl Value for Spin {
    one_word!(|spin| spin as u64, |word| match word {
        0 => Self::Wait,
        1 => Self::Look,
        _ => Self::Go,
    });

    fn magnitude(&self) -> u64 {
        0
    }
}

/// Yang and Anderson's tournament.
#[derive(Debug)]
pub struct YangAnderson {
    levels: usize,
    /// C: who plays at each side of each node
    player: Grid<Option<u32>>,
    /// T: who came last to each node
    last: Array<Option<u32>>,
    /// P: what each process waits for on each level
    spin: Grid<Spin>,
}

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
        mutants: MUTANTS,
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits(Self::NAME, size)?;
        if size.n < 2 {
            return Err(Unfit(format!("{} is a tournament of at least two: try -n 2", Self::NAME)));
        }
        let leaves = size.n.next_power_of_two();
        let levels = leaves.trailing_zeros() as usize;
        Ok(Self {
            levels,
            player: layout.grid("C", leaves, 2, Homes::Nobody, None),
            last: layout.array("T", leaves, Homes::Nobody, None),
            spin: layout.grid("P", levels, size.n, Homes::Column, Spin::Wait),
        })
    }
}

impl YangAnderson {
    /// The node that `p` plays on a level, the root being 1, and its side there.
    #[inline(always)]
    fn seat(&self, p: usize, level: usize) -> (usize, usize) {
        let place = (1 << self.levels) + p;
        (place >> (level + 1), place >> level & 1)
    }

    #[inline(always)]
    fn play<M: Registers>(&self, m: &mut M, p: usize, level: usize) -> Result<(), M::Halt> {
        let (v, side) = self.seat(p, level);
        let me = Some(p as u32);
        let spin = |q| self.spin.at(level, q);
        if !m.drops(1) {
            m.line(1);
            m.write(self.player.at(v, side), me)?;
        }
        m.line(2);
        m.write(self.last.at(v), me)?;
        if !m.drops(3) {
            m.line(3);
            m.write(spin(p), Spin::Wait)?;
        }
        m.line(4);
        let Some(rival) = m.read(self.player.at(v, 1 - side))? else { return Ok(()) };
        let rival = rival as usize;
        m.line(5);
        if !m.test(self.last.at(v), |last| last == me)? {
            return Ok(());
        }
        if !m.drops(6) {
            m.line(6);
            if m.test(spin(rival), |told| told == Spin::Wait)? || m.mutant("always-tells") {
                m.write(spin(rival), Spin::Look)?;
            }
        }
        m.line(7);
        m.wait(spin(p), |told| told >= Spin::Look)?;
        if m.drops(8) {
            return Ok(());
        }
        m.line(8);
        if m.test(self.last.at(v), |last| last == me)? {
            m.wait(spin(p), |told| told == Spin::Go)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn leave<M: Registers>(&self, m: &mut M, p: usize, level: usize) -> Result<(), M::Halt> {
        let (v, side) = self.seat(p, level);
        if !m.drops(10) {
            m.line(10);
            m.write(self.player.at(v, side), None)?;
        }
        m.line(11);
        match m.read(self.last.at(v))? {
            Some(rival) if rival as usize != p && !m.drops(12) => {
                m.line(12);
                m.write(self.spin.at(level, rival as usize), Spin::Go)
            }
            _ => Ok(()),
        }
    }
}

impl<M: Registers> Exclusion<M> for YangAnderson {
    type Request = ();
    type Pass = ();
    type Keep = ();

    fn keep(&self, _: usize) {}

    /// Announcing oneself at the leaf fixes no place among all: the doorway is empty.
    #[inline]
    fn doorway(&self, _: &mut M, _: usize, (): (), (): ()) -> Result<(), M::Halt> {
        Ok(())
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.each(0..self.levels, |m, level| self.play(m, p, level))
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        if m.mutant("leaves-from-the-leaf") {
            return m.each(0..self.levels, |m, level| self.leave(m, p, level));
        }
        m.each((0..self.levels).rev(), |m, level| self.leave(m, p, level))
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
