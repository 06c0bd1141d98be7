//! What follows from what agents report, by kind of work.

use muster_shared::flow::{Ending, FailureKind, Outcome, Product, Reflection, TaskResult};
use muster_shared::ids::{Attempt, Seq, TaskId, TaskIndex};
use muster_shared::run::{AgentEvent, AgentKey, EventKind, REPAIRS_SINCE, RunEvent, RunState, Started};

use super::acceptance;
use super::auction;
use super::conflicts;
use super::control;
use super::draft::Draft;
use super::draft_review;
use super::effect::Effect;
use super::failure::{self, Failure};
use super::groups;
use super::loss;
use super::peers;
use super::planning;
use super::refine;
use super::replan;
use super::report;
use super::review;
use super::survey;
use super::waits;

/// Takes in an agent's event from the record. What is about a closed generation is of no interest any more.
pub(super) fn take_in(draft: &mut Draft<'_>, seq: Seq) {
    let Some((key, event)) = draft.open().and_then(|run| run.pending.get(&seq).cloned()) else { return };
    if !draft.open().is_some_and(|run| is_current(run, &key)) {
        return turn_away(draft, &key, &event);
    }
    match event {
        AgentEvent::Started(started) => began(draft, key, &started),
        AgentEvent::Outcome(outcome) => {
            auction::held(draft, &key, outcome.counts());
            ended(draft, &key.task, seq, outcome);
        }
        AgentEvent::Released(released) if released.parked => match released.wait {
            Some(awaited) => waits::begin(draft, key.task, key.generation, *awaited),
            None => control::put_down(draft, key.task, key.generation),
        },
        AgentEvent::Released(_) => loss::released(draft, key),
        AgentEvent::ToolStarted(_) | AgentEvent::Step(_) | AgentEvent::Unreadable(_) => {}
    }
}

/// Takes in an entry that whoever drives the run could not read. It ends the generation as a failure of its agent, what
/// it was to be makes no difference: nobody knows how the task stands. What is wrong is kept among the dead letters.
pub(super) fn take_in_unreadable(draft: &mut Draft<'_>, seq: Seq, why: &str) {
    let found = draft.open().and_then(|run| run.pending.get(&seq));
    let Some((key, kind)) = found.map(|(key, event)| (key.clone(), event.kind())) else { return };
    let reason = format!("its agent wrote what cannot be read ({kind}): {why}");
    draft.effect(Effect::BuryEntry { seq, reason: format!("task {}: {reason}", key.task) });
    let current = draft.open().is_some_and(|run| is_current(run, &key));
    // It may think that it still has the task, or not be who wrote this.
    draft.effect(Effect::CancelTask {
        task: key.task.clone(),
        generation: key.generation,
        agent: Some(key.agent.clone()),
        reason: reason.clone(),
    });
    if !current {
        return;
    }
    if kind == EventKind::Outcome {
        auction::held(draft, &key, false);
    }
    let (kind, ending) = (FailureKind::AgentFault, Ending::AgentFailed);
    failure::failed(draft, &key.task, Failure { kind, ending, outcome: Some(seq), part: None, reason });
}

/// Whoever begins what is closed is told so: nothing that comes of it would count.
fn turn_away(draft: &mut Draft<'_>, key: &AgentKey, event: &AgentEvent) {
    if let AgentEvent::Started(_) = event {
        draft.effect(Effect::CancelTask {
            task: key.task.clone(),
            generation: key.generation,
            agent: Some(key.agent.clone()),
            reason: "this offer of the task is closed".to_owned(),
        });
    }
}

fn is_current(run: &RunState, key: &AgentKey) -> bool {
    run.tasks.get(&key.task).is_some_and(|task| task.generation == key.generation && task.status.is_in_work())
}

fn began(draft: &mut Draft<'_>, key: AgentKey, started: &Started) {
    let AgentKey { agent, task, generation, .. } = key;
    let last = draft.open().and_then(|run| run.tasks.get(&task)).map(|state| state.attempt);
    let Some(last) = last else { return };
    let Started { attempt, ack, after_step, .. } = started.clone();
    let attempt = if attempt == Attempt(0) { last.next() } else { attempt };
    if attempt <= last {
        return;
    }
    draft.emit(RunEvent::TaskStarted { task: task.clone(), generation, agent, attempt, ack, after_step });
    if let Some(effect) = draft.open().and_then(|run| peers::tell_again(run, &task)) {
        draft.effect(effect);
    }
    control::stop_early_bird(draft, &task);
}

