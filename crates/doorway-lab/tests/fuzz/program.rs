//! A small algorithm as data: what the fuzzer makes, the interpreter runs on the lab's memory, and
//! the reference explores.
//!
//! A section is a list of statements. A statement that has a value (a read, a loop, a call) appends
//! it to the environment, and expressions name values by how recent they are. A body of a loop sees
//! what is around it and, beside that, the carried value and the item; after the body only the
//! loop's result stays.

use std::fmt;

use doorway_core::{Local, Relabel, Ticket};

/// A value of the environment.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Val {
    Num(u64),
    Ticket(Ticket),
}

impl Val {
    /// The value as a number. Of a ticket only whether it is zero is known.
    pub(crate) fn num(self) -> u64 {
        match self {
            Self::Num(number) => number,
            Self::Ticket(ticket) => u64::from(ticket != Ticket::ZERO),
        }
    }

    /// The value as a ticket: zero, unless it is one.
    pub(crate) fn ticket(self) -> Ticket {
        match self {
            Self::Num(_) => Ticket::ZERO,
            Self::Ticket(ticket) => ticket,
        }
    }

    pub(crate) fn is_true(self) -> bool {
        self.num() != 0
    }
}

impl fmt::Debug for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Num(number) => write!(f, "{number}"),
            Self::Ticket(ticket) => write!(f, "t{ticket:?}"),
        }
    }
}

impl Local for Val {
    fn relabel(&self, f: Relabel<'_>) -> Self {
        match self {
            Self::Num(_) => *self,
            Self::Ticket(ticket) => Self::Ticket(f(*ticket)),
        }
    }
}

/// An expression over the environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Expr {
    Const(u64),
    /// The process's own number.
    Me,
    /// The value appended so many before the last one; 0 if there are not so many.
    Recent(usize),
    Not(Box<Expr>),
    /// The sum, modulo 3.
    Add(Box<Expr>, Box<Expr>),
    Equal(Box<Expr>, Box<Expr>),
    Less(Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    /// So many successors of ticket zero.
    Nth(u32),
    Succ(Box<Expr>),
    Max(Box<Expr>, Box<Expr>),
    /// Whether a ticket is smaller than another.
    Before(Box<Expr>, Box<Expr>),
    /// Whether two tickets are the same.
    Same(Box<Expr>, Box<Expr>),
}

impl Expr {
    pub(crate) fn eval(&self, env: &[Val], me: usize) -> Val {
        let num = |e: &Self| e.eval(env, me).num();
        let ticket = |e: &Self| e.eval(env, me).ticket();
        match self {
            Self::Const(number) => Val::Num(*number),
            Self::Me => Val::Num(me as u64),
            Self::Recent(back) => env.iter().rev().nth(*back).copied().unwrap_or(Val::Num(0)),
            Self::Not(a) => Val::Num(u64::from(num(a) == 0)),
            Self::Add(a, b) => Val::Num((num(a) % 3 + num(b) % 3) % 3),
            Self::Equal(a, b) => Val::Num(u64::from(num(a) == num(b))),
            Self::Less(a, b) => Val::Num(u64::from(num(a) < num(b))),
            Self::And(a, b) => Val::Num(u64::from(num(a) != 0 && num(b) != 0)),
            Self::Nth(n) => Val::Ticket((0..*n).fold(Ticket::ZERO, |ticket, _| ticket.succ())),
            Self::Succ(a) => Val::Ticket(ticket(a).succ()),
            Self::Max(a, b) => Val::Ticket(ticket(a).max(ticket(b))),
            Self::Before(a, b) => Val::Num(u64::from(ticket(a) < ticket(b))),
            Self::Same(a, b) => Val::Num(u64::from(ticket(a) == ticket(b))),
        }
    }
}

/// What a register holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Flag,
    Count,
    Ticket,
}

/// A register: an element of the array of its kind, the index modulo the array's length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    pub(crate) index: Expr,
}

/// How many counters there are; there are as many flags and tickets as processes.
pub(crate) const COUNTERS: usize = 2;

impl Place {
    /// Which element of its array.
    pub(crate) fn at(&self, env: &[Val], me: usize, n: usize) -> usize {
        let len = if self.kind == Kind::Count { COUNTERS } else { n };
        (self.index.eval(env, me).num() % len as u64) as usize
    }
}

/// The items of a loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Items {
    All,
    /// Those before the process.
    Below,
    /// Those after it.
    Above,
    Others,
    /// Those before the process if the value is 0, else those after it.
    Side(Expr),
    /// `0..e`, at most `0..3`.
    UpTo(Expr),
}

impl Items {
    pub(crate) fn list(&self, env: &[Val], me: usize, n: usize) -> Vec<usize> {
        match self {
            Self::All => (0..n).collect(),
            Self::Below => (0..me).collect(),
            Self::Above => (me + 1..n).collect(),
            Self::Side(e) if e.eval(env, me).num() == 0 => (0..me).collect(),
            Self::Side(_) => (me + 1..n).collect(),
            Self::Others => (0..n).filter(|&i| i != me).collect(),
            Self::UpTo(e) => (0..e.eval(env, me).num().min(3) as usize).collect(),
        }
    }
}

/// Which combinator of the memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Form {
    Each,
    Fold,
    FoldUntil,
    Find,
    Repeat,
    Scope,
}

