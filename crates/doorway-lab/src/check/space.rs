//! What has been learned of an algorithm: the values of its registers and the local states of its
//! processes, each with a number, and the effect of each move. It is learned once, from the very
//! code that ships; the search then runs on the numbers.

mod bounded;
mod outcomes;
mod tried;
mod values;

use std::sync::Arc;

use doorway_core::{Home, RegisterKind, Relabel, Session, Ticket};
use rustc_hash::FxHashMap;

pub(crate) use self::values::Values;
use super::{
    lessons::Lesson,
    minimise::Merging,
    relabel::{Labels, Map},
};
use crate::{
    fault::Fault,
    replay::Kind,
    subject::{Choice, LocalState, Region, Subject},
};

/// The largest number of registers: their numbers are kept in 16 bits, and one number stands for
/// none.
const MAX_REGISTERS: usize = u16::MAX as usize - 1;

/// What identifies the state of a process: a local state, or a local state in the middle of a
/// write.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    At(Arc<LocalState>),
    /// The process is between the two steps of a write, on registers that are not atomic. Before
    /// the write it was in this state, and the write is the move of this index.
    Writing(Arc<LocalState>, u32),
}

impl Identity {
    /// Returns the local state; in the middle of a write, the local state before it.
    fn state(&self) -> &Arc<LocalState> {
        match self {
            Self::At(state) | Self::Writing(state, _) => state,
        }
    }
}

/// What a move does to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Effect {
    /// A read, which returns anything if it overlaps a write.
    Read,
    /// A write or an update, in one step.
    Change,
    /// The first half of a write.
    Begin,
    /// The second half of a write.
    End,
    /// No effect: a choice.
    Choose,
}

/// One move of a local state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct KnownMove {
    /// The register, or `None` if the move touches none.
    pub(crate) register: Option<u16>,
    pub(crate) effect: Effect,
    pub(crate) choice: Choice,
    /// The paper's line.
    pub(crate) line: u32,
}

/// One local state of one process.
pub(crate) struct Known {
    pub(super) identity: Identity,
    pub(crate) region: Region,
    /// The session that the process has asked for.
    pub(crate) session: Session,
    pub(crate) moves: Arc<[KnownMove]>,
    pub(crate) labels: Labels,
    /// The register that the process is in the middle of writing.
    pub(crate) writing: Option<u16>,
}

impl Known {
    /// Returns all that the checker sees of a local state, apart from the results of its moves.
    /// Whatever else a property is to see belongs here. Otherwise states that differ in it are
    /// merged.
    pub(super) fn shows(&self) -> (Region, Session, Option<u16>, &[KnownMove]) {
        (self.region, self.session, self.writing, &self.moves)
    }
}

/// The outcome of a move: the process's next local state and the register's new value.
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

/// All that has been learned of an algorithm.
pub(crate) struct Space<'s> {
    pub(crate) subject: &'s dyn Subject,
    pub(crate) registers: Vec<Values>,
    dense: FxHashMap<usize, u16>,
    processes: Vec<Process>,
    kind: RegisterKind,
    /// The lessons in the order of learning, if they are to be kept.
    pub(super) lessons: Option<Vec<Lesson>>,
    /// If tickets are relabelled, gaps from this size on are not distinguished.
    gap: Option<u32>,
    /// The number of things that have been tried on stretched tickets.
    tried: u64,
    /// The local states that stand for other local states, if any are merged.
    merging: Option<Merging>,
}

impl<'s> Space<'s> {
    /// Makes a space. With `gap`, tickets are relabelled, and gaps from that size on are not
    /// distinguished.
    pub(crate) fn new(
        subject: &'s dyn Subject,
        kind: RegisterKind,
        gap: Option<u32>,
    ) -> Result<Self, Fault> {
        let mut registers = Vec::new();
        let mut dense = FxHashMap::default();
        let cells = subject.layout().registers();
        if cells > MAX_REGISTERS {
            // Every register takes at least one bit.
            return Err(Fault::StateTooLarge(cells.div_ceil(u64::BITS as usize)));
        }
        for (i, cell) in subject.layout().cells().enumerate() {
            dense.insert(cell.id(), i as u16);
            registers.push(Values::of(&cell, kind)?);
        }
        let processes = (0..subject.size().n).map(|_| Process::default()).collect();
        let (gap, tried, merging, lessons) = (gap, 0, None, None);
        let mut space =
            Self { subject, registers, dense, processes, kind, gap, tried, merging, lessons };
        for p in 0..subject.size().n {
            space.intern(p, subject.start(p))?;
        }
        let held = space.registers.iter().map(|values| values.labels[0]);
        let all = space.processes.iter().map(|process| process.known[0].labels).chain(held);
        if gap.is_some() && all.fold(Labels::default(), Labels::or).0 == u128::MAX {
            return Err(Fault::TicketRange);
        }
        Ok(space)
    }

