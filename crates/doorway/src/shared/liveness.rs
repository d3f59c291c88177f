//! Identifies processes, and decides whether a process is dead.
//!
//! A process is identified by its PID and a *life*: 42 bits made of its start time (field 22 of `/proc/PID/stat`) and the boot ID.
//! A reused PID has another life, and so has a process of another boot.
//!
//! A process is declared dead only on evidence that cannot be transient:
//!
//! | state of the process | what the kernel shows | verdict |
//! |---|---|---|
//! | running, sleeping, stopped, traced | `stat` has the same start time and state R, S, D, T or t | alive |
//! | reaped | `kill` fails with `ESRCH` | dead |
//! | PID reused | `stat` has another start time | dead |
//! | zombie: all threads have ended | `stat` has state Z, and a pidfd is readable | dead |
//! | first thread has ended, others run | `stat` has state Z, and no pidfd is readable | alive |
//! | exec from another thread in progress | `stat` has state Z or X for an instant, and no pidfd is readable | alive |
//! | hidden (`hidepid`), or `/proc` not mounted | `kill` finds it, and `stat` cannot be read | alive |
//! | the caller has no file descriptor left | `kill` finds it, and nothing can be opened | alive |
//! | in another PID namespace | PIDs mean something else there | a lock refuses to be used there |
//!
//! "Alive" where nothing is known costs time, never exclusion: a dead process then keeps its slot until its PID is free or the
//! evidence can be had. A process that cannot identify *itself* gets an error and does not enter.

use std::sync::OnceLock;

use doorway_core::engines::named_lock::Owner;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags, openat, stat},
    io::Errno,
    process::{Pid, PidfdFlags, getpid, pidfd_open, test_kill_process},
};

/// Returns the identity of this process.
///
/// # Errors
/// When `/proc` does not tell its start time or the boot ID: with a guess in their place, other processes would take this one
/// for dead.
pub(super) fn myself() -> Result<Owner, Errno> {
    Ok(owner(getpid(), read_stat(c"/proc/self/stat")?.start, boot()?))
}

/// Returns the identity of this process in the namespaces of its parent, which may have moved its children to others.
///
/// `proc` is the device of the parent's `/proc`, which numbers processes as the parent's PID namespace does.
///
/// # Errors
/// As [`myself`]; `EXDEV` when this process has another `/proc` or counts time from another start, so that it cannot know the
/// numbers by which its parent's namespaces know it.
pub(super) fn myself_in([pids, times]: [u64; 2], proc: u64) -> Result<Owner, Errno> {
    let mine = namespaces()?;
    if mine == [pids, times] {
        return myself();
    }
    if mine[1] != times || proc_device()? != proc {
        return Err(Errno::XDEV);
    }
    let seen = read_stat(c"/proc/self/stat")?;
    Ok(owner(seen.pid, seen.start, boot()?))
}

/// Returns what tells this process's `/proc` from those of other PID namespaces.
pub(super) fn proc_device() -> Result<u64, Errno> {
    stat("/proc").map(|stat| stat.st_dev)
}

fn owner(pid: Pid, start: u64, boot: u64) -> Owner {
    let mixed = (start ^ boot).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Owner::new(pid.as_raw_nonzero().get() as usize - 1, (mixed >> Owner::PROCESS) & LIFE)
}

/// All bits of a life.
const LIFE: u64 = u64::MAX >> Owner::PROCESS;

/// Returns the PID of an owner.
pub(super) fn pid(owner: Owner) -> Option<Pid> {
    i32::try_from(owner.process().wrapping_add(1)).ok().and_then(Pid::from_raw)
}

/// Whether a process is dead; see the table above.
pub(super) fn is_dead(other: Owner) -> bool {
    // An owner without a PID is none.
    let Some(pid) = pid(other) else { return true };
    if test_kill_process(pid) == Err(Errno::SRCH) {
        return true;
    }
    let mut path = [0; 24];
    let (Ok(seen), Ok(boot)) = (read_stat(stat_of(pid, &mut path)), boot()) else { return false };
    owner(pid, seen.start, boot) != other || seen.ended && has_ended(pid)
}

/// Whether all threads of a process have ended: its pidfd is readable then. `false` where that cannot be told.
///
/// The state in `/proc/PID/stat` does not suffice: while a thread that is not the first one calls exec, it shows the end of the
/// first one, whose place the other takes.
#[cold]
fn has_ended(pid: Pid) -> bool {
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&at_once)), Ok(1)) && fds[0].revents().contains(PollFlags::IN)
}

