//! Lines that no mark tells apart: entries, clauses, rows in columns, headings of plain text.

use std::collections::BTreeMap;

use super::super::shapes::{self, Columns};
use super::{BlockSplitter, RawKind};

impl BlockSplitter {
    /// The first line of a file that is a table names the columns.
    pub(super) fn name_columns(&mut self, lines: &BTreeMap<u32, String>) {
        let names = lines.get(&1).zip(self.separated).map(|(line, columns)| shapes::cells(line, columns));
        self.header = names.filter(|names| shapes::are_names(names)).unwrap_or_default();
    }

    /// A line of a form that needs no mark; whether it was one.
    pub(super) fn unmarked(&mut self, number: u32, raw: &str, text: &str) -> bool {
        if let Some(columns) = self.separated {
            if (number > 1 || self.header.is_empty()) && !text.is_empty() {
                self.columns = columns;
                self.row(number, text);
            }
        } else if self.in_fence || text.is_empty() {
            return false;
        } else if shapes::is_entry(text) {
            self.flush();
            self.open.kind = RawKind::Entry;
            self.open.pieces.push((number, text.to_owned()));
        } else if !self.plain {
            return false;
        } else if let Some(title) = shapes::plain_heading(raw, self.alone) {
            let level = if number == 1 { 1 } else { 2 };
            self.heading(level, title);
        } else if let Some(words) = shapes::clause(raw) {
            self.flush();
            self.text(number, words);
        } else if shapes::is_labelled(text) {
            self.flush();
            self.open.kind = RawKind::Item;
            self.text(number, text);
        } else if shapes::has_gap(text) {
            self.gapped(number, text);
        } else {
            return false;
        }
        true
    }

    /// A row whose cells gaps set apart, or a term before what it means.
    fn gapped(&mut self, number: u32, text: &str) {
        let cells = shapes::cells(text, Columns::Gaps);
        let last_is_long = cells.last().is_some_and(|cell| cell.split(' ').count() > 4);
        let begins = self.open.kind != RawKind::Row && !self.in_table;
        if begins && cells.len() > 2 && shapes::are_names(&cells) && !last_is_long {
            self.flush();
            self.end_table();
            self.columns = Columns::Gaps;
            self.in_table = true;
            self.header = cells;
            return;
        }
        self.flush();
        if let ([term, meaning], true) = (cells.as_slice(), self.header.is_empty()) {
            self.open.label.clone_from(term);
            self.open.defines = true;
            self.open.pieces.push((number, meaning.clone()));
        } else {
            self.columns = Columns::Gaps;
            self.row(number, text);
        }
    }
}
