//! Requests that arrive once more, when nobody expects them.

use super::*;
use crate::kit::{
    proxy::Proxy,
    worker::{Random, TTL},
};

/// All that two clients have sent arrives a second time, when one of them holds and the other
/// waits. Nothing comes of it, and they go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn late_duplicates_leave_no_ghosts() {
    let (cluster, notes, which) = (Cluster::start(1), Notes::here(), Which::Mutex);
    let (gateway, proxy) = (cluster.gateway(), Proxy::to(cluster.addresses()[0]).await);
    let workers = clients(&config(&[proxy.endpoint()]), which, 2, &notes).await;
    let mut random = Random(0x5eed);
    for _ in 0..2 {
        for worker in &workers {
            for _ in 0..20 {
                worker.passage(&mut random).await.expect("nothing stands in the way");
            }
        }
        let holder = workers[0].enter(0).await.expect("it enters");
        let holder = workers[0].go_in(holder).await.expect("it is let in");
        let waiter = workers[1].enter(0).await.expect("it enters");
        let (before, handled) =
            (gateway.history("/").expect("it can be read"), gateway.transactions());
        let (sent, answered) = proxy.repeat_everything().await.expect("the node listens");
        let (after, repeated) =
            (gateway.history("/").expect("it can be read"), gateway.transactions() - handled);
        println!("{sent} bytes sent again, {repeated} transactions, {answered} bytes answered");
        assert!(repeated > 100, "they were carried out");
        assert_eq!(before.len(), after.len(), "{:?}", &after[before.len()..]);
        workers[0].leave(holder).await.expect("it leaves");
        let waiter = workers[1].go_in(waiter).await.expect("it is let in");
        workers[1].leave(waiter).await.expect("it leaves");
    }
    // And once more when nobody is in line.
    proxy.repeat_everything().await.expect("the node listens");
    judged_with(&gateway, which, &notes);
    // When the clients are gone, their counters are, too. What comes now may bring back a lease,
    // and places on it, but nobody keeps it alive.
    for worker in &workers {
        worker.store.close().await.expect("it gives everything back");
    }
    proxy.repeat_everything().await.expect("the node listens");
    let line = || gateway.keys(&format!("/doorway/{LOCK}/q/")).expect("it can be read").len();
    println!("{} places came back from the dead", line());
    until(TTL + Duration::from_secs(2), "nobody is in line", || line() == 0).await;
    judged(&gateway);
}
