//! The judge: reads what happened in the store, revision by revision, and what processes noted, and
//! says what was wrong.
//!
//! Of the crate it knows the names of the keys and nothing else. Who may be inside is worked out
//! here again, from the line as it stood at each revision:
//!
//! - who has fewer than k with a smaller ticket, and in a group lock nobody of another session with
//!   a smaller ticket, is let in, and stays so until its place is gone, even if there are fewer
//!   slots later;
//! - who writes that it is in (a [`Mark`], by a guarded write) must have been let in, with a slot
//!   that no other has, and fewer than there are slots may be in already;
//! - a slot's key names one who was let in and is still in line, is on its lease, and passes to
//!   another only when that place is gone;
//! - the fencing numbers of those who have a slot one after the other grow;
//! - a ticket is the revision at which its place was created;
//! - no ghosts: a place is on the lease of its client, and so goes when the client does; it is
//!   taken once in a passage (by the client's counter), and at the end nobody is left.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use super::history::{
    Change, Event, Mark, parse_holder, parse_lease, parse_mark, parse_rule, parse_session,
};

/// Who may be inside together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    /// At most so many.
    pub(crate) slots: Option<usize>,
    /// Only those of one session.
    pub(crate) sessions: bool,
    /// Nobody is let in.
    pub(crate) drained: bool,
}

impl Rule {
    /// Whether one of this session may go in behind these.
    pub(crate) fn admits<'a>(&self, session: &str, ahead: impl Iterator<Item = &'a str>) -> bool {
        let mut count = 0;
        let alone = !ahead.inspect(|_| count += 1).any(|other| self.sessions && other != session);
        alone && !self.drained && self.slots.is_none_or(|slots| count < slots)
    }
}

/// What can be wrong. Numbers are tickets unless they are called otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    TooMany {
        inside: usize,
        slots: usize,
    },
    TwoSessions {
        ticket: i64,
        inside: i64,
    },
    Overtook {
        ticket: i64,
        ahead: i64,
    },
    Drained {
        ticket: i64,
    },
    SlotTwice {
        slot: usize,
        tickets: [i64; 2],
    },
    /// Its key stays though its holder's place is gone.
    SlotOfNobody {
        slot: usize,
    },
    /// It would go with somebody else.
    SlotOnAnothersLease {
        slot: usize,
    },
    NoSuchSlot {
        ticket: i64,
        slot: usize,
    },
    /// By its fencing number a resource would reject it: somebody before it in this slot had that
    /// or more.
    FenceTooLow {
        ticket: i64,
        slot: usize,
    },
    /// A guarded write took effect though there was no such place in line.
    Unguarded {
        ticket: i64,
    },
    /// A place that nobody will give back.
    Ghost {
        ticket: i64,
        why: &'static str,
    },
    /// Two processes disagree with the order of their tickets.
    Disorder {
        ticket: i64,
        before: i64,
    },
    /// A process has a ticket that the store has not given.
    Unknown {
        ticket: i64,
    },
}

/// What was wrong, and when: a revision of the store, or nanoseconds of the clock that processes
/// look at.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) when: i64,
    pub(crate) fault: Fault,
}

impl fmt::Debug for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {:?}", self.when, self.fault)
    }
}

/// What was seen, for tests that want to know whether there was anything to see.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Account {
    /// Places that were taken.
    pub(crate) places: usize,
    /// Of these, those whose holder wrote that it was in.
    pub(crate) passages: usize,
    /// Of these, those whose place was gone before they wrote that they were out.
    pub(crate) lost: usize,
    pub(crate) most_inside: usize,
    pub(crate) longest_line: usize,
}

struct Place {
    name: String,
    session: String,
    /// How many slots there were, at most, from when it was let in until it said that it is in.
    admitted: Option<usize>,
    /// It has said that it is in, and in which slot.
    inside: Option<usize>,
}

struct Judge {
    rule: Rule,
    /// By ticket.
    line: BTreeMap<i64, Place>,
    tickets: HashMap<String, i64>,
    /// For each seat of a client the version of its counter.
    counters: HashMap<String, i64>,
    /// What that was when the seat's last place was taken.
    taken_at: HashMap<String, i64>,
    /// The place that has it.
    slots: BTreeMap<usize, String>,
    /// Those that were taken at this revision, and who had them.
    taken_now: Vec<(usize, Option<String>)>,
    /// The number that the last holder of each said that it had.
    fences: BTreeMap<usize, i64>,
    account: Account,
    complaints: Vec<Complaint>,
    now: i64,
}

