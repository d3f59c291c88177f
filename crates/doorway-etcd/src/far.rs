//! Waiting far from the front of the queue: a place watches its predecessor alone.
//!
//! **The rule.** A place with more than [`NEAR`] other places ahead, whose predecessor waits as
//! well, watches three things: its own place, its predecessor's place, and `cfg`. All other places
//! follow the whole queue ([`crate::hall`]). This is enough, because a place may take a slot only
//! when its predecessor may take one, too, or has left: whatever happens further ahead, the
//! predecessor is granted or leaves before this place has anything to do. Then
//!
//! - if the lock has one slot, and the predecessor got it under the current settings and has left,
//!   this place is the first, and no place holds the slot: it takes the slot ([`Step::Take`]);
//! - in all other cases it reads the whole queue and decides anew ([`Step::Look`]): the predecessor
//!   has left without a slot or was killed, there are more slots than one, or the settings have
//!   changed.
//!
//! A holder that follows the whole queue may hand its slot to this place. Then the place reads the
//! slots to find its own ([`Step::Find`]).
//!
//! The predecessor is known from the doorway: the key `t` names the last place that entered, each
//! doorway replaces it and reads what was there, and a place that leaves as the last deletes it.
//! So a hand-over concerns two clients, however many wait.
//!
//! The watches begin at the revision after the one at which the predecessor was known to be there,
//! so nothing is missed. etcd serves a watch that begins in the past within 100 ms; by then a place
//! with [`NEAR`] others ahead has seldom come to the front.

use std::collections::HashMap;

use crate::{
    admission::Rule,
    proto::{
        etcdserverpb::WatchCreateRequest,
        mvccpb::{Event, event::EventType},
    },
    stream::Sender,
};

/// A place with more other places ahead of it watches its predecessor alone.
pub(crate) const NEAR: usize = 32;

/// What a place far back has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Sleep,
    /// Take the only slot.
    Take,
    /// Find the slot that it was handed.
    Find,
    /// Read the whole queue.
    Look,
    /// Nothing: the place is not in the queue any more.
    Gone,
}

/// The place right ahead of one of this client's places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Predecessor {
    pub(crate) place: String,
    pub(crate) ticket: i64,
    /// How many places waited ahead of this client's place when that was known.
    pub(crate) ahead: usize,
    /// The revision at which it was granted a slot; 0 if it was not.
    granted: i64,
    gone: bool,
    /// The number of the watch on it.
    watch: i64,
}

impl Predecessor {
    pub(crate) fn new(place: &str, ticket: i64, ahead: usize) -> Self {
        Self { place: place.into(), ticket, ahead, granted: 0, gone: false, watch: 0 }
    }

    fn step(&self, rule: Rule) -> Step {
        let one = rule.slots == Some(1);
        match (self.gone, self.granted) {
            (false, 0) => Step::Sleep,
            // With one slot this place has nothing to do before the predecessor leaves.
            (false, _) if one => Step::Sleep,
            // The predecessor was alone at the front when it was granted the slot, if there was
            // only one slot then.
            (true, granted) if one && !rule.drained && granted > rule.revision => Step::Take,
            _ => Step::Look,
        }
    }
}

/// What a client knows while all its places are far back.
#[derive(Debug)]
pub(crate) struct Far {
    stream: Sender,
    /// The common prefix of the names of this client's places.
    prefix: String,
    watches: i64,
    /// By the ticket of this client's place.
    predecessors: HashMap<i64, Predecessor>,
    /// For each place of this client, the revision of its last grant; below, that of its last end.
    granted: HashMap<String, i64>,
    ended: HashMap<String, i64>,
}

impl Far {
    /// Creates the view of a client whose places begin with `prefix`. The stream has two watches
    /// already: 0 on `cfg`, 1 on these places.
    pub(crate) fn new(stream: Sender, prefix: String) -> Self {
        let (predecessors, granted, ended) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { stream, prefix, watches: 1, predecessors, granted, ended }
    }

    /// Watches the predecessor of the place with this ticket. It was there at revision `known`.
    pub(crate) fn follow(
        &mut self,
        ticket: i64,
        mut predecessor: Predecessor,
        key: String,
        known: i64,
    ) {
        self.watches += 1;
        predecessor.watch = self.watches;
        let (key, start_revision, watch_id) = (key.into_bytes(), known + 1, self.watches);
        self.stream.add(WatchCreateRequest { key, start_revision, watch_id, ..Default::default() });
        self.predecessors.insert(ticket, predecessor);
    }

    /// Stops watching the predecessor of a place that does not wait any more.
    pub(crate) fn forget(&mut self, ticket: i64) {
        if let Some(predecessor) = self.predecessors.remove(&ticket) {
            self.stream.cancel(predecessor.watch);
        }
    }

    /// Returns how many waited ahead of the place with this ticket when that was last known.
    pub(crate) fn ahead(&self, ticket: i64) -> Option<usize> {
        self.predecessors.get(&ticket).map(|predecessor| predecessor.ahead)
    }

