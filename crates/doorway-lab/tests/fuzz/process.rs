//! One process of the reference: a stack of frames, each with its place in the code, the values in
//! scope and everything that it has been answered and not forgotten.
//!
//! What is forgotten is what `Memory` documents: after a round of a combinator everything but the
//! carried value, after the combinator everything but its result, after a section everything but
//! what it passes on. A branch, a plain `for` and a call forget nothing.

use std::{cell::Cell, ptr};

use doorway_lab::Region;

use crate::program::{DEEPEST, Expr, Form, Loop, Program, Routine, Stmt, Val};

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Section {
    Remainder,
    Doorway,
    Waiting,
    Exit,
    Abandon,
    Killed,
}

/// A part of the program, compared by where it is.
pub(crate) struct At<'p, T: ?Sized>(&'p T);

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
pub(crate) enum End<'p> {
    /// It is a section or a call: its value is this.
    Result(At<'p, Expr>),
    Branch,
    /// A plain `for`: the items to come.
    For(Vec<usize>),
    /// A combinator: the item, the items to come and the carried value.
    Loop(At<'p, Loop>, usize, Vec<usize>, Val),
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Frame<'p> {
    code: At<'p, [Stmt]>,
    pub(crate) pc: usize,
    pub(crate) env: Vec<Val>,
    /// How much of the environment stays when a round ends.
    base: usize,
    /// What has been answered and is not forgotten, in scope or not.
    pub(crate) log: Vec<Val>,
    /// An access has been made in this frame; in a loop, in this round.
    pub(crate) made: bool,
    end: End<'p>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Process<'p> {
    pub(crate) section: Section,
    /// In the exit section: no access has been made yet, so the process is in the critical section.
    pub(crate) fresh: bool,
    /// What was passed to the section, or is kept in the remainder.
    pub(crate) held: Val,
    pub(crate) stack: Vec<Frame<'p>>,
}

/// A section without an access, or an endless loop without one: the lab has to refuse it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    Idle,
    /// Not refused, but more states than are explored.
    TooMany,
}

impl Process<'_> {
    pub(crate) fn region(&self) -> Region {
        match self.section {
            Section::Remainder => Region::Remainder,
            Section::Doorway => Region::Doorway,
            Section::Waiting => Region::Waiting,
            Section::Exit if self.fresh => Region::Critical,
            Section::Exit | Section::Abandon | Section::Killed => Region::Exit,
        }
    }
}

pub(crate) struct Machine<'p> {
    pub(crate) program: &'p Program,
    /// A round of a loop made no access.
    pub(crate) idle: Cell<bool>,
    /// A passage began with a choice; dying or giving up did.
    pub(crate) chooses: [Cell<bool>; 2],
}

impl<'p> Machine<'p> {
    /// A process at the first access from the beginning of a section.
    pub(crate) fn begin(
        &self,
        p: usize,
        section: Section,
        held: Val,
    ) -> Result<Process<'p>, Refused> {
        let mut process =
            Process { section, fresh: true, held, stack: vec![self.section(section, held)] };
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
    pub(crate) fn settle(&self, p: usize, process: &mut Process<'p>) -> Result<(), Refused> {
        let n = self.program.n;
        for _ in 0..1000 {
            let calls =
                process.stack.iter().filter(|frame| matches!(frame.end, End::Result(_))).count()
                    - 1;
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
                    // Around a loop that waits there has been an access or will be one: rounds are
                    // not told apart.
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
pub(crate) fn next<'p>(process: &Process<'p>) -> &'p Stmt {
    let top = process.stack.last().expect("a process in a section is somewhere");
    &top.code.0[top.pc]
}
/// A wait may be given up at the first access of each of its rounds.
pub(crate) fn may_abandon(process: &Process<'_>) -> bool {
    process.section == Section::Waiting
        && (matches!(next(process), Stmt::Wait(..))
            || process.stack.iter().rfind(|frame| frame.waits()).is_some_and(|frame| !frame.made))
}
