//! Where registers live: typed handles into an arena, each register with a home.
//!
//! An algorithm's constructor asks a [`Layout`] for its registers and keeps the handles. The arena
//! is made of lines of [`LINE`] words, and no two homes share one:
//!
//! ```text
//! line 0 … n-1      the first LINE registers of process 0 … n-1   (a band)
//! line n … 2n-1     the next LINE registers of process 0 … n-1, and so on
//! then              one line for each register without a home process
//! ```
//!
//! So an array over the processes always has the constant stride `LINE`: natively, `ticket.at(i)`
//! is a shift and an addition. The constructor runs twice, because only the first run tells how
//! many bands come before the lines without a home process.
//!
//! Values of more than 64 bits live in a second arena of the same form, made of double words. Its
//! lines have half as many words.

use alloc::{boxed::Box, string::String, vec, vec::Vec};
use core::{fmt, ops::Range};

mod cell;
#[cfg(test)]
mod tests;

use cell::{Block, Places, Shape};
pub use cell::{Cell, Erased};

use crate::Value;

/// Words per line of the arena: two cache lines of the hardware, which prefetches them in pairs.
pub const LINE: usize = 16;

/// The process in whose memory a register lives. The DSM cost model counts remote references by it.
/// Natively it decides the cache line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// Remote to every process.
    Nobody,
    /// Local to this process.
    Process(usize),
}

/// Where the registers of an array live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Homes {
    /// All registers are remote to every process.
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

    /// Returns the index of the arena's word, or of its double word if the values are
    /// [wide](is_wide).
    #[inline(always)]
    pub fn index(self) -> usize {
        self.index
    }

    /// Returns what is needed to decode the register's words.
    #[inline(always)]
    pub fn format(self) -> T::Format {
        self.format
    }

    /// Returns the register's number in the layout, which no other register has.
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

/// Returns whether values of this format take a double word.
#[inline(always)]
pub fn is_wide<T: Value>(format: T::Format) -> bool {
    T::bits(format) > u64::BITS
}

#[inline(always)]
fn id(index: usize, wide: bool) -> usize {
    index << 1 | usize::from(wide)
}

/// Returns how many registers fit in a line.
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
    /// Returns register `i`.
    #[inline(always)]
    pub fn at(&self, i: usize) -> Register<T> {
        Register::at(self.base + i * stride::<T>(self.format), self.format)
    }
}

/// A table of registers.
#[derive(Debug)]
pub struct Grid<T: Value> {
    places: Places,
    format: T::Format,
}

impl<T: Value> Grid<T> {
    /// Returns register `[row][column]`.
    #[inline(always)]
    pub fn at(&self, row: usize, column: usize) -> Register<T> {
        Register::at(self.places.index(stride::<T>(self.format), row, column), self.format)
    }
}

/// The registers of one instance of an algorithm.
pub struct Layout {
    words: Arena,
    doubles: Arena,
    blocks: Vec<Block>,
    mutant: Option<&'static str>,
}

/// The allocator of one arena: where the next register goes.
struct Arena {
    /// Registers per line.
    line: usize,
    /// How many bands the processes' registers take; 0 while counting.
    bands: usize,
    /// Registers so far of each process.
    used: Vec<usize>,
    /// Registers so far without a home process.
    nobody: usize,
}

impl Arena {
    fn new(n: usize, line: usize, bands: usize) -> Self {
        Self { line, bands, used: vec![0; n], nobody: 0 }
    }

    /// Returns an empty arena with as many bands as the count has shown to be needed.
    fn again(&self) -> Self {
        let most = self.used.iter().copied().max().unwrap_or(0);
        Self::new(self.used.len(), self.line, most.div_ceil(self.line))
    }

    fn len(&self) -> usize {
        (self.bands * self.used.len() + self.nobody) * self.line
    }

    /// Makes room for registers without a home process; returns the index of the first.
    fn nobodys(&mut self, registers: usize) -> usize {
        self.nobody += registers;
        (self.bands * self.used.len() + self.nobody - registers) * self.line
    }

