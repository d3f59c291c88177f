//! Eight clients: exclusion, order and slots, as the judge sees them.
//!
//!     DOORWAY_ETCD_PASSAGES=2000 cargo test --package doorway-etcd --test etcd -- order --nocapture

use super::*;
use crate::kit::worker::Random;

const CLIENTS: usize = 8;

async fn eight(which: Which) -> Account {
    let passages =
        env::var("DOORWAY_ETCD_PASSAGES").map_or(120, |text| text.parse().expect("a number"));
    let _busy = BUSY.lock().await;
    let cluster = Cluster::start(1);
    let notes = Notes::here();
    let workers = clients(&config(&cluster.endpoints()), which, CLIENTS, &notes).await;
    let started = Instant::now();
    let work = workers.iter().cloned().map(|worker| {
        tokio::spawn(async move {
            let mut random = Random(0x5eed ^ (worker.who as u64 + 1) << 32);
            for _ in 0..passages {
                worker.passage(&mut random).await.expect("nothing stands in the way");
            }
        })
    });
    for work in work.collect::<Vec<_>>() {
        if let Err(error) = work.await {
            let history = cluster.gateway().history("/").expect("it can be read");
            panic!("{error}; the judge says {:?}", judge(&history, LOCK, &tickets(&history, LOCK)));
        }
    }
    let took = started.elapsed();
    // While all clients are there: with them their places would go.
    let account = judged_with(&cluster.gateway(), which, &notes);
    assert_eq!(account.places, CLIENTS * passages);
    assert_eq!(account.lost, 0, "everybody said that it was out");
    assert!(account.passages * 10 > account.places * 8, "most went in: {account:?}");
    println!("{which:?}: {account:?}, {:.0} places/s", account.places as f64 / took.as_secs_f64());
    drop(workers);
    account
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_at_a_time() {
    let account = eight(Which::Mutex).await;
    assert_eq!(account.most_inside, 1);
    assert!(account.longest_line > 4, "there was a line: {account:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn four_at_a_time() {
    let account = eight(Which::Semaphore(4)).await;
    assert!((2..=4).contains(&account.most_inside), "{account:?}");
    assert!(account.longest_line > 4, "there was a line: {account:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_of_one_session() {
    let account = eight(Which::Group(1)).await;
    assert!(account.most_inside > 2, "they were in together: {account:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_of_two_sessions() {
    let account = eight(Which::Group(2)).await;
    assert!(account.most_inside > 1, "some were in together: {account:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_of_eight_sessions() {
    let account = eight(Which::Group(8)).await;
    assert!(account.longest_line > 4, "there was a line: {account:?}");
}
