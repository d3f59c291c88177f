//! Measures stalled waits: how long a live process waits although nothing delays it.
//!
//! The time that the waiting process is ready to run and gets no processor is not counted, as the
//! kernel tells it (`/proc/PID/schedstat`). A busy machine makes every wait longer, and says
//! nothing about the lock.

use std::{fs, sync::atomic::Ordering::SeqCst};

use super::page::{LIMIT, Page, now};

/// So many nanoseconds of a wait are counted before the kernel is asked.
const SHORT: u64 = 20_000_000;

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
        Self { pid, since: now(), starved: starved(pid) }
    }

    /// Measures the wait of a process that nothing has delayed since then. Returns whether it is
    /// stalled for too long.
    pub(crate) fn is_too_long(&mut self, page: &Page, pid: i32, since: u64) -> bool {
        if (self.pid, self.since) != (pid, since) {
            *self = Self { pid, since, starved: None };
        }
        let waited = now().saturating_sub(since);
        if waited > SHORT && self.starved.is_none() {
            self.starved = starved(pid);
        }
        let stalled = match (self.starved, starved(pid).filter(|_| waited > SHORT)) {
            (Some(before), Some(starved)) => waited.saturating_sub(starved.saturating_sub(before)),
            // It is dead by now.
            _ => waited.min(SHORT),
        };
        page.stalled.fetch_max(stalled, SeqCst);
        stalled > LIMIT.as_nanos() as u64
    }

    /// Measures a wait of this process, as above.
    pub(crate) fn goes_on(&mut self, page: &Page) -> bool {
        !self.is_too_long(page, self.pid, self.since)
    }
}

/// Returns for how many nanoseconds a process has been ready to run and had no processor.
fn starved(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}
