//! Short runs of the shipped mutex, semaphore and group lock whose every schedule, or many,
//! `tests/loom.rs` and `tests/shuttle.rs` take.
//!
//! Each ends with the slots counted, and with everybody back: who sleeps on is found as a deadlock.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use crate::{
    barging,
    group::GroupLock,
    mutex::Mutex,
    semaphore::{Permit, Semaphore},
    sync::{self, Inside},
};

/// A semaphore, and how many are inside.
struct Room {
    semaphore: Semaphore,
    slots: usize,
    inside: AtomicUsize,
}

impl Room {
    fn new(slots: usize) -> Arc<Self> {
        // Not far from where the numbers wrap around.
        let semaphore = Semaphore::after((1 << 42) - 2, slots);
        // Made here and now, before there are other threads.
        assert_eq!(semaphore.available(), slots);
        Arc::new(Self { semaphore, slots, inside: AtomicUsize::new(0) })
    }

    fn visit(&self, permit: Permit<'_>) {
        assert!(self.inside.fetch_add(1, SeqCst) < self.slots, "one too many");
        let _ = self.semaphore.waiters(); // others may come here
        self.inside.fetch_sub(1, SeqCst);
        drop(permit);
    }

    fn is_left_as_it_was(&self) {
        assert_eq!(
            (self.semaphore.available(), self.semaphore.waiters()),
            (self.slots, 0),
            "slots free, tickets in line"
        );
    }
}

/// Does it on other threads, and the last of them on this one.
fn together<const N: usize>(all: [Box<dyn FnOnce() + Send>; N]) {
    let mut all = Vec::from(all);
    let mine = all.pop();
    let others: Vec<_> = all.into_iter().map(sync::spawn).collect();
    mine.into_iter().for_each(|mine| mine());
    others.into_iter().for_each(|other| other.join().expect("it ends"));
}

/// Something to be done in a room.
fn at(room: &Arc<Room>, act: impl FnOnce(&Room) + Send + 'static) -> Box<dyn FnOnce() + Send> {
    let room = Arc::clone(room);
    Box::new(move || act(&room))
}

/// Threads that come, wait, go in, and go.
pub(crate) fn passages<const N: usize>(slots: usize, each: usize) {
    let room = Room::new(slots);
    together([(); N].map(|()| {
        at(&room, move |room| (0..each).for_each(|_| room.visit(room.semaphore.acquire())))
    }));
    room.is_left_as_it_was();
}

/// The same with a mutex: each sees what the one before has done.
pub(crate) fn values<const N: usize>() {
    let mutex = Arc::new(Mutex::new(Inside::default()));
    assert_eq!(mutex.waiters(), 0);
    together([(); N].map(|()| {
        let mutex = Arc::clone(&mutex);
        Box::new(move || mutex.lock().visit()) as Box<dyn FnOnce() + Send>
    }));
    assert_eq!(mutex.lock().visits(), N);
}

/// Wakes a task, and the thread that runs it if there is one.
#[derive(Default)]
struct Woken {
    thread: Option<sync::Thread>,
    told: AtomicUsize,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.told.store(1, SeqCst);
        self.thread.iter().for_each(sync::Thread::unpark);
    }
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// Polls only when it is told to, by this waker: wake-ups that are for another do not help it.
fn block_on<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    let woken = Arc::new(Woken { thread: Some(sync::current()), told: AtomicUsize::new(0) });
    let waker = Waker::from(Arc::clone(&woken));
    loop {
        if let Poll::Ready(done) = poll(future.as_mut(), &waker) {
            return done;
        }
        while woken.told.swap(0, SeqCst) == 0 {
            sync::park();
        }
    }
}

/// A task among threads: polled with one waker, then with another, and it is the other that is
/// told, unless the first one was before it was replaced.
pub(crate) fn another_waker<const N: usize>(slots: usize) {
    let room = Room::new(slots);
    let mut all = [(); N].map(|()| at(&room, |room| room.visit(room.semaphore.acquire())));
    let first = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&first));
    all[0] = at(&room, move |room| {
        let mut place = pin!(room.semaphore.enter());
        let permit = match poll(place.as_mut(), &waker) {
            Poll::Ready(permit) => permit,
            Poll::Pending => block_on(place.as_mut()),
        };
        room.visit(permit);
    });
    together(all);
    assert_eq!(Arc::strong_count(&first), 1, "nobody keeps a waker");
    room.is_left_as_it_was();
}

/// A task that is polled and cancelled, wherever its turn comes meanwhile.
pub(crate) fn cancelled<const N: usize>(slots: usize) {
    let room = Room::new(slots);
    let mut all = [(); N].map(|()| at(&room, |room| room.visit(room.semaphore.acquire())));
    all[0] = at(&room, |room| {
        let mut place = room.semaphore.enter();
        let waker = Waker::from(Arc::new(Woken::default()));
        if let Poll::Ready(permit) = poll(Pin::new(&mut place), &waker) {
            room.visit(permit);
        }
        drop(place);
    });
    together(all);
    room.is_left_as_it_was();
}

/// A place that is dropped without a look, also one for several slots.
pub(crate) fn abandoned<const N: usize>(slots: usize, weight: usize) {
    let room = Room::new(slots);
    let mut all = [(); N].map(|()| at(&room, |room| room.visit(room.semaphore.acquire())));
    all[0] = at(&room, move |room| drop(room.semaphore.enter_many(weight)));
    together(all);
    room.is_left_as_it_was();
}

