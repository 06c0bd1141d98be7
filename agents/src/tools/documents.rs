//! The tools over documents: `corpus.search`, `corpus.read`, and [`corpus.look`](super::look).

use std::sync::Arc;

use async_trait::async_trait;
use muster_corpus::{Corpus, CorpusError, Hit, SearchKind};
use serde_json::{Value, json};

use super::look::Look;
use super::spec::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};

/// Passages given when a call does not say how many.
const DEFAULT_HITS: u64 = 6;

/// Most passages a call may ask for.
const MOST_HITS: u64 = 20;

/// Lines given when a call does not say up to which.
const DEFAULT_LINES: u64 = 80;

/// The tools over documents.
#[must_use]
pub fn corpus_tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Search), Arc::new(Read), Arc::new(Look)]
}

/// Whether a tool searches the documents.
#[must_use]
pub fn is_search(tool: &str) -> bool {
    tool == SEARCH
}

/// The tool that searches documents.
pub(crate) const SEARCH: &str = "corpus.search";
/// The tool that reads documents.
pub(crate) const READ: &str = "corpus.read";

struct Search;
struct Read;

#[async_trait]
impl Tool for Search {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            SEARCH,
            "Searches the documents; gives the best passages with path and line numbers. Few and specific words find most.",
            json!({
                    "query": {"type": "string", "minLength": 1, "maxLength": 2000},
                    "path": {
                        "type": "string", "minLength": 1, "maxLength": 1000,
                        "description": "only documents whose path has this; * stands for anything"
                    },
                    "kind": {
                        "type": "string", "enum": ["words", "exact", "regex"], "default": "words",
                        "description": "exact: this very text, line by line"
                    },
                    "k": {"type": "integer", "minimum": 1, "maximum": MOST_HITS, "default": DEFAULT_HITS}
                }), &["query"],
        )
        .needing(Permission::ReadDocuments)
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let query = args["query"].as_str().unwrap_or_default();
        let path = args["path"].as_str();
        let kind = match args["kind"].as_str() {
            Some("exact") => SearchKind::Exact,
            Some("regex") => SearchKind::Regex,
            _ => SearchKind::Words,
        };
        let asked = args["k"].as_u64().map(|k| k.min(MOST_HITS));
        let hits = found(corpus(ctx)?, query, kind, path, asked).await?;
        if hits.is_empty() {
            return Ok(ToolOutput::text(nothing(query, path)).with_data(json!([])));
        }
        let (known, new): (Vec<&Hit>, Vec<&Hit>) = hits.iter().partition(|hit| was_shown(ctx, hit));
        let mut shown: Vec<String> = new.into_iter().map(Hit::shown).collect();
        if !known.is_empty() {
            let places: Vec<String> =
                known.iter().map(|hit| format!("{}-{}", hit.citation(), hit.end_line)).collect();
            shown.push(format!("Shown before, and found again: {}", places.join(", ")));
        }
        let data = serde_json::to_value(&hits).map_err(|error| ToolFailure::Failed(error.to_string()))?;
        Ok(ToolOutput::text(shown.join("\n\n")).with_data(data))
    }
}

/// The best passages. Where nobody says how many, no document has all of them as long as others have some.
async fn found(
    corpus: &Corpus,
    query: &str,
    kind: SearchKind,
    path: Option<&str>,
    asked: Option<u64>,
) -> Result<Vec<Hit>, CorpusError> {
    let most = usize::try_from(asked.unwrap_or(DEFAULT_HITS)).unwrap_or(1);
    if asked.is_some() || path.is_some() {
        return corpus.search_in(query, kind, path, most).await;
    }
    let all = corpus.search_in(query, kind, None, most * 3).await?;
    Ok(spread(all, most))
}

