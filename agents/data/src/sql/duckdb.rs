//! DuckDB, where it is installed: a program in the sandbox that finds the files of the query beside it, and nothing else.
//!
//! It is no part of this program: it would more than double its size. What keeps it in is the sandbox. That it is told to
//! read only what lies beside it keeps honest queries from surprises.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use muster_shared::flow::Artifact;
use muster_shared::text::beginning;
use muster_tools::workspace::{Workspace, WorkspaceError, WorkspacePath};
use muster_tools::{
    Permission, Program, ProgramEnd, ProgramLimits, ProgramNetwork, ProgramRunner, ProgramStatus,
    ToolContext, ToolFailure,
};

use super::names;
use super::queries::{Answer, Query};
use super::types::{Field, Guess, field};
use crate::cell::Cell;
use crate::files::{self, FileKind, TableFile};
use crate::settings::SqlSettings;
use crate::shown::{Rows, Total};

/// How nothing is written in what it prints.
const NOTHING: &str = "\\N";

/// Most of what it prints, in bytes.
const MAX_OUTPUT: usize = 16 * 1024 * 1024;

/// Makes a query with DuckDB.
pub(crate) async fn ask(
    ctx: &ToolContext,
    runner: Option<&Arc<dyn ProgramRunner>>,
    settings: &SqlSettings,
    files: &[(TableFile, String)],
    query: &Query,
) -> Result<Answer, ToolFailure> {
    let Some(runner) = runner else {
        return Err(ToolFailure::Refused(
            "DuckDB is not allowed here (tool.sql.duckdb); use SQLite.".to_owned(),
        ));
    };
    if !ctx.grants.contains(&Permission::Execute) {
        return Err(ToolFailure::Refused(
            "DuckDB is a program, and this agent may run none; use SQLite.".to_owned(),
        ));
    }
    let (readable, other): (Vec<_>, Vec<_>) = files.iter().partition(|(file, _)| reading(file).is_some());
    let mut laid = Laid::default();
    for (file, _) in &readable {
        laid.files.insert(file.path.clone(), files::read(ctx, file).await?);
    }
    let program = Program {
        command: ["-batch", "-csv", "-nullvalue", NOTHING, "-c", &script(&readable, query, settings)?]
            .into_iter()
            .fold(vec![settings.duckdb_program.clone()], |mut command, word| {
                command.push(word.to_owned());
                command
            }),
        input: Bytes::new(),
        environment: BTreeMap::new(),
        workspace: Some(Arc::new(laid)),
        reads: Vec::new(),
        network: ProgramNetwork::Nothing,
        limits: ProgramLimits {
            time: settings.time,
            cpu: settings.time * 2,
            output: MAX_OUTPUT,
            ..ProgramLimits::default()
        },
    };
    let end = runner.run(program, &ctx.cancel).await.map_err(|failure| absent(failure, settings))?;
    let rows = rows(&end, query.most, settings)?;
    let sources = readable.iter().map(|(file, _)| file.path.clone()).collect();
    let left_out = other
        .iter()
        .map(|(file, _)| format!("`{}`: DuckDB reads CSV, TSV, JSON and Parquet here", file.path))
        .collect();
    Ok(Answer { rows, sources, left_out })
}

/// How DuckDB reads a file; nothing for what it does not read without further parts.
fn reading(file: &TableFile) -> Option<&'static str> {
    match file.kind {
        FileKind::Delimited => Some("read_csv"),
        FileKind::Json | FileKind::JsonLines => Some("read_json"),
        FileKind::Parquet => Some("read_parquet"),
        FileKind::Sqlite | FileKind::Sheets => None,
    }
}

/// What it is told: names for the files, bounds, and the query.
fn script(
    files: &[&(TableFile, String)],
    query: &Query,
    settings: &SqlSettings,
) -> Result<String, ToolFailure> {
    if query.sql.lines().any(|line| line.trim_start().starts_with('.')) {
        return Err(ToolFailure::InvalidArguments(
            "a line of the query begins with a dot, which DuckDB takes for an order; write it in one line"
                .to_owned(),
        ));
    }
    let views: String = files
        .iter()
        .filter_map(|(file, name)| {
            let path = file.path.replace('\'', "''");
            let reader = reading(file)?;
            Some(format!("CREATE VIEW {} AS SELECT * FROM {reader}('{path}');\n", names::always_quoted(name)))
        })
        .collect();
    let memory = settings.memory / (1024 * 1024);
    let sql = query.sql.trim().trim_end_matches(';');
    let most = query.most.saturating_add(1);
    Ok(format!(
        "SET allowed_directories=['.'];\nSET memory_limit='{memory}MiB';\nSET threads=2;\n\
         SET enable_external_access=false;\n{views}SET lock_configuration=true;\nSELECT * FROM (\n{sql}\n) LIMIT {most};\n"
    ))
}

fn absent(failure: ToolFailure, settings: &SqlSettings) -> ToolFailure {
    match failure {
        ToolFailure::NotFound(_) => ToolFailure::NotFound(format!(
            "DuckDB is not on this machine: there is no program `{}`. Use SQLite.",
            settings.duckdb_program
        )),
        other => other,
    }
}

