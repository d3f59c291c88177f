//! Soaks the named locks: kills processes that use them, a million if asked to, and checks that
//! nothing is lost.
//!
//!     cargo test --release --package doorway-cli --test soak -- 1000000
//!
//! Three parts run at the same time, each in a process of its own:
//!
//! - `storm`: processes that use a lock in all ways are killed at random moments.
//! - `steps`: one operation after the other is executed instruction by instruction and killed after
//!   the first, the second, … the last one.
//! - `command`: wrappers and commands of `doorway run` are killed at random moments, 1 of 50 kills.
//!
//! Each kill is a SIGKILL. Without an argument 3000 are made, and stalled waits are only reported:
//! the machine may be busy. Exits with 1 after the first violation. No process is left behind.
//!
//! A trap after each instruction takes up to 30 µs on a virtual machine, so a soak of all parts
//! ends before every instruction of every operation has been tried: it says how many operations are
//! done. They are covered evenly from the start. `-- 200000 steps` does nothing else.

#![deny(unsafe_code)]

mod command;
mod kind;
mod operation;
mod page;
mod stall;
mod steps;
mod storm;
#[expect(unsafe_code, reason = "fork, shared memory, record locks and the trap flag")]
mod system;
mod victim;

use std::{
    env,
    path::Path,
    process::ExitCode,
    sync::atomic::Ordering::SeqCst,
    thread::sleep,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process_group,
    set_child_subreaper, setpgid, wait, waitid,
};

use self::page::{Count, Page, STEPPERS, Task, now};

/// A part: its name, and what its processes run, of which there are so many.
type Part = (&'static str, fn(&'static Page, &Path, &Task) -> i32, usize);

const PARTS: [Part; 3] =
    [("storm", storm::run, 1), ("steps", steps::run, STEPPERS), ("command", command::run, 1)];

/// A worker that does not go on for so long is stuck.
const STUCK: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [first, referee] = &arguments[..]
        && first == command::MARK
    {
        return command::hold(referee);
    }
    let mut numbers = arguments.iter().filter_map(|text| text.parse().ok());
    let asked: Option<u64> = numbers.next();
    let kills = asked.unwrap_or(3000);
    let clock =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let seed = numbers.next().unwrap_or(clock);
    let named = |part: &str| arguments.iter().any(|text| text == part);
    let all = !PARTS.iter().any(|(part, ..)| named(part));
    let chosen = |&(part, ..): &Part| (all || named(part)) && (part != "steps" || system::CAN_STEP);
    soak(kills, seed, asked.is_some(), PARTS.into_iter().filter(chosen).collect())
}

fn soak(kills: u64, seed: u64, judges_waits: bool, parts: Vec<Part>) -> ExitCode {
    println!("{kills} kills, seed {seed}");
    let page = system::shared_page();
    page.judges_waits.store(u64::from(judges_waits), SeqCst);
    let place = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
    // Processes that outlive their parents become children of this one, which ends them.
    set_child_subreaper(Some(getpid())).expect("Linux knows it");
    let started = Instant::now();
    let shares = parts.iter().flat_map(|&part| (0..part.2).map(move |share| (part, share)));
    let begin = |(worker, ((part, run, _), share)): (usize, (Part, usize))| {
        page.beat(worker);
        let task = Task { worker, share, seed: seed.wrapping_add(worker as u64) };
        let pid = system::fork(true, || {
            setpgid(None, None).expect("a new process has no group of its own");
            run(page, place.path(), &task)
        });
        // Both do so, as either may be first.
        let _ = setpgid(Some(pid), Some(pid));
        Worker { number: worker, part, share, pid, executed: 0, ended: false }
    };
    let mut workers: Vec<Worker> = shares.enumerate().map(begin).collect();
    let mut said = Instant::now();
    while workers.iter().any(|worker| !worker.ended) {
        sleep(Duration::from_millis(10));
        workers.iter_mut().for_each(|worker| worker.watch(page));
        if page.kills() >= kills {
            page.stop.store(1, SeqCst);
        }
        if page.get(Count::Wrong) > 0 {
            break;
        }
        if said.elapsed() > Duration::from_secs(5) {
            said = Instant::now();
            progress(page, started);
        }
    }
    end(&workers);
    progress(page, started);
    summary(page)
}

/// A process that runs a part.
struct Worker {
    number: usize,
    part: &'static str,
    share: usize,
    pid: Pid,
    /// How many instructions its stepped process had executed when it was last looked at.
    executed: u64,
    ended: bool,
}

impl Worker {
    /// Looks whether it goes on.
    fn watch(&mut self, page: &Page) {
        let part = self.part;
        // It is not reaped yet, so that its process group remains its own.
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if let (false, Ok(Some(status))) = (self.ended, waitid(WaitId::Pid(self.pid), how)) {
            self.ended = true;
            if status.exit_status() != Some(0) || !page.ends() {
                page.wrong(&format!("the process of {part} has ended: {status:?}"));
            }
        }
        if self.part == "steps" {
            // An operation of a hundred thousand instructions takes long on a busy machine.
            let executed = page.executed[self.share].load(SeqCst);
            if executed != self.executed {
                self.executed = executed;
                page.beat(self.number);
            }
        }
        let quiet =
            Duration::from_nanos(now().saturating_sub(page.beats[self.number].load(SeqCst)));
        if !self.ended && quiet > STUCK {
            page.wrong(&format!("the process of {part} has not gone on for {quiet:?}"));
        }
    }
}

/// Ends all processes.
fn end(workers: &[Worker]) {
    for worker in workers {
        // The worker has not been reaped, so it is its group.
        let _ = kill_process_group(worker.pid, Signal::KILL);
    }
    while wait(WaitOptions::empty()).is_ok() {}
}

fn progress(page: &Page, started: Instant) {
    let (kills, seconds) = (page.kills(), started.elapsed().as_secs_f64());
    println!(
        "{seconds:.0} s: {kills} kills, {:.0}/s; {} passages, {} recoveries; {} of {} operations stepped through; longest \
         stalled wait {:.0} ms",
        kills as f64 / seconds,
        page.get(Count::Passages),
        page.get(Count::Recovered),
        page.get(Count::Swept),
        page.get(Count::Cases),
        page.stalled.load(SeqCst) as f64 / 1e6,
    );
}

fn summary(page: &Page) -> ExitCode {
    let wrong = page.get(Count::Wrong);
    println!(
        "kills: {} random, {} at chosen instructions ({} instructions of {} operations), {} of the command line\n\
         {} waits given up, {} slots handed over, {} resizes and drains, {} locks removed, {} checks of all slots\n\
         longest stalled wait {:.1} ms, longest wait {:.1} ms\n\
         {}",
        page.get(Count::Random),
        page.get(Count::Stepped),
        page.get(Count::Instructions),
        page.get(Count::Swept),
        page.get(Count::Command),
        page.get(Count::GaveUp),
        page.get(Count::HandedOver),
        page.get(Count::Managed),
        page.get(Count::Removed),
        page.get(Count::Checks),
        page.stalled.load(SeqCst) as f64 / 1e6,
        page.waited.load(SeqCst) as f64 / 1e6,
        if wrong == 0 { "no violation" } else { "VIOLATED: see above" },
    );
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
