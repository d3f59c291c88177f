//! Registers as a layout knows them, without the types of their values.

use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::{any::Any, hash::Hasher};

use super::{Home, Homes, LINE};
use crate::{Ticket, Value};

/// A register's value without its type, for memories that hold registers of many types.
pub trait Erased: Any + Send + Sync {
    /// Returns the value as a machine word, if its format fits one.
    fn word(&self) -> u128;
    /// Returns the value, for downcasting.
    fn any(&self) -> &dyn Any;
    /// Returns a copy.
    fn copy(&self) -> Box<dyn Erased>;
    /// Returns whether type and value are equal.
    fn same(&self, other: &dyn Erased) -> bool;
    /// Feeds a hash that agrees with equality.
    fn hash_into(&self, hasher: &mut dyn Hasher);
    /// Returns the value with its tickets replaced.
    fn relabelled(&self, f: crate::Relabel<'_>) -> Box<dyn Erased>;
    /// Returns all values of this type, if there are not too many.
    fn domain(&self, tickets: &[Ticket]) -> Option<Vec<Box<dyn Erased>>>;
    /// Returns the largest number inside.
    fn magnitude(&self) -> u64;
    /// Formats the value for printing.
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
    /// The index of the arena's word, or of its double word.
    pub index: usize,
    /// How many bits its words have.
    pub bits: u32,
    /// The process in whose memory it lives.
    pub home: Home,
    /// Its initial value.
    pub init: &'a dyn Erased,
    block: &'a Block,
    row: usize,
    column: usize,
}

impl<'a> Cell<'a> {
    /// Returns the values that it may hold, if [they are declared](super::Layout::domain).
    pub fn declared(&self) -> Option<&'a [Box<dyn Erased>]> {
        self.block.domain.as_deref()
    }

    /// Returns every value that a read of a safe register may return if it overlaps a write: the
    /// declared values, or those of the register's type with these tickets. `None` if there are too
    /// many.
    pub fn domain(&self, tickets: &[Ticket]) -> Option<Vec<Box<dyn Erased>>> {
        match self.declared() {
            Some(values) => Some(values.iter().map(|value| value.copy()).collect()),
            None => self.init.domain(tickets),
        }
    }

    /// Returns the paper's name, subscripts included.
    pub fn name(&self) -> String {
        let (name, row, column) = (&self.block.name, self.row, self.column);
        match self.block.shape {
            Shape::One(_) => name.clone(),
            Shape::Row(..) => format!("{name}[{column}]"),
            Shape::Table(..) => format!("{name}[{row}][{column}]"),
        }
    }

    /// Returns whether the register takes a double word.
    pub fn is_wide(&self) -> bool {
        self.bits > u64::BITS
    }

    /// Returns the number that no other register has: [`Register::id`](super::Register::id).
    pub fn id(&self) -> usize {
        super::id(self.index, self.is_wide())
    }
}

/// Registers that were requested together. They are one entry, however many they are: a table of n²
/// registers of which few are ever touched costs next to nothing.
pub(super) struct Block {
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) places: Places,
    pub(super) bits: u32,
    pub(super) init: Box<dyn Erased>,
    /// The registers with another initial value.
    pub(super) exceptions: Vec<(usize, Box<dyn Erased>)>,
    /// All values that they may hold, if declared.
    pub(super) domain: Option<Vec<Box<dyn Erased>>>,
    /// How many registers were requested before.
    pub(super) first: usize,
}

/// How many registers there are, and where they live.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    One(Home),
    Row(usize, Homes),
    Table(usize, usize, Homes),
}

/// Where the registers of a table are in the arena.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) base: usize,
    /// Where row 0 is among a process's own registers, and the distance to the next row.
    pub(super) first: usize,
    pub(super) step: usize,
    /// Words from a line to the line below it: in the next band, or in the next row if the
    /// registers have no home process.
    pub(super) band: usize,
}

impl Places {
    /// Returns a single place.
    pub(super) fn at(base: usize) -> Self {
        Self { base, first: 0, step: 0, band: 0 }
    }

    /// Returns the index of `[row][column]`, with `line` registers to a line.
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

    /// Returns how many registers fit in a line.
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

    /// Returns how many registers there are.
    pub(super) fn registers(&self) -> usize {
        let (rows, columns) = self.rows_and_columns();
        rows * columns
    }

    /// Returns the `number`th of all registers.
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

    /// Returns the number of the register with this id, if the register is in this block.
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
            // One line for each register, one after the other.
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
