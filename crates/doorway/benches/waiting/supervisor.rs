//! Runs the benchmark in a process group of its own, and kills and reaps all of it: after
//! success, after a failure, and after Ctrl-C.

use std::{io, mem, process::ExitCode, ptr};

use crate::processes::fork;

/// Signals that end the benchmark.
const ENDING: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Runs this in a forked process, the runner, and returns its exit code.
///
/// The caller is the subreaper of all processes that the runner starts: a process whose parent has
/// died becomes a child of the caller. The caller must have only one thread.
pub(crate) fn supervise(run: impl FnOnce()) -> ExitCode {
    let signals = signals();
    // SAFETY: the set is initialised, and the old one is not asked for.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        libc::sigprocmask(libc::SIG_BLOCK, &signals, ptr::null_mut());
    }
    let runner = fork(|| {
        // SAFETY: as above.
        unsafe {
            libc::setpgid(0, 0);
            libc::sigprocmask(libc::SIG_UNBLOCK, &signals, ptr::null_mut());
        }
        run();
    });
    // SAFETY: no pointer is passed. Both processes call it, so the group exists for both.
    unsafe { libc::setpgid(runner, runner) };
    let code = wait(runner, &signals);
    // SAFETY: no pointer is passed. The group outlives the runner if any of its processes does.
    unsafe { libc::kill(-runner, libc::SIGKILL) };
    while reap_any(0).is_some() {}
    ExitCode::from(code)
}

fn signals() -> libc::sigset_t {
    // SAFETY: a set of zeros is valid memory, and is initialised before it is used.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in ENDING.into_iter().chain([libc::SIGCHLD]) {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Waits for the end of the runner or for a signal. Returns the exit code.
fn wait(runner: i32, signals: &libc::sigset_t) -> u8 {
    loop {
        let mut signal = 0;
        // SAFETY: both pointers are valid.
        unsafe { libc::sigwait(signals, &mut signal) };
        if ENDING.contains(&signal) {
            return 128 + signal as u8;
        }
        while let Some((pid, status)) = reap_any(libc::WNOHANG) {
            if pid == runner {
                return if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) as u8 } else { 1 };
            }
        }
    }
}

/// Reaps a child. Returns its PID and status, or `None` if there is none.
fn reap_any(flags: i32) -> Option<(i32, i32)> {
    loop {
        let mut status = 0;
        // SAFETY: the pointer is valid.
        match unsafe { libc::waitpid(-1, &mut status, flags) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            pid if pid > 0 => return Some((pid, status)),
            _ => return None,
        }
    }
}
