//! What a task has come to so far, in a line and in a paragraph (P1). From what it gave and what was learnt from it: no
//! model is asked.

use std::collections::BTreeMap;

use serde::Serialize;

use super::progress::Detail;
use crate::flow::{Plan, TaskResult, TaskStatus};
use crate::ids::TaskIndex;
use crate::run::RunState;
use crate::text::one_line;

/// Longest line, in characters.
const SHORT: usize = 160;
/// Longest paragraph, in characters.
const LONG: usize = 1_200;
/// Most findings that a paragraph tells of.
const MOST_FINDINGS: usize = 5;

/// What a task has come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// One line.
    pub short: String,
    /// One paragraph.
    pub long: String,
}

/// The summaries of all tasks that have come to something.
#[must_use]
pub fn all(state: &RunState, detail: Detail) -> BTreeMap<TaskIndex, Summary> {
    let tasks = state.plan.iter().flat_map(|plan| plan.tasks.keys());
    tasks.filter_map(|index| Some((index.clone(), of(state, index, detail)?))).collect()
}

/// The summary of a task; of one that stands for others, from theirs.
#[must_use]
pub fn of(state: &RunState, index: &TaskIndex, detail: Detail) -> Option<Summary> {
    let plan = state.plan.as_ref()?;
    if plan.is_leaf(index) { of_leaf(state, index, detail) } else { of_parent(state, plan, index, detail) }
}

fn of_parent(state: &RunState, plan: &Plan, index: &TaskIndex, detail: Detail) -> Option<Summary> {
    let leaves: Vec<&TaskIndex> = plan.leaves_of(index).collect();
    let told: Vec<String> = leaves
        .iter()
        .filter_map(|leaf| Some(format!("{leaf} {}", of_leaf(state, leaf, detail)?.short)))
        .collect();
    if told.is_empty() {
        return None;
    }
    let has_ended = |leaf: &&&TaskIndex| state.planned(leaf).is_some_and(|task| task.status.is_ended());
    let ended = leaves.iter().filter(has_ended).count();
    let text = format!("{ended} of {} ended: {}", leaves.len(), told.join(" "));
    Some(Summary { short: one_line(&text, SHORT), long: one_line(&text, LONG) })
}

fn of_leaf(state: &RunState, index: &TaskIndex, detail: Detail) -> Option<Summary> {
    let task = state.planned(index)?;
    let learnt = task.reflection.as_deref().map(|reflection| reflection.summary.as_str()).unwrap_or_default();
    let summary = match task.status {
        TaskStatus::Completed => {
            let result = task.outcome.as_ref()?.result()?;
            let short = if result.conclusion.trim().is_empty() { learnt } else { &result.conclusion };
            Summary { short: first_sentence(short), long: in_full(result, learnt) }
        }
        TaskStatus::Failed | TaskStatus::Aborted | TaskStatus::Skipped | TaskStatus::Blocked => {
            let why = task.reasons.last().map_or("", String::as_str);
            let all: Vec<&str> = task.reasons.iter().map(String::as_str).chain([learnt]).collect();
            Summary { short: first_sentence(why), long: one_line(&all.join(" "), LONG) }
        }
        TaskStatus::Created
        | TaskStatus::Waiting
        | TaskStatus::Queued
        | TaskStatus::Processing
        | TaskStatus::Split => {
            let seen = state.seen.get(&index.to_task_id());
            let seen = seen.filter(|seen| {
                detail == Detail::Seen && seen.generation == task.generation && seen.step > 0
            })?;
            let text = format!("in work, step {}: {}", seen.step, seen.doing);
            Summary { short: one_line(&text, SHORT), long: one_line(&text, LONG) }
        }
    };
    (!summary.short.is_empty()).then_some(summary)
}

fn in_full(result: &TaskResult, learnt: &str) -> String {
    let mut parts = vec![result.conclusion.trim().to_owned()];
    // A finding that stands in the conclusion says nothing more.
    let said = one_line(&result.conclusion, usize::MAX);
    let findings = result.findings.iter().filter(|found| !said.contains(&one_line(&found.text, usize::MAX)));
    parts.extend(findings.take(MOST_FINDINGS).map(|found| ended(&found.text)));
    parts.extend(result.unanswered.iter().map(|open| format!("Not answered: {}", ended(open))));
    parts.push(learnt.trim().to_owned());
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    one_line(&parts.join(" "), LONG)
}

fn ended(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

fn first_sentence(text: &str) -> String {
    let text = one_line(text, LONG);
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    one_line(&text[..end], SHORT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Finding;

    #[test]
    fn a_line_is_the_first_sentence_and_a_paragraph_is_all_of_it() {
        let finding = |text: &str| Finding { text: text.to_owned(), ..Finding::default() };
        let result = TaskResult {
            conclusion: "Five hops\nare the limit. More are refused.".to_owned(),
            findings: vec![finding("The chain travels along"), finding("It is checked!")],
            unanswered: vec!["who set it".to_owned()],
            ..TaskResult::default()
        };
        assert_eq!(first_sentence(&result.conclusion), "Five hops are the limit.");
        assert_eq!(
            in_full(&result, "It went well."),
            "Five hops are the limit. More are refused. The chain travels along. It is checked! Not answered: who set it. \
             It went well."
        );
        assert_eq!(first_sentence(&"word ".repeat(100)).chars().count(), SHORT + 1);
        assert_eq!(first_sentence(" \n "), "");
    }
}
