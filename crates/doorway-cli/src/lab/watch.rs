//! How far a search is, while it runs.

use std::{
    io::{IsTerminal, Write, stderr},
    sync::{
        atomic::Ordering::Relaxed,
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

use doorway_lab::Progress;

use crate::table::grouped;

/// Short searches show nothing.
const PATIENCE: Duration = Duration::from_millis(500);
const EVERY: Duration = Duration::from_millis(200);

/// Runs the search and, on a terminal, shows how far it is.
pub(crate) fn watched<T: Send>(progress: &Progress, search: impl FnOnce() -> T + Send) -> T {
    let mut pace = Pace { began: Instant::now(), before: 0 };
    shown(move || pace.line(progress), search)
}

/// Does something that takes long and, on a terminal, shows how far it is by a line that is made anew each time.
pub(crate) fn shown<T: Send>(mut line: impl FnMut() -> String + Send, work: impl FnOnce() -> T + Send) -> T {
    if !stderr().is_terminal() {
        return work();
    }
    // The display ends when this end is dropped, however the search ends.
    let (running, ended) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut wait = PATIENCE;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = EVERY;
                // The terminal is not to break the line where it is narrow, for only the last part could be written over.
                let _ = write!(stderr(), "\r\x1b[K\x1b[?7l{}\x1b[?7h", line());
                let _ = stderr().flush();
            }
            if wait == EVERY {
                let _ = write!(stderr(), "\r\x1b[K");
            }
        });
        let result = work();
        drop(running);
        result
    })
}

/// How fast a search is.
struct Pace {
    /// When this search began; there may be several, one after the other.
    began: Instant,
    before: u64,
}

impl Pace {
    fn line(&mut self, progress: &Progress) -> String {
        let states = progress.states.load(Relaxed);
        if states < self.before {
            self.began = Instant::now();
        }
        self.before = states;
        let seconds = self.began.elapsed().as_secs_f64();
        format!(
            "{} states · {:.1} million/s · frontier {} · depth {} · {seconds:.0} s",
            grouped(states),
            states as f64 / seconds.max(0.001) / 1e6,
            grouped(progress.frontier.load(Relaxed)),
            progress.depth.load(Relaxed),
        )
    }
}
