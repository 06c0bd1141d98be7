//! Queries from the files to the rows, for whoever needs rows: `sql`, `sql.save`, `chart`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use muster_tools::{DocumentReader, ToolContext, ToolFailure};
use std::time::Duration;
use tokio::sync::Semaphore;

use super::guard::{self, Watch};
use super::load::{ColumnInfo, Content, Input, LoadError, Loaded, TableInfo, load};
use super::{names, problem, run};
use crate::DataParts;
use crate::files::{self, FileKind, TableFile};
use crate::shown::Rows;
use muster_shared::sync::lock;
use muster_tools::settings::SqlSettings;

/// What reading files may take beside the time of a query.
const READING: Duration = Duration::from_secs(20);

/// Makes queries. One for all tools of a process, so that they share its limits.
pub struct Queries {
    settings: SqlSettings,
    reader: Option<Arc<dyn DocumentReader>>,
    places: Semaphore,
}

/// What is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// One statement.
    pub sql: String,
    /// The files whose tables it asks; those whose names stand in it when empty.
    pub files: Vec<String>,
    /// Most rows that are given.
    pub most: usize,
}

/// What a query gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The rows.
    pub rows: Rows,
    /// The files and sheets that they are from.
    pub sources: Vec<String>,
    /// Remarks about the reading of the columns, as text for a model.
    pub remarks: Vec<String>,
    /// What could not be read, in words for a model.
    pub left_out: Vec<String>,
}

/// The tables that are there, for a model.
pub(crate) struct Schema {
    pub(crate) tables: Vec<TableInfo>,
    pub(crate) first: Vec<Rows>,
    pub(crate) left_out: Vec<String>,
}

/// Tells the thread that nobody waits any more, also when the call itself is dropped.
struct GiveUp(Arc<AtomicBool>);

impl Drop for GiveUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Queries {
    /// Queries within these settings.
    #[must_use]
    pub fn new(parts: DataParts) -> Self {
        let places = Semaphore::new(usize::try_from(parts.sql.at_once.max(1)).unwrap_or(1));
        Self { settings: parts.sql, reader: parts.reader, places }
    }

    /// The longest time of a query, with reading what it asks.
    pub(crate) fn timeout(&self) -> Duration {
        self.settings.time + READING
    }

    pub(crate) fn settings(&self) -> &SqlSettings {
        &self.settings
    }

    /// Makes a query.
    ///
    /// # Errors
    /// When a file is not there, the query is wrong (with what to mend), or a limit is passed.
    pub async fn ask(&self, ctx: &ToolContext, query: Query) -> Result<Answer, ToolFailure> {
        self.check(&query.sql)?;
        let _place = self.place().await?;
        let all = files::list(ctx).await?;
        let chosen = wanted(&all, &query)?;
        let unread = unread(&all, &chosen);
        let (inputs, left_out) = self.read(ctx, &chosen).await?;
        let settings = self.settings.clone();
        blocking(&self.settings, move |watch| {
            let mut loaded = loaded(inputs, &settings, watch)?;
            loaded.left_out.extend(left_out);
            let told = |error: rusqlite::Error, tables: &[TableInfo]| {
                problem::told(&error, watch, &settings, tables, &unread)
            };
            let touched =
                guard::confine(&mut loaded.connection, watch).map_err(|error| told(error, &loaded.tables))?;
            let rows = run::select(&loaded.connection, &query.sql, query.most, watch)
                .map_err(|error| with_left_out(told(error, &loaded.tables), &loaded.left_out))?;
            let touched = lock(&touched).clone();
            let tables = touched_tables(&loaded, &touched);
            let sources = tables.iter().map(|table| table.place.clone()).collect();
            let remarks = tables.iter().flat_map(|table| table.remarks()).collect();
            Ok(Answer { rows, sources, remarks, left_out: loaded.left_out })
        })
        .await
    }

