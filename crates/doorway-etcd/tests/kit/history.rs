//! What there is to judge: keys at revisions, what their names and values mean, and the marks that
//! holders leave.

use super::judge::Rule;

/// One key at one revision.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) revision: i64,
    pub(crate) key: String,
    pub(crate) change: Change,
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Put { value: String, created: i64, version: i64, lease: i64 },
    Delete,
}

/// The tickets that a lock has given, by the store.
pub(crate) fn tickets(history: &[Event], lock: &str) -> Vec<i64> {
    let prefix = format!("/doorway/{lock}/q/");
    let places = history.iter().filter(|event| event.key.starts_with(&prefix));
    let created = |event: &Event| match event.change {
        Change::Put { created, .. } => (created == event.revision).then_some(created),
        Change::Delete => None,
    };
    places.filter_map(created).collect()
}

/// The key and the value by which a holder tells the store that it is in, or out, or at work, with
/// its ticket.
pub(crate) fn mark(lock: &str, what: Mark) -> (String, String) {
    let value = match what {
        Mark::In { ticket, slot, fence } => format!("in {ticket} {slot} {fence}"),
        Mark::Work { ticket } => format!("work {ticket}"),
        Mark::Out { ticket } => format!("out {ticket}"),
    };
    (format!("/judge/{lock}"), value)
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    In { ticket: i64, slot: usize, fence: i64 },
    Work { ticket: i64 },
    Out { ticket: i64 },
}

pub(crate) fn parse_mark(value: &str) -> Mark {
    let words: Vec<&str> = value.split(' ').collect();
    let number = |i: usize| words[i].parse().expect("a number");
    let ticket = number(1);
    match words[0] {
        "in" => Mark::In { ticket, slot: number(2) as usize, fence: number(3) },
        "work" => Mark::Work { ticket },
        "out" => Mark::Out { ticket },
        _ => panic!("no mark: {value}"),
    }
}

/// Whose lease a place is on, by its name.
pub(crate) fn parse_lease(name: &str) -> i64 {
    let lease = name.split_once('-').expect("a lease and a seat").0;
    i64::from_str_radix(lease, 16).expect("a lease")
}

pub(crate) fn parse_holder(value: &str) -> &str {
    value.split(' ').next().expect("there is always a first")
}

pub(crate) fn parse_session(value: &str) -> &str {
    value
}

pub(crate) fn parse_rule(value: &str) -> Rule {
    let cfg: serde_json::Value = serde_json::from_str(value).expect("it is JSON");
    let slots = cfg["slots"].as_u64().map(|slots| slots as usize);
    Rule { slots, sessions: cfg["kind"] == "group-lock", drained: cfg["drained"] == true }
}
