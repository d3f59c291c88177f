//! The progress of a search.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use super::room::Room;

/// The progress of a search, for the caller to watch from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// States found.
    pub states: AtomicU64,
    /// States found and not yet expanded.
    pub frontier: AtomicU64,
    /// The number of steps that the search is away from the start.
    pub depth: AtomicU64,
    /// Set by the watcher to make the search stop.
    pub cancel: AtomicBool,
    /// States that existed when the search began, because it continues a
    /// [checkpoint](super::Checkpoint).
    pub resumed: AtomicU64,
    /// States that the checkpoint holds.
    pub kept: AtomicU64,
    /// The search that is kept in a checkpoint has ended. What follows does not look at `cancel`,
    /// and can be interrupted at any time.
    pub finished: AtomicBool,
    /// The bytes of memory that hold states.
    pub memory: AtomicU64,
    /// The bytes of memory that states may take; 0 if that is not limited.
    pub max_memory: AtomicU64,
    /// The bytes of files that hold states.
    pub on_disk: AtomicU64,
    /// The sizes of the finished levels.
    levels: Mutex<Vec<u64>>,
    /// Messages for the user, one line each.
    news: Mutex<Vec<String>>,
}

/// How many levels in a row have to be smaller than the level before for an estimate.
const SHRINKING: usize = 8;

impl Progress {
    /// Takes the messages for the user since the last call.
    pub fn news(&self) -> Vec<String> {
        std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn tell(&self, line: String) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// Notes that a search begins with these levels.
    pub(crate) fn begin(&self, levels: impl Iterator<Item = u64>, room: &Room) {
        *self.levels.lock().unwrap_or_else(PoisonError::into_inner) = levels.collect();
        self.note_room(room);
    }

    /// Notes that a level is finished.
    pub(crate) fn note_level(&self, size: u64, room: &Room) {
        self.levels.lock().unwrap_or_else(PoisonError::into_inner).push(size);
        self.note_room(room);
    }

    /// Notes the memory that states take, and tells when states begin to go to disk.
    pub(crate) fn note_room(&self, room: &Room) {
        self.memory.store(room.used(), Relaxed);
        let limit = room.limit();
        self.max_memory.store(if limit == u64::MAX { 0 } else { limit }, Relaxed);
        if self.on_disk.swap(room.on_disk(), Relaxed) == 0 && room.on_disk() > 0 {
            self.tell(format!(
                "memory is full: the search goes on on disk, in {}",
                room.directory().display()
            ));
        }
    }

    /// Estimates how many states are still to be expanded.
    ///
    /// `None` if the levels have not been shrinking for long enough.
    pub fn left(&self) -> Option<u64> {
        left(&self.levels.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Estimates the states of the last level and of those to come. Assumes that each level is smaller
/// than the level before by the factor of the last levels. That is a guess: levels of some
/// algorithms come in waves, and levels of other algorithms end sooner.
fn left(levels: &[u64]) -> Option<u64> {
    let recent = levels.get(levels.len().checked_sub(SHRINKING + 1)?..)?;
    if !recent.windows(2).all(|pair| pair[1] < pair[0]) || recent[SHRINKING] == 0 {
        return None;
    }
    let (from, to) = (recent[SHRINKING / 2] as f64, recent[SHRINKING] as f64);
    let ratio = (to / from).powf(2.0 / SHRINKING as f64);
    // Levels that hardly shrink may have no end.
    (ratio < 0.98).then(|| (to / (1.0 - ratio)) as u64)
}

#[cfg(test)]
mod tests {
    use doorway_core::{Property, Size};

    use super::*;
    use crate::{Entrant, Options, check};

    /// Asserts that estimates are within a factor of 4 of the true number, until hardly anything is
    /// left. Returns how many estimates there were.
    fn estimates(levels: &[u64]) -> usize {
        let mut given = 0;
        let all: u64 = levels.iter().sum();
        for end in 1..levels.len() {
            let truth: u64 = levels[end - 1..].iter().sum();
            if let Some(estimate) = left(&levels[..end])
                && truth > all / 50
            {
                let ratio = estimate as f64 / truth as f64;
                assert!(
                    (0.25..=4.1).contains(&ratio),
                    "level {end}: {estimate} instead of {truth}"
                );
                given += 1;
            }
        }
        given
    }

    #[test]
    fn nothing_is_guessed_before_levels_shrink() {
        assert_eq!(left(&[]), None);
        assert_eq!(left(&[1, 2, 4, 8, 16, 32, 64, 128, 256]), None);
        let halves = [16384, 8192, 4096, 2048, 1024, 512, 256, 128, 64];
        assert_eq!(left(&halves), Some(128), "64, and as much again after it");
        assert_eq!(left(&halves[1..]), None, "too few levels");
        assert_eq!(left(&[&halves[..], &[65]].concat()), None, "not all of them shrink");
        assert_eq!(left(&[&halves[..], &[0]].concat()), None, "it is over");
        assert_eq!(
            left(&(0..20).map(|i| 10_000 - i).collect::<Vec<_>>()),
            None,
            "it hardly shrinks"
        );
    }

    /// Estimates on levels of true searches come about right.
    #[test]
    fn estimates_are_about_right() {
        // The levels of the k-Bakery come in waves, which give no estimates except near the end.
        for (name, size, passages, least) in [
            ("bakery", Size::mutex(3), None, 3),
            ("bakery", Size::mutex(3), Some(2), 8),
            ("k-bakery", Size { n: 3, k: 2, sessions: 0 }, None, 0),
            ("yang-anderson", Size::mutex(3), None, 15),
        ] {
            let subject = Entrant::named(name)
                .expect("there is one")
                .build(size, None, false)
                .expect("it fits");
            let options =
                Options { properties: vec![Property::KExclusion], passages, ..Options::default() };
            let progress = Progress::default();
            check(&*subject, &options, &progress).expect("it runs");
            let levels = progress.levels.lock().expect("nothing panicked").clone();
            assert!(estimates(&levels) >= least, "{name}: {levels:?}");
        }
    }
}
