//! How a lock is described to be measured: its name, how it is made, and how one passage goes.
//!
//! A peer whose first-come-first-served order is not visible from outside has no doorway of its
//! own: it leaves `stepwise` as it is. A lock with a doorway calls `entered` when it is through the
//! doorway, and is then judged by it:
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
//!
//! use doorway_bench::lock::{Blocking, Lock};
//!
//! #[derive(Default)]
//! struct Tickets {
//!     next: AtomicU64,
//!     serving: AtomicU64,
//! }
//!
//! impl Lock for Tickets {
//!     const NAME: &'static str = "tickets";
//!
//!     fn new(_: usize) -> Self {
//!         Self::default()
//!     }
//! }
//!
//! impl Blocking for Tickets {
//!     fn passage(&self, inside: impl FnOnce()) {
//!         self.stepwise(|| (), inside);
//!     }
//!
//!     fn stepwise(&self, entered: impl FnOnce(), inside: impl FnOnce()) {
//!         let mine = self.next.fetch_add(1, SeqCst);
//!         entered();
//!         while self.serving.load(SeqCst) != mine {
//!             std::thread::yield_now();
//!         }
//!         inside();
//!         self.serving.fetch_add(1, SeqCst);
//!     }
//! }
//!
//! let mut steps = (0, 0);
//! Tickets::new(1).stepwise(|| steps.0 += 1, || steps.1 += 1);
//! assert_eq!(steps, (1, 1));
//! ```
//!
//! With `blocking::<Tickets>()` in the list of `contender.rs` it is in every bench for threads.

/// A lock that can be measured.
pub trait Lock: Send + Sync + Sized + 'static {
    /// Its name in the tables.
    const NAME: &'static str;

    /// The most slots it can have.
    const MOST_SLOTS: usize = 1;

    /// Creates a lock. Locks without slots ignore the number.
    fn new(k: usize) -> Self;
}

/// A lock for threads.
pub trait Blocking: Lock {
    /// Makes one passage, as users write it.
    fn passage(&self, inside: impl FnOnce());

    /// Makes one passage in two steps: the doorway, after which `entered` is called, and the wait.
    fn stepwise(&self, entered: impl FnOnce(), inside: impl FnOnce()) {
        let _ = entered;
        self.passage(inside);
    }
}

/// A lock for tasks.
pub trait Tasks: Lock {
    /// Makes one passage, as users write it.
    fn passage(&self, inside: impl Future<Output = ()> + Send) -> impl Future<Output = ()> + Send;

    /// Makes one passage in two steps, as in [`Blocking::stepwise`].
    fn stepwise(
        &self,
        entered: impl FnOnce() + Send,
        inside: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = ()> + Send {
        let _ = entered;
        self.passage(inside)
    }
}

/// What a process asks of a lock with sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// To be inside with other processes of this session.
    Share(u32),
    /// To be inside alone. The number is the process's own, so that this can be a session of its
    /// own.
    Alone(u32),
}

/// A lock for threads that processes of one session hold together.
pub trait Sessions: Lock {
    /// Makes one passage, as users write it.
    fn passage(&self, ask: Ask, inside: impl FnOnce());

    /// Makes one passage in two steps, as in [`Blocking::stepwise`].
    fn stepwise(&self, ask: Ask, entered: impl FnOnce(), inside: impl FnOnce()) {
        let _ = entered;
        self.passage(ask, inside);
    }
}
