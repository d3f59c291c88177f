//! One run, step by step: registers hold values and processes hold local states. The simulator, the
//! replay of traces and the engine's tests use it. The checker replays its counterexamples on it,
//! uncut, before it prints them.

mod event;
mod learned;
mod memory;
mod recall;

use std::sync::Arc;

use doorway_core::{Layout, RegisterKind, Session, layout::Erased};

pub use self::event::{Event, Half};
use self::{
    learned::{Learned, NONE, NOT_IN_VAIN, State},
    memory::Memory,
};
use crate::{
    fault::Fault,
    replay::Kind,
    subject::{Choice, LocalState, Move, Region, Subject},
};

/// An access that a process makes next.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// What it does.
    pub kind: Kind,
    /// The register, numbered in the order in which the run first touched them; `None` for a
    /// choice.
    pub slot: Option<usize>,
    /// The register lives with another process or with no process.
    pub remote: bool,
    /// The paper's line.
    pub line: u32,
}

/// The register of a step.
#[derive(Default)]
struct Touch {
    register: Option<usize>,
    slot: usize,
    remote: bool,
}

/// A run in progress.
pub struct Machine<'s> {
    subject: &'s dyn Subject,
    memory: Memory<'s>,
    processes: Vec<Learned>,
    /// The largest number of local states of a process that are remembered.
    most: usize,
    /// The move whose write is half done, and the region of the process in the meantime.
    writing: Vec<Option<(Move, Region)>>,
    kind: RegisterKind,
    cut: bool,
    describe: bool,
    /// Whether steps are remembered instead of replayed.
    remember: bool,
    last: Event,
}

/// The largest number of local states remembered for all processes together. Without this limit
/// they would take gigabytes.
const MOST_OF_ALL: usize = 1 << 20;

impl<'s> Machine<'s> {
    /// Returns a run that is about to start. With `cut`, processes forget what their loops let them
    /// forget.
    ///
    /// # Errors
    /// When the algorithm cannot be run in the lab.
    pub fn new(subject: &'s dyn Subject, kind: RegisterKind, cut: bool) -> Result<Self, Fault> {
        let n = subject.size().n;
        let mut memory = Memory::new(subject.layout());
        let mut learned = |p| {
            let local = subject.start(p);
            let moves = subject.moves(p, &local, cut)?;
            Ok(Learned::new(local, moves.into(), &mut memory))
        };
        Ok(Self {
            subject,
            processes: (0..n).map(&mut learned).collect::<Result<_, _>>()?,
            memory,
            most: (MOST_OF_ALL / n.max(1)).clamp(1 << 6, 1 << 15),
            writing: vec![None; n],
            kind,
            cut,
            describe: true,
            remember: false,
            last: Event::none(),
        })
    }