/// The best of these, at most half of them of one document as long as there are others.
fn spread(all: Vec<Hit>, most: usize) -> Vec<Hit> {
    let of_one = most.div_ceil(2);
    let (mut chosen, mut rest): (Vec<Hit>, Vec<Hit>) = (Vec::new(), Vec::new());
    for hit in all {
        let same = chosen.iter().filter(|other| other.path == hit.path).count();
        if chosen.len() < most && same < of_one { chosen.push(hit) } else { rest.push(hit) }
    }
    let left = most.saturating_sub(chosen.len());
    chosen.extend(rest.into_iter().take(left));
    chosen.sort_by(|one, other| other.score.total_cmp(&one.score));
    chosen
}

/// Whether every line of a passage was shown in this task before.
fn was_shown(ctx: &ToolContext, hit: &Hit) -> bool {
    let lines = ctx.shown.as_deref().and_then(|shown| shown.get(&hit.path));
    lines.is_some_and(|lines| {
        let mut text = hit.numbered().filter(|(_, line)| !line.trim().is_empty());
        // Of a page that was shown it is not known how much of it was.
        !hit.unit.is_cut() && text.all(|(number, _)| lines.contains(&number))
    })
}

/// How it begins what is told of a search that found nothing.
const FOUND_NOTHING: &str = "No passage";

/// Whether a call was a search of documents, and then whether it found anything, by what was told of it.
#[must_use]
pub fn has_found(tool: &str, told: &str) -> Option<bool> {
    (tool == SEARCH).then(|| !told.starts_with(FOUND_NOTHING))
}

fn nothing(query: &str, path: Option<&str>) -> String {
    let within = path.map(|path| format!(" in documents like `{path}`")).unwrap_or_default();
    format!("{FOUND_NOTHING}{within} has any word of `{query}`. Try other words for the same thing.")
}

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            READ,
            "Reads a document: lines by their numbers, or what stands under a heading.",
            json!({
                    "path": {"type": "string", "minLength": 1, "maxLength": 1000},
                    "from": {"type": "integer", "minimum": 1, "default": 1},
                    "to": {"type": "integer", "minimum": 1, "description": "80 lines when absent"},
                    "heading": {"type": "string", "minLength": 1, "maxLength": 300, "description": "instead of lines"},
                    "find": {
                        "type": "string", "minLength": 1, "maxLength": 1000,
                        "description": "a very long line is shown around these words"
                    }
                }), &["path"],
        )
        .needing(Permission::ReadDocuments)
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let path = args["path"].as_str().unwrap_or_default();
        let corpus = corpus(ctx)?;
        let (from, to) = match args["heading"].as_str() {
            Some(heading) => corpus.section(path, heading).await?.ok_or_else(|| {
                ToolFailure::NotFound(format!(
                    "`{path}` has no heading `{heading}`; read its first lines, or search it"
                ))
            })?,
            None => lines_of(&args)?,
        };
        let find = args["find"].as_str();
        let lines = corpus.read_around(path, from, to, find).await?;
        let data = serde_json::to_value(&lines).map_err(|error| ToolFailure::Failed(error.to_string()))?;
        Ok(ToolOutput::text(lines.shown()).with_data(data))
    }
}

/// The lines that are to be read.
fn lines_of(args: &Value) -> Result<(u64, u64), ToolFailure> {
    let from = args["from"].as_u64().unwrap_or(1);
    let to = args["to"].as_u64().unwrap_or(from.saturating_add(DEFAULT_LINES - 1));
    if to < from {
        return Err(ToolFailure::InvalidArguments(format!(
            "`to` ({to}) is before `from` ({from}); swap them"
        )));
    }
    Ok((from, to))
}

