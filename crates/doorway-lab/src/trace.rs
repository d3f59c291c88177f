//! Traces: a trace is a schedule that shows something, in a file that can be replayed.

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

/// A schedule and what happened in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trace {
    format: String,
    version: u32,
    /// The algorithm.
    pub algorithm: String,
    /// The number of processes.
    pub n: usize,
    /// The number of slots.
    pub k: usize,
    /// The number of sessions.
    pub sessions: usize,
    /// The variant, if several algorithms have that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<String>,
    /// The mutant, if the algorithm is one.
    pub mutant: Option<String>,
    /// What kind of registers: safe, regular or atomic.
    pub registers: String,
    /// The property that the trace violates, if any.
    pub property: Option<String>,
    /// What the trace shows, in words.
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
    /// The process that moves.
    pub process: usize,
    /// The paper's line.
    pub line: u32,
    /// The access, in words.
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
    /// The process that moves.
    pub process: usize,
    /// The choice that the process makes.
    pub choice: Choice,
    /// The word that a read which overlaps a write returns.
    pub garbage: Option<u64>,
}

/// Why a trace cannot be read or replayed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The text is not JSON, or not a trace.
    #[error("not a doorway trace: {0}; make one with `doorway lab check ALG --trace FILE`")]
    Foreign(String),
    /// The trace was made by a later version.
    #[error(
        "the trace has version {0}, this doorway reads version {VERSION}; replay it with the doorway that made it"
    )]
    Version(u64),
    /// The trace names something that does not exist here.
    #[error("the trace names {0}, which this doorway does not know; see `doorway {1}`")]
    Unknown(String, &'static str),
    /// The algorithm does not serve the trace's size.
    #[error("the trace does not fit: {0}")]
    Unfit(#[from] doorway_core::Unfit),
    /// The replay differs from the trace.
    #[error(
        "step {step} of the trace does not replay: it says {expected:?}, the algorithm does {actual:?}"
    )]
    Diverged {
        /// The number of the step, from 1.
        step: usize,
        /// What the trace says.
        expected: String,
        /// What the replay does.
        actual: String,
    },
    /// The trace replays, but nothing is violated.
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
    /// All steps.
    pub events: Vec<Event>,
    /// The violations: the number of the step and the property.
    pub violations: Vec<(usize, Property)>,
    /// What the registers hold at the end, by name.
    pub registers: Vec<(String, String)>,
    /// The region of each process at the end.
    pub regions: Vec<Region>,
    /// For `fife`: an overtaken process that goes round alone from the end on without entering. If
    /// there is none, only the search says that the process is not enabled.
    pub alone: Option<usize>,
}

impl Trace {
    /// Returns an empty trace of this subject.
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

    /// Parses a trace.
    ///
    /// # Errors
    /// If the text is not a trace, or is a trace of another version.
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

    /// Returns the trace as JSON.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a trace is plain data");
        text.push('\n');
        text
    }

    /// Returns the algorithm that the trace is about.
    ///
    /// # Errors
    /// If there is no algorithm of that name, or it does not serve that size.
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
        // If a process abandons its place or is killed in the trace, the subject must allow that.
        let chooses = |what| self.steps.iter().any(|step| step.choice.as_deref() == Some(what));
        let mut subject = entrant.build(size, mutant, chooses("abandon"))?;
        if chooses("kill") {
            subject.let_kill(ANY_NUMBER);
        }
        Ok(subject)
    }

    /// Replays the trace without forgetting anything and compares every step. Checks that the run
    /// violates the property that the trace names.
    ///
    /// # Errors
    /// If the algorithm does something else, or if the run does not violate that property.
    pub fn replay(&self) -> Result<Replayed, TraceError> {
        self.replay_watched(|_, _, _| {})
    }

    /// Like [`replay`](Self::replay), with an observer. After every step, the observer sees the
    /// machine, the step and what the step violated.
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

    /// Takes one turn. Where a process has to choose, [`Choice::Go`] takes the first choice.
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

    /// Returns the processes in the waiting section that have been overtaken since their doorway.
    pub(crate) fn overtaken(&self) -> Vec<usize> {
        self.monitor.behind().collect()
    }

    /// Returns the value of the register's type that a word stands for, if a read by `p` may return
    /// any value.
    fn garbage(&self, p: usize, choice: Choice, word: u64) -> Option<Box<dyn Erased>> {
        let step = self.machine.moves(p).iter().find(|m| m.choice == choice)?;
        let register = self.machine.register_of(step)?;
        if !self.machine.in_flux(register, p) {
            return None;
        }
        let held = self.machine.value(register);
        if self.machine.kind() == RegisterKind::Regular {
            // Only the old value or the new one.
            let new = self.machine.being_written(register, p)?;
            return [held.copy(), new].into_iter().find(|value| value.word() == u128::from(word));
        }
        // An overlapping read returns ∞ only for a type that has ∞.
        let ticket = Some(raw::ticket(word)).filter(|ticket| *ticket != Ticket::INFINITY);
        let domain = self.machine.layout().cell(register).domain(ticket.as_slice())?;
        domain.into_iter().find(|value| value.word() == u128::from(word))
    }
}

/// Returns a choice as it stands in a trace; `None` if the process has no other choice.
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

/// Returns the choice that these words stand for, if they stand for one.
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

    /// Returns the turn that this step stands for; `None` if it cannot be read.
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
