//! The native memory under loom, which tries the interleavings *and* the stale values that a weak
//! memory may return.
//!
//! What runs here is the code that runs natively: the same algorithm, [`Native`] and
//! [`initialise`]; only the words are loom's. Loom does not model sequentially consistent accesses
//! (it takes them as acquire and release), but it does model sequentially consistent fences. So a
//! [`FENCED`] word has one after each access, as `native::Fenced` does: a fence between any two
//! accesses of a process gives all accesses the one order that [`Word`] asks for. [`UNFENCED`]
//! words leave them out, and loom finds two processes inside: the order that `AtomicU64`'s `Word`
//! asks of the hardware is not stronger than it has to be.
//!
//! Two processes with one passage each are explored in full. Where one of them comes back for a
//! second passage, the exploration is bounded to so many preemptions (switches away from a process
//! that could go on; a switch at a wait does not count): five for the Bakery, three for the others.

use std::{convert::Infallible, panic, sync::Arc};

use doorway_core::{
    Algorithm, Exclusion, Layout, Size,
    algorithms::mutex::{Bakery, BlackWhiteBakery, Mcs},
    native::{Native, ReadModifyWrite, Relax, Word, initialise},
};
use loom::{
    cell::UnsafeCell,
    sync::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Release, SeqCst},
        fence,
    },
    thread,
};

/// A word of a model. Padding is `None`: loom looks at every atomic there is in every step, and
/// nobody else at these.
struct LoomWord<const FENCES: bool>(Option<AtomicU64>);

/// Words with the one total order that [`Word`] asks for.
const FENCED: bool = true;

/// Words that synchronise whoever reads a value with whoever wrote it, and no more.
const UNFENCED: bool = false;

impl<const FENCES: bool> LoomWord<FENCES> {
    fn access<T>(&self, access: impl FnOnce(&AtomicU64) -> T) -> T {
        let done = access(self.0.as_ref().expect("padding is not accessed"));
        if FENCES {
            fence(SeqCst);
        }
        done
    }
}

impl<const FENCES: bool> Word for LoomWord<FENCES> {
    fn load(&self) -> u64 {
        self.access(|word| word.load(Acquire))
    }
    fn store(&self, word: u64) {
        self.access(|held| held.store(word, Release));
    }
}

impl<const FENCES: bool> ReadModifyWrite for LoomWord<FENCES> {
    fn compare_and_swap(&self, old: u64, new: u64) -> u64 {
        self.access(|word| word.compare_exchange(old, new, AcqRel, Acquire))
            .unwrap_or_else(|held| held)
    }
    fn swap(&self, new: u64) -> u64 {
        self.access(|word| word.swap(new, AcqRel))
    }
    fn fetch_and_add(&self, add: u64) -> u64 {
        self.access(|word| word.fetch_add(add, AcqRel))
    }
}

/// Tells loom that this process can only go on when another has done something.
struct Yield;

impl Relax for Yield {
    type Halt = Infallible;
    fn relax(&mut self, _: u32) -> Result<(), Infallible> {
        thread::yield_now();
        Ok(())
    }
}

/// What the processes of a model share.
struct Shared<A, const FENCES: bool> {
    algorithm: A,
    words: Vec<LoomWord<FENCES>>,
    /// What the lock is for. Loom panics if one process gets here while another does, or without
    /// having synchronised with the one that was here before.
    inside: UnsafeCell<()>,
}

impl<A: Algorithm, const FENCES: bool> Shared<A, FENCES> {
    fn new() -> Self {
        let size = Size::mutex(2);
        let (algorithm, layout) = Layout::build(size.n, None, |layout| A::new(layout, size))
            .expect("two processes are enough");
        let used = |index| layout.cells().any(|cell| cell.index == index);
        let word = |index| LoomWord(used(index).then(|| AtomicU64::new(0)));
        let words: Vec<_> = (0..layout.words()).map(word).collect();
        initialise(&words, &[], &layout);
        Self { algorithm, words, inside: UnsafeCell::new(()) }
    }

    fn passages<'a>(&'a self, p: usize, passages: usize)
    where
        A: Exclusion<Native<'a, Yield, LoomWord<FENCES>>, Request = ()>,
    {
        let mut m = Native::new(&self.words, Yield, 0);
        let mut keep = self.algorithm.keep(p);
        for _ in 0..passages {
            let Ok(pass) = self.algorithm.doorway(&mut m, p, (), keep);
            let Ok(pass) = self.algorithm.waiting(&mut m, p, pass);
            self.inside.with_mut(|_| ());
            let Ok(next) = self.algorithm.exit(&mut m, p, pass);
            keep = next;
        }
    }
}

/// Explores process 0 with `passages.0` passages against process 1 with `passages.1`, with so many
/// preemptions at most.
fn explore<A, const FENCES: bool>(passages: (usize, usize), preemptions: Option<usize>)
where
    A: for<'a> Exclusion<Native<'a, Yield, LoomWord<FENCES>>, Request = ()> + 'static,
{
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let shared = Arc::new(Shared::<A, FENCES>::new());
        let other = thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.passages(1, passages.1)
        });
        shared.passages(0, passages.0);
        other.join().expect("a process panicked");
    });
}

#[test]
fn bakery() {
    explore::<Bakery, FENCED>((1, 1), None);
}

#[test]
fn bakery_coming_back() {
    explore::<Bakery, FENCED>((1, 2), Some(5));
}

#[test]
fn black_white_bakery() {
    explore::<BlackWhiteBakery, FENCED>((1, 1), None);
}

#[test]
fn black_white_bakery_coming_back() {
    explore::<BlackWhiteBakery, FENCED>((1, 2), Some(3));
}

#[test]
fn mcs() {
    explore::<Mcs, FENCED>((1, 1), None);
}

#[test]
fn mcs_coming_back() {
    explore::<Mcs, FENCED>((1, 2), Some(3));
}

/// The test bites: without the fences two get in.
#[test]
fn bakery_without_fences_breaks() {
    let found = panic::catch_unwind(|| explore::<Bakery, UNFENCED>((1, 1), None))
        .expect_err("nobody met inside");
    let message = found.downcast_ref::<String>().map_or("", String::as_str);
    assert!(message.contains("Causality violation"), "loom found something else: {message}");
}
