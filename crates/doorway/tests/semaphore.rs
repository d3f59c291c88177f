//! What the semaphore promises: order, and that nothing is lost, whatever becomes of those in line.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use doorway::{
    Semaphore,
    semaphore::{OwnedPermit, OwnedPlace},
};

/// Longer than anybody waits who does not wait for ever.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(5);

fn owned(semaphore: &Arc<Semaphore>) -> OwnedPlace {
    Arc::clone(semaphore).enter_owned(1)
}

/// Waits on another thread until `inside` says that it is in.
fn waits(
    place: OwnedPlace,
    inside: impl FnOnce(OwnedPermit) + Send + 'static,
) -> thread::JoinHandle<()> {
    thread::spawn(move || inside(place.wait_timeout(LONG).expect("its turn comes")))
}

#[test]
fn they_go_in_as_they_came() {
    // At the beginning, and where the counter of places wraps around.
    for before in [0, (1 << 42) - 5, (1 << 41) - 5] {
        let semaphore = Arc::new(Semaphore::after(before, 1));
        let first = semaphore.acquire();
        let order = Arc::new(Mutex::new(Vec::new()));
        let places: Vec<_> = (0..20).map(|_| owned(&semaphore)).collect();
        // They begin to wait in the other order.
        let threads: Vec<_> = places
            .into_iter()
            .enumerate()
            .rev()
            .map(|(i, place)| {
                let order = Arc::clone(&order);
                waits(place, move |_permit| order.lock().expect("nobody panics").push(i))
            })
            .collect();
        assert_eq!((semaphore.available(), semaphore.waiters()), (0, 20));
        drop(first);
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        assert_eq!(
            *order.lock().expect("nobody panics"),
            (0..20).collect::<Vec<_>>(),
            "after {before}"
        );
        assert_eq!((semaphore.available(), semaphore.waiters()), (1, 0));
    }
}

#[test]
fn never_more_than_there_are_slots() {
    for k in [1, 2, 4] {
        let semaphore = Semaphore::new(k);
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let _permit = semaphore.acquire();
                        most.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                        thread::yield_now();
                        inside.fetch_sub(1, SeqCst);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), k, "all slots are used, and no more");
        assert_eq!(semaphore.available(), k);
    }
}

#[test]
fn who_tries_overtakes_nobody() {
    let semaphore = Semaphore::new(1);
    let permit = semaphore.try_acquire().expect("it is free");
    let place = semaphore.enter();
    assert!(semaphore.try_acquire().is_none());
    drop(permit);
    // The slot is the place's, though nobody has looked at the place yet.
    assert!(place.is_enabled());
    assert!(semaphore.try_acquire().is_none());
    drop(place.wait());
    assert!(semaphore.try_acquire().is_some());
}

#[test]
fn a_place_that_is_dropped_is_passed_over() {
    let semaphore = Arc::new(Semaphore::new(1));
    let permit = semaphore.acquire();
    let [before, gone, after] = [(); 3].map(|()| owned(&semaphore));
    // One that somebody has waited in already, too.
    let gone_later = owned(&semaphore).wait_timeout(SHORT).expect_err("somebody is inside");
    drop(gone);
    drop(permit);
    drop(before.wait());
    drop(gone_later);
    drop(after.wait_timeout(LONG).expect("its turn comes"));
    // And one whose turn has come.
    let permit = semaphore.acquire();
    let (enabled, next) = (semaphore.enter(), semaphore.enter());
    drop(permit);
    drop(enabled);
    drop(next.wait_timeout(LONG).expect("its turn comes"));
    assert_eq!((semaphore.available(), semaphore.waiters()), (1, 0));
}

#[test]
fn a_place_survives_a_timeout() {
    let semaphore = Semaphore::new(1);
    let permit = semaphore.acquire();
    let place = semaphore.enter().wait_timeout(SHORT).expect_err("somebody is inside");
    let later = semaphore.enter();
    drop(permit);
    assert!(place.is_enabled() && !later.is_enabled());
    let permit = place.wait_timeout(Duration::ZERO).expect("it is its turn");
    let later = later.wait_timeout(Duration::ZERO).expect_err("somebody is inside");
    drop(permit);
    drop(later.wait_timeout(Duration::MAX).expect("it is its turn"));
}

