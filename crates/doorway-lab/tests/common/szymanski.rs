//! Szymanski's algorithm (*A simple solution to Lamport's concurrent programming problem with
//! linear wait*, 1988), in which much of what a process has seen is dead soon afterwards: which
//! process it found in a scan, where it only matters that it found one.

use std::ops::ControlFlow::{Break, Continue};

use doorway_core::{
    Algorithm, Array, Claims, Exclusion, Homes, Layout, Memory, Primitive, Problem, RegisterKind,
    Registers, Rmr, Size, Unfit,
};
use doorway_lab::{Subject, build};

/// How the scans are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scans {
    /// With `find`, whose result stays in the local state.
    Find,
    /// With `find` inside a scope that keeps whether something was found.
    Scope,
    /// With nothing dead remembered.
    Forget,
}

const KINDS: [Scans; 3] = [Scans::Find, Scans::Scope, Scans::Forget];

/// Szymanski's algorithm for `n` processes.
pub(crate) fn szymanski(scans: Scans, n: usize) -> Box<dyn Subject> {
    let sessions = KINDS.iter().position(|kind| *kind == scans).expect("every kind is listed");
    build::<Szymanski, _, _, _>(Size { n, k: 1, sessions }, None, false).expect("it fits")
}

struct Szymanski {
    scans: Scans,
    n: usize,
    flag: Array<u64>,
}

impl Algorithm for Szymanski {
    const NAME: &'static str = "szymanski";
    const CLAIMS: Claims = Claims {
        problem: Problem::Mutex,
        paper: "none",
        figure: "none",
        primitives: &[Primitive::ReadWrite],
        properties: &[],
        refuted: &[],
        invariants: &[],
        registers: RegisterKind::Atomic,
        crashes: |_| 0,
        bound: Some(|_| 4),
        gap: |_| 2,
        values: &[],
        abandons: false,
        rmr: Rmr { cc: "", dsm: "" },
        min_n: 1,
        max_n: None,
        mutants: &[],
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        let flag = layout.array("Flag", size.n, Homes::Nobody, 0);
        Ok(Self { scans: KINDS[size.sessions], n: size.n, flag })
    }
}

impl Szymanski {
    /// Whether a process other than `p` has a flag as asked for.
    fn any<M: Registers + Memory>(
        &self,
        m: &mut M,
        p: usize,
        is: fn(u64) -> bool,
    ) -> Result<bool, M::Halt> {
        let others = (0..self.n).filter(move |&j| j != p);
        Ok(m.find(others, |m, j| m.test(self.flag.at(j), is))?.is_some())
    }

    /// Line 4: whether another process is about to come.
    fn finds<M: Registers + Memory>(&self, m: &mut M, p: usize) -> Result<bool, M::Halt> {
        m.line(4);
        self.any(m, p, |flag| flag == 1)
    }

    /// Lines 5 and 6: lets the others come, if there are any, until one of them is through.
    fn stands_back<M: Registers + Memory>(
        &self,
        m: &mut M,
        p: usize,
        waits: bool,
    ) -> Result<(), M::Halt> {
        if waits {
            m.line(5);
            m.write(self.flag.at(p), 2)?;
            m.line(6);
            m.repeat((), |m, ()| {
                Ok(if self.any(m, p, |flag| flag == 4)? { Break(()) } else { Continue(()) })
            })?;
        }
        Ok(())
    }
}

impl<M: Registers + Memory> Exclusion<M> for Szymanski {
    type Request = ();
    type Pass = ();
    type Keep = ();

    fn keep(&self, _: usize) {}

    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<(), M::Halt> {
        m.line(1);
        m.write(self.flag.at(p), 1)
    }

    fn waiting(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.line(2);
        let others = || (0..self.n).filter(move |&j| j != p);
        m.each(others(), |m, j| m.wait(self.flag.at(j), |flag| flag < 3))?;
        m.line(3);
        m.write(self.flag.at(p), 3)?;
        match self.scans {
            Scans::Find => {
                let waits = self.finds(m, p)?;
                self.stands_back(m, p, waits)?;
            }
            Scans::Scope => {
                let waits = m.scope(|m| self.finds(m, p))?;
                self.stands_back(m, p, waits)?;
            }
            Scans::Forget => m.scope(|m| {
                let waits = m.scope(|m| self.finds(m, p))?;
                self.stands_back(m, p, waits)
            })?,
        }
        m.line(7);
        m.write(self.flag.at(p), 4)?;
        m.line(8);
        m.each(0..p, |m, j| m.wait(self.flag.at(j), |flag| flag < 2))
    }

    fn exit(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.line(9);
        m.each(p + 1..self.n, |m, j| m.wait(self.flag.at(j), |flag| flag < 2 || flag == 4))?;
        m.line(10);
        m.write(self.flag.at(p), 0)
    }
}