fn ended(draft: &mut Draft<'_>, task: &TaskId, seq: Seq, outcome: Outcome) {
    let (counts, kind) = (outcome.counts(), FailureKind::of(&outcome));
    let Outcome { ending, reason, product, .. } = outcome;
    if is_late_part(draft, task, ending) {
        let part = product.and_then(part_of);
        let (kind, ending) = (FailureKind::TimeUp, Ending::DeadlinePassed);
        let reason = format!("its time was up before it was done: {reason}");
        return failure::failed(draft, task, Failure { kind, ending, outcome: Some(seq), part, reason });
    }
    if !counts {
        let reason =
            if reason.is_empty() { format!("it ended as {ending:?} without a reason") } else { reason };
        let part = product.and_then(part_of);
        return failure::failed(draft, task, Failure { kind, ending, outcome: Some(seq), part, reason });
    }
    match (task, product) {
        (TaskId::Plan, Some(Product::Plan(proposal))) => planning::propose(draft, seq, &proposal),
        (TaskId::Leaf(index), Some(Product::Result(result))) => leaf_done(draft, index, seq, ending, &result),
        (TaskId::Settle(_), Some(Product::Result(_))) => completed(draft, task.clone(), seq),
        (TaskId::Reflect(index), Some(Product::Reflection(reflection))) => {
            reflected(draft, index, seq, reflection);
        }
        (TaskId::Refine(number), Some(Product::Refinement(operations))) => {
            refine::refined(draft, *number, seq, &operations);
        }
        (TaskId::Write, Some(Product::Report(report))) => report::written(draft, seq, report),
        (TaskId::DraftReview(number), Some(Product::DraftReview(review))) => {
            draft_review::reviewed(draft, *number, seq, review);
        }
        (task, _mismatch) => {
            let reason = "the agent called it done and did not send what the task is to give".to_owned();
            let kind = FailureKind::WrongProduct;
            failure::failed(draft, task, Failure { kind, ending, outcome: Some(seq), part: None, reason });
        }
    }
}

/// Whether it is a part of a task, and its time is up: others may do the whole. It counts where nobody can.
fn is_late_part(draft: &Draft<'_>, task: &TaskId, ending: Ending) -> bool {
    let Some(run) = draft.open().filter(|run| run.event_version >= REPAIRS_SINCE) else { return false };
    let deadline = run.tasks.get(task).and_then(|state| state.deadline);
    let is_part = ending == Ending::DonePartial && task.as_leaf().is_some();
    is_part && deadline.is_some_and(|deadline| deadline < draft.now())
}

/// Records that a task ended well.
pub(super) fn completed(draft: &mut Draft<'_>, task: TaskId, outcome: Seq) {
    let Some(generation) = draft.open().and_then(|run| run.tasks.get(&task)).map(|task| task.generation)
    else {
        return;
    };
    draft.emit(RunEvent::TaskCompleted { task, generation, outcome });
}

/// A result that is worth something.
fn part_of(product: Product) -> Option<Box<TaskResult>> {
    match product {
        Product::Result(result) if !acceptance::is_empty(&result) => Some(Box::new(result)),
        Product::Result(_)
        | Product::Plan(_)
        | Product::Reflection(_)
        | Product::Refinement(_)
        | Product::Report(_)
        | Product::DraftReview(_) => None,
    }
}

fn leaf_done(draft: &mut Draft<'_>, index: &TaskIndex, seq: Seq, ending: Ending, result: &TaskResult) {
    let fault =
        draft.open().and_then(|run| acceptance::fault(run, index, (ending, result), draft.breach(seq)));
    let Some(acceptance::Fault { kind, reason, is_part }) = fault else {
        return count_leaf(draft, index, seq, result);
    };
    let part = if is_part { part_of(Product::Result(result.clone())) } else { None };
    let failure = Failure { kind, ending, outcome: Some(seq), part, reason };
    failure::failed(draft, &TaskId::Leaf(index.clone()), failure);
}

/// A result counts.
pub(super) fn count_leaf(draft: &mut Draft<'_>, index: &TaskIndex, seq: Seq, result: &TaskResult) {
    completed(draft, TaskId::Leaf(index.clone()), seq);
    if index.is_member() {
        return groups::member_done(draft, index);
    }
    after_result(draft, index, result);
}

/// What follows from the result of a task of the plan.
pub(super) fn after_result(draft: &mut Draft<'_>, index: &TaskIndex, result: &TaskResult) {
    review::after_leaf(draft, index, result);
    replan::after_result(draft, index, result);
    conflicts::after_leaf(draft, index);
    if let Some(advice) = result.advice.as_ref().filter(|advice| advice.refine) {
        want_refinement(draft, index, &advice.reason);
    }
}

fn reflected(draft: &mut Draft<'_>, index: &TaskIndex, seq: Seq, reflection: Reflection) {
    completed(draft, TaskId::Reflect(index.clone()), seq);
    let wish = reflection.refine.clone();
    draft.emit(RunEvent::Reflected { task: index.clone(), reflection });
    if let Some(reason) = wish {
        want_refinement(draft, index, &reason);
    }
}

/// Adds to what the next refinement is for. One that was offered already does not hear of it any more; when no
/// further one is allowed, the wish is dropped: the reflection that holds it stands in the record.
pub(super) fn want_refinement(draft: &mut Draft<'_>, index: &TaskIndex, reason: &str) {
    let Some(run) = draft.open() else { return };
    if run.planning.is_replanning() {
        let number = run.planning.next_replan();
        return draft.emit(RunEvent::ReplanWanted { number, reason: format!("{index}: {reason}") });
    }
    let number = survey::next_refinement(run);
    if number > run.limits.max_refinements {
        return;
    }
    draft.emit(RunEvent::RefinementWanted { number, reason: format!("{index}: {reason}") });
}
