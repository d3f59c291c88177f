//! The judge is judged: bad histories and bad notes, each of which it must catch, and good ones
//! that it must not complain about.

use crate::kit::{
    history::{Change, Event, Mark, mark},
    judge::{Fault, Rule, judge},
    notes::{Note, What, judge_notes},
};

const LOCK: &str = "a";

/// A history that is being made up: each call is one revision.
struct Story {
    events: Vec<Event>,
    revision: i64,
}

impl Story {
    /// Clients 1 to 4 are there.
    fn of(kind: &str, slots: Option<usize>) -> Self {
        let mut story = Self { events: Vec::new(), revision: 1 };
        story.put("cfg", &cfg(kind, slots, false), 1, 0);
        for client in 1..=4 {
            story.put(&format!("c/{client}-0"), "", 1, client);
        }
        story
    }

    fn event(&mut self, key: &str, change: Change) {
        self.events.push(Event {
            revision: self.revision,
            key: format!("/doorway/{LOCK}/{key}"),
            change,
        });
    }

    fn put(&mut self, key: &str, value: &str, version: i64, lease: i64) {
        self.revision += 1;
        let (created, value) = (self.revision, value.to_owned());
        self.event(key, Change::Put { value, created, version, lease });
    }

    /// Takes a place: its ticket.
    fn enter(&mut self, client: i64, session: &str) -> i64 {
        self.put(&format!("q/{client}-0"), session, 1, client);
        self.revision
    }

    /// Gives it back, and counts.
    fn leave(&mut self, client: i64, passages: i64) {
        self.put(&format!("c/{client}-0"), "", passages + 1, client);
        self.event(&format!("q/{client}-0"), Change::Delete);
    }

    fn mark(&mut self, what: Mark) {
        self.revision += 1;
        let ((key, value), created) = (mark(LOCK, what), self.revision);
        self.events.push(Event {
            revision: created,
            key,
            change: Change::Put { value, created, version: 1, lease: 0 },
        });
    }

    fn goes_in(&mut self, ticket: i64, slot: usize) {
        self.mark(Mark::In { ticket, slot, fence: self.revision });
    }

    #[track_caller]
    fn is_bad(&self, fault: Fault) {
        let complaints = judge(&self.events, LOCK, &[]).expect_err("it is a bad one");
        assert!(complaints.iter().any(|complaint| complaint.fault == fault), "{complaints:?}");
    }
}

fn cfg(kind: &str, slots: Option<usize>, drained: bool) -> String {
    serde_json::json!({"kind": kind, "slots": slots, "drained": drained}).to_string()
}

#[test]
fn a_good_history() {
    let mut story = Story::of("semaphore", Some(2));
    let tickets = [1, 2, 3].map(|client| story.enter(client, ""));
    // Grants that happen together may be seen in any order.
    story.goes_in(tickets[1], 0);
    story.put("s/1", "1-0", 1, 1);
    story.goes_in(tickets[0], 1);
    story.mark(Mark::Work { ticket: tickets[0] });
    story.mark(Mark::Out { ticket: tickets[0] });
    // It leaves, and hands its slot on.
    story.leave(1, 1);
    let created = story.revision;
    story.event("s/1", Change::Put { value: "3-0".into(), created, version: 2, lease: 3 });
    story.goes_in(tickets[2], 1);
    story.mark(Mark::Out { ticket: tickets[2] });
    story.leave(3, 1);
    story.event("s/1", Change::Delete);
    let again = story.enter(1, "");
    story.goes_in(again, 1);
    // Fewer slots: who is inside stays.
    story.put("cfg", &cfg("semaphore", Some(1), false), 2, 0);
    story.mark(Mark::Out { ticket: again });
    story.leave(1, 2);
    // It loses what it has.
    story.revision += 1;
    story.event("q/2-0", Change::Delete);
    story.event("c/2-0", Change::Delete);
    let account = judge(&story.events, LOCK, &[]).expect("it is a good one");
    assert_eq!((account.places, account.passages, account.lost), (4, 4, 1));
    assert_eq!((account.most_inside, account.longest_line), (2, 3));
}

#[test]
fn two_inside_where_one_may_be() {
    let mut story = Story::of("mutex", Some(1));
    let [one, two] = [1, 2].map(|client| story.enter(client, ""));
    story.goes_in(one, 0);
    story.goes_in(two, 0);
    story.is_bad(Fault::TooMany { inside: 2, slots: 1 });
}

