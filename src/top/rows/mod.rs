//! The rows of each view, from what is known. Pure. All text in them is harmless.

mod fleet;
mod questions;
mod runs;
mod traffic;
mod tree;

pub(crate) use fleet::{
    BY_BUSY as FLEET_BY_BUSY, BY_MEMORY as FLEET_BY_MEMORY, BY_TIME as FLEET_BY_TIME,
    COLUMNS_COUNT as FLEET_COLUMNS, fleet,
};
pub(crate) use questions::{BY_LEFT as QUESTIONS_BY_LEFT, COLUMNS_COUNT as QUESTIONS_COLUMNS, questions};
pub(crate) use runs::{
    BY_CALLS as RUNS_BY_CALLS, BY_COST as RUNS_BY_COST, BY_TIME as RUNS_BY_TIME,
    COLUMNS_COUNT as RUNS_COLUMNS, runs, tone,
};
pub(crate) use traffic::traffic;
pub(crate) use tree::tree;

/// How a row is to be seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As text.
    #[default]
    Plain,
    /// Of less importance.
    Dim,
    /// In work.
    Busy,
    /// Ended well.
    Good,
    /// To look at.
    Warn,
    /// Ended badly.
    Bad,
    /// A heading.
    Strong,
}

/// By what rows are put in order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum By {
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
}

/// A row.
#[derive(Debug, Clone)]
pub(crate) struct Row<K> {
    /// What it is about.
    pub(crate) key: K,
    /// What stands in each column.
    pub(crate) cells: Vec<String>,
    /// By what it is put in order, by each column.
    pub(crate) by: Vec<By>,
    /// How the cell is to be seen that tells how it stands, and which one that is.
    pub(crate) tone: (usize, Tone),
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    /// Its head.
    pub(crate) title: &'static str,
    /// Whether it stands at the right of its column.
    pub(crate) right: bool,
    /// Which go first where there is no room: those with the highest number. 0 stays.
    pub(crate) rank: u8,
}

/// Rows with their columns.
#[derive(Debug, Clone)]
pub(crate) struct Rows<K> {
    /// The columns; the last takes what room there is.
    pub(crate) columns: &'static [Column],
    /// The rows.
    pub(crate) rows: Vec<Row<K>>,
    /// Whether they can be put in order.
    pub(crate) is_sorted: bool,
    /// What is shown where there is no row.
    pub(crate) none: &'static str,
}

const fn left(title: &'static str, rank: u8) -> Column {
    Column { title, right: false, rank }
}

const fn right(title: &'static str, rank: u8) -> Column {
    Column { title, right: true, rank }
}
