//! Shows the progress of work that takes long.

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

/// Whether something is shown already, of which this work is a part.
static SHOWING: AtomicBool = AtomicBool::new(false);

/// Does work that takes long and, on a terminal, shows its progress by a line that is drawn anew
/// each time.
pub(crate) fn shown<T: Send>(
    mut line: impl FnMut() -> String + Send,
    work: impl FnOnce() -> T + Send,
) -> T {
    if !stderr().is_terminal() || SHOWING.swap(true, Relaxed) {
        return work();
    }
    // The display ends when `running` is dropped, however the search ends.
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

/// Draws a line in place of the previous one. It is cut at the edge of the terminal. A line that
/// the terminal wraps could not be overwritten, and a line that it does not wrap would end in its
/// last character.
pub(crate) fn draw(line: &str) {
    let width = tcgetwinsize(stderr()).map_or(0, |size| usize::from(size.ws_col));
    let mut err = stderr().lock();
    let _ = write!(err, "\r\x1b[K\x1b[?7l{}\x1b[?7h", cut(line, width));
    let _ = err.flush();
}

/// Returns as much of a line as fits, or all of it if the width is not known.
fn cut(line: &str, width: usize) -> String {
    if width == 0 || line.chars().count() <= width {
        return line.into();
    }
    line.chars().take(width - 1).chain(['…']).collect()
}

/// Prints one line on standard error, in place of what is shown there. Then runs `then` before
/// anything else is printed.
pub(crate) fn say_and<T>(what: impl Display, then: impl FnOnce() -> T) -> T {
    let mut err = stderr().lock();
    let clear = if SHOWING.load(Relaxed) { "\r\x1b[K" } else { "" };
    let _ = writeln!(err, "{clear}doorway: {}", one_line(&what.to_string()));
    then()
}

/// The speed of the work, compared with the plan.
pub(crate) struct Pace {
    began: Instant,
    /// Seconds that are planned for all work, and for the work that is done.
    all: f64,
    done: f64,
}

impl Pace {
    /// Creates a pace for work that is planned to take this many seconds.
    pub(crate) fn new(all: f64) -> Self {
        Self { began: Instant::now(), all, done: 0.0 }
    }

    /// Records that work with this much planned time is done.
    pub(crate) fn add(&mut self, seconds: f64) {
        self.done += seconds;
    }

    /// Returns how long the rest will take, when this much of the current work's planned time has
    /// passed.
    pub(crate) fn left(&self, of_this: f64) -> String {
        let over = self.done + of_this;
        // At first there is only the plan, and threads also have to be started and joined.
        let pace = (self.began.elapsed().as_secs_f64() + 1.0) / (over + 1.0);
        let left = (self.all - over) * pace.max(1.0);
        about(left)
    }
}

/// Formats an estimate of the seconds left.
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
