//! A fair semaphore: k slots for threads and tasks, first come, first served.

use std::{
    fmt,
    ops::Deref,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst},
    },
    task::Waker,
    time::Instant,
};

use crate::{
    place::{Door, Late, PlaceIn},
    queue::{MOST, Queue, Standing},
};

/// A semaphore with k slots for threads and tasks, first come, first served.
///
/// ```
/// let gpus = doorway::Semaphore::new(4);
/// let place = gpus.enter(); // the doorway: never blocks; the place in the queue is fixed
/// let permit = place.wait(); // or `place.await`, or `place.wait_timeout(…)`
/// assert!(permit.slot() < 4); // no other holder has this number
/// drop(permit); // grants the slot to the next waiter
/// ```
///
/// # Promises
///
/// - Permits never hold more slots than the semaphore has.
/// - **FIFO**: if one [`enter`](Self::enter) returns before another begins, it is granted first.
///   Threads and tasks wait in one queue. Since `enter` is not async, no task budget and no slow
///   poll changes the order. [`try_acquire`](Self::try_acquire) takes only a free slot and
///   overtakes no waiter.
/// - No slot is lost to a place that is dropped, a future that is cancelled or a holder that
///   panics. No wake-up is lost.
/// - The uncontended fast path: one atomic addition to acquire, one to release; no system call, no
///   allocation.
///
/// A `Semaphore` has 88 bytes here, whatever the number of its slots:
///
/// ```
/// # #[cfg(target_pointer_width = "64")]
/// assert_eq!(size_of::<doorway::Semaphore>(), 88);
/// ```
///
/// The order of grants is that of [`engines::semaphore`](doorway_core::engines::semaphore), which
/// the checker explores: the checker runs the same functions as this type.
///
/// # What is not promised
///
/// - A place whose turn has come holds its slot from then on, even if no thread or task waits on
///   it. So does a place that is forgotten (`mem::forget`). Drop places that you do not need.
/// - A dropped place stays in the queue until the grants pass it. So while a holder keeps its slot,
///   each place that is taken and dropped costs some bytes. With half a million of them `enter`
///   panics.
/// - There is no poisoning: when a holder panics, the next waiter is granted its slot.
/// - A place may be waited on, polled or dropped only until two trillion (2⁴¹) later places have
///   had their turn.
pub struct Semaphore {
    queue: Queue,
    slots: AtomicUsize,
    /// Which slot numbers are in use, one bit each.
    numbers: Mutex<Vec<u64>>,
}

/// A place in the queue that borrows the semaphore.
pub type Place<'a> = PlaceIn<&'a Semaphore>;
/// A place in the queue that shares ownership of the semaphore.
pub type OwnedPlace = PlaceIn<Arc<Semaphore>>;
/// A permit that borrows the semaphore.
pub type Permit<'a> = PermitOf<&'a Semaphore>;
/// A permit that shares ownership of the semaphore.
pub type OwnedPermit = PermitOf<Arc<Semaphore>>;

impl Semaphore {
    /// The most slots that a semaphore can have, or that one place can ask for.
    pub const MOST: usize = MOST;

    /// Creates a semaphore with this many slots.
    ///
    /// # Panics
    /// If `slots` is more than [`MOST`](Self::MOST).
    pub const fn new(slots: usize) -> Self {
        Self {
            queue: Queue::new(slots),
            slots: AtomicUsize::new(slots),
            numbers: Mutex::new(Vec::new()),
        }
    }

    /// Creates a semaphore whose newcomers may take a free slot ahead of waiters: more throughput,
    /// no FIFO. See [`barging`](crate::barging).
    ///
    /// # Panics
    /// If `slots` is more than [`MOST`](Self::MOST).
    pub const fn barging(slots: usize) -> crate::barging::Semaphore {
        crate::barging::Semaphore::new(slots)
    }

    /// Creates a semaphore that has already issued this many places: for tests of counters that
    /// wrap.
    #[doc(hidden)]
    pub const fn after(places: u64, slots: usize) -> Self {
        Self {
            queue: Queue::after(places, slots),
            slots: AtomicUsize::new(slots),
            numbers: Mutex::new(Vec::new()),
        }
    }

