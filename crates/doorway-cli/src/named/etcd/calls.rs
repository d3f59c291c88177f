//! Signals that end this process while it waits. It leaves the queue first: no process is to wait
//! for a process that has gone.

use std::{
    future::poll_fn,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::Poll::{Pending, Ready},
};

use signal_hook::{
    consts::signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM},
    flag::register_usize,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::named::supervise::ignored;

/// The signals received since this was made.
pub(crate) struct Calls {
    heard: Vec<(i32, Signal)>,
    /// The last signal received. It is known at once; the streams of signals are a little later.
    last: Arc<AtomicUsize>,
}

impl Calls {
    /// Ignored signals stay ignored.
    pub(crate) fn new() -> io::Result<Self> {
        let ignored = ignored();
        let mut calls = Self { heard: Vec::new(), last: Arc::default() };
        for number in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            if ignored >> (number - 1) & 1 == 0 {
                calls.heard.push((number, signal(SignalKind::from_raw(number))?));
                register_usize(number, calls.last.clone(), number as usize)?;
            }
        }
        Ok(calls)
    }

    /// Returns a signal that has been received.
    pub(crate) fn came(&self) -> Option<i32> {
        Some(self.last.load(SeqCst) as i32).filter(|&number| number != 0)
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> i32 {
        poll_fn(|context| {
            let mut called = self.heard.iter_mut().filter_map(|(number, signal)| {
                let came = signal.poll_recv(context).is_ready();
                came.then_some(*number)
            });
            called.next().map_or(Pending, Ready)
        })
        .await
    }
}
