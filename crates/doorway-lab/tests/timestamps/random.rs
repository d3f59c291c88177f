//! Runs under random schedules, recorded.

use std::panic::{AssertUnwindSafe, catch_unwind};

use doorway_core::{RegisterKind, digits::Digits, layout::Erased};
use doorway_lab::{Choice, Kind, Random, Region, Subject, machine::Machine};

use super::{
    clock::{Op, Role, is_fresh, meaning, role},
    history::History,
    past::{Past, Record},
};

/// A run, recorded.
pub(crate) struct Recorder<'s> {
    machine: Machine<'s>,
    roles: Vec<Role>,
    record: Record,
    /// Reads and writes of the operation that each process is in.
    counts: Vec<Counts>,
    /// What operations cost that are over.
    pub(crate) costs: Vec<(Op, Counts)>,
}

/// How many accesses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counts {
    pub(crate) reads: usize,
    pub(crate) writes: usize,
}

pub(crate) fn digits(value: &dyn Erased) -> &Digits {
    value.any().downcast_ref().expect("all these registers hold digits")
}

impl<'s> Recorder<'s> {
    pub(crate) fn new(subject: &'s dyn Subject) -> Self {
        let n = subject.size().n;
        Self {
            machine: Machine::new(subject, RegisterKind::Atomic, true).expect("it runs").silent(),
            roles: subject.layout().cells().map(|cell| role(&cell.name())).collect(),
            record: Record::unchecked(n),
            counts: vec![Counts::default(); n],
            costs: Vec::new(),
        }
    }

    /// One step of `p`; it begins this operation if none is going on.
    pub(crate) fn step(&mut self, p: usize, next: Op) {
        let choice =
            if self.record.is_running(p) { Choice::Go } else { Choice::Request(next as u32) };
        if !self.record.is_running(p) {
            self.record.begin(p, next);
            self.counts[p] = Counts::default();
        }
        let event = self.machine.step(p, choice, None).expect("it runs");
        let register = event.register.expect("there are no choices");
        match event.kind {
            Kind::Read => self.counts[p].reads += 1,
            _ => self.counts[p].writes += 1,
        }
        let fresh = match self.roles[register] {
            Role::Saved(q, _) => {
                let shown = self
                    .roles
                    .iter()
                    .position(|role| *role == Role::Shown(p))
                    .expect("everybody shows colours");
                is_fresh(digits(self.machine.value(register)), digits(self.machine.value(shown)), q)
            }
            _ => false,
        };
        let op = self.record.op(p);
        let what = meaning(self.roles[register], event.kind, op, |q| self.record.took(p, q), fresh);
        self.record.observe(p, what);
        if event.to == Region::Critical {
            // The result is written down at once, as nobody looks.
            let event = self.machine.step(p, Choice::Go, None).expect("it runs");
            let result = digits(self.machine.value(event.register.expect("a result")));
            let ranks: Vec<usize> = result.iter().map(|rank| rank as usize).collect();
            self.costs.push((op, self.counts[p]));
            self.record.end(p, &ranks).expect("nothing is checked yet");
        }
    }
}

/// A run of so many steps. The weights of the processes change now and then, so that some stand
/// still for long in the middle of an operation while others are quick; how many of the operations
/// are Labels changes from run to run.
pub(crate) fn run(subject: &dyn Subject, steps: u64, seed: u64) -> (History, Vec<(Op, Counts)>) {
    let n = subject.size().n;
    let mut random = Random::new(seed, 0);
    let mut recorder = Recorder::new(subject);
    let labels = 1 + random.below(7);
    let change = [8, 32, 128][random.below(3) as usize];
    let mut weights = vec![1; n];
    for _ in 0..steps {
        if random.below(change) == 0 {
            weights
                .iter_mut()
                .for_each(|weight| *weight = [0, 0, 1, 1, 8, 64][random.below(6) as usize]);
        }
        let total: u64 = weights.iter().sum();
        if total == 0 {
            weights.fill(1);
            continue;
        }
        let mut at = random.below(total);
        let p = (0..n)
            .find(|&p| {
                let here = at < weights[p];
                at = at.saturating_sub(weights[p]);
                here
            })
            .expect("the weights add up");
        recorder.step(p, if random.below(8) < labels { Op::Label } else { Op::Scan });
    }
    (recorder.record.history(), recorder.costs)
}

/// What is wrong with a run, if anything; that labels went round in a circle counts.
pub(crate) fn judge(subject: &dyn Subject, steps: u64, seed: u64) -> Result<(), String> {
    match catch_unwind(AssertUnwindSafe(|| run(subject, steps, seed))) {
        Ok((history, _)) => history.check(),
        Err(panic) => {
            Err(panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "it panics".into()))
        }
    }
}
