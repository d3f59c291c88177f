//! Everything at once, at random: clients are killed and stopped, nodes are killed and stopped, one
//! at a time. The judge reads the store.
//!
//!     DOORWAY_ETCD_STORM=600 cargo test --package doorway-etcd --test etcd -- storm --nocapture
//!
//! So many seconds; 15 unless told otherwise.

use std::{collections::BTreeMap, thread::sleep};

use super::*;
use crate::kit::{
    process::Process,
    worker::{Random, TTL},
};

const CLIENTS: usize = 8;
const WHICH: Which = Which::Semaphore(3);
const SOON: Duration = Duration::from_secs(60);

fn start(endpoints: &[String], who: usize) -> Process {
    let mut process = Process::start(endpoints, LOCK, WHICH, who, &Notes::here());
    process.waits_for("ready", SOON);
    process.tell("work");
    process
}

#[test]
fn storm() {
    let _busy = BUSY.blocking_lock();
    let seconds = env::var("DOORWAY_ETCD_STORM").map_or(15, |text| text.parse().expect("seconds"));
    let (mut cluster, mut random) = (Cluster::start(3), Random(0x5eed_0f57));
    let endpoints = cluster.endpoints();
    let mut clients: Vec<Process> = (0..CLIENTS).map(|who| start(&endpoints, who)).collect();
    let (started, mut done) = (Instant::now(), BTreeMap::new());
    let mut ended = [0, 0];
    let mut next = CLIENTS;
    while started.elapsed() < Duration::from_secs(seconds) {
        let pause = Duration::from_millis(random.below(1500));
        let (client, node) = (random.below(CLIENTS as u64) as usize, random.below(3) as usize);
        let what = match random.below(6) {
            0 | 1 => {
                clients[client].kill();
                clients[client] = start(&endpoints, next);
                next += 1;
                "clients killed"
            }
            2 => {
                clients[client].stop();
                sleep(pause);
                clients[client].go_on();
                "clients stopped for a moment"
            }
            3 => {
                clients[client].stop();
                sleep(TTL + pause);
                clients[client].go_on();
                "clients stopped past their leases"
            }
            4 => {
                cluster.kill(node);
                sleep(pause);
                cluster.restart(node);
                "nodes killed"
            }
            _ => {
                cluster.stop(node);
                sleep(TTL + pause);
                cluster.go_on(node);
                "nodes stopped for longer than a lease"
            }
        };
        *done.entry(what).or_insert(0) += 1;
        sleep(pause / 4);
        eprintln!("{:3} s of {seconds}: {what}", started.elapsed().as_secs());
    }
    // The dead's leases end, and whoever lives goes on.
    sleep(2 * TTL);
    for client in &mut clients {
        client.tell("enough");
        let said = client.waits_for("ended", SOON);
        let counts: Vec<usize> =
            said.split(' ').map(|count| count.parse().expect("a count")).collect();
        assert!(counts[2] > 0, "it went on when all was quiet: {said}");
        ended = [ended[0] + counts[0], ended[1] + counts[1]];
    }
    let line = || cluster.gateway().keys(&format!("/doorway/{LOCK}/")).expect("it can be read");
    let quiet = Instant::now();
    while line().iter().any(|(key, _)| key.contains("/q/")) {
        assert!(quiet.elapsed() < 3 * TTL, "somebody is left in line: {:?}", line());
        sleep(Duration::from_millis(20));
    }
    let account = judged(&cluster.gateway());
    println!(
        "{done:?}; of those that live {} passages, {} that failed; all: {account:?}",
        ended[0], ended[1]
    );
}
