//! What a search shows while it runs.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use super::room::Room;

/// What is going on, for the caller to watch from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// States found.
    pub states: AtomicU64,
    /// States found and not yet expanded.
    pub frontier: AtomicU64,
    /// How many steps the search is away from the start.
    pub depth: AtomicU64,
    /// Set by the watcher to make the search stop.
    pub cancel: AtomicBool,
    /// States that were there when the search began: it goes on with a [checkpoint](super::Checkpoint).
    pub resumed: AtomicU64,
    /// States that the checkpoint holds.
    pub kept: AtomicU64,
    /// The search that is kept in a checkpoint has ended: what follows does not look at `cancel`, and can be interrupted
    /// at any time.
    pub finished: AtomicBool,
    /// The bytes of memory that hold states, and how many may.
    pub memory: AtomicU64,
    /// The bytes of memory that states may take; 0 if that is not limited.
    pub max_memory: AtomicU64,
    /// The bytes of files that hold states.
    pub on_disk: AtomicU64,
    /// The sizes of the finished levels.
    levels: Mutex<Vec<u64>>,
    /// What the user should be told, one line each.
    news: Mutex<Vec<String>>,
}

/// How many levels in a row have to be smaller than the one before for an estimate.
const SHRINKING: usize = 6;

impl Progress {
    /// Takes what the user should be told since the last call.
    pub fn news(&self) -> Vec<String> {
        std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn tell(&self, line: String) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// A search begins with these levels.
    pub(crate) fn begin(&self, levels: impl Iterator<Item = u64>, room: &Room) {
        *self.levels.lock().unwrap_or_else(PoisonError::into_inner) = levels.collect();
        self.note_room(room);
    }

    /// A level is finished.
    pub(crate) fn note_level(&self, size: u64, room: &Room) {
        self.levels.lock().unwrap_or_else(PoisonError::into_inner).push(size);
        self.note_room(room);
    }

    /// Notes what states take, and tells when they begin to go to disk.
    pub(crate) fn note_room(&self, room: &Room) {
        self.memory.store(room.used(), Relaxed);
        let limit = room.limit();
        self.max_memory.store(if limit == u64::MAX { 0 } else { limit }, Relaxed);
        if self.on_disk.swap(room.on_disk(), Relaxed) == 0 && room.on_disk() > 0 {
            self.tell(format!("memory is full: the search goes on on disk, in {}", room.directory().display()));
        }
    }

    /// Estimates how many states are still to be expanded, if the levels have been shrinking for long enough to tell.
    pub fn left(&self) -> Option<u64> {
        left(&self.levels.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The states of the last level and of those to come, if the levels go on shrinking as they do.
///
/// From their peak on, the levels of a search shrink slowly at first and then faster. So the ratio of one level to the one
/// before falls; taking it to stay as it is gives more than there will be. Half of the levels that are looked at say how
/// fast it falls.
fn left(levels: &[u64]) -> Option<u64> {
    let recent = levels.get(levels.len().checked_sub(SHRINKING + 1)?..)?;
    if !recent.windows(2).all(|pair| pair[1] < pair[0]) || recent[SHRINKING] == 0 {
        return None;
    }
    let ratio = |from: usize, to: usize| (recent[to] as f64 / recent[from] as f64).powf(1.0 / (to - from) as f64);
    let (before, now) = (ratio(0, SHRINKING / 2), ratio(SHRINKING / 2, SHRINKING));
    let falls = (now / before).min(1.0).powf(2.0 / SHRINKING as f64);
    let (mut left, mut level, mut ratio) = (0.0, recent[SHRINKING] as f64, now);
    while level >= 1.0 && left < 1e15 {
        left += level;
        ratio *= falls;
        level *= ratio;
        if ratio > 0.999 && falls > 0.999 {
            return None; // it hardly shrinks: there may be no end to it
        }
    }
    Some(left as u64)
}
