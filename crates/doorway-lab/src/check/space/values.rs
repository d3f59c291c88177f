//! The values of a register, each with a number.

use std::sync::Arc;

use doorway_core::{
    RegisterKind,
    layout::{Cell as RegisterCell, Erased},
};
use rustc_hash::FxHashMap;

use crate::{
    check::{domain::Domain, relabel::Labels},
    fault::Fault,
    item::Whole,
};

/// The values that one register has held.
pub(crate) struct Values {
    pub(crate) name: String,
    list: Vec<Arc<Whole>>,
    pub(crate) labels: Vec<Labels>,
    ids: FxHashMap<Arc<Whole>, u32>,
    pub(super) domain: Domain,
}

/// The largest number of values: their numbers are kept in 24 bits where outcomes are looked up.
const MAX_VALUES: u32 = 1 << 24;

impl Values {
    /// Makes the values of a register that has not been written.
    pub(super) fn of(cell: &RegisterCell<'_>, kind: RegisterKind) -> Result<Self, Fault> {
        let (list, labels, ids, domain) =
            (Vec::new(), Vec::new(), FxHashMap::default(), Domain::of(cell, kind));
        let mut values = Values { name: cell.name(), list, labels, ids, domain };
        values.intern(cell.init.copy())?;
        Ok(values)
    }

    /// Returns the number of a value, and gives it one if it has none.
    pub(super) fn intern(&mut self, value: Box<dyn Erased>) -> Result<u32, Fault> {
        let value = Arc::new(Whole(value));
        if let Some(&id) = self.ids.get(&value) {
            return Ok(id);
        }
        let id = self.list.len() as u32;
        if id >= MAX_VALUES {
            return Err(Fault::TooManyValues(self.name.clone()));
        }
        self.domain.admit(&*value.0, &self.name)?;
        self.labels.push(Labels::of(|f| {
            let _ = value.0.relabelled(f);
        })?);
        self.ids.insert(value.clone(), id);
        self.list.push(value);
        Ok(id)
    }

    /// Returns the value of this number.
    pub(crate) fn value(&self, id: u32) -> &dyn Erased {
        &*self.list[id as usize].0
    }

    /// Returns the value of this number, to be kept.
    pub(crate) fn whole(&self, id: u32) -> Arc<Whole> {
        self.list[id as usize].clone()
    }

    /// Returns all values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &dyn Erased> {
        self.list.iter().map(|value| &*value.0)
    }

    /// Returns how many values there are.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }
}
