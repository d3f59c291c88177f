//! What is read of a lock in one transaction, and what it means.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Error, Kind,
    admission::{Admission, Rule, Spot},
    keys::Keys,
    proto::{
        etcdserverpb::{RequestOp, TxnResponse},
        mvccpb::KeyValue,
    },
    txn::{all, get},
};

/// What `cfg` says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Cfg {
    pub(crate) kind: Kind,
    /// `None`: any number.
    pub(crate) slots: Option<usize>,
    #[serde(default)]
    pub(crate) drained: bool,
}

impl Cfg {
    pub(crate) fn parse(keys: &Keys, value: &[u8]) -> Result<Self, Error> {
        let cfg: Option<Self> = serde_json::from_slice(value).ok();
        cfg.filter(|cfg| cfg.slots != Some(0)).ok_or_else(|| Error::Damaged(keys.name().into()))
    }

    pub(crate) fn value(&self) -> String {
        serde_json::to_string(self).expect("it has nothing that JSON has not")
    }

    pub(crate) fn rule(&self, revision: i64) -> Rule {
        Rule { slots: self.slots, drained: self.drained, revision }
    }
}

/// The line, the slots, `cfg`, and what a seat has done, at one revision.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) revision: i64,
    pub(crate) line: Vec<Spot>,
    pub(crate) slots: BTreeMap<usize, String>,
    /// With the revisions of its creation and of its last change.
    pub(crate) cfg: Option<(Cfg, i64, i64)>,
    /// The version of the seat's counter, and what was done last.
    pub(crate) count: (i64, Vec<u8>),
}

impl Reading {
    /// What to read.
    pub(crate) fn operations(keys: &Keys, place: &str) -> [RequestOp; 4] {
        [all(keys.line()).into(), all(keys.slots()).into(), get(keys.cfg()).into(), get(keys.count(place)).into()]
    }

    /// What was read.
    pub(crate) fn new(keys: &Keys, answer: TxnResponse) -> Result<Self, Error> {
        let revision = answer.revision();
        let mut reads = answer.reads().map(|range| range.kvs);
        let [line, slots, cfg, count] = std::array::from_fn(|_| reads.next().unwrap_or_default());
        let cfg = match cfg.first() {
            Some(kv) => Some((Cfg::parse(keys, &kv.value)?, kv.create_revision, kv.mod_revision)),
            None => None,
        };
        Ok(Self {
            revision,
            line: line.iter().filter_map(|kv| spot(keys, kv)).collect(),
            slots: slots.iter().filter_map(|kv| slot(keys, kv)).collect(),
            cfg,
            count: count.into_iter().next().map_or((0, Vec::new()), |kv| (kv.version, kv.value)),
        })
    }

    /// Who may go in, as far as this place is concerned; `None` if it is not in line.
    pub(crate) fn admission(self, place: &str) -> Option<Admission> {
        let (cfg, _, changed) = self.cfg?;
        Admission::new(place, cfg.rule(changed), self.revision, self.line, self.slots)
    }
}

/// A place in line.
pub(crate) fn spot(keys: &Keys, kv: &KeyValue) -> Option<Spot> {
    let place = str::from_utf8(&kv.key).ok()?.strip_prefix(&keys.line())?.to_string();
    Some(Spot { place, ticket: kv.create_revision, session: kv.value.clone() })
}

/// A slot and who holds it.
pub(crate) fn slot(keys: &Keys, kv: &KeyValue) -> Option<(usize, String)> {
    let slot = str::from_utf8(&kv.key).ok()?.strip_prefix(&keys.slots())?.parse().ok()?;
    Some((slot, held(&kv.value)?.0))
}

/// What the value of a slot says: the place, and since when by the clock of its client.
pub(crate) fn held(value: &[u8]) -> Option<(String, u64)> {
    let (place, since) = str::from_utf8(value).ok()?.split_once(' ')?;
    Some((place.into(), since.parse().ok()?))
}
