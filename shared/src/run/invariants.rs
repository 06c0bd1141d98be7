//! What must hold of every run at every position of its record, by name.
//!
//! Each rule looks at the state before an entry, the entry, and the state after it. Tests and simulations check
//! all of [`ALL`] after every entry they fold.

use super::event::{Entry, RecordEvent, RunEvent, StopReason};
use super::event::{TaskCompleted, TaskFailed, TaskQuarantined, TaskReopened, TaskRetried, TaskTakenBack};
use super::state::{RunState, RunStatus};
use super::task_state::TaskState;
use crate::flow::{TaskOffered, TaskStatus, Usage};
use crate::ids::{TaskId, TaskIndex};
use crate::plan::{check, order};

/// A rule with a name.
#[derive(Debug, Clone, Copy)]
pub struct Invariant {
    /// What it is called in reports.
    pub name: &'static str,
    /// Says what is wrong, if something is: state before, entry, state after.
    pub check: fn(&RunState, &Entry, &RunState) -> Result<(), String>,
}

/// All rules.
pub const ALL: [Invariant; 17] = [
    Invariant { name: "positions only rise", check: positions_rise },
    Invariant { name: "a generation never falls", check: generations_rise },
    Invariant { name: "what was offered stays in the plan", check: offered_stays },
    Invariant { name: "no task is in work without an offer", check: work_needs_an_offer },
    Invariant { name: "a task waits where its state says so, and nowhere else", check: waiting_is_told },
    Invariant { name: "one outcome per generation", check: one_outcome_per_generation },
    Invariant { name: "a leaf is offered after what it needs ended", check: dependencies_ended },
    Invariant { name: "what ended well stays unless it is reopened", check: completed_stays },
    Invariant { name: "nothing is offered while the run is paused", check: paused_offers_nothing },
    Invariant { name: "an ended run has no further events", check: ended_is_ended },
    Invariant { name: "a completed run has one report, any other at most what there was", check: one_report },
    Invariant { name: "usage never falls", check: usage_rises },
    Invariant { name: "the plan has no cycle and every task of it a state", check: plan_is_sound },
    Invariant { name: "no member is in work without its task", check: members_end_with_their_task },
    Invariant { name: "a report that was drafted is delivered", check: drafts_are_delivered },
    Invariant { name: "a report is not written again without end", check: rounds_are_bounded },
    Invariant { name: "a task has no more rights than those before it", check: rights_only_shrink },
];

/// Checks all rules.
///
/// # Errors
/// The name of each rule that is broken, and how.
pub fn check_all(before: &RunState, entry: &Entry, after: &RunState) -> Result<(), Vec<String>> {
    let broken = ALL.iter().filter_map(|rule| {
        let problem = (rule.check)(before, entry, after).err()?;
        Some(format!("at {}: {}: {problem}", entry.seq, rule.name))
    });
    let broken: Vec<String> = broken.collect();
    if broken.is_empty() { Ok(()) } else { Err(broken) }
}

fn positions_rise(before: &RunState, _: &Entry, after: &RunState) -> Result<(), String> {
    ensure(after.folded >= before.folded && after.decided >= before.decided, || "one fell".to_owned())?;
    ensure(after.decided <= after.folded, || {
        format!("decided at {}, folded up to {}", after.decided, after.folded)
    })
}

fn generations_rise(before: &RunState, _: &Entry, after: &RunState) -> Result<(), String> {
    for (task, old) in &before.tasks {
        if let Some(new) = after.tasks.get(task) {
            let rises = (new.generation, new.attempt) >= (old.generation, old.attempt);
            ensure(rises, || format!("task {task} fell back to generation {}", new.generation))?;
        }
    }
    Ok(())
}

fn offered_stays(before: &RunState, _: &Entry, after: &RunState) -> Result<(), String> {
    let mut offered = before.tasks.iter().filter(|(_, task)| task.generation.0 > 0).map(|(task, _)| task);
    match offered.find(|task| !after.tasks.contains_key(*task)) {
        Some(task) => Err(format!("task {task} is gone")),
        None => Ok(()),
    }
}

fn work_needs_an_offer(_: &RunState, _: &Entry, after: &RunState) -> Result<(), String> {
    let derived = |task: &TaskId| match (task, &after.plan) {
        (TaskId::Leaf(index), Some(plan)) => !plan.is_leaf(&index.planned()) || is_for_members(after, index),
        _ => false,
    };
    for (task, state) in after.tasks.iter().filter(|(task, _)| !derived(task)) {
        let offered = state.generation.0 > 0 && state.queue.is_some() && state.deadline.is_some();
        match state.status {
            TaskStatus::Processing => {
                ensure(offered && state.agent.is_some(), || format!("task {task}"))?;
            }
            TaskStatus::Queued | TaskStatus::Completed => ensure(offered, || format!("task {task}"))?,
            TaskStatus::Created
            | TaskStatus::Waiting
            | TaskStatus::Failed
            | TaskStatus::Aborted
            | TaskStatus::Skipped
            | TaskStatus::Blocked
            | TaskStatus::Split => {}
        }
    }
    Ok(())
}

