//! The registers of a run. Only touched registers are kept: of a table of n² registers, a run may
//! touch a few.

use std::sync::Arc;

use doorway_core::{Home, Layout, layout::Erased};
use rustc_hash::FxHashMap;

use crate::item::Whole;

/// The registers of a run, in the order in which it touched them.
pub(super) struct Memory<'s> {
    layout: &'s Layout,
    touched: Vec<Touched>,
    /// The slot of each register, by the id of the register.
    slots: FxHashMap<usize, u32>,
    values: Values,
    /// The number of values that are kept in any case.
    few: usize,
    /// A write count has reached its limit.
    pub(super) full: bool,
}

/// A register that has been touched.
pub(super) struct Touched {
    /// The number of the register in the layout.
    pub(super) number: u32,
    /// The process in whose memory it is, or [`NOBODYS`].
    pub(super) home: u32,
    /// What it holds.
    pub(super) value: u32,
    /// How often it has been written or updated, up to [`MANY`].
    pub(super) writes: u32,
}

/// The largest write count; then counting begins again.
pub(super) const MANY: u32 = u32::MAX;

/// The memory of no process.
pub(super) const NOBODYS: u32 = u32::MAX;

/// Values with numbers: two values are equal if and only if their numbers are.
#[derive(Default)]
struct Values {
    list: Vec<(Arc<Whole>, u64)>,
    ids: FxHashMap<Arc<Whole>, u32>,
    /// The largest number in any value.
    largest: u64,
    /// The number of values at which values that no register holds are forgotten.
    most: usize,
}

impl Values {
    fn intern(&mut self, value: Box<dyn Erased>) -> u32 {
        let value = Arc::new(Whole(value));
        if let Some(&id) = self.ids.get(&value) {
            return id;
        }
        let id = self.list.len() as u32;
        let magnitude = value.0.magnitude();
        self.largest = self.largest.max(magnitude);
        self.list.push((value.clone(), magnitude));
        self.ids.insert(value, id);
        id
    }
}

impl<'s> Memory<'s> {
    pub(super) fn new(layout: &'s Layout) -> Self {
        let memory = Self {
            layout,
            touched: Vec::new(),
            slots: FxHashMap::default(),
            values: Values::default(),
            few: 0,
            full: false,
        };
        memory.remembering(1 << 16)
    }

    /// Keeps this many values in any case.
    pub(super) fn remembering(mut self, values: usize) -> Self {
        self.few = values;
        self.values.most = values;
        self
    }

    pub(super) fn layout(&self) -> &'s Layout {
        self.layout
    }

    /// Returns the slot of a register, and gives it one if it has none. `None` if there is no such
    /// register.
    pub(super) fn slot(&mut self, id: usize) -> Option<usize> {
        if let Some(&slot) = self.slots.get(&id) {
            return Some(slot as usize);
        }
        let number = self.layout.find(id)?;
        let cell = self.layout.cell(number);
        let value = self.values.intern(cell.init.copy());
        let slot = self.touched.len();
        let home = match cell.home {
            Home::Process(p) => p as u32,
            Home::Nobody => NOBODYS,
        };
        self.touched.push(Touched { number: number as u32, home, value, writes: 0 });
        self.slots.insert(id, slot as u32);
        Some(slot)
    }

    #[inline]
    pub(super) fn at(&self, slot: usize) -> &Touched {
        &self.touched[slot]
    }

    /// Returns the slot of the layout's register of this number, if it has been touched.
    pub(super) fn touched(&self, number: usize) -> Option<usize> {
        self.slots.get(&self.layout.cell(number).id()).map(|&slot| slot as usize)
    }

    /// Returns what the layout's register of this number holds.
    pub(super) fn value_of(&self, number: usize) -> &dyn Erased {
        match self.touched(number) {
            Some(slot) => self.held(slot),
            None => self.layout.cell(number).init,
        }
    }

    /// Returns what a slot holds.
    pub(super) fn held(&self, slot: usize) -> &dyn Erased {
        &*self.values.list[self.touched[slot].value as usize].0.0
    }

    /// Returns whether a slot holds a larger number than this.
    #[inline]
    pub(super) fn exceeds(&self, slot: usize, bound: u64) -> bool {
        // Mostly, no value in the run holds a larger number.
        !self.none_exceeds(bound) && self.values.list[self.touched[slot].value as usize].1 > bound
    }

    /// Returns the number of a value.
    pub(super) fn number(&mut self, value: Box<dyn Erased>) -> u32 {
        self.values.intern(value)
    }

    /// Notes that a slot is written, or updated to what it held before. With a value, the slot then
    /// holds the value of this number. Returns whether it held another value.
    #[inline]
    pub(super) fn write(&mut self, slot: usize, value: Option<u32>) -> bool {
        let touched = &mut self.touched[slot];
        touched.writes += 1;
        self.full |= touched.writes == MANY;
        value.is_some_and(|value| std::mem::replace(&mut touched.value, value) != value)
    }

    /// Begins to count writes again. A process that has looked at a register before has to look
    /// again.
    pub(super) fn count_again(&mut self) {
        self.touched.iter_mut().for_each(|touched| touched.writes = 0);
        self.full = false;
    }

    /// Returns whether no value so far holds a larger number than this.
    #[inline]
    pub(super) fn none_exceeds(&self, bound: u64) -> bool {
        self.values.largest <= bound
    }

    /// Returns whether there are so many values that some should be forgotten.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.values.list.len() >= self.values.most
    }

    /// Forgets the values that no register holds. The remaining values get new numbers.
    pub(super) fn forget(&mut self) {
        let old = std::mem::take(&mut self.values);
        for touched in &mut self.touched {
            let (value, magnitude) = &old.list[touched.value as usize];
            let values = &mut self.values;
            touched.value = *values.ids.entry(value.clone()).or_insert_with(|| {
                values.list.push((value.clone(), *magnitude));
                values.list.len() as u32 - 1
            });
        }
        self.values.largest = old.largest;
        self.values.most = self.few.max(2 * self.values.list.len());
    }
}
