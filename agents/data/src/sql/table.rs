//! Tables out of files: rows of texts, or rows of JSON, under named columns.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use muster_shared::text::DecimalMark;
use muster_tools::DocumentPart;
use serde_json::{Map, Value};

use super::names;
use super::types::{self, ColumnType, Guess};

/// Most columns of a table.
pub(crate) const MAX_COLUMNS: usize = 500;

/// How many lines the separator is guessed from.
const LOOKED_AT: usize = 20;

/// Most tables of one file.
const MAX_TABLES: usize = 100;

/// A table, not loaded yet.
#[derive(Debug)]
pub(crate) struct Table {
    /// What it adds to the name of its file; empty where the file is one table.
    pub(crate) part: String,
    /// Where it is from: the path, or the path and the sheet.
    pub(crate) place: String,
    /// Its columns.
    pub(crate) columns: Vec<String>,
    /// Its rows.
    pub(crate) rows: Records,
    /// Whether the decimal mark is a comma if no number needs a certain one.
    pub(crate) comma: bool,
    /// What is to be known of it, in words for a model.
    pub(crate) note: Option<String>,
}

/// Rows.
#[derive(Debug)]
pub(crate) enum Records {
    /// Texts, whose types are guessed.
    Texts(Vec<csv::StringRecord>),
    /// Values of JSON; a row may end early.
    Values(Vec<Vec<Value>>),
}

impl Records {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Texts(rows) => rows.len(),
            Self::Values(rows) => rows.len(),
        }
    }
}

/// The text of a file, by its byte order mark, else UTF-8, else as Windows writes it in western Europe.
pub(crate) fn decoded(bytes: &[u8]) -> String {
    let encoding = Encoding::for_bom(bytes).map_or(UTF_8, |(encoding, _)| encoding);
    let (text, _, wrong) = encoding.decode(bytes);
    if wrong && encoding == UTF_8 { WINDOWS_1252.decode(bytes).0.into_owned() } else { text.into_owned() }
}

/// The table of a file with separated values.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn delimited(path: &str, text: &str) -> Result<Table, String> {
    let separator = separator(text);
    let records = records(text, separator, true)?;
    with_header(path.to_owned(), records, separator == b';')
}

/// The tables of a workbook, one for each sheet that has something in it.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn sheets(path: &str, parts: &[DocumentPart]) -> Result<Vec<Table>, String> {
    let filled: Vec<&DocumentPart> = parts.iter().filter(|part| !part.text.trim().is_empty()).collect();
    if filled.is_empty() {
        return Err("it has no sheet with anything in it".to_owned());
    }
    let many = filled.len() > 1;
    filled.into_iter().take(MAX_TABLES).map(|part| sheet(path, part, many)).collect()
}

/// A sheet may have a title and empty rows above its table: the header is the first row that fills half of the width.
fn sheet(path: &str, part: &DocumentPart, many: bool) -> Result<Table, String> {
    let mut records = records(&part.text, b'\t', false)?;
    let filled = |record: &csv::StringRecord| record.iter().filter(|cell| !cell.trim().is_empty()).count();
    let width = records.iter().map(filled).max().unwrap_or(0);
    let above = records.iter().position(|record| filled(record) * 2 >= width.max(1)).unwrap_or(0);
    records.drain(..above);
    records.retain(|record| filled(record) > 0);
    let mut table = with_header(format!("{path}:{}", part.place), records, false)?;
    if many {
        table.part = names::plain(&part.place);
    }
    if above > 0 {
        table.note = Some(format!("{above} rows above the header were left out"));
    }
    Ok(table)
}

fn records(text: &str, separator: u8, quoting: bool) -> Result<Vec<csv::StringRecord>, String> {
    let reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator)
        .quoting(quoting)
        .from_reader(text.as_bytes());
    reader.into_records().collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// Names the columns by the first row, if that is a header: no value stands in it, and something does.
fn with_header(place: String, mut records: Vec<csv::StringRecord>, comma: bool) -> Result<Table, String> {
    let width = records.iter().map(csv::StringRecord::len).max().unwrap_or(0);
    if width == 0 {
        return Err("there is nothing in it".to_owned());
    }
    if width > MAX_COLUMNS {
        return Err(format!("it has {width} columns, {MAX_COLUMNS} is the most"));
    }
    let is_header = records.first().is_some_and(|first| {
        first.iter().any(|cell| !cell.trim().is_empty()) && !first.iter().any(types::is_value)
    });
    let header = if is_header { records.remove(0) } else { csv::StringRecord::new() };
    let columns = names::columns((0..width).map(|at| header.get(at).unwrap_or("")));
    let note = (!is_header).then(|| "no header row: columns are named by number".to_owned());
    Ok(Table { part: String::new(), place, columns, rows: Records::Texts(records), comma, note })
}

/// The separator under which most lines have one number of columns, and the most of those.
fn separator(text: &str) -> u8 {
    let mut head_end = text.len();
    if let Some((at, _)) = text.match_indices('\n').nth(LOOKED_AT) {
        head_end = at;
    }
    let head = &text[..head_end];
    let score = |separator: u8| {
        let widths: Vec<usize> =
            records(head, separator, true).unwrap_or_default().iter().map(csv::StringRecord::len).collect();
        let first = widths.first().copied().unwrap_or(0);
        let alike = widths.iter().filter(|width| **width == first).count();
        if first < 2 { (0, 0) } else { (alike, first) }
    };
    // Of those that fit alike, the first.
    let best = [b',', b'\t', b';', b'|'].into_iter().rev().max_by_key(|separator| score(*separator));
    best.filter(|separator| score(*separator).1 > 1).unwrap_or(b',')
}

