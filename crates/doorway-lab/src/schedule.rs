//! Schedulers: who moves next in a simulation. Some mean no harm, some are written down, and some
//! are adversaries, each of which sees [exactly what its definition lets it see](adversary).

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

/// All there is to see.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Processes that can move, in ascending order.
    pub able: &'a [usize],
    /// The last step.
    pub last: Option<&'a Event>,
    /// Where each process is.
    pub regions: &'a [Region],
    /// The run: every register and every process.
    pub machine: &'a Machine<'a>,
    /// What it has cost, and who has a copy of which register.
    pub meter: &'a Meter,
}

/// Decides who moves next.
pub trait Scheduler {
    /// One of the able processes, or nobody if the schedule is over.
    ///
    /// # Errors
    /// When the schedule asks for something that cannot be done.
    fn next(&mut self, view: &View<'_>) -> Result<Option<usize>, ScheduleError>;

    /// What the step that [`next`](Self::next) has decided on asks for, if the schedule says so:
    /// the session, and the line in which it says so.
    fn asks(&self) -> Option<(u32, usize)> {
        None
    }
}

/// The move with which a process asks for what the schedule says, if it says so: its index, and
/// what it chooses.
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

/// A scheduler by its name; `script` reads the file of `script:FILE`.
///
/// # Errors
/// If there is none of that name, or the script is not one.
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

/// The schedulers under which every algorithm is measured, and then the ones that papers have made
/// for this one.
pub fn schedulers(algorithm: &str) -> Vec<&'static str> {
    let mut names = vec!["random", "pct", "round-robin"];
    if algorithm == "burns-lamport" {
        names.push(SECTION_4);
    }
    names
}
