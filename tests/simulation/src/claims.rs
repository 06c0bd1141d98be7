//! The rule that no run claims more than its log shows: its counts and its end are compared with what the events alone state.

use std::collections::BTreeMap;

use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::run::event::TaskSkipped;
use muster_shared::run::{
    Entry, RecordEvent, RunEvent, RunState, RunStatus, TaskEnd, count, is_completed_in_part, shortfalls,
};

/// How a leaf ended last, by the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoggedEnd {
    Completed,
    SkippedByPerson,
    Lost,
}

/// Claims of an ended run that its log does not show.
#[must_use]
pub fn unsupported_claims<'a>(run: &RunState, entries: impl IntoIterator<Item = &'a Entry>) -> Vec<String> {
    let ends = ends(entries);
    let of = |end| ends.iter().filter(move |(_, logged)| **logged == end).map(|(leaf, _)| leaf);
    // The parts of a task that was split are counted instead.
    let is_split = |leaf: &TaskIndex| {
        run.plan.as_ref().is_some_and(|plan| plan.tasks.contains_key(leaf) && !plan.is_leaf(leaf))
    };
    let completed = of(LoggedEnd::Completed).count();
    let lost = of(LoggedEnd::Lost).filter(|leaf| !is_split(leaf));
    let mut broken = Vec::new();
    if let Some(claimed) =
        count(run).map(|count| count.done + count.in_part).filter(|claimed| *claimed > completed)
    {
        broken.push(format!("{claimed} tasks are counted as done, the log shows {completed}"));
    }
    let named = shortfalls(run);
    let ends = |leaf: &TaskIndex| {
        named.iter().find(|short| short.task.as_ref() == Some(leaf)).map(|short| short.end)
    };
    let is_complete = run.status == RunStatus::Completed && !is_completed_in_part(run);
    broken.extend(lost.filter_map(|leaf| match ends(leaf) {
        None => Some(format!("task {leaf} ended without a result and is not named")),
        Some(TaskEnd::Replaced) => None,
        Some(_) if run.is_verification(leaf) => None,
        Some(end) => is_complete.then(|| format!("it is complete, and task {leaf} is {}", end.in_words())),
    }));
    if run.report.as_ref().is_some_and(|report| report.partial == (run.status == RunStatus::Completed)) {
        broken.push(format!("its report does not fit its end: {:?}", run.status));
    }
    broken
        .into_iter()
        .map(|how| format!("no run claims more than its log shows: {}: {how}", run.id.short()))
        .collect()
}

/// How each leaf ended last.
fn ends<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> BTreeMap<TaskIndex, LoggedEnd> {
    let mut ends = BTreeMap::new();
    for entry in entries {
        let RecordEvent::Decided(decided) = &entry.event else { continue };
        for event in &decided.events {
            let Some(TaskId::Leaf(leaf)) =
                event.task().filter(|task| task.leaf().is_some_and(|leaf| !leaf.is_member()))
            else {
                continue;
            };
            let end = match event {
                RunEvent::TaskCompleted(_) | RunEvent::MembersSettled(_) => LoggedEnd::Completed,
                RunEvent::TaskSkipped(TaskSkipped { by_person: true, .. }) => LoggedEnd::SkippedByPerson,
                RunEvent::TaskFailed(_)
                | RunEvent::TaskBlocked(_)
                | RunEvent::TaskAborted(_)
                | RunEvent::TaskSkipped(_)
                | RunEvent::TaskQuarantined(_) => LoggedEnd::Lost,
                RunEvent::TaskReopened(_) => {
                    ends.remove(&leaf);
                    continue;
                }
                _ => continue,
            };
            ends.insert(leaf, end);
        }
    }
    ends
}
