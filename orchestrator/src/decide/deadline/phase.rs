//! Time limit of the execution phase. At the limit, running tasks are cut off after a short grace period, and the report
//! is written from the results so far.

use std::time::Duration;

use muster_shared::ids::{Generation, TaskId, TaskIndex};
use muster_shared::run::event::TaskAborted;
use muster_shared::run::{Phase, RunState};
use muster_shared::time::Millis;

use super::super::builder::DecisionBuilder;
use super::super::effect::Effect;
use super::super::{conflicts, groups, questions, single, survey};
use super::GRACE;

/// Why tasks are cut off when their phase is over.
const OVER: &str = "the time for carrying out the plan is up";

/// Part of the run's time that is kept for writing the report, in percent.
const WRITING_RESERVE_PERCENT: u64 = 10;

/// Time at which agents have to be done with the current phase. Absent: only the run's deadline applies.
///
/// Time is kept for writing as soon as there is something to write.
pub(in crate::decide) fn ends_at(run: &RunState) -> Option<Millis> {
    if run.phase != Phase::Executing || !survey::has_results(run) {
        return None;
    }
    let whole = run.deadline.0.saturating_sub(run.created_at.0);
    Some(Millis(run.deadline.0.saturating_sub(whole / 100 * WRITING_RESERVE_PERCENT)))
}

/// When the phase is over: agents are given a moment to say what they have.
pub(super) fn over_at(run: &RunState) -> Option<Millis> {
    let end = ends_at(run)?;
    let left = Duration::from_millis(run.deadline.0.saturating_sub(end.0));
    Some(end.after(GRACE.min(left / 4)))
}

pub(super) fn is_over(run: &RunState, now: Millis) -> bool {
    let concluded = || takes_nothing_up(run, now) && !survey::anything_in_work(run);
    over_at(run).is_some_and(|over| over <= now) || concluded()
}

/// Whether it is too late to begin anything of this phase.
pub(in crate::decide) fn takes_nothing_up(run: &RunState, now: Millis) -> bool {
    ends_at(run).is_some_and(|end| end <= now)
}

/// Ends the execution phase and starts to write the report from the results so far.
pub(super) fn end(decision: &mut DecisionBuilder<'_>) {
    groups::conclude(decision, OVER);
    conflicts::give_up(decision, OVER);
    let Some(run) = decision.open() else { return };
    let (held, waiting) = (in_hand(run), never_done(run));
    for (task, generation) in held {
        let agent =
            decision.open().and_then(|run| run.tasks.get(&task)).and_then(|state| state.agent.clone());
        decision.effect(Effect::CancelTask {
            task: task.clone(),
            generation,
            agent,
            reason: OVER.to_owned(),
        });
        decision.emit(TaskAborted { task, reason: OVER.to_owned() });
    }
    for task in waiting {
        decision.emit(TaskAborted { task: TaskId::Leaf(task), reason: OVER.to_owned() });
    }
    questions::withdraw_all(decision, OVER);
    single::write(decision);
}

/// What is in a queue or in an agent's hands. A parent only reflects its leaves.
fn in_hand(run: &RunState) -> Vec<(TaskId, Generation)> {
    let executed = |task: &TaskId| match task {
        TaskId::Leaf(index) => run.plan.as_ref().is_some_and(|plan| plan.is_leaf(index)),
        TaskId::Plan
        | TaskId::Reflect(_)
        | TaskId::Refine(_)
        | TaskId::Settle(_)
        | TaskId::Write
        | TaskId::DraftReview(_) => true,
    };
    let held = run.tasks.iter().filter(|(task, state)| executed(task) && state.status.is_in_work());
    held.map(|(task, state)| (task.clone(), state.generation)).collect()
}

/// Leaves that wait to be offered.
fn never_done(run: &RunState) -> Vec<TaskIndex> {
    let open = survey::not_ended(run).into_iter().map(|(index, _)| index);
    open.filter(|index| survey::is_open(run, &TaskId::Leaf(index.clone()))).collect()
}