fn rows(end: &ProgramEnd, most: usize, settings: &SqlSettings) -> Result<Rows, ToolFailure> {
    match end.status {
        ProgramStatus::Exited(0) if end.cut => {
            Err(ToolFailure::InvalidArguments("the answer is too large; aggregate, or use LIMIT".to_owned()))
        }
        ProgramStatus::Exited(0) => read(&end.output, most),
        ProgramStatus::Exited(_) => {
            let said = String::from_utf8_lossy(&end.errors);
            Err(ToolFailure::InvalidArguments(format!("DuckDB says: {}", beginning(said.trim(), 1_500))))
        }
        ProgramStatus::Signalled(signal) => {
            Err(ToolFailure::Failed(format!("DuckDB was ended by signal {signal}")))
        }
        ProgramStatus::TimedOut => Err(ToolFailure::Failed(format!(
            "DuckDB was stopped after {} ms, the time limit of a query; filter or aggregate earlier",
            settings.time.as_millis()
        ))),
        ProgramStatus::Exceeded(what) => {
            Err(ToolFailure::Failed(format!("DuckDB was stopped: it used too much {what}")))
        }
    }
}

/// Reads what it printed. Numbers are known by how all values of a column are written.
fn read(output: &[u8], most: usize) -> Result<Rows, ToolFailure> {
    let broken =
        |error: csv::Error| ToolFailure::Failed(format!("what DuckDB printed cannot be read: {error}"));
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(output);
    let columns: Vec<String> = reader.headers().map_err(broken)?.iter().map(str::to_owned).collect();
    let records: Vec<csv::StringRecord> = reader.into_records().collect::<Result<_, _>>().map_err(broken)?;
    let mut guesses = vec![Guess::new(false); columns.len()];
    for (guess, text) in
        records.iter().flat_map(|record| (0..columns.len()).map(|at| (at, record.get(at).unwrap_or(NOTHING))))
    {
        if let Some(guess) = guesses.get_mut(guess).filter(|_| text != NOTHING) {
            guess.see(text);
        }
    }
    let cell = |at: usize, text: &str| match (text, guesses.get(at)) {
        (NOTHING, _) | (_, None) => Cell::Null,
        ("", _) => Cell::Text(String::new()),
        (text, Some(guess)) => match field(text, guess.ends()) {
            Field::Null => Cell::Text(text.to_owned()),
            Field::Integer(number) => Cell::Integer(number),
            Field::Real(number) => Cell::Real(number),
            Field::Text(text) => Cell::Text(text.to_owned()),
        },
    };
    let row = |record: &csv::StringRecord| {
        (0..columns.len()).map(|at| cell(at, record.get(at).unwrap_or(NOTHING))).collect()
    };
    let rows: Vec<Vec<Cell>> = records.iter().take(most).map(row).collect();
    let total = if records.len() > most { Total::AtLeast(most as u64) } else { Total::Given };
    Ok(Rows { columns, rows, total })
}

/// The files of one query. Nothing that is written to them is kept.
#[derive(Default)]
struct Laid {
    files: BTreeMap<String, Bytes>,
}

impl Laid {
    fn refused(path: &WorkspacePath) -> WorkspaceError {
        WorkspaceError::BadPath { path: path.to_string(), reason: "the files of a query are only read" }
    }

    fn artifacts(&self) -> Vec<Artifact> {
        let task = String::new;
        self.files
            .iter()
            .map(|(path, bytes)| Artifact {
                path: path.clone(),
                bytes: bytes.len() as u64,
                task: task(),
                ..Artifact::default()
            })
            .collect()
    }
}

#[async_trait]
impl Workspace for Laid {
    async fn read(&self, path: &WorkspacePath) -> Result<String, WorkspaceError> {
        let bytes = self.read_bytes(path).await?;
        String::from_utf8(bytes.to_vec()).map_err(|_| WorkspaceError::NotText(path.to_string()))
    }

    async fn read_bytes(&self, path: &WorkspacePath) -> Result<Bytes, WorkspaceError> {
        self.files.get(path.as_str()).cloned().ok_or_else(|| WorkspaceError::NotFound(path.to_string()))
    }

    async fn write_bytes(&self, path: &WorkspacePath, _: Bytes) -> Result<(), WorkspaceError> {
        Err(Self::refused(path))
    }

    async fn write(&self, path: &WorkspacePath, _: &str) -> Result<(), WorkspaceError> {
        Err(Self::refused(path))
    }

    async fn replace(&self, path: &WorkspacePath, _: &str, _: &str) -> Result<(), WorkspaceError> {
        Err(Self::refused(path))
    }

    async fn append(&self, path: &WorkspacePath, _: &str) -> Result<u64, WorkspaceError> {
        Err(Self::refused(path))
    }

    async fn list(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        Ok(self.artifacts())
    }

    async fn glance(&self) -> Result<Vec<Artifact>, WorkspaceError> {
        Ok(self.artifacts())
    }
}

#[cfg(test)]
#[path = "duckdb_tests.rs"]
mod tests;
