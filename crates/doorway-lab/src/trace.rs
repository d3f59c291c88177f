//! Traces: a schedule that shows something, as a file that can be replayed.

mod confirm;
mod script;

use doorway_core::{
    ANY_NUMBER, Property, RegisterKind, Session, Size, Ticket, layout::Erased, raw,
};
use serde::{Deserialize, Serialize};

pub(crate) use self::confirm::{Alone, PATIENCE, alone};
use crate::{
    entrant::Entrant,
    fault::Fault,
    judge::Judge,
    machine::{Event, Half, Machine},
    monitor::Monitor,
    subject::{Choice, Region, Subject},
};

const FORMAT: &str = "doorway-trace";
const VERSION: u32 = 1;

/// A schedule, with what happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trace {
    format: String,
    version: u32,
    /// The algorithm.
    pub algorithm: String,
    /// Processes.
    pub n: usize,
    /// Slots.
    pub k: usize,
    /// Sessions.
    pub sessions: usize,
    /// Which of several algorithms under that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<String>,
    /// The mutant, if it is one.
    pub mutant: Option<String>,
    /// What kind of registers: safe, regular or atomic.
    pub registers: String,
    /// What it shows the violation of, if anything.
    pub property: Option<String>,
    /// What it shows, in words.
    pub shows: String,
    /// The processes that have crashed when the loop begins.
    pub crashed: Vec<usize>,
    /// The step from which the rest is repeated for ever.
    pub loop_from: Option<usize>,
    /// The steps.
    pub steps: Vec<TraceStep>,
}

/// One step of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceStep {
    /// Who moves.
    pub process: usize,
    /// The paper's line.
    pub line: u32,
    /// What is done.
    pub access: String,
    /// What the process chooses, if it has a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    /// The word that a read which overlaps a write returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub garbage: Option<u64>,
    /// Where the process is afterwards.
    pub region: String,
}

/// What one process does at its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// Who moves.
    pub process: usize,
    /// What it chooses.
    pub choice: Choice,
    /// The word that a read which overlaps a write returns.
    pub garbage: Option<u64>,
}

/// A trace cannot be read or replayed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Not JSON, or not a trace.
    #[error("not a doorway trace: {0}; make one with `doorway lab check ALG --trace FILE`")]
    Foreign(String),
    /// Made by a later version.
    #[error(
        "the trace has version {0}, this doorway reads version {VERSION}; replay it with the doorway that made it"
    )]
    Version(u64),
    /// It names something that does not exist here.
    #[error("the trace names {0}, which this doorway does not know; see `doorway {1}`")]
    Unknown(String, &'static str),
    /// The algorithm does not serve the trace's size.
    #[error("the trace does not fit: {0}")]
    Unfit(#[from] doorway_core::Unfit),
    /// Replaying it gave something else.
    #[error(
        "step {step} of the trace does not replay: it says {expected:?}, the algorithm does {actual:?}"
    )]
    Diverged {
        /// Which step, from 1.
        step: usize,
        /// What the trace says.
        expected: String,
        /// What happens.
        actual: String,
    },
    /// It replays, but nothing is violated.
    #[error(
        "the trace replays but does not show that {0} is violated; make one with `doorway lab check ALG --trace FILE`"
    )]
    NotShown(Property),
    /// The algorithm cannot be run in the lab.
    #[error("{0}")]
    Fault(Fault),
}

/// What a replay showed.
pub struct Replayed {
    /// Every step.
    pub events: Vec<Event>,
    /// What each step violated.
    pub violations: Vec<(usize, Property)>,
    /// What the registers hold at the end, by name.
    pub registers: Vec<(String, String)>,
    /// Who is where at the end.
    pub regions: Vec<Region>,
    /// For `fife`: one who has been overtaken and, from the end on, goes round alone without
    /// entering. Without this, that it is not enabled rests on the search.
    pub alone: Option<usize>,
}

impl Trace {
    /// An empty trace of this subject.
    pub(crate) fn of(subject: &dyn Subject, registers: RegisterKind) -> Self {
        let size = subject.size();
        Self {
            format: FORMAT.into(),
            version: VERSION,
            algorithm: subject.name().into(),
            n: size.n,
            k: size.k,
            sessions: size.sessions,
            timestamps: subject.variant().map(Into::into),
            mutant: subject.mutant().map(str::to_owned),
            registers: registers.name().into(),
            property: None,
            shows: String::new(),
            crashed: Vec::new(),
            loop_from: None,
            steps: Vec::new(),
        }
    }

