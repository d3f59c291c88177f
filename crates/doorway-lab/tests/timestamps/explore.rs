//! Every interleaving of a few operations. What has happened is part of a state as far as P1 and P2
//! can still depend on it: which Label each register's label stems from, and which Labels have to
//! be before which.

use std::panic::{AssertUnwindSafe, catch_unwind};

use doorway_core::{digits::Digits, layout::Erased};
use doorway_lab::{Choice, Kind, LocalState, Random, Region, Subject};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    clock::{Op, Role, is_fresh, meaning, role},
    past::Past,
    random::digits,
};

/// A state: what registers hold and where processes are, by number; what each has still to do; and
/// what has happened.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State<P> {
    values: Vec<u16>,
    locals: Vec<u32>,
    left: Vec<u8>,
    past: P,
}

/// What comes of a step, as learned from the code.
#[derive(Clone)]
struct Learned {
    local: u32,
    kind: Kind,
    written: Option<u16>,
    /// The operation is over, and a Scan returned this.
    over: Option<Vec<usize>>,
}

/// What was explored.
#[derive(Debug)]
pub(crate) struct Explored {
    pub(crate) states: usize,
    pub(crate) violation: Option<String>,
    /// Whether there was no state left to explore.
    pub(crate) complete: bool,
}

/// What each process is to do: its operations in this order.
pub(crate) type Program<'a> = &'a [&'a [Op]];

pub(crate) struct Explorer<'s> {
    subject: &'s dyn Subject,
    roles: Vec<Role>,
    /// The cell of each register.
    cells: FxHashMap<usize, usize>,
    values: Vec<Vec<Box<dyn Erased>>>,
    locals: Vec<LocalState>,
    numbers: FxHashMap<LocalState, u32>,
    learned: FxHashMap<(usize, u32, Option<Op>, u16), Learned>,
    /// The register that process `p` will access.
    next: FxHashMap<(usize, u32, Option<Op>), usize>,
}

impl<'s> Explorer<'s> {
    pub(crate) fn new(subject: &'s dyn Subject) -> Self {
        let cells = subject.layout().cells();
        Self {
            subject,
            roles: cells.clone().map(|cell| role(&cell.name())).collect(),
            cells: cells.clone().enumerate().map(|(i, cell)| (cell.id(), i)).collect(),
            values: cells.map(|cell| vec![cell.init.copy()]).collect(),
            locals: Vec::new(),
            numbers: FxHashMap::default(),
            learned: FxHashMap::default(),
            next: FxHashMap::default(),
        }
    }

    fn local(&mut self, local: LocalState) -> u32 {
        if let Some(&number) = self.numbers.get(&local) {
            return number;
        }
        let number = self.locals.len() as u32;
        self.locals.push(local.clone());
        self.numbers.insert(local, number);
        number
    }

    fn value(&mut self, register: usize, value: Box<dyn Erased>) -> u16 {
        let values = &mut self.values[register];
        let at = values.iter().position(|known| known.same(&*value)).unwrap_or_else(|| {
            values.push(value);
            values.len() - 1
        });
        at as u16
    }

    /// Explores all runs of the program, after a random prologue of so many steps in which
    /// everybody does what it likes.
    pub(crate) fn run<P: Past>(
        &mut self,
        program: Program<'_>,
        prologue: u64,
        seed: u64,
        max_states: usize,
    ) -> Explored {
        let start =
            match catch_unwind(AssertUnwindSafe(|| self.start::<P>(program, prologue, seed))) {
                Ok(start) => start,
                Err(_) => {
                    return Explored {
                        states: 0,
                        violation: Some("the prologue panics".into()),
                        complete: false,
                    };
                }
            };
        let mut seen = FxHashSet::default();
        let mut stack = vec![start.clone()];
        seen.insert(start);
        let mut violation = None;
        while let Some(state) = stack.pop() {
            for p in 0..program.len() {
                let stepped = catch_unwind(AssertUnwindSafe(|| self.step(&state, p, program)))
                    .unwrap_or_else(|_| Some(Err("labels go round in a circle".into())));
                match stepped {
                    Some(Err(why)) => violation = Some(why),
                    Some(Ok(next)) if !seen.contains(&next) => {
                        stack.push(next.clone());
                        seen.insert(next);
                    }
                    _ => {}
                }
            }
            if violation.is_some() || seen.len() > max_states {
                return Explored { states: seen.len(), violation, complete: false };
            }
        }
        Explored { states: seen.len(), violation, complete: true }
    }

