//! The k-exclusion algorithm of Zehavi: *An Improved k-Exclusion Algorithm* (Journal of Computers
//! 9(3), 2014), Algorithm 1, on a timestamp system of the caller's choice.
//!
//! Promises k-exclusion, FIFE, starvation freedom with k-1 crashes and a bounded exit, in bounded
//! space, with O(n) remote references in both models. A process waits on registers in its own
//! memory. There the other processes tell it what they know of the order between them.
//!
//! `Discover[i][p]` has two writers, i and p. The algorithm needs atomic registers
//! (`docs/errata.md`).

use core::ops::ControlFlow::{Break, Continue};

use crate::{
    Algorithm, Array, Claims, Exclusion, Fate, Grid, Homes, Layout, Local, Mutant, Problem,
    Property, RegisterKind, Registers, Relabel, Rmr, Set, Setting, Size, Unfit, others,
    timestamps::{LabelScan, Timestamps},
};

/// Zehavi's algorithm on the timestamp system `C`.
#[derive(Debug)]
pub struct TimestampBakery<C> {
    n: usize,
    k: usize,
    compete: Grid<bool>,
    ignore: Grid<bool>,
    /// `Order<`
    order: Grid<bool>,
    reveal: Array<bool>,
    allow: Grid<bool>,
    discover: [Grid<bool>; 2],
    timestamps: C,
}

/// What a process passes from section to section.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pass<T> {
    /// The processes with order.i < order.p: digit `i` is 1. Empty once p is in, where the set no
    /// longer matters.
    before: Set,
    /// What the process remembers for the timestamp system.
    mirrors: T,
}

impl<T: Local> Local for Pass<T> {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        Self { before: self.before.clone(), mirrors: self.mirrors.relabel(f) }
    }
}

impl<C: Timestamps> Algorithm for TimestampBakery<C> {
    const NAME: &'static str = "timestamp-bakery";
    const VARIANT: Option<&'static str> = Some(C::NAME);

    const CLAIMS: Claims = Claims {
        problem: Problem::KExclusion,
        paper: "000 Zehavi 2014",
        figure: "Algorithm 1",
        primitives: C::PRIMITIVES,
        properties: &[
            Property::KExclusion,
            Property::KFcfs,
            Property::Fife,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
            Property::BoundedExit,
            Property::BoundedRegisters,
        ],
        refuted: &[],
        invariants: &[],
        registers: RegisterKind::Atomic,
        crashes: |size| size.k - 1,
        // The flags count as well.
        bound: Some(|size| if C::BOUND(size.n) > 1 { C::BOUND(size.n) } else { 1 }),
        gap: |_| 2,
        values: &[],
        abandons: true,
        rmr: Rmr { cc: "O(n)", dsm: "O(n)" },
        min_n: 1,
        max_n: None,
        mutants: MUTANTS,
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits::<Self>(size)?;
        let n = size.n;
        let mut flags = |name| layout.grid(name, n, n, Homes::Column, false);
        Ok(Self {
            n,
            k: size.k,
            compete: flags("Compete"),
            ignore: flags("Ignore"),
            order: flags("Order<"),
            allow: flags("Allow"),
            discover: [flags("Discover0"), flags("Discover1")],
            reveal: layout.array("Reveal", n, Homes::Column, false),
            timestamps: C::new(layout, n),
        })
    }
}

impl<C: Sync> TimestampBakery<C> {
    /// Returns `Discover[i][p][0] ∧ Discover[i][p][1]`.
    #[inline(always)]
    fn discovered<M: Registers>(&self, m: &mut M, i: usize, p: usize) -> Result<bool, M::Halt> {
        let [first, second] = [self.discover[0].at(i, p), self.discover[1].at(i, p)];
        Ok(m.test(first, |yes| yes)?
            && (m.mutant("one-discover-cell") || m.test(second, |yes| yes)?))
    }