    /// Makes room for `rows` registers with each of the first `columns` processes, at the same
    /// place in each process's own registers. Returns `None` if these processes have unequal
    /// numbers of registers.
    fn columns(&mut self, rows: usize, columns: usize) -> Option<Places> {
        let n = self.used.len();
        let used = &mut self.used[..columns];
        let first = used.first().copied().unwrap_or(0);
        if rows > 0 && used.iter().any(|&used| used != first) {
            return None;
        }
        used.iter_mut().for_each(|used| *used += rows);
        Some(Places { base: 0, first, step: 1, band: n * self.line })
    }

    /// Makes room for one register; returns its index.
    fn one(&mut self, home: Home) -> usize {
        match home {
            Home::Process(p) => {
                let nth = self.used[p];
                self.used[p] += 1;
                (nth / self.line * self.used.len() + p) * self.line + nth % self.line
            }
            Home::Nobody => self.nobodys(1),
        }
    }
}

impl Layout {
    /// Lays out what `build` requests, for `n` processes, and returns what it built.
    ///
    /// # Errors
    /// Returns the error of `build`: an algorithm refuses sizes that it cannot serve.
    pub fn build<A, E>(
        n: usize,
        mutant: Option<&'static str>,
        build: impl Fn(&mut Self) -> Result<A, E>,
    ) -> Result<(A, Self), E> {
        let (words, doubles) = (Arena::new(n, LINE, 0), Arena::new(n, LINE / 2, 0));
        let mut counting = Self { words, doubles, blocks: Vec::new(), mutant };
        build(&mut counting)?;
        let (words, doubles) = (counting.words.again(), counting.doubles.again());
        let mut placing = Self { words, doubles, blocks: Vec::new(), mutant };
        let built = build(&mut placing)?;
        Ok((built, placing))
    }

    /// Returns whether this instance is built as the named mutant. Always false outside the lab.
    pub fn mutant(&self, name: &str) -> bool {
        self.mutant == Some(name)
    }

    /// Returns how many registers there are.
    pub fn registers(&self) -> usize {
        self.blocks.last().map_or(0, |block| block.first + block.registers())
    }

