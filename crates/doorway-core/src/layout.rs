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
//!
//! Values of more than 64 bits live in a second arena just like it, of double words, half as many to a line.

use alloc::{boxed::Box, format, string::String, vec, vec::Vec};
use core::fmt;

mod cell;
#[cfg(test)]
mod tests;

pub use cell::{Cell, Erased};

use crate::Value;

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
pub struct Register<T: Value> {
    index: usize,
    format: T::Format,
}

impl<T: Value> Register<T> {
    #[inline(always)]
    fn at(index: usize, format: T::Format) -> Self {
        Self { index, format }
    }

    /// The word of the arena that holds it, or the double word if its values are [wide](is_wide).
    #[inline(always)]
    pub fn index(self) -> usize {
        self.index
    }

    /// What it takes to read its words.
    #[inline(always)]
    pub fn format(self) -> T::Format {
        self.format
    }

    /// Which of the layout's cells it is: a number that no other register has.
    #[inline(always)]
    pub fn id(self) -> usize {
        id(self.index, is_wide::<T>(self.format))
    }
}

impl<T: Value> Clone for Register<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Value> Copy for Register<T> {}
impl<T: Value> fmt::Debug for Register<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.index)
    }
}

/// Whether values of this format take a double word.
#[inline(always)]
pub fn is_wide<T: Value>(format: T::Format) -> bool {
    T::bits(format) > u64::BITS
}

#[inline(always)]
fn id(index: usize, wide: bool) -> usize {
    index << 1 | usize::from(wide)
}

/// Registers per line.
#[inline(always)]
fn stride<T: Value>(format: T::Format) -> usize {
    if is_wide::<T>(format) { LINE / 2 } else { LINE }
}

/// A row of registers, one per process or node.
#[derive(Debug)]
pub struct Array<T: Value> {
    base: usize,
    format: T::Format,
}

impl<T: Value> Array<T> {
    /// Register `i`.
    #[inline(always)]
    pub fn at(&self, i: usize) -> Register<T> {
        Register::at(self.base + i * stride::<T>(self.format), self.format)
    }
}

/// A table of registers.
#[derive(Debug)]
pub struct Grid<T: Value> {
    base: usize,
    /// Where in a process's own registers row 0 is, and how far on the next row is.
    first: usize,
    step: usize,
    /// Words from a line to the one below it: in the next band, or in the next row of nobody's lines.
    band: usize,
    format: T::Format,
}

impl<T: Value> Grid<T> {
    /// Register `[row][column]`.
    #[inline(always)]
    pub fn at(&self, row: usize, column: usize) -> Register<T> {
        let line = stride::<T>(self.format);
        let nth = self.first + row * self.step;
        Register::at(self.base + nth / line * self.band + nth % line + column * line, self.format)
    }
}

/// The registers of one instance of an algorithm.
pub struct Layout {
    words: Arena,
    doubles: Arena,
    cells: Vec<Cell>,
    mutant: Option<&'static str>,
}

/// Where the next register goes.
struct Arena {
    /// Registers per line.
    line: usize,
    /// How many bands the processes' registers take; 0 while counting.
    bands: usize,
    /// Registers so far of each process.
    used: Vec<usize>,
    /// Registers so far of nobody.
    nobody: usize,
}

impl Arena {
    fn new(n: usize, line: usize, bands: usize) -> Self {
        Self { line, bands, used: vec![0; n], nobody: 0 }
    }

    /// The same, empty, with as many bands as have turned out to be needed.
    fn again(&self) -> Self {
        let most = self.used.iter().copied().max().unwrap_or(0);
        Self::new(self.used.len(), self.line, most.div_ceil(self.line))
    }

    fn len(&self) -> usize {
        (self.bands * self.used.len() + self.nobody) * self.line
    }

