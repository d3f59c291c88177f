//! Programs as algorithms: the lab's own memory runs them, through the combinators that any
//! algorithm calls.

use std::{
    cell::RefCell,
    ops::ControlFlow::{Break, Continue},
    sync::Arc,
};

use doorway_core::{
    Algorithm, Array, Claims, Coins, CompareAndSwap, Exclusion, FetchAndAdd, Homes, Layout,
    Primitive, Problem, Register, RegisterKind, Registers, Rmr, Size, Swap, Ticket, Transactions,
    Unfit, Value,
};
use doorway_lab::{Subject, build};

use crate::program::{
    COUNTERS, DEEPEST, Expr, Form, Kind, Loop, Place, Program, Routine, Stmt, Val,
};

thread_local! {
    /// The program that is built next: algorithms are types, and `new` is told the size alone.
    static NEXT: RefCell<Option<Arc<Program>>> = const { RefCell::new(None) };
}

/// Declared bound and gap travel in the number of sessions, which a lock without sessions does not
/// look at.
const BOUNDS: usize = 100;

/// The program, to run in the lab.
pub(crate) fn subject(program: &Arc<Program>) -> Box<dyn Subject> {
    NEXT.set(Some(program.clone()));
    let bound = program.bound.map_or(0, |bound| bound as usize + 1);
    let size = Size { n: program.n, k: program.k, sessions: bound + BOUNDS * program.gap as usize };
    let mut subject =
        build::<Interpreter, _, _, _>(size, None, program.abandon.is_some()).expect("programs fit");
    if program.killed.is_some() {
        assert!(subject.let_kill(program.kills), "the program can be killed");
    }
    subject
}

struct Interpreter {
    program: Arc<Program>,
    flags: Array<bool>,
    counts: Array<u64>,
    tickets: Option<Array<Ticket>>,
}

impl Algorithm for Interpreter {
    const NAME: &'static str = "fuzz";
    const CLAIMS: Claims = Claims {
        problem: Problem::KExclusion,
        paper: "none",
        figure: "none",
        primitives: &[Primitive::ReadWrite],
        properties: &[],
        refuted: &[],
        invariants: &[],
        registers: RegisterKind::Atomic,
        crashes: |_| 0,
        bound: Some(|size| {
            (size.sessions % BOUNDS).checked_sub(1).map_or(u64::MAX, |bound| bound as u64)
        }),
        gap: |size| (size.sessions / BOUNDS) as u32,
        values: &[],
        abandons: true,
        rmr: Rmr { cc: "", dsm: "" },
        min_n: 1,
        max_n: None,
        mutants: &[],
    };

    fn new(layout: &mut Layout, size: Size) -> Result<Self, Unfit> {
        let program = NEXT.with_borrow(|next| next.clone()).expect("a program was handed over");
        Ok(Self {
            flags: layout.array("Flag", size.n, Homes::Nobody, false),
            counts: layout.array("Count", COUNTERS, Homes::Nobody, program.initial),
            tickets: program
                .tickets
                .then(|| layout.array("Ticket", size.n, Homes::Nobody, Ticket::ZERO)),
            program,
        })
    }
}

/// The types of registers, as values of the environment.
trait Typed: Value {
    fn of(value: Val) -> Self;
    fn val(self) -> Val;
}

impl Typed for bool {
    fn of(value: Val) -> Self {
        value.is_true()
    }
    fn val(self) -> Val {
        Val::Num(u64::from(self))
    }
}

impl Typed for u64 {
    fn of(value: Val) -> Self {
        value.num()
    }
    fn val(self) -> Val {
        Val::Num(self)
    }
}

impl Typed for Ticket {
    fn of(value: Val) -> Self {
        value.ticket()
    }
    fn val(self) -> Val {
        Val::Ticket(self)
    }
}

/// The environment with one more value.
fn with(env: &[Val], value: Val) -> Vec<Val> {
    let mut env = env.to_vec();
    env.push(value);
    env
}

/// Where a process is: its number, and how deep in calls.
#[derive(Clone, Copy)]
struct Here {
    p: usize,
    deep: usize,
}

trait Full: Coins + Registers + CompareAndSwap + Swap + FetchAndAdd + Transactions {}
impl<M: Coins + Registers + CompareAndSwap + Swap + FetchAndAdd + Transactions> Full for M {}

