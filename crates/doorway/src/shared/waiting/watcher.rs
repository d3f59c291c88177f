//! A thread that wakes a sleeping waiter when one of the processes that it watches ends.
//!
//! A process can sleep until a word changes (a futex) or until another process ends (a pidfd), not
//! for both. So a waiter that has waited for long starts this thread. The thread sleeps until a
//! watched process ends, and then ends the sleep of the waiter. Neither costs anything meanwhile.

use std::{
    io::Error,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, eventfd, poll},
    fd::OwnedFd,
};

use super::super::{file::File, vfork};

/// The thread, as its waiter knows it. It ends when this is dropped.
pub(super) struct Watcher(Arc<Shared>);

struct Shared {
    /// Readable when there is something new.
    event: OwnedFd,
    /// The pidfds to watch from now on, if they are new.
    watched: Mutex<Option<Vec<OwnedFd>>>,
    stop: AtomicBool,
    file: Arc<File>,
    /// The entry of the waiter.
    entry: usize,
}

/// The thread needs little.
const STACK: usize = 64 << 10;

impl Watcher {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread or descriptor left.
    pub(super) fn start(file: &Arc<File>, entry: usize) -> Result<Self, Error> {
        let event = eventfd(0, EventfdFlags::CLOEXEC)?;
        let (watched, stop) = (Mutex::default(), AtomicBool::new(false));
        let shared = Arc::new(Shared { event, watched, stop, file: file.clone(), entry });
        let threads = shared.clone();
        let thread = thread::Builder::new().name("doorway-watch".into()).stack_size(STACK);
        // Signals are for the threads of the program.
        vfork::without_signals(|| thread.spawn(move || threads.run()))?;
        Ok(Self(shared))
    }

    /// Watches these processes instead of those before.
    pub(super) fn watch(&self, watched: Vec<OwnedFd>) {
        *self.0.watched.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(watched);
        self.0.tell();
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.stop.store(true, SeqCst);
        self.0.tell();
    }
}

impl Shared {
    fn tell(&self) {
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    fn run(&self) {
        let mut watched = Vec::new();
        while !self.stop.load(SeqCst) {
            let mut fds = vec![PollFd::new(&self.event, PollFlags::IN)];
            fds.extend(watched.iter().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
            if poll(&mut fds, None).is_err() {
                continue;
            }
            let ended = fds[1..].iter().any(|fd| !fd.revents().is_empty());
            let told = !fds[0].revents().is_empty();
            drop(fds);
            if told {
                let _ = rustix::io::read(&self.event, &mut [0; 8]);
                let mut new = self.watched.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                watched = new.take().unwrap_or(watched);
            } else if ended {
                // The waiter looks, and then watches other processes.
                watched.clear();
                self.file.wake(self.entry);
            }
        }
    }
}
