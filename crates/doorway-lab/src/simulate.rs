//! The simulator: long runs under a scheduler, with the references of every passage counted. A run follows from its
//! seed alone.

use std::collections::BTreeSet;

use doorway_core::RegisterKind;

use crate::{
    cost::Meter,
    fault::Fault,
    machine::{Event, Machine},
    monitor::Monitor,
    random::Random,
    replay::{Access, Kind},
    schedule::{
        Pct, RoundRobin, SECTION_4, SECTION_6, SECTION_6_SCRIPT, ScheduleError, Scheduler, Script, Uniform, View,
        requested, section_4,
    },
    subject::{Choice, LocalState, Move, Region, Subject},
};

/// How to run.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// Passages per process.
    pub passages: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// How many processes crash.
    pub crashes: usize,
    /// Steps at most.
    pub max_steps: u64,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Steps taken, failed waits included.
    pub steps: u64,
    /// What was violated: how often, by which property.
    pub violations: u64,
    /// Which properties were violated.
    pub violated: BTreeSet<&'static str>,
    /// The references.
    pub meter: Meter,
    /// Who crashed.
    pub crashed: Vec<usize>,
    /// Everybody who is left waits for something that will not come.
    pub stuck: bool,
    /// The run was cut off at its greatest number of steps.
    pub cut_off: bool,
    /// How often each process executed each line.
    pub lines: Vec<std::collections::BTreeMap<u32, u64>>,
}

/// A run that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The schedule cannot be followed.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The algorithm cannot be run in the lab.
    #[error("{0}")]
    Fault(Fault),
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
    Ok(match name {
        "round-robin" => Box::new(RoundRobin::default()),
        "random" => Box::new(Uniform(Random::new(seed, 1))),
        "pct" => Box::new(Pct::new(n, Random::new(seed, 1))),
        SECTION_4 if subject.name() == "burns-lamport" => Box::new(Script::parse(&section_4(n), n)?),
        SECTION_6 if subject.name() == "group-black-white-bakery" && n >= 4 && subject.size().sessions >= 2 => {
            Box::new(Script::parse(SECTION_6_SCRIPT, n)?)
        }
        name => match (name.strip_prefix("script:"), crate::schedule::section_5_for(name, subject)) {
            (Some(file), _) => Box::new(Script::parse(&script(file)?, n)?.for_simulation()?),
            (None, Some(text)) => Box::new(Script::parse(&text?, n)?),
            (None, None) => return Err(ScheduleError::Unknown(name.into()).into()),
        },
    })
}

/// The schedulers that every algorithm has, and then the ones that papers have made for this one.
pub fn schedulers(algorithm: &str) -> Vec<&'static str> {
    let mut names = vec!["random", "pct", "round-robin"];
    if algorithm == "burns-lamport" {
        names.push(SECTION_4);
    }
    names
}

/// Runs a subject under a scheduler.
///
/// # Errors
/// When the schedule cannot be followed, or the algorithm cannot be run in the lab.
pub fn simulate(
    subject: &dyn Subject,
    how: &Simulation,
    scheduler: &mut dyn Scheduler,
) -> Result<Outcome, SimulateError> {
    let size = subject.size();
    let claims = subject.claims();
    let mut machine = Machine::new(subject, RegisterKind::Atomic, true).map_err(SimulateError::Fault)?.silent();
    let mut monitor = Monitor::new(subject);
    let mut choices = Random::new(how.seed, 2);
    let mut crash = Crashes::new(how, size.n);
    let mut left = vec![how.passages; size.n];
    let mut regions = vec![Region::Remainder; size.n];
    let mut able: Vec<usize> = if how.passages == 0 { Vec::new() } else { (0..size.n).collect() };
    let mut standstill = Standstill::new(size.n);
    let mut last: Option<Event> = None;
    let mut outcome = Outcome {
        steps: 0,
        violations: 0,
        violated: BTreeSet::new(),
        meter: Meter::new(subject.cells(), size.n),
        crashed: Vec::new(),
        stuck: false,
        cut_off: false,
        lines: vec![Default::default(); size.n],
    };
    while let Some(p) = scheduler.next(&View { able: &able, last: last.as_ref(), regions: &regions })? {
        if outcome.steps >= how.max_steps {
            outcome.cut_off = true;
            break;
        }
        let chosen = machine.moves(p).len() > 1;
        let choice = match requested(scheduler.asks(), p, &machine, subject)? {
            Some(choice) => choice,
            None => choose(&machine, p, &mut choices),
        };
        let event = machine.step(p, choice, None).map_err(SimulateError::Fault)?;
        outcome.steps += 1;
        outcome.meter.observe(&event);
        *outcome.lines[p].entry(event.line).or_default() += 1;
        regions[p] = event.to;
        let value = event.register.map(|r| machine.value(r));
        for property in monitor.observe(&event, value) {
            if claims.properties.contains(&property) {
                outcome.violations += 1;
                outcome.violated.insert(property.name());
            }
        }
        if event.from == Region::Remainder {
            left[p] -= 1;
        }
        let mut changed = event.to == Region::Remainder && left[p] == 0;
        if let Some(dead) = crash.now(outcome.steps, &able, &regions) {
            outcome.crashed.push(dead);
            changed = true;
        }
        if changed {
            able.retain(|q| !(outcome.crashed.contains(q) || regions[*q] == Region::Remainder && left[*q] == 0));
        }
        standstill.observe(&event, chosen, &machine);
        if standstill.is_complete(&able) {
            outcome.stuck = true;
            break;
        }
        last = Some(event);
    }
    Ok(outcome)
}

