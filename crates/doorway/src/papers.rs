//! The algorithms of the papers as locks.
//!
//! A [`Lock`] runs any algorithm of [`doorway_core`] for a fixed number of processes. A thread
//! claims a [`Seat`], which is a process of the paper. The seat goes through the doorway to a
//! [`Place`] in the queue, and waits there for a [`Guard`]:
//!
//! ```
//! use doorway::papers::{Bakery, Lock};
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//!
//! let (lock, visits) = (Lock::<Bakery>::new(2)?, AtomicU64::new(0));
//! std::thread::scope(|scope| {
//!     for _ in 0..2 {
//!         scope.spawn(|| {
//!             let mut seat = lock.seat().expect("two threads, two seats");
//!             for _ in 0..1000 {
//!                 let _inside = seat.lock();
//!                 visits.store(visits.load(Relaxed) + 1, Relaxed); // one at a time
//!             }
//!         });
//!     }
//! });
//! assert_eq!(visits.into_inner(), 2000);
//! # Ok::<(), doorway::papers::Unfit>(())
//! ```
//!
//! With slots, at most k processes are inside at once; with sessions, only processes of the same
//! session:
//!
//! ```
//! use doorway::papers::{GroupBakery, KBakery, Lock, Session, Size};
//!
//! let lock = Lock::<KBakery>::with_size(Size::slots(3, 2))?;
//! let [mut one, mut two] = [lock.claim(0)?, lock.claim(1)?];
//! let _both = (one.lock(), two.lock());
//!
//! let lock = Lock::<GroupBakery>::with_size(Size::group(3, 5))?;
//! let [mut one, mut two] = [lock.claim(0)?, lock.claim(1)?];
//! let _both = (one.lock_for(Session(4))?, two.lock_for(Session(4))?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it waits
//!
//! A process spins briefly and then yields to the operating system, again and again. No thread is
//! parked: nothing in the papers' memory could wake it. What the algorithms promise of remote
//! references and order is in their pages.
//!
//! # What is not promised
//!
//! - A lock holds no data. Any crate can implement [`Exclusion`], in safe code, correctly or not; a
//!   guard that trusted it and gave out `&mut T` would be unsound.
//! - The number of seats is fixed when the lock is made.
//! - There is no poisoning: a guard that is dropped by a panic leaves like any other.
//! - A process that stops between doorway and exit, because its thread is killed or its guard
//!   forgotten, has crashed. A mutex or a group lock then blocks; k-exclusion loses a slot.
//! - Fairness is the algorithm's: some algorithms starve processes ([`BurnsLamport`]). What each
//!   promises is in its [`CLAIMS`](Algorithm::CLAIMS).
//!
//! # Memory of the caller's own
//!
//! Registers may live elsewhere, for example in a file that two programs map ([`Lock::lay_out`],
//! [`Lock::join`]), and be made of words that are only loaded and stored ([`Fenced`]).
//! `examples/two_programs.rs` does both.

mod seat;

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
};

pub use doorway_core::{
    Algorithm, Exclusion, Session, Size, Unfit,
    algorithms::group::{
        GroupBakery, GroupBlackWhiteBakery, StrongGroupBakery, StrongGroupBlackWhiteBakery,
    },
    algorithms::k_exclusion::{
        ColoredTicket, KBakery, KBakeryFife, KBakerySafe, NumberedTicket, Queue, TimestampBakery,
        UnboundedColoredTicket,
    },
    algorithms::mutex::{
        Bakery, BlackWhiteBakery, BurnsLamport, Mcs, Randomized, RandomizedBounded,
        RandomizedStarvationFree, YangAnderson,
    },
    native::{Arena, Fenced, Own, Word, room},
};
use doorway_core::{
    Local, Request,
    native::{Instance, Native},
};
pub use seat::{GivenUp, Guard, NoSuchSession, Patience, Place, Seat};

/// The memory that the sections of an algorithm run on.
pub type View<'a, W> = Native<'a, Patience, W>;

/// An algorithm that runs on words `W`: every [`Exclusion`] that needs no memory operations beyond
/// those of `W`.
pub trait Paper<W: Word>:
    for<'a> Exclusion<
        View<'a, W>,
        Request = <Self as Paper<W>>::Asks,
        Pass = <Self as Paper<W>>::Passes,
        Keep = <Self as Paper<W>>::Keeps,
    >
{
    /// What a process asks for in the doorway: a [`Session`] in group locks, `()` in others.
    type Asks: Request;
    /// The state that passes from section to section.
    type Passes: Local;
    /// The state that a seat keeps from passage to passage.
    type Keeps: Local;
}

impl<W: Word, A, Q: Request, P: Local, K: Local> Paper<W> for A
where
    A: for<'a> Exclusion<View<'a, W>, Request = Q, Pass = P, Keep = K>,
{
    type Asks = Q;
    type Passes = P;
    type Keeps = K;
}

