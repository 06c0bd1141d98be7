//! What is wrong with a query, said so that a model can mend it.

use muster_shared::text::nearest_name;
use muster_tools::ToolFailure;
use rusqlite::{Error, ErrorCode};

use super::guard::{Stopped, Watch};
use super::load::TableInfo;
use super::names;
use muster_tools::settings::SqlSettings;

/// Most tables, and columns of each, that a message names.
const MAX_NAMED: usize = 25;

/// Most characters of the query that are shown around the place.
const MAX_AROUND: usize = 40;

/// What a failed query is told as.
pub(crate) fn told(
    error: &Error,
    watch: &Watch,
    settings: &SqlSettings,
    tables: &[TableInfo],
    unread: &[String],
) -> ToolFailure {
    if let Some(why) = watch.stopped() {
        return stopped(why, settings);
    }
    match error {
        Error::MultipleStatement => ToolFailure::InvalidArguments(
            "One statement at a time: leave out what follows the first `;`.".to_owned(),
        ),
        Error::SqlInputError { msg, sql, offset, .. } => {
            let place = usize::try_from(*offset).ok().map(|offset| near(sql, offset)).unwrap_or_default();
            of_message(msg, &place, tables, unread)
        }
        Error::SqliteFailure(failure, message) => {
            let message = message.clone().unwrap_or_else(|| failure.to_string());
            of_code(failure.code, &message, tables, unread, settings)
        }
        // The errors of the library are open.
        other => of_message(&other.to_string(), "", tables, unread),
    }
}

/// Why a query was stopped, and what helps.
pub(crate) fn stopped(why: Stopped, settings: &SqlSettings) -> ToolFailure {
    match why {
        Stopped::Time => ToolFailure::Failed(format!(
            "The query was stopped after {} ms, its time limit. Filter or aggregate earlier, join by equal columns, or name fewer `files`.",
            settings.time.as_millis()
        )),
        Stopped::Memory => ToolFailure::Failed(format!(
            "The query was stopped: it took more than {} MiB of memory. Filter or aggregate earlier, or name fewer `files`.",
            settings.memory / (1024 * 1024)
        )),
        Stopped::GivenUp => ToolFailure::Failed("The query was given up.".to_owned()),
    }
}

fn of_code(
    code: ErrorCode,
    message: &str,
    tables: &[TableInfo],
    unread: &[String],
    settings: &SqlSettings,
) -> ToolFailure {
    // What SQLite may answer is open.
    match code {
        ErrorCode::AuthorizationForStatementDenied => only_reading(message),
        ErrorCode::TooBig => ToolFailure::InvalidArguments(format!(
            "A value would have more than {} bytes ({message}). Take a part of it, such as substr(…, 1, 1000).",
            crate::MAX_CELL
        )),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            ToolFailure::Failed(format!("A database file is broken ({message}). Go on without it."))
        }
        ErrorCode::OutOfMemory | ErrorCode::DiskFull => stopped(Stopped::Memory, settings),
        _ => of_message(message, "", tables, unread),
    }
}

fn only_reading(message: &str) -> ToolFailure {
    ToolFailure::Refused(format!(
        "Only reading is possible: SELECT, WITH, VALUES and EXPLAIN ({message}). To keep a result, use `sql.save`."
    ))
}

fn of_message(message: &str, place: &str, tables: &[TableInfo], unread: &[String]) -> ToolFailure {
    let said = format!("{}{place}.", capital(message));
    if message.contains("not authorized") || message.contains("prohibited") {
        return only_reading(message);
    }
    let hint = if let Some(name) = message.strip_prefix("no such table: ") {
        no_table(name, tables, unread)
    } else if let Some(name) = message.strip_prefix("no such column: ") {
        no_column(name, tables)
    } else if message.starts_with("no such function: ") {
        format!(" Beside the functions of SQLite there are {}.", super::functions::NAMES)
    } else {
        String::new()
    };
    ToolFailure::InvalidArguments(format!("{said}{hint}"))
}

fn no_table(name: &str, tables: &[TableInfo], unread: &[String]) -> String {
    let all = || tables.iter().map(|table| table.name.as_str()).chain(unread.iter().map(String::as_str));
    let near = nearest_name(name, all()).map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
    let named: Vec<&str> = all().take(MAX_NAMED).collect();
    if named.is_empty() {
        return format!("{near} There are no tables: no file with tables was found.");
    }
    format!("{near} Tables: {}.", named.join(", "))
}

fn no_column(name: &str, tables: &[TableInfo]) -> String {
    let wanted = name.rsplit('.').next().unwrap_or(name);
    let columns = || tables.iter().flat_map(|table| table.columns.iter().map(|column| column.name.as_str()));
    let near = nearest_name(wanted, columns())
        .map(|near| format!(" Did you mean {}?", names::quoted(near)))
        .unwrap_or_default();
    let listed = |table: &TableInfo| {
        let mut columns: Vec<String> =
            table.columns.iter().take(MAX_NAMED).map(|column| names::quoted(&column.name)).collect();
        if table.columns.len() > MAX_NAMED {
            columns.push("…".to_owned());
        }
        format!(" {} has {}.", table.name, columns.join(", "))
    };
    let all: String = tables.iter().take(5).map(listed).collect();
    format!("{near}{all} Texts stand in single quotes.")
}

/// Where in the query it is, in words.
fn near(sql: &str, offset: usize) -> String {
    let start = sql.floor_char_boundary(offset.min(sql.len()));
    let rest: String = sql[start..].chars().take(MAX_AROUND).collect();
    let rest = rest.split('\n').next().unwrap_or_default().trim_end();
    if rest.is_empty() {
        return " (at the end of the query)".to_owned();
    }
    format!(" (at character {}: `{rest}`)", sql[..start].chars().count() + 1)
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    // A name that begins a message stays as it is.
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
