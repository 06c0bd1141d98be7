//! One query against what is loaded. Blocks.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};

use super::guard::Watch;
use crate::cell::Cell;
use crate::shown::{Rows, Total};

/// Most rows that are counted beyond those that are given.
const MAX_COUNTED: u64 = 1_000_000;

/// Most bytes of rows that are kept.
const MAX_KEPT: usize = 16 * 1024 * 1024;

/// Makes the query. Gives the first rows, and counts the others as far as the time goes.
pub(crate) fn select(connection: &Connection, sql: &str, most: usize, watch: &Watch) -> Result<Rows> {
    let mut statement = connection.prepare(sql)?;
    if statement.column_count() == 0 || !statement.readonly() {
        return Err(no_reading());
    }
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut given = Vec::new();
    let mut kept = 0;
    let mut count = 0;
    let mut rows = statement.query([])?;
    loop {
        let row = match rows.next() {
            Ok(None) => break,
            Ok(Some(row)) => row,
            // Time is up while rows are only counted: those that are there are good.
            Err(_) if count > given.len() as u64 && watch.stopped().is_some() => {
                return Ok(Rows { columns, rows: given, total: Total::AtLeast(count) });
            }
            Err(error) => return Err(error),
        };
        count += 1;
        if given.len() < most && kept < MAX_KEPT && count == given.len() as u64 + 1 {
            let cells: Vec<Cell> =
                (0..columns.len()).map(|at| row.get_ref(at).map(cell)).collect::<Result<_>>()?;
            kept += cells.iter().map(size).sum::<usize>();
            given.push(cells);
        } else if count > MAX_COUNTED {
            return Ok(Rows { columns, rows: given, total: Total::AtLeast(count - 1) });
        }
    }
    let total = if count == given.len() as u64 { Total::Given } else { Total::Exactly(count) };
    Ok(Rows { columns, rows: given, total })
}

/// What gives no rows does something else than read, or nothing at all.
fn no_reading() -> rusqlite::Error {
    let denied = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_AUTH);
    rusqlite::Error::SqliteFailure(denied, Some("not authorized".to_owned()))
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Blob(bytes.len()),
    }
}

fn size(cell: &Cell) -> usize {
    let own = std::mem::size_of::<Cell>();
    if let Cell::Text(text) = cell { own + text.len() } else { own }
}
