//! Where registers live: typed handles into an arena, each register with a home.
//!
//! An algorithm's constructor asks a [`Layout`] for its registers and keeps the handles. The arena is made of lines of
//! [`LINE`] words, and no two homes share one:
//!
//! ```text
//! line 0 … n-1      the first LINE registers of process 0 … n-1   (a band)
//! line n … 2n-1     the next LINE registers of process 0 … n-1, and so on
//! then              one line for each register that lives with nobody
//! ```
//!
//! So an array over the processes always has the stride `LINE`, a constant: natively, `ticket.at(i)` is a shift and an
//! addition. The constructor runs twice, as only the first run tells how many bands come before nobody's lines.

use alloc::{boxed::Box, format, string::String, vec, vec::Vec};
use core::{any::Any, fmt, marker::PhantomData};

use crate::{Ticket, Value};

/// Words per line of the arena: two cache lines of the hardware, which prefetches them in pairs.
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
    index: usize,
    value: PhantomData<fn() -> T>,
}

impl<T> Register<T> {
    #[inline(always)]
    fn at(index: usize) -> Self {
        Self { index, value: PhantomData }
    }

    /// The word of the arena that holds it.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.index
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
    base: usize,
    value: PhantomData<fn() -> T>,
}

impl<T> Array<T> {
    /// Register `i`.
    #[inline(always)]
    pub fn at(&self, i: usize) -> Register<T> {
        Register::at(self.base + i * LINE)
    }
}

/// A table of registers.
#[derive(Debug)]
pub struct Grid<T> {
    base: usize,
    /// Where in a process's own registers row 0 is, and how far on the next row is.
    first: usize,
    step: usize,
    /// Words from a line to the one below it: in the next band, or in the next row of nobody's lines.
    band: usize,
    value: PhantomData<fn() -> T>,
}

