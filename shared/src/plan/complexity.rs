//! Whether a goal is planned at once (R10): by typed signals only, list items and the number of documents.

use crate::flow::{Goal, Plan, PlanTask};
use crate::ids::{Role, TaskIndex};

/// List items of a goal from which each is worth a task.
const MANY_ITEMS: usize = 3;

/// List items of a goal over many documents from which each is worth a task.
const SEVERAL_ITEMS: usize = 2;

/// Documents that are more than one agent's work.
const MANY_DOCUMENTS: u64 = 8;

/// Returns the reason why a goal is planned at once. Usually none: a plan costs calls, and the agent that starts with the
/// goal can request one.
#[must_use]
pub fn separable(goal: &Goal) -> Option<String> {
    let items = goal.text.lines().filter(|line| is_item(line)).count();
    let documents = goal.corpus.as_ref().map_or(0, |corpus| corpus.files);
    if items >= MANY_ITEMS {
        return Some(format!("it lists {items} items"));
    }
    (items >= SEVERAL_ITEMS && documents >= MANY_DOCUMENTS)
        .then(|| format!("it lists {items} items for {documents} documents"))
}

/// Whether a line is one of a list: `- this`, `2. that`, `c) another`.
fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    if line.starts_with(['-', '*', '•']) {
        return line.chars().nth(1).is_some_and(char::is_whitespace);
    }
    let Some((mark, rest)) = line.split_once(['.', ')']) else { return false };
    let is_mark = mark.len() <= 2 && !mark.is_empty() && mark.chars().all(char::is_alphanumeric);
    let counts = mark.chars().all(|letter| letter.is_ascii_digit()) || mark.chars().count() == 1;
    is_mark && counts && rest.starts_with(char::is_whitespace)
}

/// The plan of a goal that is done by one worker: a single task with the goal as it was asked.
#[must_use]
pub fn single_task(goal: &Goal, role: Role) -> Plan {
    let text = goal.text.trim();
    let name = crate::text::within_bytes(&crate::text::normalise_space(text), 60);
    let task = PlanTask {
        expected_output: "The answer to what was asked.".to_owned(),
        ..PlanTask::new(name, crate::text::within_bytes(text, super::check::MAX_TEXT_BYTES), role)
    };
    Plan { goal: text.to_owned(), tasks: [(TaskIndex::top(1), task)].into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goal_is_planned_at_once_only_for_listed_items() {
        let with = |text: &str, files| {
            let corpus = crate::flow::CorpusRef { id: "c".into(), files, bytes: 1, outline: String::new() };
            Goal { corpus: Some(corpus), ..Goal::new(text) }
        };
        let two = "Two things:\n- one\n- two";
        for (goal, planned) in [
            (Goal::new("What is a run? What is a task? Compare all of these in every detail."), false),
            (Goal::new("word ".repeat(500)), false),
            (Goal::new("Ask the auditor about each of the documents."), false),
            (with("Summarize each of these documents.", 5_000), false),
            (with(two, 7), false),
            (with(two, 8), true),
            (Goal::new("Do this:\n- one\n 2. two\n c) three\nthree.times no item"), true),
        ] {
            assert_eq!(separable(&goal).is_some(), planned, "{}", goal.text);
        }
    }

    #[test]
    fn the_single_task_fits_the_limits_of_plans() {
        let limits = crate::flow::RunLimits::default();
        for text in ["What is a run?".to_owned(), "word ".repeat(3_000), "{{1.result}} {{".to_owned()] {
            let plan = single_task(&Goal::new(text), Role::Worker);
            let problems = super::super::check_plan(&plan, &limits, &[Role::Worker]);
            assert!(plan.tasks.len() == 1 && problems.len() <= 1, "{problems:?}");
        }
    }
}