#[test]
fn overtaking() {
    let mut story = Story::of("semaphore", Some(2));
    let [.., three, four] = [1, 2, 3, 4].map(|client| story.enter(client, ""));
    story.goes_in(four, 0);
    story.is_bad(Fault::Overtook { ticket: four, ahead: three });
    // And not in a group lock to those of its own session.
    let mut story = Story::of("group-lock", None);
    let [one, two, late] =
        [(1, "a"), (2, "b"), (3, "a")].map(|(client, session)| story.enter(client, session));
    story.goes_in(one, 0);
    story.goes_in(late, 1);
    story.is_bad(Fault::Overtook { ticket: late, ahead: two });
}

#[test]
fn two_sessions_inside() {
    let mut story = Story::of("group-lock", None);
    let [one, two] = [(1, "a"), (2, "b")].map(|(client, session)| story.enter(client, session));
    story.goes_in(one, 0);
    story.goes_in(two, 1);
    story.is_bad(Fault::TwoSessions { ticket: two, inside: one });
}

#[test]
fn going_in_where_nobody_may() {
    let mut story = Story::of("mutex", Some(1));
    story.put("cfg", &cfg("mutex", Some(1), true), 2, 0);
    let one = story.enter(1, "");
    story.goes_in(one, 0);
    story.is_bad(Fault::Drained { ticket: one });
}

#[test]
fn a_slot_twice() {
    let mut story = Story::of("semaphore", Some(2));
    let [one, two] = [1, 2].map(|client| story.enter(client, ""));
    story.goes_in(one, 1);
    story.goes_in(two, 1);
    story.is_bad(Fault::SlotTwice { slot: 1, tickets: [one, two] });
    let mut story = Story::of("semaphore", Some(2));
    let [one, two] = [1, 2].map(|client| story.enter(client, ""));
    story.put("s/1", "1-0", 1, 1);
    story.put("s/1", "2-0", 2, 2);
    story.is_bad(Fault::SlotTwice { slot: 1, tickets: [one, two] });
}

/// Who was let in when there were more slots, and did not take one, waits.
#[test]
fn a_slot_that_there_is_no_more() {
    let mut story = Story::of("semaphore", Some(2));
    for client in [1, 2] {
        story.enter(client, "");
    }
    story.put("s/1", "1-0", 1, 1);
    story.put("cfg", &cfg("semaphore", Some(1), false), 2, 0);
    story.put("s/0", "2-0", 1, 2);
    story.is_bad(Fault::TooMany { inside: 2, slots: 1 });
}

#[test]
fn a_slot_that_there_is_not() {
    let mut story = Story::of("semaphore", Some(2));
    let one = story.enter(1, "");
    story.goes_in(one, 2);
    story.is_bad(Fault::NoSuchSlot { ticket: one, slot: 2 });
}

#[test]
fn a_slot_before_its_turn_or_after_its_end() {
    let mut story = Story::of("semaphore", Some(1));
    for client in [1, 2] {
        story.enter(client, "");
    }
    story.put("s/0", "2-0", 1, 2);
    story.is_bad(Fault::TooMany { inside: 2, slots: 1 });
    let mut story = Story::of("semaphore", Some(1));
    story.enter(1, "");
    story.put("s/0", "1-0", 1, 1);
    story.leave(1, 1);
    story.is_bad(Fault::SlotOfNobody { slot: 0 });
    let mut story = Story::of("semaphore", Some(1));
    story.enter(1, "");
    story.put("s/0", "1-0", 1, 2);
    story.is_bad(Fault::SlotOnAnothersLease { slot: 0 });
}

#[test]
fn a_guarded_write_without_a_place() {
    let mut story = Story::of("mutex", Some(1));
    let one = story.enter(1, "");
    story.goes_in(one, 0);
    story.leave(1, 1);
    story.mark(Mark::Work { ticket: one });
    story.is_bad(Fault::Unguarded { ticket: one });
}

#[test]
fn a_fencing_number_that_does_not_grow() {
    let mut story = Story::of("mutex", Some(1));
    for (client, fence) in [(1, 7), (2, 7)] {
        let ticket = story.enter(client, "");
        story.mark(Mark::In { ticket, slot: 0, fence });
        story.leave(client, 1);
    }
    let ticket = story.revision - 2;
    story.is_bad(Fault::FenceTooLow { ticket, slot: 0 });
}

