//! The stepped part: a process is killed after each instruction of each operation, in turn.
//!
//! A case is an operation and what the lock is like when it begins. How many instructions it takes is measured first; then a
//! process is killed after every number of them, in an order that covers the operation evenly from the start. The worker itself
//! is the live process that holds and waits meanwhile. After each kill it must get what it waits for, and all slots must be free.
//!
//! When all cases are done they begin again, with another process killed at random in the same lock right before.

use std::{
    path::Path,
    sync::atomic::Ordering::SeqCst,
    time::{Duration, Instant},
};

use doorway::shared::{Lock, Permit};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

use super::{
    kind::{Kind, Spec, check},
    operation::{Around, Case, Operation, cases, perform, stage},
    page::{Count, LIMIT, Page, Random},
    system::{exit_now, fork, reap, resume, step, trace_me, wait_for_stop},
};

/// The worker's number.
pub(crate) const WORKER: usize = 1;
/// A case that takes more instructions is not one that ends.
const MOST: u64 = 1_000_000;

/// How far a case is.
struct Sweep {
    case: Case,
    /// Once it is measured.
    length: Option<u64>,
    stride: u64,
    kills: u64,
}

struct Stepper<'a> {
    page: &'static Page,
    specs: &'a [Spec],
    random: Random,
}

/// Kills processes until the soak ends.
pub(crate) fn run(page: &'static Page, path: &Path, seed: u64) -> i32 {
    set_child_subreaper(Some(getpid())).expect("Linux knows it");
    let kinds = [("mutex", Kind::Mutex), ("semaphore", Kind::Semaphore(2)), ("group", Kind::Group(3))];
    let specs = kinds.map(|(name, kind)| Spec::new(path, &format!("steps-{name}"), kind, 16));
    let mut stepper = Stepper { page, specs: &specs, random: Random(seed) };
    for round in 0.. {
        let sweep = |case| Sweep { case, length: None, stride: 1, kills: 0 };
        let mut sweeps: Vec<Sweep> = cases().into_iter().map(sweep).collect();
        if round == 0 {
            page.set(Count::Cases, sweeps.len() as u64);
        }
        while !sweeps.is_empty() {
            for sweep in &mut sweeps {
                if page.ends() {
                    return 0;
                }
                page.beat(WORKER);
                stepper.advance(sweep, round > 0);
            }
            sweeps.retain(|sweep| {
                let done = sweep.length.is_some_and(|length| sweep.kills > length);
                if done && round == 0 {
                    page.add(Count::Swept);
                    page.set(Count::Instructions, page.get(Count::Instructions) + sweep.kills);
                    if std::env::var_os("DOORWAY_SOAK_CASES").is_some() {
                        println!("{:?}: {} instructions", sweep.case, sweep.kills);
                    }
                }
                !done
            });
        }
    }
    0
}

