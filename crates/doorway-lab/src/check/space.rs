//! What has been learned of an algorithm: the values of its registers and the local states of its processes, each with a
//! number, and what each move does. Learned from the very code that ships, once; the search then runs on the numbers.

use std::sync::Arc;

use doorway_core::{
    Home, RegisterKind, Relabel, Session, Ticket,
    layout::{Cell as RegisterCell, Erased},
};
use rustc_hash::FxHashMap;

use super::{
    lessons::Lesson,
    relabel::{Labels, Map},
};
use crate::{
    fault::Fault,
    item::Whole,
    replay::Kind,
    subject::{Choice, LocalState, Region, Subject},
};

/// The values that one register has held.
pub(crate) struct Values {
    pub(crate) name: String,
    list: Vec<Arc<Whole>>,
    pub(crate) labels: Vec<Labels>,
    ids: FxHashMap<Arc<Whole>, u32>,
}

/// The numbers of values are kept in 24 bits where outcomes are looked up.
const MAX_VALUES: u32 = 1 << 24;

impl Values {
    fn intern(&mut self, value: Box<dyn Erased>) -> Result<u32, Fault> {
        let value = Arc::new(Whole(value));
        if let Some(&id) = self.ids.get(&value) {
            return Ok(id);
        }
        let id = self.list.len() as u32;
        if id >= MAX_VALUES {
            return Err(Fault::TooManyValues(self.name.clone()));
        }
        self.labels.push(Labels::of(|f| {
            let _ = value.0.relabelled(f);
        })?);
        self.ids.insert(value.clone(), id);
        self.list.push(value);
        Ok(id)
    }

    /// The value of this number.
    pub(crate) fn value(&self, id: u32) -> &dyn Erased {
        &*self.list[id as usize].0
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &dyn Erased> {
        self.list.iter().map(|value| &*value.0)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }
}

/// What is to be told apart about a process: a local state, or being in the middle of a write from one.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Identity {
    At(Arc<LocalState>),
    /// On registers that are not atomic a write is two steps; in between, the process is here.
    Writing(u32, u32),
}

/// What a move does to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// A read, which returns anything if it overlaps a write.
    Read,
    /// A write or an update, in one step.
    Change,
    /// The first half of a write.
    Begin,
    /// The second half of a write.
    End,
    /// Nothing: a choice.
    Choose,
}

/// One move of a local state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownMove {
    /// The register, or `None` if it touches none.
    pub(crate) register: Option<u16>,
    pub(crate) effect: Effect,
    pub(crate) choice: Choice,
    /// The paper's line.
    pub(crate) line: u32,
}

/// One local state of one process.
pub(crate) struct Known {
    identity: Identity,
    pub(crate) region: Region,
    /// What it has asked for.
    pub(crate) session: Session,
    pub(crate) moves: Arc<[KnownMove]>,
    pub(crate) labels: Labels,
    /// The register that it is in the middle of writing.
    pub(crate) writing: Option<u16>,
}

/// What comes of a move: the process's next local state and the register's new value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) next: u32,
    pub(crate) value: u32,
    /// The process begins another attempt.
    pub(crate) retries: bool,
}

#[derive(Default)]
struct Process {
    known: Vec<Known>,
    ids: FxHashMap<Identity, u32>,
    outcomes: FxHashMap<(u32, u32, u32), Outcome>,
}

/// All that has been learned.
pub(crate) struct Space<'s> {
    pub(crate) subject: &'s dyn Subject,
    pub(crate) registers: Vec<Values>,
    dense: FxHashMap<usize, u16>,
    processes: Vec<Process>,
    kind: RegisterKind,
    /// What gave new numbers, in this order, if that is to be kept.
    pub(super) lessons: Option<Vec<Lesson>>,
}

