//! What follows when a try of a task failed: another try, or the end of the task.

use muster_shared::flow::{Ending, FailureKind, Response, TaskResult};
use muster_shared::ids::{Generation, Seq, TaskId, TaskIndex};
use muster_shared::run::event::{RunFailed, TaskFailed, TaskRetried, TaskTakenBack};
use muster_shared::run::{PlanStage, StopReason, TaskState};

use super::budget;
use super::builder::DecisionBuilder;
use super::control;
use super::deadline;
use super::draft_review;
use super::outcome;
use super::response::{self, Circumstances};
use super::{groups, planning, replan, stuck};

/// A try that failed.
#[derive(Debug)]
pub(super) struct Failure {
    /// What kind of failure it was.
    pub(super) kind: FailureKind,
    /// How it ended.
    pub(super) ending: Ending,
    /// Where its outcome stands, if there is one.
    pub(super) outcome: Option<Seq>,
    /// What there is of its result all the same.
    pub(super) part: Option<Box<TaskResult>>,
    /// Why, in a sentence.
    pub(super) reason: String,
}

/// Records that a try failed, and whether there will be another.
pub(super) fn failed(decision: &mut DecisionBuilder<'_>, task: &TaskId, failure: Failure) {
    let Some(run) = decision.open() else { return };
    // A task without an agent of its role fails before its first offer.
    let new = TaskState::default();
    let state = run.tasks.get(task).unwrap_or(&new);
    let (generation, held_by) = (state.generation, state.agent.clone());
    if run.goal.shadow.is_some() {
        // It shows how the first try goes; there is no other.
        let Failure { outcome, reason, .. } = failure;
        return decision.emit(TaskFailed { task: task.clone(), generation, outcome, reason });
    }
    let failures = state.failures.saturating_add(1);
    let out_of_time = failure.ending == Ending::DeadlinePassed && deadline::leaves_no_time(run, state);
    let most = groups::tries(run, task).unwrap_or_else(|| response::tries(failure.ending, &run.limits));
    let Failure { kind, ending, outcome, part, reason } = failure;
    let is_missing = kind == FailureKind::NobodyThere;
    let tried_out = out_of_time || is_missing || failures >= most || replan::ends_tries(run, task, failures);
    // Whoever gives up, or says that a person has to decide, did not give a part that would do.
    let part = part.filter(|_| !matches!(ending, Ending::Escalate | Ending::GaveUp));
    let circumstances = Circumstances { out_of_time, part: part.as_deref(), outcome };
    // Who does a task with others is tried as its pattern has it.
    let by_pattern = is_member(task) || groups::tries(run, task).is_some();
    let answer =
        if by_pattern { None } else { response::answer(decision, task, kind, &reason, circumstances) };
    let (response, withheld) =
        answer.unwrap_or_else(|| (response::respond_by_count(ending, !tried_out), None));
    let again = response.tries_again();
    if again && let (FailureKind::FellSilent, Some(agent)) = (kind, held_by) {
        return decision.emit(TaskTakenBack { task: task.clone(), generation, agent, reason });
    }
    if again {
        let reason = told(reason, response, withheld.as_deref());
        // Another model goes on from what was done, which nobody doubts.
        let keeps_steps = kind == FailureKind::ModelDeclined && outcome.is_some();
        decision.emit(TaskRetried { task: task.clone(), generation, outcome, reason, keeps_steps });
        return;
    }
    if response == Response::Person && stuck::ask(decision, task, outcome, &reason) {
        return;
    }
    if let (Response::Degrade, Some(part), Some(seq), TaskId::Leaf(index)) = (response, part, outcome, task) {
        return outcome::count_leaf(decision, index, seq, &part);
    }
    if *task == TaskId::Plan && spare(decision, generation, outcome, &reason) {
        return;
    }
    let by_guard = outcome.is_some_and(|seq| decision.is_refused_by_guard(seq));
    let fatal = if by_guard { by_guards(task, failures, &reason) } else { fatal(task, failures, &reason) };
    if ending == Ending::BudgetExhausted && fatal.is_some() {
        decision.emit(TaskFailed { task: task.clone(), generation, outcome, reason: reason.clone() });
        return budget::stop_without(decision, task, &reason);
    }
    decision.emit(TaskFailed { task: task.clone(), generation, outcome, reason: reason.clone() });
    if is_member(task) {
        return;
    }
    if out_of_time && fatal.is_some() {
        return deadline::stop(decision);
    }
    if is_missing && fatal.is_some() {
        return control::abort(decision, StopReason::DeadlinePassed, reason);
    }
    if let Some(reason) = fatal
        && !draft_review::rescue(decision, &reason)
    {
        decision.emit(RunFailed { reason });
    }
    if let TaskId::Leaf(index) = task
        && !out_of_time
    {
        replan::after_failure(decision, index, ending, &reason);
    }
}

/// Nothing follows from how a member ends but what becomes of its task.
pub(super) fn is_member(task: &TaskId) -> bool {
    task.leaf().is_some_and(TaskIndex::is_member)
}

/// What the next try is told of the last one.
fn told(reason: String, response: Response, withheld: Option<&str>) -> String {
    if response == Response::OtherTool {
        let which = withheld.map(|tool| format!(" ({tool}, withheld if there are others)"));
        format!(
            "{reason}. Do it without the tool that failed{}, or in another way",
            which.unwrap_or_default()
        )
    } else {
        reason
    }
}

/// A planner that fails where there is a plan already does not end the run: a draft is carried out as it stands. Where
/// what is left cannot be planned anew, the run is given up with what it has.
pub(super) fn spare(
    decision: &mut DecisionBuilder<'_>,
    generation: Generation,
    outcome: Option<Seq>,
    reason: &str,
) -> bool {
    let Some(run) = decision.open() else { return false };
    let improving = match run.planning.stage {
        PlanStage::Awaited | PlanStage::Adopted => return false,
        PlanStage::Improving(_) => true,
        PlanStage::Replanning(_) => false,
    };
    let reason = reason.to_owned();
    decision.emit(TaskFailed { task: TaskId::Plan, generation, outcome, reason: reason.clone() });
    if improving {
        planning::adopt_draft(decision, &reason);
    } else {
        replan::give_up(decision, Some(&format!("no new plan could be made: {reason}")));
    }
    true
}

fn in_tries(failures: u32) -> String {
    if failures == 1 { "one try".to_owned() } else { format!("{failures} tries") }
}

/// The same where guards refused what was made: no model is to blame.
fn by_guards(task: &TaskId, failures: u32, reason: &str) -> Option<String> {
    let times = in_tries(failures);
    (*task == TaskId::Plan).then(|| format!("no plan was let through in {times}: {reason}"))
}

/// Why the run cannot go on without this task, and what to do; nothing when it can.
pub(super) fn fatal(task: &TaskId, failures: u32, reason: &str) -> Option<String> {
    let times = in_tries(failures);
    match task {
        TaskId::Plan => Some(format!(
            "no plan could be made in {times}: {reason}. Check the planner's model with `muster doctor`, or ask for \
             something smaller or more definite"
        )),
        TaskId::Write => Some(format!(
            "the report could not be written in {times}: {reason}. What the tasks found is kept: see `muster show`; \
             check the writer's model with `muster doctor` and ask again"
        )),
        TaskId::Leaf(_)
        | TaskId::Reflect(_)
        | TaskId::Refine(_)
        | TaskId::Settle(_)
        | TaskId::DraftReview(_) => None,
    }
}
