//! References in the goal of a task: to results of other tasks, `{{1-2.result}}`, `{{1-2.findings}}`, and to the shared
//! context, `{{context.key}}` (P7).

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::flow::context::is_key;
use crate::flow::{ContextEntry, Finding, LeafRef, Plan, TaskResult};
use crate::ids::TaskIndex;

/// A reference to what a task gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The task.
    pub task: TaskIndex,
    /// Which part of what it gave.
    pub field: TaskField,
}

/// A part of what a task gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum TaskField {
    /// Its conclusion.
    Result,
    /// Its findings, one line each, with where they stand.
    Findings,
}

impl TaskField {
    pub(super) fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
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
    /// No key of the shared context.
    #[error(
        "{text} is no reference: write {{{{context.KEY}}}}, where KEY is a letter and then letters, digits, -, _ and ."
    )]
    MalformedContext {
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
        let field = TaskField::parse(&found["field"]).ok_or_else(malformed);
        let task = found["task"].parse::<TaskIndex>().map_err(|_| malformed());
        let reference = task.and_then(|task| field.map(|field| Reference { task, field }));
        (whole.range(), reference)
    })
}

/// All references to the shared context in a text, `{{context.KEY}}`, with where they stand.
pub fn find_context(text: &str) -> impl Iterator<Item = (Range<usize>, Result<&str, ReferenceError>)> {
    CONTEXT.captures_iter(text).map(|found| {
        let (whole, rest) = (found.get_match(), found.name("rest").map_or("", |rest| rest.as_str()));
        let key = rest.trim().strip_prefix('.').map(str::trim).filter(|key| is_key(key));
        let text = || whole.as_str().to_owned();
        (whole.range(), key.ok_or_else(|| ReferenceError::MalformedContext { text: text() }))
    })
}

/// The text with placeholders by a name, `{{Iteration limits.result}}`, replaced where something is given for the name, the
/// field and the whole. References by index, those to the shared context, and code in backticks stay.
pub fn with_names(text: &str, mut by: impl FnMut(&str, Option<&str>, &str) -> Option<String>) -> String {
    let (mut new, mut from) = (String::with_capacity(text.len()), 0);
    for found in NAMED.captures_iter(text) {
        let whole = found.get_match();
        let name = found["name"].trim();
        let field = found.name("field").map(|field| field.as_str());
        let is_code = text[..whole.start()].ends_with('`') && field.and_then(TaskField::parse).is_none();
        let is_other = is_code || REFERENCE.is_match(whole.as_str()) || CONTEXT.is_match(whole.as_str());
        if let Some(words) = Some(name).filter(|_| !is_other).and_then(|name| by(name, field, whole.as_str()))
        {
            new.push_str(&text[from..whole.start()]);
            new.push_str(&words);
            from = whole.end();
        }
    }
    new.push_str(&text[from..]);
    new
}

/// The text with every reference in words, for people: a task by its name, a value of the shared context by its key. A
/// task of which no name is known is told by its index.
pub fn in_words(text: &str, name_of: impl Fn(&TaskIndex) -> Option<String>) -> String {
    let of_task =
        |task: &TaskIndex| name_of(task).map_or_else(|| format!("task {task}"), |name| quoted(&name));
    let text = with_names(text, |name, field, _| field.map(|_| quoted(name)));
    let tasks = find(&text).map(|(range, found)| {
        let words = found.map_or_else(|_| quoted(&text[range.clone()]), |found| of_task(&found.task));
        (range, words)
    });
    let values = find_context(&text).map(|(range, found)| {
        let words = quoted(found.unwrap_or(&text[range.clone()]));
        (range, words)
    });
    with_parts(&text, tasks.chain(values).collect())
}

/// Words that stand for what cannot be referred to.
#[must_use]
pub(super) fn quoted(name: &str) -> String {
    format!("“{}”", name.replace(['{', '}'], ""))
}

/// The text with these parts of it replaced.
fn with_parts(text: &str, mut parts: Vec<(Range<usize>, String)>) -> String {
    parts.sort_by_key(|(range, _)| range.start);
    let (mut whole, mut from) = (String::with_capacity(text.len()), 0);
    for (range, part) in parts {
        whole.push_str(&text[from..range.start]);
        whole.push_str(&part);
        from = range.end;
    }
    whole.push_str(&text[from..]);
    whole
}

/// The text with malformed references to the shared context written so that they are none.
#[must_use]
pub fn without_malformed_context(text: &str) -> String {
    let (mut clean, mut from) = (String::with_capacity(text.len()), 0);
    for (range, _) in find_context(text).filter(|(_, found)| found.is_err()) {
        clean.push_str(&text[from..range.start]);
        clean.push_str(text[range.clone()].trim_matches(['{', '}']).trim());
        from = range.end;
    }
    clean.push_str(&text[from..]);
    clean
}

/// The text with every reference replaced by what it stands for. What results and values say is not searched again.
/// A reference to a parent stands for all leaves below it; a task that gave nothing is named as such, and so is a value
/// that nobody has written: whoever does the task is told of it once it is.
///
/// # Errors
/// When a reference is malformed or names a task that is not in the plan.
pub fn resolve(
    text: &str,
    plan: &Plan,
    results: &[LeafRef],
    context: &BTreeMap<String, ContextEntry>,
) -> Result<String, ReferenceError> {
    let mut parts: Vec<(Range<usize>, String)> = Vec::new();
    for (range, reference) in find(text) {
        let reference = reference?;
        if !plan.tasks.contains_key(&reference.task) {
            return Err(ReferenceError::UnknownTask { text: text[range].to_owned() });
        }
        parts.push((range, content(&reference, plan, results)));
    }
    for (range, key) in find_context(text) {
        let key = key?;
        let missing = || format!("(context.{key} is not there yet: nobody has written it)");
        parts.push((range, context.get(key).map_or_else(missing, ContextEntry::text)));
    }
    Ok(with_parts(text, parts))
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

fn part(result: &TaskResult, field: TaskField) -> String {
    match field {
        TaskField::Result => result.conclusion.clone(),
        TaskField::Findings => {
            let lines: Vec<String> = result.findings.iter().map(finding_line).collect();
            lines.join("\n")
        }
    }
}

fn finding_line(finding: &Finding) -> String {
    let places: Vec<String> = finding.citations.iter().map(ToString::to_string).collect();
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

#[expect(clippy::expect_used, reason = "a constant pattern, used by tests")]
static CONTEXT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{\{\s*context\b(?<rest>[^{}]*)\}\}").expect("a pattern"));

#[expect(clippy::expect_used, reason = "a constant pattern, used by tests")]
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\{\{\s*(?<name>[^{}]*?)\s*(?:\.\s*(?<field>[A-Za-z_]+)\s*)?\}\}").expect("a pattern")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_told_in_words() {
        let name_of = |task: &TaskIndex| (task.to_string() == "1-2").then(|| "First look".to_owned());
        for (text, wanted) in [
            ("Compare {{1-2.result}} with {{ 3.findings }}.", "Compare “First look” with task 3."),
            ("Within {{context.limit}} hops", "Within “limit” hops"),
            ("After {{Second look.result}}", "After “Second look”"),
            ("Look at {{1-2.other}}", "Look at “1-2.other”"),
            ("{{1-2.result}}", "“First look”"),
            ("nothing to refer to {{here}}", "nothing to refer to {{here}}"),
        ] {
            assert_eq!(in_words(text, name_of), wanted);
        }
    }
}
