//! What the end of a task means for the members that do it.

use super::super::state::RunState;
use crate::flow::TaskStatus;
use crate::ids::TaskId;

/// Why members stop when their task has ended.
const OVER: &str = "its task does not need it any more";

/// Whoever still works for a task that has ended, or is to be done again, stops. What its outcome says later is counted
/// as used.
pub(super) fn close_ended(state: &mut RunState) {
    let over: Vec<TaskId> = state
        .groups
        .iter()
        .filter(|(task, _)| state.group_in_work(task).is_none())
        .flat_map(|(_, group)| &group.members)
        .map(|member| member.to_task_id())
        .filter(|member| state.tasks.get(member).is_some_and(|found| !found.status.is_ended()))
        .collect();
    for member in over {
        if let Some(found) = state.tasks.get_mut(&member) {
            found.end_wait();
            found.status = TaskStatus::Aborted;
            found.agent = None;
            found.answered = None;
            found.continues = None;
            found.reasons.push(OVER.to_owned());
        }
    }
}