#[test]
fn a_holder_that_panics_gives_its_slot_back() {
    let semaphore = Semaphore::new(1);
    let panics = catch_unwind(AssertUnwindSafe(|| {
        let _permit = semaphore.acquire();
        panic!("on purpose");
    }));
    assert!(panics.is_err());
    assert_eq!(semaphore.available(), 1);
}

#[test]
fn a_heavy_place_is_not_overtaken_by_light_ones() {
    let semaphore = Arc::new(Semaphore::new(3));
    let (a, b) = (semaphore.acquire(), semaphore.acquire());
    let heavy = Arc::clone(&semaphore).enter_owned(3);
    let light = owned(&semaphore);
    assert!(
        !heavy.is_enabled() && !light.is_enabled(),
        "one slot is free, and the heavy one has it"
    );
    drop(a);
    assert!(!heavy.is_enabled());
    drop(b);
    assert!(heavy.is_enabled() && !light.is_enabled());
    let permit = heavy.wait();
    assert_eq!((permit.weight(), semaphore.available()), (3, 0));
    drop(permit);
    drop(light.wait());
    // One that goes keeps nobody waiting, though there never were as many slots.
    let (a, heavy) = (semaphore.acquire(), Arc::clone(&semaphore).enter_owned(9));
    let light = owned(&semaphore);
    assert!(!light.is_enabled());
    drop(heavy);
    assert!(light.is_enabled(), "two slots are free again");
    drop((a, light));
    assert_eq!((semaphore.available(), semaphore.waiters()), (3, 0));
}

#[test]
fn slots_can_be_added_and_forgotten() {
    let semaphore = Semaphore::new(0);
    let place = semaphore.enter();
    semaphore.add_slots(2);
    let permit = place.wait();
    assert_eq!((semaphore.slots(), semaphore.available()), (2, 1));
    permit.forget();
    assert_eq!((semaphore.slots(), semaphore.available()), (1, 1));
    assert!(catch_unwind(AssertUnwindSafe(|| semaphore.add_slots(usize::MAX))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| semaphore.enter_many(0))).is_err());
    assert_eq!((semaphore.slots(), semaphore.available()), (1, 1));
}

/// The word has room for so many who wait, and says so before there is none.
#[test]
fn a_line_has_an_end() {
    let semaphore = Semaphore::new(1);
    let permit = semaphore.acquire();
    let heavy = semaphore.enter_many(Semaphore::MOST / 2);
    let one_more = semaphore.enter_many(Semaphore::MOST);
    assert!(catch_unwind(AssertUnwindSafe(|| semaphore.enter())).is_err());
    let none_lost = Semaphore::MOST / 2 + Semaphore::MOST + 1;
    assert_eq!((semaphore.available(), semaphore.waiters()), (0, none_lost));
    drop((heavy, one_more, permit));
    assert_eq!((semaphore.available(), semaphore.waiters()), (1, 0));
}

#[test]
fn no_two_holders_have_the_same_number() {
    let semaphore = Semaphore::new(70);
    let taken: Vec<_> = (0..70).map(|_| AtomicBool::new(false)).collect();
    thread::scope(|scope| {
        for i in 0..80 {
            let (semaphore, taken) = (&semaphore, &taken);
            scope.spawn(move || {
                for _ in 0..100 {
                    let permit = semaphore.acquire();
                    if i % 3 == 0 {
                        continue; // who never asks
                    }
                    let slot = permit.slot();
                    assert_eq!(permit.slot(), slot);
                    assert!(!taken[slot].swap(true, SeqCst), "{slot} is somebody else's");
                    thread::yield_now();
                    taken[slot].store(false, SeqCst);
                }
            });
        }
    });
    assert_eq!(semaphore.acquire().slot(), 0, "the lowest that is free");
}
