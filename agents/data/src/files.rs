//! The files that tables come from: those of the workspace and the documents of the run, as far as the task may read them.

use bytes::Bytes;
use muster_shared::flow::Use;
use muster_shared::text::nearest_name;
use muster_tools::workspace::WorkspacePath;
use muster_tools::{Permission, ToolContext, ToolFailure};

/// How many names of files a message has at most.
const MAX_NAMED: usize = 30;

/// How tables stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Values with commas, or what else separates them, between.
    Delimited,
    /// JSON.
    Json,
    /// JSON, one value in a line.
    JsonLines,
    /// A database of SQLite.
    Sqlite,
    /// A workbook.
    Sheets,
}

impl FileKind {
    /// By the ending of a path; nothing for a file that has no tables.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let (_, ending) = path.rsplit_once('.')?;
        match ending.to_ascii_lowercase().as_str() {
            "csv" | "tsv" | "tab" => Some(Self::Delimited),
            "json" => Some(Self::Json),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            "sqlite" | "sqlite3" | "db" | "db3" => Some(Self::Sqlite),
            "xlsx" | "xlsm" | "xlsb" | "xls" | "ods" => Some(Self::Sheets),
            _ => None,
        }
    }
}

/// Where a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Among the files of the run.
    Workspace,
    /// Among the documents.
    Documents,
}

/// A file with tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableFile {
    /// Its path, as it is cited.
    pub(crate) path: String,
    /// Where it is.
    pub(crate) origin: Origin,
    /// How long it is.
    pub(crate) bytes: u64,
    /// How its tables stand in it.
    pub(crate) kind: FileKind,
}

/// All files with tables that the task may read: those of the workspace first, each path once.
pub(crate) async fn list(ctx: &ToolContext) -> Result<Vec<TableFile>, ToolFailure> {
    let mut found = Vec::new();
    if let Some(workspace) =
        ctx.workspace.as_ref().filter(|_| ctx.grants.contains(&Permission::ReadWorkspace))
    {
        for file in workspace.list().await? {
            if let Some(kind) = FileKind::of(&file.path) {
                found.push(TableFile { path: file.path, origin: Origin::Workspace, bytes: file.bytes, kind });
            }
        }
    }
    let documents = ctx
        .corpus
        .as_ref()
        .filter(|_| ctx.grants.contains(&Permission::ReadDocuments) && ctx.rights.allow(&Use::Documents));
    if let Some(corpus) = documents {
        for file in corpus.within(&ctx.rights).manifest().await?.files {
            // Documents are kept as text: databases and workbooks are not among them.
            let kind =
                FileKind::of(&file.path).filter(|kind| !matches!(kind, FileKind::Sqlite | FileKind::Sheets));
            if let Some(kind) =
                kind.filter(|_| !found.iter().any(|other: &TableFile| other.path == file.path))
            {
                found.push(TableFile { path: file.path, origin: Origin::Documents, bytes: file.bytes, kind });
            }
        }
    }
    Ok(found)
}

/// What stands in a file.
pub(crate) async fn read(ctx: &ToolContext, file: &TableFile) -> Result<Bytes, ToolFailure> {
    match (file.origin, &ctx.workspace, &ctx.corpus) {
        (Origin::Workspace, Some(workspace), _) => {
            Ok(workspace.read_bytes(&WorkspacePath::parse(&file.path)?).await?)
        }
        (Origin::Documents, _, Some(corpus)) => {
            Ok(corpus.within(&ctx.rights).text(&file.path).await?.into_bytes().into())
        }
        (Origin::Workspace, None, _) | (Origin::Documents, _, None) => {
            Err(ToolFailure::NotFound(format!("`{}` is not there any more", file.path)))
        }
    }
}

/// Of the files that are there, those that are asked for, in the order asked for.
pub(crate) fn chosen(all: &[TableFile], wanted: &[String]) -> Result<Vec<TableFile>, ToolFailure> {
    wanted.iter().map(|path| find(all, path)).collect()
}

fn find(all: &[TableFile], wanted: &str) -> Result<TableFile, ToolFailure> {
    let plain = wanted.trim().trim_start_matches("./");
    if let Some(file) = all.iter().find(|file| file.path == plain) {
        return Ok(file.clone());
    }
    let paths = || all.iter().map(|file| file.path.as_str());
    if FileKind::of(plain).is_none() {
        return Err(ToolFailure::InvalidArguments(format!(
            "`{plain}` is no file with tables: they end in .csv, .tsv, .json, .jsonl, .sqlite, .db, .xlsx, .xls or .ods. {}",
            named(all)
        )));
    }
    let hint =
        nearest_name(plain, paths()).map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
    Err(ToolFailure::NotFound(format!("there is no file `{plain}`.{hint} {}", named(all))))
}

/// The files that are there, in words.
pub(crate) fn named(all: &[TableFile]) -> String {
    if all.is_empty() {
        return "There are no files with tables.".to_owned();
    }
    let mut names: Vec<&str> = all.iter().take(MAX_NAMED).map(|file| file.path.as_str()).collect();
    if all.len() > MAX_NAMED {
        names.push("…");
    }
    format!("Files with tables: {}.", names.join(", "))
}
