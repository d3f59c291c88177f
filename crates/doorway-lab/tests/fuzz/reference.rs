//! The reference: a naive explorer of programs, to compare the checker with. It shares no code with the lab.
//!
//! A process is a stack of frames, each with its place in the code, the values in scope and everything that it has been
//! answered. What is forgotten is what `Memory` documents: after a round of a combinator everything but the carried
//! value, after the combinator everything but its result, after a section everything but what it passes on. A branch, a
//! plain `for` and a call forget nothing. States are whole values in one hash map, explored breadth first.

use std::{cell::Cell, ptr, rc::Rc};

use doorway_core::Ticket;
use doorway_lab::Region;
use rustc_hash::FxHashMap;

use crate::program::{COUNTERS, DEEPEST, Expr, Form, Kind, Loop, Place, Program, Routine, Stmt, Val};

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Section {
    Remainder,
    Doorway,
    Waiting,
    Exit,
    Abandon,
    Killed,
}

/// A part of the program, compared by where it is.
struct At<'p, T: ?Sized>(&'p T);

impl<T: ?Sized> Clone for At<'_, T> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}
impl<T: ?Sized> PartialEq for At<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        ptr::addr_eq(self.0, other.0)
    }
}
impl<T: ?Sized> Eq for At<'_, T> {}
impl<T: ?Sized> std::hash::Hash for At<'_, T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&raw const *self.0).cast::<()>().hash(state);
    }
}

