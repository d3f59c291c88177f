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
    if !stderr().is_terminal() {
        return search();
    }
    // The display ends when this end is dropped, however the search ends.
    let (running, ended) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut line = Line { began: Instant::now(), before: 0, shown: false };
            let mut wait = PATIENCE;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = EVERY;
                line.show(progress);
            }
            line.clear();
        });
        let result = search();
        drop(running);
        result
    })
}

/// The line that is written over and over.
struct Line {
    /// When this search began; there may be several, one after the other.
    began: Instant,
    before: u64,
    shown: bool,
}

impl Line {
    fn show(&mut self, progress: &Progress) {
        let states = progress.states.load(Relaxed);
        if states < self.before {
            self.began = Instant::now();
        }
        self.before = states;
        let seconds = self.began.elapsed().as_secs_f64();
        // The terminal is not to break the line where it is narrow, for only the last part could be written over.
        let _ = write!(
            stderr(),
            "\r\x1b[K\x1b[?7l{} states · {:.1} million/s · frontier {} · depth {} · {seconds:.0} s\x1b[?7h",
            grouped(states),
            states as f64 / seconds.max(0.001) / 1e6,
            grouped(progress.frontier.load(Relaxed)),
            progress.depth.load(Relaxed),
        );
        let _ = stderr().flush();
        self.shown = true;
    }

    fn clear(&self) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
