//! The mutex, by itself and through `lock_api`.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use doorway::{Mutex, RawMutex};

const SHORT: Duration = Duration::from_millis(5);

#[test]
fn no_count_is_lost() {
    let mutex = Mutex::new(0_u64);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..5_000).for_each(|_| *mutex.lock() += 1));
        }
    });
    assert_eq!(mutex.into_inner(), 40_000);
}

/// A guard may go to another thread, and a place, too.
#[test]
fn guards_and_places_can_be_sent() {
    let mutex = Arc::new(Mutex::new(String::new()));
    let guard = Arc::clone(&mutex).enter_owned().wait();
    let place = Arc::clone(&mutex).enter_owned();
    let waits = thread::spawn(move || place.wait().push('b'));
    thread::spawn(move || {
        let mut guard = guard;
        guard.push('a');
    })
    .join()
    .expect("it ends");
    waits.join().expect("it ends");
    assert_eq!(*mutex.lock(), "ab");
}

#[test]
fn unsized_values_and_what_is_shown() {
    let mut boxed: Box<Mutex<[i32]>> = Box::new(Mutex::new([1, 2, 3]));
    boxed.get_mut()[0] = 7;
    assert_eq!(format!("{boxed:?}"), "Mutex { value: [7, 2, 3], waiters: 0 }");
    let guard = boxed.lock();
    let place = boxed.enter();
    assert_eq!(format!("{boxed:?}"), "Mutex { value: <taken>, waiters: 1 }");
    assert!(boxed.try_lock().is_none());
    drop((guard, place));
    assert_eq!(boxed.try_lock().expect("it is free")[1], 2);
}

/// One line for all: who comes by `lock_api` does not overtake, and gives its place up when its
/// time is over.
#[test]
fn lock_api_works_as_it_says() {
    let mutex = lock_api::Mutex::<RawMutex, _>::new(0);
    let first = mutex.lock();
    assert!(mutex.is_locked() && mutex.try_lock().is_none());
    let begin = Instant::now();
    assert!(mutex.try_lock_for(SHORT).is_none() && begin.elapsed() >= SHORT);
    lock_api::MutexGuard::unlock_fair(first);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    *mutex.lock() += 1;
                    mutex
                        .try_lock_for(Duration::from_micros(20))
                        .into_iter()
                        .for_each(|mut guard| *guard += 0);
                }
            });
        }
    });
    assert!(mutex.try_lock_for(Duration::MAX).is_some() && !mutex.is_locked());
    assert_eq!(mutex.into_inner(), 16_000);
}
