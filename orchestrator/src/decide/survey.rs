//! Questions to a run's state that several decisions ask.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::flow::{
    About, BlueprintBrief, Ending, LeafRef, Plan, PlanTask, Reply, Specialty, TaskDraft, TaskResult,
    TaskStatus,
};
use muster_shared::ids::{AgentId, Generation, Queue, Role, TaskId, TaskIndex};
use muster_shared::plan::tools::Nameable;
use muster_shared::plan::{Values, order};
use muster_shared::run::{QuestionEnd, RunState, Statuses, TaskEnd, TaskState, end_of};

use super::{budget, conflicts, trials};

/// How many offers of a run each queue holds, taken by an agent or not.
#[must_use]
pub fn in_work(run: &RunState) -> BTreeMap<Queue, u32> {
    let mut held: BTreeMap<Queue, u32> = BTreeMap::new();
    for task in run.tasks.values().filter(|task| task.status.is_in_work()) {
        if let Some(queue) = &task.queue {
            *held.entry(queue.clone()).or_default() += 1;
        }
    }
    held
}

/// How many tasks of a run each agent has in hand that it took from its role's queue.
#[must_use]
pub fn in_hands(run: &RunState) -> BTreeMap<AgentId, u32> {
    let mut hands: BTreeMap<AgentId, u32> = BTreeMap::new();
    for task in run.tasks.values().filter(|task| task.status == TaskStatus::Processing) {
        if let (Some(Queue::Role(_)), Some(agent)) = (&task.queue, &task.agent) {
            *hands.entry(agent.clone()).or_default() += 1;
        }
    }
    hands
}

/// What tasks of the plan may name: these tools, and the blueprints that came with the goal where runs may stand as deep.
pub(super) fn nameable<'a>(run: &'a RunState, tools: &'a [String]) -> Nameable<'a> {
    Nameable { tools, blueprints: blueprints(run) }
}

/// The blueprints that tasks of the plan may name.
pub(super) fn blueprints(run: &RunState) -> &[BlueprintBrief] {
    let depth = run.goal.parent.as_ref().map_or(0, |parent| parent.depth);
    let may_nest = depth < run.limits.max_nesting;
    if may_nest { &run.goal.blueprints } else { &[] }
}

/// Roles that a leaf can be given to: those that come with Muster for it, and the specialists that are there, or were a
/// moment ago.
pub(super) fn leaf_roles(capacity: &BTreeMap<Queue, u32>, specialists: &[Specialty]) -> Vec<Role> {
    let online = capacity.keys().filter_map(Queue::role);
    let known: BTreeSet<&Role> = online.chain(specialists.iter().map(|known| &known.role)).collect();
    let known = known.into_iter().filter(|role| matches!(role, Role::Specialist(_))).cloned();
    [Role::Researcher, Role::Worker].into_iter().chain(known).collect()
}

/// The same without roles that have no agent and will have none soon, unless no role has one; and without roles that
/// stand in for others in a trial: plans name those others.
pub(super) fn roles_for_planners(
    run: &RunState,
    capacity: &BTreeMap<Queue, u32>,
    specialists: &[Specialty],
) -> Vec<Role> {
    let mut roles = leaf_roles(capacity, specialists);
    // Tasks of the run waited for a missing role before.
    let comes_soon = |role: &Role| {
        !run.missing_roles.contains_key(role) && specialists.iter().any(|one| one.role == *role)
    };
    let is_online = |role: &Role| capacity.contains_key(&Queue::Role(role.clone())) || comes_soon(role);
    if roles.iter().any(is_online) {
        roles.retain(is_online);
    }
    roles.retain(|role| trials::only_tried(run).all(|tried| tried != role));
    roles
}

/// The roles among those named that may still come: a task waits for them as long as the run's limits say.
pub(super) fn roles_to_come<'a>(run: &RunState, named: impl IntoIterator<Item = &'a str>) -> Vec<Role> {
    let may_come = run.limits.wait_for_role_ms > 0;
    let roles = named.into_iter().filter_map(|name| name.trim().to_lowercase().parse::<Role>().ok());
    roles.filter(|role| may_come && matches!(role, Role::Specialist(_))).collect()
}