/// Judges a lock by all that happened to its keys and to [`Mark`]s. At the end only those may be in
/// line who are named.
pub(crate) fn judge(
    history: &[Event],
    lock: &str,
    at_the_end: &[i64],
) -> Result<Account, Vec<Complaint>> {
    let mut judge = Judge {
        rule: Rule { slots: Some(0), sessions: false, drained: true },
        line: BTreeMap::new(),
        tickets: HashMap::new(),
        counters: HashMap::new(),
        taken_at: HashMap::new(),
        slots: BTreeMap::new(),
        taken_now: Vec::new(),
        fences: BTreeMap::new(),
        account: Account::default(),
        complaints: Vec::new(),
        now: 0,
    };
    let (prefix, marks) = (format!("/doorway/{lock}/"), format!("/judge/{lock}"));
    for together in history.chunk_by(|a, b| a.revision == b.revision) {
        judge.now = together[0].revision;
        for event in together {
            if let Some(key) = event.key.strip_prefix(&prefix) {
                judge.key(key, &event.change);
            }
        }
        judge.look();
        for event in together.iter().filter(|event| event.key == marks) {
            if let Change::Put { value, .. } = &event.change {
                judge.mark(parse_mark(value));
            }
        }
    }
    let left: Vec<_> =
        judge.line.keys().copied().filter(|ticket| !at_the_end.contains(ticket)).collect();
    for ticket in left {
        judge.complain(Fault::Ghost { ticket, why: "it is still in line at the end" });
    }
    if judge.complaints.is_empty() { Ok(judge.account) } else { Err(judge.complaints) }
}

impl Judge {
    fn complain(&mut self, fault: Fault) {
        // What stays wrong is said once.
        if self.complaints.iter().all(|complaint| complaint.fault != fault) {
            self.complaints.push(Complaint { when: self.now, fault });
        }
    }

    fn key(&mut self, key: &str, change: &Change) {
        if key == "cfg" {
            if let Change::Put { value, .. } = change {
                self.rule = parse_rule(value);
            }
        } else if let Some(name) = key.strip_prefix("c/") {
            match change {
                Change::Put { version, .. } => self.counters.insert(name.to_owned(), *version),
                Change::Delete => self.counters.remove(name),
            };
        } else if let Some(slot) = key.strip_prefix("s/") {
            let slot = slot.parse().expect("the number of a slot");
            match change {
                Change::Put { value, lease, .. } => {
                    self.slot_taken(slot, parse_holder(value), *lease)
                }
                Change::Delete => drop(self.slots.remove(&slot)),
            }
        } else if let Some(name) = key.strip_prefix("q/") {
            match change {
                Change::Put { value, created, lease, .. } => {
                    self.place_taken(name, value, *created, *lease)
                }
                Change::Delete => self.given_back(name),
            }
        }
    }

    fn place_taken(&mut self, name: &str, value: &str, ticket: i64, lease: i64) {
        if self.tickets.get(name) == Some(&ticket) {
            return; // It has said something more about itself.
        }
        let place = Place {
            name: name.into(),
            session: parse_session(value).into(),
            admitted: None,
            inside: None,
        };
        self.line.insert(ticket, place);
        self.tickets.insert(name.to_owned(), ticket);
        self.account.places += 1;
        self.account.longest_line = self.account.longest_line.max(self.line.len());
        let counter = self.counters.get(name).copied().unwrap_or(0);
        if self.taken_at.insert(name.to_owned(), counter) == Some(counter) {
            self.complain(Fault::Ghost { ticket, why: "this passage had its place before" });
        }
        if lease == 0 || parse_lease(name) != lease {
            self.complain(Fault::Ghost { ticket, why: "it is not on the lease of its client" });
        }
    }

    fn slot_taken(&mut self, slot: usize, holder: &str, lease: i64) {
        let before = self.slots.insert(slot, holder.to_owned()).filter(|before| before != holder);
        self.taken_now.push((slot, before));
        if parse_lease(holder) != lease {
            self.complain(Fault::SlotOnAnothersLease { slot });
        }
    }

    fn given_back(&mut self, name: &str) {
        if let Some(place) = self.tickets.remove(name).and_then(|ticket| self.line.remove(&ticket))
        {
            self.account.lost += usize::from(place.inside.is_some());
        }
    }