    /// Leaves out the words in [`Event::access`], which take time. Remembers steps instead of
    /// replaying them.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.remember = true;
        self.wordless()
    }

    /// Leaves out the words in [`Event::access`], but still replays every step.
    #[must_use]
    pub(crate) fn wordless(mut self) -> Self {
        self.describe = false;
        self
    }

    /// Remembers fewer states of each process and fewer values. Only the running time depends on
    /// that; tests check that nothing else does.
    #[must_use]
    pub fn remembering(mut self, states: usize, values: usize) -> Self {
        self.most = states;
        self.memory = self.memory.remembering(values);
        self
    }

    /// Returns the region of process `p`.
    pub fn region(&self, p: usize) -> Region {
        self.writing[p].map_or(self.processes[p].now.region, |(_, region)| region)
    }

    /// Returns the session that process `p` has asked for, during a passage.
    pub fn session(&self, p: usize) -> Session {
        match self.writing[p] {
            Some((step, _)) => self.asked(p, &step),
            None => self.processes[p].now.session,
        }
    }

    /// Returns the session that process `p` asks for with this move.
    fn asked(&self, p: usize, step: &Move) -> Session {
        step.choice
            .request()
            .map_or(self.processes[p].now.session, |request| self.subject.session(request))
    }

    /// Returns how many processes are in the critical section.
    pub fn inside(&self) -> usize {
        (0..self.processes()).filter(|&p| self.region(p) == Region::Critical).count()
    }

    /// Returns the next access of process `p`: the first one, if it may choose.
    #[inline]
    pub fn pending(&self, p: usize) -> Pending {
        let State { slot, kind, line, .. } = self.processes[p].now;
        let slot = (slot != NONE).then_some(slot as usize);
        let remote = slot.is_some_and(|slot| self.memory.at(slot).home != p as u32);
        Pending { kind, slot, remote, line }
    }

    /// Returns whether `p` looks again at an unchanged register at which it has looked in vain.
    ///
    /// Not every waiting process is recognised: a process that looks at several registers may wait
    /// as well.
    pub fn waits_in_vain(&self, p: usize) -> bool {
        let process = &self.processes[p];
        process.looked != NOT_IN_VAIN
            && process.looked == self.memory.at(process.now.slot as usize).writes
    }

    /// Returns the registers.
    pub fn layout(&self) -> &'s Layout {
        self.memory.layout()
    }

    /// Returns the paper's line that process `p` is at.
    pub(crate) fn line(&self, p: usize) -> u32 {
        self.processes[p].now.line
    }

    /// Returns whether process `p` has several next moves.
    #[inline]
    pub(crate) fn has_several(&self, p: usize) -> bool {
        self.processes[p].now.several
    }

    /// Returns the next moves of process `p`.
    #[inline]
    pub fn moves(&self, p: usize) -> &[Move] {
        self.processes[p].moves()
    }

    /// Returns the register that process `p` touches if it makes this move.
    pub fn register_of(&self, step: &Move) -> Option<usize> {
        self.memory.layout().find(step.access.register)
    }

    /// Returns what a register holds.
    pub fn value(&self, register: usize) -> &dyn Erased {
        self.memory.value_of(register)
    }

    /// Returns what the register that a step has touched holds, if that contains a number larger
    /// than `bound`.
    pub(crate) fn exceeds(&self, event: &Event, bound: u64) -> Option<&dyn Erased> {
        event.register?;
        self.memory.exceeds(event.slot, bound).then(|| self.memory.held(event.slot))
    }

    /// Returns the number of processes.
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Returns the number of registers.
    pub fn registers(&self) -> usize {
        self.memory.layout().registers()
    }

    pub(crate) fn local(&self, p: usize) -> &Arc<LocalState> {
        self.processes[p].local()
    }

    /// Returns whether a read of this register would overlap a write.
    pub fn in_flux(&self, register: usize, reader: usize) -> bool {
        self.writing.iter().enumerate().any(|(q, writing)| {
            q != reader
                && writing.is_some_and(|(step, _)| self.register_of(&step) == Some(register))
        })
    }

    /// Returns the kind of the registers.
    pub fn kind(&self) -> RegisterKind {
        self.kind
    }

    /// Returns what a process other than `reader` is writing to a register.
    pub(crate) fn being_written(&self, register: usize, reader: usize) -> Option<Box<dyn Erased>> {
        let mut writers = self.writing.iter().enumerate().filter(|&(q, _)| q != reader);
        let (q, step) = writers.find_map(|(q, writing)| {
            writing
                .map(|(step, _)| (q, step))
                .filter(|(_, step)| self.register_of(step) == Some(register))
        })?;
        let value = Some(self.value(register));
        self.subject.step(q, self.local(q), step.choice, value, self.cut).ok()?.effect
    }

    /// Makes one step of process `p`. `garbage` is what a read that overlaps a write returns; for
    /// other steps it is `None`.
    ///
    /// # Errors
    /// When the algorithm cannot be run in the lab, or the process has no such move.
    pub fn step(
        &mut self,
        p: usize,
        choice: Choice,
        garbage: Option<&dyn Erased>,
    ) -> Result<Event, Fault> {
        if let Some((step, region)) = self.writing[p] {
            self.writing[p] = None;
            return self.make(p, step, region, garbage, Some(Half::End));
        }
        let moves = self.moves(p);
        let index = moves.iter().position(|m| m.choice == choice).ok_or(Fault::Impure)?;
        if garbage.is_none() && self.remembers() {
            self.recall(p, index)?;
            return Ok(self.last.clone());
        }
        let step = moves[index];
        let from = self.region(p);
        if step.access.kind != Kind::Write || self.kind == RegisterKind::Atomic {
            return self.make(p, step, from, garbage, None);
        }
        let to = match from {
            Region::Remainder => Region::Doorway,
            Region::Critical => Region::Exit,
            _ if choice.gives_up() => Region::Exit,
            region => region,
        };
        self.writing[p] = Some((step, to));
        let touched = self.touch(p, &step);
        let name = |r| self.subject.layout().cell(r).name();
        let access = touched.register.map_or(String::new(), |r| format!("{} := … begins", name(r)));
        let access = self.chosen(&step, access);
        Ok(Event {
            process: p,
            line: step.access.line,
            kind: Kind::Write,
            half: Some(Half::Begin),
            register: touched.register,
            slot: touched.slot,
            remote: touched.remote,
            access,
            from,
            to,
            session: self.asked(p, &step),
            abandons: choice.gives_up(),
            idle: false,
            // From here on, a read may return any value.
            changed: true,
        })
    }

    fn make(
        &mut self,
        p: usize,
        step: Move,
        from: Region,
        garbage: Option<&dyn Erased>,
        half: Option<Half>,
    ) -> Result<Event, Fault> {
        let touched = self.touch(p, &step);
        let value = match garbage {
            Some(garbage) => Some(garbage),
            None => touched.register.map(|_| self.memory.held(touched.slot)),
        };
        let before = self.local(p);
        let stepped = self.subject.step(p, before, step.choice, value, self.cut)?;
        let idle =
            step.access.waits && self.cut && stepped.effect.is_none() && stepped.local == **before;
        let access = if self.describe {
            self.describe(
                &step,
                touched.register,
                value,
                stepped.effect.as_deref(),
                garbage.is_some(),
                half,
            )
        } else {
            String::new()
        };
        let session = self.asked(p, &step);
        if !idle {
            let moves = self.subject.moves_at(p, &stepped.local, stepped.pending, self.cut)?;
            self.processes[p] = Learned::new(stepped.local, moves, &mut self.memory);
        }
        let mut changed = false;
        if touched.register.is_some() && step.access.kind != Kind::Read {
            let new = stepped.effect.map(|new| self.memory.number(new));
            changed = self.write(touched.slot, new) || new.is_some() && half.is_some();
        }
        let process = &mut self.processes[p];
        let in_vain = idle && step.access.kind == Kind::Read && !process.now.several;
        process.looked = if in_vain { self.memory.at(touched.slot).writes } else { NOT_IN_VAIN };
        Ok(Event {
            process: p,
            line: step.access.line,
            kind: step.access.kind,
            half,
            register: touched.register,
            slot: touched.slot,
            remote: touched.remote,
            access,
            from,
            to: self.processes[p].now.region,
            session,
            abandons: step.choice.gives_up(),
            idle,
            changed,
        })
    }

    /// Returns in words what process `p` does with this move, and its region after it. For atomic
    /// registers.
    ///
    /// # Errors
    /// When the algorithm cannot be run in the lab.
    pub(crate) fn preview(&self, p: usize, step: &Move) -> Result<(String, Region), Fault> {
        let register = self.register_of(step);
        let value = register.map(|register| self.value(register));
        let stepped = self.subject.step(p, self.local(p), step.choice, value, self.cut)?;
        let words = self.describe(step, register, value, stepped.effect.as_deref(), false, None);
        Ok((words, stepped.local.region()))
    }

    fn touch(&mut self, p: usize, step: &Move) -> Touch {
        let Some(slot) = self.memory.slot(step.access.register) else { return Touch::default() };
        let touched = self.memory.at(slot);
        Touch { register: Some(touched.number as usize), slot, remote: touched.home != p as u32 }
    }

    fn describe(
        &self,
        step: &Move,
        register: Option<usize>,
        value: Option<&dyn Erased>,
        effect: Option<&dyn Erased>,
        garbage: bool,
        half: Option<Half>,
    ) -> String {
        let name = register.map_or(String::new(), |r| self.subject.layout().cell(r).name());
        let held = value.map_or(String::new(), Erased::text);
        let unchanged = effect.is_none();
        let effect = effect.map_or(String::new(), Erased::text);
        let text = match (step.access.kind, half) {
            (Kind::Choose(_), _) => step
                .choice
                .outcome()
                .map_or("chooses".into(), |outcome| format!("chooses {outcome}")),
            (Kind::Read, _) if garbage => format!("{name} = {held} (overlaps a write)"),
            (Kind::Read, _) => format!("{name} = {held}"),
            (Kind::Write, Some(Half::End)) => format!("{name} := {effect} ends"),
            (Kind::Write, _) => format!("{name} := {effect}"),
            (Kind::Update, _) if unchanged => format!("{name} = {held}, unchanged"),
            (Kind::Update, _) => format!("{name} := {effect}, was {held}"),
        };
        if half == Some(Half::End) { text } else { self.chosen(step, text) }
    }

    /// Returns what a step does in words, with the choice that led to it.
    fn chosen(&self, step: &Move, text: String) -> String {
        match step.choice {
            Choice::Abandon => format!("gives up: {text}"),
            Choice::Kill => format!("is killed: {text}"),
            choice => match choice.request().map(|request| self.subject.session(request)) {
                Some(session) if session != Session::NONE => {
                    format!("asks for {session:?}: {text}")
                }
                _ => text,
            },
        }
    }
}
