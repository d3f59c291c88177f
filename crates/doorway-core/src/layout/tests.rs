//! Tests that handles lead to the words of their cells.

use alloc::{collections::BTreeSet, format};
use core::convert::Infallible;

use super::*;

fn build<A>(n: usize, build: impl Fn(&mut Layout) -> A) -> (A, Layout) {
    let Ok(built) = Layout::build(n, None, |layout| Ok::<_, Infallible>(build(layout)));
    built
}

/// Checks that each handle leads to the word of its cell, that no two lead to the same word, and
/// that all words are inside the arena.
fn assert_placed(layout: &Layout, handles: &[(String, usize)]) {
    let cells: BTreeSet<_> = layout.cells().map(|cell| (cell.name(), cell.index)).collect();
    assert_eq!(cells, handles.iter().cloned().collect());
    let words: BTreeSet<_> = handles.iter().map(|(_, index)| *index).collect();
    assert_eq!(words.len(), layout.cells().len());
    assert!(words.iter().all(|&index| index < layout.words()));
    // Ids lead back to a register where there is one, and nowhere else.
    for (number, cell) in layout.cells().enumerate() {
        assert_eq!(
            (layout.find(cell.id()), layout.find(cell.id() ^ 1)),
            (Some(number), None),
            "{}",
            cell.name()
        );
    }
    let found = (0..layout.words()).filter_map(|index| layout.find(id(index, false)));
    assert_eq!(found.collect::<BTreeSet<_>>(), (0..layout.registers()).collect());
}

fn of_array<T: Value>(name: &str, array: &Array<T>, len: usize) -> Vec<(String, usize)> {
    (0..len).map(|i| (format!("{name}[{i}]"), array.at(i).index())).collect()
}

fn of_grid<T: Value>(
    name: &str,
    grid: &Grid<T>,
    rows: usize,
    columns: usize,
) -> Vec<(String, usize)> {
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

/// A process with more registers than a line holds: the rest is in further bands, in lines of its
/// own.
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

/// Without a register in any process's memory there are no bands.
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
    assert_eq!(layout.cell(4).name(), "G[3][0]");
    assert_eq!(layout.cell(4).init.word(), 7);
}

#[test]
fn nothing_takes_no_words() {
    let ((), layout) = build(3, |layout| {
        layout.array("A", 0, Homes::Column, false);
        layout.grid("G", 0, 3, Homes::Column, false);
        layout.grid("H", 3, 0, Homes::Nobody, false);
    });
    assert_eq!(layout.words(), 0);
    assert_eq!(layout.registers(), 0);
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
    let named = Layout::build(1, Some("x"), |layout| {
        Ok::<_, Infallible>((layout.mutant("x"), layout.mutant("y")))
    });
    let Ok((mutants, _)) = named;
    assert_eq!(mutants, (true, false));
    assert!(!build(1, |layout| layout.mutant("x")).0);
}

/// A table is one entry however many registers it has, and each register is found.
#[test]
fn a_large_table_is_one_entry() {
    let n = 4096;
    let (grids, layout) =
        build(n, |layout| [0_u64, 1].map(|side| layout.grid("B", n, n, Homes::Column, side)));
    assert_eq!(layout.registers(), 2 * n * n);
    for (side, row, column) in [(0, 0, 0), (0, 4095, 17), (1, 0, 4095), (1, 1234, 567)] {
        let number = layout.find(grids[side].at(row, column).id());
        assert_eq!(number, Some((side * n + row) * n + column));
        let cell = layout.cell(number.unwrap_or(0));
        assert_eq!(
            (cell.name(), cell.home),
            (format!("B[{row}][{column}]"), Home::Process(column))
        );
        assert_eq!(cell.init.word(), side as u128);
    }
}

#[test]
fn registers_that_were_asked_for_together_are_found_together() {
    let (_, layout) = build(3, |layout| {
        layout.array("A", 3, Homes::Column, 0_u64);
        layout.grid("B", 2, 3, Homes::Nobody, 0_u64);
        layout.register("S", Home::Nobody, 0_u64);
    });
    let names = |block: &str| {
        layout.block(block).map(|block| block.map(|r| layout.cell(r).name()).collect::<Vec<_>>())
    };
    assert_eq!(names("A").expect("A"), ["A[0]", "A[1]", "A[2]"]);
    assert_eq!(names("B").expect("B").len(), 6);
    assert_eq!(names("S").expect("S"), ["S"]);
    assert_eq!(names("A[0]"), None);
}