/// Why a seat could not be claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoSeat {
    /// Another holder has it.
    #[error("{name}: seat {p} is taken; claim another or drop the one that has it")]
    Taken {
        /// The algorithm.
        name: &'static str,
        /// The seat.
        p: usize,
    },
    /// All seats are taken.
    #[error("{name}: all {n} seats are taken; drop one or make the lock with a larger n")]
    Full {
        /// The algorithm.
        name: &'static str,
        /// How many seats there are.
        n: usize,
    },
    /// There is no seat with this number.
    #[error("{name}: there is no seat {p}, as they go from 0 to {}; make the lock with a larger n", n - 1)]
    Beyond {
        /// The algorithm.
        name: &'static str,
        /// The seat that was asked for.
        p: usize,
        /// How many seats there are.
        n: usize,
    },
}

/// An algorithm as a lock for `n` processes; see the [module](self).
#[derive(Debug)]
pub struct Lock<A: Paper<S::Word>, S: Arena = Own> {
    instance: Instance<A, S>,
    size: Size,
    /// What each free seat keeps for its next holder; `None` if it is taken.
    seats: Box<[Mutex<Option<A::Keeps>>]>,
    /// Seeds the coins that some algorithms toss.
    seed: u64,
}

impl<A: Paper<W>, W: Word + From<u64>> Lock<A, Own<W>> {
    /// Creates a lock for `n` processes, one of them inside at a time.
    ///
    /// # Errors
    /// When the algorithm does not serve `n` processes, or is not a mutex and needs
    /// [`with_size`](Self::with_size).
    pub fn new(n: usize) -> Result<Self, Unfit> {
        Self::with_size(Size::mutex(n))
    }

    /// Creates a lock of this size: with [slots](Size::slots) or [sessions](Size::group).
    ///
    /// # Errors
    /// When the algorithm does not serve that size.
    pub fn with_size(size: Size) -> Result<Self, Unfit> {
        Ok(Self::of(Instance::<A, Own<W>>::new(size)?, size))
    }
}

impl<A: Paper<S::Word>, S: Arena> Lock<A, S> {
    /// Creates a lock in the given memory, and sets the memory to the initial values. The caller
    /// ensures that no process uses the memory yet. [`room`] says how many words it takes.
    ///
    /// # Errors
    /// When the algorithm does not serve that size, or the arena is too small.
    pub fn lay_out(size: Size, arena: S) -> Result<Self, Unfit> {
        Ok(Self::of(Instance::lay_out(size, arena)?, size))
    }

    /// Opens a lock in memory that has been [laid out](Self::lay_out), for the same algorithm and
    /// size, by this program or another.
    ///
    /// A `Lock` records which seats are taken; the memory does not, because that would take a
    /// read-modify-write. So programs that join the same memory have to agree on which program uses
    /// which seat. Nor does the memory record what a seat kept from its last passage. So this is
    /// for algorithms that keep nothing; the seats of other algorithms could not change hands.
    ///
    /// # Errors
    /// When the algorithm does not serve that size, or the arena is too small.
    pub fn join(size: Size, arena: S) -> Result<Self, Unfit>
    where
        A: Paper<S::Word, Keeps = ()>,
    {
        Ok(Self::of(Instance::join(size, arena)?, size))
    }

    fn of(instance: Instance<A, S>, size: Size) -> Self {
        let keep = |p| instance.algorithm().keep(p);
        let seats = (0..size.n).map(|p| Mutex::new(Some(keep(p)))).collect();
        Self { instance, size, seats, seed: RandomState::new().hash_one(size) }
    }

    /// Returns how many seats, slots and sessions there are.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Claims the first free seat.
    ///
    /// # Errors
    /// When all seats are taken.
    pub fn seat(&self) -> Result<Seat<'_, A, S>, NoSeat> {
        let free = (0..self.size.n).find_map(|p| self.claim(p).ok());
        free.ok_or(NoSeat::Full { name: A::NAME, n: self.size.n })
    }

    /// Claims seat `p`, of `0..n`. Dropping the seat frees it.
    ///
    /// # Errors
    /// When the seat is taken, or there is no such seat.
    pub fn claim(&self, p: usize) -> Result<Seat<'_, A, S>, NoSeat> {
        let (name, n) = (A::NAME, self.size.n);
        if p >= n {
            return Err(NoSeat::Beyond { name, p, n });
        }
        let keep = self.slip(p).take().ok_or(NoSeat::Taken { name, p })?;
        Ok(Seat::new(self, p, keep))
    }

    /// Locks what seat `p` keeps while it is free.
    fn slip(&self, p: usize) -> MutexGuard<'_, Option<A::Keeps>> {
        // No thread panics while it has this locked.
        self.seats[p].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
