//! Information that a task shares with others. It stands in the run; who works on one of them is told at once, and whoever
//! begins or goes on with one is told with the offer.

use std::collections::BTreeSet;

use muster_shared::flow::{Information, InformationShare, PeerAnswer, Plan, TaskStatus};
use muster_shared::ids::{Attempt, TaskId, TaskIndex};
use muster_shared::plan::order;
use muster_shared::run::RunState;
use muster_shared::run::event::InformationShared;
use muster_shared::time::Millis;

use super::super::builder::DecisionBuilder;
use super::super::effect::Effect;
use super::{FoundAnswer, named};

/// Shares something with the tasks that are named, or with those that it concerns.
pub(super) fn share(
    decision: &mut DecisionBuilder<'_>,
    from: &TaskIndex,
    told: &InformationShare,
) -> Result<FoundAnswer, String> {
    let Some(run) = decision.open() else { return Err("the run has ended".to_owned()) };
    let text = told.text.trim();
    if text.is_empty() {
        return Err("there is nothing to share".to_owned());
    }
    let to = if told.tasks.is_empty() { concerned(run, from)? } else { open_of(run, from, &told.tasks)? };
    let number = publish(decision, Teller::Task(from), &to, text.to_owned(), None);
    let list: Vec<String> = to.iter().map(TaskIndex::to_string).collect();
    let words =
        format!("It is told to: {}. Who works on it hears of it with the next step.", list.join(", "));
    Ok(FoundAnswer { words, answer: PeerAnswer::InformationShared { number, to } })
}

/// Who tells something.
#[derive(Clone, Copy)]
pub(super) enum Teller<'a> {
    Task(&'a TaskIndex),
    Person(&'a str),
}

/// Notes what these are told, perhaps of a value, and tells those who are at work.
pub(super) fn publish(
    decision: &mut DecisionBuilder<'_>,
    teller: Teller<'_>,
    to: &[TaskIndex],
    text: String,
    key: Option<String>,
) -> u32 {
    let number = decision.open().map_or(1, |run| run.peers.next_number());
    let (from, person) = match teller {
        Teller::Task(task) => (Some(task.clone()), String::new()),
        Teller::Person(name) => (None, name.to_owned()),
    };
    decision.emit(InformationShared { number, from, person, key, to: to.to_vec(), text });
    for task in to {
        tell(decision, &task.to_task_id(), number);
    }
    number
}

/// The open leaves that something of this task concerns: those that depend on it, those that work for the same task as it
/// does, the one that it helps and those that help it.
fn concerned(run: &RunState, from: &TaskIndex) -> Result<Vec<TaskIndex>, String> {
    let plan = run.plan.as_ref().ok_or("there is no plan")?;
    let after = order::dependents(plan, &BTreeSet::from([from.clone()]));
    let works_with = |leaf: &TaskIndex| {
        after.iter().any(|later| order::dependencies(plan, later).contains(leaf))
            || run.handed_over_by(leaf) == Some(from)
            || run.handed_over_by(from) == Some(leaf)
    };
    let leaves = plan.leaves().map(|(leaf, _)| leaf).filter(|leaf| *leaf != from && is_open(run, leaf));
    let found: Vec<TaskIndex> =
        leaves.filter(|leaf| after.contains(*leaf) || works_with(leaf)).cloned().collect();
    if found.is_empty() {
        return Err(format!(
            "no open task depends on it or works for the same task: name in `tasks` whom it is for{}",
            others(run, plan, from)
        ));
    }
    Ok(found)
}

/// The open leaves of the tasks that are named.
fn open_of(run: &RunState, from: &TaskIndex, names: &[String]) -> Result<Vec<TaskIndex>, String> {
    let plan = run.plan.as_ref().ok_or("there is no plan")?;
    let named = named(run, names)?;
    let leaves: BTreeSet<&TaskIndex> = named.iter().flat_map(|index| plan.leaves_of(index)).collect();
    let open: Vec<TaskIndex> =
        leaves.into_iter().filter(|leaf| *leaf != from && is_open(run, leaf)).cloned().collect();
    if open.is_empty() {
        let list: Vec<String> = named.iter().map(TaskIndex::to_string).collect();
        return Err(format!(
            "{} has ended, or is the task that shares it{}",
            list.join(", "),
            others(run, plan, from)
        ));
    }
    Ok(open)
}

fn others(run: &RunState, plan: &Plan, from: &TaskIndex) -> String {
    let open = plan.leaves().filter(|(leaf, _)| *leaf != from && is_open(run, leaf));
    let open: Vec<String> = open.map(|(leaf, task)| format!("{leaf} ({})", task.name)).collect();
    if open.is_empty() { String::new() } else { format!("; open are {}", open.join(", ")) }
}

pub(super) fn is_open(run: &RunState, leaf: &TaskIndex) -> bool {
    run.planned(leaf).is_none_or(|state| !state.status.is_ended())
}

/// Tells whoever works on a task of one thing.
fn tell(decision: &mut DecisionBuilder<'_>, task: &TaskId, number: u32) {
    let told = decision.open().and_then(|run| telling(run, task, |one| one.number == number));
    if let Some(effect) = told {
        decision.effect(effect);
    }
}

/// Tells whoever works on a task of all that was shared since it was offered: the word may have gone to somebody who died,
/// or come before anybody worked on it.
pub(in crate::decide) fn tell_again(run: &RunState, task: &TaskId) -> Option<Effect> {
    telling(run, task, |_| true)
}

fn telling(run: &RunState, task: &TaskId, which: impl Fn(&Information) -> bool) -> Option<Effect> {
    let state = run.tasks.get(task).filter(|state| state.status == TaskStatus::Processing)?;
    let (agent, generation) = (state.agent.clone()?, state.generation);
    // An offer that was handed on tells what was known when it was made, however long ago.
    let first = state.attempt <= Attempt(1);
    let since = state.offered_at.filter(|_| first).unwrap_or(Millis(0));
    let mut information = run.peers.heard_by(run.plan.as_ref()?, task.leaf()?, since);
    information.retain(which);
    if information.is_empty() {
        return None;
    }
    Some(Effect::Inform { task: task.clone(), generation, agent, information, progress: String::new() })
}