impl Interpreter {
    fn routine<M: Full>(
        &self,
        m: &mut M,
        here: Here,
        routine: &Routine,
        given: Val,
    ) -> Result<Val, M::Halt> {
        let mut env = vec![given];
        self.block(m, here, &routine.body, &mut env)?;
        Ok(routine.result.eval(&env, here.p))
    }

    fn block<M: Full>(
        &self,
        m: &mut M,
        here: Here,
        block: &[Stmt],
        env: &mut Vec<Val>,
    ) -> Result<(), M::Halt> {
        let Here { p, deep } = here;
        for stmt in block {
            match stmt {
                Stmt::Read(place)
                | Stmt::Test(place, _)
                | Stmt::Write(place, _)
                | Stmt::CompareAndSwap(place, _, _)
                | Stmt::Swap(place, _)
                | Stmt::Transact(place, _, _)
                | Stmt::Wait(place, _, _) => {
                    let answer = self.access(m, p, place, stmt, env)?;
                    env.extend(answer);
                }
                Stmt::FetchAndAdd(index, add) => {
                    let at = Place { kind: Kind::Count, index: index.clone() }.at(
                        env,
                        p,
                        self.program.n,
                    );
                    env.push(Val::Num(m.fetch_and_add(self.counts.at(at), *add)?));
                }
                Stmt::Choose(outcomes) => env.push(Val::Num(u64::from(m.choose(*outcomes)?))),
                Stmt::Loop(inner) => {
                    let result = self.placed(m, here, inner, env)?;
                    env.push(result);
                }
                Stmt::If(condition, yes, no) => {
                    let branch = if condition.eval(env, p).is_true() { yes } else { no };
                    self.block(m, here, branch, &mut env.clone())?;
                }
                Stmt::For(items, body) => {
                    for i in items.list(env, p, self.program.n) {
                        self.block(m, here, body, &mut with(env, Val::Num(i as u64)))?;
                    }
                }
                Stmt::Call(helper, argument) => {
                    let given = argument.eval(env, p);
                    env.push(match self.program.helpers.get(*helper) {
                        Some(routine) if deep < DEEPEST => {
                            self.routine(m, Here { p, deep: deep + 1 }, routine, given)?
                        }
                        _ => Val::Num(0),
                    });
                }
            }
        }
        Ok(())
    }

    fn access<M: Full>(
        &self,
        m: &mut M,
        p: usize,
        place: &Place,
        stmt: &Stmt,
        env: &[Val],
    ) -> Result<Option<Val>, M::Halt> {
        let at = place.at(env, p, self.program.n);
        match (place.kind, &self.tickets) {
            (Kind::Flag, _) => typed(m, p, self.flags.at(at), stmt, env),
            (Kind::Ticket, Some(tickets)) => typed(m, p, tickets.at(at), stmt, env),
            _ => typed(m, p, self.counts.at(at % COUNTERS), stmt, env),
        }
    }

    /// Calls the combinator from the place in the source that the loop is said to be at.
    fn placed<M: Full>(
        &self,
        m: &mut M,
        here: Here,
        l: &Loop,
        env: &[Val],
    ) -> Result<Val, M::Halt> {
        match l.site % 16 {
            0 => self.combinator(m, here, l, env),
            1 => self.combinator(m, here, l, env),
            2 => self.combinator(m, here, l, env),
            3 => self.combinator(m, here, l, env),
            4 => self.combinator(m, here, l, env),
            5 => self.combinator(m, here, l, env),
            6 => self.combinator(m, here, l, env),
            7 => self.combinator(m, here, l, env),
            8 => self.combinator(m, here, l, env),
            9 => self.combinator(m, here, l, env),
            10 => self.combinator(m, here, l, env),
            11 => self.combinator(m, here, l, env),
            12 => self.combinator(m, here, l, env),
            13 => self.combinator(m, here, l, env),
            14 => self.combinator(m, here, l, env),
            _ => self.combinator(m, here, l, env),
        }
    }

