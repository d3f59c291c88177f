//! The locks on etcd, against servers that the tests start, stop and kill themselves. The judge
//! (`kit/judge.rs`) decides.
//!
//!     cargo test --package doorway-etcd --test etcd -- --nocapture
//!
//! prints what was measured. Longer: `DOORWAY_ETCD_PASSAGES` (see `order.rs`), `DOORWAY_ETCD_STORM`
//! (see `storm.rs`).
//!
//! What a check can catch was tried by changing the crate; each was undone:
//!
//! | change | caught by | which says |
//! |---|---|---|
//! | k + 1 are let in (`ahead > slots`) | `one_at_a_time` | `TooMany` |
//! | those ahead are not counted | `four_at_a_time` | `Overtook` |
//! | sessions are not compared | `a_group_of_two_sessions` | `TwoSessions` |
//! | the heir is the last in line | `one_at_a_time` | `TooMany`, `Overtook` |
//! | a slot that is taken is taken again | `a_group_of_one_session` | `SlotTwice`, `FenceTooLow` |
//! | a slot is taken by a `cfg` of the past | `a_lock_is_changed_while_it_is_used` | `Drained` |
//! | a slot is handed over on the leaver's lease | `one_at_a_time` | `SlotOnAnothersLease` |
//! | a place is on no lease | `a_killed_waiter_is_not_waited_for` | the one behind is never let in |
//! | the doorway does not look at the counter | `late_duplicates_leave_no_ghosts` | `Ghost` |
//! | a guarded write does not look at the counter | `late_duplicates_leave_no_ghosts` | written twice |
//! | a guarded write does not look at the place | `a_holder_that_was_stopped_past_its_lease_writes_nothing` | it wrote |
//! | the watch is opened again and the line is not read | `what_happened_while_the_watch_was_broken_is_seen` | it never learns it |
//! | `lost()` does not look at the deadline | `a_client_that_is_cut_off_…` | it does not come |
//! | `lost()` does not look whether the lock was removed | `a_holder_learns_that_the_keys_of_its_lock_were_deleted` | it does not come |
//! | keepalives are not opened again | `a_killed_leader_twice` | some `Lost` |
//! | a request fetches no new token | `a_token_that_etcd_has_forgotten_is_renewed` | `Login` |
//! | a place far back takes the slot though its predecessor had none | `a_place_far_back_does_not_overtake` | it is let in |
//! | a place far back does not notice that it is gone | `places_in_the_middle_give_up_and_are_killed` | it is never told |
//! | a place far back sleeps while its predecessor holds one of two slots | `two_at_a_time_in_a_long_line` | it is never let in |
//! | a watch fetches no new token | `a_token_that_etcd_has_forgotten_is_renewed` | it is never let in |
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
    history::{parse_lease, tickets},
    judge::{Account, judge},
    notes::judge_notes,
    worker::{Notes, Which, Worker, config},
};
use tokio::task::JoinHandle;

#[path = "../kit/mod.rs"]
mod kit;

mod changes;
mod failures;
mod far;
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
    judge(&gateway.history("/").expect("it can be read"), LOCK, &[])
        .expect("nothing is wrong in the store")
}

/// The judge's word on the store and on what the processes noted.
#[track_caller]
fn judged_with(gateway: &Gateway, which: Which, notes: &Notes) -> Account {
    let history = gateway.history("/").expect("it can be read");
    let account = judge(&history, LOCK, &[]).expect("nothing is wrong in the store");
    judge_notes(&notes.all(), which.rule(), &tickets(&history, LOCK))
        .expect("nothing is wrong in the processes");
    account
}

/// The lease of the first in line.
fn first_lease(gateway: &Gateway) -> i64 {
    let line = gateway.keys(&format!("/doorway/{LOCK}/q/")).expect("it can be read");
    let (first, _) = line.first().expect("somebody is in line");
    parse_lease(first.rsplit('/').next().expect("the name of a place"))
}

/// Waits until this holds.
async fn until(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < limit, "after {limit:?} it is still not so that {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