/// The tables of a JSON document: an array is one; an object has one for each array of objects in it, else is one row.
///
/// # Errors
/// Where it is no JSON, or what else is wrong with it.
pub(crate) fn json(path: &str, text: &str) -> Result<Vec<Table>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    match value {
        Value::Array(items) => Ok(vec![of_items(path.to_owned(), items)?]),
        Value::Object(object) => of_object(path, object),
        _ => Err("it is a single value and no table".to_owned()),
    }
}

/// The table of a file with a JSON value in each line.
///
/// # Errors
/// Which line is no JSON.
pub(crate) fn json_lines(path: &str, text: &str) -> Result<Table, String> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let items = lines.map(|(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| format!("line {number} is no JSON: {error}"))
    });
    of_items(path.to_owned(), items.collect::<Result<_, _>>()?)
}

fn of_object(path: &str, object: Map<String, Value>) -> Result<Vec<Table>, String> {
    let is_table = |value: &Value| value.as_array().is_some_and(|items| items.iter().any(Value::is_object));
    if !object.values().any(is_table) {
        return Ok(vec![of_items(path.to_owned(), vec![Value::Object(object)])?]);
    }
    let mut tables = Vec::new();
    let many = object.values().filter(|value| is_table(value)).count() > 1;
    for (key, value) in object.into_iter().filter(|(_, value)| is_table(value)).take(MAX_TABLES) {
        let Value::Array(items) = value else { continue };
        let mut table = of_items(format!("{path}:{key}"), items)?;
        if many {
            table.part = names::plain(&key);
        }
        tables.push(table);
    }
    Ok(tables)
}

/// Objects by their keys, arrays by their places, other values in one column.
fn of_items(place: String, items: Vec<Value>) -> Result<Table, String> {
    if items.is_empty() {
        return Err("there is nothing in it".to_owned());
    }
    let mut keys: Vec<String> = Vec::new();
    let mut known = std::collections::BTreeSet::new();
    let mut width = 0;
    for item in &items {
        match item {
            Value::Object(object) => {
                keys.extend(object.keys().filter(|key| known.insert((*key).clone())).cloned());
            }
            Value::Array(cells) => width = width.max(cells.len()),
            _ => width = width.max(1),
        }
        if keys.len().max(width) > MAX_COLUMNS {
            return Err(format!("it has more than {MAX_COLUMNS} columns"));
        }
    }
    if keys.is_empty() {
        return of_arrays(place, items, width);
    }
    let columns = names::columns(keys.iter().map(String::as_str));
    let row = |item: Value| match item {
        Value::Object(mut object) => keys.iter().map(|key| object.remove(key).unwrap_or_default()).collect(),
        _ => Vec::new(),
    };
    let before = items.len();
    let rows: Vec<Vec<Value>> =
        items.into_iter().map(row).filter(|row: &Vec<Value>| !row.is_empty()).collect();
    let note = (rows.len() < before)
        .then(|| format!("{} items that are no objects were left out", before - rows.len()));
    Ok(Table { part: String::new(), place, columns, rows: Records::Values(rows), comma: false, note })
}

fn of_arrays(place: String, items: Vec<Value>, width: usize) -> Result<Table, String> {
    if width == 0 {
        return Err("there is nothing in it".to_owned());
    }
    let mut rows: Vec<Vec<Value>> = items
        .into_iter()
        .map(|item| match item {
            Value::Array(cells) => cells,
            other => vec![other],
        })
        .collect();
    let is_header = rows.len() > 1
        && width > 1
        && rows.first().is_some_and(|first| first.len() == width && first.iter().all(Value::is_string));
    let header = if is_header { rows.remove(0) } else { Vec::new() };
    let heading = |at: usize| match (header.get(at).and_then(Value::as_str), width) {
        (Some(name), _) => name,
        (None, 1) => "value",
        (None, _) => "",
    };
    let columns = names::columns((0..width).map(heading));
    Ok(Table { part: String::new(), place, columns, rows: Records::Values(rows), comma: false, note: None })
}

/// Types of the columns of texts. `comma`: whether the decimal mark is a comma if no number needs a certain one.
pub(crate) fn types(rows: &[csv::StringRecord], columns: usize, comma: bool) -> Vec<ColumnType> {
    let mut guesses = vec![Guess::new(); columns];
    for row in rows {
        for (guess, cell) in guesses.iter_mut().zip(row) {
            guess.see(cell);
        }
    }
    let has = |mark| guesses.iter().any(|guess| guess.mark() == Some(mark));
    let mark = match (has(DecimalMark::Point), has(DecimalMark::Comma)) {
        (true, false) => Some(DecimalMark::Point),
        (false, true) => Some(DecimalMark::Comma),
        (true, true) | (false, false) => None,
    };
    let ends = |guess: Guess| match guess.ends(mark) {
        ColumnType::AmbiguousNumber if comma => ColumnType::WrittenNumber(DecimalMark::Comma),
        of => of,
    };
    guesses.into_iter().map(ends).collect()
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
