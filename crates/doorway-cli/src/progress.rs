//! How far something is that takes long, while it runs.

use std::{
    io::{IsTerminal, Write, stderr},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};

/// Short work shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);
const EVERY: Duration = Duration::from_millis(200);

/// Does something that takes long and, on a terminal, shows how far it is by a line that is made anew each time.
pub(crate) fn shown<T: Send>(mut line: impl FnMut() -> String + Send, work: impl FnOnce() -> T + Send) -> T {
    if !stderr().is_terminal() {
        return work();
    }
    // The display ends when this end is dropped, however the search ends.
    let (running, ended) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut wait = PATIENCE;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = EVERY;
                // The terminal is not to break the line where it is narrow, for only the last part could be written over.
                let _ = write!(stderr(), "\r\x1b[K\x1b[?7l{}\x1b[?7h", line());
                let _ = stderr().flush();
            }
            if wait == EVERY {
                let _ = write!(stderr(), "\r\x1b[K");
            }
        });
        let result = work();
        drop(running);
        result
    })
}
