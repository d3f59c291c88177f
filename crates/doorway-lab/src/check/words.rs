//! Zeroed words straight from the system, in huge pages where there are any.
//!
//! The table of states is read at random places and grows all the time: with small pages most reads miss the translation
//! cache too, and workers that take page faults wait for each other in the kernel.

use std::{ops::Deref, sync::atomic::AtomicU64};

use memmap2::MmapMut;

/// Words that many threads read and write.
pub(super) struct Words {
    map: MmapMut,
}

impl Words {
    /// `count` words, all zero.
    pub(super) fn new(count: usize) -> Self {
        let map = MmapMut::map_anon(count * size_of::<AtomicU64>()).expect("there is memory for the states");
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage); // only advice: without it, the same but slower
        Self { map }
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the map is anonymous memory of our own, page-aligned, at least this long and unmapped only when `self`
        // is dropped. It is zero at first, and any bytes are an `AtomicU64`. Nobody has another view of it: `map` is
        // private and touched here alone.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.map.len() / size_of::<AtomicU64>()) }
    }
}
