//! The locks that are measured. `lock` says how a lock is described; a line here gives it every
//! bench of its kind.

use doorway_core::{
    Exclusion,
    native::{Backoff, Native},
};
use parking_lot::FairMutex;

use crate::{
    alone, crowd,
    lock::{Blocking, Sessions, Tasks},
    ours::Batching,
    peers::{Condition, Rooms, TicketMutex, Try},
    tasks,
    work::{Sample, Work},
};

/// A lock in one kind of bench.
#[derive(Clone, Copy)]
pub struct Contender {
    /// The lock.
    pub name: &'static str,
    /// The most slots it can have.
    pub most_slots: usize,
    pub(crate) measure: fn(&Work) -> Sample,
}

/// A lock in the two benches of its kind: uncontended, and in a crowd.
#[derive(Clone, Copy)]
pub(crate) struct Both {
    pub(crate) alone: Contender,
    pub(crate) crowd: Contender,
}

fn blocking<L: Blocking>() -> Both {
    Both::of::<L>(alone::blocking::<L>, crowd::slots::<L>)
}

fn task<L: Tasks>() -> Both {
    Both::of::<L>(alone::tasks::<L>, tasks::tasks::<L>)
}

fn sharing<L: Sessions>() -> Both {
    Both::of::<L>(alone::sessions::<L>, crowd::sessions::<L>)
}

impl Both {
    fn of<L: crate::lock::Lock>(alone: fn(&Work) -> Sample, crowd: fn(&Work) -> Sample) -> Self {
        let contender = |measure| Contender { name: L::NAME, most_slots: L::MOST_SLOTS, measure };
        Self { alone: contender(alone), crowd: contender(crowd) }
    }
}

/// Locks for threads.
pub(crate) fn threads() -> Vec<Both> {
    vec![
        blocking::<doorway::Mutex<()>>(),
        blocking::<doorway::Semaphore>(),
        blocking::<doorway::barging::Mutex<()>>(),
        blocking::<doorway::barging::Semaphore>(),
        blocking::<std::sync::Mutex<()>>(),
        blocking::<Condition>(),
        blocking::<parking_lot::Mutex<()>>(),
        blocking::<FairMutex<()>>(),
        blocking::<tokio::sync::Semaphore>(),
        blocking::<tokio::sync::Mutex<()>>(),
        blocking::<async_lock::Semaphore>(),
        blocking::<async_lock::Mutex<()>>(),
        blocking::<spin::Mutex<()>>(),
        blocking::<TicketMutex>(),
    ]
}

/// Uncontended locks, acquired by trying.
pub(crate) fn tries() -> Vec<Both> {
    vec![
        blocking::<Try<std::sync::Mutex<()>>>(),
        blocking::<Try<parking_lot::Mutex<()>>>(),
        blocking::<Try<tokio::sync::Semaphore>>(),
        blocking::<Try<tokio::sync::Mutex<()>>>(),
        blocking::<Try<async_lock::Semaphore>>(),
        blocking::<Try<async_lock::Mutex<()>>>(),
    ]
}

/// Locks for tasks.
pub(crate) fn in_tasks() -> Vec<Both> {
    vec![
        task::<doorway::Mutex<()>>(),
        task::<doorway::Semaphore>(),
        task::<doorway::barging::Semaphore>(),
        task::<tokio::sync::Semaphore>(),
        task::<tokio::sync::Mutex<()>>(),
        task::<async_lock::Semaphore>(),
        task::<async_lock::Mutex<()>>(),
    ]
}

/// Locks with sessions.
pub(crate) fn groups() -> Vec<Both> {
    vec![
        sharing::<doorway::GroupLock<()>>(),
        sharing::<Batching>(),
        sharing::<std::sync::RwLock<()>>(),
        sharing::<Rooms>(),
        sharing::<parking_lot::RwLock<()>>(),
        sharing::<tokio::sync::RwLock<()>>(),
        sharing::<async_lock::RwLock<()>>(),
        sharing::<spin::RwLock<()>>(),
    ]
}

/// The algorithms of the registry. They are measured uncontended only.
pub(crate) fn algorithms() -> Vec<Both> {
    macro_rules! all {
        ($($algorithm:ty),* $(,)?) => { vec![$(algorithm::<$algorithm>()),*] };
    }
    doorway_core::for_each_algorithm!(all)
}

fn algorithm<A>() -> Both
where
    A: for<'a> Exclusion<Native<'a, Backoff>> + Sync,
{
    // Names live as long as the program, and there are few of these.
    let name = A::VARIANT.map_or(A::NAME, |variant| format!("{} ({variant})", A::NAME).leak());
    let alone = Contender { name, most_slots: 1, measure: alone::algorithm::<A> };
    Both { alone, crowd: alone }
}
