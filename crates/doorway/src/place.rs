//! Places in a queue: what [`Mutex`](crate::Mutex), [`Semaphore`](crate::Semaphore) and
//! [`GroupLock`](crate::GroupLock) have in common.

use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    ops::Deref,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

/// The error of a wait that has reached its time limit.
#[derive(Debug)]
pub struct Late;

/// A lock that places wait for: each lock of this crate, and no other type. `K` distinguishes kinds
/// of places in the same queue.
pub trait Door<K = ()> {
    /// What a place stores about its position.
    #[doc(hidden)]
    type Standing: Unpin;
    /// What a place becomes when it is granted.
    type Guard<H: Deref<Target = Self>>;

    #[doc(hidden)]
    fn wait(&self, standing: &Self::Standing, until: Option<Instant>) -> Result<(), Late>;
    #[doc(hidden)]
    fn poll(&self, standing: &Self::Standing, waker: &Waker) -> bool;
    #[doc(hidden)]
    fn is_enabled(&self, standing: &Self::Standing) -> bool;
    #[doc(hidden)]
    fn abandon(&self, standing: &Self::Standing);
    #[doc(hidden)]
    fn guard<H: Deref<Target = Self>>(door: H, standing: &Self::Standing) -> Self::Guard<H>;
}

/// A place in the queue of a lock. Dropping it leaves the queue.
///
/// `H` is the handle of the lock: a reference or an [`Arc`](std::sync::Arc).
#[must_use = "dropping a place leaves the line"]
pub struct PlaceIn<H, K = ()>
where
    H: Deref,
    H::Target: Door<K>,
{
    standing: <H::Target as Door<K>>::Standing,
    /// `None` once the place has become a guard.
    door: Option<H>,
    kind: PhantomData<K>,
}

impl<H, K> PlaceIn<H, K>
where
    H: Deref,
    H::Target: Door<K>,
{
    #[inline(always)]
    pub(crate) fn new(door: H, standing: <H::Target as Door<K>>::Standing) -> Self {
        Self { standing, door: Some(door), kind: PhantomData }
    }

    fn door(&self) -> &H::Target {
        self.door.as_ref().expect("the place has become a guard: a future must not be polled again")
    }

    #[inline(always)]
    fn guard(&mut self) -> <H::Target as Door<K>>::Guard<H> {
        Door::guard(self.door.take().expect("a place becomes one guard"), &self.standing)
    }

    /// Blocks until this place is granted.
    #[inline]
    pub fn wait(mut self) -> <H::Target as Door<K>>::Guard<H> {
        let waited = self.door().wait(&self.standing, None);
        debug_assert!(waited.is_ok(), "nobody is late who has no limit");
        self.guard()
    }

    /// Blocks until this place is granted, but no longer than `limit`.
    ///
    /// # Errors
    /// Returns the place, which keeps its position in the queue.
    pub fn wait_timeout(
        mut self,
        limit: Duration,
    ) -> Result<<H::Target as Door<K>>::Guard<H>, Self> {
        // A limit beyond what the clock can represent means no limit.
        match self.door().wait(&self.standing, Instant::now().checked_add(limit)) {
            Ok(()) => Ok(self.guard()),
            Err(Late) => Err(self),
        }
    }

    /// Returns whether it is this place's turn: then [`wait`](Self::wait) does not block.
    pub fn is_enabled(&self) -> bool {
        self.door().is_enabled(&self.standing)
    }
}

/// Cancel safety: dropping the future leaves the queue; `&mut place` in a `select!` keeps the
/// place.
impl<H, K> Future for PlaceIn<H, K>
where
    H: Deref + Unpin,
    H::Target: Door<K>,
    K: Unpin,
{
    type Output = <H::Target as Door<K>>::Guard<H>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let place = self.get_mut();
        if place.door().poll(&place.standing, context.waker()) {
            Poll::Ready(place.guard())
        } else {
            Poll::Pending
        }
    }
}

impl<H, K> Drop for PlaceIn<H, K>
where
    H: Deref,
    H::Target: Door<K>,
{
    #[inline]
    fn drop(&mut self) {
        if let Some(door) = self.door.take() {
            door.abandon(&self.standing);
        }
    }
}

impl<H, K> fmt::Debug for PlaceIn<H, K>
where
    H: Deref,
    H::Target: Door<K>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("is_enabled", &self.door.as_ref().map(|door| door.is_enabled(&self.standing)))
            .finish()
    }
}