/// A loop or a scope. `next` is what is carried after a round, and a scope's result. `stop` is when
/// `FoldUntil`, `Find` and `Repeat` end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Loop {
    pub(crate) form: Form,
    /// Where in the source of the interpreter it is called.
    pub(crate) site: usize,
    pub(crate) items: Items,
    pub(crate) init: Expr,
    pub(crate) body: Vec<Stmt>,
    pub(crate) next: Expr,
    pub(crate) stop: Expr,
}

/// A statement. In conditions on a register and in transactions the register's value is the most
/// recent one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stmt {
    Read(Place),
    Test(Place, Expr),
    Write(Place, Expr),
    CompareAndSwap(Place, Expr, Expr),
    Swap(Place, Expr),
    /// Of the counter at this index.
    FetchAndAdd(Expr, u64),
    /// The new value and the answer.
    Transact(Place, Expr, Expr),
    Choose(u32),
    Wait(Place, Expr, usize),
    Loop(Box<Loop>),
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// A plain `for`.
    For(Items, Vec<Stmt>),
    /// A helper with an argument. Beyond [`DEEPEST`] a call does nothing and has the value 0.
    Call(usize, Expr),
}

/// How deep calls go.
pub(crate) const DEEPEST: usize = 2;

/// A section or a helper: its environment begins with the one value that it is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Routine {
    pub(crate) body: Vec<Stmt>,
    pub(crate) result: Expr,
}

/// An algorithm, and how it is to be checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Program {
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) doorway: Routine,
    pub(crate) waiting: Routine,
    pub(crate) exit: Routine,
    pub(crate) abandon: Option<Routine>,
    pub(crate) killed: Option<Routine>,
    pub(crate) helpers: Vec<Routine>,
    /// What counters hold at first.
    pub(crate) initial: u64,
    /// Whether there are tickets.
    pub(crate) tickets: bool,
    /// The declared gap between tickets.
    pub(crate) gap: u32,
    /// The declared bound of registers.
    pub(crate) bound: Option<u64>,
    pub(crate) passages: Option<u32>,
    /// How many kills, if processes are killed.
    pub(crate) kills: u32,
    pub(crate) crashes: usize,
    pub(crate) workers: usize,
    /// With more states it is skipped.
    pub(crate) states: usize,
}

impl Program {
    /// All routines, sections first.
    pub(crate) fn routines_mut(&mut self) -> impl Iterator<Item = &mut Routine> {
        [&mut self.doorway, &mut self.waiting, &mut self.exit]
            .into_iter()
            .chain(self.abandon.as_mut())
            .chain(self.killed.as_mut())
            .chain(self.helpers.iter_mut())
    }

    /// Calls `f` with every block, those around before those inside.
    pub(crate) fn blocks_mut(&mut self, mut f: impl FnMut(&mut Vec<Stmt>)) {
        self.routines_mut().for_each(|routine| visit(&mut routine.body, &mut f));
    }

    /// Calls `f` with every expression but the parts of others.
    pub(crate) fn exprs_mut(&mut self, mut f: impl FnMut(&mut Expr)) {
        self.routines_mut().for_each(|routine| f(&mut routine.result));
        self.blocks_mut(|block| block.iter_mut().for_each(|stmt| stmt.exprs_mut(&mut f)));
    }

    /// Gives every loop and wait a place of its own in the source, as long as there are enough.
    pub(crate) fn number_sites(&mut self) {
        let mut sites = 0..;
        self.blocks_mut(|block| {
            for stmt in block {
                match stmt {
                    Stmt::Loop(inner) => inner.site = sites.next().unwrap_or(0),
                    Stmt::Wait(_, _, site) => *site = sites.next().unwrap_or(0),
                    _ => {}
                }
            }
        });
    }
}

fn visit(block: &mut Vec<Stmt>, f: &mut impl FnMut(&mut Vec<Stmt>)) {
    f(block);
    for stmt in block {
        match stmt {
            Stmt::Loop(inner) => visit(&mut inner.body, f),
            Stmt::For(_, body) => visit(body, f),
            Stmt::If(_, yes, no) => {
                visit(yes, f);
                visit(no, f);
            }
            _ => {}
        }
    }
}

impl Stmt {
    fn exprs_mut(&mut self, f: &mut impl FnMut(&mut Expr)) {
        match self {
            Self::Read(place) => f(&mut place.index),
            Self::Test(place, e)
            | Self::Write(place, e)
            | Self::Swap(place, e)
            | Self::Wait(place, e, _) => {
                f(&mut place.index);
                f(e);
            }
            Self::CompareAndSwap(place, a, b) | Self::Transact(place, a, b) => {
                f(&mut place.index);
                f(a);
                f(b);
            }
            Self::FetchAndAdd(e, _) | Self::If(e, _, _) | Self::Call(_, e) => f(e),
            Self::Choose(_) => {}
            Self::Loop(inner) => {
                items_expr(&mut inner.items, f);
                f(&mut inner.init);
                f(&mut inner.next);
                f(&mut inner.stop);
            }
            Self::For(items, _) => items_expr(items, f),
        }
    }
}

fn items_expr(items: &mut Items, f: &mut impl FnMut(&mut Expr)) {
    if let Items::UpTo(e) | Items::Side(e) = items {
        f(e);
    }
}
