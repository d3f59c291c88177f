//! The reference: a naive explorer of programs, to compare the checker with. It shares no code with
//! the lab.
//!
//! What a process is and forgets is in `process.rs`. States are whole values in one hash map,
//! explored breadth first by one thread: no numbers for values, no packing, no relabelling. What
//! holds of the graph is decided in `decide.rs`.

use std::{cell::Cell, rc::Rc};

use doorway_core::{Session, Ticket};
use doorway_lab::Region;
use rustc_hash::FxHashMap;

use crate::{
    process::{Machine, Process, Refused, Section, may_abandon, next},
    program::{COUNTERS, Expr, Kind, Place, Program, Stmt, Val},
};

#[derive(Clone, PartialEq, Eq, Hash)]
struct State<'p> {
    registers: Vec<Val>,
    processes: Vec<Rc<Process<'p>>>,
    /// Passages left, if they are bounded.
    left: Vec<u32>,
    kills: u32,
}

/// A step to another state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) p: usize,
    pub(crate) to: usize,
    /// The process has given up its wait, or has been killed.
    pub(crate) gives_up: bool,
}

/// All reachable states, in the order in which they were found.
#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) depth: Vec<usize>,
    pub(crate) regions: Vec<Vec<Region>>,
    /// What each process has asked for; nothing in the remainder, and where there are no sessions.
    pub(crate) sessions: Vec<Vec<Session>>,
    pub(crate) edges: Vec<Vec<Edge>>,
    /// The largest number in a register of each state.
    pub(crate) largest: Vec<u64>,
    /// A round of a loop made no access, which the lab may refuse.
    pub(crate) idle: bool,
    /// A passage can begin with a choice.
    pub(crate) begins_with_choice: bool,
    /// Dying or giving up can begin with a choice, which the lab may refuse.
    pub(crate) ends_with_choice: bool,
}

/// Explores the program; at most so many states.
pub(crate) fn explore(
    program: &Program,
    passages: Option<u32>,
    most: usize,
) -> Result<Graph, Refused> {
    let machine =
        Machine { program, idle: Cell::new(false), chooses: [Cell::new(false), Cell::new(false)] };
    let mut registers = vec![Val::Num(0); program.n];
    registers.extend([Val::Num(program.initial); COUNTERS]);
    registers.extend(
        program.tickets.then(|| vec![Val::Ticket(Ticket::ZERO); program.n]).into_iter().flatten(),
    );
    let start = Rc::new(Process {
        section: Section::Remainder,
        fresh: true,
        held: Val::Num(0),
        stack: Vec::new(),
    });
    let processes = vec![start; program.n];
    let mut states = vec![State {
        registers,
        processes,
        left: vec![passages.unwrap_or(1); program.n],
        kills: 0,
    }];
    let mut ids = FxHashMap::from_iter([(states[0].clone(), 0)]);
    let mut graph = Graph { depth: vec![0], ..Graph::default() };
    while graph.edges.len() < states.len() {
        let from = graph.edges.len();
        let state = states[from].clone();
        let mut edges = Vec::new();
        for p in 0..program.n {
            for (to, gives_up) in machine.steps(&state, p, passages.is_some())? {
                let id = *ids.entry(to).or_insert_with_key(|to| {
                    states.push(to.clone());
                    graph.depth.push(graph.depth[from] + 1);
                    states.len() - 1
                });
                edges.push(Edge { p, to: id, gives_up });
            }
        }
        if states.len() > most {
            return Err(Refused::TooMany);
        }
        graph.edges.push(edges);
        graph.regions.push(state.processes.iter().map(|process| process.region()).collect());
        graph.sessions.push(vec![Session::NONE; program.n]);
        let size = |value: &Val| {
            if let Val::Ticket(ticket) = value {
                doorway_core::raw::number(*ticket)
            } else {
                value.num()
            }
        };
        graph.largest.push(state.registers.iter().map(size).max().unwrap_or(0));
    }
    graph.idle = machine.idle.get();
    [graph.begins_with_choice, graph.ends_with_choice] = machine.chooses.each_ref().map(Cell::get);
    Ok(graph)
}

