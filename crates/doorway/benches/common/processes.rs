//! Forked processes and the memory that they share, for the benchmarks of named locks.

use std::{
    io,
    ops::Index,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    thread::sleep,
    time::Duration,
};

/// How long a benchmark waits for a condition before it fails, in nanoseconds.
const PATIENCE: u64 = 120_000_000_000;

/// Maps zeroed memory that forked processes share.
pub(crate) fn shared_memory(bytes: usize) -> *mut libc::c_void {
    let (access, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: the kernel chooses the address.
    let memory = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED, "mmap: {}", io::Error::last_os_error());
    memory
}

/// Words that forked processes share, each in its own cache line.
pub(crate) struct Words {
    first: *mut libc::c_void,
    count: usize,
}

const LINE: usize = 64;

impl Words {
    pub(crate) fn new(count: usize) -> Self {
        Self { first: shared_memory(count * LINE), count }
    }
}

impl Index<usize> for Words {
    type Output = AtomicU64;

    fn index(&self, which: usize) -> &AtomicU64 {
        assert!(which < self.count);
        // SAFETY: the mapping is that long, starts with zeros, and is only accessed by atomics.
        unsafe { &*self.first.byte_add(which * LINE).cast() }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference outlives it.
        unsafe { libc::munmap(self.first, self.count * LINE) };
    }
}

/// Returns the monotonic clock in nanoseconds, which all processes share.
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until the condition holds. Fails after two minutes.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let began = now();
    while !holds() {
        assert!(now() - began < PATIENCE, "gave up after two minutes, waiting until {what}");
        sleep(Duration::from_micros(500));
    }
}

/// A barrier: processes that arrive sleep until the parent has seen all of them and releases them.
pub(crate) struct Start(Words);

const ARRIVED: usize = 0;
const RELEASED: usize = 1;

impl Start {
    pub(crate) fn new() -> Self {
        Self(Words::new(2))
    }

    /// Waits for the release.
    pub(crate) fn arrive(&self) {
        self.0[ARRIVED].fetch_add(1, SeqCst);
        while self.0[RELEASED].load(SeqCst) == 0 {
            self.futex(libc::FUTEX_WAIT, 0);
        }
    }

    /// Releases all processes as soon as so many have arrived. Returns the time of the release.
    pub(crate) fn release(&self, processes: usize) -> u64 {
        until("all processes are ready", || self.0[ARRIVED].load(SeqCst) >= processes as u64);
        let time = now();
        self.0[RELEASED].store(u64::MAX, SeqCst);
        self.futex(libc::FUTEX_WAKE, i32::MAX);
        time
    }

    fn futex(&self, operation: i32, value: i32) {
        let word = self.0[RELEASED].as_ptr().cast::<u32>();
        // SAFETY: the word is mapped for as long as `self` lives, and no timeout is pointed to.
        unsafe {
            libc::syscall(libc::SYS_futex, word, operation, value, ptr::null::<libc::timespec>())
        };
    }
}

/// Forks a process that runs this and exits. It dies with the thread that forked it.
///
/// Only for processes with one thread: then the child may allocate.
pub(crate) fn fork(run: impl FnOnce()) -> i32 {
    // SAFETY: there is only one thread, see above.
    let (parent, pid) = unsafe { (libc::getpid(), libc::fork()) };
    if pid == 0 {
        // SAFETY: no pointer is passed.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        // SAFETY: as above. A parent that died before the call sends no signal.
        let done =
            unsafe { libc::getppid() } == parent && catch_unwind(AssertUnwindSafe(run)).is_ok();
        // SAFETY: the child drops nothing that belongs to its parent.
        unsafe { libc::_exit(if done { 0 } else { 101 }) };
    }
    let error = io::Error::last_os_error();
    assert!(
        pid > 0,
        "fork: {error}; raise the limit of processes: ulimit -u, pids.max, kernel.pid_max"
    );
    pid
}

/// Sends SIGKILL.
pub(crate) fn kill(pid: i32) {
    // SAFETY: no pointer is passed, and a child that was not waited for keeps its PID.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Waits for the end of a child.
pub(crate) fn reap(pid: i32) {
    // SAFETY: no status is asked for.
    while unsafe { libc::waitpid(pid, ptr::null_mut(), 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Forked processes, which are killed and reaped when this is dropped.
#[derive(Default)]
pub(crate) struct Children {
    pub(crate) pids: Vec<i32>,
}

impl Children {
    /// Forks a process that runs this and exits. Returns its PID.
    pub(crate) fn fork(&mut self, run: impl FnOnce()) -> i32 {
        let pid = fork(run);
        self.pids.push(pid);
        pid
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.pids.iter().for_each(|&pid| kill(pid));
        self.pids.iter().for_each(|&pid| reap(pid));
    }
}
