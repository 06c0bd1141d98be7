//! One query: looked at, checked by what it locks, and read through a cursor whose cells the server cuts.

use std::collections::BTreeSet;

use muster_tools::ToolFailure;
use tokio_postgres::types::Type;
use tokio_postgres::{Column, Row};

use super::guard::{self, TableName};
use super::problem;
use super::session::Session;
use crate::cell::Cell;
use crate::settings::PostgresSettings;
use crate::shown::{Rows, Total};

/// Rows that are got at a time.
const BATCH: usize = 100;

/// Most columns of an answer.
const MAX_COLUMNS: usize = 200;

/// Most bytes of an answer.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// One moment for all that a call reads, and nothing else than reading.
const BEGIN: &str = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// What a query gave.
pub(super) struct Found {
    pub(super) rows: Rows,
    pub(super) tables: BTreeSet<TableName>,
}

/// Makes a query that was looked at ([`guard::checked`]).
pub(super) async fn ask(
    session: &Session,
    query: &str,
    most: usize,
    settings: &PostgresSettings,
) -> Result<Found, ToolFailure> {
    let told = |error: tokio_postgres::Error| problem::told(&error, settings);
    let wrong = |reason: String| ToolFailure::Refused(format!("Not done: {reason}."));
    // Prepared by itself: the server takes one statement then, and says what is wrong with this one.
    let prepared = session.client.prepare(query).await.map_err(told)?;
    let columns = prepared.columns();
    if columns.is_empty() {
        return Err(wrong("only reading is possible: SELECT, WITH, VALUES".to_owned()));
    }
    if columns.len() > MAX_COLUMNS {
        return Err(wrong(format!(
            "the answer has {} columns, {MAX_COLUMNS} is the most; name those that are needed",
            columns.len()
        )));
    }
    if !prepared.params().is_empty() {
        return Err(wrong("write values into the query instead of $1".to_owned()));
    }
    // Begun after it was prepared, which may look up types: all locks of the transaction are those of the query.
    session.client.batch_execute(BEGIN).await.map_err(told)?;
    session.client.execute(&cursor(query, columns.len(), settings.max_cell), &[]).await.map_err(told)?;
    // Nothing of it was carried out yet, and all that it is about is known by its locks. A plan would tell the same, and
    // have values in it that no limit holds for.
    let tables = locked(session, settings).await?;
    guard::within(&tables, &settings.schemas).map_err(wrong)?;
    let rows = fetch(session, columns, most, settings).await?;
    Ok(Found { rows, tables })
}

/// A cursor over the query, each cell as a text that is not longer than it may be.
fn cursor(query: &str, columns: usize, max_cell: u64) -> String {
    let cells: Vec<String> = (1..=columns).map(|n| format!("left(c{n}::text, {})", max_cell + 1)).collect();
    let names: Vec<String> = (1..=columns).map(|n| format!("c{n}")).collect();
    format!(
        "DECLARE muster NO SCROLL CURSOR FOR SELECT {} FROM (\n{query}\n) AS q({})",
        cells.join(", "),
        names.join(", ")
    )
}

/// What the transaction has locked: by the function itself, which locks nothing of its own.
const LOCKS: &str = "SELECT relation, mode FROM pg_catalog.pg_lock_status() \
    WHERE pid = pg_catalog.pg_backend_pid() AND locktype = 'relation'";

/// Tables, views and sequences by their numbers; indices go with their tables.
const NAMES: &str = "SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.oid = ANY($1) AND c.relkind NOT IN ('i', 'I', 't')";

/// The lock of those that only read.
const READING: &str = "AccessShareLock";

/// The tables that the query is about, also behind views.
async fn locked(session: &Session, settings: &PostgresSettings) -> Result<BTreeSet<TableName>, ToolFailure> {
    let told = |error: tokio_postgres::Error| problem::told(&error, settings);
    let mut numbers: Vec<u32> = Vec::new();
    for row in session.client.query(LOCKS, &[]).await.map_err(told)? {
        let mode: String = row.try_get(1).map_err(told)?;
        if mode != READING {
            return Err(ToolFailure::Refused(
                "Not done: only reading is possible, without locks.".to_owned(),
            ));
        }
        numbers.push(row.try_get(0).map_err(told)?);
    }
    let rows = session.client.query(NAMES, &[&numbers]).await.map_err(told)?;
    let name = |row: &Row| Ok(TableName { schema: row.try_get(0)?, table: row.try_get(1)? });
    rows.iter().map(name).collect::<Result<_, tokio_postgres::Error>>().map_err(told)
}

async fn fetch(
    session: &Session,
    columns: &[Column],
    most: usize,
    settings: &PostgresSettings,
) -> Result<Rows, ToolFailure> {
    let mut rows = Vec::new();
    let mut bytes = 0;
    let mut total = Total::Given;
    'all: loop {
        let wanted = BATCH.min(most + 1 - rows.len());
        let batch = session.client.query(&format!("FETCH FORWARD {wanted} FROM muster"), &[]).await;
        let batch = batch.map_err(|error| problem::told(&error, settings))?;
        let is_last = batch.len() < wanted;
        for row in batch {
            if rows.len() == most || bytes > MAX_BYTES {
                total = Total::AtLeast(rows.len() as u64);
                break 'all;
            }
            let cells = cells(&row, columns, settings).map_err(|error| problem::told(&error, settings))?;
            bytes += cells.iter().map(|cell| cell.words().len() + size_of::<Cell>()).sum::<usize>();
            rows.push(cells);
        }
        if is_last {
            break;
        }
    }
    let columns = columns.iter().map(|column| column.name().to_owned()).collect();
    Ok(Rows { columns, rows, total })
}

fn cells(
    row: &Row,
    columns: &[Column],
    settings: &PostgresSettings,
) -> Result<Vec<Cell>, tokio_postgres::Error> {
    let cell = |(at, column): (usize, &Column)| {
        let text: Option<String> = row.try_get(at)?;
        Ok(text.map_or(Cell::Null, |text| of_text(text, column.type_(), settings.max_cell)))
    };
    columns.iter().enumerate().map(cell).collect()
}

/// A value as its type says; a number with more digits than one of ours has stays a text.
fn of_text(text: String, of: &Type, max_cell: u64) -> Cell {
    let whole = [Type::INT2, Type::INT4, Type::INT8, Type::OID].contains(of);
    let real = [Type::FLOAT4, Type::FLOAT8, Type::NUMERIC].contains(of);
    let most = usize::try_from(max_cell).unwrap_or(usize::MAX);
    if whole && let Ok(number) = text.parse() {
        return Cell::Integer(number);
    }
    if real
        && text.len() <= 15
        && let Some(number) = text.parse().ok().filter(|number: &f64| number.is_finite())
    {
        return Cell::Real(number);
    }
    match text.char_indices().nth(most) {
        Some((end, _)) => Cell::Text(format!("{}…", &text[..end])),
        None => Cell::Text(text),
    }
}
