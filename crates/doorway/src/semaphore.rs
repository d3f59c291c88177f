//! k slots, first come, first served.

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

/// A number of slots for threads and tasks, first come, first served.
///
/// ```
/// let gpus = doorway::Semaphore::new(4);
/// let place = gpus.enter(); // the doorway: never blocks; the place in line is fixed
/// let permit = place.wait(); // or `place.await`, or `place.wait_timeout(…)`
/// assert!(permit.slot() < 4); // nobody else's
/// drop(permit); // and the next in line goes in
/// ```
///
/// # Promises
///
/// - At most as many are inside as there are slots.
/// - **FIFO**: the turn of who is through [`enter`](Self::enter) before another begins it comes
///   before that one's. Threads and tasks stand in one line, and since `enter` is not async, no
///   budget and no slow poll changes the order. [`try_acquire`](Self::try_acquire) takes what is
///   free and overtakes nobody.
/// - No slot is lost to a place that is dropped, a future that is cancelled or a holder that
///   panics. No wake-up is lost.
/// - Where there is a slot, coming and going are one atomic addition each: no system call, no
///   allocation.
///
/// A `Semaphore` has 88 bytes here, whatever the number of its slots:
///
/// ```
/// # #[cfg(target_pointer_width = "64")]
/// assert_eq!(size_of::<doorway::Semaphore>(), 88);
/// ```
///
/// The order is that of [`engines::semaphore`](doorway_core::engines::semaphore), which the checker
/// explores: the functions that run here are those that it runs.
///
/// # What is not promised
///
/// - A place whose turn has come holds its slot from then on, whether it is looked at or not; so
///   does one that is forgotten (`mem::forget`). Drop places that you do not need.
/// - A place that is dropped stays in line until it is passed over, so as long as somebody is
///   inside, each place that is taken and dropped costs some bytes. With half a million of them
///   `enter` panics.
/// - Nothing is poisoned: when a holder panics the next one goes in.
/// - A place may be looked at last after two trillion (2⁴¹) others have had their turn.
pub struct Semaphore {
    queue: Queue,
    slots: AtomicUsize,
    /// Which slot numbers are taken, of those that were asked for.
    numbers: Mutex<Vec<u64>>,
}

/// A place in line that borrows the semaphore.
pub type Place<'a> = PlaceIn<&'a Semaphore>;
/// A place in line that shares the semaphore.
pub type OwnedPlace = PlaceIn<Arc<Semaphore>>;
/// A permit that borrows the semaphore.
pub type Permit<'a> = PermitOf<&'a Semaphore>;
/// A permit that shares the semaphore.
pub type OwnedPermit = PermitOf<Arc<Semaphore>>;

impl Semaphore {
    /// The most slots that a semaphore can have, and a place can be for.
    pub const MOST: usize = MOST;

    /// A semaphore with so many slots.
    ///
    /// # Panics
    /// If there are more than [`MOST`](Self::MOST).
    pub const fn new(slots: usize) -> Self {
        Self {
            queue: Queue::new(slots),
            slots: AtomicUsize::new(slots),
            numbers: Mutex::new(Vec::new()),
        }
    }

    /// A semaphore whose newcomers may take a free slot ahead of those in line: more throughput, no
    /// FIFO. See [`barging`](crate::barging).
    ///
    /// # Panics
    /// If there are more than [`MOST`](Self::MOST).
    pub const fn barging(slots: usize) -> crate::barging::Semaphore {
        crate::barging::Semaphore::new(slots)
    }

    /// The same after so many places: for tests of what happens when counters wrap around.
    #[doc(hidden)]
    pub const fn after(places: u64, slots: usize) -> Self {
        Self {
            queue: Queue::after(places, slots),
            slots: AtomicUsize::new(slots),
            numbers: Mutex::new(Vec::new()),
        }
    }

    /// The doorway: takes a place in line. Never blocks.
    ///
    /// # Panics
    /// If half a million slots are waited for already.
    #[inline]
    pub fn enter(&self) -> Place<'_> {
        self.enter_many(1)
    }

    /// The same for so many slots at once, as one place in line. Until there are as many slots
    /// nobody behind it goes in.
    ///
    /// # Panics
    /// If that is none, or more than [`MOST`](Self::MOST); or if half a million slots are waited
    /// for already.
    #[inline]
    pub fn enter_many(&self, weight: usize) -> Place<'_> {
        PlaceIn::new(self, self.queue.enter(weight_of(weight)))
    }

    /// The same as [`enter_many`](Self::enter_many), with a place that can be sent anywhere.
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

    /// A slot, if one is free and nobody waits for it.
    #[inline]
    pub fn try_acquire(&self) -> Option<Permit<'_>> {
        self.try_acquire_many(1)
    }

    /// So many slots, if they are free.
    ///
    /// # Panics
    /// If that is none, or more than [`MOST`](Self::MOST).
    #[inline]
    pub fn try_acquire_many(&self, weight: usize) -> Option<Permit<'_>> {
        self.queue.try_enter(weight_of(weight)).map(|standing| PermitOf::new(self, standing.weight))
    }

    /// How many slots are free. It may have changed by the time that you know.
    pub fn available(&self) -> usize {
        self.queue.free()
    }

    /// How many slots are waited for: the weights of all places in line, abandoned ones included
    /// until they are passed over.
    pub fn waiters(&self) -> usize {
        self.queue.waiters()
    }

    /// How many slots there are.
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

/// One slot or several. Dropping it hands them to the next in line.
#[must_use = "dropping a permit gives its slot to the next in line"]
pub struct PermitOf<S: Deref<Target = Semaphore>> {
    semaphore: S,
    weight: u32,
    /// The slot's number and one more, once somebody has asked.
    number: AtomicU32,
}

impl<S: Deref<Target = Semaphore>> PermitOf<S> {
    #[inline(always)]
    fn new(semaphore: S, weight: u32) -> Self {
        Self { semaphore, weight, number: AtomicU32::new(0) }
    }

    /// A number below that of the slots which no other holder has. It is chosen when it is first
    /// asked for, the lowest that is free, and costs nothing to those who never ask. A permit for
    /// several slots has one number.
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

    /// How many slots it is for.
    pub fn weight(&self) -> usize {
        self.weight as usize
    }

    /// Takes the slots away from the semaphore for good.
    pub fn forget(mut self) {
        self.semaphore.slots.fetch_sub(self.weight(), SeqCst);
        self.weight = 0; // there is nothing to pass on
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
