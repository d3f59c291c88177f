//! Plain tables with aligned columns.

use std::fmt::Display;

/// A table. Each row is printed as soon as it is known: a run that is cut short shows what it has.
pub(crate) struct Table {
    widths: Vec<usize>,
}

impl Table {
    /// Prints the title and the heads of the columns, each of which has a least width.
    pub(crate) fn new(title: impl Display, columns: &[(&str, usize)]) -> Self {
        println!("\n{title}");
        let widths = columns.iter().map(|(head, width)| head.chars().count().max(*width)).collect();
        let table = Self { widths };
        table.row(columns.iter().map(|(head, _)| head.to_string()));
        table
    }

    pub(crate) fn row(&self, cells: impl IntoIterator<Item = String>) {
        let cells =
            cells.into_iter().zip(&self.widths).map(|(cell, width)| format!("{cell:>width$}"));
        println!("  {}", cells.collect::<Vec<_>>().join("   ").trim_end());
    }
}

/// Returns the target and whether the figures meet it.
pub(crate) fn at_most(target: f64, unit: &str, figures: &[f64]) -> String {
    verdict(&format!("≤ {target}{unit}"), figures.iter().all(|figure| *figure <= target))
}

/// Returns the target and whether the figure meets it.
pub(crate) fn at_least(target: f64, figure: f64) -> String {
    verdict(&format!("≥ {target:.1}"), figure >= target)
}

pub(crate) fn verdict(target: &str, met: bool) -> String {
    format!("{target} {}", if met { "met" } else { "MISSED" })
}

pub(crate) fn largest(numbers: &[f64]) -> f64 {
    numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

pub(crate) fn smallest(numbers: &[f64]) -> f64 {
    numbers.iter().copied().fold(f64::INFINITY, f64::min)
}
