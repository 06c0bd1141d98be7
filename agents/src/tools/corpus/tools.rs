//! The tools over documents: `corpus.search` and `corpus.read`.

use std::{fmt::Write, sync::Arc};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{Corpus, CorpusError, Hit, Lines};
use crate::tools::spec::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};

/// Passages given when a call does not say how many.
const DEFAULT_HITS: u64 = 6;

/// Most passages a call may ask for.
const MOST_HITS: u64 = 20;

/// Lines given when a call does not say up to which.
const DEFAULT_LINES: u64 = 80;

/// The two tools over documents.
#[must_use]
pub fn corpus_tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(SearchTool), Arc::new(ReadTool)]
}

struct SearchTool;
struct ReadTool;

#[async_trait]
impl Tool for SearchTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(
            "corpus.search",
            "Searches the documents given with the goal by words (BM25) and gives the best passages with path and \
             line numbers. Use few and specific words; names such as `max_deliver` are found whole and by their \
             parts; put phrases in double quotes. Cite as path:line.",
            json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "minLength": 1, "maxLength": 2000},
                    "k": {
                        "type": "integer", "minimum": 1, "maximum": MOST_HITS, "default": DEFAULT_HITS,
                        "description": "How many passages."
                    }
                },
                "required": ["query"],
                "additionalProperties": false
            }),
        )
        .needing(Permission::ReadDocuments)
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let query = args.get("query").and_then(Value::as_str).unwrap_or_default();
        let k = args.get("k").and_then(Value::as_u64).unwrap_or(DEFAULT_HITS).min(MOST_HITS);
        let hits = corpus(ctx)?.search(query, usize::try_from(k).unwrap_or(1)).await?;
        if hits.is_empty() {
            return Ok(ToolOutput::text(format!(
                "No passage has any word of `{query}`. Try other words for the same thing."
            ))
            .with_data(json!([])));
        }
        let shown: Vec<String> = hits.iter().map(passage).collect();
        let data = serde_json::to_value(&hits).map_err(|error| ToolFailure::Failed(error.to_string()))?;
        Ok(ToolOutput::text(shown.join("\n\n")).with_data(data))
    }
}

#[async_trait]
impl Tool for ReadTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(
            "corpus.read",
            "Reads lines of one document, each with its number. Use it to see more around a passage that a search \
             gave, and to check a citation.",
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "minLength": 1, "maxLength": 1000},
                    "from": {"type": "integer", "minimum": 1, "default": 1, "description": "First line."},
                    "to": {"type": "integer", "minimum": 1, "description": "Last line; by default 80 lines are given."},
                    "find": {
                        "type": "string", "minLength": 1, "maxLength": 1000,
                        "description": "Words as they stand there: a very long line is shown around them."
                    }
                },
                "required": ["path"],
                "additionalProperties": false
            }),
        )
        .needing(Permission::ReadDocuments)
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let path = args.get("path").and_then(Value::as_str).unwrap_or_default();
        let from = args.get("from").and_then(Value::as_u64).unwrap_or(1);
        let to = args.get("to").and_then(Value::as_u64).unwrap_or(from.saturating_add(DEFAULT_LINES - 1));
        if to < from {
            return Err(ToolFailure::InvalidArguments(format!(
                "`to` ({to}) is before `from` ({from}); swap them"
            )));
        }
        let find = args.get("find").and_then(Value::as_str);
        let lines = corpus(ctx)?.read_around(path, from, to, find).await?;
        let data = serde_json::to_value(&lines).map_err(|error| ToolFailure::Failed(error.to_string()))?;
        Ok(ToolOutput::text(numbered(&lines)).with_data(data))
    }
}

/// A passage under its citation, with line numbers.
fn passage(hit: &Hit) -> String {
    let mut out = format!("{}:{}", hit.path, hit.start_line);
    if hit.end_line > hit.start_line {
        let _ = write!(out, "-{}", hit.end_line);
    }
    if !hit.heading.is_empty() {
        let _ = write!(out, " ({})", hit.heading);
    }
    for (number, line) in (hit.start_line..).zip(hit.text.lines()) {
        let _ = write!(out, "\n{number}| {line}");
    }
    out
}

fn numbered(lines: &Lines) -> String {
    let mut out = format!("{}:{}-{} of {} lines", lines.path, lines.from, lines.to(), lines.total);
    for (number, line) in (lines.from..).zip(&lines.lines) {
        let _ = write!(out, "\n{number}| {line}");
    }
    if lines.cut {
        let _ = write!(out, "\n[cut: go on from line {}]", lines.to() + 1);
    }
    out
}

fn corpus(ctx: &ToolContext) -> Result<&Corpus, ToolFailure> {
    ctx.corpus.as_ref().ok_or_else(|| {
        ToolFailure::NotFound("no documents were given with this goal; go on without".to_owned())
    })
}

impl From<CorpusError> for ToolFailure {
    fn from(error: CorpusError) -> Self {
        let message = error.to_string();
        match error {
            CorpusError::UnknownPath { .. } | CorpusError::Missing(_) => Self::NotFound(message),
            CorpusError::BadRange { .. } => Self::InvalidArguments(message),
            CorpusError::Store(_)
            | CorpusError::Timeout(_)
            | CorpusError::Io { .. }
            | CorpusError::Index(_) => Self::Unavailable(message),
            CorpusError::NoFolder
            | CorpusError::FolderMissing(_)
            | CorpusError::FolderUnreadable { .. }
            | CorpusError::NothingUsable { .. }
            | CorpusError::Damaged(_) => Self::Failed(message),
        }
    }
}
