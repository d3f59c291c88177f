//! Admission: decides which place may take a slot. A pure function of the queue and the slots as
//! they were in the store at one revision.
//!
//! One rule serves all three locks. A place may take a slot if all places ahead of it, which are
//! the places with smaller tickets, ask for its own session (without sessions all places ask for
//! the same), and if fewer than k other places are ahead of it or hold a slot. Places ahead only
//! become fewer. So a client that learns of them late waits too long and never takes a slot too
//! early.
//!
//! If k never changed, counting the places ahead would be enough: a holder behind this place has
//! counted this place itself. But that holder may have been granted its slot when there were more
//! slots.

use std::collections::{BTreeMap, HashMap};

use crate::far::{NEAR, Predecessor};

/// How many places may hold a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    /// `None`: any number.
    pub(crate) slots: Option<usize>,
    /// No slots are granted.
    pub(crate) drained: bool,
    /// The revision since which this rule holds.
    pub(crate) revision: i64,
}

/// A place in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Spot {
    place: String,
    session: Vec<u8>,
}

/// A slot that is held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    place: String,
    /// The value of the slot's key.
    pub(crate) value: String,
    /// The revision at which the slot was taken.
    pub(crate) revision: i64,
}

/// What a place has to do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    Wait,
    /// Take this slot.
    Take(usize),
    /// Nothing: it has this slot.
    Holds(usize, Held),
    /// It is not in the queue any more.
    Gone,
}

/// The queue and the slots.
#[derive(Clone, Default, Debug)]
pub(crate) struct Line {
    /// By ticket.
    spots: BTreeMap<i64, Spot>,
    tickets: HashMap<String, i64>,
    slots: BTreeMap<usize, Held>,
}

impl Line {
    /// Adds a place.
    pub(crate) fn enters(&mut self, place: &str, ticket: i64, session: &[u8]) {
        self.tickets.insert(place.into(), ticket);
        self.spots.insert(ticket, Spot { place: place.into(), session: session.into() });
    }

    /// Removes a place.
    pub(crate) fn leaves(&mut self, place: &str) {
        if let Some(ticket) = self.tickets.remove(place) {
            self.spots.remove(&ticket);
        }
    }

    /// Sets the value of a slot: the place that holds it, and the time.
    pub(crate) fn takes(&mut self, slot: usize, value: &str, revision: i64) {
        let place = value.split(' ').next().unwrap_or_default().into();
        self.slots.insert(slot, Held { place, value: value.into(), revision });
    }

    /// Marks a slot as free.
    pub(crate) fn frees(&mut self, slot: usize) {
        self.slots.remove(&slot);
    }

    fn holds(&self, place: &str) -> bool {
        self.slots.values().any(|held| held.place == place)
    }

    /// Returns how many places wait ahead of this ticket.
    pub(crate) fn waiting_ahead(&self, ticket: i64) -> usize {
        self.spots.range(..ticket).filter(|(_, spot)| !self.holds(&spot.place)).count()
    }

    /// Returns how many places are in the queue, holders included.
    pub(crate) fn len(&self) -> usize {
        self.spots.len()
    }

    /// Returns the ticket of a place.
    pub(crate) fn ticket(&self, place: &str) -> Option<i64> {
        self.tickets.get(place).copied()
    }

    /// Returns the place right ahead of this ticket, if that is enough to watch: more than [`NEAR`]
    /// places are ahead, and neither this place nor the place right ahead has a slot.
    pub(crate) fn far_behind(&self, ticket: i64) -> Option<Predecessor> {
        let me = self.spots.get(&ticket)?;
        let (&before, spot) = self.spots.range(..ticket).next_back()?;
        let is_far = self.spots.range(..ticket).nth(NEAR).is_some()
            && !self.holds(&me.place)
            && !self.holds(&spot.place);
        is_far.then(|| Predecessor::new(&spot.place, before, self.waiting_ahead(ticket)))
    }

    /// Returns what the place with this ticket has to do.
    pub(crate) fn turn(&self, rule: Rule, ticket: i64) -> Turn {
        let Some(me) = self.spots.get(&ticket) else { return Turn::Gone };
        if let Some((&slot, held)) = self.slots.iter().find(|(_, held)| held.place == me.place) {
            return Turn::Holds(slot, held.clone());
        }
        match self.place_for(rule, ticket, &me.session, None) {
            Some(slot) => Turn::Take(slot),
            None => Turn::Wait,
        }
    }

