//! Clients that are killed, stopped and cut off.

use serde_json::json;

use super::*;
use crate::kit::{
    gateway::{after, bytes},
    history::Mark,
    notes::What,
    process::Process,
    proxy::Proxy,
    worker::TTL,
};

/// What is promised after a kill: the slot is back after the lease and a second.
const BACK: Duration = Duration::from_secs(TTL.as_secs() + 1);
/// For what takes no time unless something is wrong.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_slot_of_a_killed_holder_comes_back() {
    let (cluster, notes) = (Cluster::start(1), Notes::here());
    let endpoints = cluster.endpoints();
    let mut holder = Process::start(&endpoints, LOCK, Which::Mutex, 0, &notes);
    holder.waits_for("ready", SOON);
    holder.tell("enter");
    holder.tell("in");
    holder.waits_for("in", SOON);
    let next =
        Worker::open(config(&endpoints), LOCK, Which::Mutex, 1, &notes).await.expect("it opens");
    let place = next.enter(0).await.expect("it enters");
    let killed = Instant::now();
    holder.kill();
    let permit = next.go_in(place).await.expect("it is let in");
    let back = killed.elapsed();
    println!(
        "kill -9 of a holder: the slot is back after {:.2} s, with a lease of {TTL:?}",
        back.as_secs_f64()
    );
    assert!(back <= BACK, "{back:?}");
    next.leave(permit).await.expect("it leaves");
    assert_eq!(judged_with(&cluster.gateway(), Which::Mutex, &notes).lost, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_killed_waiter_is_not_waited_for() {
    let (cluster, notes) = (Cluster::start(1), Notes::here());
    let endpoints = cluster.endpoints();
    let workers = clients(&config(&endpoints), Which::Mutex, 2, &notes).await;
    let holder = workers[0].enter(0).await.expect("it enters");
    let holder = workers[0].go_in(holder).await.expect("it is let in");
    let mut waiter = Process::start(&endpoints, LOCK, Which::Mutex, 2, &notes);
    waiter.waits_for("ready", SOON);
    waiter.tell("enter");
    waiter.tell("in");
    waiter.waits_for("entered", SOON);
    let behind = workers[1].enter(0).await.expect("it enters");
    assert_eq!(behind.ahead(), 1);
    let killed = Instant::now();
    waiter.kill();
    workers[0].leave(holder).await.expect("it leaves");
    let permit = workers[1].go_in(behind).await.expect("it is let in");
    let back = killed.elapsed();
    println!(
        "kill -9 of a waiter: the one behind it is in after {:.2} s, with a lease of {TTL:?}",
        back.as_secs_f64()
    );
    assert!(back <= BACK, "{back:?}");
    workers[1].leave(permit).await.expect("it leaves");
    assert_eq!(judged_with(&cluster.gateway(), Which::Mutex, &notes).lost, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_holder_that_was_stopped_past_its_lease_writes_nothing() {
    let (cluster, notes) = (Cluster::start(1), Notes::here());
    let endpoints = cluster.endpoints();
    let mut holder = Process::start(&endpoints, LOCK, Which::Mutex, 0, &notes);
    holder.waits_for("ready", SOON);
    holder.tell("enter");
    holder.tell("in");
    holder.waits_for("in", SOON);
    holder.tell("write");
    holder.waits_for("wrote", SOON);
    let next =
        Worker::open(config(&endpoints), LOCK, Which::Mutex, 1, &notes).await.expect("it opens");
    let place = next.enter(0).await.expect("it enters");
    let stopped = Instant::now();
    holder.stop();
    let permit = next.go_in(place).await.expect("it is let in");
    println!(
        "SIGSTOP of a holder: the slot is somebody else's after {:.2} s",
        stopped.elapsed().as_secs_f64()
    );
    // The first thing it does when it goes on.
    holder.tell("write");
    let resumed = Instant::now();
    holder.go_on();
    let mut said = [String::new(), String::new()];
    for word in &mut said {
        *word = holder.waits_for("", SOON);
    }
    println!("SIGCONT: within {:.3} s it says {said:?}", resumed.elapsed().as_secs_f64());
    assert!(said.iter().any(|word| word == "lost"), "{said:?}");
    assert!(said.iter().any(|word| word.starts_with("refused")), "{said:?}");
    next.write(&permit, Mark::Work { ticket: permit.ticket() as i64 }).await.expect("it holds");
    next.leave(permit).await.expect("it leaves");
    judged_with(&cluster.gateway(), Which::Mutex, &notes);
    // It comes back.
    holder.tell("enter");
    holder.tell("in");
    holder.waits_for("in", SOON);
    holder.tell("leave");
    holder.waits_for("left", SOON);
    judged(&cluster.gateway());
}

/// All keys of the lock are deleted at once, as an administrator may who repairs it. The next
/// client finds no lock, makes it anew and enters, so the holder has to be told.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_holder_learns_that_the_keys_of_its_lock_were_deleted() {
    let (cluster, notes) = (Cluster::start(1), Notes::here());
    let worker = Worker::open(config(&cluster.endpoints()), LOCK, Which::Mutex, 0, &notes)
        .await
        .expect("it opens");
    let permit = worker.enter(0).await.expect("it enters");
    let permit = worker.go_in(permit).await.expect("it is let in");
    assert!(!permit.is_lost());
    let gateway = cluster.gateway();
    let prefix = format!("/doorway/{LOCK}/");
    assert!(!gateway.keys(&prefix).expect("etcd answers").is_empty());
    let all = json!({"key": bytes(&prefix), "range_end": bytes(&after(&prefix))});
    gateway.post("/v3/kv/deleterange", &all).expect("etcd deletes them");
    assert!(gateway.keys(&prefix).expect("etcd answers").is_empty());
    tokio::time::timeout(SOON, permit.lost()).await.expect("it is told");
    assert!(permit.is_lost());
}

/// Nothing comes from any endpoint, and nothing says so. It must be told that it has lost before
/// somebody else is in.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_that_is_cut_off_learns_that_it_has_lost_before_another_is_in() {
    let (cluster, notes) = (Cluster::start(3), Notes::here());
    let mut proxies = Vec::new();
    for node in cluster.addresses() {
        proxies.push(Proxy::to(node).await);
    }
    let through: Vec<String> = proxies.iter().map(Proxy::endpoint).collect();
    // It is told when 95 % are over: that must be more than this machine may be late.
    let lease = Duration::from_secs(5);
    let [through, direct] =
        [&through, &cluster.endpoints()].map(|endpoints| config(endpoints).with_ttl(lease));
    let cut_off = Worker::open(through, LOCK, Which::Mutex, 0, &notes).await.expect("it opens");
    let other = Worker::open(direct, LOCK, Which::Mutex, 1, &notes).await.expect("it opens");
    let permit = cut_off.enter(0).await.expect("it enters");
    let permit = cut_off.go_in(permit).await.expect("it is let in");
    let ticket = permit.ticket() as i64;
    let place = other.enter(0).await.expect("it enters");
    // Long enough to need its keepalives.
    tokio::time::sleep(lease + lease / 5).await;
    assert!(!permit.is_lost());
    let cut = Instant::now();
    proxies.iter().for_each(Proxy::cut);
    let told = tokio::spawn({
        let (lost, notes) = (permit.lost(), notes.clone());
        async move {
            lost.await;
            notes.add(0, What::Out(ticket));
            cut.elapsed()
        }
    });
    let granted = other.go_in(place).await.expect("it is let in");
    let granted_after = cut.elapsed();
    let told =
        tokio::time::timeout(lease, told).await.expect("lost() comes, though nobody answers");
    let told = told.expect("it does not panic");
    println!(
        "cut off, with a lease of {lease:?}: lost() after {:.2} s, somebody else is in after {:.2} s",
        told.as_secs_f64(),
        granted_after.as_secs_f64()
    );
    let refused = cut_off.write(&permit, Mark::Work { ticket }).await.expect_err("nobody hears it");
    println!("a guarded write meanwhile: {refused}");
    proxies.iter().for_each(Proxy::mend);
    let refused =
        cut_off.write(&permit, Mark::Work { ticket }).await.expect_err("it holds no more");
    assert!(matches!(refused, Error::Refused { .. } | Error::Lost(_)), "{refused}");
    drop(permit);
    other.leave(granted).await.expect("it leaves");
    // It comes back by itself.
    let place = cut_off.enter(0).await.expect("it enters again");
    let permit = cut_off.go_in(place).await.expect("it is let in");
    cut_off.leave(permit).await.expect("it leaves");
    judged_with(&cluster.gateway(), Which::Mutex, &notes);
}

/// The holder leaves, and nobody can tell the one that waits: its connections are cut, and then
/// broken.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_happened_while_the_watch_was_broken_is_seen() {
    let (cluster, notes) = (Cluster::start(1), Notes::here());
    let proxy = Proxy::to(cluster.addresses()[0]).await;
    let lease = Duration::from_secs(10);
    let direct = config(&cluster.endpoints()).with_ttl(lease);
    let holder = Worker::open(direct, LOCK, Which::Mutex, 0, &notes).await.expect("it opens");
    let through = config(&[proxy.endpoint()]).with_ttl(lease);
    let waiter = Worker::open(through, LOCK, Which::Mutex, 1, &notes).await.expect("it opens");
    for broken in [Proxy::sever, |_: &Proxy| ()] {
        let permit = holder.enter(0).await.expect("it enters");
        let permit = holder.go_in(permit).await.expect("it is let in");
        let place = waiter.enter(0).await.expect("it enters");
        proxy.cut();
        holder.leave(permit).await.expect("it leaves");
        tokio::time::sleep(Duration::from_secs(2)).await;
        broken(&proxy);
        proxy.mend();
        let mended = Instant::now();
        let permit = tokio::time::timeout(lease, waiter.go_in(place))
            .await
            .expect("it learns it")
            .expect("it is let in");
        println!("cut off for 2 s: let in {:.2} s after that", mended.elapsed().as_secs_f64());
        waiter.leave(permit).await.expect("it leaves");
    }
    assert_eq!(judged_with(&cluster.gateway(), Which::Mutex, &notes).lost, 0);
}