    /// Returns how many numbers have been given.
    pub(super) fn learned(&self) -> usize {
        let values: usize = self.registers.iter().map(Values::len).sum();
        values + self.processes.iter().map(|process| process.known.len()).sum::<usize>()
    }

    /// Notes a lesson, if numbers have been given since there were `before`.
    fn note(&mut self, before: usize, lesson: impl FnOnce() -> Lesson) {
        let is_new = self.learned() > before;
        if let Some(lessons) = self.lessons.as_mut().filter(|_| is_new) {
            lessons.push(lesson());
        }
    }

    /// Lets these local states stand for those that they are merged with from now on.
    pub(super) fn merge(&mut self, merging: Merging) {
        self.merging = Some(merging);
    }

    /// Returns the local state that stands for this one.
    fn representative(&self, p: usize, identity: Identity) -> Identity {
        match &self.merging {
            Some(merging) => merging.representative(p, identity),
            None => identity,
        }
    }

    /// Returns whether the outcome of this move is known: see [`outcome`](Self::outcome).
    pub(super) fn knows_outcome(&self, p: usize, local: u32, index: u32, value: u32) -> bool {
        self.processes[p].outcomes.contains_key(&(local, index, value))
    }

    /// Returns the home of a register.
    pub(crate) fn home(&self, register: u16) -> Home {
        self.subject.layout().cell(register as usize).home
    }

    /// Returns how many local states of `p` are known.
    pub(crate) fn count(&self, p: usize) -> usize {
        self.processes[p].known.len()
    }

    pub(crate) fn known(&self, p: usize, local: u32) -> &Known {
        &self.processes[p].known[local as usize]
    }

