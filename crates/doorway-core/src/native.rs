//! The native memory: registers are words of an arena, accesses are single atomic instructions.
//!
//! # Ordering
//!
//! Every algorithm here is proved for registers that take effect one after the other. The doorways stand on a store
//! followed by a load of *another* register (`Doorway[p] := true; read Ticket[i]`), the one pair that release and acquire
//! do not keep in order. So every access is sequentially consistent ([`AtomicU64`]'s [`Word`]): on x86-64 a load is a
//! plain `mov` and a store an `xchg`. Weaker orders have to be argued for each algorithm apart, and none is.
//!
//! Values of more than 64 bits are held in double words ([`AtomicU128`]), by the processor's 128-bit compare-and-swap.
//!
//! [`Word`] is a trait so that the same memory also runs on loom's atomics (see `tests/loom.rs`).

use alloc::{boxed::Box, format, vec::Vec};
use core::{
    convert::Infallible,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};

pub use portable_atomic::AtomicU128;

use crate::{
    Algorithm, CompareAndSwap, Exclusion, FetchAndAdd, Layout, Local, Memory, Register, Registers, Size, Swap,
    Transactions, Unfit, Value,
    layout::{LINE, is_wide},
};

/// An atomic 64-bit word whose operations have one total order.
pub trait Word {
    /// Reads.
    fn load(&self) -> u64;
    /// Writes.
    fn store(&self, word: u64);
    /// Writes `new` if it holds `old`; gives back what it held.
    fn compare_and_swap(&self, old: u64, new: u64) -> u64;
    /// Writes; gives back what it held.
    fn swap(&self, new: u64) -> u64;
    /// Adds, wrapping; gives back what it held.
    fn fetch_and_add(&self, add: u64) -> u64;
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn load(&self) -> u64 {
        AtomicU64::load(self, SeqCst)
    }
    #[inline(always)]
    fn store(&self, word: u64) {
        AtomicU64::store(self, word, SeqCst);
    }
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

/// How to pass the time while waiting, and whether to go on.
pub trait Relax {
    /// Why a wait is given up; [`Infallible`] if it never is.
    type Halt;
    /// Called after each unsuccessful look; `round` counts them from 0.
    ///
    /// # Errors
    /// To give up. The caller may then [`abandon`](Exclusion::abandon) its place.
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

/// Spins briefly with growing pauses, then yields to the operating system: right wherever there may be fewer cores than
/// processes, because the one waited for may need this very core.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Default, Debug)]
pub struct Backoff;

#[cfg(feature = "std")]
impl Backoff {
    /// Rounds that spin, 1 + 2 + 4 + … pauses, well under a microsecond together.
    const SPINS: u32 = 5;

    /// Out of line: it is called from every wait of an algorithm, and none of them is the better for having it inside.
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
    /// A view of words that hold an arena; `seed` feeds [`Memory::choose`].
    pub fn new(words: &'a [W], relax: R, seed: u64) -> Self {
        Self { words, doubles: &[], relax, random: seed }
    }

    /// The same view with the double words of the arena, for layouts that ask for some.
    #[must_use]
    pub fn with_doubles(mut self, doubles: &'a [AtomicU128]) -> Self {
        self.doubles = doubles;
        self
    }

    /// SplitMix64: small, fast, and good enough for coins that no adversary inside the process predicts.
    #[inline]
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// How this view waits.
    pub fn relax_mut(&mut self) -> &mut R {
        &mut self.relax
    }

    /// What the register's word holds.
    #[inline(always)]
    fn load<T: Value>(&self, register: Register<T>) -> u128 {
        if is_wide::<T>(register.format()) {
            self.doubles[register.index()].load(SeqCst)
        } else {
            u128::from(self.words[register.index()].load())
        }
    }

    /// Writes `new` if the register's word is `old`; gives back what it was.
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

    #[inline]
    fn choose(&mut self, outcomes: u32) -> Result<u32, R::Halt> {
        let high = self.random() >> 32;
        Ok(((high * u64::from(outcomes)) >> 32) as u32)
    }

