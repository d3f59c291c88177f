//! Every algorithm as a lock: threads, seats, places that are left, sizes that are refused.

#[path = "../../doorway-core/tests/common/mod.rs"]
mod common;

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};

use common::{Room, requests, sizes};
use doorway::papers::{
    Arena, Bakery, BlackWhiteBakery, Fenced, GroupBakery, KBakery, Lock, Mcs, NoSeat, Own, Paper,
    Queue, Session, Size, Unfit, YangAnderson, room,
};
use doorway_core::{Request, for_each_algorithm};

/// All seats at once, each held by a thread that makes so many passages, gives the seat back and
/// claims one anew. That it returns says that nobody is left waiting.
fn crowd<A, S>(lock: Result<Lock<A, S>, Unfit>, passages: u64)
where
    A: Paper<S::Word> + Sync,
    S: Arena + Sync,
{
    const CLAIMS: u64 = 3;
    let lock = lock.unwrap_or_else(|unfit| panic!("{unfit}"));
    let size = lock.size();
    let (room, start) = (Room::new(size), Barrier::new(size.n));
    thread::scope(|scope| {
        for thread in 0..size.n {
            let (lock, room, start) = (&lock, &room, &start);
            scope.spawn(move || {
                for _ in 0..CLAIMS {
                    start.wait(); // as many threads as seats, and all are free
                    let mut seat = lock.seat().expect("a seat for everybody");
                    for request in requests::<A::Asks>(size, thread).take(passages as usize) {
                        let session = request.session();
                        let _inside = seat.lock_for(request).expect("it is offered");
                        room.visit(session, 0);
                    }
                    drop(seat);
                    start.wait();
                }
            });
        }
    });
    assert_eq!(room.complaint(size.n as u64 * CLAIMS * passages), None, "{}, {size}", A::NAME);
}

fn contend<A: Paper<AtomicU64> + Sync>(n: usize, passages: u64) {
    for size in sizes::<A>(n) {
        crowd(Lock::<A>::with_size(size), passages);
    }
}

macro_rules! contenders {
    ($($algorithm:ty),* $(,)?) => { [$(contend::<$algorithm> as fn(usize, u64)),*] };
}

#[test]
fn every_algorithm_is_a_lock() {
    for contend in for_each_algorithm!(contenders) {
        contend(2, 2_000);
        contend(6, 200);
    }
}

#[test]
fn reads_and_writes_are_enough() {
    crowd(Lock::<Bakery, Own<Fenced>>::new(4), 2_000);
    crowd(Lock::<BlackWhiteBakery, Own<Fenced>>::new(4), 2_000);
    crowd(Lock::<YangAnderson, Own<Fenced>>::new(4), 2_000);
    crowd(Lock::<KBakery, Own<Fenced>>::with_size(Size::slots(4, 2)), 2_000);
    crowd(Lock::<GroupBakery, Own<Fenced>>::with_size(Size::group(4, 2)), 2_000);
}

#[test]
fn a_seat_has_one_holder() {
    let lock = Lock::<Bakery>::new(2).expect("it fits");
    let first = lock.seat().expect("nobody is there");
    let second = lock.seat().expect("one is free");
    assert_eq!((first.id(), second.id()), (0, 1));
    let full = lock.seat().expect_err("both are taken");
    assert_eq!(full, NoSeat::Full { name: "bakery", n: 2 });
    assert_eq!(
        full.to_string(),
        "bakery: all 2 seats are taken; drop one or make the lock with a larger n"
    );
    let taken = lock.claim(1).expect_err("it is taken");
    assert_eq!(
        taken.to_string(),
        "bakery: seat 1 is taken; claim another or drop the one that has it"
    );
    drop(first);
    assert_eq!(lock.claim(1).expect_err("it is taken"), NoSeat::Taken { name: "bakery", p: 1 });
    assert_eq!(lock.claim(0).expect("it is free again").id(), 0);
    let beyond = lock.claim(2).expect_err("there are two");
    assert_eq!(
        beyond.to_string(),
        "bakery: there is no seat 2, as they go from 0 to 1; make the lock with a larger n"
    );
}

/// The registers after five passages from seat 0, by as many holders one after the other or by one.
fn after_five_passages(holders: usize) -> Vec<u64> {
    let size = Size::slots(2, 1);
    let (words, _) = room::<KBakery>(size).expect("it fits");
    let arena: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
    let lock = Lock::<KBakery, &[AtomicU64]>::lay_out(size, &arena).expect("it fits");
    for _ in 0..holders {
        let mut seat = lock.claim(0).expect("it is free");
        (0..5 / holders).for_each(|_| drop(seat.lock()));
    }
    arena.iter().map(|word| word.load(SeqCst)).collect()
}

/// What an algorithm keeps goes with the seat to the next holder: here the last ticket, which grows
/// with each passage.
#[test]
fn a_seat_keeps_what_the_algorithm_keeps() {
    assert_eq!(after_five_passages(5), after_five_passages(1));
}

