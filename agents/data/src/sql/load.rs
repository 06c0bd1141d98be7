//! Files into a database that is only in memory. Blocks.

use bytes::Bytes;
use muster_tools::DocumentPart;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, Value as Held, ValueRef};
use rusqlite::{Connection, OpenFlags, params_from_iter};
use serde_json::Value;

use super::guard::Watch;
use super::table::{self, Records, Table};
use super::types::{ColumnType, Field, field};
use super::{functions, names};
use crate::cell::Cell;
use crate::files::{FileKind, TableFile};
use muster_tools::settings::SqlSettings;

/// How a database of SQLite begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Where a database says whether it is read with a log beside it, which is not there.
const VERSIONS: std::ops::Range<usize> = 18..20;

/// Most tables of one database that are told of.
const MAX_TOLD: usize = 200;

/// Most databases that are read at once (SQLite's own limit).
const MAX_DATABASES: usize = 10;

/// Between how many rows the bounds are looked at.
const ROWS: usize = 500;

/// A file, read.
pub(crate) struct Input {
    /// Which file.
    pub(crate) file: TableFile,
    /// The name of its tables.
    pub(crate) name: String,
    /// What stands in it.
    pub(crate) content: Content,
}

/// What stands in a file.
pub(crate) enum Content {
    /// As it is.
    Bytes(Bytes),
    /// Sheet by sheet.
    Sheets(Vec<DocumentPart>),
}

/// A table that can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableInfo {
    /// Its name in queries.
    pub(crate) name: String,
    /// Where it is in SQLite, `schema.table`.
    pub(crate) inner: String,
    /// Where it is from: a path, or a path and a sheet or table.
    pub(crate) place: String,
    /// Its columns, each with its type in words.
    pub(crate) columns: Vec<ColumnInfo>,
    /// How many rows it has, where that is known.
    pub(crate) rows: Option<u64>,
    /// What is to be known of it.
    pub(crate) note: Option<String>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnInfo {
    /// Its name.
    pub(crate) name: String,
    /// What it holds, in words.
    pub(crate) holds: String,
    /// Remark about the reading of its values.
    pub(crate) remark: Option<&'static str>,
}

/// Everything that a query may ask.
pub(crate) struct Loaded {
    /// The database.
    pub(crate) connection: Connection,
    /// Its tables.
    pub(crate) tables: Vec<TableInfo>,
    /// What could not be read, in words for a model.
    pub(crate) left_out: Vec<String>,
}

/// Why nothing could be loaded.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// It took too long, or too much memory: the watch says which.
    Stopped,
    /// SQLite failed.
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for LoadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Loads files. A file that cannot be read is told of and left out.
pub(crate) fn load(inputs: Vec<Input>, settings: &SqlSettings, watch: &Watch) -> Result<Loaded, LoadError> {
    let mut loaded = Loaded { connection: opened(settings)?, tables: Vec::new(), left_out: Vec::new() };
    let mut taken = Vec::new();
    let mut databases = 0;
    for input in inputs {
        if input.file.kind == FileKind::Sqlite {
            databases += 1;
        }
        let told = if databases > MAX_DATABASES && input.file.kind == FileKind::Sqlite {
            Err(format!("{MAX_DATABASES} databases are read at once; name the `files`"))
        } else {
            load_one(&mut loaded, &input, &mut taken, watch)?
        };
        if let Err(reason) = told {
            loaded.left_out.push(format!("`{}`: {reason}", input.file.path));
        }
        if watch.is_over() || watch.is_too_large() {
            return Err(LoadError::Stopped);
        }
    }
    Ok(loaded)
}

fn opened(settings: &SqlSettings) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_MEMORY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_in_memory_with_flags(flags)?;
    for (config, on) in [
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
        // A name in double quotes is a column and never silently a text: models mistake one for the other.
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
    ] {
        connection.set_db_config(config, on)?;
    }
    let pages = settings.memory / 4096;
    connection.execute_batch(&format!(
        "PRAGMA temp_store=MEMORY; PRAGMA journal_mode=OFF; PRAGMA cell_size_check=ON; PRAGMA max_page_count={pages};"
    ))?;
    functions::add(&connection)?;
    Ok(connection)
}

