//! System calls that the soak needs and no safe library offers: fork, shared memory, record locks
//! and the trap flag.
//!
//! All unsafe code of the soak is here. Every process of the soak has one thread, so a forked
//! process may do what its parent may.

use std::{
    fs::{self, File},
    os::fd::AsRawFd,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, set_parent_process_death_signal, waitpid,
};

use super::page::Page;

/// What a process of the soak ends with when it panics.
pub(crate) const PANICKED: i32 = 101;

/// Maps the page that all processes of the soak share.
pub(crate) fn shared_page() -> &'static Page {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping overlaps nothing.
    let memory =
        unsafe { libc::mmap(ptr::null_mut(), size_of::<Page>(), protection, flags, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED, "the system gives memory");
    // SAFETY: the mapping is large enough, begins with a page and is never unmapped. A page
    // consists of atomic numbers only, for which zeros are valid.
    unsafe { &*memory.cast::<Page>() }
}

/// Forks a process that runs `child`, ends with the code that it returns, and runs nothing else.
///
/// It is killed when its parent dies, if `bound`.
pub(crate) fn fork(bound: bool, child: impl FnOnce() -> i32) -> Pid {
    let parent = rustix::process::getpid();
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        0 => {
            let ended = catch_unwind(AssertUnwindSafe(|| {
                if bound {
                    set_parent_process_death_signal(Some(Signal::KILL)).expect("Linux knows it");
                    if rustix::process::getppid() != Some(parent) {
                        return 0;
                    }
                }
                child()
            }));
            exit_now(ended.unwrap_or(PANICKED))
        }
        pid => Pid::from_raw(pid).filter(|_| pid > 0).expect("the system forks"),
    }
}

/// Ends this process without running what its parent has registered for its own end.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: it does not return, and what it leaves open the kernel closes.
    unsafe { libc::_exit(code) }
}

/// Waits until a child has ended.
pub(crate) fn reap(pid: Pid) -> WaitStatus {
    let ended = rustix::io::retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()));
    ended.expect("it is a child").expect("it has ended").1
}

/// Returns the parent of a process.
pub(crate) fn parent(pid: Pid) -> Option<Pid> {
    let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Pid::from_raw(fields.split_whitespace().nth(1)?.parse().ok()?)
}

/// Lets other processes go first.
pub(crate) fn be_nice(by: i32) {
    // SAFETY: it takes a number.
    unsafe { libc::nice(by) };
}

fn record(file: &File, command: i32, kind: i32, byte: usize) -> Option<i32> {
    // SAFETY: it is plain data, and zeros are valid.
    let mut record: libc::flock = unsafe { std::mem::zeroed() };
    record.l_type = kind as i16;
    record.l_start = byte as libc::off_t;
    record.l_len = 1;
    // SAFETY: the file is open, and the record is one.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut record) };
    (done == 0).then_some(record.l_type.into())
}

/// Locks a byte of a file for this process alone; says whether it was free.
pub(crate) fn lock_byte(file: &File, byte: usize) -> bool {
    record(file, libc::F_SETLK, libc::F_WRLCK, byte).is_some()
}

/// Locks a byte of a file together with others that do so; says whether that was possible.
pub(crate) fn share_byte(file: &File, byte: usize) -> bool {
    record(file, libc::F_SETLK, libc::F_RDLCK, byte).is_some()
}

/// Unlocks a byte of a file.
pub(crate) fn unlock_byte(file: &File, byte: usize) {
    assert!(record(file, libc::F_SETLK, libc::F_UNLCK, byte).is_some(), "a byte can be unlocked");
}

/// Whether no other process has locked a byte of a file. Asks only: a process that tried would have
/// it for a moment.
pub(crate) fn byte_is_free(file: &File, byte: usize) -> bool {
    record(file, libc::F_GETLK, libc::F_WRLCK, byte) == Some(libc::F_UNLCK)
}

/// Stops this process until its parent lets it go on.
pub(crate) fn stop_here() {
    // SAFETY: it takes a number.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Kills this process.
pub(crate) fn die() -> ! {
    loop {
        // SAFETY: it takes numbers.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
}

/// Where this process counts the instructions that it has executed since it is stepped, and after
/// how many it is killed.
static EXECUTED: OnceLock<&'static AtomicU64> = OnceLock::new();
static MOST: AtomicU64 = AtomicU64::new(0);

/// Comes after each instruction.
extern "C" fn executed_one(_: libc::c_int) {
    if EXECUTED
        .get()
        .is_none_or(|executed| executed.fetch_add(1, Relaxed) + 1 >= MOST.load(Relaxed))
    {
        die();
    }
}

/// Whether `die_after` works here.
pub(crate) const CAN_STEP: bool = cfg!(target_arch = "x86_64");

/// Lets this process be killed after so many more instructions, and counts them.
///
/// The processor traps after each one while the trap flag is set, and the kernel makes a SIGTRAP of
/// it. Unlike with a tracer, no other process has to run after each instruction.
#[cfg(target_arch = "x86_64")]
pub(crate) fn die_after(instructions: u64, executed: &'static AtomicU64) {
    if instructions == 0 || EXECUTED.set(executed).is_err() {
        die();
    }
    MOST.store(instructions, Relaxed);
    // SAFETY: zeros are valid, and the handler has the signature that its flags ask for. It uses
    // system calls and atomics only.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = executed_one as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGTRAP, &raw const action, ptr::null_mut()), 0);
    }
    // SAFETY: it changes one flag, and the handler is there.
    unsafe { std::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
}

/// Other processors have no such flag that a process can set itself.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn die_after(_: u64, _: &'static AtomicU64) {}