#[test]
fn who_panics_inside_leaves() {
    let lock = Lock::<Bakery>::new(2).expect("it fits");
    let mut seat = lock.claim(0).expect("it is free");
    let panicked = panic::catch_unwind(AssertUnwindSafe(|| {
        let _inside = seat.lock();
        panic::resume_unwind(Box::new("inside")); // a panic without a word on standard error
    }));
    assert!(panicked.is_err());
    drop(lock.claim(1).expect("it is free").lock());
    drop(seat.lock());
}

#[test]
fn a_forgotten_guard_is_a_crash() {
    let lock = Lock::<Bakery>::new(2).expect("it fits");
    let mut seat = lock.claim(0).expect("it is free");
    std::mem::forget(seat.lock());
    let message = panic::catch_unwind(AssertUnwindSafe(|| drop(seat.lock())))
        .expect_err("it is still inside");
    let message = message.downcast_ref::<String>().map(String::as_str);
    assert_eq!(
        message,
        Some("bakery: seat 0 is still in the passage whose place or guard was forgotten")
    );
    drop(seat);
    assert_eq!(
        lock.claim(0).expect_err("nobody knows where it was"),
        NoSeat::Taken { name: "bakery", p: 0 }
    );
}

/// A place that is dropped while somebody is inside is left: at once if the claims say so, and not
/// before its turn if not.
fn leaves<A: Paper<AtomicU64> + Sync>() {
    let lock = Lock::<A>::with_size(A::CLAIMS.problem.size(2, 1, 2)).expect("it fits");
    let all = A::Asks::all(lock.size());
    let (mine, other) = (all[0].clone(), all[all.len() - 1].clone());
    let mut holds = lock.claim(0).expect("it is free");
    let inside = holds.lock_for(mine).expect("it is offered");
    let (left, (tell, hear)) = (AtomicBool::new(false), mpsc::channel());
    thread::scope(|scope| {
        let (lock, left) = (&lock, &left);
        scope.spawn(move || {
            let mut waits = lock.claim(1).expect("it is free");
            let place = waits.enter_for(other.clone()).expect("it is offered");
            tell.send("through the doorway").expect("somebody hears it");
            drop(place);
            left.store(true, SeqCst);
            tell.send("left").expect("somebody hears it");
            drop(waits.lock_for(other)); // who left may come back
        });
        hear.recv().expect("it goes through its doorway");
        if A::CLAIMS.abandons {
            hear.recv().expect("it leaves"); // or this test does not end
        } else {
            thread::sleep(Duration::from_millis(20)); // if it left, it would have by now
            assert!(!left.load(SeqCst), "{} left before its turn", A::NAME);
        }
        drop(inside);
    });
}

macro_rules! leave {
    ($($algorithm:ty),* $(,)?) => { [$(leaves::<$algorithm> as fn()),*] };
}

#[test]
fn a_dropped_place_is_left_at_once_or_in_its_turn() {
    for leaves in for_each_algorithm!(leave) {
        leaves();
    }
}

/// Nobody waits for a place that was left, and who left it when it need not have waited did no
/// harm.
#[test]
fn nobody_waits_for_a_place_that_was_left() {
    let lock = Lock::<Queue>::with_size(Size::slots(3, 1)).expect("it fits");
    let [mut first, mut second, mut third] = [0, 1, 2].map(|p| lock.claim(p).expect("it is free"));
    drop(first.enter());
    let inside = first.lock();
    let (place, behind) = (second.enter(), third.enter());
    drop(place);
    drop(inside);
    drop(behind.wait());
    drop(second.lock());
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let unfit = |lock: Result<(), Unfit>| lock.expect_err("it does not fit").to_string();
    let none = unfit(Lock::<Bakery>::new(0).map(drop));
    assert_eq!(none, "bakery needs at least one process: try -n 2");
    let slots = unfit(Lock::<Mcs>::with_size(Size::slots(3, 2)).map(drop));
    assert_eq!(slots, "mcs is a mutex: k is 1, not 2; leave -k out");
    let slots = unfit(Lock::<KBakery>::with_size(Size::slots(2, 3)).map(drop));
    assert_eq!(slots, "k-bakery with k = 3: k goes from 1 to n, which is 2");
    let sessions = unfit(Lock::<GroupBakery>::with_size(Size::group(2, 0)).map(drop));
    assert_eq!(sessions, "group-bakery needs something to ask for: try --sessions 2");
}

#[test]
fn sessions_that_are_not_there_are_refused() {
    let lock = Lock::<GroupBakery>::with_size(Size::group(2, 3)).expect("it fits");
    let mut seat = lock.seat().expect("nobody is there");
    for session in [Session::NONE, Session(4)] {
        let none = seat.lock_for(session).expect_err("there are three").to_string();
        let fix = "as they go from 1 to 3; make the lock with more of them";
        assert_eq!(none, format!("group-bakery: there is no session {session:?}, {fix}"));
    }
    drop(seat.lock_for(Session(3)).expect("it is offered"));
}
