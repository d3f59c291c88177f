//! The Queue Algorithm of Fischer, Lynch, Burns and Borodin: *Distributed FIFO allocation of
//! identical resources using small shared space* (YALEU/DCS/TR 421, 1985), Figure 1.
//!
//! Promises k-exclusion, FIFO enabling and no k-deadlock, with up to k-1 crashes, by transactions
//! on one shared variable that holds the whole queue of processes. The paper's other three
//! algorithms do the same with fewer values, and are defined by being equivalent to this algorithm.
//! A waiting process looks at the shared variable, which is local to no process.
//!
//! The figure has no line numbers. Here each transaction is a line: 1 `ENQUEUE(i)` and the first
//! look, 2 every further look, 3 `REMOVE(i)`.

use core::{
    fmt,
    ops::ControlFlow::{Break, Continue},
};

use crate::{
    Algorithm, Claims, Exclusion, Fate, Home, Layout, Mutant, Primitive, Problem, Property,
    Register, RegisterKind, Rmr, Size, Transactions, Unfit, Value,
    digits::{Digits, Format},
    plain_local,
};

/// The processes in the queue, the first process first.
///
/// A digit is the id of a process plus 1. A 0 is no process, and only zeros follow it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Line(Digits);

plain_local!(Line);

impl Line {
    /// Returns how many processes are in the queue.
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.iter().take_while(|&digit| digit != 0).count()
    }

    /// Returns where process `p` is in the queue.
    #[inline(always)]
    fn position(&self, p: usize) -> Option<usize> {
        self.0.iter().position(|digit| digit == p as u32 + 1)
    }

    /// Inserts `p` before the process at `at`.
    #[inline(always)]
    fn insert(&mut self, at: usize, p: usize) {
        (at..self.len()).rev().for_each(|i| self.0.set(i + 1, self.0.get(i)));
        self.0.set(at, p as u32 + 1);
    }

    /// Removes the process at `at` from the queue.
    #[inline(always)]
    fn remove(&mut self, at: usize) {
        let last = self.len() - 1;
        (at..last).for_each(|i| self.0.set(i, self.0.get(i + 1)));
        self.0.set(last, 0);
    }
}

/// The ids, first to last: `⟨2, 0⟩`.
impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("⟨")?;
        for (i, digit) in self.0.iter().take(self.len()).enumerate() {
            write!(f, "{}{}", if i == 0 { "" } else { ", " }, digit - 1)?;
        }
        f.write_str("⟩")
    }
}

impl Value for Line {
    type Format = Format;

    #[inline(always)]
    fn bits(format: Format) -> u32 {
        Digits::bits(format)
    }
    #[inline(always)]
    fn word(&self) -> u128 {
        self.0.word()
    }
    #[inline(always)]
    fn from_word(word: u128, format: Format) -> Self {
        Self(Digits::from_word(word, format))
    }
    fn magnitude(&self) -> u64 {
        self.0.magnitude()
    }
}

/// The Queue Algorithm.
#[derive(Debug)]
pub struct Queue {
    k: usize,
    queue: Register<Line>,
}

impl Algorithm for Queue {
    const NAME: &'static str = "queue";

    const CLAIMS: Claims = Claims {
        problem: Problem::KExclusion,
        paper: "003 Fischer, Lynch, Burns, Borodin 1985",
        figure: "Fig. 1",
        primitives: &[Primitive::Transaction],
        properties: &[
            Property::KExclusion,
            Property::KFcfs,
            Property::Fife,
            Property::FifoEnabling,
            Property::KDeadlockAvoidance,
            Property::StarvationFreedom,
            Property::DeadlockFreedom,
            Property::BoundedExit,
            Property::BoundedRegisters,
        ],
        refuted: &[],
        invariants: &[],
        registers: RegisterKind::Atomic,
        crashes: |size| size.k - 1,
        // The largest digit.
        bound: Some(|size| size.n as u64),
        gap: |_| 2,
        values: &[],
        abandons: true,
        rmr: Rmr { cc: "unbounded", dsm: "unbounded" },
        min_n: 1,
        max_n: None,
        mutants: MUTANTS,
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        super::fits::<Self>(size)?;
        let format = Format::up_to(size.n, size.n);
        let empty = Line(Digits::new(format, 0));
        Ok(Self { k: size.k, queue: layout.formatted("QUEUE", Home::Nobody, empty, format) })
    }
}

impl Queue {
    /// Returns how many positions let a process in: the first k.
    #[inline(always)]
    fn open<M: Transactions>(&self, m: &M) -> usize {
        if m.mutant("first-k-plus-1") {
            self.k + 1
        } else if m.mutant("first-k-minus-1") {
            self.k - 1
        } else {
            self.k
        }
    }
}

impl<M: Transactions> Exclusion<M> for Queue {
    type Request = ();
    /// Whether p has been seen among the first k.
    type Pass = bool;
    type Keep = ();

    fn keep(&self, _: usize) {}

    #[inline]
    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<bool, M::Halt> {
        let open = self.open(m);
        let (front, looks) =
            (m.mutant("enqueues-at-the-front"), !m.mutant("enters-in-two-transactions"));
        m.line(1);
        m.transact(self.queue, |mut queue| {
            queue.insert(if front { 0 } else { queue.len() }, p);
            let may = looks && queue.position(p).is_some_and(|at| at < open);
            (queue, may)
        })
    }

    #[inline]
    fn waiting(&self, m: &mut M, p: usize, may: bool) -> Result<bool, M::Halt> {
        if !may {
            let open = self.open(m);
            m.line(2);
            m.repeat((), |m, ()| {
                let may = m.transact(self.queue, |queue| {
                    let may = queue.position(p).is_some_and(|at| at < open);
                    (queue, may)
                })?;
                Ok(if may { Break(()) } else { Continue(()) })
            })?;
        }
        Ok(true)
    }

    #[inline]
    fn exit(&self, m: &mut M, p: usize, _: bool) -> Result<(), M::Halt> {
        let (head, last) = (m.mutant("removes-the-head"), m.mutant("removes-the-last"));
        m.line(3);
        m.transact(self.queue, |mut queue| {
            let mine = if head {
                Some(0)
            } else if last {
                queue.len().checked_sub(1)
            } else {
                queue.position(p)
            };
            // `p` is there, except in mutants that remove other processes.
            if let Some(at) = mine {
                queue.remove(at);
            }
            (queue, ())
        })
    }

    /// Runs `REMOVE(i)`, which removes a process from the queue wherever it is.
    fn abandon(&self, m: &mut M, p: usize, may: bool) -> Option<Result<(), M::Halt>> {
        Some(self.exit(m, p, may))
    }
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "first-k-plus-1",
        change: "one of the first k + 1 positions is enough",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "first-k-minus-1",
        change: "only the first k - 1 positions are let in",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "enqueues-at-the-front",
        change: "ENQUEUE puts the process first",
        fate: Fate::breaks(Property::KExclusion, 2),
    },
    Mutant {
        name: "removes-the-head",
        change: "REMOVE takes out whoever is first",
        fate: Fate::breaks_at(Property::KExclusion, 3, 2),
    },
    Mutant {
        name: "removes-the-last",
        change: "REMOVE takes out whoever is last",
        fate: Fate::breaks(Property::DeadlockFreedom, 2),
    },
    Mutant {
        name: "enters-in-two-transactions",
        change: "the first look is a transaction of its own",
        fate: Fate::Harmless,
    },
];
