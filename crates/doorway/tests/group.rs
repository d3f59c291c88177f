//! Group locks: who shares, who excludes, in which order, and that nothing is lost.

use std::{
    sync::{
        Arc,
        atomic::{
            AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
        mpsc,
    },
    thread,
    time::Duration,
};

use doorway::{GroupLock, KeyedGroupLock, RawRwLock};

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(5);

#[test]
fn a_session_is_shared_and_excludes_the_others() {
    let lock = GroupLock::new(5);
    let (one, another) = (lock.lock(1), lock.lock(1));
    assert_eq!((*one, *another, lock.inside(), lock.session()), (5, 5, 2, Some(1)));
    assert!(lock.try_lock(2).is_none() && lock.try_lock_alone().is_none());
    drop(one);
    assert!(lock.try_lock(2).is_none());
    drop(another);
    assert_eq!((lock.inside(), lock.session()), (0, None));
    *lock.try_lock_alone().expect("nobody is inside") += 1;
    assert_eq!(*lock.try_lock(2).expect("nobody is inside"), 6);
    assert_eq!(lock.into_inner(), 6);
}

#[test]
fn a_session_of_ones_own_is_nobody_elses() {
    let mut lock = GroupLock::new(0);
    {
        let alone = lock.lock_alone();
        assert!(lock.try_lock_alone().is_none() && lock.try_lock(0).is_none());
        assert_eq!((lock.inside(), lock.session()), (1, None));
        let (second, third) = (lock.enter_alone(), lock.enter_alone());
        drop(alone);
        assert!(second.is_enabled() && !third.is_enabled());
        drop(second);
        assert!(third.is_enabled());
    }
    *lock.get_mut() += 1;
    assert_eq!(*lock.lock(3), 1);
}

/// Who conflicts goes in in the order in which it came; who does not goes in together with those
/// right before it.
#[test]
fn conflicting_sessions_come_in_order() {
    let lock = GroupLock::new(());
    let inside = lock.lock(1);
    let line = [2, 2, 1, 2].map(|session| lock.enter(session));
    let may = |line: &[doorway::group::Place<'_, ()>]| {
        line.iter().map(|place| place.is_enabled()).collect::<Vec<_>>()
    };
    assert_eq!((may(&line), lock.waiters()), (vec![false; 4], 4));
    // Nobody overtakes them, the session that is on included.
    assert!(lock.try_lock(1).is_none());
    drop(inside);
    assert_eq!((may(&line), lock.inside()), (vec![true, true, false, false], 2));
    let [first, second, third, fourth] = line;
    drop(first.wait());
    assert!(!third.is_enabled());
    drop(second.wait());
    assert!(third.is_enabled() && !fourth.is_enabled());
    drop(third.wait());
    drop(fourth.wait());
    assert_eq!((lock.inside(), lock.waiters()), (0, 0));
}

/// Who leaves the line lets those through whom it kept apart.
#[test]
fn a_place_that_is_dropped_keeps_nobody_waiting() {
    let lock = GroupLock::new(());
    drop((lock.enter(2), lock.enter_alone()));
    assert_eq!((lock.inside(), lock.waiters()), (0, 0));
    let inside = lock.lock(1);
    let (other, same) = (lock.enter(2), lock.enter(1));
    assert!(!same.is_enabled());
    drop(other);
    assert!(same.is_enabled());
    // One that may go in and does not counts as inside until it is dropped.
    drop(inside);
    assert!(lock.try_lock(2).is_none());
    drop(same);
    assert!(lock.try_lock(2).is_some());
}

#[test]
fn who_is_late_keeps_its_place() {
    let lock = GroupLock::new(());
    let inside = lock.lock(1);
    let place = lock.enter(2).wait_timeout(SHORT).expect_err("session 1 is on");
    let behind = lock.enter(3);
    let place = place.wait_timeout(Duration::ZERO).expect_err("still");
    drop(inside);
    let guard = place.wait_timeout(LONG).expect("it is its turn");
    assert!(!behind.is_enabled());
    drop(guard);
    drop(behind.wait_timeout(LONG).expect("it is its turn"));
}

#[test]
fn batching_lets_so_many_pass() {
    let lock = GroupLock::batching((), 2);
    let inside = lock.lock(1);
    let waits = lock.enter(2);
    let (one, two, three) = (lock.enter(1), lock.enter(1), lock.enter(1));
    assert!(one.is_enabled() && two.is_enabled() && !three.is_enabled() && !waits.is_enabled());
    // When the session changes, those who wait for it go in together, as far as the others bear it.
    let (later, last) = (lock.enter(2), lock.enter(2));
    drop((inside, one, two));
    assert!(waits.is_enabled() && later.is_enabled() && last.is_enabled() && !three.is_enabled());
    drop((waits, later, last));
    assert!(three.is_enabled());
}

/// Sleepers are woken: a whole session at once.
#[test]
fn a_session_is_woken_together() {
    let (lock, (tell, told)) = (Arc::new(GroupLock::new(())), mpsc::channel());
    let inside = lock.lock(1);
    let all = Arc::new(std::sync::Barrier::new(4));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let place = Arc::clone(&lock).enter_owned(2);
            let (tell, all) = (tell.clone(), Arc::clone(&all));
            thread::spawn(move || {
                let guard = place.wait();
                all.wait(); // four of them, inside at the same time
                tell.send(()).expect("it is waited for");
                drop(guard);
            })
        })
        .collect();
    thread::sleep(SHORT);
    assert!(told.try_recv().is_err());
    drop(inside);
    for _ in 0..4 {
        told.recv_timeout(LONG).expect("it was woken");
    }
    threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
}

