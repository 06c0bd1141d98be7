//! On what a result is judged by a model that is asked whether it holds: the lines that it cites as they stand, the
//! results that it builds on, and what was done. Pure.

use muster_shared::flow::{Action, LeafRef, Observation, Step, Work};
use muster_shared::plan::reference;
use muster_shared::text::{beginning, normalise_space};

use super::decide::{ChosenAction, StepContext};
use super::history::History;
use super::lookup::{CitedStatement, cited_statements};
use crate::prompts::fence;
use crate::tools::look::LOOK;

/// Most bytes of cited lines that are shown.
const LINES: usize = 16 * 1024;
/// Most of one result that is shown, in characters, and of all.
const RESULT: usize = 2_400;
const RESULTS: usize = 16_000;
/// Most steps that are shown, and most of what one of them gave, in characters.
const STEPS: usize = 16;
const SHOWN: usize = 1_200;

/// What stands in the documents where it cites them, what it builds on, and what it did.
pub(super) fn grounds(history: &History, chosen: Option<&ChosenAction>, case: &StepContext<'_>) -> String {
    let nonce = &case.offer.nonce;
    let mut parts = Vec::new();
    let statements = chosen.map(|chosen| cited_statements(history, chosen, case)).unwrap_or_default();
    if !statements.is_empty() {
        let text = fence(nonce, "cited", &within(&numbered(&statements), LINES));
        parts.push(format!("Its statements, each with the lines that it cites and their neighbors:\n{text}"));
    }
    let results = results_of(&case.offer.work);
    if !results.is_empty() {
        let told: Vec<String> = results.iter().map(|leaf| beginning(&told(leaf), RESULT)).collect();
        let text = fence(nonce, "results", &within(&told, RESULTS));
        parts.push(format!("The results that it builds on:\n{text}"));
    }
    let steps = history.steps();
    let last = &steps[steps.len().saturating_sub(STEPS)..];
    if !last.is_empty() {
        let done: Vec<String> =
            last.iter().map(|step| fence(nonce, &format!("step {}", step.number), &done(step))).collect();
        parts.push(format!("What it did:\n{}", done.join("\n")));
    }
    if parts.is_empty() {
        return "It cites nothing, builds on no result, and called no tool.".to_owned();
    }
    parts.join("\n\n")
}

/// The sheet of cited statements: each with its number and its lines.
pub(super) fn numbered(statements: &[CitedStatement]) -> Vec<String> {
    let item = |(number, CitedStatement { text, lines }): (usize, &CitedStatement)| {
        format!("Statement {number}: {text}\nLines of {number}: {}\n", lines.join("\n"))
    };
    (1..).zip(statements).map(item).collect()
}

/// A text without references to results that only the system resolves.
pub(super) fn plainly(text: &str, work: &Work) -> String {
    if !text.contains("{{") {
        return text.to_owned();
    }
    let results = results_of(work);
    reference::in_words(text, |index| {
        results.iter().find(|leaf| leaf.index == *index).map(|leaf| leaf.name.clone())
    })
}

fn results_of(work: &Work) -> &[LeafRef] {
    match work {
        Work::Execute { inputs, .. } => inputs,
        Work::Write { results, .. } => results,
        _ => &[],
    }
}

fn told(leaf: &LeafRef) -> String {
    let mut text = format!("{} {}: {}", leaf.index, leaf.name, leaf.result.conclusion);
    for finding in &leaf.result.findings {
        let places =
            finding.citations.iter().map(|at| format!(" [{}:{}]", at.path, at.line)).collect::<String>();
        text.push_str(&format!("\n- {}{places}", finding.text));
    }
    if !leaf.result.body.is_empty() {
        text.push_str(&format!("\n{}", leaf.result.body));
    }
    text
}

/// A step in a line or two. What documents showed stands with the cited lines.
fn done(step: &Step) -> String {
    step.acts().map(|(action, seen)| done_by(action, seen)).collect::<Vec<_>>().join("\n")
}

fn done_by(act: &Action, seen: Option<&Observation>) -> String {
    let action = beginning(&format!("{} {}", act.name, act.arguments), SHOWN);
    let Some(seen) = seen else { return action };
    // What a model saw stands in no line.
    if act.name.starts_with("corpus") && act.name != LOOK {
        let first = seen.content.lines().next().unwrap_or_default();
        return format!("{action}\nshowed {}", beginning(first, 200));
    }
    format!("{action}\ngave: {}", beginning(&normalise_space(&seen.content), SHOWN))
}

/// As many of these as there is room for, one to a line.
fn within(all: &[String], most: usize) -> String {
    let (mut text, mut left) = (String::new(), 0);
    for one in all {
        if text.len() + one.len() > most {
            left += 1;
            continue;
        }
        text.push_str(one);
        text.push('\n');
    }
    if left > 0 {
        text.push_str(&format!("(and {left} more)\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use muster_shared::ids::Role;

    use super::*;
    use crate::testing::execute;

    #[test]
    fn references_are_put_in_words() {
        let text = "Compare {{Iteration limits.result}} with {{2.result}}";
        let plain = plainly(text, &execute(Role::Worker));
        assert_eq!(plain, "Compare “Iteration limits” with task 2");
        assert_eq!(plainly("no reference", &execute(Role::Worker)), "no reference");
    }
}
