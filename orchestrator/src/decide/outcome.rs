//! What follows from what agents report, by kind of work.

use muster_shared::flow::{Ending, FailureKind, Outcome, Product, Reflection, TaskResult};
use muster_shared::ids::{Queue, Seq, TaskId, TaskIndex};
use muster_shared::run::event::{RefinementWanted, Reflected, ReplanWanted, TaskCompleted, TaskStarted};
use muster_shared::run::{AgentEvent, AgentKey, EventKind, RunState, Started};

use super::acceptance;
use super::auction;
use super::builder::DecisionBuilder;
use super::conflicts;
use super::control;
use super::draft_review;
use super::effect::Effect;
use super::failure::{self, Failure};
use super::groups;
use super::guards;
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
pub(super) fn take_in(decision: &mut DecisionBuilder<'_>, seq: Seq) {
    let Some((key, event)) = decision.open().and_then(|run| run.pending.get(&seq).cloned()) else { return };
    if !decision.open().is_some_and(|run| is_current(run, &key)) {
        return turn_away(decision, &key, &event);
    }
    if let Some(why) = decision.open().and_then(|run| no_say(run, &key, seq)) {
        return decision.effect(Effect::BuryEntry { seq, reason: format!("task {}: {why}", key.task) });
    }
    match event {
        AgentEvent::Started(started) => began(decision, key, &started),
        AgentEvent::Outcome(outcome) if guards::hold(decision, &key, seq, &outcome) => {}
        AgentEvent::Outcome(outcome) => ended(decision, &key, seq, &outcome),
        AgentEvent::Released(released) if released.parked => match released.wait {
            Some(awaited) => waits::begin(decision, key.task, key.generation, *awaited),
            None => control::put_down(decision, key.task, key.generation),
        },
        AgentEvent::Released(_) => loss::released(decision, key),
        AgentEvent::ToolStarted(_) | AgentEvent::Step(_) | AgentEvent::Unreadable(_) => {}
    }
}

/// Takes in an outcome that guards have nothing against.
pub(super) fn take_in_guarded(decision: &mut DecisionBuilder<'_>, seq: Seq) {
    let Some((key, event)) = decision.open().and_then(|run| run.pending.get(&seq).cloned()) else { return };
    if let AgentEvent::Outcome(outcome) = event
        && decision.open().is_some_and(|run| is_current(run, &key))
    {
        ended(decision, &key, seq, &outcome);
    }
}

/// Takes in an entry that whoever drives the run could not read. It ends the generation as a failure of its agent, what
/// it was to be makes no difference: nobody knows how the task stands. What is wrong is kept among the dead letters.
pub(super) fn take_in_unreadable(decision: &mut DecisionBuilder<'_>, seq: Seq, why: &str) {
    let found = decision.open().and_then(|run| run.pending.get(&seq));
    let Some((key, kind)) = found.map(|(key, event)| (key.clone(), event.kind())) else { return };
    let reason = format!("its agent wrote what cannot be read ({kind}): {why}");
    decision.effect(Effect::BuryEntry { seq, reason: format!("task {}: {reason}", key.task) });
    let current =
        decision.open().is_some_and(|run| is_current(run, &key) && no_say(run, &key, seq).is_none());
    // It may think that it still has the task, or not be who wrote this.
    decision.effect(Effect::CancelTask {
        task: key.task.clone(),
        generation: key.generation,
        agent: Some(key.agent.clone()),
        reason: reason.clone(),
    });
    if !current {
        return;
    }
    if kind == EventKind::Outcome {
        auction::held(decision, &key, false);
    }
    let (kind, ending) = (FailureKind::AgentFault, Ending::AgentFailed);
    failure::failed(decision, &key.task, Failure { kind, ending, outcome: Some(seq), part: None, reason });
}

/// Whoever begins what is closed is told so: nothing that comes of it would count.
fn turn_away(decision: &mut DecisionBuilder<'_>, key: &AgentKey, event: &AgentEvent) {
    if let AgentEvent::Started(_) = event {
        decision.effect(Effect::CancelTask {
            task: key.task.clone(),
            generation: key.generation,
            agent: Some(key.agent.clone()),
            reason: "this offer of the task is closed".to_owned(),
        });
    }
}

pub(super) fn is_current(run: &RunState, key: &AgentKey) -> bool {
    run.tasks.get(&key.task).is_some_and(|task| task.generation == key.generation && task.status.is_in_work())
}

