//! The shared context of a run: values that tasks and people write, each naming the version that it saw. A stale write is
//! refused with what there is. Whom a new value concerns is told.

use std::collections::BTreeSet;

use muster_shared::flow::{ContextAuthor, ContextRead, ContextWrite, PeerAnswer, Use};
use muster_shared::ids::{AgentId, TaskIndex};
use muster_shared::plan::{order, reference, values};
use muster_shared::run::event::ContextWritten;
use muster_shared::run::{Request, RunState};
use serde_json::Value;

use super::super::builder::DecisionBuilder;
use super::super::{questions, rights};
use super::FoundAnswer;
use super::share::{self, Teller};

/// A task writes a value.
pub(super) fn write(
    decision: &mut DecisionBuilder<'_>,
    (task, agent): (&TaskIndex, Option<&AgentId>),
    wanted: &ContextWrite,
) -> Result<FoundAnswer, String> {
    let Some(run) = decision.open() else { return Err("the run has ended".to_owned()) };
    let ContextWrite { key, value, version } = wanted;
    let version = run.peers.check_write(&run.limits.context, key, value, *version)?;
    let by = ContextAuthor::Task { task: task.clone(), agent: agent.cloned() };
    let to = written(decision, (key, value, version), by, Teller::Task(task));
    let mut words = format!("{key} is written, as version {version}.");
    if !to.is_empty() {
        let list: Vec<String> = to.iter().map(TaskIndex::to_string).collect();
        words.push_str(&format!(" It is told to: {}.", list.join(", ")));
    }
    Ok(FoundAnswer { words, answer: PeerAnswer::ContextWritten { key: key.clone(), version } })
}

/// A person writes a value. Whoever reads it, or begins with its key in the goal, has it from now on.
pub(in crate::decide) fn set(
    decision: &mut DecisionBuilder<'_>,
    request: &Request,
    (key, value, version): (&str, &Value, u32),
) -> Result<(), String> {
    let run = decision.require_open()?;
    let version = run.peers.check_write(&run.limits.context, key, value, version)?;
    let name = questions::author(request);
    let by = ContextAuthor::Person(name.to_owned());
    written(decision, (key, value, version), by, Teller::Person(name));
    Ok(())
}

/// Records a value and informs the tasks that it concerns; returns them.
fn written(
    decision: &mut DecisionBuilder<'_>,
    (key, value, version): (&str, &Value, u32),
    by: ContextAuthor,
    teller: Teller<'_>,
) -> Vec<TaskIndex> {
    let to = decision.open().map(|run| concerned(run, teller, key)).unwrap_or_default();
    decision.emit(ContextWritten { key: key.to_owned(), value: value.clone(), version, by });
    if !to.is_empty() {
        let text = format!("context.{key} is now (version {version}): {}", in_text(value));
        share::publish(decision, teller, &to, text, Some(key.to_owned()));
    }
    to
}

/// What there is of a key, or of all that begin so.
pub(super) fn read(run: &RunState, task: &TaskIndex, wanted: &ContextRead) -> FoundAnswer {
    let rights = rights::of(run, &task.to_task_id());
    let mut entries = run.peers.find(&wanted.key, wanted.prefix || wanted.key.is_empty());
    entries.retain(|key, _| rights.allow(&Use::ReadKey(key)));
    let line = |(key, entry): (&String, &muster_shared::flow::ContextEntry)| {
        format!("{key} (version {}, by {}): {}", entry.version, entry.by, entry.text())
    };
    let words = if entries.is_empty() {
        "There is nothing of it yet (version 0). You will be told when it is written.".to_owned()
    } else {
        entries.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    FoundAnswer { words, answer: PeerAnswer::ContextFound { entries } }
}

/// The open leaves that a new value concerns: those that depend on the task that wrote it, name its key in their goal, asked
/// for it, wrote it, or were told of it before. Whoever writes it knows it.
fn concerned(run: &RunState, teller: Teller<'_>, key: &str) -> Vec<TaskIndex> {
    let Some(plan) = &run.plan else { return Vec::new() };
    let (from, after) = match teller {
        Teller::Task(from) => (Some(from), order::dependents(plan, &BTreeSet::from([from.clone()]))),
        Teller::Person(_) => (None, BTreeSet::new()),
    };
    let names = |goal: &str| {
        let mut used = reference::find_context(goal);
        used.any(|(_, found)| found.is_ok_and(|found| found == key)) || goal.contains(&values::in_words(key))
    };
    let leaves = plan.leaves().filter(|(leaf, _)| Some(*leaf) != from && share::is_open(run, leaf));
    let may = |leaf: &TaskIndex| rights::of(run, &leaf.to_task_id()).allow(&Use::ReadKey(key));
    let concerned = leaves
        .filter(|(leaf, task)| after.contains(*leaf) || names(&task.goal) || run.peers.knows_of(leaf, key));
    concerned.map(|(leaf, _)| leaf).filter(|leaf| may(leaf)).cloned().collect()
}

fn in_text(value: &Value) -> String {
    muster_shared::flow::context::in_text(value)
}