impl<'s> Space<'s> {
    pub(crate) fn new(subject: &'s dyn Subject, kind: RegisterKind) -> Result<Self, Fault> {
        let mut registers = Vec::new();
        let mut dense = FxHashMap::default();
        for (i, cell) in subject.layout().cells().enumerate() {
            dense.insert(cell.id(), i as u16);
            registers.push(values(&cell)?);
        }
        let processes = (0..subject.size().n).map(|_| Process::default()).collect();
        let mut space = Self { subject, registers, dense, processes, kind, lessons: None };
        for p in 0..subject.size().n {
            space.intern(p, subject.start(p))?;
        }
        Ok(space)
    }

    /// How many numbers have been given.
    pub(super) fn learned(&self) -> usize {
        let values: usize = self.registers.iter().map(Values::len).sum();
        values + self.processes.iter().map(|process| process.known.len()).sum::<usize>()
    }

    /// Notes what gave new numbers, if anything did since so many had been given.
    fn note(&mut self, before: usize, lesson: impl FnOnce() -> Lesson) {
        let is_new = self.learned() > before;
        if let Some(lessons) = self.lessons.as_mut().filter(|_| is_new) {
            lessons.push(lesson());
        }
    }

    /// Where a register lives.
    pub(crate) fn home(&self, register: u16) -> Home {
        self.subject.layout().cell(register as usize).home
    }

    /// How many local states of `p` are known.
    pub(crate) fn count(&self, p: usize) -> usize {
        self.processes[p].known.len()
    }

    pub(crate) fn known(&self, p: usize, local: u32) -> &Known {
        &self.processes[p].known[local as usize]
    }

    fn intern(&mut self, p: usize, local: LocalState) -> Result<u32, Fault> {
        let identity = Identity::At(Arc::new(local));
        if let Some(&id) = self.processes[p].ids.get(&identity) {
            return Ok(id);
        }
        let Identity::At(local) = &identity else { unreachable!() };
        let mut moves = Vec::new();
        for step in self.subject.moves(p, local, true)? {
            let register = self.dense.get(&step.access.register).copied();
            let effect = match step.access.kind {
                Kind::Read => Effect::Read,
                Kind::Write if self.kind != RegisterKind::Atomic => Effect::Begin,
                Kind::Write | Kind::Update => Effect::Change,
                Kind::Choose(_) => Effect::Choose,
            };
            moves.push(KnownMove { register, effect, choice: step.choice, line: step.access.line });
        }
        let labels = Labels::of(|f| local.tickets(f))?;
        let (region, session) = (local.region(), local.session);
        let known = Known { region, session, moves: moves.into(), labels, writing: None, identity };
        Ok(self.add(p, known))
    }

    fn add(&mut self, p: usize, known: Known) -> u32 {
        let process = &mut self.processes[p];
        let id = process.known.len() as u32;
        process.ids.insert(known.identity.clone(), id);
        process.known.push(known);
        id
    }

    /// The state of `p` in the middle of the write that is this move.
    fn intern_writing(&mut self, p: usize, from: u32, index: u32) -> u32 {
        let identity = Identity::Writing(from, index);
        if let Some(&id) = self.processes[p].ids.get(&identity) {
            return id;
        }
        let base = self.known(p, from);
        let begun = base.moves[index as usize];
        let region = match (base.region, begun.choice) {
            // The write has begun, so the process is no longer where it was before its first access.
            (Region::Remainder, _) => Region::Doorway,
            (Region::Critical, _) | (_, Choice::Abandon | Choice::Kill) => Region::Exit,
            (region, _) => region,
        };
        let session = match begun.choice {
            Choice::Request(request) => self.subject.session(request),
            _ => base.session,
        };
        let end = KnownMove { effect: Effect::End, ..begun };
        let labels = base.labels;
        let known = Known { identity, region, session, moves: Arc::new([end]), labels, writing: begun.register };
        self.add(p, known)
    }

