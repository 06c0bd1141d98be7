//! What is known already: the results of other tasks, and the documents. Statements are found by the words they share with
//! what is asked.

use std::collections::BTreeSet;

use crate::tools::spec::{ToolContext, ToolFailure};

/// Passages of documents that are looked through.
const HITS: usize = 8;
/// Words that tell nothing of what a statement is about.
const LIGHT: [&str; 44] = [
    "the", "and", "for", "are", "was", "were", "that", "this", "with", "from", "has", "have", "had", "not",
    "its", "what", "which", "who", "how", "why", "when", "where", "does", "did", "can", "may", "will",
    "would", "should", "about", "there", "their", "them", "then", "than", "into", "onto", "over", "all",
    "any", "each", "but", "is", "of",
];

/// A statement and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CitedStatement {
    /// `task 1-2`, or `path:line`.
    pub(super) source: String,
    /// The words.
    pub(super) text: String,
    /// The share of the words asked for that stand in it.
    pub(super) share: f64,
}

/// The statements that share most words with `asked`, best first; those that share none are left out.
pub(super) async fn look(
    ctx: &ToolContext,
    asked: &str,
    most: usize,
) -> Result<Vec<CitedStatement>, ToolFailure> {
    let mut all = in_results(ctx);
    if let Some(corpus) = &ctx.corpus {
        for hit in corpus.search(asked, HITS).await? {
            all.extend(hit.numbered().flat_map(|(number, line)| {
                let source = format!("{}:{number}", hit.path);
                sentences(line).map(move |text| (source.clone(), text.to_owned())).collect::<Vec<_>>()
            }));
        }
    }
    Ok(best(asked, all, most))
}

fn in_results(ctx: &ToolContext) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for leaf in ctx.results.iter() {
        let source = format!("task {}", leaf.index);
        all.extend(sentences(&leaf.result.conclusion).map(|text| (source.clone(), text.to_owned())));
        for finding in &leaf.result.findings {
            let places: Vec<String> = finding.citations.iter().map(ToString::to_string).collect();
            let source =
                if places.is_empty() { source.clone() } else { format!("{source}, {}", places.join(", ")) };
            all.push((source, finding.text.clone()));
        }
    }
    all
}

fn best(asked: &str, all: Vec<(String, String)>, most: usize) -> Vec<CitedStatement> {
    let wanted = words(asked);
    let mut found: Vec<CitedStatement> = all
        .into_iter()
        .map(|(source, text)| CitedStatement { share: share(&wanted, &words(&text)), source, text })
        .filter(|statement| statement.share > 0.0)
        .collect();
    found.sort_by(|one, other| other.share.total_cmp(&one.share));
    let mut seen = BTreeSet::new();
    found.retain(|statement| seen.insert(statement.text.clone()));
    found.truncate(most);
    found
}

fn share(wanted: &BTreeSet<String>, there: &BTreeSet<String>) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a statement has few words")]
    let (shared, all) = (wanted.intersection(there).count() as f64, wanted.len().max(1) as f64);
    shared / all
}

/// The sentences of a text, line by line.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.lines().flat_map(|line| line.split_inclusive(". "));
    parts.map(str::trim).filter(|part| !part.is_empty())
}

/// The telling words of a text, without their endings. Numbers stand as they are.
pub(super) fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words
        .filter(|word| {
            let number = word.chars().all(|c| c.is_ascii_digit()) && !word.is_empty();
            number || word.chars().count() > 2 && !LIGHT.contains(&word.as_str())
        })
        .map(|word| stem(&word))
        .collect()
}

fn stem(word: &str) -> String {
    let endings = ["ies", "ing", "ed", "es", "s"];
    let cut =
        endings.iter().find_map(|ending| word.strip_suffix(ending).filter(|stem| stem.chars().count() > 3));
    cut.unwrap_or(word).to_owned()
}