#[test]
fn ghosts() {
    let mut story = Story::of("mutex", Some(1));
    let ticket = story.enter(1, "");
    story.is_bad(Fault::Ghost { ticket, why: "it is still in line at the end" });
    assert!(judge(&story.events, LOCK, &[ticket]).is_ok(), "unless somebody says that it may");
    let mut story = Story::of("mutex", Some(1));
    for lease in [0, 2] {
        story.put("q/1-0", "", 1, lease);
        story.is_bad(Fault::Ghost {
            ticket: story.revision,
            why: "it is not on the lease of its client",
        });
    }
    let mut story = Story::of("mutex", Some(1));
    story.enter(1, "");
    story.revision += 1;
    story.event("q/1-0", Change::Delete);
    let ticket = story.enter(1, "");
    story.is_bad(Fault::Ghost { ticket, why: "this passage had its place before" });
}

/// Notes at 1, 2, 3 …
fn notes(all: &[(usize, What)]) -> Vec<Note> {
    all.iter()
        .zip(1..)
        .map(|((who, what), at)| Note { at, who: *who, what: what.clone() })
        .collect()
}

const MUTEX: Rule = Rule { slots: Some(1), sessions: false, drained: false };

fn goes_in(ticket: i64, slot: usize) -> What {
    What::In { ticket, slot }
}

#[track_caller]
fn are_bad(rule: Rule, notes: &[Note], fault: Fault) {
    let complaints = judge_notes(notes, rule, &[10, 20, 30]).expect_err("they are bad");
    assert!(complaints.iter().any(|complaint| complaint.fault == fault), "{complaints:?}");
}

#[test]
fn what_processes_note() {
    use What::{Asks, Entered, Gone, Out};
    let asks = |session: &str| Asks(session.to_owned());
    let both =
        |first, second| [(0, asks(first)), (0, Entered(10)), (1, asks(second)), (1, Entered(20))];
    let with =
        |first, second, rest: &[(usize, What)]| notes(&[&both(first, second)[..], rest].concat());

    let good =
        with("", "", &[(0, goes_in(10, 0)), (0, Out(10)), (1, goes_in(20, 0)), (1, Out(20))]);
    assert_eq!(judge_notes(&good, MUTEX, &[10, 20]).expect("they are good"), 2);
    are_bad(MUTEX, &good, Fault::Ghost { ticket: 30, why: "nobody has noted it" });
    for note in &good {
        assert_eq!(&note.to_string().parse::<Note>().expect("it is one"), note);
    }
    let dies = with(
        "",
        "",
        &[
            (0, goes_in(10, 0)),
            (0, Gone),
            (1, goes_in(20, 0)),
            (1, Out(20)),
            (2, asks("")),
            (2, Gone),
        ],
    );
    assert_eq!(judge_notes(&dies, MUTEX, &[10, 20, 30]).expect("they are good"), 2);

    let together = with("", "", &[(0, goes_in(10, 0)), (1, goes_in(20, 0))]);
    are_bad(MUTEX, &together, Fault::TooMany { inside: 2, slots: 1 });
    are_bad(MUTEX, &together, Fault::SlotTwice { slot: 0, tickets: [10, 20] });
    are_bad(
        MUTEX,
        &with("", "", &[(1, goes_in(20, 0))]),
        Fault::Overtook { ticket: 20, ahead: 10 },
    );
    let sessions = Rule { slots: None, sessions: true, drained: false };
    let strangers = with("a", "b", &[(0, goes_in(10, 0)), (1, goes_in(20, 1))]);
    are_bad(sessions, &strangers, Fault::TwoSessions { ticket: 20, inside: 10 });
    let friends = with("a", "a", &[(0, goes_in(10, 0)), (1, goes_in(20, 1))]);
    assert_eq!(judge_notes(&friends, sessions, &[10, 20]).expect("they are good"), 2);

    let swapped = notes(&[(0, asks("")), (0, Entered(20)), (1, asks("")), (1, Entered(10))]);
    are_bad(MUTEX, &swapped, Fault::Disorder { ticket: 10, before: 20 });
    are_bad(MUTEX, &notes(&[(0, asks("")), (0, Entered(40))]), Fault::Unknown { ticket: 40 });
}
