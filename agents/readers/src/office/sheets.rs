//! Workbooks: a sheet is a text of which line 7 is row 7, with tabs between its cells.

use std::io::Cursor;

use calamine::{Data, DataRef, ExcelDateTime, Ods, Reader, Xls, Xlsb, Xlsx};
use muster_corpus::Unit;

use super::words::refuse_encrypted;
use crate::found::{Failure, Found, Part};
use crate::kind::{COMPOUND, ending};
use crate::limits::Budget;
use crate::names::Names;
use crate::package::Package;

/// Empty cells in a row that are shown as such; more are passed over, and the next cell is told with its column.
const MOST_EMPTY: u32 = 40;

/// The sheets of a book of this kind, each read cell by cell. A macro, because the readers of both kinds have the same methods
/// and no trait.
macro_rules! cell_by_cell {
    ($kind:literal, $book:ident, $budget:ident) => {{
        let mut kept = Book::new($kind);
        for sheet in $book.sheet_names() {
            let mut rows = Rows::new($budget.room());
            let read = $book.worksheet_cells_reader(&sheet).and_then(|mut cells| {
                while let Some(cell) = cells.next_cell()? {
                    if !rows.put(cell.get_position(), &shown_ref(cell.get_value())) {
                        break;
                    }
                }
                Ok(())
            });
            kept.add(&sheet, rows, read.err().map(Failure::broken), $budget);
        }
        kept.found
    }};
}

/// The sheets of a workbook.
pub(crate) fn workbook(bytes: &[u8], name: &str, budget: &mut Budget) -> Result<Found, Failure> {
    if bytes.starts_with(COMPOUND) {
        return compound(bytes, budget);
    }
    let mut package = Package::open(bytes, budget)?;
    package.check_sizes(budget)?;
    let has = |package: &Package<'_>, name: &str| package.names().any(|known| known == name);
    if has(&package, "xl/workbook.bin") {
        let mut book = Xlsb::new(Cursor::new(bytes)).map_err(Failure::broken)?;
        return Ok(cell_by_cell!("xlsb", book, budget));
    }
    if has(&package, "xl/workbook.xml") || ["xlsx", "xlsm"].contains(&ending(name).as_str()) {
        return xlsx(bytes, budget);
    }
    refuse_encrypted(&mut package, budget)?;
    let mut book = Ods::new(Cursor::new(bytes)).map_err(Failure::broken)?;
    dense("ods", &mut book, budget)
}

fn xlsx(bytes: &[u8], budget: &mut Budget) -> Result<Found, Failure> {
    let mut book = Xlsx::new(Cursor::new(bytes)).map_err(Failure::broken)?;
    Ok(cell_by_cell!("xlsx", book, budget))
}

/// What is in the old format: workbooks, and whatever is encrypted.
fn compound(bytes: &[u8], budget: &mut Budget) -> Result<Found, Failure> {
    if has_stream(bytes, "EncryptedPackage") {
        return Err(Failure::Encrypted);
    }
    if !has_stream(bytes, "Workbook") && !has_stream(bytes, "Book") {
        return Err(Failure::Unknown("office documents of before 2007 that are no workbooks".to_owned()));
    }
    let mut book = Xls::new(Cursor::new(bytes)).map_err(|error| match error {
        calamine::XlsError::Password => Failure::Encrypted,
        other => Failure::broken(other),
    })?;
    dense("xls", &mut book, budget)
}

/// Whether a file in the old format has a stream of this name.
pub(crate) fn has_stream(bytes: &[u8], name: &str) -> bool {
    let wanted: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes.windows(wanted.len()).step_by(2).any(|window| window == wanted)
}

fn dense<'a, R>(kind: &str, book: &mut R, budget: &mut Budget) -> Result<Found, Failure>
where
    R: Reader<Cursor<&'a [u8]>>,
    R::Error: std::fmt::Display,
{
    let mut kept = Book::new(kind);
    for sheet in book.sheet_names() {
        let mut rows = Rows::new(budget.room());
        let range = match book.worksheet_range(&sheet) {
            Ok(range) => range,
            Err(error) => {
                kept.add(&sheet, rows, Some(Failure::broken(error)), budget);
                continue;
            }
        };
        let (top, left) = range.start().unwrap_or_default();
        'sheet: for (row, cells) in (top..).zip(range.rows()) {
            for (column, cell) in (left..).zip(cells) {
                if !matches!(cell, Data::Empty) && !rows.put((row, column), &shown(cell)) {
                    break 'sheet;
                }
            }
        }
        kept.add(&sheet, rows, None, budget);
    }
    Ok(kept.found)
}

/// A workbook that is being read.
struct Book {
    found: Found,
    names: Names,
}

impl Book {
    fn new(kind: &str) -> Self {
        Self { found: Found::of(kind, Vec::new()), names: Names::default() }
    }

    fn add(&mut self, sheet: &str, rows: Rows, failure: Option<Failure>, budget: &mut Budget) {
        if let Some(failure) = failure {
            self.found.leave_out(format!("of the sheet {sheet}: it {}", failure.in_short()));
        }
        if rows.is_cut {
            self.found.leave_out(format!("the end of the sheet {sheet}: there is too much text"));
        }
        let mut text = rows.text;
        budget.take_text(&mut text);
        if text.is_empty() {
            return;
        }
        if !budget.take_document() {
            self.found.leave_out(format!("the sheet {sheet}: there are too many"));
            return;
        }
        let within = self.names.name(sheet);
        self.found.parts.push(Part { within, unit: Unit::Row, pieces: vec![text] });
    }
}