/// The roles that tasks of a plan name.
pub(super) fn roles_named(tasks: &[TaskDraft]) -> Vec<&str> {
    let below = tasks.iter().flat_map(|task| roles_named(&task.subtasks));
    tasks.iter().filter_map(|task| task.role.as_deref()).chain(below).collect()
}

/// Whether a task is to be offered as soon as it is due: never offered, or its last try failed.
pub(super) fn is_unoffered(run: &RunState, task: &TaskId) -> bool {
    run.tasks.get(task).is_none_or(|task| task.status == TaskStatus::Created)
}

/// Whether a task has not ended and is in nobody's hands: to be offered, or waiting.
pub(super) fn is_open(run: &RunState, task: &TaskId) -> bool {
    let open = |task: &TaskState| matches!(task.status, TaskStatus::Created | TaskStatus::Waiting);
    run.tasks.get(task).is_none_or(open)
}

/// Whether a task waits for something.
pub(super) fn anything_waits(run: &RunState) -> bool {
    run.is_held() || run.tasks.values().any(|task| task.status == TaskStatus::Waiting)
}

/// Whether somebody can be asked how to go on: people have a say in the run, or it is watched.
pub(super) fn somebody_is_there(run: &RunState) -> bool {
    run.limits.people.are_there() || run.goal.attended
}

/// Whether what the task was allowed to use did not suffice.
pub(super) fn ran_short(task: &TaskState) -> bool {
    task.outcome.as_ref().is_some_and(|outcome| outcome.ending == Ending::BudgetExhausted)
}

/// Whether anything is in a queue or in an agent's hands.
pub(super) fn anything_in_work(run: &RunState) -> bool {
    run.tasks.values().any(is_offered)
}

/// Whether a task is in a queue or in an agent's hands. A parent whose leaves are is not, nor is a task whose members
/// are: nobody was offered it.
pub(super) fn is_offered(task: &TaskState) -> bool {
    task.status.is_in_work() && task.generation > Generation(0) && task.queue.is_some()
}

/// The states of planned tasks as a change of plan has to see them: a task that was offered has begun, also while it
/// waits to be tried again. Taken out, it would leave a generation in the record that another task could be read into.
pub(super) fn statuses_to_refine(run: &RunState) -> Statuses {
    let mut statuses = run.statuses();
    for (index, status) in &mut statuses {
        let waits_again = run.planned(index).is_some_and(|task| task.generation > Generation(0));
        if *status == TaskStatus::Created && waits_again {
            *status = TaskStatus::Queued;
        }
    }
    statuses
}

/// What goals of a new plan may use of the shared context.
pub(super) fn values(run: &RunState) -> Values {
    Values::new(run.peers.context.keys(), &run.statuses())
}

/// The leaves that ended with an outcome and wait for somebody to reflect on them, in order, as far as the run wants
/// reflections. Of what was left out there is nothing to learn but the reason, which is known.
pub(super) fn unreflected(run: &RunState) -> Vec<TaskIndex> {
    let level = run.limits.reflection;
    if level.needs_others() && leaves(run).all(|(_, _, state)| state.status.is_ended()) {
        return Vec::new();
    }
    let wanted = |state: &TaskState| state.outcome.as_ref().is_some_and(|outcome| level.reflects_on(outcome));
    let ended = leaves(run).filter(|(_, _, state)| state.status.is_ended() && wanted(state));
    // What a new plan was made for is known to who made it.
    let ended = ended.filter(|(index, _, _)| !(level.needs_others() && run.planning.is_superseded(index)));
    let indices =
        ended.filter(|(_, _, state)| state.status != TaskStatus::Skipped).map(|(index, _, _)| index.clone());
    indices.filter(|index| is_unoffered(run, &TaskId::Reflect(index.clone()))).collect()
}

/// The number that a refinement wanted now would have: that of the one being collected for, else a new one.
pub(super) fn next_refinement(run: &RunState) -> u32 {
    match run.refining.wanted.last_key_value() {
        None => 1,
        Some((number, _)) if is_untouched(run, *number) && !run.refining.by_reflection.contains(number) => {
            *number
        }
        Some((number, _)) => number + 1,
    }
}

