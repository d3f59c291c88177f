//! How far a search is, while it runs.

use std::{sync::atomic::Ordering::Relaxed, time::Instant};

use doorway_lab::Progress;

use crate::{progress::shown, table::grouped};

/// Runs the search and, on a terminal, shows how far it is.
pub(crate) fn watched<T: Send>(progress: &Progress, search: impl FnOnce() -> T + Send) -> T {
    let mut pace = Pace { began: Instant::now(), before: 0 };
    shown(move || pace.line(progress), search)
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