    /// Shows the tables of these files, of all when there are none, with their first rows.
    pub(crate) async fn schema(&self, ctx: &ToolContext, files: &[String]) -> Result<Schema, ToolFailure> {
        const FIRST: usize = 3;
        let _place = self.place().await?;
        let all = files::list(ctx).await?;
        let chosen = if files.is_empty() {
            named(&all, |_| true)
        } else {
            named_of(&all, &files::chosen(&all, files)?)
        };
        let (inputs, mut left_out) = self.read(ctx, &chosen).await?;
        let settings = self.settings.clone();
        let mut schema = blocking(&self.settings, move |watch| {
            let mut loaded = loaded(inputs, &settings, watch)?;
            guard::confine(&mut loaded.connection, watch)
                .map_err(|error| problem::told(&error, watch, &settings, &[], &[]))?;
            let first = |table: &TableInfo| {
                let asked = format!("SELECT * FROM {} LIMIT {FIRST}", table.inner_quoted());
                // A view that is broken shows no rows; the others do.
                run::select(&loaded.connection, &asked, FIRST, watch).unwrap_or_default()
            };
            let first = loaded.tables.iter().map(first).collect();
            Ok(Schema { first, tables: loaded.tables, left_out: loaded.left_out })
        })
        .await?;
        schema.left_out.append(&mut left_out);
        Ok(schema)
    }

    async fn place(&self) -> Result<tokio::sync::SemaphorePermit<'_>, ToolFailure> {
        self.places
            .acquire()
            .await
            .map_err(|_| ToolFailure::Unavailable("no more queries are made".to_owned()))
    }

    fn check(&self, sql: &str) -> Result<(), ToolFailure> {
        if sql.trim().is_empty() {
            return Err(ToolFailure::InvalidArguments(
                "`query` is empty; to see the tables, ask with `schema`: true".to_owned(),
            ));
        }
        if sql.len() as u64 > crate::MAX_QUERY {
            let most = crate::MAX_QUERY;
            return Err(ToolFailure::InvalidArguments(format!(
                "the query has {} bytes, {most} is the most",
                sql.len()
            )));
        }
        Ok(())
    }

    fn check_sizes(&self, files: &[(TableFile, String)]) -> Result<(), ToolFailure> {
        let total: u64 = files.iter().map(|(file, _)| file.bytes).sum();
        if total <= self.settings.max_total {
            return Ok(());
        }
        Err(ToolFailure::InvalidArguments(format!(
            "these files have {total} bytes together, {} is the most for one query; name fewer `files`",
            self.settings.max_total
        )))
    }

    /// Reads files. What is too large or cannot be read is told of and left out.
    async fn read(
        &self,
        ctx: &ToolContext,
        chosen: &[(TableFile, String)],
    ) -> Result<(Vec<Input>, Vec<String>), ToolFailure> {
        let too_large = |file: &TableFile| file.bytes > self.settings.max_file;
        let (large, fitting): (Vec<_>, Vec<_>) =
            chosen.iter().cloned().partition(|(file, _)| too_large(file));
        let told = |file: &TableFile| {
            format!("`{}`: it has {} bytes, {} is the most", file.path, file.bytes, self.settings.max_file)
        };
        let mut left_out: Vec<String> = large.iter().map(|(file, _)| told(file)).collect();
        self.check_sizes(&fitting)?;
        let mut inputs = Vec::with_capacity(fitting.len());
        for (file, name) in fitting {
            match self.content(ctx, &file).await? {
                Ok(content) => inputs.push(Input { file, name, content }),
                Err(reason) => left_out.push(format!("`{}`: {reason}", file.path)),
            }
        }
        Ok((inputs, left_out))
    }

    async fn content(
        &self,
        ctx: &ToolContext,
        file: &TableFile,
    ) -> Result<Result<Content, String>, ToolFailure> {
        let bytes = files::read(ctx, file).await?;
        if file.kind != FileKind::Sheets {
            return Ok(Ok(Content::Bytes(bytes)));
        }
        let Some(reader) = &self.reader else {
            return Ok(Err("nothing here reads workbooks; save the sheet as CSV".to_owned()));
        };
        let read = reader.read(bytes, &file.path, None).await;
        Ok(read.map(|text| Content::Sheets(text.parts)).map_err(|error| error.to_string()))
    }
}

