//! What processes note of their passages, by a clock that is the same for all of this machine, and
//! what the judge makes of it.
//!
//! A process notes that it asks *before* it enters, that it is in *after* it was let in, and that
//! it is out *before* it leaves. So what notes show to overlap did overlap.

use std::{collections::HashMap, fmt, str::FromStr};

use rustix::time::{ClockId, clock_gettime};

use super::judge::{Complaint, Fault, Rule};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Note {
    pub(crate) at: i64,
    pub(crate) who: usize,
    pub(crate) what: What,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// Is about to enter, for this session.
    Asks(String),
    /// Is through the doorway.
    Entered(i64),
    In {
        ticket: i64,
        slot: usize,
    },
    /// Is about to leave, or to give up its place, or was told that it has lost it.
    Out(i64),
    /// Was killed or stopped: whatever it had, it has no more.
    Gone,
}

impl Note {
    pub(crate) fn now(who: usize, what: What) -> Self {
        Self { at: now(), who, what }
    }
}

/// Nanoseconds.
pub(crate) fn now() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// As one line, by which other processes tell us.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "note {} {} ", self.at, self.who)?;
        match &self.what {
            What::Asks(session) => write!(f, "asks {session}"),
            What::Entered(ticket) => write!(f, "entered {ticket}"),
            What::In { ticket, slot } => write!(f, "in {ticket} {slot}"),
            What::Out(ticket) => write!(f, "out {ticket}"),
            What::Gone => write!(f, "gone"),
        }
    }
}

impl FromStr for Note {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split(' ');
        let mut word = || words.next().ok_or_else(|| format!("no note: {line}"));
        let number = |text: &str| text.parse::<i64>().map_err(|e| format!("{e}: {line}"));
        let ("note", at, who, what) =
            (word()?, number(word()?)?, number(word()?)? as usize, word()?)
        else {
            return Err(format!("no note: {line}"));
        };
        let what = match what {
            "asks" => What::Asks(word().unwrap_or_default().to_owned()),
            "entered" => What::Entered(number(word()?)?),
            "in" => What::In { ticket: number(word()?)?, slot: number(word()?)? as usize },
            "out" => What::Out(number(word()?)?),
            "gone" => What::Gone,
            _ => return Err(format!("no note: {line}")),
        };
        Ok(Self { at, who, what })
    }
}

struct Passage {
    who: usize,
    session: String,
    asked: i64,
    /// When it was through the doorway, by what it noted.
    entered: i64,
    ticket: i64,
    inside: Option<(i64, usize)>,
    out: i64,
}

/// One for each ticket.
fn passages(notes: &[Note]) -> Vec<Passage> {
    let mut notes = notes.to_vec();
    notes.sort_by_key(|note| note.at);
    let mut asks: HashMap<usize, (i64, String)> = HashMap::new();
    let mut all: Vec<Passage> = Vec::new();
    for Note { at, who, what } in notes {
        let mine = |all: &mut Vec<Passage>, ticket| {
            let found =
                all.iter().rposition(|passage| passage.ticket == ticket && passage.who == who);
            found.unwrap_or_else(|| {
                panic!("{who} has noted nothing of its doorway, ticket {ticket}")
            })
        };
        match what {
            What::Asks(session) => drop(asks.insert(who, (at, session))),
            What::Entered(ticket) => {
                let (asked, session) = asks.remove(&who).expect("it asked");
                all.push(Passage {
                    who,
                    session,
                    asked,
                    entered: at,
                    ticket,
                    inside: None,
                    out: i64::MAX,
                });
            }
            What::In { ticket, slot } => {
                let i = mine(&mut all, ticket);
                all[i].inside = Some((at, slot));
            }
            What::Out(ticket) => {
                let i = mine(&mut all, ticket);
                all[i].out = all[i].out.min(at);
            }
            What::Gone => {
                asks.remove(&who);
                for passage in all.iter_mut().filter(|passage| passage.who == who) {
                    passage.out = passage.out.min(at);
                }
            }
        }
    }
    all.sort_by_key(|passage| passage.ticket);
    all
}

/// Judges what processes noted: who was inside together, and whether they went in in the order of
/// their tickets, and tickets are in the order of doorways. `tickets` are those that the store has
/// given: each is somebody's, unless somebody asked and was killed or failed before it could note
/// it. How many went in.
pub(crate) fn judge_notes(
    notes: &[Note],
    rule: Rule,
    tickets: &[i64],
) -> Result<usize, Vec<Complaint>> {
    let all = passages(notes);
    let mut complaints = Vec::new();
    let mut complain = |when, fault| complaints.push(Complaint { when, fault });
    for (i, me) in all.iter().enumerate() {
        let ticket = me.ticket;
        if tickets.binary_search(&ticket).is_err() || i > 0 && all[i - 1].ticket == ticket {
            complain(me.entered, Fault::Unknown { ticket });
        }
        // Whoever has a larger ticket was not through its doorway before I began mine.
        if let Some(other) = all[i + 1..].iter().find(|other| other.entered < me.asked) {
            complain(me.asked, Fault::Disorder { ticket, before: other.ticket });
        }
        let Some((at, slot)) = me.inside else { continue };
        if at >= me.out {
            continue; // It was let in and lost it before it could note either.
        }
        let ahead: Vec<&Passage> = all[..i].iter().filter(|other| at < other.out).collect();
        if !rule.admits(&me.session, ahead.iter().map(|other| &other.session[..])) {
            let inside = |other: &&&Passage| other.inside.is_some_and(|(since, _)| since < at);
            let together = 1 + ahead.iter().filter(inside).count();
            let stranger = |other: &&&Passage| rule.sessions && other.session != me.session;
            complain(
                at,
                match (
                    ahead.iter().filter(inside).find(stranger),
                    ahead.iter().find(|other| !inside(other)),
                ) {
                    (Some(other), _) => Fault::TwoSessions { ticket, inside: other.ticket },
                    (None, Some(other)) => Fault::Overtook { ticket, ahead: other.ticket },
                    (None, None) => {
                        Fault::TooMany { inside: together, slots: rule.slots.unwrap_or(usize::MAX) }
                    }
                },
            );
        }
        let shares =
            |other: &&Passage| other.inside.is_some_and(|(since, its)| since <= at && its == slot);
        if let Some(other) =
            all.iter().filter(|other| other.ticket != ticket && at < other.out).find(shares)
        {
            complain(at, Fault::SlotTwice { slot, tickets: [other.ticket, ticket] });
        }
    }
    let nobodys: Vec<_> = tickets
        .iter()
        .filter(|&&ticket| all.binary_search_by_key(&ticket, |passage| passage.ticket).is_err())
        .collect();
    let count = |is: fn(&What) -> bool| notes.iter().filter(|note| is(&note.what)).count();
    let asked = count(|what| matches!(what, What::Asks(_)))
        - count(|what| matches!(what, What::Entered(_)));
    if nobodys.len() > asked {
        let fault = |&&ticket: &&i64| Fault::Ghost { ticket, why: "nobody has noted it" };
        complaints.extend(
            nobodys.iter().map(|ticket| Complaint { when: **ticket, fault: fault(ticket) }),
        );
    }
    let inside = all.iter().filter(|passage| passage.inside.is_some()).count();
    if complaints.is_empty() { Ok(inside) } else { Err(complaints) }
}
