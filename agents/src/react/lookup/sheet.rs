//! Statements next to the lines that they cite: the sheet that a model compares once per report. Pure.

use std::collections::BTreeMap;

use muster_shared::flow::Standing;

use super::{Judged, Looked, Spot, Verdict, look};
use crate::react::decide::{ChosenAction, StepContext};
use crate::react::history::History;

/// Most statements of one sheet.
const MOST_STATEMENTS: usize = 60;

/// A statement with its cited lines and their neighbors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::react) struct CitedStatement {
    /// The statement, as the text contains it.
    pub(in crate::react) text: String,
    /// The lines: path, then number and text of each; or the fault of the place.
    pub(in crate::react) lines: Vec<String>,
}

/// What `chosen` submits, as statements with their lines. Empty before the look-up.
pub(in crate::react) fn cited_statements(
    history: &History,
    chosen: &ChosenAction,
    case: &StepContext<'_>,
) -> Vec<CitedStatement> {
    let Ok(submission) = case.rules.submission(case.offer, &chosen.action.arguments) else {
        return Vec::new();
    };
    match look(history, &chosen.notes, &submission, case.offer) {
        Looked::Known(judged) => judged.statements(),
        Looked::ToAsk(_) => Vec::new(),
    }
}

impl Judged {
    /// Every cited statement, in order, each once.
    pub(in crate::react) fn statements(&self) -> Vec<CitedStatement> {
        let mut groups: BTreeMap<u32, CitedStatement> = BTreeMap::new();
        for (cite, verdict) in &self.cites {
            let text = bare(&cite.place.statement);
            if text.is_empty() || matches!(cite.spot, Spot::Claim(..)) {
                continue;
            }
            let path = cite.place.path.as_str();
            let lines = match verdict {
                Verdict::Stands(Standing { path: whole, text, .. }) if !text.is_empty() => {
                    format!("{}\n{text}", whole.as_deref().unwrap_or(path))
                }
                Verdict::False { why } => format!("{path}: {why}"),
                Verdict::Stands(_) | Verdict::Seen | Verdict::Unknown => continue,
            };
            let statement = groups.entry(cite.place.group);
            let statement =
                statement.or_insert_with(|| CitedStatement { text: text.to_owned(), lines: Vec::new() });
            if !statement.lines.contains(&lines) {
                statement.lines.push(lines);
            }
        }
        let mut all: Vec<CitedStatement> = Vec::new();
        for statement in groups.into_values() {
            if !all.contains(&statement) {
                all.push(statement);
            }
        }
        all.truncate(MOST_STATEMENTS);
        all
    }
}

/// A statement without the marks of a list and the bracket of its citation.
pub(super) fn bare(statement: &str) -> &str {
    let start =
        statement.trim().trim_start_matches(['-', '*', '+', '>', '|', ' ', ']', ')', ',', ';', '.', '`']);
    start.trim_end_matches([' ', '(', '[', '`', ',', ';', '|', '\n'])
}
