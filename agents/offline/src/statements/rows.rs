//! Rows of tables as words.

use std::sync::LazyLock;

use regex::Regex;

use super::super::text::{strip_markup, words};
use super::blocks::RawBlock;
use super::shapes::{Columns, cells};

/// A row of a table as words: the first cell names what the others say; ids and marks are left out.
pub(super) fn row_text(block: &RawBlock, raw: &str) -> String {
    let header = &block.header;
    let cells: Vec<String> = cells(raw, block.columns).into_iter().map(|cell| strip_markup(&cell)).collect();
    let column = |at: usize| header.get(at).map_or("", String::as_str);
    let mut said = cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| !cell.is_empty())
        .filter(|(at, cell)| {
            *at > 0 || cells.len() < 3 || block.columns != Columns::Pipes || !is_id(column(0), cell)
        })
        // Cells of one or two letters are marks for those who know the table.
        .filter(|(at, cell)| {
            *at == 0 || cell.chars().count() > 2 || cell.chars().any(|letter| letter.is_ascii_digit())
        });
    let Some((_, first)) = said.next() else { return String::new() };
    let rest: Vec<String> = said
        .enumerate()
        .map(|(number, (at, cell))| match column(at) {
            name if !name.is_empty() && (number > 0 || words(cell).count() < 3) && cells.len() > 2 => {
                format!("{name}: {cell}")
            }
            _ => cell.clone(),
        })
        .collect();
    match rest.as_slice() {
        [] => first.clone(),
        // A short cell is read as a name or a value rather than as a statement.
        rest if words(first).count() <= 5 => format!("{first}: {}", rest.join("; ")),
        rest => format!("{} ({})", first.trim_end_matches('.'), rest.join("; ")),
    }
}

/// Whether the first cell of a row only numbers it.
fn is_id(column: &str, cell: &str) -> bool {
    matches!(column.to_lowercase().as_str(), "id" | "#" | "no" | "no." | "nr" | "nr." | "")
        && ID.is_match(cell)
}

#[expect(clippy::expect_used, reason = "the pattern is a literal, checked by the tests")]
static ID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[A-Za-z]{0,4}[-.]?\d{1,4}[a-z]?\.?$").expect("a valid pattern"));

/// The cells of a row that make a statement of their own, as bytes of the row.
pub(super) fn telling_cells(raw: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for piece in raw.split_inclusive('|') {
        let cell = piece.trim_end_matches('|');
        let trimmed = cell.trim();
        let begin = start + (cell.len() - cell.trim_start().len());
        start += piece.len();
        if words(trimmed).count() >= 6 && !raw.contains("\\|") {
            found.push(begin..begin + trimmed.len());
        }
    }
    found
}
