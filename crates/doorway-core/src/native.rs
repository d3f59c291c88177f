//! The native memory: registers are words of an arena, accesses are single atomic instructions.
//!
//! # Ordering
//!
//! Every algorithm here is proved for registers whose accesses take effect one after the other. The
//! doorways rely on a store followed by a load of *another* register
//! (`Doorway[p] := true; read Ticket[i]`). This is the one pair that release and acquire do not
//! keep in order. So every access is sequentially consistent ([`AtomicU64`]'s [`Word`]): on x86-64
//! a load is a plain `mov` and a store an `xchg`. Weaker orders would need an argument for each
//! algorithm, and no algorithm has one. [`Fenced`] words have the same order by fences, and are
//! only ever loaded and stored.
//!
//! Values of more than 64 bits live in double words ([`AtomicU128`]) and use the processor's
//! 128-bit compare-and-swap.
//!
//! [`Word`] is a trait so that the same memory also runs on loom's atomics (see `tests/loom.rs`).

use alloc::format;
use core::{
    convert::Infallible,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};

mod instance;
#[cfg(test)]
mod tests;
mod word;

pub use instance::{Arena, Done, Instance, Keep, Own, Request, room};
pub use portable_atomic::AtomicU128;
pub use word::{Fenced, ReadModifyWrite, Word};

use crate::{
    Coins, CompareAndSwap, FetchAndAdd, Layout, Local, Memory, Register, Registers, Size, Swap,
    Transactions, Unfit, Value, engines::named_lock::Mortal, layout::is_wide,
};

/// How a waiting process passes the time, and whether it goes on.
pub trait Relax {
    /// Why a wait is given up; [`Infallible`] if it never is.
    type Halt;
    /// Passes the time after each unsuccessful look; `round` counts them from 0.
    ///
    /// # Errors
    /// To give up. The caller may then [`abandon`](crate::Exclusion::abandon) its place.
    fn relax(&mut self, round: u32) -> Result<(), Self::Halt>;
}

/// Spins. For machines with a core for every process, and for `no_std`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Spin;

impl Relax for Spin {
    type Halt = Infallible;
    #[inline(always)]
    fn relax(&mut self, _: u32) -> Result<(), Infallible> {
        core::hint::spin_loop();
        Ok(())
    }
}

/// Spins briefly with growing pauses, then yields to the operating system. Right wherever there may
/// be fewer cores than processes, because the awaited process may need this very core.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Default, Debug)]
pub struct Backoff;

#[cfg(feature = "std")]
impl Backoff {
    /// Rounds that spin: 1 + 2 + 4 + … pauses, well under a microsecond together.
    const SPINS: u32 = 5;

    /// Out of line: every wait of an algorithm calls it, and no wait is faster with this code
    /// inside.
    #[cold]
    #[inline(never)]
    fn pause(round: u32) {
        if round < Self::SPINS {
            for _ in 0..1 << round {
                core::hint::spin_loop();
            }
        } else {
            std::thread::yield_now();
        }
    }
}

#[cfg(feature = "std")]
impl Relax for Backoff {
    type Halt = Infallible;
    #[inline(always)]
    fn relax(&mut self, round: u32) -> Result<(), Infallible> {
        Self::pause(round);
        Ok(())
    }
}

/// One process's view of shared words.
#[derive(Debug)]
pub struct Native<'a, R, W = AtomicU64> {
    words: &'a [W],
    doubles: &'a [AtomicU128],
    relax: R,
    random: u64,
}

impl<'a, R: Relax, W: Word> Native<'a, R, W> {
    /// Returns a view of the words of an arena; `seed` feeds [`Coins::choose`].
    pub fn new(words: &'a [W], relax: R, seed: u64) -> Self {
        Self { words, doubles: &[], relax, random: seed }
    }

    /// Returns the view with the arena's double words added, for layouts that need them.
    #[must_use]
    pub fn with_doubles(mut self, doubles: &'a [AtomicU128]) -> Self {
        self.doubles = doubles;
        self
    }

    /// SplitMix64: small, fast, and good enough for coins that no adversary inside the process
    /// predicts.
    #[inline]
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns how this view waits.
    pub fn relax_mut(&mut self) -> &mut R {
        &mut self.relax
    }

    /// Returns what the register's word holds.
    #[inline(always)]
    fn load<T: Value>(&self, register: Register<T>) -> u128 {
        if is_wide::<T>(register.format()) {
            self.doubles[register.index()].load(SeqCst)
        } else {
            u128::from(self.words[register.index()].load())
        }
    }
}

impl<R: Relax, W: ReadModifyWrite> Native<'_, R, W> {
    /// Writes `new` if the register's word is `old`; returns the previous word.
    #[inline(always)]
    fn exchange<T: Value>(&self, register: Register<T>, old: u128, new: u128) -> u128 {
        if is_wide::<T>(register.format()) {
            match self.doubles[register.index()].compare_exchange(old, new, SeqCst, SeqCst) {
                Ok(held) | Err(held) => held,
            }
        } else {
            u128::from(self.words[register.index()].compare_and_swap(old as u64, new as u64))
        }
    }
}

