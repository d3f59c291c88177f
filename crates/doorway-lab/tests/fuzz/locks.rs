//! Locks that random programs start from: some right, some not, all short.

use crate::{
    generate::{constant, recent},
    program::{Expr, Form, Items, Kind, Loop, Place, Program, Routine, Stmt},
};

/// Makes a lock for so many processes.
type Make = fn(usize) -> Program;

/// All of them, and whether they use tickets. The last ones have helpers.
pub(crate) const LOCKS: &[(Make, bool)] = &[
    (flags, false),
    (burns_lamport, false),
    (peterson, false),
    (compare_and_swap, false),
    (numbers, false),
    (swap_or_choose, false),
    (bakery, true),
    (bakery, true),
    (two_scans, false),
    (two_scans_of_which_one_counts, false),
];

/// How many have helpers.
pub(crate) const WITH_HELPERS: usize = 2;

pub(crate) fn empty(n: usize) -> Program {
    let nothing = || Routine { body: Vec::new(), result: recent(0) };
    Program {
        n,
        k: 1,
        doorway: nothing(),
        waiting: nothing(),
        exit: nothing(),
        abandon: None,
        killed: None,
        helpers: Vec::new(),
        initial: 0,
        tickets: false,
        gap: 2,
        bound: None,
        passages: None,
        kills: 0,
        crashes: 0,
        workers: 1,
        states: 500,
    }
}

fn flag(index: Expr) -> Place {
    Place { kind: Kind::Flag, index }
}
fn count(index: u64) -> Place {
    Place { kind: Kind::Count, index: constant(index) }
}
fn ticket(index: Expr) -> Place {
    Place { kind: Kind::Ticket, index }
}
fn not(a: Expr) -> Expr {
    Expr::Not(Box::new(a))
}
fn equal(a: Expr, b: Expr) -> Expr {
    Expr::Equal(Box::new(a), Box::new(b))
}
fn and(a: Expr, b: Expr) -> Expr {
    Expr::And(Box::new(a), Box::new(b))
}
fn combinator(form: Form, items: Items, body: Vec<Stmt>, next: Expr, stop: Expr) -> Stmt {
    Stmt::Loop(Box::new(Loop { form, site: 0, items, init: constant(0), body, next, stop }))
}
fn wait(place: Place, until: Expr) -> Stmt {
    Stmt::Wait(place, until, 0)
}

/// A flag up, and a wait until no other is: exclusive, and stuck if two come.
fn flags(n: usize) -> Program {
    let mut program = empty(n);
    program.doorway.body = vec![Stmt::Write(flag(Expr::Me), constant(1))];
    let down = wait(flag(recent(0)), not(recent(0)));
    program.waiting.body =
        vec![combinator(Form::Each, Items::Others, vec![down], constant(0), constant(0))];
    program.exit.body = vec![Stmt::Write(flag(Expr::Me), constant(0))];
    program
}

/// Burns and Lamport's one-bit lock.
fn burns_lamport(n: usize) -> Program {
    let mut program = flags(n);
    let up = |back| vec![Stmt::Test(flag(recent(back)), recent(0))];
    let scan = combinator(Form::Find, Items::Below, up(0), constant(0), recent(0));
    let retreat = vec![
        Stmt::Write(flag(Expr::Me), constant(0)),
        wait(flag(Expr::Add(Box::new(recent(0)), Box::new(constant(2)))), not(recent(0))),
    ];
    let again = combinator(
        Form::Repeat,
        Items::All,
        vec![
            Stmt::Write(flag(Expr::Me), constant(1)),
            scan,
            Stmt::If(recent(0), retreat, Vec::new()),
        ],
        constant(0),
        not(recent(0)),
    );
    let down = wait(flag(recent(0)), not(recent(0)));
    program.doorway.body = Vec::new();
    program.waiting.body =
        vec![again, combinator(Form::Each, Items::Above, vec![down], constant(0), constant(0))];
    program
}

/// A flag up, and down again if another is up, with one helper for the scans of both sides. One of
/// them looks at nothing in the first process, and one in the last.
fn two_scans(n: usize) -> Program {
    scans(n, not(and(not(recent(0)), not(recent(1)))))
}

/// The same, but only the first scan counts: not exclusive.
fn two_scans_of_which_one_counts(n: usize) -> Program {
    scans(n, recent(1))
}

fn scans(n: usize, taken: Expr) -> Program {
    let mut program = empty(n);
    let body = vec![Stmt::Test(flag(recent(0)), recent(0))];
    let scan = combinator(Form::Find, Items::Side(recent(0)), body, constant(0), recent(0));
    program.helpers = vec![Routine { body: vec![scan], result: recent(0) }];
    let round = vec![
        Stmt::Write(flag(Expr::Me), constant(1)),
        Stmt::Call(0, constant(0)),
        Stmt::Call(0, constant(1)),
        Stmt::If(taken.clone(), vec![Stmt::Write(flag(Expr::Me), constant(0))], Vec::new()),
    ];
    program.waiting.body =
        vec![combinator(Form::Repeat, Items::All, round, constant(0), not(taken))];
    program.exit.body = vec![Stmt::Write(flag(Expr::Me), constant(0))];
    program
}

