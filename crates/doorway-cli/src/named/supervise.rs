//! Stays with a command until it ends: passes signals on to it, stops when it stops, and learns how
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

/// Those that are passed on, and the news about the command itself.
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
    /// As a shell says it.
    fn from(ended: Ended) -> Self {
        Self::from(match ended {
            Ended::Exited(code) => code as u8,
            Ended::Killed(signal) => (128 + signal) as u8,
        })
    }
}

/// Lets a command that ends be heard of and waited for. Whoever started this may ignore such ends,
/// and they would leave nothing behind then. To be called before the command is started.
pub(crate) fn heed_ends() -> io::Result<()> {
    signal_hook::flag::register(SIGCHLD, Arc::default()).map(drop)
}

/// Signals to this process, from when this was made. Make it before the command is started, or
/// before its end can be heard of.
pub(crate) struct Watch(SignalsInfo<WithOrigin>);

impl Watch {
    /// All signals that can be passed on.
    pub(crate) fn new() -> io::Result<Self> {
        SignalsInfo::new(WATCHED).map(Self)
    }

    /// The ends of commands, and those that are not ignored: what this process ignores, a command
    /// that is started later ignores as well, and what it catches, the command does not.
    #[cfg(feature = "etcd")]
    pub(crate) fn before_command() -> io::Result<Self> {
        let ignored = ignored();
        let heeded = |signal: &&i32| **signal == SIGCHLD || ignored >> (**signal - 1) & 1 == 0;
        SignalsInfo::new(WATCHED.iter().filter(heeded)).map(Self)
    }

    /// Stays with the command until it ends.
    pub(crate) fn stay_with(&mut self, command: Pid) -> io::Result<Ended> {
        unblock_ends();
        for origin in self.0.forever() {
            if origin.signal == SIGCHLD {
                match look_after(command)? {
                    Some(News::Ended(ended)) => return Ok(ended),
                    // Whoever started this is to see that it stands still, a shell above all.
                    Some(News::Stopped) => kill_process(getpid(), Signal::STOP)?,
                    None => {}
                }
            } else if let Some(signal) =
                Signal::from_named_raw(origin.signal).filter(|_| is_to_be_passed_on(&origin))
            {
                // It may have ended a moment ago; then the next news is about that.
                let _ = kill_process(command, signal);
            }
        }
        Err(io::Error::other("no more signals can be received"))
    }
}

/// Lets the ends of commands through, which the caller of this process may have blocked. Called
/// once the command runs: it inherits what the caller has blocked.
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

/// What the kernel sends goes to the whole process group that has the terminal, the command
/// included. Going on is harmless when it comes twice, and without it the command would stand
/// still.
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

/// The signals that whoever started this wants ignored, a bit for each: `nohup` does, and a shell
/// for what runs in the background.
#[cfg(feature = "etcd")]
pub(crate) fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
