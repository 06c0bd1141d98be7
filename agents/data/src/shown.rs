//! Rows as models read them, as data for programs, and as a file.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::cell::Cell;

/// Most characters of a cell that are shown.
const MAX_SHOWN_CELL: usize = 200;

/// Most bytes of a table that are shown.
const MAX_SHOWN: usize = 24 * 1024;

/// Most bytes of rows as data: the engine drops data that is larger.
const MAX_DATA: usize = 48 * 1024;

/// Rows under their columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows that are given.
    pub rows: Vec<Vec<Cell>>,
    /// How many rows there are.
    pub total: Total,
}

/// How many rows a query has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Total {
    /// As many as are given.
    #[default]
    Given,
    /// This many.
    Exactly(u64),
    /// At least this many: counting was given up.
    AtLeast(u64),
}

impl Rows {
    /// The table in Markdown, as far as it may be shown, and how many rows there are beside those.
    pub(crate) fn in_words(&self) -> String {
        if self.columns.is_empty() {
            return "No columns.".to_owned();
        }
        let mut table = markdown_row(self.columns.iter().map(|name| one_cell(name)));
        table.push_str(&markdown_row(self.columns.iter().map(|_| "---".to_owned())));
        let mut shown = 0;
        for row in &self.rows {
            let line = markdown_row(row.iter().map(shown_cell));
            if table.len() + line.len() > MAX_SHOWN {
                break;
            }
            table.push_str(&line);
            shown += 1;
        }
        table.push_str(&self.told(shown));
        table
    }

    /// Whether there are more rows than are given.
    pub(crate) fn is_cut(&self) -> bool {
        match self.total {
            Total::Given => false,
            Total::Exactly(total) => total > self.rows.len() as u64,
            Total::AtLeast(_) => true,
        }
    }

    fn told(&self, shown: usize) -> String {
        let rows = |count: u64| if count == 1 { "1 row".to_owned() } else { format!("{count} rows") };
        let given = self.rows.len() as u64;
        match self.total {
            Total::Given if shown as u64 == given => format!("({})", rows(given)),
            Total::Given => format!("({}, the first {shown} are shown)", rows(given)),
            Total::Exactly(total) if total == shown as u64 => format!("({})", rows(total)),
            Total::Exactly(total) => {
                format!("({}, the first {shown} are shown; aggregate, or use LIMIT and OFFSET)", rows(total))
            }
            Total::AtLeast(total) => {
                format!("(more than {}, the first {shown} are shown; aggregate, or use LIMIT)", rows(total))
            }
        }
    }

    /// Rows as JSON, as many as the engine lets pass, each as an object by its columns.
    pub(crate) fn to_json(&self) -> Value {
        let names = distinct(&self.columns);
        let mut bytes = 0;
        let mut rows = Vec::new();
        for row in &self.rows {
            let pairs = names.iter().zip(row);
            let object: Map<String, Value> =
                pairs.map(|(name, cell)| (name.clone(), cell.to_json())).collect();
            let object = Value::Object(object);
            bytes += object.to_string().len();
            if bytes > MAX_DATA {
                break;
            }
            rows.push(object);
        }
        let total = match self.total {
            Total::Given => json!(self.rows.len()),
            Total::Exactly(total) => json!(total),
            Total::AtLeast(_) => Value::Null,
        };
        json!({"columns": self.columns, "rows": rows, "total": total})
    }

    /// The rows as CSV with a header line (RFC 4180, lines end in `\n`).
    pub(crate) fn to_csv(&self) -> String {
        let mut text = String::new();
        csv_line(&mut text, self.columns.iter().map(String::as_str));
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(Cell::words).collect();
            csv_line(&mut text, cells.iter().map(String::as_str));
        }
        text
    }
}

/// Names of columns, each once: the second `n` is `n_2`.
fn distinct(names: &[String]) -> Vec<String> {
    let mut taken: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let mut own = name.clone();
        let mut number = 2;
        while taken.contains(&own) {
            own = format!("{name}_{number}");
            number += 1;
        }
        taken.push(own);
    }
    taken
}

fn shown_cell(cell: &Cell) -> String {
    if *cell == Cell::Null { "NULL".to_owned() } else { one_cell(&cell.words()) }
}

/// A text as it can stand in a table: in one line, without what would end the cell.
fn one_cell(text: &str) -> String {
    let mut cell = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == MAX_SHOWN_CELL {
            cell.push('…');
            break;
        }
        match c {
            '|' => cell.push_str("\\|"),
            '\n' | '\r' | '\t' => cell.push(' '),
            _ => cell.push(c),
        }
    }
    cell
}

fn markdown_row(cells: impl Iterator<Item = String>) -> String {
    let mut line = String::from("|");
    for cell in cells {
        let _ = write!(line, " {cell} |");
    }
    line.push('\n');
    line
}

fn csv_line<'a>(text: &mut String, cells: impl Iterator<Item = &'a str>) {
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            text.push(',');
        }
        if cell.contains(['"', ',', '\n', '\r']) || cell != cell.trim() {
            let _ = write!(text, "\"{}\"", cell.replace('"', "\"\""));
        } else {
            text.push_str(cell);
        }
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(columns: &[&str], rows: Vec<Vec<Cell>>) -> Rows {
        Rows { columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows, total: Total::Given }
    }

    #[test]
    fn rows_are_a_table_in_markdown_that_says_how_many_there_are() {
        let mut given = rows(&["a|b", "n"], vec![vec![Cell::Text("x\ny".to_owned()), Cell::Null]]);
        assert_eq!(given.in_words(), "| a\\|b | n |\n| --- | --- |\n| x y | NULL |\n(1 row)");
        given.total = Total::Exactly(7);
        assert!(
            given.in_words().ends_with("(7 rows, the first 1 are shown; aggregate, or use LIMIT and OFFSET)")
        );
        given.total = Total::AtLeast(1000);
        assert!(given.in_words().contains("more than 1000 rows"));
    }

    #[test]
    fn what_is_long_is_cut_and_told() {
        let long = vec![vec![Cell::Text("y".repeat(5000))]; 1000];
        let given = rows(&["x"], long);
        let words = given.in_words();
        assert!(words.len() < MAX_SHOWN + 200, "{}", words.len());
        assert!(words.contains("(1000 rows, the first "), "{}", &words[words.len() - 60..]);
        assert!(given.to_json().to_string().len() < MAX_DATA + 200);
    }

    #[test]
    fn two_columns_of_one_name_are_both_kept() {
        let given = rows(&["n", "n"], vec![vec![Cell::Integer(1), Cell::Integer(2)]]);
        assert_eq!(given.to_json()["rows"][0], json!({"n": 1, "n_2": 2}));
    }

    proptest! {
        #[test]
        fn what_is_written_as_csv_is_read_as_the_same(cells in prop::collection::vec(".{0,12}", 2..5)) {
            let columns = cells.iter().enumerate().map(|(n, _)| format!("c{n}")).collect();
            let row = cells.iter().cloned().map(Cell::Text).collect();
            let text = Rows { columns, rows: vec![row], total: Total::Given }.to_csv();
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            let read: Vec<String> = reader.records().next().unwrap().unwrap().iter().map(str::to_owned).collect();
            prop_assert_eq!(read, cells);
        }
    }
}