/// Peterson's lock, for two.
fn peterson(n: usize) -> Program {
    let mut program = empty(n);
    program.doorway.body =
        vec![Stmt::Write(flag(Expr::Me), constant(1)), Stmt::Write(count(0), Expr::Me)];
    let other = flag(Expr::Equal(Box::new(Expr::Me), Box::new(constant(0))));
    let look = vec![Stmt::Test(other, recent(0)), Stmt::Test(count(0), equal(recent(0), Expr::Me))];
    program.waiting.body = vec![combinator(
        Form::Repeat,
        Items::All,
        look,
        constant(0),
        not(and(recent(0), recent(1))),
    )];
    program.exit.body = vec![Stmt::Write(flag(Expr::Me), constant(0))];
    program
}

/// Compare-and-swap until it succeeds.
fn compare_and_swap(n: usize) -> Program {
    let mut program = empty(n);
    let attempt = vec![Stmt::CompareAndSwap(count(0), constant(0), constant(1))];
    program.waiting.body =
        vec![combinator(Form::Repeat, Items::All, attempt, constant(0), not(recent(0)))];
    program.exit.body = vec![Stmt::Write(count(0), constant(0))];
    program
}

/// A ticket lock on numbers modulo 3.
fn numbers(n: usize) -> Program {
    let mut program = empty(n);
    let next = || Expr::Add(Box::new(recent(0)), Box::new(constant(1)));
    program.doorway.body = vec![Stmt::Transact(count(0), next(), recent(0))];
    program.waiting.body = vec![wait(count(1), equal(recent(0), recent(1)))];
    program.waiting.result = recent(0);
    program.exit.body = vec![Stmt::Write(count(1), next())];
    program
}

/// Swaps until the flag was down, or waits first, as a choice says.
fn swap_or_choose(n: usize) -> Program {
    let mut program = empty(n);
    let place = || flag(constant(0));
    let attempt = vec![
        Stmt::Choose(2),
        Stmt::If(recent(0), vec![wait(place(), not(recent(0)))], Vec::new()),
        Stmt::Swap(place(), constant(1)),
    ];
    program.doorway.body = vec![Stmt::Test(count(0), recent(0))];
    program.waiting.body =
        vec![combinator(Form::Repeat, Items::All, attempt, constant(0), not(recent(0)))];
    program.exit.body = vec![Stmt::Write(place(), constant(0))];
    program
}

/// Lamport's Bakery.
fn bakery(n: usize) -> Program {
    let mut program = empty(n);
    let max = Expr::Max(Box::new(recent(2)), Box::new(recent(0)));
    let largest = combinator(
        Form::Fold,
        Items::Others,
        vec![Stmt::Read(ticket(recent(0)))],
        max,
        constant(0),
    );
    program.doorway.body = vec![
        Stmt::Write(flag(Expr::Me), constant(1)),
        largest,
        Stmt::Write(ticket(Expr::Me), Expr::Succ(Box::new(recent(0)))),
        Stmt::Write(flag(Expr::Me), constant(0)),
    ];
    program.doorway.result = Expr::Succ(Box::new(recent(0)));
    // In the round: [mine, 0, item], and the ticket that is looked at.
    let (mine, item, theirs) =
        (|| Box::new(recent(3)), || Box::new(recent(1)), || Box::new(recent(0)));
    let tie = and(Expr::Same(mine(), theirs()), Expr::Less(Box::new(Expr::Me), item()));
    let earlier = Expr::Before(mine(), theirs());
    let either = |a: Expr, b: Expr| not(and(not(a), not(b)));
    let first = either(either(not(*theirs()), earlier), tie);
    let look = vec![wait(flag(recent(0)), not(recent(0))), wait(ticket(recent(0)), first)];
    program.waiting.body =
        vec![combinator(Form::Each, Items::Others, look, constant(0), constant(0))];
    program.exit.body = vec![Stmt::Write(ticket(Expr::Me), Expr::Nth(0))];
    program
}

/// A wait whose rounds begin with a loop that ends at once: it may be given up at its first access
/// all the same.
pub(crate) fn wait_after_an_empty_wait() -> Program {
    let mut program = empty(2);
    let write = || Stmt::Write(count(0), constant(0));
    let nothing = combinator(Form::Repeat, Items::All, Vec::new(), constant(0), constant(1));
    let round = vec![nothing, write()];
    program.doorway.body = vec![write()];
    program.waiting.body =
        vec![combinator(Form::Repeat, Items::All, round, constant(0), constant(1))];
    program.exit.body = vec![write()];
    program.abandon = Some(program.exit.clone());
    program.number_sites();
    program
}
