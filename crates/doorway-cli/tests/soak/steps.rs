//! The stepped part: a process is killed after each instruction of each operation, in turn.
//!
//! A case is an operation and what the lock is like when it begins. How many instructions it takes
//! is measured first; then a process is killed after every number of them, in an order that covers
//! the operation evenly from the start. The worker itself is the live process that holds and waits
//! meanwhile. After each kill it must get what it waits for, and all slots must be free.
//!
//! When all cases are done they begin again, with another process killed at random in the same lock
//! right before.

use std::{path::Path, sync::atomic::Ordering::SeqCst};

use doorway::shared::{HandOver, Lock, NotYet, Permit};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::{
    kind::{Kind, Spec, check},
    operation::{Around, Case, Operation, cases, perform},
    page::{Count, LIMIT, Page, Random, STEPPERS, STEPPERS_ARE_NICE, Task},
    stall::Stall,
    system::{be_nice, exit_now, fork, reap},
};

/// An operation with more instructions is tried at a few of them only: opening and making a lock,
/// which is mostly reading of text. A trap takes up to 30 µs on a virtual machine.
const LONG: u64 = 20_000;
const FEW: u64 = 40;
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
    share: usize,
    random: Random,
}

/// Kills processes until the soak ends.
pub(crate) fn run(page: &'static Page, path: &Path, task: &Task) -> i32 {
    // Traps take all the time that they get, and most kills are made elsewhere.
    be_nice(STEPPERS_ARE_NICE);
    let kinds =
        [("mutex", Kind::Mutex), ("semaphore", Kind::Semaphore(2)), ("group", Kind::Group(3))];
    let specs =
        kinds.map(|(name, kind)| Spec::new(path, &format!("steps{}-{name}", task.share), kind, 16));
    let mut stepper = Stepper { page, specs: &specs, share: task.share, random: Random(task.seed) };
    for round in 0.. {
        let sweep = |case| Sweep { case, length: None, stride: 1, kills: 0 };
        let cases = cases();
        page.set(Count::Cases, cases.len() as u64);
        // Each stepper has some of the cases.
        let mut sweeps: Vec<Sweep> =
            cases.into_iter().skip(task.share).step_by(STEPPERS).map(sweep).collect();
        while !sweeps.is_empty() {
            for sweep in &mut sweeps {
                if page.ends() {
                    return 0;
                }
                page.beat(task.worker);
                stepper.advance(sweep, round > 0);
            }
            sweeps.retain(|sweep| {
                let done = sweep
                    .length
                    .is_some_and(|length| sweep.kills > if length > LONG { FEW } else { length });
                if done && round == 0 {
                    page.add(Count::Swept);
                    page.add_many(Count::Instructions, sweep.kills);
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
            Ok(MOST..) if sweep.length.is_none() => {
                self.page.wrong(&format!("{:?} does not end", sweep.case))
            }
            Ok(length) if sweep.length.is_none() => {
                sweep.length = Some(length);
                sweep.stride = stride(length + 1);
            }
            Ok(_) => {}
            Err(what) => self
                .page
                .wrong(&format!("{:?}, killed after {after} instructions: {what}", sweep.case)),
        }
    }

    /// Lets a process execute an operation, kills it after so many instructions, and checks the
    /// lock. Returns how many there were.
    fn kill(&mut self, case: Case, after: u64, twice: bool) -> Result<u64, String> {
        let spec = self
            .specs
            .iter()
            .find(|spec| spec.kind == case.kind)
            .expect("there is one for each kind");
        let text = |error: doorway::shared::Error| error.to_string();
        let lock = spec.open().map_err(text)?;
        let mut held: Vec<Permit<'_>> = Vec::new();
        let needed = match (case.around, case.operation) {
            (Around::Full, _) => case.kind.slots(),
            (Around::Held, _) | (_, Operation::Adopt) => 1,
            _ => 0,
        };
        for _ in 0..needed {
            let place =
                lock.try_enter(case.kind.session(0)).map_err(text)?.ok_or("a slot is not free")?;
            held.push(place.wait().map_err(text)?);
        }
        let given = (case.operation == Operation::Adopt).then(|| held[0].hand_over());
        match (case.around, case.operation) {
            (Around::Dead, _) => dies_in_a_slot(spec),
            (_, Operation::Make) => lock.remove().map_err(text)?,
            _ => {}
        }
        if twice && case.operation != Operation::Make {
            let operation =
                [Operation::Enter, Operation::Try, Operation::Close][self.random.below(3)];
            // It must not wait for the slots of the worker.
            let waits = operation == Operation::Close && needed == case.kind.slots();
            let operation = if waits { Operation::Try } else { operation };
            let instructions = self.random.below(600) as u64;
            let pid =
                self.start(spec, Case { operation, behind: false, ..case }, None, instructions)?;
            self.ends(pid)?;
        }
        let pid = self.start(spec, case, given.as_ref(), after)?;
        let mut place = None;
        if case.behind {
            place = Some(lock.enter(case.kind.session(1)).map_err(text)?);
            kill_process(pid, Signal::CONT).map_err(|error| error.to_string())?;
        }
        self.ends(pid)?;
        let length = self.page.executed[self.share].load(SeqCst);
        self.restore(&lock, case)?;
        if given.is_some() && self.random.below(2) == 0 {
            held[0].take_back().map_err(text)?;
        }
        drop(held);
        if let Some(mut place) = place {
            let mut stall = Stall::of_this_process();
            while let Err(late) = place.wait_timeout(LIMIT) {
                match late {
                    NotYet::Late(late) if stall.goes_on(self.page) => place = late,
                    late => {
                        return Err(format!(
                            "a live process waits: {late:?}: {:#?}",
                            lock.status()
                        ));
                    }
                }
            }
            stall.goes_on(self.page);
        }
        self.check(spec)?;
        Ok(length)
    }

    /// Forks a process that executes an operation and is killed after so many instructions. If
    /// another is to be behind it, it stops before the operation.
    fn start(
        &self,
        spec: &Spec,
        case: Case,
        given: Option<&HandOver>,
        instructions: u64,
    ) -> Result<Pid, String> {
        let (page, executed) = (self.page, &self.page.executed[self.share]);
        executed.store(0, SeqCst);
        let pid = fork(true, || {
            if let Err(error) = perform(executed, spec, case, given, instructions) {
                page.wrong(&format!("{case:?}: {error}"));
            }
            1
        });
        if case.behind {
            let stopped =
                waitpid(Some(pid), WaitOptions::UNTRACED).map_err(|error| error.to_string())?;
            if !stopped.is_some_and(|(_, status)| status.stopped()) {
                return Err(format!("the process has ended before its operation: {stopped:?}"));
            }
        }
        Ok(pid)
    }

    /// Waits until a process has been killed.
    fn ends(&self, pid: Pid) -> Result<(), String> {
        let status = reap(pid);
        self.page.add(Count::Stepped);
        match status.terminating_signal() {
            Some(libc::SIGKILL) => Ok(()),
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
            check(self.page, &lock, spec.kind)
        };
        self.page.add(Count::Checks);
        if self.random.below(16) == 0 {
            let pid = fork(true, || {
                i32::from(checked().inspect_err(|what| self.page.wrong(what)).is_err())
            });
            if reap(pid).exit_status() == Some(0) {
                Ok(())
            } else {
                Err("a fresh process cannot use the lock".into())
            }
        } else {
            checked()
        }
    }
}

/// Lets a process acquire a slot and die.
fn dies_in_a_slot(spec: &Spec) {
    let pid = fork(true, || {
        let lock = spec.open().expect("it can be opened");
        let _permit = lock
            .enter(spec.kind.session(0))
            .and_then(|place| place.wait())
            .expect("a slot is free");
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