/// The query for all of a file with one table; a workbook has one by that name where it has one sheet.
pub(crate) fn file_query(path: &str) -> String {
    format!("SELECT * FROM {}", names::always_quoted(&names::stem(path)))
}

impl TableInfo {
    /// Remarks about the reading of its columns, each with the name of the column.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let remark = |column: &ColumnInfo| Some(format!("{}: {}", column.name, column.remark?));
        self.columns.iter().filter_map(remark).collect()
    }

    /// Its name in SQL with the schema that it is in.
    fn inner_quoted(&self) -> String {
        let (schema, table) = self.inner.split_once('.').unwrap_or(("main", &self.inner));
        format!("{}.{}", names::always_quoted(schema), names::always_quoted(table))
    }
}

/// The files that a query is about, each with the name of its tables: those it is told to use, else those whose names
/// stand in it. Databases always count, as their tables may be named without them.
fn wanted(all: &[TableFile], query: &Query) -> Result<Vec<(TableFile, String)>, ToolFailure> {
    if !query.files.is_empty() {
        return Ok(named_of(all, &files::chosen(all, &query.files)?));
    }
    let sql = query.sql.to_lowercase();
    let in_query = |name: &str| sql.contains(&name.to_lowercase());
    Ok(named(all, |(file, name)| file.kind == FileKind::Sqlite || in_query(name)))
}

/// Names are given to all files, so that a file has one name whichever others are read.
fn named(all: &[TableFile], keep: impl Fn((&TableFile, &str)) -> bool) -> Vec<(TableFile, String)> {
    let mut taken = Vec::new();
    let with_names =
        all.iter().map(|file| (file.clone(), names::unique(&names::stem(&file.path), &mut taken)));
    with_names.filter(|(file, name)| keep((file, name))).collect()
}

fn named_of(all: &[TableFile], chosen: &[TableFile]) -> Vec<(TableFile, String)> {
    let paths: BTreeSet<&str> = chosen.iter().map(|file| file.path.as_str()).collect();
    named(all, |(file, _)| paths.contains(file.path.as_str()))
}

/// Names of tables that are there and were not read.
fn unread(all: &[TableFile], chosen: &[(TableFile, String)]) -> Vec<String> {
    let is_chosen = |file: &TableFile| chosen.iter().any(|(other, _)| other.path == file.path);
    named(all, |(file, _)| !is_chosen(file)).into_iter().map(|(_, name)| name).collect()
}

fn loaded(inputs: Vec<Input>, settings: &SqlSettings, watch: &Watch) -> Result<Loaded, ToolFailure> {
    load(inputs, settings, watch).map_err(|error| match error {
        LoadError::Stopped => problem::stopped(watch.stopped().unwrap_or(guard::Stopped::Time), settings),
        LoadError::Sqlite(error) => problem::told(&error, watch, settings, &[], &[]),
    })
}

fn with_left_out(failure: ToolFailure, left_out: &[String]) -> ToolFailure {
    match failure {
        ToolFailure::InvalidArguments(message) if !left_out.is_empty() => {
            ToolFailure::InvalidArguments(format!("{message} Not read: {}.", left_out.join("; ")))
        }
        other => other,
    }
}

/// Tables that the query read.
fn touched_tables<'a>(loaded: &'a Loaded, touched: &[String]) -> Vec<&'a TableInfo> {
    let is_touched =
        |table: &&TableInfo| touched.iter().any(|inner| inner.eq_ignore_ascii_case(&table.inner));
    loaded.tables.iter().filter(is_touched).collect()
}

/// Does blocking work under a watch, which ends it when this is dropped.
async fn blocking<T: Send + 'static>(
    settings: &SqlSettings,
    work: impl FnOnce(&Watch) -> Result<T, ToolFailure> + Send + 'static,
) -> Result<T, ToolFailure> {
    let given_up = GiveUp(Arc::default());
    let watch = Watch::begin(settings, Arc::clone(&given_up.0));
    let done = tokio::task::spawn_blocking(move || work(&watch)).await;
    done.unwrap_or_else(|broken| Err(ToolFailure::Failed(format!("the query broke its engine: {broken}"))))
}
