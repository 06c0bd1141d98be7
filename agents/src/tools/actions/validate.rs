//! `validate`: a rule-based check of an assertion. Arithmetic is computed, a quotation is searched for, and the numbers and dates of
//! any other assertion are compared with the nearest statements of results and documents. The verdict names its evidence.

use async_trait::async_trait;
use muster_shared::facts::{CitedText, contradictions};
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
             with `path`, `line` the words are searched for there; for anything else, its numbers and dates are compared with the \
             results of other tasks and the documents, and the nearest statements are shown.",
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

/// By the numbers and dates of the nearest statements. Shared words make a statement be about the same thing; what its
/// prose asserts is not judged.
fn against(assertion: &str, nearest: &[CitedStatement]) -> ValidationResult {
    let shown = |one: &CitedStatement| format!("{} [{}]", one.text, one.source);
    let mut evidence = Vec::new();
    for one in nearest.iter().filter(|one| one.share >= SAME_THING) {
        let cited = CitedText { text: &one.text, header: None, path: &one.source };
        let differing = contradictions(assertion, &[cited]);
        let values =
            differing.iter().map(|value| format!("{} is {} in: {}", value.stated, value.there, shown(one)));
        evidence.extend(values);
    }
    if !evidence.is_empty() {
        return ValidationResult { word: "contradicted", evidence };
    }
    let word = match nearest {
        [] => "not decided: nothing is known of it",
        [..] => "not decided: no number or date contradicts it, these statements come nearest",
    };
    ValidationResult { word, evidence: nearest.iter().map(shown).collect() }
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
    fn numbers_of_the_nearest_statements_contradict() {
        let one = |text: &str, share| CitedStatement { source: "a.md:1".into(), text: text.into(), share };
        for (assertion, nearest, is_contradicted) in [
            ("The depth limit is 20 levels.", one("The depth limit is 20 levels.", 1.0), false),
            ("The depth limit is 20 levels.", one("The depth limit is 30 levels.", 0.8), true),
            ("The depth limit is 20 levels.", one("The depth limit is 30 levels.", 0.3), false),
            ("The fee is 15 crowns a metre.", one("The fee is 1,5 crowns a metre.", 0.9), true),
            ("The fee is 1.5 crowns a metre.", one("The fee is 1,5 crowns a metre.", 0.9), false),
            ("It opened on 2026-03-05.", one("It opened on 5 March 2026.", 0.9), false),
            ("It opened on 2026-03-05.", one("It opened on 6 March 2026.", 0.9), true),
        ] {
            let word = against(assertion, &[nearest]).word;
            assert_eq!(word == "contradicted", is_contradicted, "{assertion}: {word}");
        }
        assert_eq!(against("x", &[]).word, "not decided: nothing is known of it");
    }
}