/// A refinement that is wanted and has not ended, if there is one.
pub(super) fn open_refinement(run: &RunState) -> Option<u32> {
    let is_open = |number: &&u32| {
        !run.refining.by_reflection.contains(number)
            && run.tasks.get(&TaskId::Refine(**number)).is_none_or(|task| !task.status.is_ended())
    };
    run.refining.wanted.keys().find(is_open).copied()
}

fn is_untouched(run: &RunState, number: u32) -> bool {
    let task = run.tasks.get(&TaskId::Refine(number));
    task.is_none_or(|task| task.generation.0 == 0 && !task.status.is_ended())
}

/// The leaves that are ready to be offered, and those that a wanted refinement holds back: leaves that depend on others
/// would use results that it may be about to complete. Leaves of higher priority come first, else depth first.
pub(super) fn ready_leaves(run: &RunState) -> (Vec<TaskIndex>, Vec<TaskIndex>) {
    let Some(plan) = &run.plan else { return Default::default() };
    let hold = open_refinement(run).map(TaskId::Refine).is_some_and(|task| {
        run.tasks.get(&task).is_some_and(|task| task.status.is_in_work()) || budget::affords(run, &task)
    });
    if run.planning.is_replanning() {
        return Default::default();
    }
    let free = |index: &TaskIndex| !hold || order::dependencies(plan, index).is_empty();
    let ready = order::ready(plan, &run.statuses()).into_iter();
    let mut ready: Vec<TaskIndex> = ready.filter(|index| !conflicts::holds(run, plan, index)).collect();
    ready.sort_by_key(|index| std::cmp::Reverse(plan.priority(index)));
    ready.into_iter().partition(free)
}

/// What leaves gave, in order.
pub(super) fn results(run: &RunState) -> Vec<LeafRef> {
    results_of(run, |_| true)
}

/// Whether any leaf gave something.
pub(super) fn has_results(run: &RunState) -> bool {
    leaves(run).any(|(_, _, state)| result(state).is_some_and(|result| !result.is_only_a_wish()))
}

/// What these leaves gave, in order.
fn results_of(run: &RunState, which: impl Fn(&TaskIndex) -> bool) -> Vec<LeafRef> {
    let leaves = leaves(run).filter(|(index, _, _)| which(index));
    leaves.filter_map(|(index, task, state)| Some(leaf_ref(index, task, result(state)?))).collect()
}

/// What the tasks that this one depends on gave, in order.
pub(super) fn inputs(run: &RunState, index: &TaskIndex) -> Vec<LeafRef> {
    let Some(plan) = &run.plan else { return Vec::new() };
    let used = order::dependencies(plan, index);
    results_of(run, |index| used.contains(index))
}

/// The tasks that this one depends on and that ended without giving anything: index, name, and why.
pub(super) fn left_out(run: &RunState, index: &TaskIndex) -> Vec<(TaskIndex, String, String)> {
    let Some(plan) = &run.plan else { return Vec::new() };
    let needed = order::dependencies(plan, index);
    fruitless(run).into_iter().filter(|(index, _, _)| needed.contains(index)).collect()
}

/// Leaves that have not ended: index and name.
pub(super) fn not_ended(run: &RunState) -> Vec<(TaskIndex, String)> {
    let open = leaves(run).filter(|(_, _, state)| !state.status.is_ended());
    open.map(|(index, task, _)| (index.clone(), task.name.clone())).collect()
}

/// Leaves that ended without giving anything: index, name, and why.
pub(super) fn fruitless(run: &RunState) -> Vec<(TaskIndex, String, String)> {
    let ended = leaves(run).filter(|(_, _, state)| state.status.is_ended() && result(state).is_none());
    ended
        .filter(|(_, _, state)| state.status != TaskStatus::Split)
        .map(|(index, task, state)| (index.clone(), task.name.clone(), why(state)))
        .collect()
}

