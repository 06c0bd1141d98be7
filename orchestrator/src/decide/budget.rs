//! How a run's budget is shared out: every offer carries what its task may use, and that much is set aside until the
//! task's outcome says what it did use. What was set aside and what was used together never exceed the budget.
//!
//! A generation that was begun and closed without an outcome counts as having used all it was given: nobody knows
//! better. One that was not begun gives it back.

use std::collections::BTreeSet;

use muster_shared::flow::{Budget, Plan, ReflectionLevel};
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::run::event::TaskSkipped;
use muster_shared::run::{Allotment, Phase, RunState, StopReason, TaskState};

use super::builder::DecisionBuilder;
use super::{control, groups, rights, survey};

/// The least part of the tokens or of the cost that is worth beginning a task with.
const LEAST_PART: u64 = 32;

/// The part of the budget that is kept for the writer.
const WRITERS_PART: u64 = 10;

/// Why tasks are left out.
pub(super) const USED_UP: &str = "the budget of the run is used up";

/// What a task may use if it is offered now; nothing when too little is left for it to be of use.
pub(super) fn allot(run: &RunState, task: &TaskId) -> Option<Budget> {
    let (whole, most) = (run.limits.budget, most(run, task));
    if whole.is_unlimited() {
        return Some(most);
    }
    let free = free(run);
    let least = least(&whole);
    let waiting = waiting_leaves(run).count() + waiting_groups(run);
    let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
    let (usable, shares) = match task {
        TaskId::Write => return free.covers(&one(&whole)).then(|| free.tighter(&most)),
        // Half: a plan without means to carry it out is worth nothing.
        TaskId::Plan => (free.without(&writers(run, &whole)), 2),
        TaskId::Leaf(index) if index.is_member() => {
            let members =
                u64::try_from(groups::waiting_members(run, Some(index)).count()).unwrap_or(u64::MAX);
            (free.without(&writers(run, &whole)), waiting.max(1).saturating_mul(members.max(1)))
        }
        TaskId::Leaf(_) => (free.without(&writers(run, &whole)), waiting.max(1)),
        // Leaves come first: these get a share only where every leaf that waits can still have one.
        TaskId::Reflect(_) | TaskId::Refine(_) | TaskId::Settle(_) | TaskId::DraftReview(_) => {
            let kept = least.map(|_, least| least.saturating_mul(waiting));
            // Upon a review something may have to be done again: half stays for that.
            let least_shares = if matches!(task, TaskId::DraftReview(_)) { 2 } else { 1 };
            let shares = waiting.saturating_add(to_reflect_on(run)).max(least_shares);
            (free.without(&writers(run, &whole)).without(&kept), shares)
        }
    };
    if !usable.covers(&least) {
        return None;
    }
    let share = usable.map(|_, free| free / shares);
    let floor = least.parts();
    Some(share.map(|part, share| share.max(floor[part].unwrap_or(0))).tighter(&most))
}

/// The most that a task may use: members share what their task may.
fn most(run: &RunState, task: &TaskId) -> Budget {
    let whole = rights::budget(run, task);
    let group =
        task.leaf().filter(|index| index.is_member()).and_then(|index| run.group_in_work(&index.planned()));
    group.map_or(whole, |group| group.share_of(&whole))
}

/// Groups with members that wait to be offered.
fn waiting_groups(run: &RunState) -> usize {
    let groups: BTreeSet<TaskIndex> = groups::waiting_members(run, None).map(TaskIndex::planned).collect();
    groups.len()
}

/// Whether a task could be offered as far as the budget goes.
pub(super) fn affords(run: &RunState, task: &TaskId) -> bool {
    allot(run, task).is_some()
}

/// Leaves out what can never be paid for any more: nothing is in work that could give anything back.
pub(super) fn leave_out_the_rest(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open() else { return };
    if run.limits.budget.is_unlimited() {
        return;
    }
    let left: Vec<TaskIndex> =
        waiting_leaves(run).chain(groups::waiting_members(run, None)).cloned().collect();
    for task in left {
        decision.emit(TaskSkipped { task, reason: USED_UP.to_owned(), by_person: false });
    }
}

/// Stops a run that waits for a task it can never pay for: without a plan, or without a writer, nothing follows.
pub(super) fn stop_if_stuck(decision: &mut DecisionBuilder<'_>) {
    let Some(run) = decision.open() else { return };
    let next = match run.phase {
        Phase::Planning => TaskId::Plan,
        Phase::Writing => TaskId::Write,
        Phase::Executing | Phase::Ended => return,
    };
    if survey::is_unoffered(run, &next) && !affords(run, &next) {
        let reason = format!("{} before {}", used_up(run), in_words(&next));
        control::abort(decision, StopReason::BudgetExhausted, reason);
    }
}

