//! Measures stalled waits: how long a live process waits although nothing delays it.
//!
//! The time in which a thread of the waiting process, or of another live one of the same lock, is
//! ready to run and gets no processor is not counted, as the kernel tells it
//! (`/proc/PID/task/TID/schedstat`): a process that was granted a slot and does not run yet delays
//! the ones behind it. A busy machine makes every wait longer, and says nothing about the lock. The
//! kernel adds that time up when the thread runs; so while one is ready to run, nothing is judged,
//! but for a wait that lasts too long whatever delays it.

use std::{fs, sync::atomic::Ordering::SeqCst};

use super::page::{LIMIT, Page, now};

/// So many nanoseconds of a wait are counted before the kernel is asked.
const SHORT: u64 = 250_000_000;
/// A wait of so many nanoseconds is too long in any case.
const ENDLESS: u64 = 30_000_000_000;

/// A wait of a process that may be stalled.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stall {
    pid: i32,
    /// When something last delayed it.
    since: u64,
    /// How long the process had been without a processor when it was first asked for.
    starved: Option<u64>,
}

impl Stall {
    /// Begins to measure a wait of this process.
    pub(crate) fn of_this_process() -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Self { pid, since: now(), starved: starved(&[pid]) }
    }

    /// Measures the wait of a process that nothing has delayed since then, given all processes of
    /// the lock. Returns whether it is stalled for too long.
    pub(crate) fn is_too_long(&mut self, page: &Page, pid: i32, all: &[i32], since: u64) -> bool {
        if (self.pid, self.since) != (pid, since) {
            *self = Self { pid, since, starved: None };
        }
        let waited = now().saturating_sub(since);
        if waited > SHORT && is_ready(all) {
            return page.judges_waits.load(SeqCst) != 0 && waited > ENDLESS;
        }
        if waited > SHORT && self.starved.is_none() {
            self.starved = starved(all);
        }
        let stalled = match (self.starved, starved(all).filter(|_| waited > SHORT)) {
            (Some(before), Some(starved)) => waited.saturating_sub(starved.saturating_sub(before)),
            // It is dead by now.
            _ => waited.min(SHORT),
        };
        page.stalled.fetch_max(stalled, SeqCst);
        page.judges_waits.load(SeqCst) != 0 && stalled > LIMIT.as_nanos() as u64
    }

    /// Measures a wait of this process, as above.
    pub(crate) fn goes_on(&mut self, page: &Page) -> bool {
        !self.is_too_long(page, self.pid, &[self.pid], self.since)
    }
}

/// Returns for how many nanoseconds threads of processes have been ready to run and had no
/// processor; `None` if a process has ended.
fn starved(pids: &[i32]) -> Option<u64> {
    let starved = |text: &String| text.split_whitespace().nth(1)?.parse::<u64>().ok();
    pids.iter()
        .map(|&pid| of_threads(pid, "schedstat")?.iter().map(starved).sum::<Option<u64>>())
        .sum()
}

/// Whether a thread of a process is running or ready to run.
fn is_ready(pids: &[i32]) -> bool {
    // The state is behind the name of the program, which is in brackets.
    let is_ready =
        |text: &String| text.rsplit(')').next().is_some_and(|rest| rest.starts_with(" R"));
    pids.iter().filter_map(|&pid| of_threads(pid, "stat")).flatten().any(|text| is_ready(&text))
}

/// Reads a file of each thread of a process.
fn of_threads(pid: i32, name: &str) -> Option<Vec<String>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    // A thread may end meanwhile.
    Some(
        threads
            .flatten()
            .filter_map(|thread| fs::read_to_string(thread.path().join(name)).ok())
            .collect(),
    )
}
