//! Tables whose lines are printed as they are measured.

use std::time::Duration;

use muster_support::figures::Measured;

/// A table; the first column is the widest.
pub(crate) struct Table {
    widths: Vec<usize>,
}

impl Table {
    /// Prints title and headings.
    pub(crate) fn begin(title: &str, headings: &[&str]) -> Self {
        println!("\n{title}");
        let table = Self { widths: headings.iter().map(|heading| heading.chars().count().max(11)).collect() };
        table.line(headings.iter().map(|heading| (*heading).to_owned()));
        table
    }

    /// Prints one line.
    pub(crate) fn line(&self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().zip(&self.widths).map(|(cell, width)| format!("{cell:>width$}"));
        println!("{}", cells.collect::<Vec<_>>().join("  "));
    }
}

/// A time in milliseconds.
pub(crate) fn ms(time: Duration) -> String {
    Measured::time(time).to_string()
}

/// Memory in MiB.
pub(crate) fn mib(bytes: u64) -> String {
    Measured::memory(bytes).to_string()
}
