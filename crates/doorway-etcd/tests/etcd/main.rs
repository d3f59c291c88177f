//! The locks on etcd, against servers that the tests start, stop and kill themselves. The judge (`kit/judge.rs`) decides.
#![cfg(target_os = "linux")]

use std::{
    env,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use doorway_etcd::{Config, Error};
use kit::{
    cluster::Cluster,
    gateway::Gateway,
    history::tickets,
    judge::{Account, judge},
    notes::judge_notes,
    worker::{Notes, Which, Worker, config},
};
use tokio::task::JoinHandle;

#[path = "../kit/mod.rs"]
mod kit;

mod changes;
mod failures;
mod input;
mod judged;
mod kit_itself;
mod late;
mod leader;
mod order;
mod storm;

/// Not a test of its own: what other processes do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_process() {
    if let Ok(arguments) = env::var("DOORWAY_TEST_CLIENT") {
        kit::process::client(&arguments).await;
    }
}

const LOCK: &str = "lock";

/// Tests that keep the machine busy, and those that look at a clock meanwhile, take turns.
static BUSY: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// So many clients of one lock, each with a connection and a lease of its own.
async fn clients(config: &Config, which: Which, count: usize, notes: &Notes) -> Vec<Arc<Worker>> {
    let mut workers = Vec::new();
    for who in 0..count {
        let worker = Worker::open(config.clone(), LOCK, which, who, notes).await;
        workers.push(Arc::new(worker.expect("it opens")));
    }
    workers
}

/// They go in and out until it is enough, and say what went wrong.
fn set_to_work(workers: &[Arc<Worker>], enough: &Arc<AtomicBool>) -> Vec<JoinHandle<Vec<Error>>> {
    let start = |worker: &Arc<Worker>| {
        let (worker, enough) = (worker.clone(), enough.clone());
        tokio::spawn(async move { worker.work(&enough).await })
    };
    workers.iter().map(start).collect()
}

/// The judge's word on the store, when nobody is left in line.
#[track_caller]
fn judged(gateway: &Gateway) -> Account {
    judge(&gateway.history("/").expect("it can be read"), LOCK, &[]).expect("nothing is wrong in the store")
}

/// The judge's word on the store and on what the processes noted.
#[track_caller]
fn judged_with(gateway: &Gateway, which: Which, notes: &Notes) -> Account {
    let history = gateway.history("/").expect("it can be read");
    let account = judge(&history, LOCK, &[]).expect("nothing is wrong in the store");
    judge_notes(&notes.all(), which.rule(), &tickets(&history, LOCK)).expect("nothing is wrong in the processes");
    account
}

/// Waits until this holds.
async fn until(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < limit, "after {limit:?} it is still not so that {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
