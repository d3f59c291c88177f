//! Runs a command that must not run without its lock. The command dies with this process, which
//! keeps the lock alive, and is stopped when the lock is lost.

use std::{
    io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::{Child, Command},
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, getpid, getppid, pidfd_open, pidfd_send_signal,
        set_parent_process_death_signal,
    },
};
use tokio::time::sleep;

use super::super::sigpipe;

/// Starts a command that the kernel kills when the *thread* that calls this ends. So call it from
/// the main thread.
#[expect(unsafe_code, reason = "something is to be done between fork and exec")]
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    let parent = getpid();
    let die_together = move || {
        if sigpipe::was_ignored() {
            sigpipe::ignore();
        }
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died already. Then no signal would come any more.
        if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
    };
    // SAFETY: between `fork` and `exec` there are three system calls, which allocate nothing and
    // take no lock.
    unsafe { command.pre_exec(die_together) };
    command.spawn()
}

/// Returns a handle of the command. Its PID is not enough: it may be another process's once the
/// command has ended and was waited for.
pub(crate) fn handle(child: &Child) -> io::Result<OwnedFd> {
    Ok(pidfd_open(Pid::from_child(child), PidfdFlags::empty())?)
}

/// How a command is stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(crate) signal: Signal,
    pub(crate) grace: Duration,
}

impl Stop {
    /// Stops the command. A command that is suspended is continued, or it could not react to the
    /// signal. The command may have ended; then nothing is to be done.
    pub(crate) async fn stop(self, command: OwnedFd) {
        let _ = pidfd_send_signal(&command, self.signal);
        let _ = pidfd_send_signal(&command, Signal::CONT);
        sleep(self.grace).await;
        let _ = pidfd_send_signal(&command, Signal::KILL);
    }
}
