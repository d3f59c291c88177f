//! Small algorithms that are not in the registry, made to be wrong or to be simple.

#[allow(dead_code, reason = "not every test plays with these")]
pub(crate) mod slots;

use std::{
    ops::ControlFlow::{Break, Continue},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use doorway_core::{
    Algorithm, Array, Claims, Coins, CompareAndSwap, Exclusion, FetchAndAdd, Home, Homes, Layout,
    Primitive, Problem, Register, RegisterKind, Registers, Rmr, Size, Transactions, Unfit,
};
use doorway_lab::{Subject, build};

/// What kind of toy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Toy {
    /// Loops inside loops.
    Nested,
    /// An `each` with a round that does nothing.
    IdleEach,
    /// A `repeat` with a round that does nothing.
    IdleRepeat,
    /// A passage that touches nothing.
    IdlePassage,
    /// An exit section that touches nothing.
    IdleExit,
    /// What is written depends on how often the code has run.
    Impure,
    /// One writes, the other reads twice and reports a new value followed by the old one.
    Inversion,
    /// A lock that is ignored if a choice among this many falls on 3.
    Coin(u32),
    /// A lock by compare-and-swap.
    Swap,
    /// A ticket lock by fetch-and-add.
    Add,
    /// A lock by transactions.
    Transaction,
    /// A lock by a read and then a write: no lock.
    TestThenSet,
    /// Waits until none of those with smaller ids has its flag up, looking at all flags round after
    /// round, and counts the first few rounds.
    Scan,
}

/// Which toy is built: algorithms are types, and the kind is handed over in the number of slots.
const KINDS: &[Toy] = &[
    Toy::Nested,
    Toy::IdleEach,
    Toy::IdleRepeat,
    Toy::IdlePassage,
    Toy::IdleExit,
    Toy::Impure,
    Toy::Inversion,
    Toy::Coin(3),
    Toy::Coin(4),
    Toy::Swap,
    Toy::Add,
    Toy::Transaction,
    Toy::TestThenSet,
    Toy::Scan,
];

/// The toy of this kind, for `n` processes.
pub(crate) fn toy(kind: Toy, n: usize) -> Box<dyn Subject> {
    let sessions = KINDS.iter().position(|k| *k == kind).expect("every kind is listed");
    build::<Playground, _, _, _>(Size { n, k: 1, sessions }, None, false).expect("toys fit")
}

struct Playground {
    kind: Toy,
    size: Size,
    flag: Array<bool>,
    inverted: Register<u64>,
    word: Register<u64>,
    serving: Register<u64>,
    runs: AtomicU32,
}

impl Algorithm for Playground {
    const NAME: &'static str = "playground";
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
        bound: Some(|_| 8),
        gap: |_| 2,
        values: &[],
        abandons: false,
        rmr: Rmr { cc: "", dsm: "" },
        min_n: 1,
        max_n: None,
        mutants: &[],
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        Ok(Self {
            kind: KINDS[size.sessions],
            size,
            flag: layout.array("Flag", size.n.max(2), Homes::Nobody, false),
            inverted: layout.register("Inverted", Home::Nobody, 0),
            word: layout.register("Word", Home::Nobody, 0),
            serving: layout.register("Serving", Home::Nobody, 0),
            runs: AtomicU32::new(0),
        })
    }
}

impl<M: Coins + Registers + CompareAndSwap + FetchAndAdd + Transactions> Exclusion<M>
    for Playground
{
    type Request = ();
    type Pass = u64;
    type Keep = ();

    fn keep(&self, _: usize) {}

    fn doorway(&self, m: &mut M, p: usize, (): (), (): ()) -> Result<u64, M::Halt> {
        match self.kind {
            Toy::IdlePassage => {}
            Toy::Impure => {
                let odd = self.runs.fetch_add(1, Relaxed) % 2 == 1;
                m.write(self.flag.at(p), odd)?;
            }
            Toy::Add => return m.fetch_and_add(self.word, 1),
            Toy::Swap | Toy::Transaction | Toy::TestThenSet => {}
            Toy::Coin(outcomes) => {
                m.line(1);
                m.write(self.flag.at(p), true)?;
                return Ok(u64::from(m.choose(outcomes)?));
            }
            _ => {
                m.line(1);
                m.write(self.flag.at(p), true)?;
            }
        }
        Ok(0)
    }

    fn waiting(&self, m: &mut M, p: usize, pass: u64) -> Result<u64, M::Halt> {
        match self.kind {
            Toy::Nested => {
                let sum = m.fold(0..3, 0u64, |m, sum, i| {
                    m.line(2);
                    let seen = m.read(self.flag.at(i % 2))?;
                    m.line(3);
                    let inner = m.fold(0..2, sum, |m, inner, j| {
                        Ok(inner + u64::from(m.read(self.flag.at(j))?))
                    })?;
                    Ok(inner + u64::from(seen))
                })?;
                m.line(4);
                m.write(self.word, sum.min(1))?;
            }
            Toy::IdleEach => {
                m.each(0..2, |m, i| if i == 0 { m.write(self.flag.at(p), true) } else { Ok(()) })?
            }
            Toy::IdleRepeat => m.repeat(0u64, |_, round| {
                Ok(if round > 2 { Break(()) } else { Continue(round + 1) })
            })?,
            Toy::Inversion if p == 1 => {
                let first = m.read(self.flag.at(0))?;
                let second = m.read(self.flag.at(0))?;
                if first && !second {
                    m.write(self.inverted, 9)?;
                }
            }
            Toy::Coin(_) => {
                m.line(2);
                if pass != 3 {
                    m.repeat((), |m, ()| {
                        let held = m.compare_and_swap(self.word, 0, 1)?;
                        Ok(if held == 0 { Break(()) } else { Continue(()) })
                    })?;
                }
            }
            Toy::Swap => m.repeat((), |m, ()| {
                let held = m.compare_and_swap(self.word, 0, 1)?;
                Ok(if held == 0 { Break(()) } else { Continue(()) })
            })?,
            Toy::Add => m.wait(self.serving, |serving| serving == pass)?,
            Toy::Transaction => m.repeat((), |m, ()| {
                let mine =
                    m.transact(
                        self.word,
                        |held| if held == 0 { (1, true) } else { (held, false) },
                    )?;
                Ok(if mine { Break(()) } else { Continue(()) })
            })?,
            Toy::TestThenSet => {
                m.wait(self.word, |held| held == 0)?;
                m.write(self.word, 1)?;
            }
            Toy::Scan => m.repeat(0u64, |m, round| {
                let others = 0..self.size.n;
                let up =
                    m.fold(others, false, |m, up, i| Ok(m.read(self.flag.at(i))? && i < p || up))?;
                Ok(if up { Continue((round + 1).min(5)) } else { Break(()) })
            })?,
            _ => {}
        }
        Ok(pass)
    }

    fn exit(&self, m: &mut M, p: usize, pass: u64) -> Result<(), M::Halt> {
        match self.kind {
            Toy::IdlePassage | Toy::IdleExit => Ok(()),
            Toy::Add => m.write(self.serving, pass + 1),
            Toy::Coin(_) | Toy::Swap | Toy::Transaction | Toy::TestThenSet => m.write(self.word, 0),
            // The writer of the inversion test leaves its flag set: what it writes is only ever
            // new.
            Toy::Inversion if p == 0 => m.write(self.word, 0),
            _ => m.write(self.flag.at(p), false),
        }
    }
}