impl<'p> Machine<'p> {
    /// Every step of process `p`, and whether it gives up its place with it.
    fn steps(
        &self,
        state: &State<'p>,
        p: usize,
        bounded: bool,
    ) -> Result<Vec<(State<'p>, bool)>, Refused> {
        let process = &*state.processes[p];
        let mut steps = Vec::new();
        if process.section == Section::Remainder {
            let begun = self.begin(p, Section::Doorway, process.held)?;
            if state.left[p] > 0 {
                let mut from = state.clone();
                from.left[p] -= u32::from(bounded);
                self.accesses(&from, p, &begun, false, &mut steps)?;
            }
            return Ok(steps);
        }
        self.accesses(state, p, process, false, &mut steps)?;
        if let Some(pass) =
            self.program.abandon.as_ref().and(may_abandon(process).then_some(process.held))
        {
            let begun = self.begin(p, Section::Abandon, pass)?;
            self.accesses(state, p, &begun, true, &mut steps)?;
        }
        if self.program.killed.is_some() {
            let begun = self.begin(p, Section::Killed, Val::Num(0))?;
            if state.kills < self.program.kills {
                let mut from = state.clone();
                from.kills += 1;
                from.left[p] += u32::from(bounded);
                self.accesses(&from, p, &begun, true, &mut steps)?;
            }
        }
        Ok(steps)
    }

    /// The process makes its next access, in every way that it may come out.
    fn accesses(
        &self,
        state: &State<'p>,
        p: usize,
        process: &Process<'p>,
        gives_up: bool,
        steps: &mut Vec<(State<'p>, bool)>,
    ) -> Result<(), Refused> {
        let outcomes = if let Stmt::Choose(outcomes) = next(process) { *outcomes } else { 1 };
        for outcome in 0..outcomes {
            let (mut state, mut process) = (state.clone(), process.clone());
            let top = process.stack.last().expect("a process in a section is somewhere");
            let answer = self.perform(next(&process), &top.env, p, &mut state.registers, outcome);
            process.fresh &= process.section != Section::Exit;
            if let Some(answer) = answer {
                process.stack.iter_mut().for_each(|frame| frame.made = true);
                let top = process.stack.last_mut().expect("it is still there");
                top.pc += 1;
                top.env.extend(answer);
                top.log.extend(answer);
                self.settle(p, &mut process)?;
            }
            state.processes[p] = Rc::new(process);
            steps.push((state, gives_up));
        }
        Ok(())
    }

    /// Makes an access; the answer, if it has a value. `None` for a wait in vain, which leaves
    /// everything as it is.
    fn perform(
        &self,
        stmt: &Stmt,
        env: &[Val],
        p: usize,
        registers: &mut [Val],
        outcome: u32,
    ) -> Option<Option<Val>> {
        let n = self.program.n;
        let eval = |e: &Expr| e.eval(env, p);
        let (place, kind) = match stmt {
            Stmt::Choose(_) => return Some(Some(Val::Num(u64::from(outcome)))),
            Stmt::FetchAndAdd(index, _) => {
                (Place { kind: Kind::Count, index: index.clone() }, Kind::Count)
            }
            Stmt::Read(place)
            | Stmt::Test(place, _)
            | Stmt::Write(place, _)
            | Stmt::Swap(place, _) => (place.clone(), place.kind),
            Stmt::CompareAndSwap(place, _, _)
            | Stmt::Transact(place, _, _)
            | Stmt::Wait(place, _, _) => (place.clone(), place.kind),
            _ => unreachable!("no access"),
        };
        let at = place.at(env, p, n);
        let (at, kind) = match kind {
            Kind::Flag => (at, kind),
            Kind::Ticket if self.program.tickets => (n + COUNTERS + at, kind),
            _ => (n + at % COUNTERS, Kind::Count),
        };
        let held = registers[at];
        let typed = |value: Val| match kind {
            Kind::Flag => Val::Num(u64::from(value.is_true())),
            Kind::Count => Val::Num(value.num()),
            Kind::Ticket => Val::Ticket(value.ticket()),
        };
        let asks = |e: &Expr| e.eval(&[env, &[held]].concat(), p);
        match stmt {
            Stmt::Read(_) => Some(Some(held)),
            Stmt::Test(_, e) => Some(Some(Val::Num(u64::from(asks(e).is_true())))),
            Stmt::Write(_, e) => {
                registers[at] = typed(eval(e));
                Some(None)
            }
            Stmt::CompareAndSwap(_, old, new) => {
                if held == typed(eval(old)) {
                    registers[at] = typed(eval(new));
                }
                Some(Some(held))
            }
            Stmt::Swap(_, new) => {
                registers[at] = typed(eval(new));
                Some(Some(held))
            }
            Stmt::FetchAndAdd(_, add) => {
                registers[at] = Val::Num(held.num().wrapping_add(*add));
                Some(Some(held))
            }
            Stmt::Transact(_, next, answer) => {
                registers[at] = typed(asks(next));
                Some(Some(asks(answer)))
            }
            Stmt::Wait(_, e, _) => asks(e).is_true().then_some(None),
            _ => unreachable!("no access"),
        }
    }
}