    /// Reads a trace.
    ///
    /// # Errors
    /// If it is not one, or one of another version.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| TraceError::Foreign(error.to_string()))?;
        if value.get("format").and_then(|f| f.as_str()) != Some(FORMAT) {
            return Err(TraceError::Foreign(format!("it has no \"format\": \"{FORMAT}\"")));
        }
        match value.get("version").and_then(serde_json::Value::as_u64) {
            None => return Err(TraceError::Foreign("it has no \"version\"".into())),
            Some(version) if version != u64::from(VERSION) => {
                return Err(TraceError::Version(version));
            }
            Some(_) => {}
        }
        serde_json::from_value(value).map_err(|error| TraceError::Foreign(error.to_string()))
    }

    /// The trace as text.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a trace is plain data");
        text.push('\n');
        text
    }

    /// The algorithm that the trace is about.
    ///
    /// # Errors
    /// If there is none of that name, or not of that size.
    pub fn subject(&self) -> Result<Box<dyn Subject>, TraceError> {
        let entrant = Entrant::variants(&self.algorithm)
            .find(|entrant| {
                self.timestamps.is_none() || entrant.variant == self.timestamps.as_deref()
            })
            .ok_or_else(|| {
                TraceError::Unknown(format!("the algorithm {:?}", self.algorithm), "lab list")
            })?;
        let mutant = match &self.mutant {
            None => None,
            Some(name) => Some(
                entrant
                    .claims
                    .mutants
                    .iter()
                    .find(|mutant| mutant.name == name)
                    .ok_or_else(|| {
                        TraceError::Unknown(
                            format!("the mutant {name:?} of {}", self.algorithm),
                            "lab list",
                        )
                    })?
                    .name,
            ),
        };
        if self.n > 4096 {
            return Err(TraceError::Foreign(format!("it claims {} processes", self.n)));
        }
        let size = Size { n: self.n, k: self.k, sessions: self.sessions };
        // Whoever abandons its place or is killed in the trace must be able to.
        let chooses = |what| self.steps.iter().any(|step| step.choice.as_deref() == Some(what));
        let mut subject = entrant.build(size, mutant, chooses("abandon"))?;
        if chooses("kill") {
            subject.let_kill(ANY_NUMBER);
        }
        Ok(subject)
    }

    /// Runs the trace again, without forgetting anything, compares every step, and checks that what
    /// the trace says is violated is.
    ///
    /// # Errors
    /// If the algorithm does something else, or nothing is violated.
    pub fn replay(&self) -> Result<Replayed, TraceError> {
        self.replay_watched(|_, _, _| {})
    }

    /// The same, with somebody who sees the machine after every step, the step, and what it
    /// violated.
    pub(crate) fn replay_watched(
        &self,
        mut watch: impl FnMut(&Machine<'_>, &Event, &[Property]),
    ) -> Result<Replayed, TraceError> {
        let subject = self.subject()?;
        let registers = self.registers.parse::<RegisterKind>().map_err(|()| {
            TraceError::Unknown(format!("{:?} registers", self.registers), "lab check --help")
        })?;
        let mut judge = Judge::new(&*subject, registers).map_err(TraceError::Fault)?;
        let mut replayed = Replayed {
            events: Vec::new(),
            violations: Vec::new(),
            registers: Vec::new(),
            regions: Vec::new(),
            alone: None,
        };
        for (i, step) in self.steps.iter().enumerate() {
            let diverged = |actual: String| TraceError::Diverged {
                step: i + 1,
                expected: step.words(),
                actual,
            };
            let turn = step.turn().ok_or_else(|| diverged("no such move".into()))?;
            let (event, violated) = match judge.take(turn) {
                Ok(done) => done,
                Err(Fault::Impure) => return Err(diverged("no such move".into())),
                Err(fault) => return Err(TraceError::Fault(fault)),
            };
            let actual = TraceStep::new(&event, turn);
            if (&actual.access, actual.line, &actual.region)
                != (&step.access, step.line, &step.region)
            {
                return Err(diverged(actual.words()));
            }
            watch(&judge.uncut().machine, &event, &violated);
            replayed.violations.extend(violated.into_iter().map(|property| (i, property)));
            replayed.events.push(event);
        }
        let machine = &judge.uncut().machine;
        replayed.registers = subject
            .layout()
            .cells()
            .enumerate()
            .map(|(r, cell)| (cell.name(), machine.value(r).text()))
            .collect();
        replayed.regions = (0..self.n).map(|p| machine.region(p)).collect();
        self.confirm(&mut judge, &mut replayed)?;
        Ok(replayed)
    }
}

/// A machine with a monitor.
pub(crate) struct Run<'s> {
    pub(crate) machine: Machine<'s>,
    monitor: Monitor,
    subject: &'s dyn Subject,
}

