//! How far something is that takes long, while it runs.

use std::{
    fmt::Display,
    io::{IsTerminal, Write, stderr},
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::termios::tcgetwinsize;

use crate::output::one_line;

/// Short work shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);
const EVERY: Duration = Duration::from_millis(200);

/// Whether something is shown already, of which this is a part.
static SHOWING: AtomicBool = AtomicBool::new(false);

/// Does something that takes long and, on a terminal, shows how far it is by a line that is made
/// anew each time.
pub(crate) fn shown<T: Send>(
    mut line: impl FnMut() -> String + Send,
    work: impl FnOnce() -> T + Send,
) -> T {
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
                draw(&line());
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

/// Shows a line in place of the one that was shown before. It is cut at the edge of the terminal: a
/// line that the terminal breaks could not be written over, and one that it does not break would
/// end in its last character.
pub(crate) fn draw(line: &str) {
    let width = tcgetwinsize(stderr()).map_or(0, |size| usize::from(size.ws_col));
    let mut err = stderr().lock();
    let _ = write!(err, "\r\x1b[K\x1b[?7l{}\x1b[?7h", cut(line, width));
    let _ = err.flush();
}

/// As much of a line as fits, all of it if the width is not known.
fn cut(line: &str, width: usize) -> String {
    if width == 0 || line.chars().count() <= width {
        return line.into();
    }
    line.chars().take(width - 1).chain(['…']).collect()
}

/// Says something on standard error, in one line, and in place of what is shown there; then does
/// something before anything else is said.
pub(crate) fn say_and<T>(what: impl Display, then: impl FnOnce() -> T) -> T {
    let mut err = stderr().lock();
    let clear = if SHOWING.load(Relaxed) { "\r\x1b[K" } else { "" };
    let _ = writeln!(err, "{clear}doorway: {}", one_line(&what.to_string()));
    then()
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
        about(left)
    }
}

/// How many seconds something will take, as far as one can tell.
pub(crate) fn about(left: f64) -> String {
    if left < 90.0 {
        format!("about {left:.0} s left")
    } else {
        format!("about {:.0} min left", left / 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_the_edge() {
        assert_eq!(cut("12 · 34", 7), "12 · 34");
        assert_eq!(cut("12 · 34", 6), "12 · …");
        assert_eq!(cut("12 · 34", 1), "…");
        assert_eq!(cut("12 · 34", 0), "12 · 34");
    }
}