impl<R: Relax, W: Word> Memory for Native<'_, R, W> {
    type Halt = R::Halt;

    #[inline(always)]
    fn relax(&mut self, round: u32) -> Result<(), R::Halt> {
        self.relax.relax(round)
    }
}

impl<R: Relax, W: Word> Registers for Native<'_, R, W> {
    #[inline(always)]
    fn read<T: Value>(&mut self, register: Register<T>) -> Result<T, R::Halt> {
        Ok(T::from_word(self.load(register), register.format()))
    }
    #[inline(always)]
    fn write<T: Value>(&mut self, register: Register<T>, value: T) -> Result<(), R::Halt> {
        if is_wide::<T>(register.format()) {
            self.doubles[register.index()].store(value.word(), SeqCst);
        } else {
            self.words[register.index()].store(value.word() as u64);
        }
        Ok(())
    }
}

impl<R: Relax, W: ReadModifyWrite> CompareAndSwap for Native<'_, R, W> {
    #[inline(always)]
    fn compare_and_swap<T: Value>(
        &mut self,
        register: Register<T>,
        old: T,
        new: T,
    ) -> Result<T, R::Halt> {
        Ok(T::from_word(self.exchange(register, old.word(), new.word()), register.format()))
    }
}

impl<R: Relax, W: Word> Coins for Native<'_, R, W> {
    #[inline]
    fn choose(&mut self, outcomes: u32) -> Result<u32, R::Halt> {
        let high = self.random() >> 32;
        Ok(((high * u64::from(outcomes)) >> 32) as u32)
    }

    #[inline]
    fn toss(&mut self, most: u32) -> Result<u32, R::Halt> {
        Ok(self.random().trailing_ones().min(most))
    }
}

/// A thread dies only together with all other threads of its process, so no death is ever found.
impl<R: Relax, W: Word> Mortal for Native<'_, R, W> {}

impl<R: Relax, W: ReadModifyWrite> Swap for Native<'_, R, W> {
    #[inline(always)]
    fn swap<T: Value>(&mut self, register: Register<T>, new: T) -> Result<T, R::Halt> {
        let held = if is_wide::<T>(register.format()) {
            self.doubles[register.index()].swap(new.word(), SeqCst)
        } else {
            u128::from(self.words[register.index()].swap(new.word() as u64))
        };
        Ok(T::from_word(held, register.format()))
    }
}

impl<R: Relax, W: ReadModifyWrite> FetchAndAdd for Native<'_, R, W> {
    #[inline(always)]
    fn fetch_and_add(&mut self, register: Register<u64>, add: u64) -> Result<u64, R::Halt> {
        Ok(self.words[register.index()].fetch_and_add(add))
    }
}

impl<R: Relax, W: ReadModifyWrite> Transactions for Native<'_, R, W> {
    /// A compare-and-swap loop on the word: lock-free, and one step to every other process.
    #[inline]
    fn transact<T: Value, A: Local, F>(
        &mut self,
        variable: Register<T>,
        change: F,
    ) -> Result<A, R::Halt>
    where
        F: Fn(T) -> (T, A) + Sync,
    {
        let mut held = self.load(variable);
        loop {
            let (next, answer) = change(T::from_word(held, variable.format()));
            let next = next.word();
            // A transaction that changes nothing is a read, and its read has taken effect.
            if next == held {
                return Ok(answer);
            }
            let seen = self.exchange(variable, held, next);
            if seen == held {
                return Ok(answer);
            }
            held = seen;
        }
    }
}

/// Sets the words of an arena to a layout's initial values.
///
/// The words may come from anywhere: a mapped file, a device. The caller makes sure that no process
/// uses them yet.
///
/// # Panics If there are fewer than [`Layout::words`], or fewer doubles than [`Layout::doubles`].
pub fn initialise<W: Word>(words: &[W], doubles: &[AtomicU128], layout: &Layout) {
    for cell in layout.cells() {
        if cell.is_wide() {
            doubles[cell.index].store(cell.init.word(), SeqCst);
        } else {
            words[cell.index].store(cell.init.word() as u64);
        }
    }
}

/// Checks whether this machine can run what a layout requests.
///
/// # Errors
/// When a register has more bits than any machine word, or double words are not lock-free here.
pub fn fits(name: &str, size: Size, layout: &Layout) -> Result<(), Unfit> {
    let Some(widest) = layout.cells().max_by_key(|cell| cell.bits) else { return Ok(()) };
    let what = || {
        format!(
            "{name} with n = {}, k = {}: {} takes {} bits",
            size.n,
            size.k,
            widest.name(),
            widest.bits
        )
    };
    if widest.bits > u128::BITS {
        return Err(Unfit(format!(
            "{}, and no machine word has more than 128; the lab can run it",
            what()
        )));
    }
    // `portable-atomic` would put a lock around an operation that the processor lacks, and a crash
    // inside that lock would block all processes.
    if widest.is_wide() && !AtomicU128::is_lock_free() {
        return Err(Unfit(format!(
            "{}, and this processor has no 128-bit compare-and-swap",
            what()
        )));
    }
    Ok(())
}
