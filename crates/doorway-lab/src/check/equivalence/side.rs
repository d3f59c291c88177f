//! One of the two systems: its state as numbers, and the one step of each process.

use doorway_core::RegisterKind;
use rustc_hash::FxHashMap;

use super::Incomparable;
use crate::{
    check::{
        has_tickets,
        relabel::{Labels, Map, slack},
        space::{Effect, Space},
    },
    fault::Fault,
    subject::{Region, Subject},
};

/// One of the two systems, in numbers.
pub(super) struct Side<'s> {
    pub(super) space: Space<'s>,
    pub(super) name: &'static str,
    pub(super) registers: usize,
    pub(super) n: usize,
    pub(super) relabel: bool,
    gap: u32,
    maps: FxHashMap<Labels, Map>,
}

/// The result of a step of one side.
pub(super) enum Stepped {
    /// One step, which leaves the process in this region.
    To(Region),
    /// One of several steps. Which one depends on the width of a gap.
    Guess,
}

impl<'s> Side<'s> {
    pub(super) fn new(subject: &'s dyn Subject, unbounded: bool) -> Result<Self, Incomparable> {
        let size = subject.size();
        let (relabel, gap) = (unbounded && has_tickets(subject), (subject.claims().gap)(size));
        let space = Space::new(subject, RegisterKind::Atomic, relabel.then_some(gap))
            .map_err(|fault| Incomparable::Fault(subject.name(), fault))?;
        Ok(Self {
            registers: space.registers.len(),
            space,
            name: subject.name(),
            n: size.n,
            relabel,
            gap,
            maps: FxHashMap::default(),
        })
    }

    /// Returns how many numbers a state has.
    pub(super) fn width(&self) -> usize {
        self.registers + self.n
    }

    pub(super) fn region(&self, state: &[u32], p: usize) -> Region {
        self.space.known(p, state[self.registers + p]).region
    }

    /// Makes process `p` take its step.
    pub(super) fn step(&mut self, state: &mut [u32], p: usize) -> Result<Stepped, Incomparable> {
        let at = self.registers + p;
        let local = state[at];
        let (register, effect) = match &*self.space.known(p, local).moves {
            [only] => (only.register, only.effect),
            _ => return Err(Incomparable::Choices(self.name)),
        };
        let Some(register) = register.filter(|_| effect != Effect::Choose).map(usize::from) else {
            return Err(Incomparable::Choices(self.name));
        };
        let was = self.labels(state);
        let outcome = self
            .space
            .outcome(p, local, 0, state[register])
            .map_err(|fault| Incomparable::Fault(self.name, fault))?;
        state[register] = outcome.value;
        state[at] = outcome.next;
        if self.relabel {
            let is = self.labels(state);
            if (is.0 & !was.0).count_ones() > 1 {
                return Err(Incomparable::Fault(self.name, Fault::TwoTickets));
            }
            if slack(was, is, self.gap).1 > 0 {
                return Ok(Stepped::Guess);
            }
            self.narrow(state, was, is).map_err(|fault| Incomparable::Fault(self.name, fault))?;
        }
        Ok(Stepped::To(self.region(state, p)))
    }

    /// Returns the labels of all tickets in a state.
    fn labels(&self, state: &[u32]) -> Labels {
        if !self.relabel {
            return Labels::default();
        }
        let (values, locals) = state.split_at(self.registers);
        let in_registers = self
            .space
            .registers
            .iter()
            .zip(values)
            .map(|(known, &value)| known.labels[value as usize]);
        let in_locals =
            locals.iter().enumerate().map(|(p, &local)| self.space.known(p, local).labels);
        in_registers.chain(in_locals).fold(Labels::default(), Labels::or)
    }

    /// Brings the tickets of a state into their one form.
    fn narrow(&mut self, state: &mut [u32], was: Labels, is: Labels) -> Result<(), Fault> {
        if was == is {
            return Ok(());
        }
        if is.0 == u128::MAX {
            return Err(Fault::TicketRange);
        }
        let gap = self.gap;
        let map = self.maps.entry(is).or_insert_with(|| Map::narrowing(is, 0, 0, gap));
        if map.changes == Labels::default() {
            return Ok(());
        }
        let (values, locals) = state.split_at_mut(self.registers);
        for (r, value) in values.iter_mut().enumerate() {
            if self.space.registers[r].labels[*value as usize].meets(map.changes) {
                *value = self.space.relabel_value(r as u16, *value, map)?;
            }
        }
        for (p, local) in locals.iter_mut().enumerate() {
            if self.space.known(p, *local).labels.meets(map.changes) {
                *local = self.space.relabel_local(p, *local, map)?;
            }
        }
        Ok(())
    }
}