    /// Returns the registers, in the order in which they were requested.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = Cell<'_>> + Clone {
        (0..self.registers()).map(|number| self.cell(number))
    }

    /// Returns one register, by its position in that order.
    ///
    /// # Panics
    /// If there is no such register.
    pub fn cell(&self, number: usize) -> Cell<'_> {
        let after = self.blocks.partition_point(|block| block.first <= number);
        self.blocks[after - 1].cell(number)
    }

    /// Returns the position of the register with this [`id`](Register::id).
    pub fn find(&self, id: usize) -> Option<usize> {
        self.blocks.iter().find_map(|block| block.find(id))
    }

    /// Returns the register of this name, with its position.
    pub fn named(&self, name: &str) -> Option<(usize, Cell<'_>)> {
        self.cells().enumerate().find(|(_, cell)| cell.name() == name)
    }

    /// Returns the positions of the registers that were requested under this name: all elements of
    /// an array or a table. Fast, however many they are.
    pub fn block(&self, name: &str) -> Option<Range<usize>> {
        let block = self.blocks.iter().find(|block| block.name == name)?;
        Some(block.first..block.first + block.registers())
    }

    /// Returns how many words an arena for this layout needs.
    pub fn words(&self) -> usize {
        self.words.len()
    }

    /// Returns how many double words it needs in addition.
    pub fn doubles(&self) -> usize {
        self.doubles.len()
    }

    /// Requests one register.
    pub fn register<T: Value<Format = ()>>(
        &mut self,
        name: &str,
        home: Home,
        init: T,
    ) -> Register<T> {
        self.formatted(name, home, init, ())
    }

    /// Requests one register whose values have a format.
    pub fn formatted<T: Value>(
        &mut self,
        name: &str,
        home: Home,
        init: T,
        format: T::Format,
    ) -> Register<T> {
        let base = self.arena(is_wide::<T>(format)).one(home);
        self.keep(name, Shape::One(home), Places::at(base), init, format);
        Register::at(base, format)
    }

    /// Requests `len` registers.
    ///
    /// # Panics
    /// If the elements live with the processes and these processes have unequal numbers of
    /// registers so far. Then use single registers, or request the arrays first.
    pub fn array<T: Value<Format = ()>>(
        &mut self,
        name: &str,
        len: usize,
        homes: Homes,
        init: T,
    ) -> Array<T> {
        self.formatted_array(name, len, homes, init, ())
    }

    /// Requests `len` registers whose values have a format.
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
        let places = self.places(name, (1, len), homes, is_wide::<T>(format));
        let base = places.index(stride::<T>(format), 0, 0);
        self.keep(name, Shape::Row(len, homes), places, init, format);
        Array { base, format }
    }

    /// Requests `rows × columns` registers.
    ///
    /// # Panics
    /// As for an [`array`](Self::array).
    pub fn grid<T>(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
        homes: Homes,
        init: T,
    ) -> Grid<T>
    where
        T: Value<Format = ()>,
    {
        self.formatted_grid(name, (rows, columns), homes, init, ())
    }

    /// Requests `rows × columns` registers whose values have a format.
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
        let places = self.places(name, (rows, columns), homes, is_wide::<T>(format));
        self.keep(name, Shape::Table(rows, columns, homes), places, init, format);
        Grid { places, format }
    }

    fn arena(&mut self, wide: bool) -> &mut Arena {
        if wide { &mut self.doubles } else { &mut self.words }
    }

    /// Makes room for a table.
    fn places(
        &mut self,
        name: &str,
        (rows, columns): (usize, usize),
        homes: Homes,
        wide: bool,
    ) -> Places {
        let arena = self.arena(wide);
        let line = arena.line;
        match homes {
            Homes::Nobody => Places {
                band: columns * line,
                step: line,
                ..Places::at(arena.nobodys(rows * columns))
            },
            Homes::Column => match arena.columns(rows, columns) {
                Some(places) => places,
                None => panic!("{name}: homes are uneven; take single registers instead"),
            },
        }
    }

    /// Records what was requested.
    fn keep<T: Value>(
        &mut self,
        name: &str,
        shape: Shape,
        places: Places,
        init: T,
        format: T::Format,
    ) {
        let (bits, first) = (T::bits(format), self.registers());
        let (name, init, exceptions) = (String::from(name), Box::new(init), Vec::new());
        self.blocks.push(Block {
            name,
            shape,
            places,
            bits,
            init,
            exceptions,
            domain: None,
            first,
        });
    }

    /// Declares which values the registers that were requested under this name may hold. A read of
    /// a safe register that overlaps a write returns any of them. The checker refuses an algorithm
    /// that writes another value, or begins with one; natively nothing is checked.
    ///
    /// Types with few values (`bool`, tickets) declare their values themselves. This method is for
    /// all other types.
    ///
    /// ```
    /// # use doorway_core::{Homes, Layout};
    /// # Layout::build(3, None, |layout| {
    /// let flag = layout.array("Flag", 3, Homes::Column, 0_u8);
    /// layout.domain("Flag", 0..=4_u8);
    /// # Ok::<_, doorway_core::Unfit>(flag) })?;
    /// # Ok::<_, doorway_core::Unfit>(())
    /// ```
    ///
    /// # Panics
    /// If there are no such registers, if they are of another type, or if a value holds a ticket.
    /// Tickets are relabelled, so no list of them has a meaning.
    pub fn domain<T: Value>(&mut self, name: &str, values: impl IntoIterator<Item = T>) {
        let block = self.blocks.iter_mut().rev().find(|block| block.name == name);
        let Some(block) = block else {
            panic!("there is no register {name} to declare a domain of")
        };
        assert!(
            block.init.any().is::<T>(),
            "{name} holds values of another type than its declared domain"
        );
        let values = values.into_iter().map(|value| {
            let _ = value.relabel(&mut |_| panic!("{name}: tickets have no domain to be declared"));
            Box::new(value) as Box<dyn Erased>
        });
        block.domain = Some(values.collect());
    }

    /// Gives a register an initial value other than that of the registers requested with it.
    ///
    /// # Panics
    /// If the register is not in this layout.
    pub fn begin<T: Value>(&mut self, register: Register<T>, init: T) {
        let number = self.find(register.id()).expect("it is of this layout");
        let after = self.blocks.partition_point(|block| block.first <= number);
        let block = &mut self.blocks[after - 1];
        block.exceptions.push((number - block.first, Box::new(init)));
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
