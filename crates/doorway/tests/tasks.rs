//! The same promises where it is tasks that wait.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use doorway::Semaphore;
use tokio::time::timeout;

const SHORT: Duration = Duration::from_millis(5);

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn whoever_polled_last_is_woken() {
    let semaphore = Semaphore::new(1);
    let permit = semaphore.acquire();
    let mut place = pin!(semaphore.enter());
    let [first, last] = [(); 2].map(|()| Arc::new(Count::default()));
    for count in [&first, &last] {
        let waker = Waker::from(Arc::clone(count));
        assert!(place.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    drop(permit);
    assert_eq!([&first, &last].map(|count| count.0.load(SeqCst)), [0, 1]);
    assert_eq!(Arc::strong_count(&last), 1, "its waker is not kept");
    let waker = Waker::from(Arc::clone(&last));
    assert!(matches!(place.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_and_threads_stand_in_one_line() {
    let semaphore = Arc::new(Semaphore::new(1));
    let first = semaphore.acquire();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for i in 0..20 {
        let (place, order) = (Arc::clone(&semaphore).enter_owned(1), Arc::clone(&order));
        tasks.push(if i % 2 == 0 {
            tokio::spawn(async move {
                let _permit = place.await;
                order.lock().expect("nobody panics").push(i);
            })
        } else {
            tokio::task::spawn_blocking(move || {
                let _permit = place.wait();
                order.lock().expect("nobody panics").push(i);
            })
        });
    }
    tokio::time::sleep(SHORT).await;
    drop(first);
    for task in tasks {
        task.await.expect("it ends");
    }
    assert_eq!(*order.lock().expect("nobody panics"), (0..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_place_survives_a_timeout_and_a_cancelled_one_is_passed_over() {
    let semaphore = Semaphore::new(1);
    let permit = semaphore.acquire();
    let mut place = semaphore.enter();
    assert!(timeout(SHORT, &mut place).await.is_err(), "somebody is inside");
    assert!(timeout(SHORT, semaphore.enter()).await.is_err(), "and this one has gone");
    let later = semaphore.enter();
    drop(permit);
    assert!(place.is_enabled() && !later.is_enabled());
    drop(place.await);
    drop(later.await);
    assert_eq!((semaphore.available(), semaphore.waiters()), (1, 0));
}

/// Tokio's budget makes a task give way now and then. The order does not change by it.
#[tokio::test]
async fn a_mutex_serves_tasks_in_order() {
    let mutex = Arc::new(doorway::Mutex::new(Vec::new()));
    let first = mutex.lock();
    let tasks: Vec<_> = (0..500)
        .map(|i| {
            let place = Arc::clone(&mutex).enter_owned();
            tokio::spawn(async move { place.await.push(i) })
        })
        .collect();
    drop(first);
    for task in tasks {
        task.await.expect("it ends");
    }
    assert_eq!(*mutex.lock(), (0..500).collect::<Vec<_>>());
}