/// What a frame does when it has come to the end of its code.
#[derive(Clone, PartialEq, Eq, Hash)]
enum End<'p> {
    /// It is a section or a call: its value is this.
    Result(At<'p, Expr>),
    Branch,
    /// A plain `for`: the items to come.
    For(Vec<usize>),
    /// A combinator: the item, the items to come and the carried value.
    Loop(At<'p, Loop>, usize, Vec<usize>, Val),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Frame<'p> {
    code: At<'p, [Stmt]>,
    pc: usize,
    env: Vec<Val>,
    /// How much of the environment stays when a round ends.
    base: usize,
    /// What has been answered and is not forgotten, in scope or not.
    log: Vec<Val>,
    /// An access has been made in this frame; in a loop, in this round.
    made: bool,
    end: End<'p>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Process<'p> {
    section: Section,
    /// In the exit section: no access has been made yet, so the process is in the critical section.
    fresh: bool,
    /// What was passed to the section, or is kept in the remainder.
    held: Val,
    stack: Vec<Frame<'p>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State<'p> {
    registers: Vec<Val>,
    processes: Vec<Rc<Process<'p>>>,
    /// Passages left, if they are bounded.
    left: Vec<u32>,
    kills: u32,
}

/// A section without an access, or an endless loop without one: the lab has to refuse it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    Idle,
    /// Not refused, but more states than are explored.
    TooMany,
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
pub(crate) fn explore(program: &Program, passages: Option<u32>, most: usize) -> Result<Graph, Refused> {
    let machine = Machine { program, idle: Cell::new(false), chooses: [Cell::new(false), Cell::new(false)] };
    let mut registers = vec![Val::Num(0); program.n];
    registers.extend([Val::Num(program.initial); COUNTERS]);
    registers.extend(program.tickets.then(|| vec![Val::Ticket(Ticket::ZERO); program.n]).into_iter().flatten());
    let start = Process { section: Section::Remainder, fresh: true, held: Val::Num(0), stack: Vec::new() };
    let processes = vec![Rc::new(start); program.n];
    let mut states = vec![State { registers, processes, left: vec![passages.unwrap_or(1); program.n], kills: 0 }];
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
        let size = |value: &Val| if let Val::Ticket(ticket) = value { ticket.label() } else { value.num() };
        graph.largest.push(state.registers.iter().map(size).max().unwrap_or(0));
    }
    graph.idle = machine.idle.get();
    [graph.begins_with_choice, graph.ends_with_choice] = machine.chooses.each_ref().map(Cell::get);
    Ok(graph)
}

impl Process<'_> {
    fn region(&self) -> Region {
        match self.section {
            Section::Remainder => Region::Remainder,
            Section::Doorway => Region::Doorway,
            Section::Waiting => Region::Waiting,
            Section::Exit if self.fresh => Region::Critical,
            Section::Exit | Section::Abandon | Section::Killed => Region::Exit,
        }
    }
}

struct Machine<'p> {
    program: &'p Program,
    /// A round of a loop made no access.
    idle: Cell<bool>,
    /// A passage began with a choice; dying or giving up did.
    chooses: [Cell<bool>; 2],
}

impl<'p> Machine<'p> {
    /// Every step of process `p`, and whether it gives up its place with it.
    fn steps(&self, state: &State<'p>, p: usize, bounded: bool) -> Result<Vec<(State<'p>, bool)>, Refused> {
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
        if let Some(pass) = self.program.abandon.as_ref().and(may_abandon(process).then_some(process.held)) {
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

    /// Makes an access; the answer, if it has a value. `None` for a wait in vain, which leaves everything as it is.
    fn perform(&self, stmt: &Stmt, env: &[Val], p: usize, registers: &mut [Val], outcome: u32) -> Option<Option<Val>> {
        let n = self.program.n;
        let eval = |e: &Expr| e.eval(env, p);
        let (place, kind) = match stmt {
            Stmt::Choose(_) => return Some(Some(Val::Num(u64::from(outcome)))),
            Stmt::FetchAndAdd(index, _) => (Place { kind: Kind::Count, index: index.clone() }, Kind::Count),
            Stmt::Read(place) | Stmt::Test(place, _) | Stmt::Write(place, _) | Stmt::Swap(place, _) => {
                (place.clone(), place.kind)
            }
            Stmt::CompareAndSwap(place, _, _) | Stmt::Transact(place, _, _) | Stmt::Wait(place, _, _) => {
                (place.clone(), place.kind)
            }
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

    /// A process at the first access from the beginning of a section.
    fn begin(&self, p: usize, section: Section, held: Val) -> Result<Process<'p>, Refused> {
        let mut process = Process { section, fresh: true, held, stack: vec![self.section(section, held)] };
        self.settle(p, &mut process)?;
        if process.section == Section::Remainder {
            return Err(Refused::Idle);
        }
        let chooses = &self.chooses[usize::from(section != Section::Doorway)];
        chooses.set(chooses.get() || matches!(next(&process), Stmt::Choose(_)));
        Ok(process)
    }

    fn section(&self, section: Section, held: Val) -> Frame<'p> {
        let program = self.program;
        routine(
            match section {
                Section::Doorway => &program.doorway,
                Section::Waiting => &program.waiting,
                Section::Exit => &program.exit,
                Section::Abandon => program.abandon.as_ref().expect("it can be abandoned"),
                Section::Killed => program.killed.as_ref().expect("it can be killed"),
                Section::Remainder => unreachable!("the remainder has no code"),
            },
            held,
        )
    }

    /// Runs a process on to its next access, or to the remainder.
    fn settle(&self, p: usize, process: &mut Process<'p>) -> Result<(), Refused> {
        let n = self.program.n;
        for _ in 0..1000 {
            let calls = process.stack.iter().filter(|frame| matches!(frame.end, End::Result(_))).count() - 1;
            let frame = process.stack.last_mut().expect("it is in a section");
            let env = &frame.env;
            match frame.code.0.get(frame.pc) {
                None => {
                    if self.finish(p, process)? {
                        return Ok(());
                    }
                }
                Some(Stmt::If(condition, yes, no)) => {
                    let code = if condition.eval(env, p).is_true() { yes } else { no };
                    let inner = Frame::new(code, env, End::Branch);
                    process.stack.push(inner);
                }
                Some(Stmt::For(items, body)) => {
                    let mut inner = Frame::new(body, env, End::For(items.list(env, p, n)));
                    if inner.next_item() {
                        process.stack.push(inner);
                    } else {
                        frame.pc += 1;
                    }
                }
                Some(Stmt::Call(helper, argument)) => match self.program.helpers.get(*helper) {
                    Some(helper) if calls < DEEPEST => {
                        let inner = routine(helper, argument.eval(env, p));
                        process.stack.push(inner);
                    }
                    _ => frame.have(Val::Num(0)),
                },
                Some(Stmt::Loop(inner)) => {
                    let carried = match inner.form {
                        Form::Fold | Form::FoldUntil | Form::Repeat => inner.init.eval(env, p),
                        Form::Each | Form::Find | Form::Scope => Val::Num(0),
                    };
                    let items = match inner.form {
                        Form::Repeat | Form::Scope => vec![0],
                        _ => inner.items.list(env, p, n),
                    };
                    match items.split_first() {
                        None => frame.have(carried),
                        Some((&item, rest)) => {
                            let end = End::Loop(At(&**inner), item, rest.to_vec(), carried);
                            let mut inner = Frame::new(&inner.body, env, end);
                            inner.env.extend([carried, Val::Num(item as u64)]);
                            process.stack.push(inner);
                        }
                    }
                }
                Some(_) => {
                    // Around a loop that waits there has been an access or will be one: rounds are not told apart.
                    let inner = process.stack.iter().rposition(Frame::waits).unwrap_or(0);
                    process.stack[..inner].iter_mut().for_each(|frame| frame.made = true);
                    return Ok(());
                }
            }
        }
        Err(Refused::Idle)
    }

    /// Ends a frame, or its round; whether that brings the process to its remainder.
    fn finish(&self, p: usize, process: &mut Process<'p>) -> Result<bool, Refused> {
        let mut frame = process.stack.pop().expect("it is in a section");
        match frame.end.clone() {
            End::Result(result) if process.stack.is_empty() => {
                process.held = result.0.eval(&frame.env, p);
                process.section = match process.section {
                    Section::Doorway => Section::Waiting,
                    Section::Waiting => Section::Exit,
                    Section::Exit if process.fresh => return Err(Refused::Idle),
                    _ => Section::Remainder,
                };
                process.fresh = true;
                if process.section == Section::Remainder {
                    return Ok(true);
                }
                process.stack.push(self.section(process.section, process.held));
                return Ok(false);
            }
            End::For(_) if frame.next_item() => {
                process.stack.push(frame);
                return Ok(false);
            }
            End::Result(_) | End::Branch | End::For(_) => {
                let outer = process.stack.last_mut().expect("there is code around it");
                outer.log.append(&mut frame.log);
                match &frame.end {
                    End::Result(result) => outer.have(result.0.eval(&frame.env, p)),
                    _ => outer.pc += 1,
                }
            }
            End::Loop(At(code), item, rest, carried) => {
                let next = code.next.eval(&frame.env, p);
                let stop = code.stop.eval(&frame.env, p).is_true();
                let (carried, over) = match code.form {
                    Form::Scope => (next, true),
                    Form::Each => (carried, false),
                    Form::Fold => (next, false),
                    Form::FoldUntil | Form::Repeat => (next, stop),
                    Form::Find => (Val::Num(if stop { item as u64 + 1 } else { 0 }), stop),
                };
                if !over && !frame.made {
                    self.idle.set(true);
                }
                let (item, rest) = match (over, code.form, rest.split_first()) {
                    (false, Form::Repeat, _) => (0, Vec::new()),
                    (false, _, Some((&item, rest))) => (item, rest.to_vec()),
                    _ => {
                        let outer = process.stack.last_mut().expect("there is code around it");
                        outer.log.push(carried);
                        outer.have(carried);
                        return Ok(false);
                    }
                };
                frame.end = End::Loop(At(code), item, rest, carried);
                (frame.pc, frame.made) = (0, false);
                frame.log.clear();
                frame.env.truncate(frame.base);
                frame.env.extend([carried, Val::Num(item as u64)]);
                process.stack.push(frame);
            }
        }
        Ok(false)
    }
}

impl<'p> Frame<'p> {
    fn new(code: &'p [Stmt], env: &[Val], end: End<'p>) -> Self {
        let (env, base) = (env.to_vec(), env.len());
        Self { code: At(code), pc: 0, env, base, log: Vec::new(), made: false, end }
    }

    fn waits(&self) -> bool {
        matches!(&self.end, End::Loop(l, ..) if l.0.form == Form::Repeat)
    }

    /// The statement has this value; on to the next one.
    fn have(&mut self, value: Val) {
        self.env.push(value);
        self.pc += 1;
    }

    /// A plain `for` begins its next round, if there is one. Nothing is forgotten.
    fn next_item(&mut self) -> bool {
        let End::For(items) = &mut self.end else { return false };
        if items.is_empty() {
            return false;
        }
        let item = items.remove(0);
        self.pc = 0;
        self.env.truncate(self.base);
        self.env.push(Val::Num(item as u64));
        true
    }
}

fn routine(routine: &Routine, given: Val) -> Frame<'_> {
    Frame::new(&routine.body, &[given], End::Result(At(&routine.result)))
}

/// The access that a process makes next.
fn next<'p>(process: &Process<'p>) -> &'p Stmt {
    let top = process.stack.last().expect("a process in a section is somewhere");
    &top.code.0[top.pc]
}

/// A wait may be given up at the first access of each of its rounds.
fn may_abandon(process: &Process<'_>) -> bool {
    process.section == Section::Waiting
        && (matches!(next(process), Stmt::Wait(..))
            || process.stack.iter().rfind(|frame| frame.waits()).is_some_and(|frame| !frame.made))
}
