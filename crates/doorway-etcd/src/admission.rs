//! Who may go in: pure, from what is known of the line.
//!
//! One rule for all three locks. A place may take a slot if all places ahead of it, those with smaller tickets, ask for its own
//! session (where there are no sessions all ask for the same), and if fewer than k others are ahead of it or hold a slot. The places
//! ahead only become fewer, so whoever knows of them late waits too long and never goes in too early.
//!
//! Without changes to k those ahead would be enough, for whoever is behind and holds has counted this place itself. But it may have
//! gone in when there were more slots.

use std::collections::BTreeMap;

/// How many may be inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    /// `None`: any number.
    pub(crate) slots: Option<usize>,
    /// Nobody is let in.
    pub(crate) drained: bool,
    /// Since which revision that is so.
    pub(crate) revision: i64,
}

/// A place in line, as the store has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Spot {
    pub(crate) place: String,
    pub(crate) ticket: i64,
    pub(crate) session: Vec<u8>,
}

/// What a place has to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    Wait,
    /// Take this slot.
    Take(usize),
    /// Nothing: it has this slot.
    Holds(usize),
}

/// What a place knows of the line ahead of it, and of the slots.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    me: Spot,
    rule: Rule,
    /// What happened up to this revision is known.
    known: i64,
    ahead: Vec<Spot>,
    slots: BTreeMap<usize, String>,
}

impl Admission {
    /// From what stood in the store at one revision. `None` if this place is not in line.
    pub(crate) fn new(
        place: &str,
        rule: Rule,
        known: i64,
        mut line: Vec<Spot>,
        slots: BTreeMap<usize, String>,
    ) -> Option<Self> {
        let me = line.iter().find(|spot| spot.place == place)?.clone();
        line.retain(|spot| spot.ticket < me.ticket);
        Some(Self { me, rule, known, ahead: line, slots })
    }

    pub(crate) fn ticket(&self) -> i64 {
        self.me.ticket
    }

    pub(crate) fn rule(&self) -> Rule {
        self.rule
    }

    /// A place has left the line. Returns whether it is this one.
    pub(crate) fn left(&mut self, place: &str, revision: i64) -> bool {
        if revision <= self.known {
            return false;
        }
        self.ahead.retain(|spot| spot.place != place);
        self.me.place == place
    }

    /// A slot has passed to somebody, or to nobody.
    pub(crate) fn passed(&mut self, slot: usize, holder: Option<&str>, revision: i64) {
        if revision <= self.known {
            return;
        }
        match holder {
            Some(place) => self.slots.insert(slot, place.into()),
            None => self.slots.remove(&slot),
        };
    }

    /// How many wait before it.
    pub(crate) fn waiting_ahead(&self) -> usize {
        self.ahead.iter().filter(|spot| !self.holds(&spot.place)).count()
    }

    fn holds(&self, place: &str) -> bool {
        self.slots.values().any(|holder| holder == place)
    }