impl<'s> Run<'s> {
    pub(crate) fn new(
        subject: &'s dyn Subject,
        registers: RegisterKind,
        cut: bool,
    ) -> Result<Self, Fault> {
        Ok(Self {
            machine: Machine::new(subject, registers, cut)?,
            monitor: Monitor::new(subject),
            subject,
        })
    }

    /// Takes one turn. To go on from a place where something has to be chosen is to choose the
    /// first.
    pub(crate) fn take(&mut self, turn: Turn) -> Result<(Event, Vec<Property>), Fault> {
        if turn.process >= self.subject.size().n {
            return Err(Fault::Impure);
        }
        let moves = self.machine.moves(turn.process);
        let choice = match turn.choice {
            Choice::Go if moves.iter().all(|m| m.choice != Choice::Go) => moves[0].choice,
            choice => choice,
        };
        let garbage = match turn.garbage {
            None => None,
            Some(word) => Some(self.garbage(turn.process, choice, word).ok_or(Fault::Impure)?),
        };
        let event = self.machine.step(turn.process, choice, garbage.as_deref())?;
        let value = event.register.map(|r| self.machine.value(r));
        let violated = self.monitor.observe(&event, value);
        Ok((event, violated))
    }

    /// Those who have been overtaken since they were through their doorway, and are not in yet.
    pub(crate) fn overtaken(&self) -> Vec<usize> {
        self.monitor.behind().collect()
    }

    /// The value of the register's type that a word stands for, if a read by `p` may return just
    /// any.
    fn garbage(&self, p: usize, choice: Choice, word: u64) -> Option<Box<dyn Erased>> {
        let step = self.machine.moves(p).iter().find(|m| m.choice == choice)?;
        let register = self.machine.register_of(step)?;
        if !self.machine.in_flux(register, p) {
            return None;
        }
        let held = self.machine.value(register);
        if self.machine.kind() == RegisterKind::Regular {
            // The old value or the new one, and no other.
            let new = self.machine.being_written(register, p)?;
            return [held.copy(), new].into_iter().find(|value| value.word() == u128::from(word));
        }
        // Only a type with ∞ has an overlapping read return it.
        let ticket = Some(raw::ticket(word)).filter(|ticket| *ticket != Ticket::INFINITY);
        let domain = self.machine.layout().cell(register).domain(ticket.as_slice())?;
        domain.into_iter().find(|value| value.word() == u128::from(word))
    }
}

/// A choice as it stands in a trace; nothing where there is no other.
pub(crate) fn in_words(choice: Choice, session: Session) -> Option<String> {
    match choice {
        Choice::Go => None,
        Choice::Request(_) if session != Session::NONE => Some(format!("session {}", session.0)),
        Choice::Request(0) => None,
        Choice::Request(r) => Some(format!("request {r}")),
        Choice::Abandon => Some("abandon".into()),
        Choice::Kill => Some("kill".into()),
        Choice::Outcome(o) => Some(format!("outcome {o}")),
        Choice::RequestOutcome(r, o) => Some(match in_words(Choice::Request(r), session) {
            Some(request) => format!("{request}, outcome {o}"),
            None => format!("request {r}, outcome {o}"),
        }),
    }
}

/// The choice that these words stand for, if they are any.
pub(crate) fn from_words(words: Option<&str>) -> Option<Choice> {
    Some(match words {
        None => Choice::Go,
        Some("abandon") => Choice::Abandon,
        Some("kill") => Choice::Kill,
        Some(words) if words.contains(", ") => {
            let (request, outcome) = words.split_once(", ")?;
            let request = from_words(Some(request))?.request()?;
            Choice::RequestOutcome(request, from_words(Some(outcome))?.outcome()?)
        }
        Some(words) => match words.split_once(' ')? {
            ("session", number) => Choice::Request(number.parse::<u32>().ok()?.checked_sub(1)?),
            ("request", number) => Choice::Request(number.parse().ok()?),
            ("outcome", number) => Choice::Outcome(number.parse().ok()?),
            _ => return None,
        },
    })
}

impl TraceStep {
    pub(crate) fn new(event: &Event, turn: Turn) -> Self {
        let choice =
            if event.half == Some(Half::End) { None } else { in_words(turn.choice, event.session) };
        Self {
            process: event.process,
            line: event.line,
            access: event.access.clone(),
            choice,
            garbage: turn.garbage,
            region: format!("{:?}", event.to).to_lowercase(),
        }
    }

    /// What the process is to do; `None` if that cannot be read.
    fn turn(&self) -> Option<Turn> {
        Some(Turn {
            process: self.process,
            choice: from_words(self.choice.as_deref())?,
            garbage: self.garbage,
        })
    }

    fn words(&self) -> String {
        format!("line {}: {}, then in {}", self.line, self.access, self.region)
    }
}
