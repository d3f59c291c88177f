//! Random programs: half of them locks with a few things changed, half of them anything.

use doorway_lab::Random;

use crate::{
    locks,
    program::{Expr, Form, Items, Kind, Loop, Place, Program, Routine, Stmt},
};

/// Kinds of programs that are left out, by the finding that they led to:
/// `DOORWAY_FUZZ_WITHOUT=h1,h7`.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Without {
    /// Loops that are called more than once from one place: helpers and plain `for`.
    pub(crate) h1: bool,
    /// Bounds on registers that are compared with relabelled tickets or with initial values.
    pub(crate) h3: bool,
    /// Gaps that are declared too small.
    pub(crate) h5: bool,
    /// Doorways that wait.
    pub(crate) h4: bool,
    /// Passages that begin with a choice, and choices among more than 255.
    pub(crate) h7: bool,
    /// Waits that may be given up.
    pub(crate) abandon: bool,
}

impl Without {
    pub(crate) fn parse(list: &str) -> Self {
        let has = |name: &str| list.split(',').any(|item| item.trim() == name);
        Self {
            h1: has("h1"),
            h3: has("h3"),
            h4: has("h4"),
            h5: has("h5"),
            h7: has("h7"),
            abandon: has("abandon"),
        }
    }
}

/// Makes programs.
pub(crate) struct Generator {
    random: Random,
    without: Without,
    tickets: bool,
    bounded: bool,
}

/// Shorthands that make programs readable.
pub(crate) fn recent(back: usize) -> Expr {
    Expr::Recent(back)
}
pub(crate) fn constant(number: u64) -> Expr {
    Expr::Const(number)
}

