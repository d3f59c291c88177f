//! The simulator: long runs under a scheduler, with the references of every passage counted. A run
//! depends only on its seed.

mod lemmas;

use std::{collections::BTreeSet, sync::Arc};

use doorway_core::RegisterKind;

pub use self::lemmas::Lemmas;
use crate::{
    cost::Meter,
    fault::Fault,
    machine::{Event, Machine},
    monitor::Monitor,
    random::Random,
    replay::{Access, Kind},
    schedule::{ScheduleError, Scheduler, View, requested},
    subject::{Choice, LocalState, Move, Region, Subject},
};

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// Passages per process.
    pub passages: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// The number of processes that crash.
    pub crashes: usize,
    /// The largest number of steps.
    pub max_steps: u64,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Steps taken, failed waits included.
    pub steps: u64,
    /// The number of violations: how often, by which property.
    pub violations: u64,
    /// Which properties were violated.
    pub violated: BTreeSet<&'static str>,
    /// The references.
    pub meter: Meter,
    /// The processes that crashed.
    pub crashed: Vec<usize>,
    /// Every remaining process waits for something that never happens.
    pub stuck: bool,
    /// The run was cut off at its largest number of steps.
    pub cut_off: bool,
    /// How often each process executed each line.
    pub lines: Lines,
    /// What the proof of Giakkoupis and Woelfel 2014 counts, for its lock.
    pub lemmas: Option<Lemmas>,
}

/// How often each process executed each line of the paper.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lines(Vec<Vec<u64>>);

impl Lines {
    fn new(n: usize) -> Self {
        Self(vec![Vec::new(); n])
    }

    #[inline]
    fn count(&mut self, p: usize, line: u32, times: u64) {
        let (lines, line) = (&mut self.0[p], line as usize);
        if line >= lines.len() {
            lines.resize(line + 1, 0);
        }
        lines[line] += times;
    }

    /// Returns how often `p` executed this line.
    pub fn of(&self, p: usize, line: u32) -> u64 {
        self.0[p].get(line as usize).copied().unwrap_or(0)
    }
}

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The schedule cannot be followed.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The algorithm cannot be run in the lab.
    #[error("{0}")]
    Fault(Fault),
}

pub use crate::schedule::{scheduler, schedulers};

/// Runs a subject under a scheduler.
///
/// # Errors
/// When the schedule cannot be followed, or the algorithm cannot be run in the lab.
pub fn simulate(
    subject: &dyn Subject,
    how: &Simulation,
    scheduler: &mut dyn Scheduler,
) -> Result<Outcome, SimulateError> {
    let machine =
        Machine::new(subject, RegisterKind::Atomic, true).map_err(SimulateError::Fault)?.silent();
    simulate_on(machine, subject, how, scheduler)
}

/// Like [`simulate`], on a machine that is about to start. Tests compare machines that remember
/// steps with machines that replay them.
///
/// # Errors
/// When the schedule cannot be followed, or the algorithm cannot be run in the lab.
pub fn simulate_on(
    mut machine: Machine<'_>,
    subject: &dyn Subject,
    how: &Simulation,
    scheduler: &mut dyn Scheduler,
) -> Result<Outcome, SimulateError> {
    let size = subject.size();
    let claims = subject.claims();
    let bound = claims.bound.map(|bound| bound(size));
    let mut monitor = Monitor::new(subject);
    let mut choices = Random::new(how.seed, 2);
    let mut crash = Crashes::new(how, size.n);
    let mut left = vec![how.passages; size.n];
    let mut regions = vec![Region::Remainder; size.n];
    let mut able: Vec<usize> = if how.passages == 0 { Vec::new() } else { (0..size.n).collect() };
    let mut standstill = Standstill::new(size.n);
    // The number of looks of each process that have not been counted under their line yet.
    let mut looks = vec![0; size.n];
    let mut outcome = Outcome {
        steps: 0,
        violations: 0,
        violated: BTreeSet::new(),
        meter: Meter::new(size.n),
        crashed: Vec::new(),
        stuck: false,
        cut_off: false,
        lines: Lines::new(size.n),
        lemmas: Lemmas::of(subject),
    };
    loop {
        let last = (outcome.steps > 0).then(|| machine.last());
        let meter = &outcome.meter;
        let view = View { able: &able, last, regions: &regions, machine: &machine, meter };
        let Some(p) = scheduler.next(&view)? else { break };
        if outcome.steps >= how.max_steps {
            outcome.cut_off = true;
            break;
        }
        // Most steps of most runs are failed waits. They take this shorter path, with the same
        // effect.
        if bound.is_none_or(|bound| machine.none_exceeds(bound)) && machine.looks_again(p) {
            outcome.meter.looked_again(p, machine.last().remote);
            looks[p] += 1;
            standstill.looked(p);
        } else {
            let chosen = machine.has_several(p);
            let index = match requested(scheduler.asks(), p, &machine, subject)? {
                Some((index, _)) => index,
                None => choose(&machine, p, &mut choices),
            };
            machine.advance(p, index).map_err(SimulateError::Fault)?;
            let event = machine.last();
            outcome.meter.observe(event);
            outcome.lines.count(p, event.line, 1 + std::mem::take(&mut looks[p]));
            regions[p] = event.to;
            if let Some(lemmas) = &mut outcome.lemmas {
                lemmas.observe(event, &machine);
            }
            let value = match event.register {
                Some(register) if monitor.watches(register) => Some(machine.value(register)),
                _ => bound.and_then(|bound| machine.exceeds(event, bound)),
            };
            if value.is_some()
                || event.from != event.to
                || event.abandons
                || event.from == Region::Remainder
            {
                for property in monitor.observe(event, value) {
                    if claims.properties.contains(&property) {
                        outcome.violations += 1;
                        outcome.violated.insert(property.name());
                    }
                }
            }
            if event.from == Region::Remainder {
                left[p] -= 1;
            }
            if event.to == Region::Remainder && left[p] == 0 {
                able.retain(|q| *q != p);
            }
            standstill.observe(event, chosen, &machine);
        }
        outcome.steps += 1;
        if let Some(dead) = crash.now(outcome.steps, &able, &regions) {
            outcome.crashed.push(dead);
            able.retain(|q| *q != dead);
        }
        if standstill.is_complete(&able) {
            outcome.stuck = true;
            break;
        }
    }
    for (p, looks) in looks.into_iter().enumerate().filter(|(_, looks)| *looks > 0) {
        outcome.lines.count(p, machine.line(p), looks);
    }
    Ok(outcome)
}

