//! Supervises a command until it ends: forwards signals to it, stops when it stops, and learns how
//! it ended.

use std::{io, process::ExitCode, sync::Arc};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};
use signal_hook::{
    consts::signal::{
        SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU,
        SIGUSR1, SIGUSR2, SIGWINCH,
    },
    iterator::{SignalsInfo, exfiltrator::WithOrigin},
    low_level::siginfo::Origin,
};

/// The signals to forward, and the signals about the command itself.
const WATCHED: [i32; 13] = [
    SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU,
    SIGUSR1, SIGUSR2, SIGWINCH,
];

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl From<Ended> for ExitCode {
    /// Returns the exit code that a shell would report.
    fn from(ended: Ended) -> Self {
        Self::from(match ended {
            Ended::Exited(code) => code as u8,
            Ended::Killed(signal) => (128 + signal) as u8,
        })
    }
}

/// Makes sure that the end of a command is reported and can be waited for. The parent of this
/// process may have set SIGCHLD to be ignored, and a command would leave nothing behind then. Call
/// this before the command is started.
pub(crate) fn heed_ends() -> io::Result<()> {
    signal_hook::flag::register(SIGCHLD, Arc::default()).map(drop)
}

/// Receives signals to this process, from when this was made. Make it before the command is
/// started, or before its end can be reported.
pub(crate) struct Watch(SignalsInfo<WithOrigin>);

impl Watch {
    /// Watches all signals that can be forwarded.
    pub(crate) fn new() -> io::Result<Self> {
        SignalsInfo::new(WATCHED).map(Self)
    }

    /// Watches the ends of commands, and signals that are not ignored. What this process ignores, a
    /// command that it starts later ignores as well; what it catches, the command does not.
    #[cfg(feature = "etcd")]
    pub(crate) fn before_command() -> io::Result<Self> {
        let ignored = ignored();
        let heeded = |signal: &&i32| **signal == SIGCHLD || ignored >> (**signal - 1) & 1 == 0;
        SignalsInfo::new(WATCHED.iter().filter(heeded)).map(Self)
    }

    /// Waits until the command ends, and forwards signals to it.
    pub(crate) fn stay_with(&mut self, command: Pid) -> io::Result<Ended> {
        unblock_ends();
        for origin in self.0.forever() {
            if origin.signal == SIGCHLD {
                match look_after(command)? {
                    Some(News::Ended(ended)) => return Ok(ended),
                    // The parent of this process, a shell above all, must see that it is stopped.
                    Some(News::Stopped) => kill_process(getpid(), Signal::STOP)?,
                    None => {}
                }
            } else if let Some(signal) =
                Signal::from_named_raw(origin.signal).filter(|_| is_to_be_passed_on(&origin))
            {
                // The command may have ended a moment ago; then the next signal reports that.
                let _ = kill_process(command, signal);
            }
        }
        Err(io::Error::other("no more signals can be received"))
    }
}

/// Unblocks SIGCHLD, which the caller of this process may have blocked. Called once the command
/// runs: the command inherits what the caller has blocked.
#[expect(unsafe_code, reason = "no safe interface sets the signal mask")]
fn unblock_ends() {
    // SAFETY: the set is made empty before it is read, and nothing is written but the mask of this
    // thread.
    unsafe {
        let mut ends = std::mem::MaybeUninit::uninit();
        libc::sigemptyset(ends.as_mut_ptr());
        libc::sigaddset(ends.as_mut_ptr(), SIGCHLD);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, ends.as_ptr(), std::ptr::null_mut());
    }
}

/// Returns whether to forward a signal. What the kernel sends goes to the whole process group that
/// has the terminal, the command included. SIGCONT is harmless when it comes twice, and without it
/// the command would stay stopped.
fn is_to_be_passed_on(origin: &Origin) -> bool {
    origin.process.is_some() || origin.signal == SIGCONT
}

enum News {
    Ended(Ended),
    Stopped,
}

fn look_after(command: Pid) -> io::Result<Option<News>> {
    let any = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    let Some(status) = waitid(WaitId::Pid(command), any)? else { return Ok(None) };
    let ended = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ended::Exited(code),
        (_, Some(signal)) => Ended::Killed(signal),
        _ => return Ok(status.stopped().then_some(News::Stopped)),
    };
    Ok(Some(News::Ended(ended)))
}

/// Returns the signals that the parent of this process wants ignored, a bit for each: `nohup` does
/// so, and a shell for background jobs.
#[cfg(feature = "etcd")]
pub(crate) fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
