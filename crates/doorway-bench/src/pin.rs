//! Threads on cores of their own, where the system lets a process choose.

/// Returns the cores that this process may use.
#[cfg(target_os = "linux")]
fn cores() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect()
}

/// Puts the calling thread on a core that differs for each p, as long as there are cores.
#[cfg(target_os = "linux")]
pub(crate) fn to_core(p: usize) {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let cores = cores();
    let mut set = CpuSet::new();
    set.set(cores[p % cores.len()]);
    sched_setaffinity(None, &set).expect("a thread may stay on a core that it may use");
}

/// Returns whether two threads can be put on a core each.
#[cfg(target_os = "linux")]
pub(crate) fn two_cores() -> bool {
    cores().len() >= 2
}

/// Does nothing on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn to_core(_: usize) {}

/// Not possible on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn two_cores() -> bool {
    false
}
