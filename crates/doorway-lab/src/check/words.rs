//! Zeroed words straight from the system, in huge pages where possible, or in a file where memory
//! does not suffice.
//!
//! The table of states is read at random places and grows all the time. With small pages most reads
//! miss the translation cache too, and workers that take page faults wait for each other in the
//! kernel.

use std::{
    fs::File,
    io,
    ops::{Deref, DerefMut},
    sync::{Arc, atomic::AtomicU64},
};

use memmap2::{MmapMut, MmapOptions};

use super::room::{Lease, Room};

const WORD: usize = size_of::<u64>();

/// Words that many threads read and write.
pub(super) struct Words {
    map: MmapMut,
    _lease: Lease,
}

impl Words {
    /// Makes `count` words, all zero.
    pub(super) fn new(count: usize, room: &Arc<Room>) -> io::Result<Self> {
        let bytes = count * WORD;
        if let Some(lease) = room.take(bytes as u64)
            && let Ok(map) = MmapMut::map_anon(bytes)
        {
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage); // only advice: without it, the same but slower
            return Ok(Self { map, _lease: lease });
        }
        let (file, lease) = room.file(bytes as u64)?;
        let map = mapped(&file, bytes)?;
        #[cfg(unix)]
        let _ = map.advise(memmap2::Advice::Random); // reading ahead would only fill the memory
        Ok(Self { map, _lease: lease })
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the map is memory of our own (anonymous, or of a file that nothing else can
        // open), page-aligned, at least this long and unmapped only when `self` is dropped. It is
        // zero at first, and any bytes are an `AtomicU64`. Nothing has another view of it: `map` is
        // private and touched here alone.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.map.len() / WORD) }
    }
}

/// Words in a file that grow at the end; one thread at a time writes them.
pub(super) struct Filed {
    map: MmapMut,
    file: Option<File>,
    lease: Lease,
}

impl Filed {
    /// Makes `count` words, all zero.
    pub(super) fn new(count: usize, room: &Arc<Room>) -> io::Result<Self> {
        let (file, lease) = room.file((count * WORD) as u64)?;
        let map = mapped(&file, count * WORD)?;
        Ok(Self { map, file: Some(file), lease })
    }

    /// Grows the file to `count` words in all.
    pub(super) fn grow(&mut self, count: usize) -> io::Result<()> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        self.lease.extend_file(file, (count * WORD) as u64)?;
        self.map = mapped(file, count * WORD)?;
        Ok(())
    }

    /// Gives the file descriptor back: the file will not grow any more.
    pub(super) fn seal(&mut self) {
        self.file = None;
    }
}

impl Deref for Filed {
    type Target = [u64];

    #[inline(always)]
    fn deref(&self) -> &[u64] {
        // SAFETY: the map is memory of a file that nothing else can open, page-aligned, at least
        // this long, and unmapped or mapped anew only by what borrows `self` mutably. Any bytes are
        // a `u64`.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.map.len() / WORD) }
    }
}

impl DerefMut for Filed {
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above, and `self` is borrowed mutably for as long as the slice lives.
        unsafe {
            std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.map.len() / WORD)
        }
    }
}

/// Maps a file of the room.
fn mapped(file: &File, bytes: usize) -> io::Result<MmapMut> {
    // SAFETY: the file has had no name since before anything was in it, so that no other process
    // can change or cut it, and its blocks are allocated. A longer map replaces one that is
    // dropped.
    unsafe { MmapOptions::new().len(bytes).map_mut(file) }
}
