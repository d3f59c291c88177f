//! Registers as a layout knows them, whatever they hold: for memories with registers of many types.

use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::{any::Any, hash::Hasher};

use super::{Home, Homes, LINE};
use crate::{Ticket, Value};

/// A register's value without its type, for memories that hold registers of many types.
pub trait Erased: Any + Send + Sync {
    /// The value as a machine word, if its format is one that fits.
    fn word(&self) -> u128;
    /// The value, to be downcast.
    fn any(&self) -> &dyn Any;
    /// A copy.
    fn copy(&self) -> Box<dyn Erased>;
    /// Equality of type and value.
    fn same(&self, other: &dyn Erased) -> bool;
    /// Feeds a hash that agrees with equality.
    fn hash_into(&self, hasher: &mut dyn Hasher);
    /// The value with its tickets replaced.
    fn relabelled(&self, f: crate::Relabel<'_>) -> Box<dyn Erased>;
    /// All values of this type, if there are not too many.
    fn domain(&self, tickets: &[Ticket]) -> Option<Vec<Box<dyn Erased>>>;
    /// The largest number inside.
    fn magnitude(&self) -> u64;
    /// For printing.
    fn text(&self) -> String;
}

impl<T: Value> Erased for T {
    fn word(&self) -> u128 {
        Value::word(self)
    }
    fn any(&self) -> &dyn Any {
        self
    }
    fn copy(&self) -> Box<dyn Erased> {
        Box::new(self.clone())
    }
    fn same(&self, other: &dyn Erased) -> bool {
        other.any().downcast_ref::<T>() == Some(self)
    }
    fn hash_into(&self, mut hasher: &mut dyn Hasher) {
        self.hash(&mut hasher);
    }
    fn relabelled(&self, f: crate::Relabel<'_>) -> Box<dyn Erased> {
        Box::new(self.relabel(f))
    }
    fn domain(&self, tickets: &[Ticket]) -> Option<Vec<Box<dyn Erased>>> {
        Some(T::domain(tickets)?.into_iter().map(|v| Box::new(v) as Box<dyn Erased>).collect())
    }
    fn magnitude(&self) -> u64 {
        Value::magnitude(self)
    }
    fn text(&self) -> String {
        format!("{self:?}")
    }
}

/// One register as the layout knows it.
#[derive(Clone, Copy)]
pub struct Cell<'a> {
    /// The word of the arena that holds it, or the double word.
    pub index: usize,
    /// How many bits its words have.
    pub bits: u32,
    /// Whose memory it is in.
    pub home: Home,
    /// What it holds at the start.
    pub init: &'a dyn Erased,
    block: &'a Block,
    row: usize,
    column: usize,
}

impl<'a> Cell<'a> {
    /// The values that it may hold, where [that is declared](super::Layout::domain).
    pub fn declared(&self) -> Option<&'a [Box<dyn Erased>]> {
        self.block.domain.as_deref()
    }

    /// Every value that a read may return that overlaps a write of a safe register: those declared,
    /// or those of its type with these tickets. `None` if there are too many.
    pub fn domain(&self, tickets: &[Ticket]) -> Option<Vec<Box<dyn Erased>>> {
        match self.declared() {
            Some(values) => Some(values.iter().map(|value| value.copy()).collect()),
            None => self.init.domain(tickets),
        }
    }

    /// The paper's name, subscripts included.
    pub fn name(&self) -> String {
        let (name, row, column) = (&self.block.name, self.row, self.column);
        match self.block.shape {
            Shape::One(_) => name.clone(),
            Shape::Row(..) => format!("{name}[{column}]"),
            Shape::Table(..) => format!("{name}[{row}][{column}]"),
        }
    }

    /// Whether it takes a double word.
    pub fn is_wide(&self) -> bool {
        self.bits > u64::BITS
    }

    /// The number that no other register has: [`Register::id`](super::Register::id).
    pub fn id(&self) -> usize {
        super::id(self.index, self.is_wide())
    }
}

/// Registers that were asked for together. However many they are, they are one entry: a table of n²
/// registers of which few are ever touched costs next to nothing.
pub(super) struct Block {
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) places: Places,
    pub(super) bits: u32,
    pub(super) init: Box<dyn Erased>,
    /// Those that hold something else at the start.
    pub(super) exceptions: Vec<(usize, Box<dyn Erased>)>,
    /// All values that they may hold, where that is declared.
    pub(super) domain: Option<Vec<Box<dyn Erased>>>,
    /// How many registers were asked for before.
    pub(super) first: usize,
}

/// How many, and where they live.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    One(Home),
    Row(usize, Homes),
    Table(usize, usize, Homes),
}

/// Where the registers of a table are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) base: usize,
    /// Where in a process's own registers row 0 is, and how far on the next row is.
    pub(super) first: usize,
    pub(super) step: usize,
    /// Words from a line to the one below it: in the next band, or in the next row of nobody's
    /// lines.
    pub(super) band: usize,
}

impl Places {
    /// One place.
    pub(super) fn at(base: usize) -> Self {
        Self { base, first: 0, step: 0, band: 0 }
    }

    /// The word of `[row][column]`, with so many to a line.
    #[inline(always)]
    pub(super) fn index(&self, line: usize, row: usize, column: usize) -> usize {
        let nth = self.first + row * self.step;
        self.base + nth / line * self.band + nth % line + column * line
    }
}

impl Block {
    fn is_wide(&self) -> bool {
        self.bits > u64::BITS
    }

    /// Registers per line.
    fn line(&self) -> usize {
        if self.is_wide() { LINE / 2 } else { LINE }
    }

    fn rows_and_columns(&self) -> (usize, usize) {
        match self.shape {
            Shape::One(_) => (1, 1),
            Shape::Row(len, _) => (1, len),
            Shape::Table(rows, columns, _) => (rows, columns),
        }
    }

    /// How many there are.
    pub(super) fn registers(&self) -> usize {
        let (rows, columns) = self.rows_and_columns();
        rows * columns
    }

    /// The register that is the `number`th of all.
    pub(super) fn cell(&self, number: usize) -> Cell<'_> {
        let (rows, columns) = self.rows_and_columns();
        let nth = number - self.first;
        assert!(nth < rows * columns, "there is no register {number}");
        let (row, column) = (nth / columns, nth % columns);
        let home = match self.shape {
            Shape::One(home) => home,
            Shape::Row(_, homes) | Shape::Table(_, _, homes) => homes.of(column),
        };
        let index = self.places.index(self.line(), row, column);
        let exception = self.exceptions.iter().find(|(which, _)| *which == nth);
        let init = &**exception.map_or(&self.init, |(_, init)| init);
        Cell { index, bits: self.bits, home, init, block: self, row, column }
    }

    /// Which of all registers has this id, if it is one of these.
    pub(super) fn find(&self, id: usize) -> Option<usize> {
        let (line, index) = (self.line(), id >> 1);
        if super::id(index, self.is_wide()) != id {
            return None;
        }
        let (rows, columns) = self.rows_and_columns();
        let (row, column) = match self.shape {
            Shape::Row(_, Homes::Column) | Shape::Table(_, _, Homes::Column) => {
                let (band, within) = (index / self.places.band, index % self.places.band);
                ((band * line + within % line).checked_sub(self.places.first)?, within / line)
            }
            // One line each, one after the other.
            _ => {
                let nth = index.checked_sub(self.places.base)?;
                if nth % line != 0 || columns == 0 {
                    return None;
                }
                (nth / line / columns, nth / line % columns)
            }
        };
        (row < rows && column < columns).then(|| self.first + row * columns + column)
    }
}
