//! The tools over documents: `corpus.search` and `corpus.read`.

use std::sync::Arc;

use async_trait::async_trait;
use muster_corpus::{Corpus, CorpusError, Hit};
use serde_json::{Value, json};

use super::spec::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};

/// Passages given when a call does not say how many.
const DEFAULT_HITS: u64 = 6;

/// Most passages a call may ask for.
const MOST_HITS: u64 = 20;

/// Lines given when a call does not say up to which.
const DEFAULT_LINES: u64 = 80;

/// The two tools over documents.
#[must_use]
pub fn corpus_tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Search), Arc::new(Read)]
}

struct Search;
struct Read;

#[async_trait]
impl Tool for Search {
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
        let shown: Vec<String> = hits.iter().map(Hit::shown).collect();
        let data = serde_json::to_value(&hits).map_err(|error| ToolFailure::Failed(error.to_string()))?;
        Ok(ToolOutput::text(shown.join("\n\n")).with_data(data))
    }
}

#[async_trait]
impl Tool for Read {
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
        Ok(ToolOutput::text(lines.shown()).with_data(data))
    }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use muster_corpus::{CorpusOptions, MemoryBlobs};

    use super::*;
    use crate::tools::{ToolEngine, ToolStatus, standard_registry};

    const GUIDE: &str = "# Muster\n\nIntro of the guide.\n\n## Delegation\n\nDelegation loops are limited by depth:\n\
                         `max_depth` is eight.\n\n## Death\n\nA worker that dies is replaced.\n";
    const CODE: &str = "/// Settings of a consumer.\npub struct Consumer {\n    pub max_deliver: i64,\n    pub ackWait: u64,\n}\n";

    #[tokio::test]
    async fn the_tools_answer_with_citations_and_hints() {
        let folder = tempfile::tempdir().unwrap();
        let docs = folder.path().join("docs");
        std::fs::create_dir_all(docs.join("src")).unwrap();
        std::fs::write(docs.join("guide.md"), GUIDE).unwrap();
        std::fs::write(docs.join("src/consumer.rs"), CODE).unwrap();
        let options = CorpusOptions::new(folder.path().join("cache"), vec![docs]);
        let opened = Corpus::open_or_build(options, &MemoryBlobs::default()).await.unwrap();
        let ctx = ToolContext::new("run", "1").with_corpus(opened.corpus);
        let engine = ToolEngine::new(Arc::new(standard_registry().unwrap()));
        for (tool, args, status, said) in [
            (
                "corpus.search",
                json!({"query": "delegation loops"}),
                ToolStatus::Success,
                "guide.md:5-8 (Muster > Delegation)\n5| ## Delegation\n6| \n7| Delegation loops",
            ),
            ("corpus.search", json!({"query": "zebra"}), ToolStatus::Success, "No passage"),
            ("corpus.search", json!({"query": "x", "k": 21}), ToolStatus::Refused, "/k: 21"),
            (
                "corpus.read",
                json!({"path": "guide.md", "from": 7, "to": 8}),
                ToolStatus::Success,
                "guide.md:7-8 of 12 lines\n7| Delegation loops are limited by depth:\n8| `max_depth` is eight.",
            ),
            ("corpus.read", json!({"path": "gide.md"}), ToolStatus::Refused, "did you mean `guide.md`?"),
            (
                "corpus.read",
                json!({"path": "consumer.rs"}),
                ToolStatus::Refused,
                "did you mean `src/consumer.rs`?",
            ),
            ("corpus.read", json!({"path": "../../etc/passwd"}), ToolStatus::Refused, "there is no document"),
            ("corpus.read", json!({"path": "/etc/passwd"}), ToolStatus::Refused, "there is no document"),
            ("corpus.read", json!({"path": "guide.md", "from": 99}), ToolStatus::Refused, "has 12 lines"),
            ("corpus.read", json!({"path": "guide.md", "from": 5, "to": 2}), ToolStatus::Refused, "swap"),
        ] {
            let result = engine.call(tool, args.clone(), &ctx).await;
            assert_eq!(result.status, status, "{tool} {args}: {result:?}");
            assert!(result.content.contains(said), "{tool} {args}: {}", result.content);
        }
        let without =
            engine.call("corpus.search", json!({"query": "x"}), &ToolContext::new("run", "1")).await;
        assert_eq!(without.status, ToolStatus::Refused);
    }
}
