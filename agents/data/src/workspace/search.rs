//! `workspace.search`: looks through the text files of the workspace.

use async_trait::async_trait;
use muster_tools::workspace::{WorkspaceError, WorkspacePath};
use muster_tools::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

/// Most lines that are shown.
const MAX_HITS: usize = 100;

/// Most bytes that one search looks through.
const MAX_SCANNED: u64 = 64 * 1024 * 1024;

/// Longest pattern, in bytes.
const MAX_PATTERN: usize = 1_000;

/// Largest regular expression, compiled, in bytes.
const MAX_REGEX: usize = 1024 * 1024;

/// Most characters of a line that are shown, around what was found.
const MAX_LINE: usize = 300;

pub(super) struct Search;

#[derive(Deserialize)]
struct Arguments {
    query: String,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    path: String,
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// Lines with the most of the words first.
    #[default]
    Words,
    /// Lines with this very text, whatever its case.
    Exact,
    /// Lines that a regular expression matches, whatever their case.
    Regex,
}

/// A line that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    path: String,
    line: usize,
    text: String,
    words: usize,
}

/// What is looked for.
#[derive(Debug)]
enum Wanted {
    /// Any of these words; each counts once.
    Words(Vec<Regex>),
    /// This pattern.
    Pattern(Regex),
}

#[async_trait]
impl Tool for Search {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            "workspace.search",
            "Searches the text files of the run's workspace, line by line, and gives path:line with each line found.",
            json!({
                    "query": {"type": "string", "minLength": 1, "maxLength": MAX_PATTERN},
                    "kind": {
                        "enum": ["words", "exact", "regex"],
                        "description": "words (any of them, lines with most of them first), the exact text, or a regular expression; case never counts"
                    },
                    "path": {"type": "string", "maxLength": 200, "description": "only files whose path has this in it, such as notes/"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_HITS}
                }), &["query"],
        )
        .needing(Permission::ReadWorkspace)
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let args: Arguments = crate::arguments(args)?;
        let wanted = Wanted::read(&args)?;
        let (texts, left_out) = texts(ctx, &args.path).await?;
        let files = texts.len();
        let searched = tokio::task::spawn_blocking(move || search(&texts, &wanted)).await;
        let found = searched.map_err(|broken| ToolFailure::Failed(format!("the search broke: {broken}")))?;
        let most = args.limit.unwrap_or(30).min(MAX_HITS);
        let data = found
            .iter()
            .take(most)
            .map(|hit| json!({"path": hit.path, "line": hit.line, "text": hit.text}))
            .collect();
        Ok(ToolOutput::text(in_words(&found, most, files, &left_out)).with_data(data))
    }
}

/// A text with its path.
struct Text {
    path: String,
    text: String,
}