    /// What all that happened at this revision comes to.
    fn look(&mut self) {
        let slots = self.rule.slots.unwrap_or(usize::MAX);
        let mut ahead: Vec<&str> = Vec::new();
        for place in self.line.values_mut() {
            if place.admitted.is_some() && place.inside.is_none() {
                place.admitted = place.admitted.max(Some(slots));
            } else if self.rule.admits(&place.session, ahead.iter().copied()) {
                place.admitted = place.admitted.or(Some(slots));
            }
            ahead.push(&place.session);
        }
        let mut faults = Vec::new();
        for (&slot, holder) in &self.slots {
            faults.extend(match self.tickets.get(holder) {
                None => Some(Fault::SlotOfNobody { slot }),
                Some(&ticket) => self.unfounded(ticket),
            });
        }
        for (slot, before) in std::mem::take(&mut self.taken_now) {
            let [before, ticket] = [before, self.slots.get(&slot).cloned()]
                .map(|name| self.tickets.get(&name?).copied());
            if let (Some(before), Some(ticket)) = (before, ticket) {
                faults.push(Fault::SlotTwice { slot, tickets: [before, ticket] });
            }
            faults.extend(self.slot_too_many(slot, slots));
        }
        for fault in faults {
            self.complain(fault);
        }
    }

    /// What is wrong with this slot's being taken now, whoever takes it: it does not count who was
    /// let in when there were more.
    fn slot_too_many(&self, slot: usize, slots: usize) -> Option<Fault> {
        let &ticket = self.tickets.get(self.slots.get(&slot)?)?;
        if self.rule.drained {
            return Some(Fault::Drained { ticket });
        }
        let inside = self.slots.len();
        if inside > slots {
            return Some(Fault::TooMany { inside, slots });
        }
        let session = |name: &String| {
            self.tickets
                .get(name)
                .and_then(|ticket| self.line.get(ticket))
                .map(|place| &place.session)
        };
        let mut others =
            self.slots.values().filter(|name| session(name) != Some(&self.line[&ticket].session));
        match others.next() {
            Some(other) if self.rule.sessions => Some(Fault::TwoSessions {
                ticket,
                inside: self.tickets.get(other).copied().unwrap_or(0),
            }),
            _ => (slot >= slots).then_some(Fault::NoSuchSlot { ticket, slot }),
        }
    }

    fn mark(&mut self, mark: Mark) {
        let (Mark::In { ticket, .. } | Mark::Work { ticket } | Mark::Out { ticket }) = mark;
        if !self.line.contains_key(&ticket) {
            return self.complain(Fault::Unguarded { ticket });
        }
        if let Some(fault) = self.unfounded(ticket) {
            self.complain(fault);
        }
        match mark {
            Mark::In { slot, fence, .. } => self.goes_in(ticket, slot, fence),
            Mark::Work { .. } => {}
            Mark::Out { .. } => self.line.get_mut(&ticket).expect("it is in line").inside = None,
        }
    }

    /// Why it may not be inside.
    fn unfounded(&self, ticket: i64) -> Option<Fault> {
        let me = &self.line[&ticket];
        if me.admitted.is_some() {
            return None;
        }
        let mut others = self
            .line
            .range(..ticket)
            .filter(|(_, place)| self.rule.sessions && place.session != me.session);
        if let Some((&inside, _)) = others.clone().find(|(_, place)| place.inside.is_some()) {
            return Some(Fault::TwoSessions { ticket, inside });
        }
        let waits = |(_, place): &(&i64, &Place)| place.admitted.is_none();
        if let Some((&ahead, _)) = others.next().or_else(|| self.line.range(..ticket).find(waits)) {
            return Some(Fault::Overtook { ticket, ahead });
        }
        if self.rule.drained {
            return Some(Fault::Drained { ticket });
        }
        let inside = 1 + self.line.range(..ticket).count();
        Some(Fault::TooMany { inside, slots: self.rule.slots.unwrap_or(usize::MAX) })
    }

    fn goes_in(&mut self, ticket: i64, slot: usize, fence: i64) {
        let inside: Vec<_> = self.line.iter().filter(|(_, place)| place.inside.is_some()).collect();
        // The largest number of slots by which one of them was let in: there may be fewer now.
        let slots = inside
            .iter()
            .filter_map(|(_, place)| place.admitted)
            .max()
            .max(self.line[&ticket].admitted);
        let mut faults = Vec::new();
        if let Some(slots) = slots
            && inside.len() >= slots
        {
            faults.push(Fault::TooMany { inside: inside.len() + 1, slots });
        }
        let same = inside.iter().find(|(_, place)| place.inside == Some(slot));
        faults.extend(same.map(|&(&other, _)| Fault::SlotTwice { slot, tickets: [other, ticket] }));
        if self.line[&ticket].admitted.is_some_and(|slots| slot >= slots) {
            faults.push(Fault::NoSuchSlot { ticket, slot });
        }
        if self.fences.insert(slot, fence).is_some_and(|before| before >= fence) {
            faults.push(Fault::FenceTooLow { ticket, slot });
        }
        self.account.most_inside = self.account.most_inside.max(inside.len() + 1);
        self.account.passages += 1;
        for fault in faults {
            self.complain(fault);
        }
        self.line.get_mut(&ticket).expect("it is in line").inside = Some(slot);
    }
}
