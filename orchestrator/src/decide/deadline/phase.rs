//! The time of a phase. When that for carrying out the plan is up, what is in hand is told to conclude, and the report
//! is written from what there is.

use std::time::Duration;

use muster_shared::ids::{Generation, TaskId, TaskIndex};
use muster_shared::run::event::TaskAborted;
use muster_shared::run::{Phase, RunState, StopReason};
use muster_shared::time::Millis;

use super::super::builder::DecisionBuilder;
use super::super::effect::Effect;
use super::super::{conflicts, control, groups, questions, single, survey};
use super::{GRACE, in_words};

/// The most that is kept for writing, in percent: without time for anything else there is nothing to write.
const MOST_RESERVED: u64 = 90;

/// Why tasks are cut off when their phase is over.
const OVER: &str = "the time for carrying out the plan is up";

/// When agents are to be done with what the phase has them do; nothing when there is no time but that of the run.
///
/// Time is kept for writing once there is something to write.
pub(in crate::decide) fn ends_at(run: &RunState) -> Option<Millis> {
    // While somebody is asked how to go on, the time of the phase stands still.
    let own = |span: Option<u64>| {
        span.filter(|_| !run.is_held()).map(|span| run.phase_since.after(Duration::from_millis(span)))
    };
    let limits = &run.limits;
    match run.phase {
        Phase::Planning => own(limits.planning_deadline_ms),
        Phase::Executing => own(limits.executing_deadline_ms).into_iter().chain(reserve_begins(run)).min(),
        Phase::Writing => own(limits.writing_deadline_ms),
        Phase::Ended => None,
    }
}

fn reserve_begins(run: &RunState) -> Option<Millis> {
    let percent = u64::from(run.limits.writing_reserve_percent).min(MOST_RESERVED);
    if percent == 0 || !survey::has_results(run) {
        return None;
    }
    let whole = run.deadline.0.saturating_sub(run.created_at.0);
    Some(Millis(run.deadline.0.saturating_sub(whole / 100 * percent)))
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

/// Goes over to writing with what there is, or stops the run where that is of no use.
pub(super) fn end(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open() else { return };
    let own = |span: Option<u64>| in_words(Duration::from_millis(span.unwrap_or_default()));
    let limits = &run.limits;
    match run.phase {
        Phase::Planning => {
            let span = own(limits.planning_deadline_ms);
            stop(
                decision,
                format!("there was no plan within {span}; raise limits.planning_deadline and ask again"),
            );
        }
        Phase::Executing => conclude(decision),
        Phase::Writing => {
            let span = own(limits.writing_deadline_ms);
            stop(
                decision,
                format!(
                    "the report was not written within {span}; raise limits.writing_deadline and ask again"
                ),
            );
        }
        Phase::Ended => {}
    }
}

fn stop(decision: &mut DecisionBuilder<'_>, reason: String) {
    control::abort(decision, StopReason::DeadlinePassed, reason);
}

fn conclude(decision: &mut DecisionBuilder<'_>) {
    groups::conclude(decision, OVER);
    let Some(run) = decision.open() else { return };
    if !survey::has_results(run) {
        let span = in_words(decision.now().since(run.phase_since));
        return stop(
            decision,
            format!("no task gave a result within {span}; ask for less, or raise limits.executing_deadline"),
        );
    }
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
