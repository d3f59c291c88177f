//! Shows the progress of a search while it runs.

use std::{sync::atomic::Ordering::Relaxed, time::Instant};

use doorway_lab::Progress;

use crate::{
    progress::{about, shown},
    table::grouped,
};

/// Runs the search and, on a terminal, shows its progress.
pub(crate) fn watched<T: Send>(progress: &Progress, search: impl FnOnce() -> T + Send) -> T {
    let mut pace = Pace { began: Instant::now(), before: 0, first: true };
    shown(move || pace.line(progress), search)
}

/// The speed of a search.
struct Pace {
    /// When this search began; there may be several, one after another.
    began: Instant,
    before: u64,
    /// Whether this is the first search, which may continue a saved one.
    first: bool,
}

impl Pace {
    fn line(&mut self, progress: &Progress) -> String {
        let states = progress.states.load(Relaxed);
        if states < self.before {
            (self.began, self.first) = (Instant::now(), false);
        }
        self.before = states;
        let seconds = self.began.elapsed().as_secs_f64();
        let resumed = if self.first { progress.resumed.load(Relaxed) } else { 0 };
        // A search that has just begun has no meaningful speed.
        let rate = states.saturating_sub(resumed) as f64 / seconds.max(0.2);
        let mut line = format!(
            "{} states · {:.1} million/s · frontier {} · depth {} · {seconds:.0} s",
            grouped(states),
            rate / 1e6,
            grouped(progress.frontier.load(Relaxed)),
            progress.depth.load(Relaxed),
        );
        if let Some(left) = progress.left()
            && rate >= 1.0
        {
            line += &format!(" · {}", about(left as f64 / rate));
        }
        let most = progress.max_memory.load(Relaxed);
        let share = progress.memory.load(Relaxed) as f64 / most.max(1) as f64 * 100.0;
        if most > 0 && share >= 1.0 {
            line += &format!(" · {share:.0} % of memory");
        }
        let on_disk = progress.on_disk.load(Relaxed);
        if on_disk > 0 {
            line += &format!(" · {:.1} GB on disk", on_disk as f64 / 1e9);
        }
        line
    }
}
