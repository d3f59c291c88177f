//! Who somebody is, and whether it is dead.
//!
//! A process is known by its pid and by a *life*: 42 bits made of when it was started (field 22 of `/proc/PID/stat`) and of the
//! boot of the system. A pid that is reused is another life, and so is one of before a reboot.
//!
//! Dead is who does not exist, is a zombie without threads, or has the pid but another life. Who is stopped is alive. What this cannot see:
//! processes of another pid or time namespace, which is why a lock keeps to the one that it was made in; and where
//! `/proc` is not mounted or hides others (`hidepid`), that a pid has been reused: its new owner then counts as the old one, and what
//! that one held is kept until the new one ends.

use std::sync::OnceLock;

use doorway_core::recoverable::Owner;
use rustix::{
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags, openat, stat},
    io::Errno,
    process::{Pid, getpid, test_kill_process},
};

/// This process, as others know it.
pub(super) fn myself() -> Owner {
    let pid = getpid();
    owner(pid, start(c"/proc/self/stat").map_or(0, |seen| seen.start))
}

fn owner(pid: Pid, start: u64) -> Owner {
    let mixed = (start ^ boot()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Owner::new(pid.as_raw_nonzero().get() as usize - 1, (mixed >> Owner::PROCESS) & LIFE)
}

/// All bits of a life.
const LIFE: u64 = u64::MAX >> Owner::PROCESS;

/// The pid of an owner.
pub(super) fn pid(owner: Owner) -> Option<Pid> {
    i32::try_from(owner.process().wrapping_add(1)).ok().and_then(Pid::from_raw)
}

/// Whether somebody is dead.
pub(super) fn is_dead(other: Owner) -> bool {
    // Nobody has no pid, and is not alive.
    let Some(pid) = pid(other) else { return true };
    if test_kill_process(pid) == Err(Errno::SRCH) {
        return true;
    }
    let mut path = [0; 24];
    let Some(seen) = start(stat_of(pid, &mut path)) else { return false };
    // A zombie has one thread left, itself. With more it is but the first of its threads that has ended.
    seen.zombie && seen.threads <= 1 || owner(pid, seen.start) != other
}

/// `/proc/PID/stat`, without allocating: it is asked for between fork and exec.
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

/// What `/proc` says of a process.
struct Seen {
    zombie: bool,
    threads: u64,
    start: u64,
}

/// Reads it; `None` if it cannot be read. Does not allocate.
fn start(path: &std::ffi::CStr) -> Option<Seen> {
    let file: OwnedFd = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = [0; 1024];
    let mut filled = 0;
    loop {
        match rustix::io::read(&file, &mut text[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    parse(&text[..filled])
}

/// The name of the program, in brackets, may hold anything, brackets included; so fields are counted from the last one.
fn parse(text: &[u8]) -> Option<Seen> {
    let after = text.iter().rposition(|&byte| byte == b')')? + 2;
    let mut fields = text.get(after..)?.split(|&byte| byte == b' ');
    let state = *fields.next()?.first()?;
    let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse().ok();
    // The state is field 3, the threads are field 20, the start is field 22.
    let threads = number(fields.nth(20 - 3 - 1)?)?;
    let start = number(fields.nth(1)?)?;
    Some(Seen { zombie: matches!(state, b'Z' | b'X'), threads, start })
}

/// A number that no other boot of this system has, but by accident.
fn boot() -> u64 {
    static BOOT: OnceLock<u64> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let id = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    })
}

/// The pid and time namespaces of this process; 0 where they cannot be told.
pub(super) fn namespaces() -> [u64; 2] {
    ["/proc/self/ns/pid", "/proc/self/ns/time"].map(|path| stat(path).map_or(0, |stat| stat.st_ino))
}

/// The command line of a process, if it can be told. While it has none, at the very beginning of a program, the program's name in brackets, as ps(1)
/// has it.
pub(super) fn command(pid: i32) -> String {
    let read = |what| std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
    let line = read("cmdline");
    let words = line.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    let line = words.map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ");
    let name = if line.is_empty() { read("comm") } else { Vec::new() };
    match name.trim_ascii_end() {
        [] => line,
        name => format!("[{}]", String::from_utf8_lossy(name)),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        process::{Command, Stdio},
        thread::sleep,
        time::Duration,
    };

    use super::*;

    #[test]
    fn fields_are_counted_from_the_last_bracket() {
        let line = b"71 (a) R (b)) S 1 71 71 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 13 0 4711 9 10";
        let seen = parse(line).expect("it is well formed");
        assert_eq!((seen.zombie, seen.threads, seen.start), (false, 13, 4711));
        assert!(parse(b"71 (a) Z").is_none() && parse(b"").is_none());
    }

    #[test]
    fn a_process_without_a_command_line_has_a_name() {
        let mut child = Command::new("cat").args(["-", "-"]).stdin(Stdio::piped()).spawn().expect("it starts");
        let pid = child.id() as i32;
        let becomes = |line: &str| {
            for _ in 0..1000 {
                if command(pid) == line {
                    return;
                }
                sleep(Duration::from_millis(10));
            }
            panic!("it is {} and not {line}", command(pid));
        };
        becomes("cat - -");
        // It ends, and nobody hears of it yet.
        drop(child.stdin.take());
        becomes("[cat]");
        child.wait().expect("it has ended");
        assert_eq!(command(pid), "");
    }

    #[test]
    fn i_am_alive_and_nobody_else_with_my_pid_is() {
        let me = myself();
        assert!(!is_dead(me));
        assert_eq!(pid(me), Some(getpid()));
        assert!(is_dead(Owner::new(me.process(), me.life() ^ 1)), "another life");
    }

    #[test]
    fn zombies_are_dead_and_who_is_stopped_is_alive() {
        let mut child = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().expect("sleep is there");
        let pid = Pid::from_child(&child);
        let owner = owner(pid, start(stat_of(pid, &mut [0; 24])).expect("it is there").start);
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
        let seen = || start(stat_of(pid, &mut [0; 24])).expect("it is there");
        let owner = owner(pid, seen().start);
        while !seen().zombie {
            assert!(child.try_wait().expect("it is ours").is_none());
            std::thread::yield_now();
        }
        assert!(!is_dead(owner));
        child.kill().expect("it is ours");
        child.wait().expect("it has ended");
        assert!(is_dead(owner));
    }
}