impl Generator {
    pub(crate) fn new(seed: u64, case: u64, without: Without) -> Self {
        Self { random: Random::new(seed, case + 1), without, tickets: false, bounded: false }
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    pub(crate) fn program(&mut self) -> Program {
        let n = if self.one_in(8) { 3 } else { 2 };
        let style = self.below(2);
        let lock =
            self.below(locks::LOCKS.len() - if self.without.h1 { locks::WITH_HELPERS } else { 0 });
        self.tickets = if style == 0 { locks::LOCKS[lock].1 } else { self.one_in(5) };
        self.bounded = self.tickets || self.one_in(4);
        let mut program = if style == 0 { locks::LOCKS[lock].0(n) } else { self.anything(n) };
        program.tickets = self.tickets;
        program.passages = self.bounded.then(|| if n == 3 { 1 } else { 1 + self.below(3) as u32 });
        if style == 0 {
            for _ in 0..self.below(4) {
                self.change(&mut program);
            }
        }
        program.states = if self.one_in(if self.tickets { 3 } else { 8 }) { 3_000 } else { 500 };
        if style == 0 && self.tickets && n == 2 && !self.without.h5 && self.one_in(4) {
            // Tickets come to be that large in three passages each.
            (program.passages, program.states) = (Some(3), 3_000);
            let skipped = std::mem::take(&mut program.waiting.body);
            program.waiting.body = vec![self.unless_above(skipped, 0)];
        }
        if self.one_in(6) && !self.without.abandon {
            program.abandon = Some(match self.below(3) {
                0 => program.exit.clone(),
                _ => Routine { body: self.block(1, 2), result: self.expr(1) },
            });
        }
        if self.one_in(6) {
            let stmt = self.access();
            let stmt = if matches!(stmt, Stmt::Wait(..)) { Stmt::Read(self.place()) } else { stmt };
            program.killed = Some(Routine { body: vec![stmt], result: self.expr(1) });
            program.kills = 1 + self.below(2) as u32;
        }
        program.k = 1 + self.below(n);
        program.crashes = self.below(2);
        program.workers = if self.one_in(16) { 2 } else { 1 };
        program.bound = self.one_in(2).then(|| self.below(7) as u64);
        program.initial = if self.one_in(4) { 1 + self.below(2) as u64 } else { 0 };
        if self.without.h3 {
            program.initial = program.initial.min(program.bound.unwrap_or(u64::MAX));
        }
        program.gap = self.gap(&program);
        program.number_sites();
        program
    }

    /// The gap to declare: one that is wide enough, or any.
    fn gap(&mut self, program: &Program) -> u32 {
        if self.without.h5 || self.one_in(2) { enough(program) } else { 2 }
    }

    fn anything(&mut self, n: usize) -> Program {
        let helpers = if self.without.h1 { 0 } else { self.below(3) };
        let mut program = locks::empty(n);
        program.helpers = (0..helpers).map(|_| self.routine(2)).collect();
        program.doorway = self.routine(2);
        program.waiting = self.routine(3);
        program.exit = self.routine(2);
        program
    }

    fn routine(&mut self, depth: usize) -> Routine {
        Routine { body: self.block(depth, 3), result: self.expr(2) }
    }

    fn block(&mut self, depth: usize, most: usize) -> Vec<Stmt> {
        let len = if self.one_in(12) { 0 } else { 1 + self.below(most) };
        (0..len).map(|_| self.stmt(depth)).collect()
    }

    fn stmt(&mut self, depth: usize) -> Stmt {
        if depth == 0 || self.below(5) < 2 {
            return self.access();
        }
        match self.below(if self.without.h1 { 8 } else { 11 }) {
            0 => Stmt::If(self.expr(2), self.block(depth - 1, 2), self.block(depth - 1, 1)),
            1..=7 => Stmt::Loop(Box::new(self.combinator(depth))),
            8 => Stmt::For(self.items(), self.block(depth - 1, 2)),
            _ => Stmt::Call(self.below(2), self.expr(1)),
        }
    }

    fn combinator(&mut self, depth: usize) -> Loop {
        let forms = [
            Form::Each,
            Form::Fold,
            Form::FoldUntil,
            Form::Find,
            Form::Repeat,
            Form::Repeat,
            Form::Scope,
        ];
        let form = forms[self.below(forms.len())];
        let mut body = self.block(depth - 1, 2);
        if body.is_empty() && !self.one_in(8) {
            body.push(self.access());
        }
        let (items, init) = (self.items(), self.expr(1));
        Loop { form, site: 0, items, init, body, next: self.expr(2), stop: self.expr(2) }
    }

    fn items(&mut self) -> Items {
        match self.below(7) {
            6 => Items::Side(self.expr(1)),
            0 => Items::All,
            1 => Items::Below,
            2 => Items::Above,
            3 => Items::Others,
            4 => Items::UpTo(constant(self.below(3) as u64)),
            _ => Items::UpTo(self.expr(1)),
        }
    }

    fn place(&mut self) -> Place {
        let kind = match self.below(if self.tickets { 5 } else { 4 }) {
            0 | 1 => Kind::Flag,
            2 | 3 => Kind::Count,
            _ => Kind::Ticket,
        };
        let index = match self.below(4) {
            0 => constant(self.below(2) as u64),
            1 => Expr::Me,
            _ => recent(self.below(3)),
        };
        Place { kind, index }
    }

    fn access(&mut self) -> Stmt {
        let place = self.place();
        match self.below(16) {
            0..=2 => Stmt::Read(place),
            3 | 4 => Stmt::Test(place, self.expr(2)),
            5..=8 => Stmt::Write(place, self.expr(2)),
            9 => Stmt::CompareAndSwap(place, self.expr(1), self.expr(2)),
            10 => Stmt::Swap(place, self.expr(1)),
            11 => {
                let add = if self.bounded && self.one_in(2) { 1 } else { 1 << 63 };
                Stmt::FetchAndAdd(place.index, add)
            }
            12 => Stmt::Transact(place, self.expr(2), self.expr(2)),
            13 => Stmt::Choose(if !self.without.h7 && self.one_in(200) { 300 } else { 2 }),
            _ => Stmt::Wait(place, self.expr(2), 0),
        }
    }

    fn expr(&mut self, depth: usize) -> Expr {
        if self.tickets && self.one_in(3) {
            return self.about_tickets(depth);
        }
        match self.below(if depth == 0 { 4 } else { 9 }) {
            0 => constant(self.below(3) as u64),
            1 => Expr::Me,
            2 | 3 | 8 => recent(self.below(4)),
            4 => Expr::Not(Box::new(self.expr(depth - 1))),
            5 => Expr::Add(Box::new(self.expr(depth - 1)), Box::new(constant(1))),
            6 => Expr::Equal(Box::new(self.expr(depth - 1)), Box::new(self.expr(depth - 1))),
            _ => Expr::Less(Box::new(self.expr(depth - 1)), Box::new(self.expr(depth - 1))),
        }
    }

    fn about_tickets(&mut self, depth: usize) -> Expr {
        let nth = if self.without.h5 || self.one_in(2) { 1 } else { 5 };
        match self.below(if depth == 0 { 3 } else { 8 }) {
            0 => Expr::Nth(self.below(nth + 1) as u32),
            1 | 2 => recent(self.below(4)),
            3 | 4 => Expr::Succ(Box::new(self.expr(depth - 1))),
            5 => Expr::Max(Box::new(self.expr(depth - 1)), Box::new(self.expr(depth - 1))),
            6 => Expr::Before(Box::new(self.expr(depth - 1)), Box::new(self.expr(depth - 1))),
            _ => Expr::Same(Box::new(self.expr(depth - 1)), Box::new(self.expr(depth - 1))),
        }
    }

    /// Does something unless a ticket is above some number.
    fn unless_above(&mut self, block: Vec<Stmt>, back: usize) -> Stmt {
        let number = Expr::Nth(1 + self.below(5) as u32);
        Stmt::If(Expr::Before(Box::new(number), Box::new(recent(back))), Vec::new(), block)
    }

    /// Changes one thing.
    fn change(&mut self, program: &mut Program) {
        let mut blocks = 0;
        program.blocks_mut(|_| blocks += 1);
        let chosen = self.below(blocks);
        let mut helper = None;
        let can_call = !self.without.h1;
        let helpers = program.helpers.len();
        let mut number = 0;
        program.blocks_mut(|block| {
            number += 1;
            if number - 1 != chosen {
                return;
            }
            let at = self.below(block.len() + 1);
            match (self.below(if self.tickets { 12 } else { 9 }), block.get(at).cloned()) {
                (0, Some(_)) => drop(block.remove(at)),
                (1, Some(stmt)) => block.insert(at, stmt),
                (2, Some(_)) => block[at] = self.stmt(2),
                (3, Some(stmt)) => {
                    let form = if self.one_in(2) { Form::Scope } else { Form::Each };
                    let mut outer = self.combinator(1);
                    (outer.form, outer.body) = (form, vec![stmt]);
                    block[at] = Stmt::Loop(Box::new(outer));
                }
                (4, Some(stmt)) if can_call => block[at] = Stmt::For(self.items(), vec![stmt]),
                // The statement becomes a helper that is called twice.
                (5, Some(stmt)) if can_call => {
                    helper = Some(Routine { body: vec![stmt], result: recent(0) });
                    block[at] = Stmt::Call(helpers, recent(0));
                    block.insert(at, Stmt::Call(helpers, self.expr(1)));
                }
                (6, Some(Stmt::Loop(mut inner))) => {
                    inner.items = self.items();
                    block[at] = Stmt::Loop(inner);
                }
                (9.., Some(stmt)) if !self.without.h5 => {
                    let back = self.below(3);
                    block[at] = self.unless_above(vec![stmt], back);
                }
                _ => block.insert(at, self.stmt(2)),
            }
        });
        program.helpers.extend(helper);
    }
}

/// A gap that is wide enough: a ticket can be met again by at most as many successors as there are
/// in the text, times the rounds of a loop.
pub(crate) fn enough(program: &Program) -> u32 {
    let mut successors = 0;
    program.clone().exprs_mut(|e| count_successors(e, &mut successors));
    (1 + 3 * successors).clamp(2, 12)
}

fn count_successors(e: &Expr, count: &mut u32) {
    match e {
        Expr::Nth(n) => *count += n,
        Expr::Succ(a) => {
            *count += 1;
            count_successors(a, count);
        }
        Expr::Not(a) => count_successors(a, count),
        Expr::Add(a, b)
        | Expr::Equal(a, b)
        | Expr::Less(a, b)
        | Expr::And(a, b)
        | Expr::Max(a, b)
        | Expr::Before(a, b)
        | Expr::Same(a, b) => {
            count_successors(a, count);
            count_successors(b, count);
        }
        Expr::Const(_) | Expr::Me | Expr::Recent(_) => {}
    }
}
