//! What became of something that was asked of a run.

use muster_shared::ids::{RunId, TaskId};
use muster_shared::run::RunEvent;
use muster_shared::run::event::{
    ApprovalGiven, ContextWritten, FeedbackGiven, GoalEdited, GuardsAnswered, InformationShared,
    QuestionAnswered, RunResumed, TaskReopened, TaskSkipped,
};

use super::figures;

/// What was decided, one line for each change that matters to whoever asked.
pub(crate) fn told(run: RunId, events: &[RunEvent], at_work: usize) -> String {
    let mut lines: Vec<String> = events.iter().filter_map(|event| line(run, event)).collect();
    if at_work > 0 && events.iter().any(|event| matches!(event, RunEvent::RunPaused(_))) {
        lines.push(format!("{} still in hand", figures::plural(at_work as u64, "task")));
    }
    if lines.is_empty() {
        lines.push(format!("run {}: on record; nothing had to be changed", run.short()));
    }
    lines.join("\n")
}

fn line(run: RunId, event: &RunEvent) -> Option<String> {
    let short = run.short();
    let text = match event {
        RunEvent::RunAborted(_) => {
            format!("run {short} was stopped; `muster show {short}` shows how far it got")
        }
        RunEvent::RunPaused(_) => format!("run {short} is paused; `muster resume {short}` lets it go on"),
        RunEvent::RunResumed(RunResumed { deadline: None, .. }) => format!("run {short} goes on"),
        RunEvent::RunResumed(RunResumed { deadline: Some(at), .. }) => {
            format!("run {short} goes on, and has time until {} UTC", figures::date(*at))
        }
        RunEvent::TaskSkipped(TaskSkipped { task, .. }) => format!("{task} is left out"),
        RunEvent::TaskReopened(TaskReopened { task: TaskId::Leaf(task), .. }) => {
            format!("{task} is done again")
        }
        RunEvent::TaskReopened(TaskReopened { task, .. }) => format!("{task} is done again as well"),
        RunEvent::GoalEdited(GoalEdited { task: Some(task), .. }) => format!("{task} has a new goal"),
        RunEvent::GoalEdited(GoalEdited { task: None, .. }) => format!("run {short} has a new goal"),
        RunEvent::GuardsAnswered(GuardsAnswered { said, .. }) if !said.verdicts.is_empty() => {
            figures::one_line(&said.to_string(), 400)
        }
        RunEvent::PlanEdited(_) => "the plan stands as edited".to_owned(),
        RunEvent::QuestionAnswered(QuestionAnswered { reply }) => {
            format!("question {} is answered", reply.question)
        }
        RunEvent::ApprovalGiven(ApprovalGiven { id, by, more }) => format!(
            "question {id} is approved by {}; approvals that are missing: {more}",
            figures::one_line(by, 60)
        ),
        RunEvent::FeedbackGiven(FeedbackGiven { id, .. }) => {
            format!("feedback recorded; question {id} stays open: answer approve, reject or edit")
        }
        RunEvent::RefinementWanted(_) => "the plan will be refined for it".to_owned(),
        RunEvent::ContextWritten(ContextWritten { key, version, .. }) => {
            format!("context.{key} has version {version}")
        }
        RunEvent::InformationShared(InformationShared { to, .. }) => {
            format!("told to {}", figures::list(to))
        }
        // Whoever asked for something is told of nothing else.
        _ => return None,
    };
    Some(text)
}
