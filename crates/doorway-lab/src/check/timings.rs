//! How long each stage of a check takes.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

/// The stages of a check, each with the time that it took, in the order in which they ended.
#[derive(Debug, Default)]
pub(crate) struct Timings(Mutex<Vec<(String, Duration)>>);

impl Timings {
    /// Runs a stage and notes how long it takes. Stages that run at the same time each count in
    /// full.
    pub(crate) fn stage<T>(&self, name: impl Into<String>, run: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = run();
        self.note(name, started.elapsed());
        result
    }

    /// Notes how long a stage took.
    pub(crate) fn note(&self, name: impl Into<String>, took: Duration) {
        self.0.lock().expect("no stage panics").push((name.into(), took));
    }

    /// Returns what has been noted so far.
    pub(crate) fn list(&self) -> Vec<(String, Duration)> {
        self.0.lock().expect("no stage panics").clone()
    }
}