    /// Line 4 for one i: p discovers i, if i is revealed.
    #[inline(always)]
    fn look_at<M: Registers>(&self, m: &mut M, p: usize, i: usize) -> Result<(), M::Halt> {
        let cells = if m.mutant("swaps-lines-4d-and-4e") { [1, 0] } else { [0, 1] };
        if m.scope(|m| self.discovered(m, p, i))? {
            return Ok(());
        }
        let never = m.mutant("never-resets-discover");
        if !never {
            m.write(self.discover[0].at(p, i), false)?; // a
            m.write(self.discover[1].at(p, i), false)?; // b
        }
        if !m.mutant("without-line-4c") {
            m.write(self.allow.at(p, i), false)?; // c
        }
        // d, e
        m.each(cells, |m, cell| {
            if m.test(self.reveal.at(i), |revealed| revealed)? {
                m.write(self.discover[cell].at(p, i), true)?;
            }
            Ok(())
        })?;
        // f
        if !never && !m.mutant("without-line-4f") && !m.scope(|m| self.discovered(m, p, i))? {
            m.write(self.discover[0].at(p, i), false)?; // i
            m.write(self.discover[1].at(p, i), false)?; // ii
        }
        Ok(())
    }

    /// Line 11(a) for one i: returns whether p need not wait for i.
    #[inline(always)]
    fn is_no_hindrance<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        i: usize,
    ) -> Result<bool, M::Halt> {
        let competes = m.test(self.compete.at(i, p), |yes| yes)?; // i
        Ok(!competes
            || self.discovered(m, i, p)? // ii
                && !m.test(self.ignore.at(i, p), |yes| yes)?
                && !m.test(self.order.at(i, p), |yes| yes)?)
    }

    /// Line 12: p allows all processes before it.
    #[inline(always)]
    fn allow<M: Registers>(&self, m: &mut M, p: usize, before: &Set) -> Result<(), M::Halt> {
        if m.drops(12) {
            return Ok(());
        }
        m.line(12);
        m.each(before.iter(), |m, i| m.write(self.allow.at(p, i), true))
    }

    /// Lines 3 to 6: takes a place, and finds the processes before it.
    #[inline(always)]
    fn place<M: Registers>(
        &self,
        m: &mut M,
        p: usize,
        mirrors: C::Mirrors,
    ) -> Result<Pass<C::Mirrors>, M::Halt>
    where
        C: LabelScan<M>,
    {
        m.line(3);
        let mirrors = m.scope(|m| self.timestamps.label(m, p, mirrors.clone()))?;
        if m.mutant("competes-after-label") {
            m.line(1);
            m.each(others(p, self.n), |m, i| m.write(self.compete.at(p, i), true))?;
        }
        if !m.drops(4) {
            m.line(4);
            m.each(others(p, self.n), |m, i| self.look_at(m, p, i))?;
        }
        let late = m.mutant("reveals-after-scan");
        if !late && !m.drops(5) {
            m.line(5);
            m.write(self.reveal.at(p), true)?;
        }
        m.line(6);
        let pass = m.scope(|m| {
            let (ranks, mirrors) = self.timestamps.scan(m, p, mirrors.clone())?;
            let earlier = others(p, self.n).filter(|&i| ranks.get(i) < ranks.get(p));
            let before = earlier.fold(Set::none(self.n), Set::with);
            Ok(Pass { before, mirrors })
        })?;
        if late {
            m.line(5);
            m.write(self.reveal.at(p), true)?;
        }
        Ok(pass)
    }
}

impl<M: Registers, C: LabelScan<M>> Exclusion<M> for TimestampBakery<C> {
    type Request = ();
    type Pass = Pass<C::Mirrors>;
    type Keep = C::Mirrors;

    fn keep(&self, p: usize) -> C::Mirrors {
        self.timestamps.mirrors(p)
    }

