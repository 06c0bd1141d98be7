//! References to results of other tasks in the goal of a task: `{{1-2.result}}`, `{{1-2.findings}}` (P7).

use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::flow::{Finding, LeafRef, Plan, TaskResult};
use crate::ids::TaskIndex;

/// A reference to what a task gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The task.
    pub task: TaskIndex,
    /// Which part of what it gave.
    pub field: Field,
}

/// A part of what a task gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// Its conclusion.
    Result,
    /// Its findings, one line each, with where they stand.
    Findings,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Result => "result",
            Self::Findings => "findings",
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{{}.{}}}}}", self.task, self.field)
    }
}

/// Why a reference means nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ReferenceError {
    /// Neither a result nor findings of a task index.
    #[error(
        "{text} is no reference: write {{{{1-2.result}}}} or {{{{1-2.findings}}}} with the index of a task"
    )]
    Malformed {
        /// What stands there.
        text: String,
    },
    /// A task that is not in the plan.
    #[error("{text} refers to a task that is not in the plan")]
    UnknownTask {
        /// What stands there.
        text: String,
    },
}

/// All references in a text, with where they stand. Other text in double braces is no reference.
pub fn find(text: &str) -> impl Iterator<Item = (Range<usize>, Result<Reference, ReferenceError>)> {
    REFERENCE.captures_iter(text).map(|found| {
        let whole = found.get_match();
        let malformed = || ReferenceError::Malformed { text: whole.as_str().to_owned() };
        let field = match &found["field"] {
            "result" => Ok(Field::Result),
            "findings" => Ok(Field::Findings),
            _ => Err(malformed()),
        };
        let task = found["task"].parse::<TaskIndex>().map_err(|_| malformed());
        let reference = task.and_then(|task| field.map(|field| Reference { task, field }));
        (whole.range(), reference)
    })
}

/// The text with every reference replaced by what it stands for. What results say is not searched again.
/// A reference to a parent stands for all leaves below it; a task that gave nothing is named as such.
///
/// # Errors
/// When a reference is malformed or names a task that is not in the plan.
pub fn resolve(text: &str, plan: &Plan, results: &[LeafRef]) -> Result<String, ReferenceError> {
    let (mut resolved, mut from) = (String::with_capacity(text.len()), 0);
    for (range, reference) in find(text) {
        let reference = reference?;
        if !plan.tasks.contains_key(&reference.task) {
            return Err(ReferenceError::UnknownTask { text: text[range].to_owned() });
        }
        resolved.push_str(&text[from..range.start]);
        resolved.push_str(&content(&reference, plan, results));
        from = range.end;
    }
    resolved.push_str(&text[from..]);
    Ok(resolved)
}

fn content(reference: &Reference, plan: &Plan, results: &[LeafRef]) -> String {
    let of = |index: &TaskIndex| results.iter().find(|result| result.index == *index);
    let parts: Vec<String> = plan
        .leaves_of(&reference.task)
        .map(|leaf| match of(leaf) {
            Some(found) => part(&found.result, reference.field),
            None => format!("(task {leaf} gave no result)"),
        })
        .collect();
    parts.join("\n")
}

fn part(result: &TaskResult, field: Field) -> String {
    match field {
        Field::Result => result.conclusion.clone(),
        Field::Findings => {
            let lines: Vec<String> = result.findings.iter().map(finding_line).collect();
            lines.join("\n")
        }
    }
}

fn finding_line(finding: &Finding) -> String {
    let places: Vec<String> = finding.citations.iter().map(|at| format!("{}:{}", at.path, at.line)).collect();
    if places.is_empty() {
        format!("- {}", finding.text)
    } else {
        format!("- {} ({})", finding.text, places.join(", "))
    }
}

#[expect(clippy::expect_used, reason = "a constant pattern, used by tests")]
static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\{\{\s*(?<task>[0-9][0-9a-z~-]*)\s*\.\s*(?<field>[A-Za-z_]+)\s*\}\}").expect("a pattern")
});
