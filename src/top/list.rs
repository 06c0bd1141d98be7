//! A list with a place in it, a filter and an order.

use super::rows::{By, Row, Rows};

/// Where a list stands. The place is kept by what stands there: rows may come, go and change their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List<K> {
    at: Option<K>,
    /// Where that was seen last.
    index: usize,
    /// What rows must have, as it was typed. A `!` before it turns it round.
    pub(crate) filter: String,
    /// By which column it is in order.
    pub(crate) sort: usize,
    /// Whether that is turned round.
    pub(crate) reversed: bool,
    /// Whether the place is always the last one.
    pub(crate) follows: bool,
}

impl<K> List<K> {
    /// A list at its beginning, by this column.
    pub(super) const fn new(sort: usize, reversed: bool, follows: bool) -> Self {
        Self { at: None, index: 0, filter: String::new(), sort, reversed, follows }
    }
}

impl<K: Clone + PartialEq> List<K> {
    /// These rows as they are shown: those that have what they must, in order.
    pub(super) fn shown(&self, mut rows: Rows<K>) -> Rows<K> {
        let (is_wanted, text) = match self.filter.strip_prefix('!') {
            Some(text) => (false, text.to_lowercase()),
            None => (true, self.filter.to_lowercase()),
        };
        if !text.is_empty() {
            rows.rows.retain(|row| row.has(&text) == is_wanted);
        }
        if rows.is_sorted {
            rows.rows.sort_by(|one, other| {
                let (one, other) = (one.by.get(self.sort), other.by.get(self.sort));
                if self.reversed { other.cmp(&one) } else { one.cmp(&other) }
            });
        }
        rows
    }

    /// The place among these rows.
    pub(super) fn place(&self, rows: &[Row<K>]) -> Option<usize> {
        let last = rows.len().checked_sub(1)?;
        if self.follows {
            return Some(last);
        }
        let found = self.at.as_ref().and_then(|at| rows.iter().position(|row| row.key == *at));
        Some(found.unwrap_or_else(|| self.index.min(last)))
    }

    /// What stands at the place.
    pub(super) fn chosen(&self, rows: &[Row<K>]) -> Option<K> {
        Some(rows.get(self.place(rows)?)?.key.clone())
    }

    /// Key of the chosen row, of rows that are not filtered and sorted yet.
    pub(super) fn chosen_of(&self, rows: Rows<K>) -> Option<K> {
        self.chosen(&self.shown(rows).rows)
    }

    /// Goes on by so many rows.
    pub(super) fn step(&mut self, rows: &[Row<K>], by: isize) {
        if let Some(place) = self.place(rows) {
            self.go(rows, place.saturating_add_signed(by));
        }
    }

    /// Goes to a row.
    pub(super) fn go(&mut self, rows: &[Row<K>], to: usize) {
        self.index = to.min(rows.len().saturating_sub(1));
        self.at = rows.get(self.index).map(|row| row.key.clone());
        self.follows = false;
    }

    /// Goes to what stands somewhere.
    pub(super) fn go_to(&mut self, key: K) {
        self.at = Some(key);
        self.follows = false;
    }

    /// By the next column, or the one before.
    pub(super) fn sort_on(&mut self, columns: usize, by: isize) {
        let columns = columns.max(1);
        self.sort = self.sort.wrapping_add_signed(by).wrapping_add(columns) % columns;
        self.reversed = false;
    }

    /// By this column; by it already, the other way round.
    pub(super) fn sort_by(&mut self, column: usize, reversed: bool) {
        self.reversed = if self.sort == column { !self.reversed } else { reversed };
        self.sort = column;
    }
}

impl<K> Row<K> {
    fn has(&self, text: &str) -> bool {
        self.cells.iter().any(|cell| cell.to_lowercase().contains(text))
            || self.by.iter().any(|by| match by {
                By::Text(by) => by.to_lowercase().contains(text),
                By::Number(_) => false,
            })
    }
}