/// The documents of the task.
pub(super) fn corpus(ctx: &ToolContext) -> Result<&Corpus, ToolFailure> {
    ctx.corpus.as_ref().ok_or_else(|| {
        ToolFailure::NotFound("no documents were given with this goal; go on without".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use muster_corpus::{CorpusOptions, MemoryBlobs};

    use super::*;
    use crate::tools::{ToolEngine, ToolSettings, ToolStatus, standard_registry};

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
        let engine = ToolEngine::new(Arc::new(standard_registry(&ToolSettings::default()).unwrap()));
        use ToolStatus::{Refused, Success};
        let searches = [
            (
                json!({"query": "delegation loops"}),
                Success,
                "guide.md:5-8 (Muster > Delegation)\n5| ## Delegation\n6| \n7| Delegation loops",
            ),
            (json!({"query": "zebra"}), Success, "No passage"),
            (json!({"query": "delegation", "path": "*.rs"}), Success, "No passage in documents like `*.rs`"),
            (
                json!({"query": "ackWait: u64", "kind": "exact"}),
                Success,
                "src/consumer.rs:2-5\n2| pub struct",
            ),
            (
                json!({"query": "^A worker.*replaced", "kind": "regex", "path": "guide"}),
                Success,
                "12| A worker that dies is replaced.",
            ),
            (json!({"query": "(", "kind": "regex"}), Refused, "no regular expression"),
            (json!({"query": "x", "k": 21}), Refused, "/k: 21"),
        ];
        let reads = [
            (
                json!({"path": "guide.md", "heading": "death"}),
                Success,
                "guide.md:10-12 of 12 lines\n10| ## Death",
            ),
            (json!({"path": "guide.md", "heading": "Birth"}), Refused, "no heading"),
            (
                json!({"path": "guide.md", "from": 7, "to": 8}),
                Success,
                "guide.md:7-8 of 12 lines\n7| Delegation loops are limited by depth:\n8| `max_depth` is eight.",
            ),
            (json!({"path": "gide.md"}), Refused, "did you mean `guide.md`?"),
            (json!({"path": "consumer.rs"}), Refused, "did you mean `src/consumer.rs`?"),
            (json!({"path": "../../etc/passwd"}), Refused, "there is no document"),
            (json!({"path": "/etc/passwd"}), Refused, "there is no document"),
            (json!({"path": "guide.md", "from": 99}), Refused, "has 12 lines"),
            (json!({"path": "guide.md", "from": 5, "to": 2}), Refused, "swap"),
        ];
        let searches = searches.into_iter().map(|row| ("corpus.search", row));
        for (tool, (args, status, said)) in searches.chain(reads.map(|row| ("corpus.read", row))) {
            let result = engine.call(tool, args.clone(), &ctx).await;
            assert_eq!(result.status, status, "{tool} {args}: {result:?}");
            assert!(result.content.contains(said), "{tool} {args}: {}", result.content);
        }
        let seen = BTreeMap::from([("guide.md".to_owned(), (1..=12).collect())]);
        let again = ToolContext { shown: Some(Arc::new(seen)), ..ctx.clone() };
        let known = engine.call("corpus.search", json!({"query": "delegation loops"}), &again).await;
        assert!(
            known.content.starts_with("Shown before, and found again: guide.md:5-8"),
            "{}",
            known.content
        );
        let without =
            engine.call("corpus.search", json!({"query": "x"}), &ToolContext::new("run", "1")).await;
        assert_eq!(without.status, ToolStatus::Refused);
    }

    #[test]
    fn no_document_has_all_passages_as_long_as_others_have_some() {
        let hit = |path: &str, score: f64| Hit {
            path: path.to_owned(),
            start_line: 1,
            end_line: 1,
            unit: muster_corpus::Unit::Line,
            numbers: Vec::new(),
            heading: String::new(),
            text: String::new(),
            score,
        };
        let all = || (0..6).map(|at| hit("a", 9.0 - f64::from(at))).chain([hit("b", 2.0), hit("c", 1.0)]);
        let paths = |hits: Vec<Hit>| hits.into_iter().map(|hit| hit.path).collect::<String>();
        assert_eq!(paths(spread(all().collect(), 4)), "aabc");
        assert_eq!(paths(spread(all().take(6).collect(), 4)), "aaaa");
        assert_eq!(paths(spread(all().skip(5).collect(), 4)), "abc");
    }
}