#[test]
fn tasks_and_threads_stand_in_one_line() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime");
    let lock = Arc::new(GroupLock::new(0));
    let inside = lock.lock(1);
    let mut task = Arc::clone(&lock).enter_alone_owned();
    let thread = Arc::clone(&lock).enter_owned(2);
    let thread = thread::spawn(move || *thread.wait());
    let task = runtime.spawn(async move {
        // A place survives a timeout.
        tokio::time::timeout(SHORT, &mut task).await.expect_err("session 1 is on");
        *task.await += 1;
    });
    thread::sleep(2 * SHORT);
    drop(inside);
    runtime.block_on(task).expect("it ends");
    assert_eq!(thread.join().expect("it ends"), 1); // it came after the task
}

#[test]
fn a_panic_poisons_nothing() {
    let lock = Arc::new(GroupLock::new(1));
    let panics = thread::spawn({
        let lock = Arc::clone(&lock);
        move || {
            let _alone = lock.lock_alone();
            panic!("on purpose");
        }
    });
    assert!(panics.join().is_err());
    assert_eq!(*lock.lock(1), 1);
}

#[test]
#[should_panic(expected = "any number but u32::MAX")]
fn one_number_is_no_session() {
    drop(GroupLock::new(()).lock(u32::MAX));
}

/// Never two sessions, up to everybody of one; a plain value is never seen half changed.
#[test]
fn threads_of_many_sessions() {
    for batching in [0, 3] {
        let lock = GroupLock::batching((0_u64, 0_u64), batching);
        let (on, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for p in 0..6_u32 {
                let (lock, on, most) = (&lock, &on, &most);
                scope.spawn(move || {
                    for i in 0..3000 {
                        if (p + i) % 7 == 0 {
                            let mut both = lock.lock_alone();
                            both.0 += 1;
                            thread::yield_now();
                            both.1 += 1;
                            continue;
                        }
                        let session = 1 + (p / 2 + i / 64) % 2;
                        let both = lock.lock(session);
                        let one = 1 << (16 * session);
                        let now = on.fetch_add(one, SeqCst) + one;
                        assert_eq!(now & !(0xffff << (16 * session)), 0, "two sessions");
                        most.fetch_max(now >> (16 * session), Relaxed);
                        assert_eq!(both.0, both.1);
                        if i % 16 == 0 {
                            thread::yield_now();
                        }
                        on.fetch_sub(one, SeqCst);
                    }
                });
            }
        });
        let alone = (0..6).map(|p| (0..3000).filter(|i| (p + i) % 7 == 0).count() as u64).sum();
        assert_eq!((lock.inside(), lock.waiters()), (0, 0));
        assert!(most.into_inner() > 1, "sessions were never shared");
        assert_eq!(lock.into_inner(), (alone, alone));
    }
}

#[test]
fn keys_are_sessions() {
    let lock = KeyedGroupLock::new(1);
    let (one, another) = (lock.lock("lisbon".to_string()), lock.lock("lisbon".to_string()));
    assert!(lock.try_lock("porto".to_string()).is_none());
    let (porto, faro) = (lock.enter("porto".to_string()), lock.enter("faro".to_string()));
    drop((one, another));
    assert!(porto.is_enabled() && !faro.is_enabled());
    drop(porto);
    assert_eq!(*faro.wait(), 1);
    *lock.lock_alone() += 1;
    assert_eq!(lock.into_inner(), 2);
}

/// A key lives as long as somebody uses it: not less, or two keys would have one number, nor more,
/// or they would pile up.
#[test]
fn keys_are_kept_as_long_as_they_are_used() {
    let lock = Arc::new(KeyedGroupLock::new(()));
    let key = |name| Arc::new(name);
    let (a, b) = (key("a"), key("b"));
    let guard = Arc::clone(&lock).enter_owned(Arc::clone(&a)).wait();
    let place = lock.enter(Arc::clone(&b));
    assert!(lock.try_lock(Arc::clone(&b)).is_none());
    assert_eq!((Arc::strong_count(&a), Arc::strong_count(&b)), (2, 2));
    drop(guard);
    assert_eq!((Arc::strong_count(&a), place.is_enabled()), (1, true));
    // The number of `a` is free; whoever gets it is another session than `b` all the same.
    assert!(lock.try_lock(key("c")).is_none());
    drop(place);
    assert_eq!(Arc::strong_count(&b), 1);
    assert!(lock.try_lock(key("c")).is_some());
}

#[test]
fn readers_and_a_writer_through_lock_api() {
    let lock = lock_api::RwLock::<RawRwLock, _>::new(1);
    let (one, another) = (lock.read(), lock.try_read().expect("readers share"));
    assert!(lock.try_write().is_none() && lock.is_locked() && !lock.is_locked_exclusive());
    assert!(lock.try_write_for(SHORT).is_none());
    drop(one);
    lock_api::RwLockReadGuard::unlock_fair(another);
    let mut write = lock.write();
    *write += 1;
    assert!(lock.is_locked_exclusive() && lock.try_read_for(SHORT).is_none());
    drop(write);
    // Who was late has left the line.
    assert_eq!(*lock.try_read().expect("nobody is inside or waits"), 2);
}
