//! What registers are made of: words whose operations have one total order, with and without
//! read-modify-write.

use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release, SeqCst},
    fence,
};

/// An atomic 64-bit word that is read and written. All accesses to such words have one total order.
pub trait Word {
    /// The most bits that a register may have. More than a word's bits only if double words are as
    /// good as these words.
    const BITS: u32 = u64::BITS;
    /// Reads.
    fn load(&self) -> u64;
    /// Writes.
    fn store(&self, word: u64);
}

/// A word that can also be read and written in one step.
pub trait ReadModifyWrite: Word {
    /// Writes `new` if the word holds `old`; returns the previous value.
    fn compare_and_swap(&self, old: u64, new: u64) -> u64;
    /// Writes; returns the previous value.
    fn swap(&self, new: u64) -> u64;
    /// Adds, wrapping; returns the previous value.
    fn fetch_and_add(&self, add: u64) -> u64;
}

impl Word for AtomicU64 {
    const BITS: u32 = u128::BITS;
    #[inline(always)]
    fn load(&self) -> u64 {
        AtomicU64::load(self, SeqCst)
    }
    #[inline(always)]
    fn store(&self, word: u64) {
        AtomicU64::store(self, word, SeqCst);
    }
}

impl ReadModifyWrite for AtomicU64 {
    #[inline(always)]
    fn compare_and_swap(&self, old: u64, new: u64) -> u64 {
        match self.compare_exchange(old, new, SeqCst, SeqCst) {
            Ok(held) | Err(held) => held,
        }
    }
    #[inline(always)]
    fn swap(&self, new: u64) -> u64 {
        AtomicU64::swap(self, new, SeqCst)
    }
    #[inline(always)]
    fn fetch_and_add(&self, add: u64) -> u64 {
        self.fetch_add(add, SeqCst)
    }
}

/// A word that is loaded and stored and nothing else. For memory on which a read-modify-write
/// instruction is unwanted or missing: a device, another machine's memory behind a bridge.
///
/// A sequentially consistent store is such an instruction on x86-64, `xchg`. So stores are releases
/// here, loads are acquires, and a sequentially consistent fence follows each of them. A fence
/// touches no shared memory. Fences have one total order, and a fence lies between any two accesses
/// of a process. So all accesses have one total order, too. `tests/loom.rs` runs algorithms on
/// loom's words with these very fences.
///
/// There are no double words beside them, because double words are written by compare-and-swap.
///
/// Algorithms that need more than reads and writes do not compile with it:
///
/// ```compile_fail,E0277
/// use doorway_core::{Exclusion, algorithms::mutex::Mcs, native::{Fenced, Native, Spin}};
/// fn runs<A: Exclusion<Native<'static, Spin, Fenced>>>() {}
/// runs::<Mcs>();
/// ```
///
/// ```
/// use doorway_core::{Exclusion, algorithms::mutex::Bakery, native::{Fenced, Native, Spin}};
/// fn runs<A: Exclusion<Native<'static, Spin, Fenced>>>() {}
/// runs::<Bakery>();
/// ```
#[derive(Default, Debug)]
#[repr(transparent)]
pub struct Fenced(AtomicU64);

impl From<u64> for Fenced {
    fn from(word: u64) -> Self {
        Self(AtomicU64::new(word))
    }
}

impl Word for Fenced {
    #[inline(always)]
    fn load(&self) -> u64 {
        let word = self.0.load(Acquire);
        fence(SeqCst);
        word
    }
    #[inline(always)]
    fn store(&self, word: u64) {
        self.0.store(word, Release);
        fence(SeqCst);
    }
}
