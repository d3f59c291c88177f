//! The queue lock of Mellor-Crummey and Scott: *Algorithms for scalable synchronization on
//! shared-memory multiprocessors* (ACM Transactions on Computer Systems 9, 1991), from swap and
//! compare-and-swap. Giakkoupis and Woelfel 2014 name it as an example of what strong primitives
//! can do: a constant number of remote references, in both cost models.
//!
//! Promises mutual exclusion, FCFS (the doorway ends with the swap) and starvation freedom. All
//! waiting is on `Locked[p]` and `Next[p]`, which live with p. The exit section also waits, for a
//! successor that has done its swap but has not written `Next[p]` yet. So there is no bounded exit.
//!
//! The five papers do not print this lock, so its lines are numbered here. Each process has one
//! node, which has the name of the process:
//!
//! ```text
//!  1  Next[p] := ⊥
//!  2  before := swap(L, p)
//!  3  if before ≠ ⊥ then
//!  4    Locked[p] := true
//!  5    Next[before] := p
//!  6    await ¬Locked[p]
//!  7  Critical section
//!  8  if Next[p] = ⊥ then
//!  9    if CAS(L, p, ⊥) = p then return
//! 10    await Next[p] ≠ ⊥
//! 11  Locked[Next[p]] := false
//! ```

use core::ops::ControlFlow::{Break, Continue};

use crate::{
    Algorithm, Array, Claims, CompareAndSwap, Exclusion, Fate, Home, Homes, Layout, Mutant,
    Primitive, Problem, Property, Register, RegisterKind, Rmr, Setting, Size, Swap, Unfit,
};

/// The queue lock of Mellor-Crummey and Scott.
#[derive(Debug)]
pub struct Mcs {
    /// L: the last process in the queue
    last: Register<Option<u32>>,
    next: Array<Option<u32>>,
    locked: Array<bool>,
}

impl Algorithm for Mcs {
    const NAME: &'static str = "mcs";

    const CLAIMS: Claims = Claims {
        problem: Problem::Mutex,
        paper: "Mellor-Crummey, Scott 1991; the lock by strong primitives of 004 Giakkoupis, Woelfel 2014",
        figure: "list-based queue lock",
        primitives: &[Primitive::ReadWrite, Primitive::Swap, Primitive::CompareAndSwap],
        properties: &[
            Property::MutualExclusion,
            Property::Fcfs,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
            Property::BoundedRegisters,
        ],
        refuted: &[(Property::BoundedExit, Setting::slots(2, 1))],
        registers: RegisterKind::Atomic,
        crashes: |_| 0,
        bound: Some(|size| size.n as u64),
        gap: |_| 2,
        values: &[],
        invariants: &[],
        abandons: false,
        rmr: Rmr { cc: "O(1)", dsm: "O(1)" },
        min_n: 1,
        max_n: None,
        mutants: MUTANTS,
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits(Self::NAME, size)?;
        Ok(Self {
            last: layout.register("L", Home::Nobody, None),
            next: layout.array("Next", size.n, Homes::Column, None),
            locked: layout.array("Locked", size.n, Homes::Column, false),
        })
    }
}

impl<M: CompareAndSwap + Swap> Exclusion<M> for Mcs {
    type Request = ();
    /// The process directly before p in the queue.
    type Pass = Option<u32>;
    type Keep = ();

    fn keep(&self, _: usize) {}

    #[inline]
    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<Option<u32>, M::Halt> {
        let me = Some(p as u32);
        if !m.drops(1) {
            m.line(1);
            m.write(self.next.at(p), None)?;
        }
        m.line(2);
        if m.mutant("reads-then-writes") {
            let before = m.read(self.last)?;
            m.write(self.last, me)?;
            return Ok(before);
        }
        m.swap(self.last, me)
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, before: Option<u32>) -> Result<Option<u32>, M::Halt> {
        let Some(q) = before else { return Ok(before) };
        let lock = |m: &mut M| {
            m.line(4);
            m.write(self.locked.at(p), true)
        };
        if !m.drops(4) && !m.mutant("swaps-lines-4-and-5") {
            lock(m)?;
        }
        if !m.drops(5) {
            m.line(5);
            m.write(self.next.at(q as usize), Some(p as u32))?;
        }
        if m.mutant("swaps-lines-4-and-5") {
            lock(m)?;
        }
        if !m.drops(6) {
            m.line(6);
            m.wait(self.locked.at(p), |locked| !locked)?;
        }
        Ok(before)
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, _: Option<u32>) -> Result<(), M::Halt> {
        let me = Some(p as u32);
        m.line(8);
        let mut next = m.read(self.next.at(p))?;
        if next.is_none() {
            m.line(9);
            let alone = if m.mutant("empties-the-line") {
                m.write(self.last, None)?;
                true
            } else {
                m.compare_and_swap(self.last, me, None)? == me
            };
            if alone || m.drops(10) {
                return Ok(());
            }
            m.line(10);
            next = m.repeat((), |m, ()| {
                Ok(m.read(self.next.at(p))?
                    .map_or(Continue(()), |successor| Break(Some(successor))))
            })?;
        }
        match next {
            Some(successor) if !m.drops(11) => {
                m.line(11);
                m.write(self.locked.at(successor as usize), false)
            }
            _ => Ok(()),
        }
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "without-line-1",
        change: "the successor of an earlier passage is taken for one of this",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "reads-then-writes",
        change: "line 2 is a read and then a write",
        fate: Fate::breaks(Property::MutualExclusion, 2),
    },
    Mutant {
        name: "without-line-4",
        change: "who has a predecessor does not lock its own node",
        fate: Fate::breaks(Property::MutualExclusion, 2),
    },
    Mutant {
        name: "without-line-5",
        change: "the predecessor is not told who comes next",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "swaps-lines-4-and-5",
        change: "the node is locked after the predecessor has been told",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "without-line-6",
        change: "nobody waits",
        fate: Fate::breaks(Property::MutualExclusion, 2),
    },
    Mutant {
        name: "empties-the-line",
        change: "line 9 is a write, and forgets who has come meanwhile",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "without-line-10",
        change: "a successor that has not said its name is left behind",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "without-line-11",
        change: "the successor is not let in",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
];