/// Writes `/proc/PID/stat`, without allocating: it is called between fork and exec.
fn stat_of(pid: Pid, path: &mut [u8; 24]) -> &std::ffi::CStr {
    let mut digits = [0; 10];
    let (mut left, mut first) = (pid.as_raw_nonzero().get(), digits.len());
    while left > 0 {
        first -= 1;
        digits[first] = b'0' + (left % 10) as u8;
        left /= 10;
    }
    let parts = [&b"/proc/"[..], &digits[first..], b"/stat\0"];
    let mut end = 0;
    for part in parts {
        path[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    }
    std::ffi::CStr::from_bytes_until_nul(path).expect("it ends in a zero")
}

/// What `/proc/PID/stat` says of a process.
struct Stat {
    /// Its PID in the namespace of this `/proc`.
    pid: Pid,
    /// Its first thread has ended: so have the others, or one of them goes on, or takes its place.
    ended: bool,
    start: u64,
}

/// Reads it. Does not allocate.
fn read_stat(path: &std::ffi::CStr) -> Result<Stat, Errno> {
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

/// The name of the program, in brackets, may hold anything, brackets included; so fields are counted from the last one.
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
fn boot() -> Result<u64, Errno> {
    static BOOT: OnceLock<u64> = OnceLock::new();
    if let Some(&boot) = BOOT.get() {
        return Ok(boot);
    }
    let id = std::fs::read("/proc/sys/kernel/random/boot_id");
    let id = id.map_err(|error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error))?;
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

#[cfg(test)]
mod tests {
    use std::{
        env,
        os::unix::process::CommandExt,
        process::{Command, Stdio},
        thread,
    };

    use super::*;

    #[test]
    fn fields_are_counted_from_the_last_bracket() {
        let line = b"71 (a) R (b)) S 1 71 71 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 13 0 4711 9 10";
        let seen = parse(line).expect("it is well formed");
        assert_eq!((seen.pid.as_raw_nonzero().get(), seen.ended, seen.start), (71, false, 4711));
        assert!(parse(b"71 (a) Z").is_none() && parse(b"").is_none());
    }

    /// The identity of another process.
    fn known(pid: Pid) -> Owner {
        let seen = read_stat(stat_of(pid, &mut [0; 24])).expect("it is there");
        owner(pid, seen.start, boot().expect("/proc is mounted"))
    }

    #[test]
    fn i_am_alive_and_nobody_else_with_my_pid_is() {
        let me = myself().expect("/proc is mounted");
        assert!(!is_dead(me));
        assert_eq!(pid(me), Some(getpid()));
        assert!(is_dead(Owner::new(me.process(), me.life() ^ 1)), "another life");
    }

    #[test]
    fn zombies_are_dead_and_who_is_stopped_is_alive() {
        let mut child = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().expect("sleep is there");
        let pid = Pid::from_child(&child);
        let owner = known(pid);
        assert!(!is_dead(owner));
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("it is ours");
        assert!(!is_dead(owner), "stopped");
        child.kill().expect("it is ours");
        // Not reaped: a zombie as soon as it has ended.
        while !is_dead(owner) {
            std::thread::yield_now();
        }
        child.wait().expect("it has ended");
        assert!(is_dead(owner), "gone");
    }

    /// Its first thread has ended, and another goes on.
    #[test]
    fn a_process_without_its_first_thread_is_alive() {
        let script = "import threading, time, ctypes\n\
                      threading.Thread(target=time.sleep, args=(60,)).start()\n\
                      print('on', flush=True)\n\
                      ctypes.CDLL(None).pthread_exit(None)";
        let child = Command::new("python3").args(["-c", script]).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("it starts: scripts/need python3");
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().expect("piped")), &mut line)
            .expect("it says something");
        let pid = Pid::from_child(&child);
        let owner = known(pid);
        while !read_stat(stat_of(pid, &mut [0; 24])).expect("it is there").ended {
            assert!(child.try_wait().expect("it is ours").is_none());
            std::thread::yield_now();
        }
        assert!(!is_dead(owner));
        child.kill().expect("it is ours");
        child.wait().expect("it has ended");
        assert!(is_dead(owner));
    }

    /// While a thread that is not the first one calls exec, `/proc` shows the end of the first one for an instant.
    #[test]
    fn a_process_that_execs_from_another_thread_is_alive() {
        const HELPER: &str = "DOORWAY_TEST_EXECS";
        let name = "shared::liveness::tests::a_process_that_execs_from_another_thread_is_alive";
        let mut again = Command::new(env::current_exe().expect("it has a path"));
        again.args(["--exact", name, "--nocapture"]).env(HELPER, "1").stdout(Stdio::null());
        if env::var_os(HELPER).is_some() {
            let error = thread::spawn(move || again.exec()).join();
            panic!("it does not exec: {error:?}");
        }
        let mut child = again.spawn().expect("it starts");
        let owner = known(Pid::from_child(&child));
        let times_dead = (0..300_000).filter(|_| is_dead(owner)).count();
        assert!(child.try_wait().expect("it is ours").is_none(), "it goes on for ever");
        child.kill().expect("it is ours");
        child.wait().expect("it has ended");
        assert_eq!(times_dead, 0);
    }
}
