//! Witnesses: what tells processes of other PID namespaces that a process lives.
//!
//! A witness is a read lock on one byte of the lock's file, far behind its end: the byte whose
//! number is the identity of the process. The lock is an *open file description lock*
//! (`F_OFD_SETLK`): it lasts until the last descriptor is closed that stems from one `open`. The
//! kernel closes descriptors when a process ends, in whatever namespace it is.
//!
//! - Two handles of one process on one lock have a lock on the same byte each.
//! - A forked process shares its parent's description until it calls exec or uses the lock itself;
//!   until then the parent's byte stays locked.
//! - The byte of a command is locked twice: by its parent's description, and by one of its own,
//!   which stays open across exec. If the command closes its own, and its children have none, the
//!   parent [notices](watch) and marks the command as one without a witness.
//!
//! The *numbers* of namespaces are kept in the same way: by a read lock on one of the first bytes
//! of the file, of each process of that namespace. A number is given to another namespace by a
//! process that has a write lock on its byte, so no process keeps it, and if no entry of the table
//! belongs to a command without a witness, which does not keep it. Entries of dead processes may be
//! left with that number: neither their start time nor their byte is that of a process of the new
//! namespace.
//!
//! Not covered: a command that closes its descriptors at the very moment when its parent is killed,
//! before the thread of the parent has woken up to mark it. Processes of other namespaces take such
//! a command for dead.

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
    Namespace, has_ended, is_witnessed, pid,
    proc::Numbered,
    unwitnessed,
};

/// Descriptors from here on are seldom chosen by programs for themselves.
const HIGH: i32 = 200;

/// Returns the byte of a process.
fn byte_of(owner: Owner) -> i64 {
    (Some(owner).word() as u64 & (i64::MAX as u64)).cast_signed()
}

/// Returns the byte of the number of a namespace. It is before those of all processes with a
/// witness.
fn byte_of_number(Namespace(number): Namespace) -> i64 {
    number as i64
}

