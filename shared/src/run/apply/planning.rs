//! What becomes of plans: improved before they are carried out, and made anew when they fail.

use super::super::event::FailedPlan;
use super::super::planning::Replan;
use super::super::state::RunState;
use super::error::ApplyError;
use super::plan::change_plan;
use crate::flow::{Plan, TaskStatus};
use crate::ids::TaskId;
use crate::plan::progress::{self, Detail};

/// Most reasons that are collected for one new plan.
const MOST_REASONS: usize = 16;

/// Keeps the plan until it has been improved.
pub(super) fn drafted(state: &mut RunState, plan: &Plan) {
    state.planning.drafted = Some(plan.clone());
    ask_again(state);
}

/// Notes why what is left is to be planned anew.
pub(super) fn replan_wanted(state: &mut RunState, reason: &str) {
    if !state.planning.is_replanning() {
        ask_again(state);
    }
    if state.planning.wanted.len() < MOST_REASONS {
        state.planning.wanted.push(reason.to_owned());
    }
}

/// Takes over a new plan of what was left. Wishes for changes of the old one are of no interest any more.
pub(super) fn replanned(state: &mut RunState, changes: &[String], plan: &Plan) -> Result<(), ApplyError> {
    let failed = failed_plan(state);
    let leaves = state.plan.iter().flat_map(Plan::leaves).map(|(leaf, _)| leaf);
    let has_ended =
        |leaf: &&crate::ids::TaskIndex| state.planned(leaf).is_some_and(|task| task.status.is_ended());
    let ended = leaves.filter(has_ended).cloned().collect();
    change_plan(state, plan)?;
    let untouched =
        |number: &u32| state.tasks.get(&TaskId::Refine(*number)).is_none_or(|task| task.generation.0 == 0);
    let gone: Vec<u32> = state.wanted.keys().copied().filter(untouched).collect();
    for number in gone {
        state.wanted.remove(&number);
        state.tasks.remove(&TaskId::Refine(number));
    }
    state.planning.failures_in_a_row = 0;
    state.planning.wanted.clear();
    state.planning.replans.push(Replan { failed, changes: changes.to_vec(), ended });
    Ok(())
}

/// Counts a leaf that ended, well or not.
pub(super) fn count_end(state: &mut RunState, task: &TaskId, well: bool) {
    if matches!(task, TaskId::Leaf(index) if !index.is_member()) {
        let row = &mut state.planning.failures_in_a_row;
        *row = if well { 0 } else { row.saturating_add(1) };
    }
}

/// The plan as it stands, as one that failed.
#[must_use]
pub fn failed_plan(state: &RunState) -> FailedPlan {
    let lines = progress::lines(state, Detail::Decided).into_iter();
    FailedPlan { tasks: lines.map(|line| line.to_string()).collect(), reasons: state.planning.wanted.clone() }
}

/// Has the planner asked once more.
fn ask_again(state: &mut RunState) {
    state.planning.refused_before = state.refused_plans.len();
    let task = state.tasks.entry(TaskId::Plan).or_default();
    task.status = TaskStatus::Created;
    task.agent = None;
    task.outcome = None;
    task.continues = None;
    task.failures = 0;
}