    /// The doorway: takes a place in the queue. Never blocks.
    ///
    /// # Panics
    /// If more than half a million slots are waited for already.
    #[inline]
    pub fn enter(&self) -> Place<'_> {
        self.enter_many(1)
    }

    /// Takes one place in the queue for several slots at once. Until that many slots are free, no
    /// place behind it is granted.
    ///
    /// # Panics
    /// If `weight` is zero or more than [`MOST`](Self::MOST), or if more than half a million slots
    /// are waited for already.
    #[inline]
    pub fn enter_many(&self, weight: usize) -> Place<'_> {
        PlaceIn::new(self, self.queue.enter(weight_of(weight)))
    }

    /// Takes a place as [`enter_many`](Self::enter_many) does, and shares ownership of the
    /// semaphore.
    pub fn enter_owned(self: Arc<Self>, weight: usize) -> OwnedPlace {
        let standing = self.queue.enter(weight_of(weight));
        PlaceIn::new(self, standing)
    }

    /// Waits for a slot: `enter().wait()`.
    #[inline]
    pub fn acquire(&self) -> Permit<'_> {
        let standing = self.queue.enter(1);
        if standing.enabled {
            return PermitOf::new(self, 1);
        }
        Place::new(self, standing).wait()
    }

    /// Acquires a slot if one is free and no place waits for it.
    #[inline]
    pub fn try_acquire(&self) -> Option<Permit<'_>> {
        self.try_acquire_many(1)
    }

    /// Acquires several slots if they are free and no place waits for them.
    ///
    /// # Panics
    /// If `weight` is zero or more than [`MOST`](Self::MOST).
    #[inline]
    pub fn try_acquire_many(&self, weight: usize) -> Option<Permit<'_>> {
        self.queue.try_enter(weight_of(weight)).map(|standing| PermitOf::new(self, standing.weight))
    }

    /// Returns how many slots are free. The number may have changed by the time the caller reads
    /// it.
    pub fn available(&self) -> usize {
        self.queue.free()
    }

    /// Returns how many slots are waited for: the sum of the weights of all places in the queue.
    /// Dropped places count until the grants pass them.
    pub fn waiters(&self) -> usize {
        self.queue.waiters()
    }

    /// Returns how many slots there are.
    pub fn slots(&self) -> usize {
        self.slots.load(SeqCst)
    }

    /// Adds slots.
    ///
    /// # Panics
    /// If there would be more than [`MOST`](Self::MOST).
    pub fn add_slots(&self, more: usize) {
        let fits = |slots: usize| slots.checked_add(more).filter(|&all| all <= MOST);
        self.slots
            .fetch_update(SeqCst, SeqCst, fits)
            .expect("a semaphore has a million slots at most");
        if more > 0 {
            self.queue.release(more as u32);
        }
    }

    fn take_number(&self) -> u32 {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let word = numbers.iter().position(|word| *word != u64::MAX).unwrap_or(numbers.len());
        if word == numbers.len() {
            numbers.push(0);
        }
        let bit = numbers[word].trailing_ones();
        numbers[word] |= 1 << bit;
        word as u32 * u64::BITS + bit
    }

    fn give_number(&self, number: u32) {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        numbers[(number / u64::BITS) as usize] &= !(1 << (number % u64::BITS));
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("slots", &self.slots())
            .field("available", &self.available())
            .field("waiters", &self.waiters())
            .finish()
    }
}

#[inline(always)]
pub(crate) fn weight_of(slots: usize) -> u32 {
    assert!((1..=MOST).contains(&slots), "a place is for one slot or more, and a million at most");
    slots as u32
}

impl Door for Semaphore {
    type Standing = Standing;
    type Guard<S: Deref<Target = Self>> = PermitOf<S>;

    #[inline(always)]
    fn wait(&self, standing: &Standing, until: Option<Instant>) -> Result<(), Late> {
        self.queue.wait(*standing, self.slots(), until)
    }
    fn poll(&self, standing: &Standing, waker: &Waker) -> bool {
        self.queue.poll(*standing, waker)
    }
    fn is_enabled(&self, standing: &Standing) -> bool {
        self.queue.is_enabled(*standing)
    }
    #[inline]
    fn abandon(&self, standing: &Standing) {
        self.queue.abandon(*standing);
    }
    #[inline(always)]
    fn guard<S: Deref<Target = Self>>(semaphore: S, standing: &Standing) -> PermitOf<S> {
        PermitOf::new(semaphore, standing.weight)
    }
}

/// A permit for one slot or several. Dropping it grants them to the next waiters.
#[must_use = "dropping a permit gives its slot to the next in line"]
pub struct PermitOf<S: Deref<Target = Semaphore>> {
    semaphore: S,
    weight: u32,
    /// The slot's number plus one, once a caller has asked for it; 0 before.
    number: AtomicU32,
}

impl<S: Deref<Target = Semaphore>> PermitOf<S> {
    #[inline(always)]
    fn new(semaphore: S, weight: u32) -> Self {
        Self { semaphore, weight, number: AtomicU32::new(0) }
    }

    /// Returns a number below the number of slots that no other holder has. The first call chooses
    /// it, the lowest number that is not in use; a holder that never calls this pays nothing. A
    /// permit for several slots has one number.
    pub fn slot(&self) -> usize {
        let known = self.number.load(SeqCst);
        if known != 0 {
            return known as usize - 1;
        }
        let number = self.semaphore.take_number();
        match self.number.compare_exchange(0, number + 1, SeqCst, SeqCst) {
            Ok(_) => number as usize,
            Err(other) => {
                self.semaphore.give_number(number);
                other as usize - 1
            }
        }
    }

    /// Returns how many slots the permit is for.
    pub fn weight(&self) -> usize {
        self.weight as usize
    }

    /// Removes the permit's slots from the semaphore for good.
    pub fn forget(mut self) {
        self.semaphore.slots.fetch_sub(self.weight(), SeqCst);
        self.weight = 0; // nothing to release
    }

    fn forget_number(&self) {
        if let Some(number) = self.number.swap(0, SeqCst).checked_sub(1) {
            self.semaphore.give_number(number);
        }
    }
}

impl<S: Deref<Target = Semaphore>> Drop for PermitOf<S> {
    #[inline]
    fn drop(&mut self) {
        if *self.number.get_mut() != 0 {
            self.forget_number();
        }
        if self.weight > 0 {
            self.semaphore.queue.release(self.weight);
        }
    }
}

impl<S: Deref<Target = Semaphore>> fmt::Debug for PermitOf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("weight", &self.weight).finish_non_exhaustive()
    }
}
