//! The algorithms: two flags and a scan, written in many ways, and some that are odd.

use std::{
    cell::Cell,
    ops::{
        ControlFlow::{Break, Continue},
        Range,
    },
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use doorway_core::{
    Algorithm, Array, Claims, Coins, Exclusion, Homes, Layout, Primitive, Problem, RegisterKind,
    Registers, Rmr, Size, Unfit,
};

/// Which algorithm is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Scans smaller ids and then, in vain, larger ones, by two calls of one helper.
    Helper,
    /// The same by a plain `for` around a combinator.
    PlainFor,
    /// The same by a helper that calls itself.
    Recursion,
    /// The same with an empty `scope` where the helper's first scan is empty.
    EmptyScope,
    /// The same without a helper.
    Inlined,
    /// Waits for larger ids too, by the helper.
    RightHelper,
    /// The same without the helper.
    RightInlined,
    /// Flips a coin first, and ignores the other's flag on heads.
    ChoosesFirst,
    /// Ignores the other's flag if a choice among 300 falls on the last.
    WideChoice,
    /// Chooses among none.
    NoOutcome,
    /// Chooses among more than can be explored.
    HugeChoice,
    /// Counts the rounds of a loop in an atomic of its own section, and ignores the other's flag
    /// after the second.
    LocalAtomic,
    /// Ignores the other's flag whenever the code has been run a multiple of four times.
    Counter,
    /// Waits in its doorway.
    WaitingDoorway,
    /// The same accesses, with the wait in the waiting section.
    WaitingSection,
    /// Has this many registers.
    ManyRegisters(usize),
}

/// Hands the kind over to [`Algorithm::new`], which takes none.
pub(crate) struct Shared;

thread_local! {
    static KIND: Cell<Kind> = const { Cell::new(Kind::Helper) };
}

impl Shared {
    pub(crate) fn with<T>(kind: Kind, build: impl FnOnce() -> T) -> T {
        KIND.set(kind);
        build()
    }
}

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
    bound: None,
    gap: |_| 2,
    values: &[],
    abandons: false,
    rmr: Rmr { cc: "", dsm: "" },
    min_n: 1,
    max_n: None,
    mutants: &[],
};

/// One flag per process: a process steps back for smaller ids and should wait for larger ones.
pub(crate) struct Burns {
    kind: Kind,
    n: usize,
    flag: Array<bool>,
}

impl Algorithm for Burns {
    const NAME: &'static str = "burns";
    const CLAIMS: Claims = CLAIMS;

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        Ok(Self {
            kind: KIND.get(),
            n: size.n,
            flag: layout.array("Flag", size.n, Homes::Column, false),
        })
    }
}

impl Burns {
    /// The helper: one place in the source for every scan.
    fn scan<M: Registers>(&self, m: &mut M, ids: Range<usize>) -> Result<Option<usize>, M::Halt> {
        m.find(ids, |m, i| m.read(self.flag.at(i)))
    }

    fn scan_by_recursion<M: Registers>(
        &self,
        m: &mut M,
        ranges: &[Range<usize>],
    ) -> Result<Vec<Option<usize>>, M::Halt> {
        let Some((first, rest)) = ranges.split_first() else { return Ok(Vec::new()) };
        let found = m.find(first.clone(), |m, i| m.read(self.flag.at(i)))?;
        let mut all = self.scan_by_recursion(m, rest)?;
        all.insert(0, found);
        Ok(all)
    }

    /// The first of the smaller ids whose flag is up, after a look at the larger ones.
    fn both<M: Registers>(&self, m: &mut M, p: usize) -> Result<Option<usize>, M::Halt> {
        let (smaller, larger) = (0..p, p + 1..self.n);
        match self.kind {
            Kind::PlainFor => {
                let mut found = Vec::new();
                for ids in [smaller, larger] {
                    found.push(m.find(ids, |m, i| m.read(self.flag.at(i)))?);
                }
                Ok(found[0])
            }
            Kind::Recursion => Ok(self.scan_by_recursion(m, &[smaller, larger])?[0]),
            Kind::EmptyScope => {
                let mut found = Vec::new();
                for ids in [smaller, larger] {
                    found.push(m.scope(|m| {
                        if ids.is_empty() {
                            Ok(None)
                        } else {
                            Ok(m.read(self.flag.at(ids.start))?.then_some(ids.start))
                        }
                    })?);
                }
                Ok(found[0])
            }
            Kind::Inlined => {
                let found = m.find(smaller, |m, i| m.read(self.flag.at(i)))?;
                m.find(larger, |m, i| m.read(self.flag.at(i)))?;
                Ok(found)
            }
            _ => {
                let found = self.scan(m, smaller)?;
                self.scan(m, larger)?;
                Ok(found)
            }
        }
    }
}

