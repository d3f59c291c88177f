//! The one-bit mutex of Burns and of Lamport, as printed in He, Gopalakrishnan and Gafni: *Group
//! mutual exclusion in linear time and space* (TCS 2018), Figure 2, with the exit write that the
//! figure leaves out (`docs/errata.md`).
//!
//! Promises mutual exclusion and deadlock freedom with one bit per process. Processes with large
//! ids can starve, and one passage can cost Ω(n²) remote references even with coherent caches
//! (section 4 of the paper).

use core::ops::ControlFlow::{Break, Continue};

use crate::{
    Algorithm, Array, Claims, Exclusion, Fate, Homes, Layout, Mutant, Primitive, Problem, Property,
    RegisterKind, Registers, Rmr, Setting, Size, Unfit,
};

/// The one-bit mutex of Burns and of Lamport.
#[derive(Debug)]
pub struct BurnsLamport {
    n: usize,
    competing: Array<bool>,
}

impl Algorithm for BurnsLamport {
    const NAME: &'static str = "burns-lamport";

    const CLAIMS: Claims = Claims {
        problem: Problem::Mutex,
        paper: "002 He, Gopalakrishnan, Gafni 2018, after Burns 1981 and Lamport 1986",
        figure: "Fig. 2",
        primitives: &[Primitive::ReadWrite],
        properties: &[
            Property::MutualExclusion,
            Property::DeadlockFreedom,
            Property::BoundedExit,
            Property::BoundedRegisters,
        ],
        refuted: &[(Property::StarvationFreedom, Setting::slots(2, 1))],
        invariants: &[],
        registers: RegisterKind::Safe,
        crashes: |_| 0,
        bound: Some(|_| 1),
        gap: |_| 2,
        values: &[],
        abandons: true,
        rmr: Rmr { cc: "Ω(n²)", dsm: "unbounded" },
        min_n: 1,
        max_n: None,
        mutants: MUTANTS,
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits(Self::NAME, size)?;
        Ok(Self { n: size.n, competing: layout.array("Competing", size.n, Homes::Column, false) })
    }
}

impl<M: Registers> Exclusion<M> for BurnsLamport {
    type Request = ();
    type Pass = ();
    type Keep = ();

    fn keep(&self, _: usize) {}

    /// Does nothing: no step of this algorithm fixes a place in the queue.
    #[inline]
    fn doorway(&self, _: &mut M, _: usize, (): (), (): ()) -> Result<(), M::Halt> {
        Ok(())
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.repeat((), |m, ()| {
            m.line(1);
            m.write(self.competing.at(p), true)?;
            m.line(3);
            let Some(j) =
                m.find(0..p, |m, j| m.test(self.competing.at(j), |competing| competing))?
            else {
                return Ok(Break(()));
            };
            if !m.drops(4) {
                m.line(4);
                m.write(self.competing.at(p), false)?;
            }
            if !m.drops(5) {
                m.line(5);
                m.wait(self.competing.at(j), |competing| !competing)?;
            }
            if m.mutant("without-goto") {
                return Ok(Break(()));
            }
            Ok(Continue(())) // line 6: goto L
        })?;
        if m.drops(10) {
            return Ok(());
        }
        if m.mutant("writes-twice") {
            m.write(self.competing.at(p), true)?;
        }
        m.line(10);
        m.each(p + 1..self.n, |m, j| m.wait(self.competing.at(j), |competing| !competing))
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.line(12); // not printed
        let stays = m.mutant("as-printed");
        m.write(self.competing.at(p), stays)
    }

    fn abandon(&self, m: &mut M, p: usize, (): ()) -> Option<Result<(), M::Halt>> {
        Some(self.exit(m, p, ()))
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "as-printed",
        change: "the exit leaves the bit set, as Figure 2 prints no exit",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "without-line-4",
        change: "the bit stays set while waiting for a smaller id",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "without-line-5",
        change: "no wait before competing again: the bit flickers, and whoever waits at line 10 may always see it set",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "without-goto",
        change: "after the wait the competition is not started again",
        fate: Fate::breaks(Property::MutualExclusion, 2),
    },
    Mutant {
        name: "writes-twice",
        change: "the bit is written once more before line 10: on safe registers it then reads as anything",
        fate: Fate::breaks_in(
            Property::MutualExclusion,
            Setting::slots(2, 1).on(RegisterKind::Safe),
        ),
    },
    Mutant {
        name: "without-line-10",
        change: "larger ids are not waited for",
        fate: Fate::breaks(Property::MutualExclusion, 2),
    },
];
