//! Tasks that several members do, each as a task of its own: committees, and groups of whom the first good result
//! counts.
//!
//! Members are offered, retried, handed on and put down like any other task. Nothing else follows from how they end
//! but what becomes of their task: plans, reflections and reports know the task alone.

mod opinions;
mod verdict;

use muster_shared::flow::{
    DecidedBy, Ending, FailureKind, GroupVerdict, Membership, Outcome, Pattern, PlanTask, TaskStatus,
    Temperament, View,
};
use muster_shared::ids::{Generation, Queue, TaskId, TaskIndex};
use muster_shared::run::event::{
    MembersBegun, MembersDiscuss, MembersSettled, TaskAborted, TaskReopened, TaskSkipped,
};
use muster_shared::run::{Group, Phase, Request, RunState, TaskState};

use super::builder::DecisionBuilder;
use super::conflicts::tolerance;
use super::control::{asked_by, interrupt};
use super::failure::{self, Failure};
use super::{outcome, survey};

/// How a leaf is given out.
pub(super) fn pattern(run: &RunState, index: &TaskIndex) -> Pattern {
    let task: Option<&PlanTask> = run.plan_task(index);
    let known = task.filter(|_| !index.is_member());
    known.map_or(Pattern::Hierarchical, |task| run.limits.pattern_of(task))
}

/// Whether a task that is due is not offered itself, because members do it.
pub(super) fn is_for_members(run: &RunState, task: &TaskId) -> bool {
    task.as_leaf().is_some_and(|index| pattern(run, index).members() > 1)
}

/// Has members begin what is due and for them, as soon as there is room for one of them.
pub(super) fn begin(
    decision: &mut DecisionBuilder<'_>,
    due: &[TaskId],
    queue: impl Fn(&RunState, &TaskId) -> Option<Queue>,
) {
    for task in due {
        let Some(run) = decision.open().filter(|run| is_for_members(run, task)) else { continue };
        let (Some(queue), TaskId::Leaf(index)) = (queue(run, task), task) else { continue };
        let pattern = pattern(run, index);
        let members: Vec<TaskIndex> =
            ('a'..).take(usize::from(pattern.members())).filter_map(|letter| index.member(letter)).collect();
        if decision.room(&queue) == 0 {
            members.iter().for_each(|_| decision.want(queue.clone()));
            continue;
        }
        let generation = run.tasks.get(task).map_or(Generation(0), |state| state.generation).next();
        decision.emit(MembersBegun { task: index.clone(), generation, pattern, members });
    }
}

/// Members that are to be offered.
pub(super) fn ready_members(run: &RunState) -> impl Iterator<Item = &TaskIndex> {
    run.members_in_work().filter(|member| survey::is_unoffered(run, &member.to_task_id()))
}

/// Members that were not offered yet or are to be offered again, of one group or of all.
pub(super) fn waiting_members<'a>(
    run: &'a RunState,
    of: Option<&'a TaskIndex>,
) -> impl Iterator<Item = &'a TaskIndex> {
    let own = move |member: &&TaskIndex| of.is_none_or(|of| member.is_same_place(of));
    let open = |member: &&TaskIndex| survey::is_open(run, &member.to_task_id());
    run.members_in_work().filter(own).filter(open)
}

/// What a member is told of its group; nothing for any other task.
pub(super) fn membership(run: &RunState, member: &TaskIndex) -> Option<Membership> {
    let group = run.group_in_work(&member.planned()).filter(|_| member.is_member())?;
    let is_committee = matches!(group.pattern, Pattern::Committee { .. });
    let place = group.members.iter().position(|other| other == member);
    Some(Membership {
        members: group.pattern.members(),
        temperament: place.filter(|_| is_committee).map(Temperament::of),
        round: group.round,
        views: group.views.clone(),
    })
}

/// The model that a member uses instead of the run's.
pub(super) fn model(run: &RunState, member: &TaskIndex) -> Option<String> {
    let group = run.group_in_work(&member.planned())?;
    let models = &run.limits.committee.models;
    let place = group.members.iter().position(|other| other == member)?;
    let is_committee = matches!(group.pattern, Pattern::Committee { .. });
    models.get(place % models.len().max(1)).filter(|_| is_committee).cloned()
}

/// How often a task may be tried because members do it: those of a committee are tried again one by one, those of a
/// redundant group together.
pub(super) fn tries(run: &RunState, task: &TaskId) -> Option<u32> {
    let TaskId::Leaf(index) = task else { return None };
    let group = run.group_in_work(&index.planned())?;
    match group.pattern {
        Pattern::Redundant { .. } => index.is_member().then_some(1),
        Pattern::Committee { .. } => (!index.is_member()).then_some(1),
        Pattern::Hierarchical | Pattern::Auction => None,
    }
}