    pub(crate) fn turn(&self) -> Turn {
        if let Some((&slot, _)) = self.slots.iter().find(|(_, holder)| **holder == self.me.place) {
            return Turn::Holds(slot);
        }
        if self.rule.drained || self.ahead.iter().any(|spot| spot.session != self.me.session) {
            return Turn::Wait;
        }
        let is_ahead = |place: &String| self.ahead.iter().any(|spot| spot.place == *place);
        let behind = self.slots.values().filter(|holder| !is_ahead(holder)).count();
        if self.rule.slots.is_some_and(|slots| self.ahead.len() + behind >= slots) {
            return Turn::Wait;
        }
        // Those ahead that have none yet will take one as well: leave each of them one, so that few want the same. As fewer than k
        // others have one or want one, the one that is left is among the first k.
        let free = (0..).filter(|slot| !self.slots.contains_key(slot)).nth(self.waiting_ahead());
        free.map_or(Turn::Wait, Turn::Take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spots(line: &[(&str, &str)]) -> Vec<Spot> {
        let spot = |(ticket, (place, session)): (i64, &(&str, &str))| Spot {
            place: (*place).into(),
            ticket,
            session: session.as_bytes().into(),
        };
        (1..).zip(line).map(spot).collect()
    }

    /// A line in order, who has which slot, who asks.
    fn turn(slots: Option<usize>, line: &[(&str, &str)], held: &[(usize, &str)], me: &str) -> Turn {
        let held = held.iter().map(|&(slot, place)| (slot, place.to_string())).collect();
        let rule = Rule { slots, drained: false, revision: 1 };
        Admission::new(me, rule, 100, spots(line), held).expect("it is in line").turn()
    }

    const NAMES: [(&str, &str); 4] = [("a", ""), ("b", ""), ("c", ""), ("d", "")];

    #[test]
    fn as_many_go_in_as_there_are_slots_and_each_wants_another() {
        let turns = |slots| ["a", "b", "c", "d"].map(|me| turn(Some(slots), &NAMES, &[], me));
        assert_eq!(turns(1), [Turn::Take(0), Turn::Wait, Turn::Wait, Turn::Wait]);
        assert_eq!(turns(3), [Turn::Take(0), Turn::Take(1), Turn::Take(2), Turn::Wait]);
    }

    #[test]
    fn a_slot_that_is_taken_is_nobody_elses() {
        assert_eq!(turn(Some(3), &NAMES, &[(1, "a"), (0, "c")], "a"), Turn::Holds(1));
        assert_eq!(turn(Some(3), &NAMES, &[(1, "a"), (0, "c")], "b"), Turn::Take(2));
        assert_eq!(turn(Some(4), &NAMES, &[(1, "a"), (0, "c")], "d"), Turn::Take(3));
    }

    #[test]
    fn sessions_exclude_each_other_and_nobody_overtakes() {
        let line = [("a", "x"), ("b", "x"), ("c", "y"), ("d", "x")];
        let turns = |slots| ["a", "b", "c", "d"].map(|me| turn(slots, &line, &[], me));
        assert_eq!(turns(None), [Turn::Take(0), Turn::Take(1), Turn::Wait, Turn::Wait]);
        assert_eq!(turns(Some(1)), [Turn::Take(0), Turn::Wait, Turn::Wait, Turn::Wait]);
    }

    #[test]
    fn who_went_in_from_behind_when_there_were_more_slots_counts() {
        // There were three slots: a and c went in while b was slow. Now there are two.
        assert_eq!(turn(Some(2), &NAMES, &[(0, "a"), (2, "c")], "b"), Turn::Wait);
        assert_eq!(turn(Some(2), &NAMES[1..], &[(2, "c")], "b"), Turn::Take(0));
    }

    #[test]
    fn nobody_goes_in_where_it_is_drained_but_who_is_in_stays() {
        let rule = Rule { slots: Some(2), drained: true, revision: 1 };
        let ask = |me, held: &[(usize, &str)]| {
            let held = held.iter().map(|&(slot, place)| (slot, place.to_string())).collect();
            Admission::new(me, rule, 100, spots(&NAMES), held).expect("it is in line").turn()
        };
        assert_eq!(ask("a", &[]), Turn::Wait);
        assert_eq!(ask("b", &[(1, "b")]), Turn::Holds(1));
    }

    #[test]
    fn what_was_known_already_changes_nothing() {
        let rule = Rule { slots: Some(1), drained: false, revision: 1 };
        let mut admission =
            Admission::new("b", rule, 100, spots(&NAMES), [(0, "a".into())].into()).expect("it is in line");
        // An earlier passage of the same seat has ended.
        assert!(!admission.left("a", 100) && !admission.left("b", 99));
        admission.passed(0, None, 100);
        assert_eq!(admission.turn(), Turn::Wait);
        assert!(!admission.left("a", 101));
        // Both left at the same revision, but it is said by two watches.
        assert_eq!(admission.turn(), Turn::Wait);
        admission.passed(0, None, 101);
        assert_eq!(admission.turn(), Turn::Take(0));
        admission.passed(0, Some("b"), 102);
        assert_eq!(admission.turn(), Turn::Holds(0));
        assert!(admission.left("b", 103));
    }
}