/// Why an agent has no say in a task as it stands: the task was offered to others, or another one has it. Whoever has a task
/// keeps it, whoever else begins it: only its loss or its own word takes it from them, which decisions name.
fn no_say(run: &RunState, key: &AgentKey, seq: Seq) -> Option<String> {
    let task = run.tasks.get(&key.task)?;
    let AgentKey { role, agent, .. } = key;
    match &task.queue {
        Some(Queue::Role(asked)) if asked != role => {
            return Some(format!("{agent} is no {asked}, and the task was offered to these"));
        }
        Some(Queue::Agent(asked)) if asked != agent => {
            return Some(format!("it was offered to {asked} and not to {agent}"));
        }
        Some(Queue::Role(_) | Queue::Agent(_)) | None => {}
    }
    if let Some(holder) = loss::had_it_then(task, agent, seq) {
        return Some(format!("{holder} had it then, and not {agent}"));
    }
    let holder = task.agent.as_ref().filter(|holder| *holder != agent)?;
    Some(format!("{holder} has it, and not {agent}"))
}

fn began(decision: &mut DecisionBuilder<'_>, key: AgentKey, started: &Started) {
    let AgentKey { agent, task, generation, .. } = key;
    let Some(run) = decision.open() else { return };
    let Some(state) = run.tasks.get(&task) else { return };
    let attempt = state.attempt.next();
    let Started { ack, after_step, .. } = started.clone();
    // Whoever carries something out with it may do more than whoever wrote it.
    let is_own = |ack: &str| state.queue.as_ref().is_some_and(|queue| queue.is_acknowledged_by(ack));
    let ack = if is_own(&ack) { ack } else { String::new() };
    decision.emit(TaskStarted { task: task.clone(), generation, agent, attempt, ack, after_step });
    if let Some(effect) = decision.open().and_then(|run| peers::tell_again(run, &task)) {
        decision.effect(effect);
    }
    control::stop_early_bird(decision, &task);
}

fn ended(decision: &mut DecisionBuilder<'_>, key: &AgentKey, seq: Seq, outcome: &Outcome) {
    auction::held(decision, key, outcome.counts());
    let task = &key.task;
    let (counts, kind) = (outcome.counts(), FailureKind::of(outcome));
    let Outcome { ending, reason, product, .. } = outcome;
    let (ending, product) = (*ending, product.as_ref());
    if is_late_part(decision, task, ending) {
        let part = product.and_then(part_of);
        let (kind, ending) = (FailureKind::TimeUp, Ending::DeadlinePassed);
        let reason = format!("its time was up before it was done: {reason}");
        return failure::failed(decision, task, Failure { kind, ending, outcome: Some(seq), part, reason });
    }
    if !counts {
        let reason = if reason.is_empty() {
            format!("it ended as {ending:?} without a reason")
        } else {
            reason.clone()
        };
        let part = product.and_then(part_of);
        return failure::failed(decision, task, Failure { kind, ending, outcome: Some(seq), part, reason });
    }
    match (task, product) {
        (TaskId::Plan, Some(Product::Plan(proposal))) => planning::propose(decision, seq, proposal),
        (TaskId::Leaf(index), Some(Product::Result(result))) => {
            leaf_done(decision, index, seq, ending, result)
        }
        (TaskId::Settle(_), Some(Product::Result(_))) => completed(decision, task.clone(), seq),
        (TaskId::Reflect(index), Some(Product::Reflection(reflection))) => {
            reflected(decision, index, seq, reflection.clone());
        }
        (TaskId::Refine(number), Some(Product::Refinement(operations))) => {
            refine::refined(decision, *number, seq, operations);
        }
        (TaskId::Write, Some(Product::Report(report))) => report::written(decision, seq, report.clone()),
        (TaskId::DraftReview(number), Some(Product::DraftReview(review))) => {
            draft_review::reviewed(decision, *number, seq, review.clone());
        }
        (task, _mismatch) => {
            let reason = "the agent called it done and did not send what the task is to give".to_owned();
            let kind = FailureKind::WrongProduct;
            failure::failed(decision, task, Failure { kind, ending, outcome: Some(seq), part: None, reason });
        }
    }
}