    /// Where the program starts: after the prologue, in which each process ends with no operation
    /// going on.
    fn start<P: Past>(&mut self, program: Program<'_>, prologue: u64, seed: u64) -> State<P> {
        let n = program.len();
        let locals = (0..n).map(|p| self.local(self.subject.start(p))).collect();
        let values = vec![0; self.roles.len()];
        let mut state = State { values, locals, left: vec![0; n], past: P::new(n) };
        let mut random = Random::new(seed, 0);
        let mut steps = 0;
        loop {
            let idle = |p: usize, state: &State<P>| {
                self.locals[state.locals[p] as usize].region() == Region::Remainder
            };
            let able: Vec<usize> =
                (0..n).filter(|&p| steps < prologue || !idle(p, &state)).collect();
            let Some(&p) = able.get(random.below(able.len().max(1) as u64) as usize) else { break };
            let op = if random.below(2) == 0 { Op::Label } else { Op::Scan };
            state.left[p] = 1;
            state = self.step_of(&state, p, op).expect("a prologue breaks no promise");
            steps += 1;
        }
        state.left = program.iter().map(|ops| ops.len() as u8).collect();
        state.past.tidy();
        state
    }

    fn step<P: Past>(
        &mut self,
        state: &State<P>,
        p: usize,
        program: Program<'_>,
    ) -> Option<Result<State<P>, String>> {
        let left = state.left[p] as usize;
        let ops = program[p];
        // `left` goes down when an operation ends.
        (left > 0).then(|| self.step_of(state, p, ops[ops.len() - left]))
    }

    /// One step of `p`, which begins or goes on with this operation.
    fn step_of<P: Past>(&mut self, state: &State<P>, p: usize, op: Op) -> Result<State<P>, String> {
        let local = state.locals[p];
        let begins = self.locals[local as usize].region() == Region::Remainder;
        let asks = begins.then_some(op);
        let register = self.register(p, local, asks);
        let value = state.values[register];
        let Learned { local, kind, written, over } = self.learn(p, local, asks, register, value);
        let mut next = state.clone();
        next.locals[p] = local;
        if let Some(written) = written {
            next.values[register] = written;
        }
        if begins {
            next.past.begin(p, op);
        }
        let fresh = match self.roles[register] {
            Role::Saved(q, _) if kind == Kind::Read => {
                let shown = self
                    .roles
                    .iter()
                    .position(|role| *role == Role::Shown(p))
                    .expect("everybody shows colours");
                is_fresh(self.digits(&next, register), self.digits(&next, shown), q)
            }
            _ => false,
        };
        let what =
            meaning(self.roles[register], kind, next.past.op(p), |q| next.past.took(p, q), fresh);
        next.past.observe(p, what);
        if let Some(ranks) = over {
            next.left[p] -= 1;
            next.past.end(p, &ranks)?;
        }
        next.past.tidy();
        Ok(next)
    }

    fn digits<P>(&self, state: &State<P>, register: usize) -> &Digits {
        digits(&*self.values[register][state.values[register] as usize])
    }

    fn register(&mut self, p: usize, local: u32, asks: Option<Op>) -> usize {
        if let Some(&register) = self.next.get(&(p, local, asks)) {
            return register;
        }
        let moves = self.subject.moves(p, &self.locals[local as usize], true).expect("it runs");
        let choice = choice(asks);
        let access =
            moves.iter().find(|step| step.choice == choice).expect("it can do that").access;
        let register = self.cells[&access.register];
        self.next.insert((p, local, asks), register);
        register
    }

    fn learn(
        &mut self,
        p: usize,
        local: u32,
        asks: Option<Op>,
        register: usize,
        value: u16,
    ) -> Learned {
        let key = (p, local, asks, value);
        if let Some(learned) = self.learned.get(&key) {
            return learned.clone();
        }
        let from = self.locals[local as usize].clone();
        let moves = self.subject.moves(p, &from, true).expect("it runs");
        let kind = moves
            .iter()
            .find(|step| step.choice == choice(asks))
            .expect("it can do that")
            .access
            .kind;
        let held = &*self.values[register][value as usize];
        let stepped = self.subject.step(p, &from, choice(asks), Some(held), true).expect("it runs");
        let written = stepped.effect.map(|effect| self.value(register, effect));
        let (local, over) = if stepped.local.region() == Region::Critical {
            // The result is written down in the same step, as nobody looks.
            let result = self
                .roles
                .iter()
                .position(|role| *role == Role::Result)
                .expect("there is a result");
            let held = &*self.values[result][0];
            let done = self
                .subject
                .step(p, &stepped.local, Choice::Go, Some(held), true)
                .expect("it runs");
            let ranks = digits(&*done.effect.expect("it writes"))
                .iter()
                .map(|rank| rank as usize)
                .collect();
            (done.local, Some(ranks))
        } else {
            (stepped.local, None)
        };
        let local = self.local(local);
        let learned = Learned { local, kind, written, over };
        self.learned.insert(key, learned.clone());
        learned
    }
}

fn choice(asks: Option<Op>) -> Choice {
    asks.map_or(Choice::Go, |op| Choice::Request(op as u32))
}
