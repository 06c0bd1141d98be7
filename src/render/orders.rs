//! What became of something that was asked of a run.

use muster_shared::ids::{RunId, TaskId};
use muster_shared::run::RunEvent;

use super::figures;

/// What was decided, one line for each change that matters to whoever asked.
pub(crate) fn told(run: RunId, events: &[RunEvent], at_work: usize) -> String {
    let mut lines: Vec<String> = events.iter().filter_map(|event| line(run, event)).collect();
    if at_work > 0 && events.iter().any(|event| matches!(event, RunEvent::RunPaused { .. })) {
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
        RunEvent::RunAborted { .. } => {
            format!("run {short} was stopped; `muster show {short}` tells how far it came")
        }
        RunEvent::RunPaused { .. } => format!("run {short} is paused; `muster resume {short}` lets it go on"),
        RunEvent::RunResumed { deadline: None, .. } => format!("run {short} goes on"),
        RunEvent::RunResumed { deadline: Some(at), .. } => {
            format!("run {short} goes on, and has time until {} UTC", figures::date(*at))
        }
        RunEvent::TaskSkipped { task, .. } => format!("{task} is left out"),
        RunEvent::TaskReopened { task: TaskId::Leaf(task), .. } => format!("{task} is done again"),
        RunEvent::TaskReopened { task, .. } => format!("{task} is done again as well"),
        RunEvent::TaskStale { task, .. } => format!("{task} stays as it is; the report will say so"),
        RunEvent::GoalEdited { task: Some(task), .. } => format!("{task} has a new goal"),
        RunEvent::GoalEdited { task: None, .. } => format!("run {short} has a new goal"),
        RunEvent::PlanEdited { .. } => "the plan stands as edited".to_owned(),
        RunEvent::QuestionAnswered { reply } => format!("question {} is answered", reply.question),
        RunEvent::RefinementWanted { .. } => "the plan will be refined for it".to_owned(),
        RunEvent::ContextWritten { key, version, .. } => format!("context.{key} has version {version}"),
        RunEvent::InformationShared { to, .. } => {
            let to: Vec<String> = to.iter().map(ToString::to_string).collect();
            format!("told to {}", to.join(", "))
        }
        RunEvent::ConflictFound { .. }
        | RunEvent::ConflictExamined { .. }
        | RunEvent::VerificationAdded { .. }
        | RunEvent::ConflictResolved { .. }
        | RunEvent::RunCreated { .. }
        | RunEvent::RunForked { .. }
        | RunEvent::LessonsRecalled { .. }
        | RunEvent::PlanRefused { .. }
        | RunEvent::PlanAdopted { .. }
        | RunEvent::StepsExpanded { .. }
        | RunEvent::PlanningSkipped { .. }
        | RunEvent::PlanDrafted { .. }
        | RunEvent::PlanIterated { .. }
        | RunEvent::ReplanWanted { .. }
        | RunEvent::Replanned { .. }
        | RunEvent::RunGivenUp { .. }
        | RunEvent::AuctionOpened { .. }
        | RunEvent::TaskAwarded { .. }
        | RunEvent::BidHeld { .. }
        | RunEvent::WordsUncovered { .. }
        | RunEvent::TaskStarted { .. }
        | RunEvent::TaskOrphaned { .. }
        | RunEvent::TaskReleased { .. }
        | RunEvent::TaskQuarantined { .. }
        | RunEvent::TaskCompleted { .. }
        | RunEvent::FailureAnswered { .. }
        | RunEvent::ErrorBudgetUsedUp { .. }
        | RunEvent::DependencyLeft { .. }
        | RunEvent::TaskRetried { .. }
        | RunEvent::TaskTakenBack { .. }
        | RunEvent::TaskFailed { .. }
        | RunEvent::TaskBlocked { .. }
        | RunEvent::TaskAborted { .. }
        | RunEvent::TaskParked { .. }
        | RunEvent::MembersBegun { .. }
        | RunEvent::MembersDiscuss { .. }
        | RunEvent::ChairCalled { .. }
        | RunEvent::MembersSettled { .. }
        | RunEvent::DraftReviewBegun { .. }
        | RunEvent::DraftReviewed { .. }
        | RunEvent::DraftReviewMissed { .. }
        | RunEvent::TaskWaits { .. }
        | RunEvent::TaskAnswered { .. }
        | RunEvent::TaskDelegated { .. }
        | RunEvent::HandOverRefused { .. }
        | RunEvent::DeadlockEnded { .. }
        | RunEvent::ChildBegun { .. }
        | RunEvent::ChildAsked { .. }
        | RunEvent::ChildEnded { .. }
        | RunEvent::QuestionAsked { .. }
        | RunEvent::QuestionPassedOn { .. }
        | RunEvent::QuestionWithdrawn { .. }
        | RunEvent::RequestRefused { .. }
        | RunEvent::Reflected { .. }
        | RunEvent::PlanRefined { .. }
        | RunEvent::WritingBegan
        | RunEvent::RunCompleted { .. }
        | RunEvent::RunFailed { .. } => return None,
    };
    Some(text)
}
