//! What is promised where newcomers may barge: less order, and nothing else.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use doorway::{Mutex, Semaphore};

#[test]
fn newcomers_overtake_and_the_line_keeps_its_order() {
    let semaphore = Semaphore::barging(1);
    let permit = semaphore.acquire();
    let (first, second) = (semaphore.enter(), semaphore.enter());
    assert_eq!((semaphore.available(), semaphore.waiters()), (0, 2));
    drop(permit);
    drop(semaphore.try_acquire().expect("it lies open"));
    drop(semaphore.enter().wait());
    let second = second.wait_timeout(Duration::ZERO).expect_err("another is first");
    drop(first.wait());
    drop(second.wait());
    assert_eq!((semaphore.available(), semaphore.waiters()), (1, 0));
}

/// Who is first and has looked in vain twice is not overtaken again.
#[test]
fn the_first_in_line_is_not_overtaken_for_ever() {
    let semaphore = Semaphore::barging(1);
    let permit = semaphore.acquire();
    let mut first = pin!(semaphore.enter());
    let mut look = || first.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(look().is_pending());
    drop(permit);
    let overtakes = semaphore.try_acquire().expect("it lies open");
    assert!(look().is_pending());
    drop(overtakes);
    assert!(semaphore.try_acquire().is_none(), "it is reserved");
    assert!(matches!(look(), Poll::Ready(_)));
    drop(semaphore.try_acquire().expect("it lies open again"));
}

#[test]
fn nothing_is_lost() {
    for k in [1, 3] {
        let semaphore = Semaphore::barging(k);
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for i in 0..8 {
                let (semaphore, inside, most) = (&semaphore, &inside, &most);
                scope.spawn(move || {
                    for j in 0..500 {
                        let place = semaphore.enter();
                        let limit = if (i + j) % 3 == 0 {
                            Duration::from_micros(20)
                        } else {
                            Duration::MAX
                        };
                        // Who is late goes.
                        let Ok(_permit) = place.wait_timeout(limit) else { continue };
                        most.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                        thread::yield_now();
                        inside.fetch_sub(1, SeqCst);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), k, "all slots are used, and no more");
        assert_eq!((semaphore.available(), semaphore.waiters()), (k, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mutex_for_threads_and_tasks() {
    let mutex = Arc::new(Mutex::barging(0));
    let tasks: Vec<_> = (0..8)
        .map(|i| {
            let mutex = Arc::clone(&mutex);
            if i % 2 == 0 {
                tokio::spawn(async move {
                    for _ in 0..1_000 {
                        let mut value = mutex.lock_async().await;
                        *value += 1;
                        tokio::task::yield_now().await;
                    }
                })
            } else {
                tokio::task::spawn_blocking(move || (0..1_000).for_each(|_| *mutex.lock() += 1))
            }
        })
        .collect();
    for task in tasks {
        task.await.expect("it ends");
    }
    assert_eq!(*mutex.lock(), 8_000);
}