/// A thread that waits for so long, and then goes; or it asks again, in the same place.
pub(crate) fn late<const N: usize>(slots: usize, again: bool) {
    sync::time_is_up_after(1);
    let room = Room::new(slots);
    let mut all = [(); N].map(|()| at(&room, |room| room.visit(room.semaphore.acquire())));
    all[0] =
        at(&room, move |room| match room.semaphore.enter().wait_timeout(Duration::from_secs(1)) {
            Ok(permit) => room.visit(permit),
            Err(place) if again => room.visit(place.wait()),
            Err(place) => drop(place),
        });
    together(all);
    room.is_left_as_it_was();
}

/// A holder that panics.
pub(crate) fn panics<const N: usize>(slots: usize) {
    let room = Room::new(slots);
    let mut all = [(); N].map(|()| at(&room, |room| room.visit(room.semaphore.acquire())));
    all[0] = at(&room, |room| {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _permit = room.semaphore.acquire();
            resume_unwind(Box::new("on purpose")); // as a panic does, and prints nothing
        }));
        assert!(caught.is_err());
    });
    together(all);
    room.is_left_as_it_was();
}

/// Comes, and visits if it goes in.
type Visitor = fn(&barging::Semaphore, &dyn Fn(barging::Permit<'_>));

/// Threads where newcomers may barge, the last of them a task that waits; one may go, at any time.
pub(crate) fn barges<const N: usize>(slots: usize, each: usize, one_goes: bool) {
    let room = Arc::new((barging::Semaphore::new(slots), AtomicUsize::new(0)));
    assert_eq!(room.0.available(), slots);
    assert_eq!(room.0.waiters(), 0);
    let visit = move |room: &(barging::Semaphore, AtomicUsize), permit: barging::Permit<'_>| {
        assert!(room.1.fetch_add(1, SeqCst) < slots, "one too many");
        let _ = room.0.available(); // others may come here
        room.1.fetch_sub(1, SeqCst);
        drop(permit);
    };
    let act = |act: Visitor| {
        let room = Arc::clone(&room);
        Box::new(move || (0..each).for_each(|_| act(&room.0, &|permit| visit(&room, permit))))
            as Box<dyn FnOnce() + Send>
    };
    let mut all = [(); N].map(|()| act(|semaphore, visit| visit(semaphore.acquire())));
    all[N - 1] = act(|semaphore, visit| visit(block_on(pin!(semaphore.enter()))));
    if one_goes {
        all[0] = act(|semaphore, visit| {
            let mut place = semaphore.enter();
            let waker = Waker::from(Arc::new(Woken::default()));
            if let Poll::Ready(permit) = poll(Pin::new(&mut place), &waker) {
                visit(permit);
            }
        });
    }
    together(all);
    assert_eq!((room.0.available(), room.0.waiters()), (slots, 0), "slots free, tickets in line");
}

/// Each has the value for itself, and sees what the one before has done; the first only reads.
pub(crate) fn alone<const N: usize>() {
    let lock = Arc::new(GroupLock::new(Inside::default()));
    assert_eq!((lock.inside(), lock.waiters()), (0, 0));
    together(std::array::from_fn::<_, N, _>(|i| {
        let lock = Arc::clone(&lock);
        let act = move || {
            if i == 0 { assert!(lock.lock(1).visits() < N) } else { lock.lock_alone().visit() }
        };
        Box::new(act) as Box<dyn FnOnce() + Send>
    }));
    assert_eq!(lock.lock_alone().visits(), N - 1);
}

/// One of two sessions, or alone, in turn; the last of them a task. One may go, at any time.
pub(crate) fn sessions<const N: usize>(each: usize, batching: u32, one_goes: bool) {
    /// Sixteen bits for each of the two sessions, and for those alone: how many are inside.
    fn visit(inside: &AtomicUsize, lock: &GroupLock<Inside>, who: usize) {
        let one = 1 << (16 * (who % 3));
        let now = inside.fetch_add(one, SeqCst) + one;
        assert_eq!(now & !(one * 0xffff), 0, "two sessions");
        let _ = lock.inside(); // others may come here
        inside.fetch_sub(one, SeqCst);
    }
    let room = Arc::new((GroupLock::batching(Inside::default(), batching), AtomicUsize::new(0)));
    assert_eq!((room.0.inside(), room.0.waiters()), (0, 0));
    let all = std::array::from_fn::<_, N, _>(|i| {
        let room = Arc::clone(&room);
        let act = move || {
            for who in (i..).step_by(N).take(each) {
                let (lock, inside) = (&room.0, &room.1);
                match (who % 3, i) {
                    (2, _) => {
                        let mut alone = lock.lock_alone();
                        visit(inside, lock, who);
                        alone.visit();
                    }
                    (session, 0) if one_goes => {
                        let mut place = lock.enter(session as u32);
                        let waker = Waker::from(Arc::new(Woken::default()));
                        if let Poll::Ready(_guard) = poll(Pin::new(&mut place), &waker) {
                            visit(inside, lock, who);
                        }
                    }
                    (session, last) if last == N - 1 => {
                        let guard = block_on(pin!(lock.enter(session as u32)));
                        visit(inside, lock, who);
                        drop(guard);
                    }
                    (session, _) => {
                        let guard = lock.lock(session as u32);
                        visit(inside, lock, who);
                        drop(guard);
                    }
                }
            }
        };
        Box::new(act) as Box<dyn FnOnce() + Send>
    });
    together(all);
    assert_eq!((room.0.inside(), room.0.waiters()), (0, 0));
    let alone = (0..N * each).filter(|who| who % 3 == 2).count();
    assert_eq!(room.0.lock_alone().visits(), alone);
}
