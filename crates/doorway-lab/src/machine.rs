//! One run, step by step: registers that hold values and processes that hold local states. The simulator, the replay of
//! traces and the tests of the engine all run on it; the checker's counterexamples are replayed on it, uncut, before
//! they are printed.

mod recall;

use std::sync::Arc;

use doorway_core::{RegisterKind, layout::Erased};
use rustc_hash::FxHashMap;

use self::recall::{Local, Recall};
use crate::{
    fault::Fault,
    replay::Kind,
    subject::{Choice, LocalState, Move, Region, Subject},
};

/// One step of a run.
#[derive(Clone, Debug)]
pub struct Event {
    /// Who moved.
    pub process: usize,
    /// The paper's line.
    pub line: u32,
    /// What was done.
    pub kind: Kind,
    /// Which half of a write this is, on registers that are not atomic.
    pub half: Option<Half>,
    /// The register, as an index into the layout's cells.
    pub register: Option<usize>,
    /// What was done, in words.
    pub access: String,
    /// Where the process was.
    pub from: Region,
    /// Where it is now.
    pub to: Region,
    /// The process gave up its place with this step.
    pub abandons: bool,
    /// A wait that did not succeed: nothing has changed.
    pub idle: bool,
    /// The register holds something else than before.
    pub changed: bool,
}

/// Half a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// From here on the register holds anything.
    Begin,
    /// From here on it holds what was written.
    End,
}

/// A run in progress.
pub struct Machine<'s> {
    subject: &'s dyn Subject,
    values: Vec<Box<dyn Erased>>,
    /// How often each register has been written.
    versions: Vec<u64>,
    locals: Vec<Arc<Local>>,
    recalls: Vec<Recall>,
    /// The move whose write is half done, with the region that the process is in meanwhile.
    writing: Vec<Option<(Move, Region)>>,
    dense: FxHashMap<usize, usize>,
    kind: RegisterKind,
    cut: bool,
    describe: bool,
}

impl<'s> Machine<'s> {
    /// A run that is about to start. With `cut`, processes forget what their loops let them forget.
    ///
    /// # Errors
    /// When the algorithm cannot be run in the lab.
    pub fn new(subject: &'s dyn Subject, kind: RegisterKind, cut: bool) -> Result<Self, Fault> {
        let n = subject.size().n;
        let local = |p| {
            let state = subject.start(p);
            Ok(Arc::new(Local { moves: subject.moves(p, &state, cut)?, state }))
        };
        Ok(Self {
            subject,
            values: subject.layout().cells().map(|cell| cell.init.copy()).collect(),
            versions: vec![0; subject.layout().registers()],
            locals: (0..n).map(local).collect::<Result<_, _>>()?,
            recalls: (0..n).map(|_| Recall::new(n)).collect(),
            writing: vec![None; n],
            dense: subject.layout().cells().enumerate().map(|(i, cell)| (cell.id(), i)).collect(),
            kind,
            cut,
            describe: true,
        })
    }