/// Detects that every remaining process waits for something that never happens.
///
/// Consider a process that had no choice, has stayed in its region, and is in a local state in
/// which it was before, with no register changed since. It will go on like that for as long as no
/// register changes. If that holds for every process, no register ever will. A wait looks at one
/// register or at many, so local states are compared where a round of a wait begins. The states
/// kept for this comparison get older by powers of two (Brent 1980), because a wait may come back
/// to a state only after some rounds that carry other values.
struct Standstill {
    /// The number of changes. Notes from before the last change are void.
    changes: u64,
    /// The last note of each process: twice the number of changes at that time, plus one if the
    /// process had come back to a state.
    noted: Vec<u64>,
    /// For each process a state that it was in, how many rounds ago, and after how many rounds a
    /// newer one is kept.
    kept: Vec<Option<(Arc<LocalState>, u32, u32)>>,
    /// The number of processes that have come back, including processes that have crashed since.
    back: usize,
}

impl Standstill {
    fn new(n: usize) -> Self {
        Self { changes: 1, noted: vec![0; n], kept: vec![None; n], back: 0 }
    }

    /// Notes a step, and whether it was one of several moves of the process.
    #[inline]
    fn observe(&mut self, event: &Event, chosen: bool, machine: &Machine<'_>) {
        let p = event.process;
        if event.changed || chosen || event.from != event.to {
            self.changes += 1;
            self.back = 0;
        }
        if self.noted[p] == self.is_back() {
            return;
        }
        if event.idle && !chosen {
            self.looked(p);
            return;
        }
        if self.noted[p] != 2 * self.changes {
            self.noted[p] = 2 * self.changes;
            self.kept[p] = None;
        }
        let begins_round = matches!(machine.moves(p), [only] if only.access.waits);
        if begins_round && has_come_back(&mut self.kept[p], machine.local(p)) {
            self.looked(p);
        }
    }

    /// Notes that a process is where it was.
    #[inline]
    fn looked(&mut self, p: usize) {
        let is_back = self.is_back();
        if std::mem::replace(&mut self.noted[p], is_back) != is_back {
            self.back += 1;
        }
    }

    /// Returns the note of a process that has come back since the last change.
    #[inline]
    fn is_back(&self) -> u64 {
        2 * self.changes + 1
    }

    /// Returns whether all of these processes have come back.
    #[inline]
    fn is_complete(&self, able: &[usize]) -> bool {
        !able.is_empty()
            && self.back >= able.len()
            && able.iter().all(|&p| self.noted[p] == self.is_back())
    }
}

/// Returns whether this state is the kept one; keeps it instead if the kept one is too old.
fn has_come_back(kept: &mut Option<(Arc<LocalState>, u32, u32)>, local: &Arc<LocalState>) -> bool {
    match kept {
        Some((kept, ..)) if Arc::ptr_eq(kept, local) || kept == local => return true,
        Some((_, age, patience)) if *age < *patience => *age += 1,
        Some((kept, age, patience)) => {
            (*kept, *age, *patience) = (local.clone(), 0, patience.saturating_mul(2))
        }
        None => *kept = Some((local.clone(), 0, 1)),
    }
    false
}

/// Returns the move that a process chooses: its only move, or one at random. Sometimes a process
/// gives up its wait.
#[inline]
pub(crate) fn choose(machine: &Machine<'_>, p: usize, random: &mut Random) -> usize {
    if !machine.has_several(p) {
        return 0;
    }
    match machine.moves(p) {
        [_, second] if second.choice == Choice::Abandon => usize::from(random.below(16) == 0),
        [
            Move { access: Access { kind: Kind::Choose(odds), .. }, choice: Choice::Outcome(_) },
            ..,
        ] => odds.draw(random) as usize,
        // Passages that begin with a choice: first the request is chosen, then the outcome of its
        // choice.
        moves @ [Move { choice: Choice::RequestOutcome(..), .. }, ..] => {
            let any = moves[random.below(moves.len() as u64) as usize];
            let Kind::Choose(odds) = any.access.kind else { return 0 };
            let drawn = any
                .choice
                .request()
                .map(|request| Choice::RequestOutcome(request, odds.draw(random)));
            moves.iter().position(|step| Some(step.choice) == drawn).unwrap_or(0)
        }
        several => random.below(several.len() as u64) as usize,
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
        let inside: Vec<usize> =
            able.iter().copied().filter(|&p| regions[p] != Region::Remainder).collect();
        if inside.is_empty() {
            return None;
        }
        self.at.pop();
        Some(inside[self.random.below(inside.len() as u64) as usize])
    }
}