/// The rows of a sheet as text, put together cell by cell.
struct Rows {
    text: String,
    most: usize,
    /// The next cell that would be put without anything before it.
    row: u32,
    column: u32,
    is_cut: bool,
}

impl Rows {
    fn new(most: usize) -> Self {
        Self { text: String::new(), most, row: 0, column: 0, is_cut: false }
    }

    /// Puts a cell; those of a sheet come row by row. False when there is no more room.
    fn put(&mut self, (row, column): (u32, u32), value: &str) -> bool {
        if value.is_empty() || row < self.row {
            return true;
        }
        let breaks = (row - self.row) as usize;
        if self.text.len() + breaks + value.len() + 64 > self.most {
            self.is_cut = true;
            return false;
        }
        if breaks > 0 {
            self.text.extend(std::iter::repeat_n('\n', breaks));
            self.column = 0;
        }
        let gap = column.saturating_sub(self.column);
        if gap > MOST_EMPTY {
            self.text.push('\t');
            self.text.push_str(&letters(column));
            self.text.push_str(": ");
        } else {
            self.text.extend(std::iter::repeat_n('\t', gap as usize));
        }
        self.text.extend(value.chars().map(|c| if c.is_control() { ' ' } else { c }));
        (self.row, self.column) = (row, column.max(self.column));
        true
    }
}

/// The name of a column: A, B, …, Z, AA, …
fn letters(column: u32) -> String {
    let (mut name, mut left) = (Vec::new(), u64::from(column) + 1);
    while left > 0 {
        let digit = u8::try_from((left - 1) % 26).unwrap_or(0);
        name.push(char::from(b'A' + digit));
        left = (left - 1) / 26;
    }
    name.iter().rev().collect()
}

fn shown_ref(value: &DataRef<'_>) -> String {
    match value {
        DataRef::String(text) => text.clone(),
        DataRef::SharedString(text) => (*text).to_owned(),
        DataRef::Int(number) => number.to_string(),
        DataRef::Float(number) => number_shown(*number),
        DataRef::Bool(truth) => truth.to_string(),
        DataRef::DateTime(moment) => moment_shown(moment),
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => text.clone(),
        DataRef::Error(error) => error.to_string(),
        DataRef::Empty => String::new(),
    }
}

fn shown(value: &Data) -> String {
    match value {
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => text.clone(),
        Data::Int(number) => number.to_string(),
        Data::Float(number) => number_shown(*number),
        Data::Bool(truth) => truth.to_string(),
        Data::DateTime(moment) => moment_shown(moment),
        Data::Error(error) => error.to_string(),
        Data::Empty => String::new(),
    }
}

/// A number with the 15 digits that spreadsheets compute with.
fn number_shown(number: f64) -> String {
    format!("{number:.14e}").parse::<f64>().unwrap_or(number).to_string()
}

/// A day, with the time of day where it has one; lengths of time in hours, minutes and seconds.
fn moment_shown(moment: &ExcelDateTime) -> String {
    if moment.is_duration() || !moment.as_f64().is_finite() {
        let seconds = moment.as_f64() * 86_400.0;
        if !(0.0..1e12).contains(&seconds) {
            return number_shown(moment.as_f64());
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded above")]
        let seconds = seconds.round() as u64;
        return format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    let (year, month, day, hour, minute, second, _) = moment.to_ymd_hms_milli();
    let time = format!("{hour:02}:{minute:02}:{second:02}");
    let day = format!("{year:04}-{month:02}-{day:02}");
    match (moment.as_f64() < 1.0, time.as_str()) {
        (true, _) => time,
        (false, "00:00:00") => day,
        (false, _) => format!("{day} {time}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_line_and_far_cells_are_told_with_their_column() {
        let mut rows = Rows::new(2_000_000);
        for (place, value) in [
            ((0, 0), "a"),
            ((0, 2), "c\nd"),
            ((3, 1), "x"),
            ((3, 16_383), "far"),
            ((1, 0), "out of order"),
            ((1_048_575, 0), "last"),
        ] {
            assert!(rows.put(place, value));
        }
        let lines: Vec<&str> = rows.text.split('\n').collect();
        assert_eq!(lines[0], "a\t\tc d");
        assert_eq!(lines[3], "\tx\tXFD: far");
        assert_eq!((lines.len(), lines[1_048_575]), (1_048_576, "last"));
        assert!(!Rows::new(100).put((200, 0), "far"));
    }

    #[test]
    fn numbers_and_columns_are_shown_as_in_a_sheet() {
        for (number, shown) in
            [(0.1 + 0.2, "0.3"), (1200.0, "1200"), (-1.5, "-1.5"), (1e20, "100000000000000000000")]
        {
            assert_eq!(number_shown(number), shown);
        }
        for (column, name) in [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ"), (702, "AAA"), (16_383, "XFD")] {
            assert_eq!(letters(column), name);
        }
    }
}