    /// What comes of move `index` of local state `local` of process `p` if its register holds `value`.
    pub(crate) fn outcome(&mut self, p: usize, local: u32, index: u32, value: u32) -> Result<Outcome, Fault> {
        if let Some(outcome) = self.processes[p].outcomes.get(&(local, index, value)) {
            return Ok(*outcome);
        }
        let before = self.learned();
        let step = self.known(p, local).moves[index as usize];
        let outcome = if step.effect == Effect::Begin {
            Outcome { next: self.intern_writing(p, local, index), value, retries: false }
        } else {
            let state = match &self.known(p, local).identity {
                Identity::At(state) => state.clone(),
                Identity::Writing(from, _) => self.state(p, *from),
            };
            let held = step.register.map(|r| self.registers[r as usize].value(value));
            let stepped = self.subject.step(p, &state, step.choice, held, true)?;
            // Twice, because this is the one place where an impure section would be believed. It costs nothing: every
            // outcome is learned once.
            let again = self.subject.step(p, &state, step.choice, held, true)?;
            if !stepped.agrees(&again) {
                return Err(Fault::Impure);
            }
            let value = match (stepped.effect, step.register) {
                (Some(new), Some(r)) => self.registers[r as usize].intern(new)?,
                _ => value,
            };
            Outcome { next: self.intern(p, stepped.local)?, value, retries: stepped.retries }
        };
        self.processes[p].outcomes.insert((local, index, value), outcome);
        self.note(before, || Lesson::Outcome { p, local, index, value });
        Ok(outcome)
    }

    /// The local state of a number; in the middle of a write, the one before it.
    pub(crate) fn state(&self, p: usize, local: u32) -> Arc<LocalState> {
        match &self.known(p, local).identity {
            Identity::At(state) => state.clone(),
            Identity::Writing(from, _) => self.state(p, *from),
        }
    }

    /// The labels that stand in a state, in order, from the numbers of its registers and processes.
    pub(crate) fn labels(&self, values: &[u32], locals: &[u32]) -> Vec<u32> {
        let in_registers = self.registers.iter().zip(values).map(|(values, &v)| values.labels[v as usize]);
        let in_locals = self.processes.iter().zip(locals).map(|(process, &l)| process.known[l as usize].labels);
        in_registers.chain(in_locals).fold(Labels::default(), Labels::or).iter().collect()
    }

    /// The number of every value that an overlapping read of `register` may return, for one choice of ticket.
    pub(crate) fn domain(&mut self, register: u16, tickets: &[Ticket]) -> Result<Vec<u32>, Fault> {
        let before = self.learned();
        let values = &mut self.registers[register as usize];
        let domain = values.value(0).domain(tickets).ok_or_else(|| Fault::NoDomain(values.name.clone()))?;
        let numbers = domain.into_iter().map(|value| values.intern(value)).collect::<Result<_, _>>()?;
        self.note(before, || Lesson::Domain { register, ticket: tickets.first().copied() });
        Ok(numbers)
    }

    /// The number of a register's value with its tickets replaced.
    pub(crate) fn relabel_value(&mut self, register: u16, value: u32, map: &Map) -> Result<u32, Fault> {
        let before = self.learned();
        let values = &mut self.registers[register as usize];
        let new = values.value(value).relabelled(&mut |ticket| map.apply(ticket));
        let number = values.intern(new)?;
        self.note(before, || Lesson::Value { register, value, map: Box::new(map.clone()) });
        Ok(number)
    }

    /// The number of a local state with its tickets replaced.
    pub(crate) fn relabel_local(&mut self, p: usize, local: u32, map: &Map) -> Result<u32, Fault> {
        let before = self.learned();
        let number = match &self.known(p, local).identity {
            Identity::At(state) => {
                let f: Relabel<'_> = &mut |ticket| map.apply(ticket);
                let state = state.relabel(f);
                self.intern(p, state)?
            }
            &Identity::Writing(from, index) => {
                let from = self.relabel_local(p, from, map)?;
                self.intern_writing(p, from, index)
            }
        };
        self.note(before, || Lesson::Local { p, local, map: Box::new(map.clone()) });
        Ok(number)
    }
}

fn values(cell: &RegisterCell<'_>) -> Result<Values, Fault> {
    let mut values = Values { name: cell.name(), list: Vec::new(), labels: Vec::new(), ids: FxHashMap::default() };
    values.intern(cell.init.copy())?;
    Ok(values)
}
