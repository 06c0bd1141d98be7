//! The report of a run whose plan is one task: what that gave, put together by rule. There is nothing to bring together, so
//! that no writer is asked.

use muster_shared::flow::{Finding, Outcome, Report, TaskResult, Usage};
use muster_shared::ids::Role;
use muster_shared::run::RunState;
use muster_shared::run::event::WritingBegan;
use muster_shared::text::{first_line, normalise_space};

use super::builder::DecisionBuilder;
use super::{guards, report, survey};

/// Longest title, in characters.
const TITLE: usize = 100;

/// Goes over to the report: it is written by a writer, or delivered at once where one task gave it all.
pub(super) fn write(decision: &mut DecisionBuilder<'_>) {
    let made = decision.open().filter(|run| !guards::was_refused(run)).and_then(made);
    if made.as_ref().is_some_and(|made| guards::hold_report(decision, made)) {
        return;
    }
    let from = made.as_ref().and_then(|_| decision.open().and_then(RunState::only_task).cloned());
    decision.emit(WritingBegan { from });
    if let Some(made) = made {
        report::deliver(decision, made, None);
    }
}

/// What the only task gave, as a report.
fn made(run: &RunState) -> Option<Report> {
    let only = run.planned(run.only_task()?)?;
    let (outcome, result) = (only.outcome.as_deref()?, survey::result(only)?);
    Some(Report {
        title: first_line(run.goal.text.trim(), TITLE),
        body: body(
            result,
            run.plan_task(run.only_task()?).is_some_and(|task| matches!(task.role, Role::Specialist(_))),
        ),
        unanswered: result.unanswered.clone(),
        offline: is_offline(outcome),
        ..Report::default()
    })
}

/// Whether it came about without a call to a model.
pub(super) const fn is_offline(outcome: &Outcome) -> bool {
    let Usage { model_calls, wasted_calls, reused_calls, .. } = outcome.usage;
    model_calls == 0 && wasted_calls == 0 && reused_calls == 0
}

/// The document that was asked for, else the conclusion and what it rests on; then what stays open. A specialist's conclusion
/// comes first in any case.
fn body(result: &TaskResult, is_of_specialist: bool) -> String {
    let mut parts: Vec<String> = Vec::new();
    if is_of_specialist && !result.body.trim().is_empty() && !result.body.contains(result.conclusion.trim()) {
        parts.push(result.conclusion.trim().to_owned());
    }
    if result.body.trim().is_empty() {
        parts.push(result.conclusion.trim().to_owned());
        let told = |finding: &&Finding| {
            !finding.citations.is_empty() || !result.conclusion.contains(finding.text.trim())
        };
        parts.push(listed(result.findings.iter().filter(told).map(in_words)));
    } else {
        parts.push(result.body.trim().to_owned());
    }
    if !result.unanswered.is_empty() {
        let open = listed(result.unanswered.iter().map(|open| open.trim().to_owned()));
        parts.push(format!("## Not answered\n\n{open}"));
    }
    parts.extend(result.shown_data().map(|shown| format!("## Data\n\n{shown}")));
    parts.retain(|part| !part.is_empty());
    format!("{}\n", parts.join("\n\n"))
}

fn listed(lines: impl Iterator<Item = String>) -> String {
    lines.filter(|line| !line.is_empty()).map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
}

/// `It is so (notes.md:12)`.
fn in_words(finding: &Finding) -> String {
    normalise_space(&finding.text) + &finding.places()
}
