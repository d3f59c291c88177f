//! The native memory: registers are words of an arena, accesses are single atomic instructions.
//!
//! # Ordering
//!
//! Every algorithm here is proved for registers that take effect one after the other. The doorways stand on a store
//! followed by a load of *another* register (`Doorway[p] := true; read Ticket[i]`), the one pair that release and acquire
//! do not keep in order. So every access is sequentially consistent ([`AtomicU64`]'s [`Word`]): on x86-64 a load is a
//! plain `mov` and a store an `xchg`. Weaker orders have to be argued for each algorithm apart, and none is.
//!
//! [`Word`] is a trait so that the same memory also runs on loom's atomics (see `tests/loom.rs`).

use alloc::{boxed::Box, vec::Vec};
use core::{
    convert::Infallible,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};

use crate::{
    Algorithm, CompareAndSwap, Exclusion, FetchAndAdd, Layout, Local, Memory, Register, Registers, Size, Transactions,
    Unfit, Value, layout::LINE,
};

/// An atomic 64-bit word whose operations have one total order.
pub trait Word {
    /// Reads.
    fn load(&self) -> u64;
    /// Writes.
    fn store(&self, word: u64);
    /// Writes `new` if it holds `old`; gives back what it held.
    fn compare_and_swap(&self, old: u64, new: u64) -> u64;
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
    relax: R,
    random: u64,
}

impl<'a, R: Relax, W: Word> Native<'a, R, W> {
    /// A view of words that hold an arena; `seed` feeds [`Memory::choose`].
    pub fn new(words: &'a [W], relax: R, seed: u64) -> Self {
        Self { words, relax, random: seed }
    }

    /// How this view waits.
    pub fn relax_mut(&mut self) -> &mut R {
        &mut self.relax
    }
}

impl<R: Relax, W: Word> Memory for Native<'_, R, W> {
    type Halt = R::Halt;

    /// SplitMix64: small, fast, and good enough for coins that no adversary inside the process predicts.
    #[inline]
    fn choose(&mut self, outcomes: u32) -> Result<u32, R::Halt> {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let high = (z ^ (z >> 31)) >> 32;
        Ok(((high * u64::from(outcomes)) >> 32) as u32)
    }

    #[inline(always)]
    fn relax(&mut self, round: u32) -> Result<(), R::Halt> {
        self.relax.relax(round)
    }
}

impl<R: Relax, W: Word> Registers for Native<'_, R, W> {
    #[inline(always)]
    fn read<T: Value>(&mut self, register: Register<T>) -> Result<T, R::Halt> {
        Ok(T::from_word(self.words[register.index()].load()))
    }
    #[inline(always)]
    fn write<T: Value>(&mut self, register: Register<T>, value: T) -> Result<(), R::Halt> {
        self.words[register.index()].store(value.word());
        Ok(())
    }
}

impl<R: Relax, W: Word> CompareAndSwap for Native<'_, R, W> {
    #[inline(always)]
    fn compare_and_swap<T: Value>(&mut self, register: Register<T>, old: T, new: T) -> Result<T, R::Halt> {
        Ok(T::from_word(self.words[register.index()].compare_and_swap(old.word(), new.word())))
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
        let word = &self.words[variable.index()];
        let mut held = word.load();
        loop {
            let (next, answer) = change(T::from_word(held));
            let seen = word.compare_and_swap(held, next.word());
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
/// If there are fewer than [`Layout::words`].
pub fn initialise<W: Word>(words: &[W], layout: &Layout) {
    for cell in layout.cells() {
        words[cell.index].store(cell.init.word());
    }
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
    words: Box<[AtomicU64]>,
    /// The first word that starts a cache line pair, so that segments do not share one.
    first: usize,
}

impl<A: Algorithm> Instance<A> {
    /// Builds the algorithm and its arena.
    ///
    /// # Errors
    /// When the algorithm cannot serve that size.
    pub fn new(size: Size) -> Result<Self, Unfit> {
        let (algorithm, layout) = Layout::build(size.n, None, |layout| A::new(layout, size))?;
        let words: Vec<AtomicU64> = (0..layout.words() + LINE - 1).map(|_| AtomicU64::new(0)).collect();
        let words = words.into_boxed_slice();
        let misplaced = words.as_ptr() as usize / size_of::<AtomicU64>() % LINE;
        let first = (LINE - misplaced) % LINE;
        initialise(&words[first..], &layout);
        Ok(Self { algorithm, words, first })
    }

    /// The algorithm, whose sections run on a [`view`](Self::view).
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// A process's view of the arena.
    pub fn view<R: Relax>(&self, relax: R, seed: u64) -> Native<'_, R> {
        Native::new(&self.words[self.first..], relax, seed)
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
mod tests {
    use super::*;
    use crate::{
        Home,
        mutex::{BlackWhiteBakery, YangAnderson},
    };

    fn starts_a_line<A: Algorithm>(n: usize) {
        let lock = Instance::<A>::new(Size::mutex(n)).expect("two processes are enough");
        let first = lock.words[lock.first..].as_ptr() as usize;
        assert_eq!(first % (LINE * size_of::<AtomicU64>()), 0, "{} n = {n}", A::NAME);
    }

    /// Lines of the arena are lines of the machine, wherever the allocator puts it.
    #[test]
    fn an_instance_starts_a_line() {
        for n in 2..40 {
            starts_a_line::<BlackWhiteBakery>(n);
            starts_a_line::<YangAnderson>(n);
        }
    }

    #[test]
    fn choices_are_in_range_and_all_come_up() {
        let mut m = Native::<_>::new(&[], Spin, 1);
        let mut seen = [0; 5];
        for _ in 0..1_000 {
            let Ok(outcome) = m.choose(5);
            seen[outcome as usize] += 1;
        }
        assert!(seen.iter().all(|&times| times > 100), "{seen:?}");
    }

    #[test]
    fn primitives_do_what_they_say() {
        let words = [AtomicU64::new(0)];
        let built = Layout::build(1, None, |layout| Ok(layout.register("R", Home::Process(0), 3_u64)));
        let Ok::<_, Infallible>((register, layout)) = built;
        initialise(&words, &layout);
        let mut m = Native::new(&words, Spin, 0);
        assert_eq!(m.read(register), Ok(3));
        assert_eq!(m.fetch_and_add(register, 4), Ok(3));
        assert_eq!(m.compare_and_swap(register, 3, 9), Ok(7));
        assert_eq!(m.compare_and_swap(register, 7, 9), Ok(7));
        assert_eq!(m.transact(register, |v| (v * 2, v)), Ok(9));
        assert_eq!(m.read(register), Ok(18));
        assert_eq!(m.write(register, 19), Ok(()));
        assert!(m.test(register, |v| v == 19).is_ok_and(|yes| yes));
    }
}