impl<M: Registers> Exclusion<M> for Burns {
    type Request = ();
    type Pass = ();
    type Keep = ();

    fn keep(&self, _: usize) {}

    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<(), M::Halt> {
        m.write(self.flag.at(p), true)
    }

    fn waiting(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        let right = matches!(self.kind, Kind::RightHelper | Kind::RightInlined);
        m.repeat((), |m, ()| {
            let found = match self.kind {
                Kind::RightHelper => self.scan(m, 0..p)?,
                Kind::RightInlined => m.find(0..p, |m, i| m.read(self.flag.at(i)))?,
                _ => {
                    let found = self.both(m, p)?;
                    m.write(self.flag.at(p), true)?;
                    found
                }
            };
            let Some(smaller) = found else {
                if !right || p + 1 == self.n {
                    return Ok(Break(()));
                }
                m.repeat((), |m, ()| {
                    let larger = match self.kind {
                        Kind::RightHelper => self.scan(m, p + 1..self.n)?,
                        _ => m.find(p + 1..self.n, |m, i| m.read(self.flag.at(i)))?,
                    };
                    Ok(if larger.is_none() { Break(()) } else { Continue(()) })
                })?;
                return Ok(Break(()));
            };
            m.write(self.flag.at(p), false)?;
            m.wait(self.flag.at(smaller), |up| !up)?;
            m.write(self.flag.at(p), true)?;
            Ok(Continue(()))
        })
    }

    fn exit(&self, m: &mut M, p: usize, (): ()) -> Result<(), M::Halt> {
        m.write(self.flag.at(p), false)
    }
}

/// Two flags, and what is odd about the algorithm.
pub(crate) struct Odd {
    kind: Kind,
    flag: Array<bool>,
    runs: AtomicU32,
}

impl Algorithm for Odd {
    const NAME: &'static str = "odd";
    const CLAIMS: Claims = CLAIMS;

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        let kind = KIND.get();
        let flag = layout.array("Flag", size.n, Homes::Column, false);
        if let Kind::ManyRegisters(more) = kind {
            layout.array("More", more - size.n, Homes::Nobody, false);
        }
        Ok(Self { kind, flag, runs: AtomicU32::new(0) })
    }
}

impl<M: Coins + Registers> Exclusion<M> for Odd {
    type Request = ();
    type Pass = bool;
    type Keep = ();

    fn keep(&self, _: usize) {}

    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<bool, M::Halt> {
        let ignores = match self.kind {
            Kind::ChoosesFirst => m.choose(2)? == 1,
            Kind::WideChoice => m.choose(300)? == 299,
            Kind::NoOutcome => m.choose(0)? == 1,
            Kind::HugeChoice => m.toss(u32::MAX)? == 1,
            _ => false,
        };
        m.write(self.flag.at(p), true)?;
        if self.kind == Kind::WaitingDoorway {
            m.wait(self.flag.at(1 - p), |up| !up)?;
        }
        Ok(ignores)
    }

    fn waiting(&self, m: &mut M, p: usize, ignores: bool) -> Result<bool, M::Halt> {
        if self.kind == Kind::WaitingSection || self.kind == Kind::WaitingDoorway {
            m.test(self.flag.at(p), |up| up)?;
        }
        if self.kind == Kind::LocalAtomic {
            let rounds = AtomicU32::new(0);
            return m.repeat((), |m, ()| {
                let free = !m.read(self.flag.at(1 - p))?;
                let patient = rounds.fetch_add(1, Relaxed) < 2;
                m.write(self.flag.at(p), true)?;
                Ok(if free || !patient { Break(ignores) } else { Continue(()) })
            });
        }
        if self.kind == Kind::Counter && self.runs.fetch_add(1, Relaxed) % 64 > 61 {
            return Ok(ignores);
        }
        if !ignores && self.kind != Kind::WaitingDoorway {
            m.wait(self.flag.at(1 - p), |up| !up)?;
        }
        Ok(ignores)
    }

    fn exit(&self, m: &mut M, p: usize, _: bool) -> Result<(), M::Halt> {
        m.write(self.flag.at(p), false)
    }
}
