//! What a run that ended taught (M1): lessons for later runs with a like goal.

use muster_shared::flow::{RunLessons, TaskStatus};
use muster_shared::ids::TaskId;
use muster_shared::run::{RunState, RunStatus, StopReason};

use super::{learnt, survey};

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
    let failed = run.reason.iter().filter(|_| !completed && run.plan.is_some() && !by_outage(run));
    let failed = failed.map(|reason| format!("a run with a like goal did not succeed: {reason}"));
    let fruitless = survey::fruitless(run).into_iter().filter(|(index, _, _)| {
        let task = index.to_task_id();
        let failed = run.tasks.get(&task).is_some_and(|task| task.status == TaskStatus::Failed);
        failed && !learnt::failed_by_outage(run, &task)
    });
    let fruitless = fruitless.map(|(_, name, why)| format!("the task “{name}” failed: {why}"));
    let reflections = || learnt::reflections(run);
    let of_plan = reflections().flat_map(|reflection| reflection.on_plan.iter().cloned());
    let open = survey::uncovered(run).into_iter().map(|what| format!("stayed uncovered: {what}"));
    let of_tools = reflections().flat_map(|reflection| &reflection.on_tools);
    let of_tools = of_tools.map(|note| format!("{}: {}", note.tool, note.note));
    failed.chain(fruitless).chain(of_plan).chain(open).chain(of_tools).collect()
}

/// Whether a run failed because something of the fleet was away, and for nothing else that is known.
fn by_outage(run: &RunState) -> bool {
    let failed: Vec<&TaskId> = run
        .tasks
        .iter()
        .filter(|(_, state)| state.status == TaskStatus::Failed)
        .map(|(task, _)| task)
        .collect();
    let ended_it = [TaskId::Plan, TaskId::Write].into_iter().find(|task| failed.contains(&task));
    match ended_it {
        Some(task) => learnt::failed_by_outage(run, &task),
        None => !failed.is_empty() && failed.iter().all(|task| learnt::failed_by_outage(run, task)),
    }
}