/// Whether it is a part of a task, and its time is up: others may do the whole. It counts where nobody can.
fn is_late_part(decision: &DecisionBuilder<'_>, task: &TaskId, ending: Ending) -> bool {
    let Some(run) = decision.open() else { return false };
    let deadline = run.tasks.get(task).and_then(|state| state.deadline);
    let is_part = ending == Ending::DonePartial && task.as_leaf().is_some();
    is_part && deadline.is_some_and(|deadline| deadline < decision.now())
}

/// Records that a task ended well.
pub(super) fn completed(decision: &mut DecisionBuilder<'_>, task: TaskId, outcome: Seq) {
    let Some(generation) = decision.task(&task).map(|task| task.generation) else {
        return;
    };
    decision.emit(TaskCompleted { task, generation, outcome });
}

/// A result that is worth something.
fn part_of(product: &Product) -> Option<Box<TaskResult>> {
    if let Product::Result(result) = product { part_of_result(result) } else { None }
}

fn part_of_result(result: &TaskResult) -> Option<Box<TaskResult>> {
    (!acceptance::is_empty(result)).then(|| Box::new(result.clone()))
}

fn leaf_done(
    decision: &mut DecisionBuilder<'_>,
    index: &TaskIndex,
    seq: Seq,
    ending: Ending,
    result: &TaskResult,
) {
    let fault = decision.open().and_then(|run| {
        let given =
            acceptance::Given { ending, result, contract_violation: decision.contract_violation(seq) };
        acceptance::fault(run, index, given)
    });
    let Some(acceptance::Fault { kind, reason, is_part }) = fault else {
        return count_leaf(decision, index, seq, result);
    };
    let part = if is_part { part_of_result(result) } else { None };
    let failure = Failure { kind, ending, outcome: Some(seq), part, reason };
    failure::failed(decision, &index.to_task_id(), failure);
}

/// A result counts.
pub(super) fn count_leaf(
    decision: &mut DecisionBuilder<'_>,
    index: &TaskIndex,
    seq: Seq,
    result: &TaskResult,
) {
    completed(decision, index.to_task_id(), seq);
    if index.is_member() {
        return groups::member_done(decision, index);
    }
    after_result(decision, index, result);
}

/// What follows from the result of a task of the plan.
pub(super) fn after_result(decision: &mut DecisionBuilder<'_>, index: &TaskIndex, result: &TaskResult) {
    if decision.open().is_some_and(|run| run.goal.shadow.is_some()) {
        return;
    }
    review::after_leaf(decision, index, result);
    replan::after_result(decision, index, result);
    conflicts::after_leaf(decision, index);
    let is_alone = decision.open().and_then(RunState::only_task).is_some();
    // An agent that began with the whole goal asks for a plan where it needs one.
    if let Some(advice) = result.advice.as_ref().filter(|advice| advice.refine && !is_alone) {
        want_refinement(decision, index, &advice.reason);
    }
}

fn reflected(decision: &mut DecisionBuilder<'_>, index: &TaskIndex, seq: Seq, reflection: Reflection) {
    completed(decision, TaskId::Reflect(index.clone()), seq);
    let wish = reflection.refine.clone();
    let operations = reflection.operations.clone();
    decision.emit(Reflected { task: index.clone(), reflection });
    let Some(reason) = wish else { return };
    if operations.is_empty() || !refine::brought(decision, index, &reason, &operations) {
        want_refinement(decision, index, &reason);
    }
}

/// Adds to what the next refinement is for. One that was offered already does not hear of it any more; when no
/// further one is allowed, the wish is dropped: the reflection that holds it stands in the record.
pub(super) fn want_refinement(decision: &mut DecisionBuilder<'_>, index: &TaskIndex, reason: &str) {
    let Some(run) = decision.open() else { return };
    let may_be_refined = survey::next_refinement(run) <= run.limits.max_refinements;
    // A verification is about a conflict, and not about the plan.
    if (may_be_refined || run.planning.is_replanning()) && !run.is_verification(index) {
        want_change(decision, format!("{index}: {reason}"));
    }
}

/// Has the plan changed for this reason, without regard to limits: by the plan that is being made, else by a refinement.
pub(super) fn want_change(decision: &mut DecisionBuilder<'_>, reason: String) {
    let Some(run) = decision.open() else { return };
    if run.planning.is_replanning() {
        let number = run.planning.next_replan();
        return decision.emit(ReplanWanted { number, reason });
    }
    let number = survey::next_refinement(run);
    decision.emit(RefinementWanted { number, reason });
}