    #[inline]
    fn doorway(
        &self,
        m: &mut M,
        p: usize,
        (): (),
        mirrors: C::Mirrors,
    ) -> Result<Self::Pass, M::Halt> {
        let all = others(p, self.n);
        if !m.drops(1) && !m.mutant("competes-after-label") {
            m.line(1);
            m.each(all.clone(), |m, i| m.write(self.compete.at(p, i), true))?;
        }
        if !m.drops(2) {
            m.line(2);
            m.each(all.clone(), |m, i| m.write(self.ignore.at(p, i), true))?;
        }
        let pass = m.scope(|m| self.place(m, p, mirrors.clone()))?;
        if !m.drops(7) {
            m.line(7);
            let reversed = m.mutant("tells-the-wrong-order");
            m.each(all.clone(), |m, i| {
                m.write(self.order.at(p, i), pass.before.contains(i) == reversed)
            })?;
        }
        if !m.drops(8) {
            m.line(8);
            m.each(all, |m, i| m.write(self.ignore.at(p, i), false))?;
        }
        Ok(pass) // 9, 10: precede is the set of processes before p
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, pass: Self::Pass) -> Result<Self::Pass, M::Halt> {
        let early = m.mutant("allows-before-waiting");
        if early {
            self.allow(m, p, &pass.before)?;
        }
        let too_many = if m.mutant("waits-for-more-than-k") { self.k + 1 } else { self.k };
        let waits = |precede: &Set| precede.len() >= too_many;
        if waits(&pass.before) {
            m.line(11);
            m.repeat(pass.before.clone(), |m, precede| {
                // a
                let precede = m.fold(precede.iter(), precede, |m, left, i| {
                    Ok(if m.scope(|m| self.is_no_hindrance(m, p, i))? {
                        left.without(i)
                    } else {
                        left
                    })
                })?;
                // b; one process that allows p is enough
                let allowed = m.find(others(p, self.n), |m, i| {
                    Ok(self.discovered(m, i, p)? && m.test(self.allow.at(i, p), |yes| yes)?)
                })?;
                Ok(if allowed.is_some() || !waits(&precede) {
                    Break(())
                } else {
                    Continue(precede)
                })
            })?;
        }
        if !early {
            self.allow(m, p, &pass.before)?;
        }
        Ok(Pass { before: Set::none(self.n), ..pass })
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, pass: Self::Pass) -> Result<C::Mirrors, M::Halt> {
        let all = others(p, self.n);
        if !m.drops(13) {
            m.line(13);
            m.write(self.reveal.at(p), false)?;
        }
        if !m.drops(14) {
            m.line(14);
            m.each(all.clone(), |m, i| {
                m.write(self.discover[0].at(i, p), false)?; // a
                m.write(self.discover[1].at(i, p), false) // b
            })?;
        }
        if !m.drops(15) {
            m.line(15);
            m.each(all, |m, i| m.write(self.compete.at(p, i), false))?;
        }
        Ok(pass.mirrors)
    }

    fn abandon(
        &self,
        m: &mut M,
        p: usize,
        pass: Self::Pass,
    ) -> Option<Result<C::Mirrors, M::Halt>> {
        Some(self.exit(m, p, pass))
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "without-line-1",
        change: "nobody competes",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "competes-after-label",
        change: "line 1 comes after line 3",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "without-line-2",
        change: "Ignore is never on: what a process told last time counts while it is in its doorway",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "without-line-4",
        change: "nobody discovers anybody",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "without-line-4c",
        change: "a permission of an earlier passage stays",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "one-discover-cell",
        change: "one cell that says yes is enough",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "without-line-5",
        change: "nobody reveals itself",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "reveals-after-scan",
        change: "line 5 comes after line 6",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "without-line-7",
        change: "Order< is never written",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "tells-the-wrong-order",
        change: "line 7 compares the wrong way round",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "without-line-8",
        change: "Ignore stays on for ever",
        fate: Fate::breaks(Property::StarvationFreedom, 2),
    },
    Mutant {
        name: "waits-for-more-than-k",
        change: "line 11 asks for > k instead of ≥ k",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "allows-before-waiting",
        change: "line 12 comes before line 11",
        fate: Fate::breaks_in(Property::KExclusion, Setting::slots(3, 1).passages(1)),
    },
    Mutant {
        name: "without-line-12",
        change: "nobody allows anybody",
        fate: Fate::Scripted {
            property: Property::Fife,
            setting: Setting::slots(4, 2),
            script: LEFT_BEHIND,
        },
    },
    Mutant {
        name: "without-line-13",
        change: "nobody hides on leaving",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "without-line-14",
        change: "discoveries of an earlier passage stay",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "without-line-15",
        change: "nobody stops competing",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "swaps-lines-4d-and-4e",
        change: "the second cell is written before the first",
        fate: Fate::Harmless,
    },
    Mutant {
        name: "without-line-4f",
        change: "a discovery that was not finished is not taken back",
        fate: Fate::Harmless,
    },
    Mutant {
        name: "never-resets-discover",
        change: "lines 4a, 4b and 4f are left out: only the discovered process takes discoveries back",
        fate: Fate::Harmless,
    },
];

/// Processes 2 and 3 are in their exit sections. They have told process 0, but not process 1, that
/// they compete no more. Process 0 came after process 1 and goes in. Process 1 still waits for
/// processes 2 and 3. Unless process 0 allows it, process 1 waits for as long as they take no step.
const LEFT_BEHIND: &str = "
    2 until critical
    3 until critical
    1 until waiting
    0 until waiting
    2*8 # lines 13, 14 and line 15 for process 0
    3*8
    0 until critical
";