    /// Returns the slot for a place that enters now.
    pub(crate) fn place_for_newcomer(&self, rule: Rule, session: &[u8]) -> Option<usize> {
        self.place_for(rule, i64::MAX, session, None)
    }

    /// Returns the place that may have the slot of a leaver, and its ticket.
    pub(crate) fn heir(&self, rule: Rule, leaver: &str, slot: usize) -> Option<(String, i64)> {
        // This client may not know yet that the leaver has a slot.
        let waits = |spot: &Spot| spot.place != leaver && !self.holds(&spot.place);
        let (&ticket, heir) = self.spots.iter().find(|(_, spot)| waits(spot))?;
        let exists = rule.slots.is_none_or(|slots| slot < slots);
        self.place_for(rule, ticket, &heir.session, Some(leaver)).filter(|_| exists)?;
        Some((heir.place.clone(), ticket))
    }

    /// Returns a slot for this ticket, whose place has none, as if `leaver` were not there.
    fn place_for(
        &self,
        rule: Rule,
        ticket: i64,
        session: &[u8],
        leaver: Option<&str>,
    ) -> Option<usize> {
        if rule.drained {
            return None;
        }
        let (mut ahead, mut without) = (0, 0);
        for spot in self
            .spots
            .range(..ticket)
            .map(|(_, spot)| spot)
            .filter(|spot| Some(&*spot.place) != leaver)
        {
            ahead += 1;
            without += usize::from(!self.holds(&spot.place));
            if spot.session != session || rule.slots.is_some_and(|slots| ahead >= slots) {
                return None;
            }
        }
        let is_behind = |place: &str| self.tickets.get(place).is_some_and(|&other| other > ticket);
        let holders =
            self.slots.values().map(|held| &*held.place).filter(|&place| Some(place) != leaver);
        let behind = holders.filter(|place| is_behind(place)).count();
        if rule.slots.is_some_and(|slots| ahead + behind >= slots) {
            return None;
        }
        // Each place ahead without a slot will take one as well. Leave one for each of them, so
        // that few places want the same slot. As fewer than k other places have or want a slot, the
        // slot returned is among the first k.
        (0..).filter(|slot| !self.slots.contains_key(slot)).nth(without)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: fn(usize) -> Rule = |slots| Rule { slots: Some(slots), drained: false, revision: 1 };
    const ANY: Rule = Rule { slots: None, drained: false, revision: 1 };

    /// A queue in order, with tickets from 1 on, and the holder of each slot.
    fn line(spots: &[(&str, &str)], held: &[(usize, &str)]) -> Line {
        let mut line = Line::default();
        for (ticket, (place, session)) in (1..).zip(spots) {
            line.enters(place, ticket, session.as_bytes());
        }
        held.iter().for_each(|(slot, place)| line.takes(*slot, place, 9));
        line
    }

    fn turns(rule: Rule, line: &Line) -> Vec<Turn> {
        line.spots.keys().map(|&ticket| line.turn(rule, ticket)).collect()
    }

    fn holds(slot: usize, place: &str) -> Turn {
        Turn::Holds(slot, Held { place: place.into(), value: place.into(), revision: 9 })
    }

    const NAMES: [(&str, &str); 4] = [("a", ""), ("b", ""), ("c", ""), ("d", "")];

    #[test]
    fn as_many_go_in_as_there_are_slots_and_each_wants_another() {
        use Turn::{Take, Wait};
        assert_eq!(turns(K(1), &line(&NAMES, &[])), [Take(0), Wait, Wait, Wait]);
        assert_eq!(turns(K(3), &line(&NAMES, &[])), [Take(0), Take(1), Take(2), Wait]);
    }

    #[test]
    fn a_slot_that_is_taken_is_nobody_elses() {
        let held = line(&NAMES, &[(1, "a"), (0, "c")]);
        assert_eq!(turns(K(3), &held), [holds(1, "a"), Turn::Take(2), holds(0, "c"), Turn::Wait]);
        assert_eq!(held.turn(K(4), 4), Turn::Take(3));
    }

    #[test]
    fn sessions_exclude_each_other_and_nobody_overtakes() {
        use Turn::{Take, Wait};
        let line = line(&[("a", "x"), ("b", "x"), ("c", "y"), ("d", "x")], &[]);
        assert_eq!(turns(ANY, &line), [Take(0), Take(1), Wait, Wait]);
        assert_eq!(turns(K(1), &line), [Take(0), Wait, Wait, Wait]);
    }

    #[test]
    fn who_went_in_from_behind_when_there_were_more_slots_counts() {
        // There were three slots: a and c took theirs while b was slow. Now there are two.
        let mut line = line(&NAMES, &[(0, "a"), (2, "c")]);
        assert_eq!(line.turn(K(2), 2), Turn::Wait);
        assert_eq!(line.heir(K(1), "a", 0), None);
        assert_eq!(line.heir(K(2), "a", 0), Some(("b".into(), 2)));
        assert_eq!(
            (line.heir(K(2), "c", 1), line.heir(K(2), "c", 2)),
            (Some(("b".into(), 2)), None)
        );
        line.leaves("a");
        line.frees(0);
        assert_eq!(line.turn(K(1), 2), Turn::Wait);
        assert_eq!(line.turn(K(2), 2), Turn::Take(0));
        assert_eq!(line.turn(K(2), 1), Turn::Gone);
    }

    #[test]
    fn nobody_goes_in_where_it_is_drained_but_who_is_in_stays() {
        let (rule, held) = (Rule { drained: true, ..K(2) }, line(&NAMES, &[(1, "b")]));
        assert_eq!(turns(rule, &held), [Turn::Wait, holds(1, "b"), Turn::Wait, Turn::Wait]);
        assert_eq!(
            (held.heir(rule, "b", 1), Line::default().place_for_newcomer(rule, b"")),
            (None, None)
        );
    }

    #[test]
    fn a_slot_is_inherited_by_the_first_who_may_go_in() {
        let (mut line, fresh) = (line(&NAMES, &[(0, "b"), (1, "a")]), line(&NAMES, &[]));
        assert_eq!(line.heir(K(2), "b", 0), Some(("c".into(), 3)));
        assert_eq!(line.heir(K(2), "a", 1), Some(("c".into(), 3)));
        // This queue does not know yet that a has the slot.
        assert_eq!(fresh.heir(K(1), "a", 0), Some(("b".into(), 2)));
        // A slot that no longer exists is granted to no place.
        assert_eq!(line.heir(K(1), "a", 1), None);
        line.takes(2, "c", 9);
        line.takes(3, "d", 9);
        assert_eq!(line.heir(K(4), "a", 1), None);
    }

    #[test]
    fn a_slot_is_inherited_within_a_session_or_by_the_next_when_the_last_has_left() {
        let mut line =
            line(&[("a", "x"), ("b", "x"), ("c", "y"), ("d", "y")], &[(0, "a"), (1, "b")]);
        assert_eq!(line.heir(ANY, "a", 0), None);
        line.leaves("a");
        line.frees(0);
        assert_eq!(line.heir(ANY, "b", 1), Some(("c".into(), 3)));
    }

    #[test]
    fn a_newcomer_gets_a_slot_only_where_it_would_not_overtake() {
        let held = line(&[("a", "x"), ("b", "x")], &[(0, "a"), (1, "b")]);
        assert_eq!(held.place_for_newcomer(K(3), b"x"), Some(2));
        assert_eq!(held.place_for_newcomer(K(2), b"x"), None);
        assert_eq!(held.place_for_newcomer(ANY, b"y"), None);
        assert_eq!(Line::default().place_for_newcomer(K(1), b""), Some(0));
    }

    #[test]
    fn a_place_is_far_behind_while_its_predecessor_waits_and_many_are_ahead() {
        let mut line = Line::default();
        for ticket in 1..=40 {
            line.enters(&ticket.to_string(), ticket, b"");
        }
        line.takes(0, "1", 50);
        assert_eq!(line.far_behind(NEAR as i64 + 1), None);
        assert_eq!(line.far_behind(NEAR as i64 + 2), Some(Predecessor::new("33", 33, 32)));
        assert_eq!(line.far_behind(40), Some(Predecessor::new("39", 39, 38)));
        line.leaves("39");
        assert_eq!(line.far_behind(40), Some(Predecessor::new("38", 38, 37)));
        line.takes(1, "38", 51);
        assert_eq!(
            (line.far_behind(40), line.far_behind(38), line.far_behind(41)),
            (None, None, None)
        );
    }
}
