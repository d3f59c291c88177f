//! How far something is that takes long, while it runs.

use std::{
    io::{IsTerminal, Write, stderr},
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// Short work shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);
const EVERY: Duration = Duration::from_millis(200);

/// Whether something is shown already, of which this is a part.
static SHOWING: AtomicBool = AtomicBool::new(false);

/// Does something that takes long and, on a terminal, shows how far it is by a line that is made anew each time.
pub(crate) fn shown<T: Send>(mut line: impl FnMut() -> String + Send, work: impl FnOnce() -> T + Send) -> T {
    if !stderr().is_terminal() || SHOWING.swap(true, Relaxed) {
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
        SHOWING.store(false, Relaxed);
        result
    })
}

/// How fast it goes, compared with what was planned.
pub(crate) struct Pace {
    began: Instant,
    /// Seconds that are planned for everything, and for what is done.
    all: f64,
    done: f64,
}

impl Pace {
    /// At the beginning of what is to take so many seconds.
    pub(crate) fn new(all: f64) -> Self {
        Self { began: Instant::now(), all, done: 0.0 }
    }

    /// So much of what was planned is done.
    pub(crate) fn add(&mut self, seconds: f64) {
        self.done += seconds;
    }

    /// How long the rest will take, when so much of what was planned for what is done now is over.
    pub(crate) fn left(&self, of_this: f64) -> String {
        let over = self.done + of_this;
        // At first there is only the plan, and threads have to be started and joined as well.
        let pace = (self.began.elapsed().as_secs_f64() + 1.0) / (over + 1.0);
        let left = (self.all - over) * pace.max(1.0);
        if left < 90.0 { format!("about {left:.0} s left") } else { format!("about {:.0} min left", left / 60.0) }
    }
}