/// A member ended well: the first of a redundant group counts.
pub(super) fn member_done(decision: &mut DecisionBuilder<'_>, member: &TaskIndex) {
    let task = member.planned();
    let group = decision.open().and_then(|run| run.group_in_work(&task));
    if group.is_some_and(|group| matches!(group.pattern, Pattern::Redundant { .. })) {
        let (counts, agree) = (member.clone(), vec![member.clone()]);
        end(decision, &task, GroupVerdict { counts, by: DecidedBy::First, agree, dissent: Vec::new() });
    }
}

/// Settles what the members have come to an end with. Tells whether anything was decided.
pub(super) fn settle(decision: &mut DecisionBuilder<'_>) -> bool {
    let Some(run) =
        decision.open().filter(|run| run.phase == Phase::Executing && run.control.paused.is_none())
    else {
        return false;
    };
    let at_end =
        |(task, group): &(&TaskIndex, &Group)| run.group_in_work(task).is_some() && all_ended(run, group);
    let ready: Vec<TaskIndex> = run.groups.iter().filter(at_end).map(|(task, _)| task.clone()).collect();
    for task in &ready {
        proceed(decision, task);
    }
    !ready.is_empty()
}

/// Number of results that a verdict requires. A failure in a round of discussion does not invalidate earlier results.
fn needed(group: &Group) -> usize {
    match group.pattern {
        Pattern::Committee { .. } if group.round == 0 => group.members.len() / 2 + 1,
        Pattern::Committee { .. } | Pattern::Redundant { .. } | Pattern::Hierarchical | Pattern::Auction => 1,
    }
}

fn all_ended(run: &RunState, group: &Group) -> bool {
    group.members.iter().all(|member| run.planned(member).is_some_and(|state| state.status.is_ended()))
}

/// Results of the members.
fn views(run: &RunState, group: &Group) -> Vec<View> {
    let given = group.members.iter().filter_map(|member| Some((member, survey::result_of(run, member)?)));
    given.map(|(member, result)| verdict::view(member, result)).collect()
}

/// Continues with a group whose members have ended: another round, the verdict, or failure.
fn proceed(decision: &mut DecisionBuilder<'_>, task: &TaskIndex) {
    let Some(run) = decision.open() else { return };
    let Some(group) = run.group_in_work(task) else { return };
    let found = views(run, group);
    if found.len() < needed(group) {
        return fail(decision, task);
    }
    let Some(voted) = verdict::verdict(&found, tolerance(run)) else {
        return fail(decision, task);
    };
    let (generation, round) = (generation(run, task), group.round + 1);
    let open = voted.by != DecidedBy::Unanimity;
    match group.pattern {
        Pattern::Committee { rounds, .. } if open && round <= rounds && found.len() > 1 => {
            decision.emit(MembersDiscuss { task: task.clone(), generation, round, views: found });
        }
        Pattern::Committee { .. } | Pattern::Redundant { .. } | Pattern::Hierarchical | Pattern::Auction => {
            end(decision, task, voted);
        }
    }
}

fn generation(run: &RunState, task: &TaskIndex) -> Generation {
    run.planned(task).map_or(Generation(0), |state| state.generation)
}

/// Cuts off the members that have not ended.
fn stop_members(decision: &mut DecisionBuilder<'_>, task: &TaskIndex, reason: &str) {
    for member in members_open(decision, task) {
        interrupt(decision, &member, reason);
        decision.emit(TaskAborted { task: member, reason: reason.to_owned() });
    }
}

fn members_open(decision: &DecisionBuilder<'_>, task: &TaskIndex) -> Vec<TaskId> {
    let Some(run) = decision.open() else { return Vec::new() };
    let members = run.group_in_work(task).into_iter().flat_map(|group| &group.members);
    let open = members.filter(|member| run.planned(member).is_some_and(|state| !state.status.is_ended()));
    open.map(|member| member.to_task_id()).collect()
}

/// Ends the task with a verdict, and whoever is still at it.
fn end(decision: &mut DecisionBuilder<'_>, task: &TaskIndex, verdict: GroupVerdict) {
    for member in members_open(decision, task) {
        interrupt(decision, &member, "another member's result counts");
    }
    let Some(run) = decision.open() else { return };
    let generation = generation(run, task);
    decision.emit(MembersSettled { task: task.clone(), generation, verdict });
    let result = decision.open().and_then(|run| survey::result_of(run, task)).cloned();
    if let Some(result) = result {
        outcome::after_result(decision, task, &result);
    }
}

