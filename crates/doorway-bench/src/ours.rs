//! Doorway's own locks. Their doorway is visible, and they are judged by it.

use doorway::{GroupLock, Mutex, Semaphore, barging};

use crate::lock::{Ask, Blocking, Lock, Sessions, Tasks};

impl Lock for Semaphore {
    const NAME: &'static str = "doorway Semaphore";
    const MOST_SLOTS: usize = Self::MOST;

    fn new(k: usize) -> Self {
        Self::new(k)
    }
}

impl Blocking for Semaphore {
    fn passage(&self, inside: impl FnOnce()) {
        let _permit = self.acquire();
        inside();
    }

    fn stepwise(&self, entered: impl FnOnce(), inside: impl FnOnce()) {
        let place = self.enter();
        entered();
        let _permit = place.wait();
        inside();
    }
}

impl Tasks for Semaphore {
    async fn passage(&self, inside: impl Future<Output = ()> + Send) {
        let _permit = self.enter().await;
        inside.await;
    }

    async fn stepwise(
        &self,
        entered: impl FnOnce() + Send,
        inside: impl Future<Output = ()> + Send,
    ) {
        let place = self.enter();
        entered();
        let _permit = place.await;
        inside.await;
    }
}

impl Lock for Mutex<()> {
    const NAME: &'static str = "doorway Mutex";

    fn new(_: usize) -> Self {
        Self::new(())
    }
}

impl Blocking for Mutex<()> {
    fn passage(&self, inside: impl FnOnce()) {
        let _guard = self.lock();
        inside();
    }

    fn stepwise(&self, entered: impl FnOnce(), inside: impl FnOnce()) {
        let place = self.enter();
        entered();
        let _guard = place.wait();
        inside();
    }
}

impl Tasks for Mutex<()> {
    async fn passage(&self, inside: impl Future<Output = ()> + Send) {
        let _guard = self.enter().await;
        inside.await;
    }

    async fn stepwise(
        &self,
        entered: impl FnOnce() + Send,
        inside: impl Future<Output = ()> + Send,
    ) {
        let place = self.enter();
        entered();
        let _guard = place.await;
        inside.await;
    }
}

impl Lock for GroupLock<()> {
    const NAME: &'static str = "doorway GroupLock";

    fn new(_: usize) -> Self {
        Self::new(())
    }
}

impl Sessions for GroupLock<()> {
    #[inline]
    fn passage(&self, ask: Ask, inside: impl FnOnce()) {
        match ask {
            Ask::Share(session) => {
                let _guard = self.lock(session);
                inside();
            }
            Ask::Alone(_) => {
                let _guard = self.lock_alone();
                inside();
            }
        }
    }

    fn stepwise(&self, ask: Ask, entered: impl FnOnce(), inside: impl FnOnce()) {
        match ask {
            Ask::Share(session) => {
                let place = self.enter(session);
                entered();
                let _guard = place.wait();
                inside();
            }
            Ask::Alone(_) => {
                let place = self.enter_alone();
                entered();
                let _guard = place.wait();
                inside();
            }
        }
    }
}

/// A group lock in which some places may be overtaken, so it shows no doorway.
pub(crate) struct Batching(GroupLock<()>);

impl Lock for Batching {
    const NAME: &'static str = "doorway GroupLock batching(16)";

    fn new(_: usize) -> Self {
        Self(GroupLock::batching((), 16))
    }
}

impl Sessions for Batching {
    #[inline]
    fn passage(&self, ask: Ask, inside: impl FnOnce()) {
        self.0.passage(ask, inside);
    }
}

/// Its newcomers may overtake, so it has no doorway to be judged by.
impl Lock for barging::Semaphore {
    const NAME: &'static str = "doorway Semaphore, barging";
    const MOST_SLOTS: usize = Semaphore::MOST;

    fn new(k: usize) -> Self {
        Semaphore::barging(k)
    }
}

impl Blocking for barging::Semaphore {
    fn passage(&self, inside: impl FnOnce()) {
        let _permit = self.acquire();
        inside();
    }
}

impl Tasks for barging::Semaphore {
    async fn passage(&self, inside: impl Future<Output = ()> + Send) {
        let _permit = self.enter().await;
        inside.await;
    }
}

impl Lock for barging::Mutex<()> {
    const NAME: &'static str = "doorway Mutex, barging";

    fn new(_: usize) -> Self {
        Mutex::barging(())
    }
}

impl Blocking for barging::Mutex<()> {
    fn passage(&self, inside: impl FnOnce()) {
        let _guard = self.lock();
        inside();
    }
}
