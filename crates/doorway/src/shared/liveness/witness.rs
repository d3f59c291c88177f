//! Witnesses: what tells processes of other PID namespaces that a process lives.
//!
//! A witness is a read lock on one byte of the lock's file, far behind its end: the byte whose number is the identity of the
//! process. The lock is an *open file description lock* (`F_OFD_SETLK`): it lasts until the last descriptor is closed that
//! stems from one `open`. The kernel closes descriptors when a process ends, in whatever namespace it is.
//!
//! - Two handles of one process on one lock have a lock on the same byte each.
//! - A forked process shares its parent's description until it calls exec or uses the lock itself; until then the parent's
//!   byte stays locked.
//! - The byte of a command is locked twice: by its parent's description, and by one of its own, which stays open across exec.
//!   If the command closes that one, and its children have none, the parent [notices](watch) and marks the command as one
//!   without a witness.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    sync::Arc,
    thread,
};

use doorway_core::{Value, engines::named_lock::Owner};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{CWD, Mode, OFlags, openat},
    io::{Errno, retry_on_intr},
    process::{PidfdFlags, pidfd_open},
};

use super::{
    super::{file::File, memory::Quick, vfork::without_signals},
    has_ended, is_witnessed, pid,
    proc::Numbered,
    unwitnessed,
};

/// Descriptors from here on are seldom chosen by programs for themselves.
const HIGH: i32 = 200;

/// Locks, unlocks or asks for the byte of a process. Returns the type of lock that is in the way.
fn byte(fd: BorrowedFd<'_>, command: i32, kind: i32, owner: Owner) -> Result<i32, Errno> {
    // SAFETY: all bits of it may be zeros.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = (Some(owner).word() as u64 & (i64::MAX as u64)).cast_signed();
    lock.l_len = 1;
    // SAFETY: the descriptor is open, the command takes a pointer to such a lock, and nothing keeps that.
    let done = unsafe { libc::fcntl(fd.as_raw_fd(), command, &raw mut lock) };
    if done == -1 {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    Ok(lock.l_type.into())
}

/// Locks the byte of a process, for as long as this descriptor or a copy of it is open.
pub(super) fn hold(fd: BorrowedFd<'_>, owner: Owner) -> Result<(), Errno> {
    byte(fd, libc::F_OFD_SETLK, libc::F_RDLCK, owner).map(drop)
}

/// Unlocks the byte of a process that this descriptor has locked.
pub(super) fn release(fd: BorrowedFd<'_>, owner: Owner) {
    let _ = byte(fd, libc::F_OFD_SETLK, libc::F_UNLCK, owner);
}

/// Whether no other description has the byte of a process locked. `false` where that cannot be told.
pub(super) fn is_free(fd: BorrowedFd<'_>, owner: Owner) -> bool {
    byte(fd, libc::F_OFD_GETLK, libc::F_WRLCK, owner) == Ok(libc::F_UNLCK)
}

/// Opens the file of a descriptor again. Allocates nothing.
fn reopen(fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = Numbered::new("/proc/self/fd/", fd.as_raw_fd(), "");
    openat(CWD, path.as_c_str(), OFlags::RDWR | flags, Mode::empty())
}

/// Locks the byte of a forked process, with a description of its own in place of its parent's. Several threads may do so at
/// once: each puts one in place that is locked already.
pub(super) fn hold_in_fork(fd: BorrowedFd<'_>, owner: Owner) -> Result<(), Errno> {
    let own = reopen(fd, OFlags::CLOEXEC)?;
    hold(own.as_fd(), owner)?;
    // SAFETY: both are open. What has the old number goes on with the same file, by another description.
    retry_on_intr(|| match unsafe { libc::dup3(own.as_raw_fd(), fd.as_raw_fd(), libc::O_CLOEXEC) } {
        -1 => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ => Ok(()),
    })
}

/// Locks the byte of this process, by a descriptor that stays open across exec. For use between fork and exec: allocates
/// nothing.
pub(super) fn hold_across_exec(fd: BorrowedFd<'_>, owner: Owner) -> Result<(), Errno> {
    let low = reopen(fd, OFlags::empty())?;
    hold(low.as_fd(), owner)?;
    // SAFETY: the descriptor is open, and the command takes a number.
    let high = unsafe { libc::fcntl(low.as_raw_fd(), libc::F_DUPFD, HIGH) };
    if high == -1 {
        // There are none so high. It stays open where it is.
        std::mem::forget(low);
    }
    Ok(())
}

/// Watches the witness of a command that this process has started, in a thread. If the command closes it, which programs do
/// that close all descriptors they do not know, the command is marked as one without a witness until it has ended: processes
/// of other namespaces would take it for dead once this process has ended.
pub(in super::super) fn watch(file: &Arc<File>, entry: usize, child: Owner) {
    if !is_witnessed(child) {
        return;
    }
    let own = file.clone();
    let run = move || {
        // This process has the byte locked for reading. It gets it for writing once no other description has it.
        let closed = retry_on_intr(|| byte(own.fd(), libc::F_OFD_SETLKW, libc::F_WRLCK, child));
        if closed.is_err() || has_ended(child) {
            return release(own.fd(), child);
        }
        let (table, m) = (own.table(), &mut Quick::new(own.words()));
        let is_marked = matches!(table.hand_over(m, entry, child, unwitnessed(child)), Ok(true));
        let Some(Ok(pidfd)) = pid(child).filter(|_| is_marked).map(|pid| pidfd_open(pid, PidfdFlags::empty())) else {
            return;
        };
        let _ = retry_on_intr(|| poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None));
        if has_ended(child) {
            release(own.fd(), child);
            let _ = table.hand_over(m, entry, unwitnessed(child), child);
        }
    };
    let builder = thread::Builder::new().name("doorway witness".into()).stack_size(64 << 10);
    // Without a thread, the mark is made at once: it costs processes of other namespaces time, at worst.
    let started = without_signals(|| builder.spawn(run));
    if started.is_err() {
        let m = &mut Quick::new(file.words());
        let _ = file.table().hand_over(m, entry, child, unwitnessed(child));
    }
}
