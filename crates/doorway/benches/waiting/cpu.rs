//! Processor time of processes.

use std::{io, mem, thread::sleep, time::Duration};

use crate::processes::now;

/// Returns the processor time in seconds that these processes have used together.
///
/// The clocks of the processes count nanoseconds; `/proc/PID/stat` counts in ticks of 10 ms, which
/// is more than a waiter should use in a minute.
pub(crate) fn used(pids: &[i32]) -> f64 {
    pids.iter().map(|&pid| used_by(pid)).sum()
}

fn used_by(pid: i32) -> f64 {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: the pointer is valid.
    let error = unsafe { libc::clock_getcpuclockid(pid, &mut clock) };
    assert_eq!(error, 0, "process {pid} is there: {}", io::Error::from_raw_os_error(error));
    // SAFETY: the pointer is valid.
    let failed = unsafe { libc::clock_gettime(clock, &mut time) };
    assert_eq!(failed, 0, "{}", io::Error::last_os_error());
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the processor time in seconds of all children that were reaped, and of their children.
pub(crate) fn used_by_reaped() -> f64 {
    // SAFETY: zeros are a valid value, and the pointer is valid.
    let usage = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Lets so much time pass. Returns how many seconds that took, and how many percent of one core
/// these processes used.
pub(crate) fn observe(pids: &[i32], time: Duration) -> (f64, f64) {
    let (began, before) = (now(), used(pids));
    sleep(time);
    let (seconds, after) = ((now() - began) as f64 / 1e9, used(pids));
    (seconds, (after - before) / seconds * 100.0)
}
