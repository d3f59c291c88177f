//! The algorithms of the papers as locks.
//!
//! A [`Lock`] runs any algorithm of [`doorway_core`] for a fixed set of participants. Each of them
//! claims a [`Seat`], which is a process of the paper; a seat goes through the doorway to a
//! [`Place`] in line, and waits there for a [`Guard`]:
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
//! With slots, at most k are inside at once; with sessions, only those who ask for the same:
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
//! It spins briefly and then yields to the operating system, again and again. Nobody is parked:
//! there is nothing in the papers' memory that could wake anybody. What they promise of remote
//! references and order is in their pages.
//!
//! # What is not promised
//!
//! - It holds no data. [`Exclusion`] can be implemented by anybody, in safe code, rightly or
//!   wrongly; a guard that gave out `&mut T` on its word would be unsound.
//! - There are as many seats as were asked for, and never more.
//! - No poisoning: a guard that is dropped by a panic leaves like any other.
//! - A participant that stops between doorway and exit, killed or with a forgotten guard, has
//!   crashed: the mutexes and group locks then stand still, k-exclusion has a slot less.
//! - Fairness is the algorithm's: some starve processes ([`BurnsLamport`]), and what each promises
//!   is in its [`CLAIMS`](Algorithm::CLAIMS).
//!
//! # Memory of one's own
//!
//! Registers may live elsewhere, in a file that two programs map, say ([`Lock::lay_out`],
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

/// What the sections of an algorithm run on.
pub type View<'a, W> = Native<'a, Patience, W>;

/// An algorithm that runs on words `W`: every [`Exclusion`] that asks no more of memory than `W`
/// can do.
pub trait Paper<W: Word>:
    for<'a> Exclusion<
        View<'a, W>,
        Request = <Self as Paper<W>>::Asks,
        Pass = <Self as Paper<W>>::Passes,
        Keep = <Self as Paper<W>>::Keeps,
    >
{
    /// What a process asks for on arrival: a [`Session`] in group locks, `()` in others.
    type Asks: Request;
    /// What passes from section to section.
    type Passes: Local;
    /// What a seat keeps from passage to passage.
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

/// There is no such seat, or not now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoSeat {
    /// Somebody has it.
    #[error("{name}: seat {p} is taken; claim another or drop the one that has it")]
    Taken {
        /// The algorithm.
        name: &'static str,
        /// The seat.
        p: usize,
    },
    /// All are taken.
    #[error("{name}: all {n} seats are taken; drop one or make the lock with a larger n")]
    Full {
        /// The algorithm.
        name: &'static str,
        /// How many there are.
        n: usize,
    },
    /// There are not so many.
    #[error("{name}: there is no seat {p}, as they go from 0 to {}; make the lock with a larger n", n - 1)]
    Beyond {
        /// The algorithm.
        name: &'static str,
        /// The seat that was asked for.
        p: usize,
        /// How many there are.
        n: usize,
    },
}

/// An algorithm as a lock for `n` participants; see the [module](self).
#[derive(Debug)]
pub struct Lock<A: Paper<S::Word>, S: Arena = Own> {
    instance: Instance<A, S>,
    size: Size,
    /// What each seat that is free keeps for its next holder; `None` if it is taken.
    seats: Box<[Mutex<Option<A::Keeps>>]>,
    /// Of the coins that some algorithms toss.
    seed: u64,
}

impl<A: Paper<W>, W: Word + From<u64>> Lock<A, Own<W>> {
    /// A lock for `n` participants of which one is inside at a time.
    ///
    /// # Errors
    /// When the algorithm does not serve so many, or is no mutex and wants
    /// [`with_size`](Self::with_size).
    pub fn new(n: usize) -> Result<Self, Unfit> {
        Self::with_size(Size::mutex(n))
    }

    /// A lock of this size: with [slots](Size::slots) or [sessions](Size::group).
    ///
    /// # Errors
    /// When the algorithm does not serve that size.
    pub fn with_size(size: Size) -> Result<Self, Unfit> {
        Ok(Self::of(Instance::<A, Own<W>>::new(size)?, size))
    }
}

impl<A: Paper<S::Word>, S: Arena> Lock<A, S> {
    /// A lock in memory that is given, which is set to the initial values. Whoever calls this makes
    /// sure that nobody uses it yet. [`room`] says how many words it takes.
    ///
    /// # Errors
    /// When the algorithm does not serve that size, or the arena is too small.
    pub fn lay_out(size: Size, arena: S) -> Result<Self, Unfit> {
        Ok(Self::of(Instance::lay_out(size, arena)?, size))
    }

    /// A lock in memory that has been [laid out](Self::lay_out), for the same algorithm and size,
    /// by this program or another.
    ///
    /// Which seats are taken is known within a `Lock` and not in the memory, where it would take a
    /// read-modify-write: those who join the same memory have to agree on who has which. Nor is it
    /// known what a seat kept from its last passage, so this is for algorithms that keep nothing;
    /// another one's seats could not change hands.
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

    /// How many seats, slots and sessions there are.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Claims the first seat that is free.
    ///
    /// # Errors
    /// When all are taken.
    pub fn seat(&self) -> Result<Seat<'_, A, S>, NoSeat> {
        let free = (0..self.size.n).find_map(|p| self.claim(p).ok());
        free.ok_or(NoSeat::Full { name: A::NAME, n: self.size.n })
    }

    /// Claims seat `p`, of `0..n`. It is free again when the seat is dropped.
    ///
    /// # Errors
    /// When it is taken, or there are not so many.
    pub fn claim(&self, p: usize) -> Result<Seat<'_, A, S>, NoSeat> {
        let (name, n) = (A::NAME, self.size.n);
        if p >= n {
            return Err(NoSeat::Beyond { name, p, n });
        }
        let keep = self.slip(p).take().ok_or(NoSeat::Taken { name, p })?;
        Ok(Seat::new(self, p, keep))
    }

    /// What seat `p` keeps while it is free.
    fn slip(&self, p: usize) -> MutexGuard<'_, Option<A::Keeps>> {
        // Nobody panics with it in hand.
        self.seats[p].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
