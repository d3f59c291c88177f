//! The servers that the tests start do what the tests tell them.

use std::time::Instant;

use crate::kit::{cluster::Cluster, history::Change};

#[test]
fn a_killed_leader_is_replaced_and_what_was_written_stays() {
    let started = Instant::now();
    let mut cluster = Cluster::start(3);
    println!("three nodes are up after {:?}", started.elapsed());
    let leader = cluster.leader();
    cluster.gateway().put("/x/1", "one").expect("it is written");
    cluster.kill(leader);
    let next = cluster.leader();
    assert_ne!(leader, next);
    cluster.gateway().put("/x/2", "two").expect("two of three are enough");
    cluster.restart(leader);
    assert_eq!(cluster.leader(), next);
    let history = cluster.gateway().history("/x/").expect("it is all there");
    let values: Vec<_> = history.iter().map(|event| (&event.key[..], &event.change)).collect();
    let [("/x/1", Change::Put { value: one, .. }), ("/x/2", Change::Put { value: two, .. })] =
        values[..]
    else {
        panic!("{history:?}")
    };
    assert_eq!((&one[..], &two[..]), ("one", "two"));
}

#[test]
fn a_stopped_node_does_not_answer_until_it_goes_on() {
    let cluster = Cluster::start(1);
    cluster.stop(0);
    assert!(cluster.gateway().put("/x", "").is_err());
    cluster.go_on(0);
    cluster.gateway().put("/x", "").expect("it goes on");
}