fn waiting_is_told(_: &RunState, _: &Entry, after: &RunState) -> Result<(), String> {
    let differs = |state: &TaskState| (state.status == TaskStatus::Waiting) != state.waiting.is_some();
    match after.tasks.iter().find(|(_, state)| differs(state)) {
        Some((task, state)) => Err(format!("task {task} is {:?}", state.status)),
        None => Ok(()),
    }
}

/// Members are offered in place of their task.
fn is_for_members(run: &RunState, index: &TaskIndex) -> bool {
    run.groups.contains_key(index) && run.planned(index).is_some_and(|state| state.queue.is_none())
}

fn one_outcome_per_generation(before: &RunState, entry: &Entry, _: &RunState) -> Result<(), String> {
    let mut ended = std::collections::BTreeSet::new();
    for event in entry.event.events() {
        if let RunEvent::TaskCompleted(TaskCompleted { task, generation, .. })
        | RunEvent::TaskRetried(TaskRetried { task, generation, .. })
        | RunEvent::TaskTakenBack(TaskTakenBack { task, generation, .. })
        | RunEvent::TaskFailed(TaskFailed { task, generation, .. })
        | RunEvent::TaskQuarantined(TaskQuarantined { task, generation, .. }) = event
        {
            ensure(ended.insert((task, generation)), || format!("task {task} generation {generation}"))?;
            let over = before
                .tasks
                .get(task)
                .is_some_and(|state| state.generation == *generation && state.status.is_ended());
            ensure(!over, || format!("task {task} generation {generation} had ended"))?;
        }
    }
    Ok(())
}

fn dependencies_ended(before: &RunState, entry: &Entry, after: &RunState) -> Result<(), String> {
    let (Some(offer), Some(plan)) = (offer_in(entry), &after.plan) else { return Ok(()) };
    let TaskId::Leaf(leaf) = &offer.task else { return Ok(()) };
    let leaf = &leaf.planned();
    // A leaf that was offered before had its turn: a later change of plan does not take it back.
    if before.planned(leaf).is_some_and(|state| state.generation.0 > 0) {
        return Ok(());
    }
    // A decision may end the last dependency and make the offer.
    let statuses = after.statuses();
    let open = |needed: &TaskIndex| !statuses.get(needed).is_some_and(|status| status.is_ended());
    match order::dependencies(plan, leaf).into_iter().find(open) {
        Some(needed) => Err(format!("{leaf} was offered before {needed} ended")),
        None => Ok(()),
    }
}

fn completed_stays(before: &RunState, entry: &Entry, after: &RunState) -> Result<(), String> {
    let Some(plan) = &before.plan else { return Ok(()) };
    for (leaf, _) in plan.leaves() {
        if was_reopened(entry, leaf) {
            continue;
        }
        let (old, new) = (before.planned(leaf), after.planned(leaf));
        if old.is_some_and(|old| old.status == TaskStatus::Completed) {
            let same = new.is_some_and(|new| new.status == TaskStatus::Completed)
                && new.and_then(|new| new.outcome.as_ref()) == old.and_then(|old| old.outcome.as_ref());
            ensure(same, || format!("{leaf} had ended well"))?;
        }
    }
    Ok(())
}

fn was_reopened(entry: &Entry, leaf: &TaskIndex) -> bool {
    let reopened = leaf.to_task_id();
    entry
        .event
        .events()
        .iter()
        .any(|event| matches!(event, RunEvent::TaskReopened(TaskReopened { task, .. }) if *task == reopened))
}

fn paused_offers_nothing(before: &RunState, entry: &Entry, after: &RunState) -> Result<(), String> {
    let Some(offer) = offer_in(entry) else { return Ok(()) };
    ensure(before.control.paused.is_none() || after.control.paused.is_none(), || {
        format!("task {}", offer.task)
    })
}

fn ended_is_ended(before: &RunState, entry: &Entry, after: &RunState) -> Result<(), String> {
    if !before.status.is_ended() {
        return Ok(());
    }
    let silent = match &entry.event {
        RecordEvent::Decided(decided) => {
            decided.events.is_empty() && decided.offers == 0 && decided.offer.is_none()
        }
        RecordEvent::Offered(_) => false,
        RecordEvent::Agent(..) => true,
    };
    ensure(silent, || "something was decided".to_owned())?;
    let same = before.status == after.status && before.tasks == after.tasks && before.report == after.report;
    ensure(same, || "its state changed".to_owned())
}

