//! What one who waits sees on a terminal: how many are ahead of it, and who holds.

use std::{
    io::{IsTerminal, Write, stderr},
    time::Duration,
};

use doorway::shared::{Lock, Place};
use rustix::{process::getpgrp, termios::tcgetpgrp};

use super::view::age;
use crate::output::one_line;

/// A short wait shows nothing.
const PATIENCE: Duration = Duration::from_millis(300);
const EVERY: Duration = Duration::from_millis(500);

/// A line on the terminal, which goes away with it.
pub(crate) struct Sign {
    visible: bool,
    shown: bool,
}

impl Sign {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { visible: !quiet && stderr().is_terminal(), shown: false }
    }

    /// After what time it wants to be shown again.
    pub(crate) fn every(&self) -> Duration {
        match (self.visible, self.shown) {
            (false, _) => Duration::MAX,
            (true, false) => PATIENCE,
            (true, true) => EVERY,
        }
    }

    pub(crate) fn show(&mut self, lock: &Lock, place: &Place<'_>) {
        if self.visible && has_terminal() {
            self.shown = true;
            // The terminal is not to break the line where it is narrow, for only the last part could be written over.
            let _ = write!(stderr(), "\r\x1b[K\x1b[?7l{}\x1b[?7h", text(lock, place));
            let _ = stderr().flush();
        }
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

/// Whether this is what the user of the terminal is looking at, and not a job in the background.
fn has_terminal() -> bool {
    tcgetpgrp(stderr()).is_ok_and(|group| group == getpgrp())
}

/// `2 ahead of you · slot 0: pid 4711 python train.py, 12 min`
fn text(lock: &Lock, place: &Place<'_>) -> String {
    let status = lock.status();
    let mut text = match (place.ahead(), status.drained) {
        (_, true) => format!("{} is drained: `doorway resume {0}` lets people in again", status.name),
        (0, _) => "you are next".to_string(),
        (ahead, _) => format!("{ahead} ahead of you"),
    };
    for holder in &status.holders {
        let held = age(holder.held.map(|time| time.as_secs_f64()));
        text.push_str(&one_line(&format!(" · slot {}: pid {} {}, {held}", holder.slot, holder.pid, holder.command)));
    }
    text
}