/// Locks, unlocks or asks for a byte. Returns the type of lock that is in the way.
fn lock(fd: BorrowedFd<'_>, command: i32, kind: i32, byte: i64) -> Result<i32, Errno> {
    // SAFETY: all bits of it may be zeros.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = byte;
    lock.l_len = 1;
    // SAFETY: the descriptor is open, the command takes a pointer to such a lock, and nothing keeps
    // that.
    let done = unsafe { libc::fcntl(fd.as_raw_fd(), command, &raw mut lock) };
    if done == -1 {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    Ok(lock.l_type.into())
}

/// Locks a byte unless another description has a lock that is in the way. Returns whether it did.
fn try_lock(fd: BorrowedFd<'_>, kind: i32, byte: i64) -> Result<bool, Errno> {
    match lock(fd, libc::F_OFD_SETLK, kind, byte) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Locks the byte of a process, for as long as this descriptor or a copy of it is open.
pub(super) fn hold(fd: BorrowedFd<'_>, owner: Owner) -> Result<(), Errno> {
    lock(fd, libc::F_OFD_SETLK, libc::F_RDLCK, byte_of(owner)).map(drop)
}

/// Unlocks the byte of a process that this descriptor has locked.
pub(super) fn release(fd: BorrowedFd<'_>, owner: Owner) {
    let _ = lock(fd, libc::F_OFD_SETLK, libc::F_UNLCK, byte_of(owner));
}

/// Returns whether no other description has the byte of a process locked. `false` where that cannot
/// be told.
pub(super) fn is_free(fd: BorrowedFd<'_>, owner: Owner) -> bool {
    lock(fd, libc::F_OFD_GETLK, libc::F_WRLCK, byte_of(owner)) == Ok(libc::F_UNLCK)
}

/// Keeps the number of a namespace. Returns `false` if another process has claimed it.
pub(super) fn keep_number(fd: BorrowedFd<'_>, number: Namespace) -> Result<bool, Errno> {
    try_lock(fd, libc::F_RDLCK, byte_of_number(number))
}

/// Claims the number of a namespace. Returns `false` if a process keeps or claims it by another
/// description.
pub(super) fn claim_number(fd: BorrowedFd<'_>, number: Namespace) -> Result<bool, Errno> {
    try_lock(fd, libc::F_WRLCK, byte_of_number(number))
}

/// Does not keep or claim the number of a namespace any more.
pub(super) fn release_number(fd: BorrowedFd<'_>, number: Namespace) {
    let _ = lock(fd, libc::F_OFD_SETLK, libc::F_UNLCK, byte_of_number(number));
}

/// Opens the file of a descriptor again. Allocates nothing.
fn reopen(fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = Numbered::new("/proc/self/fd/", fd.as_raw_fd(), "");
    openat(CWD, path.as_c_str(), OFlags::RDWR | flags, Mode::empty())
}

/// Opens the file of a descriptor again, with a description that holds nothing. It is closed by
/// exec.
pub(super) fn reopen_for_fork(fd: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    reopen(fd, OFlags::CLOEXEC)
}

/// Puts the description of `own` in the place of that of `fd`, which a forked process shares with
/// its parent.
pub(super) fn replace(fd: BorrowedFd<'_>, own: &OwnedFd) -> Result<(), Errno> {
    retry_on_intr(|| {
        // SAFETY: both are open. What has the old number goes on with the same file, by another
        // description.
        let done = unsafe { libc::dup3(own.as_raw_fd(), fd.as_raw_fd(), libc::O_CLOEXEC) };
        match done {
            -1 => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
            _ => Ok(()),
        }
    })
}

/// Locks the byte of this process and keeps the number of its namespace, by a descriptor that stays
/// open across exec. For use between fork and exec: allocates nothing.
pub(super) fn hold_across_exec(fd: BorrowedFd<'_>, owner: Owner) -> Result<(), Errno> {
    let low = reopen(fd, OFlags::empty())?;
    hold(low.as_fd(), owner)?;
    if !keep_number(low.as_fd(), Namespace::of(owner))? {
        return Err(Errno::AGAIN);
    }
    // SAFETY: the descriptor is open, and the command takes a number.
    let high = unsafe { libc::fcntl(low.as_raw_fd(), libc::F_DUPFD, HIGH) };
    if high == -1 {
        // There are none so high. It stays open where it is.
        std::mem::forget(low);
    }
    Ok(())
}

/// Watches the witness of a command that this process has started, in a thread. If the command
/// closes it, which programs do that close all descriptors they do not know, the command is marked
/// as one without a witness until it has ended: processes of other namespaces would take it for
/// dead once this process has ended.
pub(in super::super) fn watch(file: &Arc<File>, entry: usize, child: Owner) {
    if !is_witnessed(child) {
        return;
    }
    let own = file.clone();
    let run = move || {
        // This process has the byte locked for reading. It gets it for writing once no other
        // description has it.
        let closed =
            retry_on_intr(|| lock(own.fd(), libc::F_OFD_SETLKW, libc::F_WRLCK, byte_of(child)));
        if closed.is_err() || has_ended(child) {
            return release(own.fd(), child);
        }
        let (table, m) = (own.table(), &mut Quick::new(own.words()));
        let is_marked = matches!(table.hand_over(m, entry, child, unwitnessed(child)), Ok(true));
        let Some(Ok(pidfd)) =
            pid(child).filter(|_| is_marked).map(|pid| pidfd_open(pid, PidfdFlags::empty()))
        else {
            return;
        };
        let _ = retry_on_intr(|| poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None));
        if has_ended(child) {
            release(own.fd(), child);
            let _ = table.hand_over(m, entry, unwitnessed(child), child);
        }
    };
    let builder = thread::Builder::new().name("doorway witness".into()).stack_size(64 << 10);
    // Without a thread, the mark is made at once: it costs processes of other namespaces time, at
    // worst.
    let started = without_signals(|| builder.spawn(run));
    if started.is_err() {
        let m = &mut Quick::new(file.words());
        let _ = file.table().hand_over(m, entry, child, unwitnessed(child));
    }
}