fn one_report(before: &RunState, entry: &Entry, after: &RunState) -> Result<(), String> {
    let reports =
        entry.event.events().iter().filter(|event| matches!(event, RunEvent::RunCompleted(_))).count();
    ensure(usize::from(before.report.is_some()) + reports <= 1, || "it was reported again".to_owned())?;
    let (may, must) = match after.status {
        RunStatus::Completed => (true, true),
        // What there was when it was stopped.
        RunStatus::Aborted(_) | RunStatus::Failed => {
            (after.report.as_ref().is_none_or(|report| report.partial), false)
        }
        RunStatus::Created | RunStatus::Processing => (after.report.is_none(), false),
    };
    ensure(may && (!must || after.report.is_some()), || format!("it is {:?}", after.status))
}

fn usage_rises(before: &RunState, _: &Entry, after: &RunState) -> Result<(), String> {
    let parts = |usage: &Usage| {
        [usage.model_calls, usage.tool_calls, usage.input_tokens, usage.output_tokens, usage.cost_micros]
    };
    let falls =
        parts(&before.spending.used).into_iter().zip(parts(&after.spending.used)).any(|(old, new)| new < old);
    ensure(!falls, || format!("from {:?} to {:?}", before.spending.used, after.spending.used))
}

fn plan_is_sound(_: &RunState, _: &Entry, after: &RunState) -> Result<(), String> {
    let Some(plan) = &after.plan else { return Ok(()) };
    ensure(check::cycles(plan).is_empty(), || "tasks wait for each other".to_owned())?;
    match plan.tasks.keys().find(|index| after.planned(index).is_none()) {
        Some(index) => Err(format!("{index} has no state")),
        None => Ok(()),
    }
}

fn members_end_with_their_task(_: &RunState, _: &Entry, after: &RunState) -> Result<(), String> {
    if after.status.is_ended() {
        return Ok(());
    }
    let open = after.tasks.iter().filter(|(_, state)| !state.status.is_ended());
    let open = open.filter_map(|(task, _)| task.as_leaf()).filter(|index| index.is_member());
    for member in open.filter(|_| after.forked.is_none()) {
        ensure(after.members_in_work().any(|other| other == member), || format!("{member} goes on alone"))?;
    }
    Ok(())
}

/// Only who cancels a run does not want its report any more. A draft is dropped where what it is made of changes (a goal is
/// edited, a task reopened), also in the decision that ends the run: what is left counts.
fn drafts_are_delivered(before: &RunState, _: &Entry, after: &RunState) -> Result<(), String> {
    let ends_without = !before.status.is_ended()
        && matches!(
            after.status,
            RunStatus::Failed | RunStatus::Aborted(StopReason::DeadlinePassed | StopReason::BudgetExhausted)
        );
    ensure(!ends_without || after.drafts.kept.is_none(), || format!("it is {:?}", after.status))
}

fn rounds_are_bounded(_: &RunState, _: &Entry, after: &RunState) -> Result<(), String> {
    let (rounds, most) = (after.drafts.rounds(), usize::from(after.limits.draft_rounds));
    ensure(rounds <= most, || format!("{rounds} times, {most} is the most"))?;
    ensure(after.drafts.current().len() <= most + 1, || "it was reviewed too often".to_owned())
}

/// Neither than its run, nor than the task that its run was begun for, nor than what the plan names for it and for the
/// tasks that it is a part of or was handed over by.
fn rights_only_shrink(_: &RunState, entry: &Entry, after: &RunState) -> Result<(), String> {
    let Some(offer) = offer_in(entry) else { return Ok(()) };
    let rights = offer.rights.effective();
    let above = after.goal.parent.iter().flat_map(|parent| parent.rights.grants()).map(|grant| &grant.to);
    let leaf = offer.task.as_leaf().map(TaskIndex::planned);
    let givers = std::iter::successors(leaf, |index| after.handed_over_by(index).cloned());
    let wholes = givers.flat_map(|index| std::iter::successors(Some(index), TaskIndex::parent));
    let named = wholes.filter_map(|index| after.plan_task(&index)?.rights.as_deref());
    for most in above.chain([&*after.limits.rights]).chain(named) {
        ensure(rights.narrowed_by(most) == rights, || {
            format!("task {} may use more than {most:?}", offer.task)
        })?;
    }
    Ok(())
}

fn offer_in(entry: &Entry) -> Option<&TaskOffered> {
    match &entry.event {
        RecordEvent::Decided(decided) => decided.offer.as_deref(),
        RecordEvent::Offered(offer) => Some(offer),
        RecordEvent::Agent(..) => None,
    }
}

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}