/// Notices that everybody who is left waits for something that will not come.
///
/// A process that had no choice, has stayed in its region, and is in a local state that it was in before, with no register
/// changed since, will go on like that for as long as no register changes. If that is so of everybody, none ever will. Waits
/// look at one register or at many, so local states are compared where a round of a wait begins; those kept for it get
/// older by powers of two (Brent 1980), as a wait may come back to a state only after some rounds that carry others.
struct Standstill {
    /// Counts the changes: what was noted before the last one is void.
    changes: u64,
    noted: Vec<Noted>,
    /// How many processes have come back, of those who may have crashed since, too.
    back: usize,
}

#[derive(Clone, Default)]
struct Noted {
    /// When this was noted.
    changes: u64,
    /// The process has come back to a state.
    back: bool,
    /// A state that it was in, how many rounds ago, and after how many a newer one is kept.
    kept: Option<(LocalState, u32, u32)>,
}

impl Standstill {
    fn new(n: usize) -> Self {
        Self { changes: 1, noted: vec![Noted::default(); n], back: 0 }
    }

    /// Notes a step, and whether it was one of several that the process could have taken.
    fn observe(&mut self, event: &Event, chosen: bool, machine: &Machine<'_>) {
        let p = event.process;
        if event.changed || chosen || event.from != event.to {
            self.changes += 1;
            self.back = 0;
        }
        let noted = &mut self.noted[p];
        if noted.changes != self.changes {
            *noted = Noted { changes: self.changes, ..Noted::default() };
        }
        if noted.back {
            return;
        }
        let is_back = event.idle && !chosen || {
            let begins_round = matches!(machine.moves(p), [only] if only.access.waits);
            begins_round && noted.has_come_back(machine.local(p))
        };
        if is_back {
            noted.back = true;
            self.back += 1;
        }
    }

    /// Whether all of these have come back.
    fn is_complete(&self, able: &[usize]) -> bool {
        let is_back = |p: usize| self.noted[p].back && self.noted[p].changes == self.changes;
        !able.is_empty() && self.back >= able.len() && able.iter().all(|&p| is_back(p))
    }
}

impl Noted {
    /// Whether this state is the one that was kept; keeps it if the other is too old.
    fn has_come_back(&mut self, local: &LocalState) -> bool {
        match &mut self.kept {
            Some((kept, ..)) if kept == local => return true,
            Some((_, age, patience)) if *age < *patience => *age += 1,
            Some((kept, age, patience)) => (*kept, *age, *patience) = (local.clone(), 0, patience.saturating_mul(2)),
            None => self.kept = Some((local.clone(), 0, 1)),
        }
        false
    }
}

/// What a process chooses: the only thing it can, or one at random. A wait is given up once in a while.
pub(crate) fn choose(machine: &Machine<'_>, p: usize, random: &mut Random) -> Choice {
    match machine.moves(p) {
        [only] => only.choice,
        [first, second] if second.choice == Choice::Abandon => {
            if random.below(16) == 0 {
                Choice::Abandon
            } else {
                first.choice
            }
        }
        [Move { access: Access { kind: Kind::Choose(odds), .. }, .. }, ..] => Choice::Outcome(odds.draw(random)),
        several => several[random.below(several.len() as u64) as usize].choice,
    }
}

/// When processes crash: at random steps in the first part of the run, outside their remainder.
struct Crashes {
    random: Random,
    at: Vec<u64>,
}

impl Crashes {
    fn new(how: &Simulation, n: usize) -> Self {
        let mut random = Random::new(how.seed, 3);
        let horizon = (how.passages.saturating_mul(n as u64 * 4)).clamp(1, how.max_steps.max(1));
        let mut at: Vec<u64> = (0..how.crashes.min(n)).map(|_| 1 + random.below(horizon)).collect();
        at.sort_unstable_by(|a, b| b.cmp(a));
        Self { random, at }
    }

    fn now(&mut self, step: u64, able: &[usize], regions: &[Region]) -> Option<usize> {
        if self.at.last().is_none_or(|&at| at > step) {
            return None;
        }
        let inside: Vec<usize> = able.iter().copied().filter(|&p| regions[p] != Region::Remainder).collect();
        if inside.is_empty() {
            return None;
        }
        self.at.pop();
        Some(inside[self.random.below(inside.len() as u64) as usize])
    }
}