impl Stepper<'_> {
    /// Kills one process in a case.
    fn advance(&mut self, sweep: &mut Sweep, twice: bool) {
        let after = match sweep.length {
            None => MOST,
            Some(length) => {
                let after = sweep.kills.wrapping_mul(sweep.stride) % (length + 1);
                sweep.kills += 1;
                after
            }
        };
        match self.kill(sweep.case, after, twice) {
            Ok(length) if sweep.length.is_none() => {
                sweep.length = Some(length);
                sweep.stride = stride(length + 1);
            }
            Ok(_) => {}
            Err(what) => self.page.wrong(&format!("{:?}, killed after {after} instructions: {what}", sweep.case)),
        }
    }

    /// Lets a process execute an operation, kills it after so many instructions, and checks the lock. Returns how many there were.
    fn kill(&mut self, case: Case, after: u64, twice: bool) -> Result<u64, String> {
        let spec = self.specs.iter().find(|spec| spec.kind == case.kind).expect("there is one for each kind");
        let text = |error: doorway::shared::Error| error.to_string();
        let lock = spec.open().map_err(text)?;
        let mut held: Vec<Permit<'_>> = Vec::new();
        let needed = match (case.around, case.operation) {
            (Around::Full, _) => case.kind.slots(),
            (Around::Held, _) | (_, Operation::Adopt) => 1,
            _ => 0,
        };
        for _ in 0..needed {
            let place = lock.try_enter(case.kind.session(0)).map_err(text)?.ok_or("a slot is not free")?;
            held.push(place.wait().map_err(text)?);
        }
        let given = (case.operation == Operation::Adopt).then(|| held[0].hand_over());
        match (case.around, case.operation) {
            (Around::Dead, _) => dies_in_a_slot(spec),
            (_, Operation::Make) => lock.remove().map_err(text)?,
            _ => {}
        }
        if twice && case.operation != Operation::Make {
            let operation = [Operation::Enter, Operation::Try, Operation::Close][self.random.below(3)];
            // It must not wait for the slots of the worker.
            let waits = operation == Operation::Close && needed == case.kind.slots();
            let operation = if waits { Operation::Try } else { operation };
            let pid = self.prepare(spec, Case { operation, ..case }, None)?;
            let most = self.random.below(600) as u64;
            self.steps(pid, most)?;
        }
        let pid = self.prepare(spec, case, given.as_ref())?;
        let place = case.behind.then(|| lock.enter(case.kind.session(1))).transpose().map_err(text)?;
        let length = self.steps(pid, after)?;
        // A command that was started ends by itself.
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        self.restore(&lock, case)?;
        if given.is_some() && self.random.below(2) == 0 {
            held[0].take_back().map_err(text)?;
        }
        drop(held);
        if let Some(place) = place {
            let began = Instant::now();
            let permit = place
                .wait_timeout(LIMIT)
                .map_err(|late| format!("a live process waits: {late:?}: {:#?}", lock.status()))?;
            self.page.stalled.fetch_max(began.elapsed().as_nanos() as u64, SeqCst);
            drop(permit);
        }
        self.check(spec)?;
        Ok(length)
    }

    /// Forks a process and waits until it stops before its operation.
    fn prepare(&self, spec: &Spec, case: Case, given: Option<&doorway::shared::HandOver>) -> Result<Pid, String> {
        let page = self.page;
        page.stage.store(stage::PREPARES, SeqCst);
        let pid = fork(true, || {
            trace_me();
            if let Err(error) = perform(page, spec, case, given) {
                page.wrong(&format!("{case:?}: {error}"));
            }
            1
        });
        // Starting a command has it stop for other reasons, too.
        while page.stage.load(SeqCst) == stage::PREPARES {
            if !wait_for_stop(pid) {
                return Err("the process has ended before its operation".into());
            }
            if page.stage.load(SeqCst) == stage::PREPARES {
                resume(pid);
            }
        }
        Ok(pid)
    }

    /// Executes so many instructions of a process and kills it. Returns how many there were.
    fn steps(&self, pid: Pid, most: u64) -> Result<u64, String> {
        let mut executed = 0;
        let began = Instant::now();
        while executed < most && self.page.stage.load(SeqCst) != stage::DONE {
            if !step(pid) {
                return Err(format!("the process has ended after {executed} instructions"));
            }
            executed += 1;
            if executed.is_multiple_of(1024) && began.elapsed() > Duration::from_secs(10) {
                return Err(format!("the operation does not end, after {executed} instructions"));
            }
        }
        kill_process(pid, Signal::KILL).map_err(|error| error.to_string())?;
        let status = reap(pid);
        self.page.add(Count::Stepped);
        match status.terminating_signal() {
            Some(9) => Ok(executed),
            _ => Err(format!("the process was not killed: {status:?}")),
        }
    }

    /// Undoes what a dead process would have undone.
    fn restore(&self, lock: &Lock, case: Case) -> Result<(), String> {
        let restored = match case.operation {
            Operation::Resize => lock.set_slots(case.kind.slots()),
            Operation::Drain => lock.resume(),
            _ => Ok(()),
        };
        restored.map_err(|error| error.to_string())
    }

    /// Acquires all slots, in a fresh process now and then.
    fn check(&mut self, spec: &Spec) -> Result<(), String> {
        let checked = || {
            let lock = spec.open().map_err(|error| error.to_string())?;
            check(&lock, spec.kind)
        };
        self.page.add(Count::Checks);
        if self.random.below(16) == 0 {
            let pid = fork(true, || i32::from(checked().inspect_err(|what| self.page.wrong(what)).is_err()));
            if reap(pid).exit_status() == Some(0) { Ok(()) } else { Err("a fresh process cannot use the lock".into()) }
        } else {
            self.page.stalled.fetch_max(checked()?.as_nanos() as u64, SeqCst);
            Ok(())
        }
    }
}

/// Lets a process acquire a slot and die.
fn dies_in_a_slot(spec: &Spec) {
    let pid = fork(true, || {
        let lock = spec.open().expect("it can be opened");
        let _permit = lock.enter(spec.kind.session(0)).and_then(|place| place.wait()).expect("a slot is free");
        exit_now(0)
    });
    reap(pid);
}

/// Returns a number that leads through all numbers below another, evenly from the start.
fn stride(length: u64) -> u64 {
    let divides = |a: u64, b: u64| {
        let (mut a, mut b) = (a, b);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a == 1
    };
    let golden = (length as f64 * 0.618).max(1.0) as u64;
    (golden..).find(|&stride| divides(stride, length)).expect("a prime is among them")
}