    fn place(&mut self, home: Home) -> usize {
        let n = self.used.len();
        match home {
            Home::Process(p) => {
                let nth = self.used[p];
                self.used[p] += 1;
                (nth / self.line * n + p) * self.line + nth % self.line
            }
            Home::Nobody => {
                self.nobody += 1;
                (self.bands * n + self.nobody - 1) * self.line
            }
        }
    }
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
        let (words, doubles) = (Arena::new(n, LINE, 0), Arena::new(n, LINE / 2, 0));
        let mut counting = Self { words, doubles, cells: Vec::new(), mutant };
        build(&mut counting)?;
        let (words, doubles) = (counting.words.again(), counting.doubles.again());
        let mut placing = Self { words, doubles, cells: Vec::new(), mutant };
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
        self.words.len()
    }

    /// How many double words it needs besides.
    pub fn doubles(&self) -> usize {
        self.doubles.len()
    }

    /// One register.
    pub fn register<T: Value<Format = ()>>(&mut self, name: &str, home: Home, init: T) -> Register<T> {
        self.formatted(name, home, init, ())
    }

    /// One register whose values have a format.
    pub fn formatted<T: Value>(&mut self, name: &str, home: Home, init: T, format: T::Format) -> Register<T> {
        Register::at(self.place(String::from(name), home, init, format), format)
    }

    /// `len` registers.
    ///
    /// # Panics
    /// If the elements live with the processes and some process has been given more registers than another before. Take
    /// single registers then, or ask for the arrays first.
    pub fn array<T: Value<Format = ()>>(&mut self, name: &str, len: usize, homes: Homes, init: T) -> Array<T> {
        self.formatted_array(name, len, homes, init, ())
    }

    /// `len` registers whose values have a format.
    ///
    /// # Panics
    /// As for an [`array`](Self::array).
    pub fn formatted_array<T: Value>(
        &mut self,
        name: &str,
        len: usize,
        homes: Homes,
        init: T,
        format: T::Format,
    ) -> Array<T> {
        let mut place = |i| self.place(format!("{name}[{i}]"), homes.of(i), init.clone(), format);
        let places: Vec<usize> = (0..len).map(&mut place).collect();
        let array = Array { base: places.first().copied().unwrap_or(0), format };
        let even = places.iter().enumerate().all(|(i, &place)| place == array.at(i).index());
        assert!(even, "{name}: homes are uneven; take single registers instead of an array");
        array
    }

    /// `rows × columns` registers.
    ///
    /// # Panics
    /// As for an [`array`](Self::array).
    pub fn grid<T>(&mut self, name: &str, rows: usize, columns: usize, homes: Homes, init: T) -> Grid<T>
    where
        T: Value<Format = ()>,
    {
        self.formatted_grid(name, (rows, columns), homes, init, ())
    }

    /// `rows × columns` registers whose values have a format.
    ///
    /// # Panics
    /// As for an [`array`](Self::array).
    pub fn formatted_grid<T: Value>(
        &mut self,
        name: &str,
        (rows, columns): (usize, usize),
        homes: Homes,
        init: T,
        format: T::Format,
    ) -> Grid<T> {
        let line = stride::<T>(format);
        let arena = self.arena(is_wide::<T>(format));
        let mut grid = match homes {
            Homes::Nobody => Grid { base: 0, first: 0, step: line, band: columns * line, format },
            Homes::Column => {
                let first = arena.used.first().copied().unwrap_or(0);
                Grid { base: 0, first, step: 1, band: arena.used.len() * line, format }
            }
        };
        let all = (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c)));
        let mut place = |(r, c)| self.place(format!("{name}[{r}][{c}]"), homes.of(c), init.clone(), format);
        let places: Vec<usize> = all.clone().map(&mut place).collect();
        if homes == Homes::Nobody {
            grid.base = places.first().copied().unwrap_or(0);
        }
        let even = all.zip(&places).all(|((r, c), &place)| place == grid.at(r, c).index());
        assert!(even, "{name}: homes are uneven; take single registers instead of a grid");
        grid
    }

    fn arena(&mut self, wide: bool) -> &mut Arena {
        if wide { &mut self.doubles } else { &mut self.words }
    }

    fn place<T: Value>(&mut self, name: String, home: Home, init: T, format: T::Format) -> usize {
        let bits = T::bits(format);
        let index = self.arena(is_wide::<T>(format)).place(home);
        self.cells.push(Cell { index, bits, name, home, init: Box::new(init) });
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
