//! `validate`: an assertion against what is known, by rule. Arithmetic is computed, a quotation is looked up, and anything
//! else is held against the nearest statements of results and documents. The verdict names its evidence.

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::known::{CitedStatement, look};
use super::text_of;
use crate::tools::calculator::calculate;
use crate::tools::spec::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};

/// Statements that are held against an assertion.
const NEAREST: usize = 5;
/// From which share of its words on a statement is about the same thing.
const SAME_THING: f64 = 0.75;
/// Lines in which a quotation may go on.
const LINES_OF_A_QUOTE: u64 = 14;

pub(super) struct Validate;

#[async_trait]
impl Tool for Validate {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            "validate",
            "Checks one assertion against data, and gives a verdict with its evidence: arithmetic (`12 * 3 = 36`) is computed; \
             with `path`, `line` the words are looked up there; anything else is held against the results of other tasks and \
             the documents.",
            json!({
                "assertion": {"type": "string", "minLength": 1, "maxLength": 2000},
                "path": {"type": "string", "maxLength": 1000, "description": "the document that is said to hold these words"},
                "line": {"type": "integer", "minimum": 1}
            }),
            &["assertion"],
        )
    }

    async fn call(&self, ctx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let (assertion, path) = (text_of(&arguments, "assertion"), text_of(&arguments, "path"));
        let verdict = match (computed(assertion), path.is_empty()) {
            (Some(verdict), _) => verdict,
            (None, false) => quoted(ctx, assertion, path, arguments["line"].as_u64().unwrap_or(1)).await?,
            (None, true) => against(assertion, &look(ctx, assertion, NEAREST).await?),
        };
        let ValidationResult { word, evidence } = verdict;
        let data = json!({"verdict": word, "evidence": evidence});
        let mut text = format!("Verdict: {word}.");
        evidence.iter().for_each(|line| text.push_str(&format!("\n- {line}")));
        Ok(ToolOutput::text(text).with_data(data))
    }
}

struct ValidationResult {
    word: &'static str,
    evidence: Vec<String>,
}

/// An equation of two expressions without letters.
fn computed(assertion: &str) -> Option<ValidationResult> {
    let (left, right) = assertion.trim_end_matches('.').split_once('=')?;
    let (left, right) = (left.trim_end_matches('=').trim(), right.trim_start_matches('=').trim());
    let (one, other) = (calculate(left).ok()?, calculate(right).ok()?);
    let evidence = vec![format!("{left} is {}", one.value), format!("{right} is {}", other.value)];
    let word = match (one.value == other.value, one.approximate || other.approximate) {
        (true, false) => "holds",
        (true, true) => "holds, as far as it was computed",
        (false, _) => "does not hold",
    };
    Some(ValidationResult { word, evidence })
}

async fn quoted(
    ctx: &ToolContext,
    words: &str,
    path: &str,
    line: u64,
) -> Result<ValidationResult, ToolFailure> {
    let corpus = ctx.corpus.as_ref().ok_or_else(|| {
        ToolFailure::NotFound(
            "no documents were given with this goal: leave out `path` and `line`".to_owned(),
        )
    })?;
    let lines = corpus.read(path, line, line.saturating_add(LINES_OF_A_QUOTE)).await?;
    let bare = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let stands = bare(&lines.lines.join(" ")).contains(&bare(words));
    let first = lines.lines.first().cloned().unwrap_or_default();
    let word = if stands { "holds" } else { "does not hold" };
    Ok(ValidationResult { word, evidence: vec![format!("{path}:{line} begins: {first}")] })
}

/// By the nearest statements. Shared words make a statement be about the same thing; then its numbers, and whether it says
/// yes or no, decide.
fn against(assertion: &str, nearest: &[CitedStatement]) -> ValidationResult {
    let same: Vec<&CitedStatement> =
        nearest.iter().filter(|statement| statement.share >= SAME_THING).collect();
    let agrees = |statement: &&&CitedStatement| {
        numbers(assertion).is_subset(&numbers(&statement.text))
            && denies(assertion) == denies(&statement.text)
    };
    let said = |statements: &[&CitedStatement]| -> Vec<String> {
        statements.iter().map(|one| format!("{} [{}]", one.text, one.source)).collect()
    };
    let (agreeing, differing): (Vec<&CitedStatement>, Vec<&CitedStatement>) =
        same.iter().copied().partition(|one| agrees(&one));
    match (agreeing.is_empty(), differing.is_empty()) {
        (false, true) => ValidationResult { word: "supported", evidence: said(&agreeing) },
        (false, false) => ValidationResult {
            word: "disputed: sources differ",
            evidence: said(&agreeing).into_iter().chain(said(&differing)).collect(),
        },
        (true, false) => ValidationResult { word: "contradicted", evidence: said(&differing) },
        (true, true) if nearest.is_empty() => {
            ValidationResult { word: "not decided: nothing is known of it", evidence: Vec::new() }
        }
        (true, true) => ValidationResult {
            word: "not decided: nothing says it, this comes nearest",
            evidence: said(&nearest.iter().collect::<Vec<_>>()),
        },
    }
}

fn numbers(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','));
    let words = words.map(|word| word.trim_matches(['.', ',']).replace(',', ""));
    words.filter(|word| !word.is_empty()).collect()
}

fn denies(text: &str) -> bool {
    let text = format!(" {} ", text.to_lowercase().replace('’', "'"));
    [" not ", " no ", " never ", " none ", " cannot ", "n't "].iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equation_is_computed() {
        for (assertion, word) in [
            ("12 * 3 = 36", Some("holds")),
            ("12 * 3 == 37.", Some("does not hold")),
            ("the limit = 3", None),
            ("no equation", None),
        ] {
            assert_eq!(computed(assertion).map(|verdict| verdict.word), word, "{assertion}");
        }
    }

    #[test]
    fn the_nearest_statements_decide() {
        let one = |text: &str, share| CitedStatement { source: "a.md:1".into(), text: text.into(), share };
        let table = [
            (vec![one("The depth limit is 20 levels.", 1.0)], "supported"),
            (vec![one("The depth limit is 30 levels.", 0.8)], "contradicted"),
            (vec![one("The depth limit is not 20 levels.", 1.0)], "contradicted"),
            (
                vec![one("The depth limit is 20 levels.", 1.0), one("The depth limit is 30 levels.", 0.8)],
                "disputed: sources differ",
            ),
            (vec![one("Depth matters.", 0.3)], "not decided: nothing says it, this comes nearest"),
            (Vec::new(), "not decided: nothing is known of it"),
        ];
        for (nearest, word) in table {
            assert_eq!(against("The depth limit is 20 levels.", &nearest).word, word);
        }
    }
}