/// Stops a run whose plan or report could not be made with what it may use.
pub(super) fn stop_without(decision: &mut DecisionBuilder<'_>, task: &TaskId, reason: &str) {
    let Some(run) = decision.open() else { return };
    let reason = format!("{} before {}: {reason}", used_up(run), in_words(task));
    control::abort(decision, StopReason::BudgetExhausted, reason);
}

fn used_up(run: &RunState) -> String {
    format!("its budget ({}) was used up", limits(run))
}

/// The limits that bound the run: its own, else those of the fleet, which agents keep.
fn limits(run: &RunState) -> String {
    let own = run.limits.budget;
    if own.is_unlimited() { "the fleet's".to_owned() } else { own.to_string() }
}

const fn in_words(task: &TaskId) -> &'static str {
    if matches!(task, TaskId::Plan) { "there was a plan" } else { "the report was written" }
}

/// A sentence for the report when tasks were left out or cut short.
pub(super) fn note(run: &RunState) -> Option<String> {
    let spent = |reasons: &Vec<String>| reasons.iter().any(|reason| reason.contains(USED_UP));
    let left_out = run.tasks.values().filter(|task| spent(&task.reasons)).count();
    let short = run.tasks.values().filter(|task| survey::ran_short(task)).count();
    if left_out + short == 0 {
        return None;
    }
    Some(format!(
        "The budget did not suffice ({}): {left_out} left out, {short} cut short. Ask again with more to have it all \
         done.",
        limits(run)
    ))
}

/// What is neither used nor set aside.
fn free(run: &RunState) -> Budget {
    let left = run.limits.budget.left(&run.spending.used);
    // What a child may use is its task's: it counts as used when the child tells what it used.
    let children = run.children.values().filter(|child| child.end.is_none()).map(|child| &child.goal.budget);
    let left = children.fold(left, |left, budget| left.without(budget));
    run.spending
        .allotted
        .iter()
        .filter(|kept| is_open(run, kept))
        .fold(left, |left, kept| left.without(&kept.budget))
}

/// Whether what was set aside may still be used, or may have been.
fn is_open(run: &RunState, kept: &Allotment) -> bool {
    run.tasks.get(&kept.task).is_some_and(|task| {
        kept.generation < task.generation || task.status.is_in_work() || task.attempt.0 > 0
    })
}

/// Leaves that were not offered yet or are to be offered again.
fn waiting_leaves(run: &RunState) -> impl Iterator<Item = &TaskIndex> {
    let leaves = run.plan.iter().flat_map(Plan::leaves).map(|(index, _)| index);
    leaves.filter(|index| survey::is_open(run, &index.to_task_id()))
}

/// Leaves that may still be reflected on; each of them wants a share.
fn to_reflect_on(run: &RunState) -> u64 {
    let leaves = run.plan.iter().flat_map(Plan::leaves).map(|(index, _)| index);
    let level = run.limits.reflection;
    let may = |index: &&TaskIndex| match run.planned(index) {
        Some(TaskState { outcome: Some(outcome), .. }) => level.reflects_on(outcome),
        // What is reflected on only if it has to be keeps nothing from those that have to be done.
        Some(_) | None => level != ReflectionLevel::None && !level.needs_others(),
    };
    let open = leaves.filter(|index| survey::is_unoffered(run, &TaskId::Reflect((*index).clone())));
    let open = open.filter(may);
    u64::try_from(open.count()).unwrap_or(u64::MAX)
}

/// The least that is worth beginning a task with.
fn least(whole: &Budget) -> Budget {
    let one = one(whole).parts();
    let small = whole.map(|_, limit| limit / LEAST_PART);
    // Calls and steps are worth something one by one.
    Budget { model_calls: one[0], steps: one[3], ..small.map(|_, part| part.max(1)) }
}

/// One of each part that is limited.
fn one(whole: &Budget) -> Budget {
    whole.map(|_, _| 1)
}

/// What is kept for the writer; nothing where the only task's result is the report.
fn writers(run: &RunState, whole: &Budget) -> Budget {
    let has_writer = run.only_task().is_none();
    whole.map(|_, limit| if has_writer { limit.div_ceil(WRITERS_PART) } else { 0 })
}
