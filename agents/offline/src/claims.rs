//! Claims by rule: only where a sentence says of a clear subject that it is a number or a day, and nothing else.

use std::sync::LazyLock;

use muster_shared::conflict::{Subject, read_value};
use muster_shared::flow::{Citation, Claim, ClaimValue};
use regex::Regex;

use super::rank::ChosenStatement;
use super::researcher::confidence;
use super::statements::StatementKind;

/// Fewest and most telling words of a subject.
const WORDS: std::ops::RangeInclusive<usize> = 3..=10;

/// Words with which a subject points at something that stands elsewhere, or is true under a condition only.
const VAGUE: [&str; 17] = [
    "it", "this", "that", "these", "those", "there", "they", "which", "here", "such", "if", "when", "where",
    "example", "one", "not", "or",
];

static SAYS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(.{8,120}?) (?:is|was|are|were|amounts to|equals) (.{1,40}?)\.?$").ok());

/// What a statement claims, if it does so clearly.
pub(super) fn claim(chosen: &ChosenStatement) -> Option<Claim> {
    let statement = &chosen.statement;
    if statement.kind != StatementKind::Sentence || statement.parts > 1 {
        return None;
    }
    let said = SAYS.as_ref()?.captures(statement.text.trim())?;
    let value = read_value(said.get(2)?.as_str().trim_start_matches("set to "), "")?;
    if !matches!(value, ClaimValue::Number { .. } | ClaimValue::Date(_)) {
        return None;
    }
    let named = said.get(1)?.as_str();
    let is_vague = |word: &str| VAGUE.contains(&word.to_lowercase().as_str());
    if named.split(|letter: char| !letter.is_alphanumeric()).any(is_vague) {
        return None;
    }
    // The same words under another heading are about another thing.
    let heading = statement.heading.trim_end_matches([':', '.']);
    let subject = if heading.is_empty() { named.to_owned() } else { format!("{heading}: {named}") };
    let telling = Subject::of(&subject)?.key().split(' ').count();
    WORDS.contains(&telling).then(|| Claim {
        subject: subject.chars().take(Claim::MAX_TEXT).collect(),
        value,
        confidence: confidence(chosen.coverage),
        evidence: vec![Citation {
            path: statement.path.clone(),
            line: statement.line,
            quote: statement.quote.clone(),
        }],
        method: format!("it stands in {}:{}", statement.path, statement.line),
    })
}
