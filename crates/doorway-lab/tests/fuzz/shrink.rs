//! Makes a failing program smaller, as long as it fails in the same way.

use crate::program::{Expr, Items, Program, Stmt};

/// Tries every simpler program until none fails any more.
pub(crate) fn shrink(mut program: Program, fails: impl Fn(&Program) -> bool) -> Program {
    loop {
        let simpler = simpler(&program).into_iter().find(|candidate| fails(candidate));
        match simpler {
            Some(candidate) => program = candidate,
            None => return program,
        }
    }
}

/// Every program with one thing left out or made simpler, the largest changes first.
fn simpler(program: &Program) -> Vec<Program> {
    let mut all = Vec::new();
    let mut propose = |change: &dyn Fn(&mut Program)| {
        let mut candidate = program.clone();
        change(&mut candidate);
        if candidate != *program {
            all.push(candidate);
        }
    };
    propose(&|p| p.killed = None);
    propose(&|p| p.abandon = None);
    propose(&|p| p.n = 2);
    propose(&|p| p.k = p.k.min(p.n));
    propose(&|p| p.k = 1);
    propose(&|p| drop(p.helpers.pop()));
    propose(&|p| p.workers = 1);
    propose(&|p| p.crashes = 0);
    propose(&|p| p.bound = None);
    propose(&|p| p.initial = 0);
    propose(&|p| p.kills = p.kills.min(1));
    propose(&|p| p.tickets = false);
    propose(&|p| p.passages = p.passages.map(|most| (most - 1).max(1)));
    let mut lengths = Vec::new();
    program.clone().blocks_mut(|block| lengths.push(block.len()));
    let mut edit = |number: usize, change: &dyn Fn(&mut Vec<Stmt>)| {
        let mut at = 0;
        let mut candidate = program.clone();
        candidate.blocks_mut(|block| {
            if at == number {
                change(block);
            }
            at += 1;
        });
        if candidate != *program {
            all.push(candidate);
        }
    };
    for (number, &length) in lengths.iter().enumerate() {
        for at in (0..length).rev() {
            edit(number, &|block| drop(block.remove(at)));
        }
    }
    for (number, &length) in lengths.iter().enumerate() {
        for at in 0..length {
            // What is inside instead of what is around it.
            edit(number, &|block| {
                let inside = match &block[at] {
                    Stmt::Loop(inner) => inner.body.clone(),
                    Stmt::For(_, body) => body.clone(),
                    Stmt::If(_, yes, no) => [&yes[..], no].concat(),
                    _ => return,
                };
                block.splice(at..=at, inside);
            });
            edit(number, &|block| match &mut block[at] {
                Stmt::Loop(inner) if !matches!(inner.items, Items::UpTo(_)) => {
                    inner.items = Items::UpTo(Expr::Const(2))
                }
                Stmt::For(items, _) if !matches!(items, Items::UpTo(_)) => {
                    *items = Items::UpTo(Expr::Const(2))
                }
                _ => {}
            });
            edit(number, &|block| match block[at].clone() {
                Stmt::Swap(place, e)
                | Stmt::CompareAndSwap(place, _, e)
                | Stmt::Transact(place, e, _) => {
                    block[at] = Stmt::Write(place, e);
                }
                Stmt::Test(place, _) => block[at] = Stmt::Read(place),
                _ => {}
            });
        }
    }
    let mut exprs = 0;
    program.clone().exprs_mut(|_| exprs += 1);
    for number in 0..exprs {
        let mut originals = Vec::new();
        program.clone().exprs_mut(|e| originals.push(e.clone()));
        for simple in simpler_exprs(&originals[number]) {
            let mut at = 0;
            let mut candidate = program.clone();
            candidate.exprs_mut(|e| {
                if at == number {
                    *e = simple.clone();
                }
                at += 1;
            });
            all.push(candidate);
        }
    }
    all
}

fn simpler_exprs(e: &Expr) -> Vec<Expr> {
    match e {
        Expr::Const(0) => Vec::new(),
        Expr::Const(_) => vec![Expr::Const(0)],
        Expr::Me | Expr::Recent(_) | Expr::Nth(_) => vec![Expr::Const(0), Expr::Const(1)],
        Expr::Not(a) | Expr::Succ(a) => vec![Expr::Const(0), Expr::Const(1), (**a).clone()],
        Expr::Add(a, b)
        | Expr::Equal(a, b)
        | Expr::Less(a, b)
        | Expr::And(a, b)
        | Expr::Max(a, b)
        | Expr::Before(a, b)
        | Expr::Same(a, b) => vec![Expr::Const(0), Expr::Const(1), (**a).clone(), (**b).clone()],
    }
}