type Told = Result<(), String>;

fn load_one(
    loaded: &mut Loaded,
    input: &Input,
    taken: &mut Vec<String>,
    watch: &Watch,
) -> Result<Told, LoadError> {
    let path = &input.file.path;
    let tables = match (&input.content, input.file.kind) {
        (Content::Sheets(parts), _) => table::sheets(path, parts),
        (Content::Bytes(bytes), FileKind::Sqlite) => return Ok(attach(loaded, input, bytes)),
        (Content::Bytes(bytes), FileKind::Json) => table::json(path, &table::decoded(bytes)),
        (Content::Bytes(bytes), FileKind::JsonLines) => {
            table::json_lines(path, &table::decoded(bytes)).map(|one| vec![one])
        }
        (Content::Bytes(bytes), FileKind::Delimited | FileKind::Sheets) => {
            table::delimited(path, &table::decoded(bytes)).map(|one| vec![one])
        }
    };
    let tables = match tables {
        Ok(tables) => tables,
        Err(reason) => return Ok(Err(reason)),
    };
    for one in tables {
        let name =
            if one.part.is_empty() { input.name.clone() } else { format!("{}_{}", input.name, one.part) };
        let info = fill(&mut loaded.connection, names::unique(&name, taken), one, watch)?;
        loaded.tables.push(info);
    }
    Ok(Ok(()))
}

fn fill(
    connection: &mut Connection,
    name: String,
    table: Table,
    watch: &Watch,
) -> Result<TableInfo, LoadError> {
    let types = types_of(&table);
    let declared: Vec<String> = table
        .columns
        .iter()
        .zip(&types)
        .map(|(column, of)| {
            format!("{} {}", names::always_quoted(column), of.map_or("", ColumnType::declared))
        })
        .collect();
    let quoted = names::always_quoted(&name);
    connection.execute_batch(&format!("CREATE TABLE {quoted} ({})", declared.join(", ")))?;
    let places = vec!["?"; table.columns.len()].join(", ");
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare(&format!("INSERT INTO {quoted} VALUES ({places})"))?;
        for row in 0..table.rows.len() {
            if row % ROWS == ROWS - 1 && (watch.is_over() || watch.is_too_large()) {
                return Err(LoadError::Stopped);
            }
            insert.execute(params_from_iter(
                (0..table.columns.len()).map(|at| held(&table, &types, row, at)),
            ))?;
        }
    }
    transaction.commit()?;
    let columns = table.columns.iter().zip(&types).map(|(column, of)| ColumnInfo {
        name: column.clone(),
        holds: of.map_or("any", ColumnType::words).to_owned(),
        remark: of.and_then(ColumnType::remark),
    });
    let (columns, rows) = (columns.collect(), Some(table.rows.len() as u64));
    Ok(TableInfo { inner: format!("main.{name}"), name, place: table.place, columns, rows, note: table.note })
}

/// Types of texts are guessed; values of JSON have theirs, and nothing is declared where they differ.
fn types_of(table: &Table) -> Vec<Option<ColumnType>> {
    match &table.rows {
        Records::Texts(rows) => {
            table::types(rows, table.columns.len(), table.comma).into_iter().map(Some).collect()
        }
        Records::Values(rows) => (0..table.columns.len()).map(|at| json_type(rows, at)).collect(),
    }
}

fn json_type(rows: &[Vec<Value>], at: usize) -> Option<ColumnType> {
    let of = |value: &Value| match value {
        Value::Null => None,
        Value::Bool(_) => Some(ColumnType::Integer),
        Value::Number(number) if number.is_i64() => Some(ColumnType::Integer),
        Value::Number(_) => Some(ColumnType::Real),
        _ => Some(ColumnType::Text),
    };
    let mut types = rows.iter().filter_map(|row| row.get(at)).filter_map(of);
    let first = types.next()?;
    types.try_fold(first, |found, next| match (found, next) {
        (ColumnType::Integer | ColumnType::Real, ColumnType::Integer | ColumnType::Real) if found != next => {
            Some(ColumnType::Real)
        }
        (found, next) => (found == next).then_some(found),
    })
}