/// The text files whose paths have this in them, and what was not looked through.
async fn texts(ctx: &ToolContext, part: &str) -> Result<(Vec<Text>, Vec<String>), ToolFailure> {
    let workspace = ctx.workspace()?;
    let part = part.trim().trim_start_matches("./").to_lowercase();
    let (mut texts, mut left_out, mut bytes) = (Vec::new(), Vec::new(), 0);
    for file in workspace.list().await? {
        if !file.path.to_lowercase().contains(&part) {
            continue;
        }
        bytes += file.bytes;
        if bytes > MAX_SCANNED {
            left_out.push(format!(
                "{} and what follows: more than {MAX_SCANNED} bytes; give a `path`",
                file.path
            ));
            break;
        }
        match workspace.read(&WorkspacePath::parse(&file.path)?).await {
            Ok(text) => texts.push(Text { path: file.path, text }),
            Err(WorkspaceError::NotText(path)) => left_out.push(format!("{path} (no text)")),
            // It went since it was listed.
            Err(WorkspaceError::NotFound(_)) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Ok((texts, left_out))
}

impl Wanted {
    fn read(args: &Arguments) -> Result<Self, ToolFailure> {
        let query = args.query.trim();
        let built = |pattern: &str| {
            RegexBuilder::new(pattern).case_insensitive(true).size_limit(MAX_REGEX).build().map_err(|error| {
                ToolFailure::InvalidArguments(format!(
                    "this is no regular expression: {error}. To find the very text, use `kind`: \"exact\"."
                ))
            })
        };
        match args.kind {
            Kind::Exact => Ok(Self::Pattern(built(&regex::escape(query))?)),
            Kind::Regex => Ok(Self::Pattern(built(query)?)),
            Kind::Words => {
                let words =
                    query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).take(20);
                let words: Vec<Regex> =
                    words.map(|word| built(&regex::escape(word))).collect::<Result<_, _>>()?;
                // Of what has no words in it, such as `->`, the very text is meant.
                if words.is_empty() {
                    Ok(Self::Pattern(built(&regex::escape(query))?))
                } else {
                    Ok(Self::Words(words))
                }
            }
        }
    }

    /// How many of the words stand in a line, and where the first of them; nothing when none does.
    fn find(&self, line: &str) -> Option<(usize, usize)> {
        match self {
            Self::Pattern(pattern) => pattern.find(line).map(|found| (1, found.start())),
            Self::Words(words) => {
                let places: Vec<usize> =
                    words.iter().filter_map(|word| word.find(line)).map(|found| found.start()).collect();
                places.iter().min().map(|first| (places.len(), *first))
            }
        }
    }
}

/// The lines found: those with most words first, else in the order of paths and lines.
fn search(texts: &[Text], wanted: &Wanted) -> Vec<Found> {
    let mut found = Vec::new();
    for text in texts {
        for (line, content) in (1..).zip(text.text.lines()) {
            if let Some((words, at)) = wanted.find(content) {
                found.push(Found { path: text.path.clone(), line, text: around(content, at), words });
            }
        }
    }
    found.sort_by(|one, other| {
        other.words.cmp(&one.words).then_with(|| (&one.path, one.line).cmp(&(&other.path, other.line)))
    });
    found
}

/// A line, cut around a place in it where it is long.
fn around(line: &str, at: usize) -> String {
    if line.chars().count() <= MAX_LINE {
        return line.trim_end().to_owned();
    }
    let start = line.floor_char_boundary(at.saturating_sub(MAX_LINE / 4));
    let shown: String = line[start..].chars().take(MAX_LINE).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if start + shown.len() < line.len() { "…" } else { "" };
    format!("{before}{shown}{after}")
}

fn in_words(found: &[Found], most: usize, files: usize, left_out: &[String]) -> String {
    let mut lines: Vec<String> =
        found.iter().take(most).map(|hit| format!("{}:{}: {}", hit.path, hit.line, hit.text)).collect();
    if found.is_empty() {
        lines.push(format!("Nothing found in {files} text files."));
    } else if found.len() > most {
        lines.push(format!("({} lines found, {most} are shown)", found.len()));
    }
    if !left_out.is_empty() {
        lines.push(format!(
            "Not searched: {}.",
            left_out.iter().take(10).cloned().collect::<Vec<_>>().join(", ")
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use muster_tools::ToolStatus;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::testing::{Held, context, engine};

    #[tokio::test]
    async fn lines_are_found_by_words_text_and_pattern() {
        let long = format!("{}needle{}", "ü".repeat(2000), "y".repeat(2000));
        let held = Held::with(&[
            ("notes/a.md", b"The cost of rent\nrent a car\nnothing\n"),
            ("b.txt", b"a (cost) of 5\n"),
            ("c.bin", b"\xff\xfecost"),
            ("long.txt", long.as_bytes()),
        ]);
        let (engine, ctx) = (engine(super::super::workspace_tools()), context(&held));
        for (args, wanted) in [
            (
                json!({"query": "RENT cost"}),
                "notes/a.md:1: The cost of rent\nb.txt:1: a (cost) of 5\nnotes/a.md:2: rent a car\nNot searched: c.bin (no text).",
            ),
            (
                json!({"query": "(cost)", "kind": "exact"}),
                "b.txt:1: a (cost) of 5\nNot searched: c.bin (no text).",
            ),
            (json!({"query": "^rent|\\d", "kind": "regex", "path": "notes/"}), "notes/a.md:2: rent a car"),
            (json!({"query": "cost", "path": "notes", "limit": 1}), "notes/a.md:1: The cost of rent"),
            (json!({"query": "absent", "path": ".md"}), "Nothing found in 1 text files."),
        ] {
            let result = engine.call("workspace.search", args.clone(), &ctx).await;
            assert_eq!((result.status, result.content.as_str()), (ToolStatus::Success, wanted), "{args}");
        }
        let result = engine.call("workspace.search", json!({"query": "needle"}), &ctx).await;
        assert!(result.content.contains("needle") && result.content.len() < 900, "{}", result.content);
        let result = engine.call("workspace.search", json!({"query": "(", "kind": "regex"}), &ctx).await;
        assert!(result.content.contains("no regular expression"), "{}", result.content);
        let result = engine
            .call("workspace.search", json!({"query": "[a-z]{1000}{1000}", "kind": "regex"}), &ctx)
            .await;
        assert_eq!(result.status, ToolStatus::Refused, "{}", result.content);
    }

    proptest! {
        /// Whatever stands in a file, a line found is one of its lines, or the part of it around the place.
        #[test]
        fn a_place_is_never_wrong(text in "(?s).{0,200}", word in "[a-z]{1,2}") {
            let args = Arguments { query: word, kind: Kind::Words, path: String::new(), limit: None };
            let wanted = Wanted::read(&args).unwrap();
            for hit in search(&[Text { path: "a".to_owned(), text: text.clone() }], &wanted) {
                prop_assert_eq!(text.lines().nth(hit.line - 1).unwrap().trim_end(), hit.text);
            }
        }
    }
}
