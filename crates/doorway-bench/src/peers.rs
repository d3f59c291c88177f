//! The peers: locks of other libraries.

mod blocking;
mod sessions;
mod tasks;

pub(crate) use {
    blocking::{Condition, TicketMutex, Try},
    sessions::Rooms,
};

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use crate::lock::Lock;

/// Names a peer and says how to make it.
macro_rules! peer {
    ($lock:ty, $name:literal, $slots:expr, $new:expr) => {
        impl Lock for $lock {
            const NAME: &'static str = $name;
            const MOST_SLOTS: usize = $slots;

            fn new(k: usize) -> Self {
                ($new)(k)
            }
        }
    };
}

peer!(std::sync::Mutex<()>, "std Mutex", 1, |_| Self::new(()));
peer!(std::sync::RwLock<()>, "std RwLock", 1, |_| Self::new(()));
peer!(parking_lot::Mutex<()>, "parking_lot Mutex", 1, |_| Self::new(()));
peer!(parking_lot::FairMutex<()>, "parking_lot FairMutex", 1, |_| Self::new(()));
peer!(parking_lot::RwLock<()>, "parking_lot RwLock", 1, |_| Self::new(()));
peer!(tokio::sync::Semaphore, "tokio Semaphore", Self::MAX_PERMITS, Self::new);
peer!(tokio::sync::Mutex<()>, "tokio Mutex", 1, |_| Self::new(()));
peer!(tokio::sync::RwLock<()>, "tokio RwLock", 1, |_| Self::new(()));
peer!(async_lock::Semaphore, "async-lock Semaphore", usize::MAX, Self::new);
peer!(async_lock::Mutex<()>, "async-lock Mutex", 1, |_| Self::new(()));
peer!(async_lock::RwLock<()>, "async-lock RwLock", 1, |_| Self::new(()));
peer!(spin::Mutex<()>, "spin Mutex", 1, |_| Self::new(()));
peer!(spin::RwLock<()>, "spin RwLock", 1, |_| Self::new(()));

/// Wakes a thread that waits for a future.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static WAKER: Waker = Waker::from(Arc::new(Parked(thread::current())));
}

/// Waits for a future, parked. The waker is made once for each thread, as tokio does for its own
/// blocking calls.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    WAKER.with(|waker| {
        let mut context = Context::from_waker(waker);
        loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(value) => return value,
                Poll::Pending => thread::park(),
            }
        }
    })
}