    fn intern(&mut self, p: usize, local: LocalState) -> Result<u32, Fault> {
        let identity = self.representative(p, Identity::At(Arc::new(local)));
        if let Some(&id) = self.processes[p].ids.get(&identity) {
            return Ok(id);
        }
        let Identity::At(local) = &identity else { unreachable!() };
        let labels = Labels::of(|f| local.tickets(f))?;
        let next = self.subject.moves(p, local, true)?;
        self.try_moves(p, local, labels, &next)?;
        let mut moves = Vec::new();
        for step in next {
            let register = self.dense.get(&step.access.register).copied();
            let effect = match step.access.kind {
                Kind::Read => Effect::Read,
                Kind::Write if self.kind != RegisterKind::Atomic => Effect::Begin,
                Kind::Write | Kind::Update => Effect::Change,
                Kind::Choose(_) => Effect::Choose,
            };
            moves.push(KnownMove { register, effect, choice: step.choice, line: step.access.line });
        }
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

    /// Returns the state of `p` in the middle of the write that is this move.
    fn intern_writing(&mut self, p: usize, from: u32, index: u32) -> u32 {
        // Its representative is the same in all uses of the state before the write below.
        let identity = self.representative(p, Identity::Writing(self.state(p, from), index));
        if let Some(&id) = self.processes[p].ids.get(&identity) {
            return id;
        }
        let base = self.known(p, from);
        let begun = base.moves[index as usize];
        let region = match (base.region, begun.choice) {
            // The write has begun, so the process is no longer where it was before its first
            // access.
            (Region::Remainder, _) => Region::Doorway,
            (Region::Critical, _) | (_, Choice::Abandon | Choice::Kill) => Region::Exit,
            (region, _) => region,
        };
        let session =
            begun.choice.request().map_or(base.session, |request| self.subject.session(request));
        let end = KnownMove { effect: Effect::End, ..begun };
        let labels = base.labels;
        let known = Known {
            identity,
            region,
            session,
            moves: Arc::new([end]),
            labels,
            writing: begun.register,
        };
        self.add(p, known)
    }

    /// Returns the outcome of a move if its register holds `value`.
    ///
    /// The move is `index` of local state `local` of process `p`.
    pub(crate) fn outcome(
        &mut self,
        p: usize,
        local: u32,
        index: u32,
        value: u32,
    ) -> Result<Outcome, Fault> {
        if let Some(outcome) = self.processes[p].outcomes.get(&(local, index, value)) {
            return Ok(*outcome);
        }
        let step = self.known(p, local).moves[index as usize];
        if let (Some(merging), Some(r), true) =
            (&self.merging, step.register, step.effect != Effect::Begin)
        {
            let held = &self.registers[r as usize].whole(value);
            if !merging.foresees(p, &self.known(p, local).identity, r, held) {
                return Err(Fault::Unforeseen);
            }
        }
        let outcome = if step.effect == Effect::Begin {
            Outcome { next: self.intern_writing(p, local, index), value, retries: false }
        } else {
            let state = self.state(p, local);
            let held = step.register.map(|r| self.registers[r as usize].value(value));
            let stepped = self.subject.step(p, &state, step.choice, held, true)?;
            // The step runs twice, because only here an impure section would go unnoticed. It costs
            // little: every outcome is learned once.
            let again = self.subject.step(p, &state, step.choice, held, true)?;
            if !stepped.agrees(&again) {
                return Err(Fault::Impure);
            }
            let in_value = step
                .register
                .map_or(Labels::default(), |r| self.registers[r as usize].labels[value as usize]);
            let visible = self.known(p, local).labels.or(in_value);
            self.try_step(p, &state, step, value, visible, &stepped)?;
            let value = match (stepped.effect, step.register) {
                (Some(new), Some(r)) => self.registers[r as usize].intern(new)?,
                _ => value,
            };
            Outcome { next: self.intern(p, stepped.local)?, value, retries: stepped.retries }
        };
        self.processes[p].outcomes.insert((local, index, value), outcome);
        if let Some(lessons) = &mut self.lessons {
            lessons.push(Lesson::Outcome { p, local, index, value });
        }
        Ok(outcome)
    }

    /// Returns the local state of a number; in the middle of a write, the local state before it.
    pub(crate) fn state(&self, p: usize, local: u32) -> Arc<LocalState> {
        self.known(p, local).identity.state().clone()
    }

    /// Returns the labels in a state, in order, from the numbers of its registers and processes.
    pub(crate) fn labels(&self, values: &[u32], locals: &[u32]) -> Vec<u32> {
        let in_registers =
            self.registers.iter().zip(values).map(|(values, &v)| values.labels[v as usize]);
        let in_locals =
            self.processes.iter().zip(locals).map(|(process, &l)| process.known[l as usize].labels);
        in_registers.chain(in_locals).fold(Labels::default(), Labels::or).iter().collect()
    }

    /// Returns the number of every value that an overlapping read of `register` may return, for one
    /// choice of ticket.
    pub(crate) fn domain(&mut self, register: u16, tickets: &[Ticket]) -> Result<Vec<u32>, Fault> {
        let before = self.learned();
        let values = &mut self.registers[register as usize];
        let domain = values
            .domain
            .values(values.value(0), tickets)
            .ok_or_else(|| Fault::NoDomain(values.name.clone()))?;
        let numbers =
            domain.into_iter().map(|value| values.intern(value)).collect::<Result<_, _>>()?;
        self.note(before, || Lesson::Domain { register, ticket: tickets.first().copied() });
        Ok(numbers)
    }

    /// Like [`domain`](Self::domain) without tickets, which are too many to try unless they are
    /// relabelled.
    pub(crate) fn finite_domain(&mut self, register: u16) -> Result<Vec<u32>, Fault> {
        let values = &self.registers[register as usize];
        let count =
            |tickets: &[Ticket]| Some(values.domain.values(values.value(0), tickets)?.len());
        if super::ticket_values(count) {
            return Err(Fault::NoDomain(values.name.clone()));
        }
        self.domain(register, &[])
    }

    /// Returns the number of a register's value with its tickets replaced.
    pub(crate) fn relabel_value(
        &mut self,
        register: u16,
        value: u32,
        map: &Map,
    ) -> Result<u32, Fault> {
        let before = self.learned();
        let values = &mut self.registers[register as usize];
        let new = values.value(value).relabelled(&mut |ticket| map.apply(ticket));
        let number = values.intern(new)?;
        self.note(before, || Lesson::Value { register, value, map: Box::new(map.clone()) });
        Ok(number)
    }

    /// Returns the number of a local state with its tickets replaced.
    pub(crate) fn relabel_local(&mut self, p: usize, local: u32, map: &Map) -> Result<u32, Fault> {
        let before = self.learned();
        let f: Relabel<'_> = &mut |ticket| map.apply(ticket);
        let identity = &self.known(p, local).identity;
        let (state, index) = match identity {
            Identity::At(_) => (identity.state().relabel(f), None),
            Identity::Writing(_, index) => (identity.state().relabel(f), Some(*index)),
        };
        let renamed = self.intern(p, state)?;
        let number = index.map_or(renamed, |index| self.intern_writing(p, renamed, index));
        self.note(before, || Lesson::Local { p, local, map: Box::new(map.clone()) });
        Ok(number)
    }
}
