//! What follows when a try of a task failed: another try, or the end of the task.

use muster_shared::flow::{Ending, RunLimits};
use muster_shared::ids::{Seq, TaskId};
use muster_shared::run::RunEvent;

use super::budget;
use super::deadline;
use super::draft::Draft;
use super::review;

/// A try that failed.
#[derive(Debug)]
pub(super) struct Failure {
    /// How it ended.
    pub(super) ending: Ending,
    /// Where its outcome stands, if there is one.
    pub(super) outcome: Option<Seq>,
    /// Why, in a sentence.
    pub(super) reason: String,
}

/// How often a task may be tried when it ends like this. What may be different next time is tried up to the
/// limit; what the agent itself judged hopeless once more, told how it failed; what a person must decide not again.
fn tries(ending: Ending, limits: &RunLimits) -> u32 {
    let most = limits.max_generations.max(1);
    match ending {
        Ending::ModelFailed
        | Ending::AgentFailed
        | Ending::Cancelled
        | Ending::Done
        | Ending::DonePartial => most,
        Ending::GaveUp | Ending::Delegate | Ending::Blocked | Ending::DeadlinePassed => most.min(2),
        // What was used is gone: another try would begin anew with less.
        Ending::Escalate | Ending::BudgetExhausted => 1,
    }
}

/// Records that a try failed, and whether there will be another.
pub(super) fn failed(draft: &mut Draft<'_>, task: &TaskId, failure: Failure) {
    let Some(run) = draft.open() else { return };
    let Some(state) = run.tasks.get(task) else { return };
    let generation = state.generation;
    let failures = state.failures.saturating_add(1);
    let out_of_time = failure.ending == Ending::DeadlinePassed && deadline::leaves_no_time(run, state);
    let again = !out_of_time && failures < tries(failure.ending, &run.limits);
    let Failure { ending, outcome, reason } = failure;
    if again {
        draft.emit(RunEvent::TaskRetried { task: task.clone(), generation, outcome, reason });
        return;
    }
    let fatal = fatal(task, failures, &reason);
    if ending == Ending::BudgetExhausted && fatal.is_some() {
        draft.emit(RunEvent::TaskFailed { task: task.clone(), generation, outcome, reason: reason.clone() });
        return budget::stop_without(draft, task, &reason);
    }
    draft.emit(RunEvent::TaskFailed { task: task.clone(), generation, outcome, reason: reason.clone() });
    if let TaskId::Leaf(index) = task {
        review::after_failure(draft, index, &reason);
    }
    if out_of_time && fatal.is_some() {
        return deadline::stop(draft);
    }
    if let Some(reason) = fatal {
        draft.emit(RunEvent::RunFailed { reason });
    }
}

/// Why the run cannot go on without this task, and what to do; nothing when it can.
pub(super) fn fatal(task: &TaskId, failures: u32, reason: &str) -> Option<String> {
    let times = if failures == 1 { "one try".to_owned() } else { format!("{failures} tries") };
    match task {
        TaskId::Plan => Some(format!(
            "no plan could be made in {times}: {reason}. Check the planner's model with `muster doctor`, or ask for \
             something smaller or more definite"
        )),
        TaskId::Write => Some(format!(
            "the report could not be written in {times}: {reason}. What the tasks found is kept: see `muster show`; \
             check the writer's model with `muster doctor` and ask again"
        )),
        TaskId::Leaf(_) | TaskId::Reflect(_) | TaskId::Refine(_) => None,
    }
}
