//! Plain tables with aligned columns.

/// A table, printed when all rows are there.
pub(crate) struct Table {
    title: String,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        Self { title: title.into(), rows: vec![columns.iter().map(ToString::to_string).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn print(&self) {
        println!("{}", self.title);
        let columns = self.rows[0].len();
        let width = |i: usize| self.rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
            println!("  {}", cells.collect::<Vec<_>>().join("   "));
        }
        println!();
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
