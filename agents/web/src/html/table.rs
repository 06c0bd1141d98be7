//! Tables, written as lines of cells.

/// Most cells of a row, and most rows.
const MOST_CELLS: usize = 64;
const MOST_ROWS: usize = 5_000;

/// A table whose cells are longer than this, in bytes, on the average of those that have text, only arranges text.
const LONG_CELL: usize = 400;

/// A table that is being read.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    cell: Option<String>,
    /// How many columns the cell that is being read stands in.
    columns: usize,
    /// Tables within this one: their text belongs to the cell that they are in.
    pub(super) within: usize,
}

impl Table {
    pub(super) fn begin_row(&mut self) {
        self.end_cell();
        if self.rows.len() < MOST_ROWS && self.rows.last().is_none_or(|row| !row.is_empty()) {
            self.rows.push(Vec::new());
        }
    }

    pub(super) fn begin_cell(&mut self, columns: Option<usize>) {
        self.end_cell();
        if self.rows.is_empty() {
            self.rows.push(Vec::new());
        }
        self.cell = Some(String::new());
        self.columns = columns.unwrap_or(1);
    }

    pub(super) fn end_cell(&mut self) {
        let Some(text) = self.cell.take() else { return };
        let text = muster_shared::text::normalise_space(&text);
        let Some(row) = self.rows.last_mut() else { return };
        let left = MOST_CELLS.saturating_sub(row.len());
        // What is over several columns stands in the first.
        let over = self.columns.saturating_sub(1);
        row.extend(
            std::iter::once(text).chain(std::iter::repeat_n(String::new(), over.min(MOST_CELLS))).take(left),
        );
    }

    /// Where text goes that stands in a cell.
    pub(super) fn cell(&mut self) -> Option<&mut String> {
        self.cell.as_mut()
    }

    /// The table as text: rows of cells, or what stands in them one after the other where they only arrange it.
    pub(super) fn finish(mut self) -> Written {
        self.end_cell();
        let Self { mut rows, .. } = self;
        rows.retain(|row| row.iter().any(|cell| !cell.is_empty()));
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let texts: Vec<&String> = rows.iter().flatten().filter(|cell| !cell.is_empty()).collect();
        let bytes: usize = texts.iter().map(|cell| cell.len()).sum();
        if columns < 2 || bytes > LONG_CELL * texts.len() {
            return Written::Arranged(rows.into_iter().flatten().filter(|cell| !cell.is_empty()).collect());
        }
        let line = |row: &Vec<String>| {
            let cells = (0..columns).map(|at| row.get(at).map_or("", String::as_str).replace('|', "\\|"));
            format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
        };
        let mut lines: Vec<String> = rows.iter().map(line).collect();
        lines.insert(1.min(lines.len()), format!("|{}", " --- |".repeat(columns)));
        Written::Table(lines.join("\n"))
    }
}

/// A table that was read.
pub(super) enum Written {
    Table(String),
    /// The texts of one that only arranged them.
    Arranged(Vec<String>),
}
