//! Mapped memory as atomic words.

use std::{
    ptr::{self, NonNull},
    slice,
    sync::atomic::{AtomicU32, AtomicU64},
};

use rustix::{
    fd::OwnedFd,
    io::Errno,
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap},
};

/// Words of mapped memory, until it is dropped.
#[derive(Debug)]
pub(super) struct Map {
    words: NonNull<AtomicU64>,
    len: usize,
}

// SAFETY: these are atomic words, which any thread may use, and the mapping belongs to this value
// alone.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// Maps the first words of a file, shared with all processes that map it.
    pub(super) fn of(file: &OwnedFd, len: usize) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the system chooses where, so nothing is replaced; all bytes of a mapping are
        // initialised, and as atomic words any value is fine, whichever process writes it.
        let start = unsafe { mmap(ptr::null_mut(), len * 8, access, MapFlags::SHARED, file, 0)? };
        Ok(Self { words: NonNull::new(start.cast()).ok_or(Errno::NOMEM)?, len })
    }

    /// Zeros of this process's own, which are zeros again in a process that it forks.
    pub(super) fn wiped_on_fork(len: usize) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: as above.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len * 8, access, MapFlags::PRIVATE)? };
        let map = Self { words: NonNull::new(start.cast()).ok_or(Errno::NOMEM)?, len };
        // SAFETY: the mapping is ours, and there is no reference into it yet.
        unsafe { madvise(start, len * 8, Advice::LinuxWipeOnFork)? };
        Ok(map)
    }

    #[inline(always)]
    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is as long as that, begins with a page, and lives as long as `self`.
        // Atomic words may be changed by other threads and processes.
        unsafe { slice::from_raw_parts(self.words.as_ptr(), self.len) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: a reference into it would borrow `self`.
        let _ = unsafe { munmap(self.words.as_ptr().cast(), self.len * 8) };
    }
}

/// The half of a word with its low bits: what can be slept on.
pub(super) fn low_half(word: &AtomicU64) -> &AtomicU32 {
    let half = usize::from(cfg!(target_endian = "big"));
    // SAFETY: it lies within the word and is aligned. To the other half and to the whole word there
    // are atomic accesses only. It is given to the system, which compares it, and to nothing else.
    unsafe { &*ptr::from_ref(word).cast::<AtomicU32>().add(half) }
}