impl<T> Grid<T> {
    /// Register `[row][column]`.
    #[inline(always)]
    pub fn at(&self, row: usize, column: usize) -> Register<T> {
        let nth = self.first + row * self.step;
        Register::at(self.base + nth / LINE * self.band + nth % LINE + column * LINE)
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
    /// All values of this type, if there are not too many.
    fn domain(&self, tickets: &[Ticket]) -> Option<Vec<Box<dyn Erased>>>;
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
    fn domain(&self, tickets: &[Ticket]) -> Option<Vec<Box<dyn Erased>>> {
        Some(T::domain(tickets)?.into_iter().map(|v| Box::new(v) as Box<dyn Erased>).collect())
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
    /// How many bands the processes' registers take; 0 while counting.
    bands: usize,
    /// Registers so far of each process.
    used: Vec<usize>,
    /// Registers so far of nobody.
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
        let empty = |bands| Self { bands, used: vec![0; n], nobody: 0, cells: Vec::new(), mutant };
        let mut counting = empty(0);
        build(&mut counting)?;
        let most = counting.used.iter().copied().max().unwrap_or(0);
        let mut placing = empty(most.div_ceil(LINE));
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
        (self.bands * self.used.len() + self.nobody) * LINE
    }

    /// One register.
    pub fn register<T: Value>(&mut self, name: &str, home: Home, init: T) -> Register<T> {
        Register::at(self.place(String::from(name), home, init))
    }

    /// `len` registers.
    ///
    /// # Panics
    /// If the elements live with the processes and some process has been given more registers than another before. Take
    /// single registers then, or ask for the arrays first.
    pub fn array<T: Value>(&mut self, name: &str, len: usize, homes: Homes, init: T) -> Array<T> {
        let places: Vec<usize> = (0..len).map(|i| self.place(format!("{name}[{i}]"), homes.of(i), init)).collect();
        let array = Array { base: places.first().copied().unwrap_or(0), value: PhantomData };
        let even = places.iter().enumerate().all(|(i, &place)| place == array.at(i).index());
        assert!(even, "{name}: homes are uneven; take single registers instead of an array");
        array
    }

    /// `rows × columns` registers.
    ///
    /// # Panics
    /// As for an [`array`](Self::array).
    pub fn grid<T: Value>(&mut self, name: &str, rows: usize, columns: usize, homes: Homes, init: T) -> Grid<T> {
        let mut grid = match homes {
            Homes::Nobody => Grid { base: 0, first: 0, step: LINE, band: columns * LINE, value: PhantomData },
            Homes::Column => {
                let first = self.used.first().copied().unwrap_or(0);
                Grid { base: 0, first, step: 1, band: self.used.len() * LINE, value: PhantomData }
            }
        };
        let all = (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c)));
        let places: Vec<usize> =
            all.clone().map(|(r, c)| self.place(format!("{name}[{r}][{c}]"), homes.of(c), init)).collect();
        if homes == Homes::Nobody {
            grid.base = places.first().copied().unwrap_or(0);
        }
        let even = all.zip(&places).all(|((r, c), &place)| place == grid.at(r, c).index());
        assert!(even, "{name}: homes are uneven; take single registers instead of a grid");
        grid
    }

    fn place<T: Value>(&mut self, name: String, home: Home, init: T) -> usize {
        let n = self.used.len();
        let index = match home {
            Home::Process(p) => {
                let nth = self.used[p];
                self.used[p] += 1;
                (nth / LINE * n + p) * LINE + nth % LINE
            }
            Home::Nobody => {
                self.nobody += 1;
                (self.bands * n + self.nobody - 1) * LINE
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

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use core::convert::Infallible;

    use super::*;

    fn build<A>(n: usize, build: impl Fn(&mut Layout) -> A) -> (A, Layout) {
        let Ok(built) = Layout::build(n, None, |layout| Ok::<_, Infallible>(build(layout)));
        built
    }

    /// The handles lead to the words that the cells are in, no two to the same one, and all inside the arena.
    fn assert_placed(layout: &Layout, handles: &[(String, usize)]) {
        let cells: BTreeSet<_> = layout.cells().iter().map(|cell| (cell.name.clone(), cell.index)).collect();
        assert_eq!(cells, handles.iter().cloned().collect());
        let words: BTreeSet<_> = handles.iter().map(|(_, index)| *index).collect();
        assert_eq!(words.len(), layout.cells().len());
        assert!(words.iter().all(|&index| index < layout.words()));
    }

    fn of_array<T>(name: &str, array: &Array<T>, len: usize) -> Vec<(String, usize)> {
        (0..len).map(|i| (format!("{name}[{i}]"), array.at(i).index())).collect()
    }

    fn of_grid<T>(name: &str, grid: &Grid<T>, rows: usize, columns: usize) -> Vec<(String, usize)> {
        let all = (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c)));
        all.map(|(r, c)| (format!("{name}[{r}][{c}]"), grid.at(r, c).index())).collect()
    }

    #[test]
    fn arrays_and_grids_find_their_registers() {
        for n in [1, 2, 3, 8, 33] {
            let rows = 2 * n + 1;
            let ((flag, table, tree, shared, one), layout) = build(n, |layout| {
                let flag = layout.array("Flag", n, Homes::Column, false);
                let table = layout.grid("Table", rows, n, Homes::Column, 0_u32);
                let tree = layout.grid("Tree", rows, 2, Homes::Nobody, None::<u32>);
                let shared = layout.array("Shared", 3, Homes::Nobody, 0_u64);
                (flag, table, tree, shared, layout.register("One", Home::Nobody, false))
            });
            let mut handles = of_array("Flag", &flag, n);
            handles.extend(of_grid("Table", &table, rows, n));
            handles.extend(of_grid("Tree", &tree, rows, 2));
            handles.extend(of_array("Shared", &shared, 3));
            handles.push((String::from("One"), one.index()));
            assert_placed(&layout, &handles);
        }
    }

    /// More registers than a line holds: the rest is in further bands, and still in lines of its own.
    #[test]
    fn a_process_may_have_many_lines() {
        let (n, rows) = (3, 2 * LINE + 1);
        let (grid, layout) = build(n, |layout| layout.grid("Row", rows, n, Homes::Column, 0_u8));
        assert_placed(&layout, &of_grid("Row", &grid, rows, n));
        assert_eq!(layout.words(), 3 * n * LINE);
        for cell in layout.cells() {
            assert_eq!(cell.home, Home::Process(cell.index / LINE % n));
        }
    }

    /// With no register in any process's memory there are no bands, only nobody's lines.
    #[test]
    fn all_registers_may_be_nobodys() {
        let ((array, grid), layout) = build(4, |layout| {
            (layout.array("A", 5, Homes::Nobody, 0_u64), layout.grid("G", 2, 3, Homes::Nobody, 0_u64))
        });
        let mut handles = of_array("A", &array, 5);
        handles.extend(of_grid("G", &grid, 2, 3));
        assert_placed(&layout, &handles);
        assert_eq!(layout.words(), 11 * LINE);
    }

    #[test]
    fn one_process_alone() {
        let ((array, grid), layout) = build(1, |layout| {
            (layout.array("A", 1, Homes::Column, true), layout.grid("G", 4, 1, Homes::Column, 7_u64))
        });
        assert_eq!(array.at(0).index(), 0);
        assert_eq!([0, 1, 2, 3].map(|row| grid.at(row, 0).index()), [1, 2, 3, 4]);
        assert_eq!(layout.words(), LINE);
        assert_eq!(layout.cells()[4].name, "G[3][0]");
        assert_eq!(layout.cells()[4].init.word(), 7);
    }

    #[test]
    fn nothing_takes_no_words() {
        let ((), layout) = build(3, |layout| {
            layout.array("A", 0, Homes::Column, false);
            layout.grid("G", 0, 3, Homes::Column, false);
            layout.grid("H", 3, 0, Homes::Nobody, false);
        });
        assert_eq!(layout.words(), 0);
        assert!(layout.cells().is_empty());
    }

    #[test]
    #[should_panic(expected = "Late: homes are uneven")]
    fn uneven_homes_are_refused() {
        build(2, |layout| {
            layout.register("Mine", Home::Process(0), false);
            layout.array("Late", 2, Homes::Column, false)
        });
    }

    #[test]
    fn only_the_named_mutant_is_one() {
        let named = Layout::build(1, Some("x"), |layout| Ok::<_, Infallible>((layout.mutant("x"), layout.mutant("y"))));
        let Ok((mutants, _)) = named;
        assert_eq!(mutants, (true, false));
        assert!(!build(1, |layout| layout.mutant("x")).0);
    }
}
