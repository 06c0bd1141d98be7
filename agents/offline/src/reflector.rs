//! Reflecting by rule: what was done, which questions found no answer, how the tools did.

use muster_shared::flow::{
    Ending, ObservationStatus, PlanTask, Product, Reflection, SearchQuery, StepDigest, TaskResult, ToolNote,
};
use muster_shared::ids::Role;

use super::observed::{CALCULATOR, READ, SEARCH};
use super::planner::is_check;
use super::researcher::{listed, wider_words};
use super::subquestions::asked_in;
use super::text::{counted, shorten};
use super::{OfflineMove, lessons, thought};

/// Confidence below which the best finding is weak, in percent.
pub(super) const WEAK: u8 = 55;

pub(super) fn next(
    task: &PlanTask,
    ending: Ending,
    reason: &str,
    result: Option<&TaskResult>,
    steps: &[StepDigest],
) -> OfflineMove {
    let searched = task.role == Role::Researcher;
    let asked = asked_in(task);
    let uncovered = match result {
        Some(result) => uncovered(result),
        None if searched => vec![asked.question.clone()],
        None => Vec::new(),
    };
    let refine = if searched && ending.is_success() { refine(&asked, result, &uncovered) } else { None };
    let reflection = Reflection {
        summary: summary(task, ending, reason, result, steps),
        on_plan: on_plan(task, &asked, result, refine.as_deref()),
        on_tools: on_tools(steps),
        uncovered,
        refine,
        operations: Vec::new(),
    };
    OfflineMove::submit(
        thought(
            format!("Compare what “{}” was to cover with what it gave.", task.name),
            "A question without a finding stays open.",
            "Submit the reflection.",
        ),
        &Product::Reflection(reflection),
    )
}

fn uncovered(result: &TaskResult) -> Vec<String> {
    result.unanswered.iter().map(|text| shorten(text, 300)).collect()
}

/// Why another search could help: something is open, and was not searched for twice.
fn refine(asked: &SearchQuery, result: Option<&TaskResult>, uncovered: &[String]) -> Option<String> {
    let best = result.into_iter().flat_map(|result| &result.findings).map(|finding| finding.confidence).max();
    let is_weak = best.is_none_or(|best| best < WEAK);
    if asked.widened || !is_weak || uncovered.is_empty() {
        return None;
    }
    let state = if best.is_none() { "no finding" } else { "only weak findings" };
    let how = match wider_words(&asked.question).as_slice() {
        [] => "a search for each of its words alone".to_owned(),
        words => format!("a search with {}", listed(words)),
    };
    Some(format!("{state} for “{}”; {how} may find more", shorten(&asked.question, 160)))
}

fn summary(
    task: &PlanTask,
    ending: Ending,
    reason: &str,
    result: Option<&TaskResult>,
    steps: &[StepDigest],
) -> String {
    let did = counted(steps.len(), "step", "steps");
    let Some(result) = result.filter(|_| ending.is_success()) else {
        let why = if reason.is_empty() { "no reason given" } else { reason };
        return format!("“{}” gave nothing after {did}: {why}.", task.name);
    };
    if is_check(task.query.as_ref()) || result.findings.is_empty() {
        return format!("“{}” took {did}. {}", task.name, shorten(&result.conclusion, 300));
    }
    let best = result.findings.iter().map(|finding| finding.confidence).max().unwrap_or_default();
    format!(
        "“{}” took {did} and gave {}, the surest at {best} %; {}.",
        task.name,
        counted(result.findings.len(), "finding", "findings"),
        match result.unanswered.len() {
            0 => "nothing stayed open".to_owned(),
            open => format!("{} stayed open", counted(open, "point", "points")),
        }
    )
}

fn on_plan(
    task: &PlanTask,
    asked: &SearchQuery,
    result: Option<&TaskResult>,
    refine: Option<&str>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if task.role == Role::Researcher {
        notes.extend(lessons::of_search(asked, result, refine.is_some()));
    }
    let dropped = result.into_iter().flat_map(|result| &result.milestones);
    let dropped = dropped.filter(|milestone| milestone.starts_with(super::worker::DROPPED)).count();
    if dropped > 0 {
        notes.push(format!("{} did not stand", counted(dropped, "citation", "citations")));
    }
    notes
}

fn on_tools(steps: &[StepDigest]) -> Vec<ToolNote> {
    [SEARCH, READ, CALCULATOR]
        .into_iter()
        .filter_map(|tool| {
            let of_tool: Vec<_> =
                steps.iter().filter(|step| step.action.replace('_', ".").starts_with(tool)).collect();
            let failed = of_tool
                .iter()
                .filter(|step| step.status.is_some_and(|status| status != ObservationStatus::Success))
                .count();
            let note = match (of_tool.len(), failed) {
                (0, _) => return None,
                (all, 0) => format!("{}, none failed", counted(all, "call", "calls")),
                (all, failed) => format!("{failed} of {} failed", counted(all, "call", "calls")),
            };
            Some(ToolNote { tool: tool.to_owned(), note })
        })
        .collect()
}
