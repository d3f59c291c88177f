//! Peers that several processes hold together: locks for readers and writers. They know one session
//! that is shared, so a process that asks for another session is a writer. Since no library has a
//! group lock, the last one here is what a user would write.

use std::sync::{Condvar, Mutex};

use super::block_on;
use crate::lock::{Ask, Lock, Sessions};

macro_rules! read_write {
    ($type:ty, |$lock:ident| $read:expr, $write:expr) => {
        impl Sessions for $type {
            #[inline]
            fn passage(&self, ask: Ask, inside: impl FnOnce()) {
                let $lock = self;
                if ask == Ask::Share(0) {
                    let _guard = $read;
                    inside();
                } else {
                    let _guard = $write;
                    inside();
                }
            }
        }
    };
}

const POISON: &str = "nobody panics inside";

read_write!(std::sync::RwLock<()>, |lock| lock.read().expect(POISON), lock.write().expect(POISON));
read_write!(parking_lot::RwLock<()>, |lock| lock.read(), lock.write());
read_write!(tokio::sync::RwLock<()>, |lock| block_on(lock.read()), block_on(lock.write()));
read_write!(async_lock::RwLock<()>, |lock| lock.read_blocking(), lock.write_blocking());
read_write!(spin::RwLock<()>, |lock| lock.read(), lock.write());

/// A group lock by std's mutex and condition variable: a process is granted if the lock is free or
/// held by its own session. Sessions can starve.
pub(crate) struct Rooms {
    open: Mutex<Open>,
    empty: Condvar,
}

/// The session that holds, and how many processes are inside.
struct Open {
    ask: Ask,
    inside: usize,
}

impl Lock for Rooms {
    const NAME: &'static str = "std Mutex + Condvar";

    fn new(_: usize) -> Self {
        Self { open: Mutex::new(Open { ask: Ask::Share(0), inside: 0 }), empty: Condvar::new() }
    }
}

impl Sessions for Rooms {
    fn passage(&self, ask: Ask, inside: impl FnOnce()) {
        let lock = || self.open.lock().expect(POISON);
        let may = |open: &Open| open.inside == 0 || open.ask == ask;
        let mut open = self.empty.wait_while(lock(), |open| !may(open)).expect(POISON);
        open.ask = ask;
        open.inside += 1;
        drop(open);
        inside();
        let mut open = lock();
        open.inside -= 1;
        if open.inside == 0 {
            drop(open);
            self.empty.notify_all();
        }
    }
}
