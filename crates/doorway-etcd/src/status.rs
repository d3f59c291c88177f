//! The status of a lock: its holders and its waiters.

use std::{collections::HashMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{Error, Kind, Lock, cfg::Cfg, passage::now, txn::all};

/// The longest command line that other clients are shown.
const COMMAND: usize = 200;

/// The process behind a place.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Note {
    host: String,
    pid: u32,
    command: String,
    /// Milliseconds since 1970, by the clock of its machine.
    entered: u64,
}

impl Note {
    pub(crate) fn new(command: &str) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self {
            host,
            pid: std::process::id(),
            command: command.chars().take(COMMAND).collect(),
            entered: 0,
        }
    }

    /// Returns what the store keeps for a place that enters at this time.
    pub(crate) fn entered(&self, entered: u64) -> String {
        serde_json::to_string(&Self { entered, ..self.clone() })
            .expect("it has nothing that JSON has not")
    }
}

/// A lock at some moment. It may have changed by the time the caller reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// How many slots there are; `None`: any number.
    pub slots: Option<usize>,
    /// Whether the lock is drained: it grants no slots.
    pub drained: bool,
    /// The revision of the store.
    pub revision: u64,
    /// The holders, in the order of slots.
    pub holders: Vec<Holder>,
    /// The waiters, in the order in which they will be granted slots.
    pub waiting: Vec<Waiter>,
}

/// A process that holds a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Holder {
    /// The slot that it holds.
    pub slot: usize,
    /// The machine of the process.
    pub host: String,
    /// The PID of the process there.
    pub pid: u32,
    /// Its ticket.
    pub ticket: u64,
    /// The session it has asked for, in a group lock.
    pub session: Option<String>,
    /// How long it has had the slot, as far as the clocks agree.
    pub held: Duration,
    /// Its command line, or the text that it gives instead.
    pub command: String,
}

/// A process that waits.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Waiter {
    /// The machine of the process.
    pub host: String,
    /// The PID of the process there.
    pub pid: u32,
    /// Its ticket.
    pub ticket: u64,
    /// The session it asks for, in a group lock.
    pub session: Option<String>,
    /// How long it has waited, as far as the clocks agree.
    pub waited: Duration,
    /// Its command line, or the text that it gives instead.
    pub command: String,
}

impl Lock {
    /// Returns the holders and waiters: the store at one revision. A dead process is shown until
    /// its lease ends.
    ///
    /// # Errors
    /// When the lock has been removed, or etcd does not answer.
    pub async fn status(&self) -> Result<Status, Error> {
        let range = self.store.client().range(all(self.keys.all())).await?;
        let revision = range.header.map_or(0, |header| header.revision).unsigned_abs();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (cfg_key, line_key) = (self.keys.cfg(), self.keys.line());
        let (notes_key, slots_key) = (self.keys.notes(), self.keys.slots());
        let (mut cfg, mut notes, mut line, mut slots) =
            (None, HashMap::new(), Vec::new(), HashMap::new());
        for kv in &range.kvs {
            let key = text(&kv.key);
            if key == cfg_key && kv.create_revision == self.made {
                cfg = Some(Cfg::parse(&self.keys, &kv.value)?);
            } else if let Some(place) = key.strip_prefix(&notes_key) {
                notes.insert(
                    place.to_string(),
                    serde_json::from_slice::<Note>(&kv.value).unwrap_or_default(),
                );
            } else if let Some(slot) =
                key.strip_prefix(&slots_key).and_then(|slot| slot.parse::<usize>().ok())
            {
                let value = text(&kv.value);
                let (place, since) = value.split_once(' ').unwrap_or((&value, ""));
                slots.insert(place.to_string(), (slot, since.parse().unwrap_or(0)));
            } else if let Some(place) = key.strip_prefix(&line_key) {
                line.push((kv.create_revision, place.to_string(), text(&kv.value)));
            }
        }
        let cfg = cfg.ok_or_else(|| Error::Removed(self.name().into()))?;
        line.sort();
        let since = |time: u64| Duration::from_millis(now().saturating_sub(time));
        let (mut holders, mut waiting) = (Vec::new(), Vec::new());
        for (ticket, place, session) in line {
            let (ticket, session) =
                (ticket.unsigned_abs(), Some(session).filter(|_| cfg.kind == Kind::GroupLock));
            let Note { host, pid, command, entered } = notes.remove(&place).unwrap_or_default();
            match slots.get(&place) {
                Some(&(slot, time)) => {
                    holders.push(Holder {
                        slot,
                        host,
                        pid,
                        ticket,
                        session,
                        held: since(time),
                        command,
                    });
                }
                None => waiting.push(Waiter {
                    host,
                    pid,
                    ticket,
                    session,
                    waited: since(entered),
                    command,
                }),
            }
        }
        holders.sort_by_key(|holder| holder.slot);
        let (name, kind, slots, drained) = (self.name().into(), cfg.kind, cfg.slots, cfg.drained);
        Ok(Status { name, kind, slots, drained, revision, holders, waiting })
    }
}
