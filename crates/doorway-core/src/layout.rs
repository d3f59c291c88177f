//! Where registers live: typed handles into an arena, each register with a home.
//!
//! An algorithm's constructor asks a [`Layout`] for its registers and keeps the handles. The constructor runs twice, once
//! to count and once to place, so that every home gets one segment of whole cache lines and an array over the processes
//! is a base and a stride: natively, `ticket.at(i)` is an addition, not a table lookup.

use alloc::{boxed::Box, format, string::String, vec, vec::Vec};
use core::{any::Any, fmt, marker::PhantomData};

use crate::{Ticket, Value};

/// Words per segment boundary: two cache lines, as the hardware prefetches them in pairs.
pub const LINE: usize = 16;

/// The process in whose memory a register lives. The DSM cost model counts by it; natively it decides the cache line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// Remote to everybody.
    Nobody,
    /// Local to this process.
    Process(usize),
}

/// Where the registers of an array live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Homes {
    /// All remote to everybody.
    Nobody,
    /// Element `i` with process `i`; in a grid, all of column `i`.
    Column,
}

/// A register that holds a `T`.
pub struct Register<T> {
    index: u32,
    value: PhantomData<fn() -> T>,
}

impl<T> Register<T> {
    #[inline(always)]
    fn at(index: usize) -> Self {
        Self { index: index as u32, value: PhantomData }
    }

    /// The word of the arena that holds it.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.index as usize
    }
}

impl<T> Clone for Register<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Register<T> {}
impl<T> fmt::Debug for Register<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.index)
    }
}

/// A row of registers, one per process or node.
#[derive(Debug)]
pub struct Array<T> {
    base: u32,
    stride: u32,
    value: PhantomData<fn() -> T>,
}

impl<T> Array<T> {
    /// Register `i`.
    #[inline(always)]
    pub fn at(&self, i: usize) -> Register<T> {
        Register::at(self.base as usize + i * self.stride as usize)
    }
}

/// A table of registers.
#[derive(Debug)]
pub struct Grid<T> {
    base: u32,
    row: u32,
    column: u32,
    value: PhantomData<fn() -> T>,
}

impl<T> Grid<T> {
    /// Register `[row][column]`.
    #[inline(always)]
    pub fn at(&self, row: usize, column: usize) -> Register<T> {
        Register::at(self.base as usize + row * self.row as usize + column * self.column as usize)
    }
}

/// A register's value without its type, for memories that hold registers of many types.
pub trait Erased: Any + Send + Sync {
    /// The value as a machine word.
    fn word(&self) -> u64;
    /// The value, to be downcast.
    fn any(&self) -> &dyn Any;
    /// A copy.
    fn copy(&self) -> Box<dyn Erased>;
    /// Equality of type and value.
    fn same(&self, other: &dyn Erased) -> bool;
    /// The value with its tickets replaced.
    fn relabelled(&self, f: crate::Relabel<'_>) -> Box<dyn Erased>;
    /// All values of this type.
    fn domain(&self, tickets: &[Ticket]) -> Vec<Box<dyn Erased>>;
    /// The largest number inside.
    fn magnitude(&self) -> u64;
    /// For printing.
    fn text(&self) -> String;
}

impl<T: Value> Erased for T {
    fn word(&self) -> u64 {
        Value::word(*self)
    }
    fn any(&self) -> &dyn Any {
        self
    }
    fn copy(&self) -> Box<dyn Erased> {
        Box::new(*self)
    }
    fn same(&self, other: &dyn Erased) -> bool {
        other.any().downcast_ref::<T>() == Some(self)
    }
    fn relabelled(&self, f: crate::Relabel<'_>) -> Box<dyn Erased> {
        Box::new(self.relabel(f))
    }
    fn domain(&self, tickets: &[Ticket]) -> Vec<Box<dyn Erased>> {
        T::domain(tickets).into_iter().map(|v| Box::new(v) as Box<dyn Erased>).collect()
    }
    fn magnitude(&self) -> u64 {
        Value::magnitude(*self)
    }
    fn text(&self) -> String {
        format!("{self:?}")
    }
}

/// One register as the layout knows it.
pub struct Cell {
    /// The word of the arena that holds it.
    pub index: usize,
    /// The paper's name, subscripts included.
    pub name: String,
    /// Whose memory it is in.
    pub home: Home,
    /// What it holds at the start.
    pub init: Box<dyn Erased>,
}

/// The registers of one instance of an algorithm.
pub struct Layout {
    /// Words per home; 0 while counting.
    segment: usize,
    used: Vec<usize>,
    nobody: usize,
    cells: Vec<Cell>,
    mutant: Option<&'static str>,
}

impl Layout {
    /// Lays out what `build` asks for, for `n` processes, and gives back what it built.
    ///
    /// # Errors
    /// Whatever `build` returns: an algorithm refuses sizes that it cannot serve.
    pub fn build<A, E>(
        n: usize,
        mutant: Option<&'static str>,
        build: impl Fn(&mut Self) -> Result<A, E>,
    ) -> Result<(A, Self), E> {
        let mut counting = Self { segment: 0, used: vec![0; n], nobody: 0, cells: Vec::new(), mutant };
        build(&mut counting)?;
        let most = counting.used.iter().copied().max().unwrap_or(0);
        let mut placing = Self {
            segment: most.next_multiple_of(LINE),
            used: vec![0; n],
            nobody: 0,
            cells: Vec::with_capacity(counting.cells.len()),
            mutant,
        };
        let built = build(&mut placing)?;
        Ok((built, placing))
    }

