//! More slots and fewer, drained and resumed and removed, while eight clients come and go.

use std::sync::atomic::Ordering::SeqCst;

use super::*;
use crate::kit::{history::Change, notes::What};

/// How many went in so far.
fn went_in(notes: &Notes) -> usize {
    notes.all().iter().filter(|note| matches!(note.what, What::In { .. })).count()
}

async fn goes_on(notes: &Notes) {
    let before = went_in(notes);
    until(Duration::from_secs(20), "a hundred more went in", || went_in(notes) >= before + 100)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lock_is_changed_while_it_is_used() {
    let _busy = BUSY.lock().await;
    let (cluster, notes, which) = (Cluster::start(1), Notes::here(), Which::Semaphore(4));
    let (gateway, workers) =
        (cluster.gateway(), clients(&config(&cluster.endpoints()), which, 8, &notes).await);
    let lock = workers[0].store.lock(LOCK).await.expect("it is there");
    let enough = Arc::new(AtomicBool::new(false));
    let work = set_to_work(&workers, &enough);
    goes_on(&notes).await;
    for slots in [1, 6, 2, 4] {
        lock.set_slots(slots).await.expect("it is changed");
        goes_on(&notes).await;
        assert_eq!(lock.status().await.expect("it is there").slots, Some(slots));
    }
    for _ in 0..3 {
        lock.drain().await.expect("it is drained");
        let held = || gateway.keys(&format!("/doorway/{LOCK}/s/")).expect("it can be read").len();
        until(Duration::from_secs(20), "nobody holds", || held() == 0).await;
        let drained = went_in(&notes);
        until(Duration::from_secs(20), "all wait", || {
            gateway.keys(&format!("/doorway/{LOCK}/q/")).expect("it can be read").len()
                == workers.len()
        })
        .await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(went_in(&notes), drained, "nobody is let in");
        let busy = lock.remove().await.expect_err("they wait");
        assert!(matches!(busy, Error::Busy { holders: 0, waiting: 8, .. }), "{busy}");
        lock.resume().await.expect("it is resumed");
        goes_on(&notes).await;
    }
    enough.store(true, SeqCst);
    for work in work {
        let errors = work.await.expect("nobody panics");
        assert!(errors.is_empty(), "{errors:?}");
    }
    let account = judged_with(&gateway, Which::Semaphore(6), &notes);
    assert_eq!((account.lost, account.most_inside > 4), (0, true), "{account:?}");
    lock.remove().await.expect("nobody uses it");
    let Err(removed) = workers[1].enter(0).await else { panic!("it is removed") };
    assert!(matches!(removed, Error::Removed(_)), "{removed}");
    // It can be made again, and be something else.
    let notes = Notes::here();
    let worker = Worker::open(config(&cluster.endpoints()), LOCK, Which::Mutex, 0, &notes)
        .await
        .expect("it is made");
    let place = worker.enter(0).await.expect("it enters");
    let permit = worker.go_in(place).await.expect("it is let in");
    worker.leave(permit).await.expect("it leaves");
    judged(&gateway);
}

/// What the judge is shown is there to be judged: slots are keys, and the rule is one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_keys_are_those_that_the_judge_knows() {
    let (cluster, notes) = (Cluster::start(1), Notes::here());
    let worker = Worker::open(config(&cluster.endpoints()), LOCK, Which::Semaphore(3), 0, &notes)
        .await
        .expect("it opens");
    for _ in 0..2 {
        let place = worker.enter(0).await.expect("it enters");
        let permit = worker.go_in(place).await.expect("it is let in");
        worker.leave(permit).await.expect("it leaves");
    }
    let history = cluster.gateway().history(&format!("/doorway/{LOCK}/")).expect("it can be read");
    let count = |part: &str, put: bool| {
        let key = format!("/doorway/{LOCK}/{part}");
        history
            .iter()
            .filter(|e| e.key.starts_with(&key) && matches!(e.change, Change::Put { .. }) == put)
            .count()
    };
    assert_eq!((count("cfg", true), count("cfg", false)), (1, 0));
    for part in ["q/", "s/"] {
        assert_eq!((count(part, true), count(part, false)), (2, 2), "{part} {history:?}");
    }
    assert!(count("c/", true) >= 4 && count("c/", false) == 0, "{history:?}");
}
