//! What a run that ended taught (M1): lessons for later runs with a like goal.

use muster_shared::flow::{RunLessons, TaskStatus};
use muster_shared::ids::TaskId;
use muster_shared::run::{RunState, RunStatus, StopReason};

use super::survey;

/// The lessons of a run that has ended; nothing when it taught none, or when it was stopped before it could.
pub(super) fn of_run(run: &RunState) -> Option<RunLessons> {
    let completed = match run.status {
        RunStatus::Completed => true,
        RunStatus::Failed | RunStatus::Aborted(StopReason::DeadlinePassed | StopReason::BudgetExhausted) => {
            false
        }
        RunStatus::Created
        | RunStatus::Processing
        | RunStatus::Aborted(StopReason::Cancelled | StopReason::Refused) => return None,
    };
    let lessons = lessons(run, completed);
    if lessons.is_empty() {
        return None;
    }
    let ended_at = run.ended_at.unwrap_or(run.decided_at);
    Some(RunLessons { run: run.id, goal: run.goal.text.clone(), ended_at, completed, lessons }.bounded())
}

/// The weightiest first: what made the run fail, what its plan lacked, what reflections say of plan and tools.
fn lessons(run: &RunState, completed: bool) -> Vec<String> {
    let failed = run.reason.iter().filter(|_| !completed && run.plan.is_some());
    let failed = failed.map(|reason| format!("a run with a like goal did not succeed: {reason}"));
    let fruitless = survey::fruitless(run).into_iter().filter(|(index, _, _)| {
        run.tasks.get(&TaskId::Leaf(index.clone())).is_some_and(|task| task.status == TaskStatus::Failed)
    });
    let fruitless = fruitless.map(|(_, name, why)| format!("the task “{name}” failed: {why}"));
    let reflections = || run.reflections.values();
    let of_plan = reflections().flat_map(|reflection| reflection.on_plan.iter().cloned());
    let open = survey::uncovered(run).into_iter().map(|what| format!("stayed uncovered: {what}"));
    let of_tools = reflections().flat_map(|reflection| &reflection.on_tools);
    let of_tools = of_tools.map(|note| format!("{}: {}", note.tool, note.note));
    failed.chain(fruitless).chain(of_plan).chain(open).chain(of_tools).collect()
}