    /// Whether this instance is built as the named mutant. Always false outside the lab.
    pub fn mutant(&self, name: &str) -> bool {
        self.mutant == Some(name)
    }

    /// The registers, in the order in which they were asked for.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// How many words an arena for this layout needs.
    pub fn words(&self) -> usize {
        self.segment * self.used.len() + self.nobody * LINE
    }

    /// One register.
    pub fn register<T: Value>(&mut self, name: &str, home: Home, init: T) -> Register<T> {
        Register::at(self.place(String::from(name), home, init))
    }

    /// `len` registers.
    pub fn array<T: Value>(&mut self, name: &str, len: usize, homes: Homes, init: T) -> Array<T> {
        let places: Vec<usize> = (0..len).map(|i| self.place(format!("{name}[{i}]"), homes.of(i), init)).collect();
        let (base, stride) = self.affine(name, &places);
        Array { base: base as u32, stride: stride as u32, value: PhantomData }
    }

    /// `rows × columns` registers.
    pub fn grid<T: Value>(&mut self, name: &str, rows: usize, columns: usize, homes: Homes, init: T) -> Grid<T> {
        let places: Vec<usize> = (0..rows)
            .flat_map(|r| (0..columns).map(move |c| (r, c)))
            .map(|(r, c)| self.place(format!("{name}[{r}][{c}]"), homes.of(c), init))
            .collect();
        let firsts: Vec<usize> = places.iter().copied().step_by(columns.max(1)).collect();
        let (base, row) = self.affine(name, &firsts);
        let columns: Vec<(usize, usize)> = places.chunks(columns.max(1)).map(|row| self.affine(name, row)).collect();
        let column = columns.first().map_or(0, |c| c.1);
        assert!(columns.iter().all(|c| c.1 == column), "{name}: the rows are not laid out alike");
        Grid { base: base as u32, row: row as u32, column: column as u32, value: PhantomData }
    }

    /// The base and stride of evenly spaced places. Arrays whose elements live with the processes come out even as long
    /// as every process is home to as many registers; the assertion is for whoever writes the algorithm that breaks this.
    fn affine(&self, name: &str, places: &[usize]) -> (usize, usize) {
        let base = places.first().copied().unwrap_or(0);
        if self.segment == 0 {
            return (base, 0);
        }
        let stride = places.get(1).map_or(0, |&second| second - base);
        assert!(
            places.iter().enumerate().all(|(i, &place)| place == base + i * stride),
            "{name}: homes are uneven; take single registers instead of an array"
        );
        (base, stride)
    }

    fn place<T: Value>(&mut self, name: String, home: Home, init: T) -> usize {
        let index = match home {
            Home::Process(p) => {
                self.used[p] += 1;
                p * self.segment + self.used[p] - 1
            }
            Home::Nobody => {
                self.nobody += 1;
                self.used.len() * self.segment + (self.nobody - 1) * LINE
            }
        };
        self.cells.push(Cell { index, name, home, init: Box::new(init) });
        index
    }
}

impl Homes {
    fn of(self, i: usize) -> Home {
        match self {
            Homes::Nobody => Home::Nobody,
            Homes::Column => Home::Process(i),
        }
    }
}
