//! An algorithm together with its arena: an arena of its own, or memory that the caller provides.

use alloc::{boxed::Box, format, vec::Vec};
use core::sync::atomic::AtomicU64;

use super::{AtomicU128, Native, Relax, Word, fits, initialise};
use crate::{Algorithm, Exclusion, Layout, Size, Unfit, layout::LINE};

/// What a process requests of `A` on arrival, natively.
pub type Request<'a, A, R, W = AtomicU64> = <A as Exclusion<Native<'a, R, W>>>::Request;

/// What a process keeps from one passage through `A` to the next, natively.
pub type Keep<'a, A, R, W = AtomicU64> = <A as Exclusion<Native<'a, R, W>>>::Keep;

/// The result of a whole passage: what the process keeps, and what the critical section returned.
pub type Done<'a, A, R, W, T> = (Keep<'a, A, R, W>, T);

/// Where the registers of an instance are.
///
/// It must return the same words each time. An arena that starts at a line of the machine keeps
/// registers on lines of their own. Mapped files do, because they start at a page.
pub trait Arena {
    /// The type of the words.
    type Word: Word;
    /// Returns the words.
    fn words(&self) -> &[Self::Word];
    /// Returns the double words; none by default.
    fn doubles(&self) -> &[AtomicU128] {
        &[]
    }
}

impl<W: Word> Arena for &[W] {
    type Word = W;
    fn words(&self) -> &[W] {
        self
    }
}

/// An arena that the instance owns.
#[derive(Debug)]
pub struct Own<W = AtomicU64> {
    words: Lines<W>,
    doubles: Lines<AtomicU128>,
}

impl<W: Word> Arena for Own<W> {
    type Word = W;
    fn words(&self) -> &[W] {
        self.words.get()
    }
    fn doubles(&self) -> &[AtomicU128] {
        self.doubles.get()
    }
}

/// Words of which the first starts a pair of cache lines, so that homes do not share a line.
#[derive(Debug)]
struct Lines<W> {
    words: Box<[W]>,
    first: usize,
}

impl<W> Lines<W> {
    fn new(len: usize, zero: impl Fn() -> W) -> Self {
        let line = LINE * size_of::<u64>() / size_of::<W>();
        let words: Vec<W> =
            (0..if len == 0 { 0 } else { len + line - 1 }).map(|_| zero()).collect();
        let words = words.into_boxed_slice();
        let misplaced = words.as_ptr() as usize / size_of::<W>() % line;
        let first = if len == 0 { 0 } else { (line - misplaced) % line };
        Self { words, first }
    }

    fn get(&self) -> &[W] {
        &self.words[self.first..]
    }
}

/// An algorithm together with an arena: its own, unless the caller provides one.
///
/// ```
/// use doorway_core::{Exclusion, Size, algorithms::mutex::Bakery, native::{Instance, Native, Spin}};
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
pub struct Instance<A, S = Own> {
    algorithm: A,
    arena: S,
}

/// Builds the algorithm and its layout, if this machine can run it.
fn build<A: Algorithm>(size: Size) -> Result<(A, Layout), Unfit> {
    let (algorithm, layout) = A::laid_out(size, None)?;
    fits(A::NAME, size, &layout)?;
    Ok((algorithm, layout))
}

/// Returns how many words an arena for `A` needs, and how many double words in addition.
///
/// # Errors
/// When the algorithm cannot serve that size, or its values do not fit this machine's words.
pub fn room<A: Algorithm>(size: Size) -> Result<(usize, usize), Unfit> {
    let (_, layout) = build::<A>(size)?;
    Ok((layout.words(), layout.doubles()))
}

impl<A: Algorithm, W: Word + From<u64>> Instance<A, Own<W>> {
    /// Builds the algorithm and its arena.
    ///
    /// # Errors
    /// When the algorithm cannot serve that size, or its values do not fit this machine's words.
    pub fn new(size: Size) -> Result<Self, Unfit> {
        let (words, doubles) = room::<A>(size)?;
        let words = Lines::new(words, || W::from(0));
        let doubles = Lines::new(doubles, || AtomicU128::new(0));
        Self::lay_out(size, Own { words, doubles })
    }
}

impl<A: Algorithm, S: Arena> Instance<A, S> {
    /// Builds the algorithm on an arena that the caller provides, and sets it to the initial
    /// values. The caller makes sure that no process uses the arena yet.
    ///
    /// # Errors
    /// When the algorithm cannot serve that size, or its values do not fit the arena.
    pub fn lay_out(size: Size, arena: S) -> Result<Self, Unfit> {
        Self::on(size, arena, initialise)
    }

    /// Builds the algorithm on an arena that has been [laid out](Self::lay_out) for the same
    /// algorithm and size.
    ///
    /// # Errors
    /// When the algorithm cannot serve that size, or its values do not fit the arena.
    pub fn join(size: Size, arena: S) -> Result<Self, Unfit> {
        Self::on(size, arena, |_, _, _| ())
    }

    fn on(
        size: Size,
        arena: S,
        begin: impl FnOnce(&[S::Word], &[AtomicU128], &Layout),
    ) -> Result<Self, Unfit> {
        let (algorithm, layout) = build::<A>(size)?;
        let (words, doubles) = (arena.words(), arena.doubles());
        if layout.doubles() > 0 && S::Word::BITS < u128::BITS {
            let name = A::NAME;
            return Err(Unfit(format!(
                "{name} with {size} takes double words, which are written by compare-and-swap"
            )));
        }
        for (what, wanted, there) in [
            ("words", layout.words(), words.len()),
            ("double words", layout.doubles(), doubles.len()),
        ] {
            if there < wanted {
                let name = A::NAME;
                return Err(Unfit(format!(
                    "{name} with {size} takes {wanted} {what}, and the arena has {there}"
                )));
            }
        }
        begin(words, doubles, &layout);
        Ok(Self { algorithm, arena })
    }

    /// Returns the algorithm, whose sections run on a [`view`](Self::view).
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// Returns a process's view of the arena.
    pub fn view<R: Relax>(&self, relax: R, seed: u64) -> Native<'_, R, S::Word> {
        Native::new(self.arena.words(), relax, seed).with_doubles(self.arena.doubles())
    }
}

impl<A: Algorithm, W: Word, S: Arena<Word = W>> Instance<A, S> {
    /// Runs one whole passage of process `p`, with `inside` in the critical section.
    ///
    /// # Errors
    /// When the wait is given up. Then `inside` has not run, and the place is **not** yet
    /// abandoned.
    #[inline]
    pub fn passage<'a, R: Relax, T>(
        &'a self,
        m: &mut Native<'a, R, W>,
        p: usize,
        request: Request<'a, A, R, W>,
        keep: Keep<'a, A, R, W>,
        inside: impl FnOnce() -> T,
    ) -> Result<Done<'a, A, R, W, T>, R::Halt>
    where
        A: Exclusion<Native<'a, R, W>>,
    {
        let pass = self.algorithm.doorway(m, p, request, keep)?;
        let pass = self.algorithm.waiting(m, p, pass)?;
        let done = inside();
        Ok((self.algorithm.exit(m, p, pass)?, done))
    }
}