    /// Leaves out the words in [`Event::access`], which take time, and recalls looks instead of replaying them.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.describe = false;
        self
    }

    /// Where process `p` is.
    pub fn region(&self, p: usize) -> Region {
        self.writing[p].map_or_else(|| self.locals[p].state.region(), |(_, region)| region)
    }

    /// How many processes are in the critical section.
    pub fn inside(&self) -> usize {
        (0..self.locals.len()).filter(|&p| self.region(p) == Region::Critical).count()
    }

    /// What process `p` may do next.
    pub fn moves(&self, p: usize) -> &[Move] {
        &self.locals[p].moves
    }

    /// The register that process `p` will touch if it makes this move.
    pub fn register_of(&self, step: &Move) -> Option<usize> {
        self.dense.get(&step.access.register).copied()
    }

    /// What a register holds.
    pub fn value(&self, register: usize) -> &dyn Erased {
        &*self.values[register]
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.locals.len()
    }

    /// How many registers there are.
    pub fn registers(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn local(&self, p: usize) -> &LocalState {
        &self.locals[p].state
    }

    /// Whether a read of this register would overlap a write.
    pub fn in_flux(&self, register: usize, reader: usize) -> bool {
        self.writing.iter().enumerate().any(|(q, writing)| {
            q != reader && writing.is_some_and(|(step, _)| self.register_of(&step) == Some(register))
        })
    }

    /// What kind of registers these are.
    pub fn kind(&self) -> RegisterKind {
        self.kind
    }

    /// What is being written to a register by somebody other than `reader`.
    pub(crate) fn being_written(&self, register: usize, reader: usize) -> Option<Box<dyn Erased>> {
        let mut writers = self.writing.iter().enumerate().filter(|&(q, _)| q != reader);
        let (q, step) = writers.find_map(|(q, writing)| {
            writing.map(|(step, _)| (q, step)).filter(|(_, step)| self.register_of(step) == Some(register))
        })?;
        let value = Some(&*self.values[register]);
        self.subject.step(q, self.local(q), step.choice, value, self.cut).ok()?.effect
    }

    /// Process `p` makes one step. `garbage` is what a read that overlaps a write returns; elsewhere it is `None`.
    ///
    /// # Errors
    /// When the algorithm cannot be run in the lab, or the process has no such move.
    pub fn step(&mut self, p: usize, choice: Choice, garbage: Option<&dyn Erased>) -> Result<Event, Fault> {
        if let Some((step, region)) = self.writing[p] {
            self.writing[p] = None;
            return self.make(p, step, region, garbage, Some(Half::End));
        }
        let moves = &self.locals[p].moves;
        let index = moves.iter().position(|m| m.choice == choice).ok_or(Fault::Impure)?;
        let step = moves[index];
        let from = self.region(p);
        if !self.describe && self.cut && garbage.is_none() && step.access.kind != Kind::Write {
            return self.look(p, step, index, from);
        }
        self.recalls[p].forget();
        if step.access.kind != Kind::Write || self.kind == RegisterKind::Atomic {
            return self.make(p, step, from, garbage, None);
        }
        let to = match from {
            Region::Remainder => Region::Doorway,
            Region::Critical => Region::Exit,
            _ if choice == Choice::Abandon => Region::Exit,
            region => region,
        };
        self.writing[p] = Some((step, to));
        let register = self.register_of(&step);
        let access =
            register.map_or(String::new(), |r| format!("{} := … begins", self.subject.layout().cell(r).name()));
        Ok(Event {
            process: p,
            line: step.access.line,
            kind: Kind::Write,
            half: Some(Half::Begin),
            register,
            access,
            from,
            to,
            abandons: choice == Choice::Abandon,
            idle: false,
            // From here on a read may return anything.
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
        let register = self.register_of(&step);
        let value = match garbage {
            Some(garbage) => Some(garbage),
            None => register.map(|r| &*self.values[r]),
        };
        let stepped = self.subject.step(p, &self.locals[p].state, step.choice, value, self.cut)?;
        let idle = step.access.waits && self.cut && stepped.effect.is_none() && stepped.local == self.locals[p].state;
        let access = if self.describe {
            self.describe(&step, register, value, stepped.effect.as_deref(), garbage.is_some(), half)
        } else {
            String::new()
        };
        let mut changed = false;
        if let (Some(r), Some(new)) = (register, stepped.effect) {
            changed = half.is_some() || !new.same(&*self.values[r]);
            self.values[r] = new;
            self.versions[r] += 1;
        }
        if !idle {
            let moves = self.subject.moves(p, &stepped.local, self.cut)?;
            self.locals[p] = Arc::new(Local { state: stepped.local, moves });
        }
        Ok(self.event(p, &step, register, access, from, half, idle, changed))
    }

    /// A step that may turn out to change nothing shared: recalled if it has been made before, else made and noted.
    fn look(&mut self, p: usize, step: Move, index: usize, from: Region) -> Result<Event, Fault> {
        let register = self.register_of(&step);
        let version = register.map_or(0, |r| self.versions[r]);
        if let Some(to) = self.recalls[p].recall(index, version) {
            let idle = step.access.waits && *to == self.locals[p];
            self.locals[p] = to.clone();
            return Ok(self.event(p, &step, register, String::new(), from, None, idle, false));
        }
        let before = self.locals[p].clone();
        let event = self.make(p, step, from, None, None)?;
        let unchanged = register.is_some_and(|r| self.versions[r] == version);
        if unchanged && event.to == from {
            self.recalls[p].note(&before, index, version, &self.locals[p]);
        } else {
            self.recalls[p].forget();
        }
        Ok(event)
    }

    #[expect(clippy::too_many_arguments, reason = "an event is made of this many things")]
    fn event(
        &self,
        p: usize,
        step: &Move,
        register: Option<usize>,
        access: String,
        from: Region,
        half: Option<Half>,
        idle: bool,
        changed: bool,
    ) -> Event {
        Event {
            process: p,
            line: step.access.line,
            kind: step.access.kind,
            half,
            register,
            access,
            from,
            to: self.locals[p].state.region(),
            abandons: step.choice == Choice::Abandon,
            idle,
            changed,
        }
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
            (Kind::Choose(_), _) => match step.choice {
                Choice::Outcome(outcome) => format!("chooses {outcome}"),
                _ => "chooses".into(),
            },
            (Kind::Read, _) if garbage => format!("{name} = {held} (overlaps a write)"),
            (Kind::Read, _) => format!("{name} = {held}"),
            (Kind::Write, Some(Half::End)) => format!("{name} := {effect} ends"),
            (Kind::Write, _) => format!("{name} := {effect}"),
            (Kind::Update, _) if unchanged => format!("{name} = {held}, unchanged"),
            (Kind::Update, _) => format!("{name} := {effect}, was {held}"),
        };
        match step.choice {
            Choice::Abandon => format!("gives up: {text}"),
            _ => text,
        }
    }
}