/// Too few members gave a result: the task failed, and is tried again where that is of use.
fn fail(decision: &mut DecisionBuilder<'_>, task: &TaskIndex) {
    let Some(run) = decision.open() else { return };
    let Some(group) = run.group_in_work(task) else { return };
    let states: Vec<(&TaskIndex, &TaskState)> =
        group.members.iter().filter_map(|member| Some((member, run.planned(member)?))).collect();
    let given = states.iter().filter(|(_, state)| state.status == TaskStatus::Completed).count();
    let why: Vec<String> = states
        .iter()
        .filter(|(_, state)| state.status != TaskStatus::Completed)
        .map(|(member, state)| {
            format!("{member}: {}", state.reasons.last().map_or("it gave nothing", String::as_str))
        })
        .collect();
    let outcomes = states.iter().filter_map(|(_, state)| state.outcome.as_deref());
    let failed: Vec<&Outcome> = outcomes.filter(|outcome| !outcome.ending.is_success()).collect();
    // What one of them leaves to people is not for the others to give up.
    let escalated = failed.iter().find(|outcome| outcome.ending == Ending::Escalate);
    let (kind, ending) =
        escalated.or(failed.last()).map_or((FailureKind::AgentFault, Ending::AgentFailed), |outcome| {
            (FailureKind::of(outcome), outcome.ending)
        });
    let reason = format!(
        "{given} of its {} members gave a result, {} are needed ({})",
        group.members.len(),
        needed(group),
        why.join("; ")
    );
    failure::failed(
        decision,
        &task.to_task_id(),
        Failure { kind, ending, outcome: None, part: None, reason },
    );
}

/// There is no time left for members: what they gave so far counts.
pub(super) fn conclude(decision: &mut DecisionBuilder<'_>, reason: &str) {
    let Some(run) = decision.open() else { return };
    let tasks = run.groups.keys().filter(|task| run.group_in_work(task).is_some());
    for task in tasks.cloned().collect::<Vec<_>>() {
        stop_members(decision, &task, reason);
        let Some(run) = decision.open() else { return };
        let found = run.group_in_work(&task).map(|group| views(run, group)).unwrap_or_default();
        let generation = generation(run, &task);
        match verdict::verdict(&found, tolerance(run)) {
            Some(verdict) => decision.emit(MembersSettled { task, generation, verdict }),
            None => {
                decision.emit(TaskAborted { task: TaskId::Leaf(task), reason: reason.to_owned() });
            }
        }
    }
}

/// Leaves out one member; the others go on.
pub(super) fn skip(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    member: &TaskIndex,
) -> Result<(), String> {
    let run = decision.require_open()?;
    let id = known(run, member)?;
    if run.tasks.get(&id).is_some_and(|state| state.status.is_ended()) {
        return Err(format!("{member} has ended: what it gave is counted with its task"));
    }
    let reason = asked_by(request);
    interrupt(decision, &id, &reason);
    decision.emit(TaskSkipped { task: member.clone(), reason, by_person: false });
    Ok(())
}

/// Has one member begin anew while its task is in work.
pub(super) fn redo(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    member: &TaskIndex,
) -> Result<(), String> {
    let run = decision.require_open()?;
    let id = known(run, member)?;
    if !run.tasks.get(&id).is_some_and(TaskState::was_begun) {
        return Err(format!("{member} has not begun: there is nothing to do again"));
    }
    let (reason, shows_result) = (asked_by(request), !request.reason.trim().is_empty());
    interrupt(decision, &id, &reason);
    decision.emit(TaskReopened { task: id, reason, shows_result });
    Ok(())
}

/// The task of a member that is at it.
fn known(run: &RunState, member: &TaskIndex) -> Result<TaskId, String> {
    let task = member.planned();
    let id = member.to_task_id();
    if run.members_in_work().any(|other| other == member) {
        return Ok(id);
    }
    if run.tasks.contains_key(&id) {
        return Err(format!("{task} has ended, and {member} with it: ask for {task} as a whole"));
    }
    Err(format!("there is no member {member}: `muster show` names those of {task}"))
}

/// Why a member cannot have a goal of its own.
pub(super) fn no_own_goal(member: &TaskIndex) -> String {
    format!("{member} has the goal of {0}: edit {0}, and all its members begin anew", member.planned())
}