    #[track_caller]
    fn combinator<M: Full>(
        &self,
        m: &mut M,
        here: Here,
        l: &Loop,
        env: &[Val],
    ) -> Result<Val, M::Halt> {
        let p = here.p;
        let items = l.items.list(env, p, self.program.n);
        let init = l.init.eval(env, p);
        // One round: what is next, and whether to stop.
        let round = |m: &mut M, carried: Val, item: usize| -> Result<(Val, bool), M::Halt> {
            let mut env = with(&with(env, carried), Val::Num(item as u64));
            self.block(m, here, &l.body, &mut env)?;
            Ok((l.next.eval(&env, p), l.stop.eval(&env, p).is_true()))
        };
        match l.form {
            Form::Each => {
                m.each(items, |m, i| round(m, Val::Num(0), i).map(|_| ()))?;
                Ok(Val::Num(0))
            }
            Form::Fold => m.fold(items, init, |m, carried, i| Ok(round(m, carried, i)?.0)),
            Form::FoldUntil => m.fold_until(items, init, |m, carried, i| {
                let (next, stop) = round(m, carried, i)?;
                Ok(if stop { Break(next) } else { Continue(next) })
            }),
            Form::Find => {
                let found = m.find(items, |m, i| Ok(round(m, Val::Num(0), i)?.1))?;
                Ok(Val::Num(found.map_or(0, |i| i as u64 + 1)))
            }
            Form::Repeat => m.repeat(init, |m, carried| {
                let (next, stop) = round(m, carried, 0)?;
                Ok(if stop { Break(next) } else { Continue(next) })
            }),
            Form::Scope => m.scope(|m| Ok(round(m, Val::Num(0), 0)?.0)),
        }
    }
}

/// One access to a register, or one wait; the answer, if it has one.
fn typed<M: Full, T: Typed>(
    m: &mut M,
    p: usize,
    register: Register<T>,
    stmt: &Stmt,
    env: &[Val],
) -> Result<Option<Val>, M::Halt> {
    let eval = |e: &Expr| T::of(e.eval(env, p));
    let asks = |e: &Expr, value: T| e.eval(&with(env, value.val()), p);
    Ok(match stmt {
        Stmt::Read(_) => Some(m.read(register)?.val()),
        Stmt::Test(_, e) => {
            Some(Val::Num(u64::from(m.test(register, |value| asks(e, value).is_true())?)))
        }
        Stmt::Write(_, e) => {
            m.write(register, eval(e))?;
            None
        }
        Stmt::CompareAndSwap(_, old, new) => {
            Some(m.compare_and_swap(register, eval(old), eval(new))?.val())
        }
        Stmt::Swap(_, new) => Some(m.swap(register, eval(new))?.val()),
        Stmt::Transact(_, next, answer) => Some(m.transact(register, |value: T| {
            (T::of(asks(next, value.clone())), asks(answer, value))
        })?),
        Stmt::Wait(_, e, site) => {
            waiting_at(m, *site, register, |value| asks(e, value).is_true())?;
            None
        }
        _ => unreachable!("no access to a register"),
    })
}

/// Waits, from the place in the source that the wait is said to be at.
fn waiting_at<M: Full, T: Typed>(
    m: &mut M,
    site: usize,
    register: Register<T>,
    until: impl Fn(T) -> bool + Sync,
) -> Result<(), M::Halt> {
    match site % 8 {
        0 => m.wait(register, until),
        1 => m.wait(register, until),
        2 => m.wait(register, until),
        3 => m.wait(register, until),
        4 => m.wait(register, until),
        5 => m.wait(register, until),
        6 => m.wait(register, until),
        _ => m.wait(register, until),
    }
}

impl<M: Full> Exclusion<M> for Interpreter {
    type Request = ();
    type Pass = Val;
    type Keep = Val;

    fn keep(&self, _: usize) -> Val {
        Val::Num(0)
    }

    fn doorway(&self, m: &mut M, p: usize, (): (), keep: Val) -> Result<Val, M::Halt> {
        self.routine(m, Here { p, deep: 0 }, &self.program.doorway, keep)
    }

    fn waiting(&self, m: &mut M, p: usize, pass: Val) -> Result<Val, M::Halt> {
        self.routine(m, Here { p, deep: 0 }, &self.program.waiting, pass)
    }

    fn exit(&self, m: &mut M, p: usize, pass: Val) -> Result<Val, M::Halt> {
        self.routine(m, Here { p, deep: 0 }, &self.program.exit, pass)
    }

    fn abandon(&self, m: &mut M, p: usize, pass: Val) -> Option<Result<Val, M::Halt>> {
        let routine = self.program.abandon.as_ref()?;
        Some(self.routine(m, Here { p, deep: 0 }, routine, pass))
    }

    fn killed(&self, m: &mut M, p: usize) -> Option<Result<Val, M::Halt>> {
        let routine = self.program.killed.as_ref()?;
        Some(self.routine(m, Here { p, deep: 0 }, routine, Val::Num(0)))
    }
}