/// The same without tasks that others replaced.
pub(super) fn not_replaced(run: &RunState) -> Vec<(TaskIndex, String, String)> {
    fruitless(run).into_iter().filter(|(index, _, _)| end_of(run, index) != TaskEnd::Replaced).collect()
}

/// Names and goals of the tasks that people skipped.
pub(super) fn skipped_by_people(run: &RunState) -> BTreeSet<String> {
    let skipped = leaves(run).filter(|(index, _, _)| end_of(run, index) == TaskEnd::Skipped);
    skipped.flat_map(|(_, task, _)| [task.name.clone(), task.goal.clone()]).collect()
}

/// What earlier runs taught that concern the goal.
pub(super) fn taught(run: &RunState) -> Vec<String> {
    let of_conversation = run.goal.conversation.iter().flat_map(|turn| &turn.lessons);
    let mut taught: Vec<String> = Vec::new();
    for lesson in run.planning.lessons.iter().chain(of_conversation) {
        if !taught.contains(lesson) {
            taught.push(lesson.clone());
        }
    }
    taught
}

/// One line for each critical leaf that gave nothing.
pub(super) fn failed_critical(run: &RunState) -> Vec<String> {
    let critical = |index: &TaskIndex| {
        run.plan_task(index).is_some_and(|task| task.critical) && end_of(run, index) != TaskEnd::Skipped
    };
    let failed = not_replaced(run).into_iter().filter(|(index, _, _)| critical(index));
    failed
        .map(|(index, name, why)| format!("{index} {name}, which the goal cannot do without, failed: {why}"))
        .collect()
}

/// Parts of the goal that the planner or reflections named as uncovered and that no finding answers, without repetition.
pub(super) fn uncovered(run: &RunState) -> Vec<String> {
    let answered = |subquestion: &str| {
        let mut results = leaves(run).filter_map(|(_, _, state)| result(state));
        results.any(|result| result.findings.iter().any(|found| found.subquestion == subquestion))
    };
    let mut uncovered = run.planning.uncovered.clone();
    for subquestion in run.reflections().flat_map(|(_, reflection)| &reflection.uncovered) {
        if !answered(subquestion) && !uncovered.contains(subquestion) {
            uncovered.push(subquestion.clone());
        }
    }
    uncovered
}

/// The leaves of the plan with their states, depth first.
pub(super) fn leaves(run: &RunState) -> impl Iterator<Item = (&TaskIndex, &PlanTask, &TaskState)> {
    let leaves = run.plan.iter().flat_map(Plan::leaves);
    leaves.filter_map(|(index, task)| Some((index, task, run.tasks.get(&index.to_task_id())?)))
}

/// What a leaf gave, if it did.
pub(super) fn result_of<'a>(run: &'a RunState, index: &TaskIndex) -> Option<&'a TaskResult> {
    result(run.planned(index)?)
}

/// What a leaf gave, if it ended well.
pub(super) fn result(state: &TaskState) -> Option<&TaskResult> {
    if state.status != TaskStatus::Completed {
        return None;
    }
    state.outcome.as_ref()?.result()
}

fn leaf_ref(index: &TaskIndex, task: &PlanTask, result: &TaskResult) -> LeafRef {
    let (name, goal, query) = (task.name.clone(), task.goal.clone(), task.query.clone());
    LeafRef { index: index.clone(), name, goal, query, result: result.clone() }
}

pub(super) fn why(state: &TaskState) -> String {
    state.reasons.last().cloned().unwrap_or_else(|| "it did not take place".to_owned())
}

/// What people said when they were asked what the goal means: question and answer.
pub(super) fn answers_about_goal(run: &RunState) -> Vec<(String, String)> {
    let about_goal = run.questions.values().filter(|asked| asked.about == About::Goal);
    about_goal
        .filter_map(|asked| match asked.end.as_ref()? {
            QuestionEnd::Answered(Reply { text, .. }) => {
                let text =
                    text.as_deref().unwrap_or("(nobody answered in time: go on with what is most likely)");
                Some((asked.question.text.clone(), text.to_owned()))
            }
            QuestionEnd::Withdrawn(_) => None,
        })
        .collect()
}
