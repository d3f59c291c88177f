//! What a waiting command shows on a terminal: how many processes are ahead of it, and the holders.

use std::{
    io::{IsTerminal, Write, stderr},
    time::Duration,
};

use rustix::{process::getpgrp, termios::tcgetpgrp};

use super::view::{View, age};
use crate::{error::Failure, output::one_line, progress::draw};

/// A short wait shows nothing.
const PATIENCE: Duration = Duration::from_millis(300);
const EVERY: Duration = Duration::from_millis(500);

/// A line on the terminal, which is cleared when this is dropped.
pub(crate) struct Sign {
    visible: bool,
    shown: bool,
}

impl Sign {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { visible: !quiet && stderr().is_terminal(), shown: false }
    }

    /// Returns after what time to show it again.
    pub(crate) fn every(&self) -> Duration {
        match (self.visible, self.shown) {
            (false, _) => Duration::MAX,
            (true, false) => PATIENCE,
            (true, true) => EVERY,
        }
    }

    pub(crate) fn show(&mut self, ahead: usize, view: impl FnOnce() -> Result<View, Failure>) {
        if self.visible && has_terminal() {
            self.shown = true;
            let text = view()
                .map_or_else(|failure| one_line(&failure.to_string()), |view| text(ahead, &view));
            draw(&text);
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

/// Returns whether this process is in the foreground of the terminal, and not a background job.
fn has_terminal() -> bool {
    tcgetpgrp(stderr()).is_ok_and(|group| group == getpgrp())
}

/// `2 ahead of you · slot 0: pid 4711 python train.py, 12 min`
fn text(ahead: usize, view: &View) -> String {
    let mut text = match (ahead, view.drained) {
        (_, true) => format!("{} is drained: `doorway resume {0}` lets people in again", view.name),
        (0, _) => "you are next".to_string(),
        (ahead, _) => format!("{ahead} ahead of you"),
    };
    for who in &view.holders {
        let (slot, on, held) = (who.slot.unwrap_or(0), who.on(), age(who.seconds));
        text.push_str(&format!(" · slot {slot}: {on}pid {} {}, {held}", who.pid, who.command));
    }
    one_line(&text)
}
