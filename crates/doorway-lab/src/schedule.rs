//! Schedulers choose the process that moves next in a simulation. Some let every process move again
//! and again, some are written down, and some are adversaries. Each adversary sees [exactly what
//! its definition allows](adversary).

pub mod adversary;
mod fair;
mod script;

pub use self::{
    adversary::ADVERSARIES,
    fair::{Pct, RoundRobin, Uniform},
    script::{
        SECTION_4, SECTION_5, SECTION_6, SECTION_6_SCRIPT, ScheduleError, Script, section_4,
        section_5,
    },
};
use doorway_core::Session;

use crate::{
    cost::Meter,
    machine::{Event, Machine},
    random::Random,
    subject::{Choice, Move, Region, Subject},
};

/// All that a scheduler can see.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Processes that can move, in ascending order.
    pub able: &'a [usize],
    /// The last step.
    pub last: Option<&'a Event>,
    /// The region of each process.
    pub regions: &'a [Region],
    /// The run: every register and every process.
    pub machine: &'a Machine<'a>,
    /// The references so far, and which process has a copy of which register.
    pub meter: &'a Meter,
}

/// Decides which process moves next.
pub trait Scheduler {
    /// Returns one of the able processes, or `None` if the schedule is over.
    ///
    /// # Errors
    /// When the schedule asks for something that cannot be done.
    fn next(&mut self, view: &View<'_>) -> Result<Option<usize>, ScheduleError>;

    /// Returns the session that the schedule names for the step of [`next`](Self::next), if any,
    /// and the line that names it.
    fn asks(&self) -> Option<(u32, usize)> {
        None
    }
}

/// Returns the move by which a process makes the request of the schedule, if there is one: its
/// index, and the choice.
pub(crate) fn requested(
    asks: Option<(u32, usize)>,
    process: usize,
    machine: &Machine<'_>,
    subject: &dyn Subject,
) -> Result<Option<(usize, Choice)>, ScheduleError> {
    let Some((session, line)) = asks else { return Ok(None) };
    let asks_for_it =
        |(_, step): &(usize, &Move)| match (step.choice.request(), step.choice.outcome()) {
            (Some(request), _) if session != 0 => subject.session(request) == Session(session),
            (None, Some(outcome)) => outcome == session,
            _ => false,
        };
    let step = machine.moves(process).iter().enumerate().find(asks_for_it);
    step.map(|(index, step)| Some((index, step.choice)))
        .ok_or(ScheduleError::NoSession { line, process })
}

/// Returns a scheduler by its name; `script` reads the file of `script:FILE`.
///
/// # Errors
/// If there is no scheduler of that name, or the file is not a script.
pub fn scheduler<E: From<ScheduleError>>(
    name: &str,
    subject: &dyn Subject,
    seed: u64,
    script: impl FnOnce(&str) -> Result<String, E>,
) -> Result<Box<dyn Scheduler>, E> {
    let n = subject.size().n;
    let random = Random::new(seed, 1);
    Ok(match name {
        "round-robin" => Box::new(RoundRobin::default()),
        "random" => Box::new(Uniform(random)),
        "pct" => Box::new(Pct::new(n, random)),
        SECTION_4 if subject.name() == "burns-lamport" => {
            Box::new(Script::parse(&section_4(n), n)?)
        }
        SECTION_6
            if subject.name() == "group-black-white-bakery"
                && n >= 4
                && subject.size().sessions >= 2 =>
        {
            Box::new(Script::parse(SECTION_6_SCRIPT, n)?)
        }
        name => match (name.strip_prefix("script:"), script::section_5_for(name, subject)) {
            (Some(file), _) => Box::new(Script::parse(&script(file)?, n)?.for_simulation()?),
            (None, Some(text)) => Box::new(Script::parse(&text?, n)?),
            (None, None) => match adversary::named(name, n, random) {
                Some(adversary) => adversary,
                None => return Err(ScheduleError::Unknown(name.into()).into()),
            },
        },
    })
}

/// Returns the schedulers for an algorithm.
///
/// First come the schedulers under which every algorithm is measured, then those that papers have
/// made for this algorithm.
pub fn schedulers(algorithm: &str) -> Vec<&'static str> {
    let mut names = vec!["random", "pct", "round-robin"];
    if algorithm == "burns-lamport" {
        names.push(SECTION_4);
    }
    names
}
