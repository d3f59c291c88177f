//! States with relabelled tickets. Each step ends in the one form of its state (see `relabel.rs`).

use std::sync::Arc;

use super::{Expander, Interrupt, Sink, Step, event};
use crate::{
    check::{
        pack::Key,
        relabel::{Labels, Map, slack},
    },
    fault::Fault,
};

impl<const W: usize> Expander<'_, '_, W> {
    /// Returns the labels of all tickets in a state.
    pub(super) fn labels(&mut self, key: &Key<W>) -> Labels {
        let mut all = Labels::default();
        for r in 0..self.plan.registers.len() {
            let value = self.plan.registers[r].get(key);
            all = all.or(self.value_labels(r, value));
        }
        for p in 0..self.plan.locals.len() {
            let local = self.plan.locals[p].get(key);
            all = all.or(self.local_labels(p, local));
        }
        all
    }

    #[inline(always)]
    pub(super) fn local_labels(&mut self, p: usize, local: u32) -> Labels {
        if local as usize >= self.hot[p].labels.len() {
            self.fetch(p, local);
        }
        self.hot[p].labels[local as usize]
    }

    #[inline(always)]
    pub(super) fn value_labels(&mut self, register: usize, value: u32) -> Labels {
        if let Some(labels) = self.values[register].get(value as usize) {
            return *labels;
        }
        self.values[register] = self.lock().registers[register].labels.clone();
        self.values[register][value as usize]
    }

    /// Returns the renaming for these labels, with a number of its own.
    pub(super) fn map(
        &mut self,
        labels: Labels,
        split: u32,
        extra: u32,
        narrow: bool,
    ) -> (u32, Arc<Map>) {
        let number = self.maps.len() as u32;
        // Widening and narrowing never meet under one key: a widening has labels with a wide gap
        // below `split`, and says so in the top bit.
        let tag = if narrow { 0 } else { 1 << 31 };
        self.maps
            .entry((labels, split | tag, extra))
            .or_insert_with(|| {
                let map = if narrow {
                    Map::narrowing(labels, split, extra, self.rules.gap)
                } else {
                    Map::widening(labels, split, extra)
                };
                (number, Arc::new(map))
            })
            .clone()
    }

    /// Brings the state after a step into its one form, for every width that a wide gap may be left
    /// with. The state before the step was in that form, with the labels `was`.
    pub(super) fn relabel_step(
        &mut self,
        was: Labels,
        mut step: Step<W>,
        sink: &mut impl Sink<W>,
    ) -> Result<(), Interrupt> {
        let is = self.labels(&step.key);
        if was == is {
            self.finish(step, sink);
            return Ok(());
        }
        if (is.0 & !was.0).count_ones() > 1 {
            return Err(Interrupt::Fault(Fault::TwoTickets));
        }
        let (split, most) = slack(was, is, self.rules.gap);
        if most > 0 {
            step.events |= event::GUESSES;
        }
        (0..=most).try_for_each(|extra| self.narrow(step, is, split, extra, sink))
    }

    pub(super) fn narrow(
        &mut self,
        step: Step<W>,
        labels: Labels,
        split: u32,
        extra: u32,
        sink: &mut impl Sink<W>,
    ) -> Result<(), Interrupt> {
        if labels.0 == u128::MAX {
            return Err(Interrupt::Fault(Fault::TicketRange));
        }
        let (id, map) = self.map(labels, split, extra, true);
        let key = self.rename(&step.key, id, &map)?;
        self.finish(Step { key, ..step }, sink);
        Ok(())
    }

    /// Returns a state with its tickets renamed.
    pub(super) fn rename(&mut self, key: &Key<W>, id: u32, map: &Map) -> Result<Key<W>, Interrupt> {
        let mut renamed = *key;
        if map.changes == Labels::default() {
            return Ok(renamed);
        }
        for r in 0..self.plan.registers.len() {
            let field = self.plan.registers[r];
            let value = field.get(key);
            if !self.value_labels(r, value).meets(map.changes) {
                continue;
            }
            let new = match self.renamed_values.get(&(r as u16, value, id)) {
                Some(&new) => new,
                None => {
                    let new = self.lock().relabel_value(r as u16, value, map)?;
                    self.renamed_values.insert((r as u16, value, id), new);
                    new
                }
            };
            if !field.fits(new) {
                return Err(Interrupt::Narrow);
            }
            field.set(&mut renamed, new);
        }
        for p in 0..self.plan.locals.len() {
            let field = self.plan.locals[p];
            let local = field.get(key);
            if !self.local_labels(p, local).meets(map.changes) {
                continue;
            }
            let new = match self.renamed_locals.get(&(p as u16, local, id)) {
                Some(&new) => new,
                None => {
                    let new = self.lock().relabel_local(p, local, map)?;
                    self.renamed_locals.insert((p as u16, local, id), new);
                    new
                }
            };
            if !field.fits(new) {
                return Err(Interrupt::Narrow);
            }
            field.set(&mut renamed, new);
        }
        Ok(renamed)
    }
}
