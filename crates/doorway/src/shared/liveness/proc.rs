//! What `/proc` tells of processes. Nothing here allocates but the first question for the boot ID:
//! most of it is asked between fork and exec.

use std::{ffi::CStr, sync::OnceLock};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags, openat, stat},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};

/// The path of something that `/proc` has a number for.
pub(super) struct Numbered([u8; 32]);

impl Numbered {
    /// Writes `first`, the number and `last`.
    pub(super) fn new(first: &str, number: i32, last: &str) -> Self {
        let (mut digits, mut left, mut at) = ([0; 10], number.unsigned_abs(), 10);
        while left > 0 || at == 10 {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
        }
        let (mut path, mut end) = ([0; 32], 0);
        for part in [first.as_bytes(), &digits[at..], last.as_bytes()] {
            path[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
        Self(path)
    }

    pub(super) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).expect("it ends in a zero")
    }
}

/// Reads `/proc/PID/stat`.
pub(super) fn stat_of(pid: Pid) -> Result<Stat, Errno> {
    read_stat(Numbered::new("/proc/", pid.as_raw_nonzero().get(), "/stat").as_c_str())
}

/// Returns whether all threads of a process have ended: its pidfd is readable then. `false` where
/// that cannot be told.
///
/// The state in `/proc/PID/stat` does not suffice: while a thread that is not the first one calls
/// exec, it shows the end of the first one, whose place the calling thread takes.
#[cold]
pub(super) fn has_ended(pid: Pid) -> bool {
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&at_once)), Ok(1)) && fds[0].revents().contains(PollFlags::IN)
}

/// What `/proc/PID/stat` says of a process.
pub(super) struct Stat {
    /// Its PID in the namespace of this `/proc`.
    pub(super) pid: Pid,
    /// Its first thread has ended: so have its other threads, or one runs on, or takes its place.
    pub(super) ended: bool,
    pub(super) start: u64,
}

/// Reads it.
pub(super) fn read_stat(path: &CStr) -> Result<Stat, Errno> {
    let file: OwnedFd = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = [0; 1024];
    let mut filled = 0;
    loop {
        match rustix::io::read(&file, &mut text[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    parse(&text[..filled]).ok_or(Errno::PROTO)
}

/// The name of the program, in brackets, may hold anything, brackets included; so fields are
/// counted from the last one.
fn parse(text: &[u8]) -> Option<Stat> {
    let decimal = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<u64>().ok();
    let pid = decimal(text.split(|&byte| byte == b' ').next()?)?;
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let after = text.iter().rposition(|&byte| byte == b')')? + 2;
    let mut fields = text.get(after..)?.split(|&byte| byte == b' ');
    let state = *fields.next()?.first()?;
    // The state is field 3, the start time is field 22.
    let start = decimal(fields.nth(22 - 3 - 1)?)?;
    Some(Stat { pid, ended: matches!(state, b'Z' | b'X'), start })
}

/// Returns a number that another boot of this system has only by accident.
pub(super) fn boot() -> Result<u64, Errno> {
    static BOOT: OnceLock<u64> = OnceLock::new();
    if let Some(&boot) = BOOT.get() {
        return Ok(boot);
    }
    let id = std::fs::read("/proc/sys/kernel/random/boot_id");
    let id =
        id.map_err(|error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error))?;
    let hash = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    Ok(*BOOT.get_or_init(|| id.iter().fold(0xcbf2_9ce4_8422_2325, hash)))
}

/// Returns the PID and time namespaces of this process. The latter is 0 on kernels that have none.
///
/// # Errors
/// When `/proc` does not tell.
pub(super) fn namespaces() -> Result<[u64; 2], Errno> {
    let pids = stat("/proc/self/ns/pid")?.st_ino;
    match stat("/proc/self/ns/time") {
        Ok(times) => Ok([pids, times.st_ino]),
        Err(Errno::NOENT) => Ok([pids, 0]),
        Err(errno) => Err(errno),
    }
}

/// Returns what tells this process's `/proc` from those of other PID namespaces.
pub(super) fn device() -> Result<u64, Errno> {
    stat("/proc").map(|stat| stat.st_dev)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_from_the_last_bracket() {
        let line = b"71 (a) R (b)) S 1 71 71 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 13 0 4711 9 10";
        let seen = parse(line).expect("it is well formed");
        assert_eq!((seen.pid.as_raw_nonzero().get(), seen.ended, seen.start), (71, false, 4711));
        assert!(parse(b"71 (a) Z").is_none() && parse(b"").is_none());
    }

    #[test]
    fn numbers_of_any_length_fit_into_a_path() {
        let path = |number| {
            Numbered::new("/proc/self/fd/", number, "").as_c_str().to_str().map(String::from)
        };
        assert_eq!(path(0).as_deref(), Ok("/proc/self/fd/0"));
        assert_eq!(path(i32::MAX).as_deref(), Ok("/proc/self/fd/2147483647"));
    }
}