fn held<'a>(table: &'a Table, types: &[Option<ColumnType>], row: usize, at: usize) -> ToSqlOutput<'a> {
    match &table.rows {
        Records::Texts(rows) => {
            let of = types.get(at).copied().flatten().unwrap_or(ColumnType::Text);
            match rows.get(row).and_then(|row| row.get(at)).map_or(Field::Null, |text| field(text, of)) {
                Field::Null => ToSqlOutput::Owned(Held::Null),
                Field::Integer(number) => ToSqlOutput::Owned(Held::Integer(number)),
                Field::Real(number) => ToSqlOutput::Owned(Held::Real(number)),
                Field::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            }
        }
        Records::Values(rows) => {
            match rows.get(row).and_then(|row| row.get(at)).map_or(Cell::Null, Cell::of_json) {
                Cell::Null | Cell::Blob(_) => ToSqlOutput::Owned(Held::Null),
                Cell::Integer(number) => ToSqlOutput::Owned(Held::Integer(number)),
                Cell::Real(number) => ToSqlOutput::Owned(Held::Real(number)),
                Cell::Text(text) => ToSqlOutput::Owned(Held::Text(text)),
            }
        }
    }
}

/// Reads a database as it is, in a copy in memory that cannot be written.
fn attach(loaded: &mut Loaded, input: &Input, bytes: &Bytes) -> Told {
    if !bytes.starts_with(MAGIC) || bytes.len() < 100 {
        return Err("it is no database of SQLite, or it is encrypted".to_owned());
    }
    let mut copy = bytes.to_vec();
    // Its log is no file of ours: what stands in the file itself is read.
    copy[VERSIONS].fill(1);
    let told = |error: rusqlite::Error| format!("it cannot be read as a database of SQLite: {error}");
    // What is broken would break queries of other files too: it is tried by itself first.
    let mut alone = Connection::open_in_memory().map_err(told)?;
    attach_copy(&mut alone, input, &copy).map_err(told)?;
    loaded.tables.extend(attach_copy(&mut loaded.connection, input, &copy).map_err(told)?);
    Ok(())
}

fn attach_copy(connection: &mut Connection, input: &Input, bytes: &[u8]) -> rusqlite::Result<Vec<TableInfo>> {
    connection.execute(&format!("ATTACH ':memory:' AS {}", names::always_quoted(&input.name)), [])?;
    connection.deserialize_read_exact(input.name.as_str(), bytes, bytes.len(), true)?;
    tables_of(connection, &input.name, &input.file.path)
}

fn tables_of(connection: &Connection, schema: &str, path: &str) -> rusqlite::Result<Vec<TableInfo>> {
    let quoted = names::always_quoted(schema);
    let listing = format!(
        "SELECT name FROM {quoted}.sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
         ORDER BY name LIMIT {MAX_TOLD}"
    );
    let mut statement = connection.prepare(&listing)?;
    let tables: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    tables.into_iter().map(|table| table_of(connection, schema, path, &table)).collect()
}

fn table_of(connection: &Connection, schema: &str, path: &str, table: &str) -> rusqlite::Result<TableInfo> {
    let asked =
        format!("PRAGMA {}.table_xinfo({})", names::always_quoted(schema), names::always_quoted(table));
    let mut statement = connection.prepare(&asked)?;
    let column = |row: &rusqlite::Row<'_>| {
        let holds: String = row.get(2)?;
        Ok(ColumnInfo {
            name: row.get(1)?,
            holds: if holds.is_empty() { "any".to_owned() } else { holds.to_lowercase() },
            remark: None,
        })
    };
    // A view whose table is gone has no columns; that is no fault of the others.
    let columns = statement.query_map([], column).and_then(Iterator::collect).unwrap_or_default();
    Ok(TableInfo {
        name: format!("{}.{}", names::quoted(schema), names::quoted(table)),
        inner: format!("{schema}.{table}"),
        place: format!("{path}:{table}"),
        columns,
        rows: None,
        note: None,
    })
}
