//! Registers as a layout knows them, whatever they hold: for memories with registers of many types.

use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::{any::Any, hash::Hasher};

use super::Home;
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
pub struct Cell {
    /// The word of the arena that holds it, or the double word.
    pub index: usize,
    /// How many bits its words have.
    pub bits: u32,
    /// The paper's name, subscripts included.
    pub name: String,
    /// Whose memory it is in.
    pub home: Home,
    /// What it holds at the start.
    pub init: Box<dyn Erased>,
}

impl Cell {
    /// Whether it takes a double word.
    pub fn is_wide(&self) -> bool {
        self.bits > u64::BITS
    }

    /// The number that no other register has: [`Register::id`](super::Register::id).
    pub fn id(&self) -> usize {
        super::id(self.index, self.is_wide())
    }
}