    /// Records what happened to a place: one of this client's, or a predecessor, or both.
    ///
    /// The watches may deliver out of order. The revision shows what belongs to an earlier passage
    /// of the same seat.
    pub(crate) fn hear(&mut self, place: &str, event: &Event) {
        let Some(kv) = &event.kv else { return };
        let (revision, is_deleted) = (kv.mod_revision, event.r#type() == EventType::Delete);
        // Version 1 is the place itself. A later version says that it has a slot.
        if !is_deleted && kv.version == 1 {
            return;
        }
        if place.starts_with(&self.prefix) {
            let last = if is_deleted { &mut self.ended } else { &mut self.granted };
            last.insert(place.into(), revision);
        }
        for (&ticket, predecessor) in &mut self.predecessors {
            if predecessor.place != place {
                continue;
            }
            if is_deleted {
                predecessor.gone |= revision > ticket;
            } else if kv.create_revision == predecessor.ticket {
                predecessor.granted = revision;
            }
        }
    }

    /// Returns what this client's place with this ticket has to do.
    pub(crate) fn step(&self, rule: Rule, place: &str, ticket: i64) -> Step {
        let since = |note: &HashMap<String, i64>| {
            note.get(place).is_some_and(|&revision| revision > ticket)
        };
        match self.predecessors.get(&ticket) {
            _ if since(&self.ended) => Step::Gone,
            _ if since(&self.granted) => Step::Find,
            Some(predecessor) => predecessor.step(rule),
            None => Step::Look,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::proto::mvccpb::KeyValue;

    const ONE: Rule = Rule { slots: Some(1), drained: false, revision: 5 };

    fn event(r#type: EventType, create_revision: i64, mod_revision: i64, version: i64) -> Event {
        let kv = KeyValue { create_revision, mod_revision, version, ..Default::default() };
        Event { r#type: r#type.into(), kv: Some(kv), ..Default::default() }
    }

    /// A client whose place `2-1` has ticket 20, behind `1-1` with ticket 10.
    fn far() -> Far {
        let mut far = Far::new(Sender::new(mpsc::unbounded_channel().0), "2-".into());
        far.follow(20, Predecessor::new("1-1", 10, 40), "1-1".into(), 20);
        far
    }

    fn step(far: &Far, rule: Rule) -> Step {
        far.step(rule, "2-1", 20)
    }

    #[test]
    fn the_only_slot_is_taken_when_the_predecessor_has_had_it() {
        let mut far = far();
        assert_eq!(step(&far, ONE), Step::Sleep);
        far.hear("1-1", &event(EventType::Put, 10, 30, 2));
        assert_eq!(step(&far, ONE), Step::Sleep);
        far.hear("1-1", &event(EventType::Delete, 0, 31, 0));
        assert_eq!(step(&far, ONE), Step::Take);
    }

    #[test]
    fn the_line_is_read_when_the_predecessor_has_given_up() {
        let mut far = far();
        far.hear("1-1", &event(EventType::Delete, 0, 31, 0));
        assert_eq!(step(&far, ONE), Step::Look);
    }

    #[test]
    fn the_line_is_read_when_the_settings_are_others_than_at_the_grant() {
        let mut far = far();
        far.hear("1-1", &event(EventType::Put, 10, 30, 2));
        let two = Rule { slots: Some(2), ..ONE };
        let any = Rule { slots: None, ..ONE };
        assert_eq!((step(&far, two), step(&far, any)), (Step::Look, Step::Look));
        far.hear("1-1", &event(EventType::Delete, 0, 31, 0));
        for rule in [
            two,
            Rule { drained: true, ..ONE },
            Rule { revision: 30, ..ONE },
            Rule { revision: 40, ..ONE },
        ] {
            assert_eq!(step(&far, rule), Step::Look, "{rule:?}");
        }
    }

    #[test]
    fn what_an_earlier_passage_of_a_seat_did_does_not_count() {
        let mut far = far();
        for (place, revision) in [("1-1", 9), ("2-1", 19)] {
            far.hear(place, &event(EventType::Put, 3, revision, 2));
            far.hear(place, &event(EventType::Delete, 0, revision, 0));
        }
        assert_eq!(step(&far, ONE), Step::Sleep);
        assert_eq!(far.granted.len(), 1, "only our own places are noted");
    }

    #[test]
    fn a_place_learns_that_it_was_handed_a_slot_and_that_it_is_gone() {
        let mut far = far();
        far.hear("2-1", &event(EventType::Put, 20, 30, 2));
        assert_eq!(step(&far, ONE), Step::Find);
        far.hear("2-1", &event(EventType::Delete, 0, 31, 0));
        assert_eq!(step(&far, ONE), Step::Gone);
        assert_eq!(far.step(ONE, "2-2", 22), Step::Look, "a place whose predecessor is not known");
    }
}
