//! A slot that is handed over to a child, and taken back; programs that are started with a slot.

use super::*;

/// The slot follows the command: it is the child's from before exec to its end, whatever becomes of
/// the parent.
#[test]
fn a_slot_can_be_handed_to_a_child() {
    let (_place, locks) = directory();
    let semaphore = locks.semaphore("a", 1).expect("it is made");
    let permit = semaphore.acquire().expect("it is free");
    let hand_over = permit.hand_over();
    let mut command = Command::new("sleep");
    command.arg("60");
    // SAFETY: adopting allocates nothing and takes no lock.
    unsafe { command.pre_exec(move || hand_over.adopt()) };
    let mut child = command.spawn().expect("it adopts the slot");
    let holders = || semaphore.status().holders;
    assert_eq!(holders()[0].pid, child.id() as i32);
    assert_eq!(holders()[0].command, "sleep 60");
    assert!(!permit.take_back().expect("it works"), "it lives");
    // It is not the parent's any more.
    drop(permit);
    assert!(semaphore.try_acquire().expect("it works").is_none());
    child.kill().expect("it runs");
    let next = semaphore.acquire().expect("a zombie has no slot");
    assert!(next.recovered());
    child.wait().expect("it has ended");
    // A child whose parent has the slot no more does not run.
    let hand_over = next.hand_over();
    drop(next);
    let mut command = Command::new("true");
    // SAFETY: as above.
    unsafe { command.pre_exec(move || hand_over.adopt()) };
    assert!(command.spawn().is_err(), "it must not run");
    // Though it has the same one again, or has closed the lock.
    let again = semaphore.acquire().expect("it is free");
    assert!(command.spawn().is_err(), "it must not run");
    drop(again);
    drop(semaphore);
    assert!(command.spawn().is_err(), "it must not run");
}

#[test]
fn a_slot_comes_back_from_a_child_that_has_ended() {
    let (_place, locks) = directory();
    let semaphore = locks.semaphore("a", 1).expect("it is made");
    let permit = semaphore.acquire().expect("it is free");
    let hand_over = permit.hand_over();
    let mut command = Command::new("true");
    // SAFETY: as above.
    unsafe { command.pre_exec(move || hand_over.adopt()) };
    assert!(command.status().expect("it runs").success());
    assert!(permit.take_back().expect("it works"));
    drop(permit);
    assert!(!semaphore.acquire().expect("it is free").recovered());
}

/// As one that is spawned does.
#[test]
fn a_program_that_is_started_has_the_slot() {
    let (_place, locks) = directory();
    let semaphore = locks.semaphore("a", 1).expect("it is made");
    let permit = semaphore.acquire().expect("it is free");
    let start = |words: &[&str]| permit.start(words, env::vars_os(), |pid| pid.cast_signed());
    let pid = start(&["sleep", "60"]).expect("it starts");
    assert_eq!(semaphore.status().holders[0].pid, pid);
    // The system says a moment later what it runs.
    while semaphore.status().holders[0].command != "sleep 60" {
        thread::yield_now();
    }
    // A second one does not get what the first one has.
    let file = locks.path().join(".written");
    let script = format!("echo > {}", file.display());
    assert_eq!(
        start(&["sh", "-c", &script]).map_err(|error| error.raw_os_error()),
        Err(Some(libc::ESTALE))
    );
    assert!(!file.exists(), "it must not run");
    drop(permit);
    assert!(semaphore.try_acquire().expect("it works").is_none());
    let pid = rustix::process::Pid::from_raw(pid).expect("it is a number");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
    assert!(semaphore.acquire().expect("a zombie has no slot").recovered());
    rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())
        .expect("it has ended");
}

#[test]
fn what_cannot_be_started_says_why() {
    let (_place, locks) = directory();
    let semaphore = locks.semaphore("a", 1).expect("it is made");
    for (words, kind) in [
        (&["no-such-program"][..], io::ErrorKind::NotFound),
        (&["/"], io::ErrorKind::PermissionDenied),
        (&["a\0b"], io::ErrorKind::InvalidInput),
        (&[], io::ErrorKind::InvalidInput),
    ] {
        let permit = semaphore.acquire().expect("it is free");
        let error = permit.start(words, env::vars_os(), |_| ()).expect_err("it cannot");
        assert_eq!(error.kind(), kind, "{words:?}: {error}");
        // Who has tried it has ended, and has the slot no more.
        permit.take_back().expect("it works");
        drop(permit);
        assert!(!semaphore.acquire().expect("it is free").recovered(), "{words:?}");
    }
    // And was waited for. Not every system tells.
    let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    assert_eq!(children, "");
}

/// A program has the signals of who starts it: what is blocked and what is ignored, but for what
/// Rust programs ignore. Meanwhile that one hears of none.
#[test]
fn signals_are_handed_on_to_a_program() {
    /// The bits of a line of `/proc/…/status`.
    fn bits(status: &str, what: &str) -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(what)).expect("it is there");
        u64::from_str_radix(line.trim(), 16).expect("a number")
    }
    let bit = |signal: i32| 1_u64 << (signal - 1);
    let mine = || fs::read_to_string("/proc/thread-self/status").expect("it is there");
    let (_place, locks) = directory();
    let semaphore = locks.semaphore("a", 1).expect("it is made");
    let permit = semaphore.acquire().expect("it is free");
    // SAFETY: a set is made and blocked in this thread, and a signal is ignored that nobody sends.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigaddset(&raw mut set, libc::SIGUSR2);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
        libc::signal(libc::SIGUSR1, libc::SIG_IGN);
    }
    let file = locks.path().join(".status");
    let words = ["cp", "/proc/self/status", file.to_str().expect("it is text")];
    let environment = env::vars_os().filter(|(name, _)| name == "PATH");
    let (pid, meanwhile) =
        permit.start(words, environment, |pid| (pid.cast_signed(), mine())).expect("it starts");
    rustix::process::waitpid(
        rustix::process::Pid::from_raw(pid),
        rustix::process::WaitOptions::empty(),
    )
    .expect("it ends");
    let theirs = fs::read_to_string(file).expect("it has written");
    assert_eq!(bits(&theirs, "SigBlk:"), bit(libc::SIGUSR2));
    assert_eq!(
        bits(&theirs, "SigIgn:") & (bit(libc::SIGUSR1) | bit(libc::SIGPIPE)),
        bit(libc::SIGUSR1)
    );
    let listened_to = bit(libc::SIGCHLD) | bit(libc::SIGTERM) | bit(libc::SIGINT);
    assert_eq!(bits(&meanwhile, "SigBlk:") & listened_to, listened_to);
    assert_eq!(bits(&mine(), "SigBlk:"), bit(libc::SIGUSR2));
}