    #[inline]
    fn toss(&mut self, most: u32) -> Result<u32, R::Halt> {
        Ok(self.random().trailing_ones().min(most))
    }

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

impl<R: Relax, W: Word> CompareAndSwap for Native<'_, R, W> {
    #[inline(always)]
    fn compare_and_swap<T: Value>(&mut self, register: Register<T>, old: T, new: T) -> Result<T, R::Halt> {
        Ok(T::from_word(self.exchange(register, old.word(), new.word()), register.format()))
    }
}

impl<R: Relax, W: Word> Swap for Native<'_, R, W> {
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

impl<R: Relax, W: Word> FetchAndAdd for Native<'_, R, W> {
    #[inline(always)]
    fn fetch_and_add(&mut self, register: Register<u64>, add: u64) -> Result<u64, R::Halt> {
        Ok(self.words[register.index()].fetch_and_add(add))
    }
}

impl<R: Relax, W: Word> Transactions for Native<'_, R, W> {
    /// A compare-and-swap loop on the word: lock-free, and one step to everybody else.
    #[inline]
    fn transact<T: Value, A: Local, F>(&mut self, variable: Register<T>, change: F) -> Result<A, R::Halt>
    where
        F: Fn(T) -> (T, A),
    {
        let mut held = self.load(variable);
        loop {
            let (next, answer) = change(T::from_word(held, variable.format()));
            let next = next.word();
            // A transaction that changes nothing is a read, and was done when it read.
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
/// The words may be anybody's: a mapped file, a device. Whoever calls this makes sure that nobody uses them yet.
///
/// # Panics
/// If there are fewer than [`Layout::words`], or fewer doubles than [`Layout::doubles`].
pub fn initialise<W: Word>(words: &[W], doubles: &[AtomicU128], layout: &Layout) {
    for cell in layout.cells() {
        if cell.is_wide() {
            doubles[cell.index].store(cell.init.word(), SeqCst);
        } else {
            words[cell.index].store(cell.init.word() as u64);
        }
    }
}

/// Whether this machine can run what a layout asks for.
///
/// # Errors
/// When a register has more bits than any machine word, or double words are not lock-free here.
pub fn fits(name: &str, size: Size, layout: &Layout) -> Result<(), Unfit> {
    let Some(widest) = layout.cells().max_by_key(|cell| cell.bits) else { return Ok(()) };
    let what = || format!("{name} with n = {}, k = {}: {} takes {} bits", size.n, size.k, widest.name(), widest.bits);
    if widest.bits > u128::BITS {
        return Err(Unfit(format!("{}, and no machine word has more than 128; the lab can run it", what())));
    }
    // `portable-atomic` would put a lock around what the processor cannot do, and a crash inside would block everybody.
    if widest.is_wide() && !AtomicU128::is_lock_free() {
        return Err(Unfit(format!("{}, and this processor has no 128-bit compare-and-swap", what())));
    }
    Ok(())
}

/// What a process asks `A` for on arrival, natively.
pub type Request<'a, A, R> = <A as Exclusion<Native<'a, R>>>::Request;

/// What a process keeps from one passage through `A` to the next, natively.
pub type Keep<'a, A, R> = <A as Exclusion<Native<'a, R>>>::Keep;

/// An algorithm together with an arena of its own.
///
/// ```
/// use doorway_core::{Exclusion, Size, mutex::Bakery, native::{Instance, Native, Spin}};
/// let lock = Instance::<Bakery>::new(Size::mutex(2))?;
/// let bakery = lock.algorithm();
/// let mut m = lock.view(Spin, 0);
/// // Nothing but the memory says what `keep` is for, so this one call names it.
/// let keep = Exclusion::<Native<Spin>>::keep(bakery, 0);
/// let Ok(pass) = bakery.doorway(&mut m, 0, (), keep);
/// let Ok(pass) = bakery.waiting(&mut m, 0, pass);
/// // … in the critical section …
/// let Ok(_keep) = bakery.exit(&mut m, 0, pass);
/// # Ok::<(), doorway_core::Unfit>(())
/// ```
#[derive(Debug)]
pub struct Instance<A> {
    algorithm: A,
    words: Lines<AtomicU64>,
    doubles: Lines<AtomicU128>,
}

/// Words of which the first starts a cache line pair, so that homes do not share one.
#[derive(Debug)]
struct Lines<W> {
    words: Box<[W]>,
    first: usize,
}

impl<W> Lines<W> {
    fn new(len: usize, zero: impl Fn() -> W) -> Self {
        let line = LINE * size_of::<u64>() / size_of::<W>();
        let words: Vec<W> = (0..if len == 0 { 0 } else { len + line - 1 }).map(|_| zero()).collect();
        let words = words.into_boxed_slice();
        let misplaced = words.as_ptr() as usize / size_of::<W>() % line;
        let first = if len == 0 { 0 } else { (line - misplaced) % line };
        Self { words, first }
    }

    fn get(&self) -> &[W] {
        &self.words[self.first..]
    }
}

impl<A: Algorithm> Instance<A> {
    /// Builds the algorithm and its arena.
    ///
    /// # Errors
    /// When the algorithm cannot serve that size, or its values do not fit this machine's words.
    pub fn new(size: Size) -> Result<Self, Unfit> {
        let (algorithm, layout) = Layout::build(size.n, None, |layout| A::new(layout, size))?;
        fits(A::NAME, size, &layout)?;
        let words = Lines::new(layout.words(), || AtomicU64::new(0));
        let doubles = Lines::new(layout.doubles(), || AtomicU128::new(0));
        initialise(words.get(), doubles.get(), &layout);
        Ok(Self { algorithm, words, doubles })
    }

    /// The algorithm, whose sections run on a [`view`](Self::view).
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// A process's view of the arena.
    pub fn view<R: Relax>(&self, relax: R, seed: u64) -> Native<'_, R> {
        Native::new(self.words.get(), relax, seed).with_doubles(self.doubles.get())
    }
}

impl<A: Algorithm> Instance<A> {
    /// One whole passage of process `p`, with `inside` in the critical section.
    ///
    /// # Errors
    /// When the wait is given up, in which case `inside` has not run and the place is **not** yet abandoned.
    #[inline]
    pub fn passage<'a, R: Relax, T>(
        &'a self,
        m: &mut Native<'a, R>,
        p: usize,
        request: Request<'a, A, R>,
        keep: Keep<'a, A, R>,
        inside: impl FnOnce() -> T,
    ) -> Result<(Keep<'a, A, R>, T), R::Halt>
    where
        A: Exclusion<Native<'a, R>>,
    {
        let pass = self.algorithm.doorway(m, p, request, keep)?;
        let pass = self.algorithm.waiting(m, p, pass)?;
        let done = inside();
        Ok((self.algorithm.exit(m, p, pass)?, done))
    }
}

#[cfg(test)]
mod tests;
