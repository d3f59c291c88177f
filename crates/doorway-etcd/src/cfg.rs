//! The lock spec: what a lock is, as its key `cfg` stores it.

use serde::{Deserialize, Serialize};

use crate::{Error, Kind, admission::Rule, keys::Keys};

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
