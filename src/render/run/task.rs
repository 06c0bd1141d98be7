//! What `muster show` tells of one task.

use muster_shared::flow::{PlanTask, TaskStatus};
use muster_shared::ids::{TaskId, TaskIndex};
use muster_shared::plan::progress::Detail;
use muster_shared::plan::summary;
use muster_shared::run::{RunState, TaskState, in_part};

use super::super::figures;
use super::super::paint::Paint;
use super::{reflection, result_of, result_text, section};

/// What there is to know of one task.
pub(crate) fn task(
    state: &RunState,
    index: &TaskIndex,
    width: Option<usize>,
    paint: Paint,
) -> Option<String> {
    let planned = state.plan.as_ref()?.tasks.get(&index.planned())?;
    if index.is_member() {
        state.planned(index)?;
    }
    let found = state.planned(index);
    let mut lines = vec![format!("{} {index} {}", paint.bold("Task"), figures::one_line(&planned.name, 200))];
    let status = found.map(|found| format!("{:?}", found.status).to_lowercase()).unwrap_or_default();
    let told = std::iter::once(("state", status)).chain(as_asked(planned)).chain(of_group(state, index));
    let told = told.chain(as_planned(planned));
    let told = told.chain(found.into_iter().flat_map(|found| as_it_stands(state, index, found)));
    let told = told.chain([("trial", trial(state, index))]);
    let told = told.filter(|(_, text)| !text.is_empty());
    lines.extend(told.map(|(name, text)| format!("  {name:<9} {}", figures::one_line(&text, 2_000))));
    let milestones = milestones(state, index).join("\n");
    let summed_up = summary::of(state, index, Detail::Seen).map(|summary| summary.long).unwrap_or_default();
    let result = found.and_then(result_of).map(result_text).unwrap_or_default();
    let reflection = state.reflection(index).map(|one| reflection(index, one)).unwrap_or_default();
    let parts = [
        lines.join("\n"),
        section("Milestones", &milestones, paint),
        section("In short", &summed_up, paint),
        section("Result", &result, paint),
        section("Reflection", &reflection, paint),
    ];
    let shown = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
    Some(figures::fitted(shown, width))
}

/// What is told of a task: its name and its text, each on a line unless there is nothing to tell.
type ToldOfTask = (&'static str, String);

/// What is asked of a task.
fn as_asked(planned: &PlanTask) -> [ToldOfTask; 5] {
    [
        ("goal", planned.goal.clone()),
        ("role", planned.role.to_string()),
        ("expected", planned.expected_output.clone()),
        ("criticism", planned.criticism.clone()),
        ("needs", figures::list(&planned.depends_on)),
    ]
}

/// The trial that a task took part in.
fn trial(state: &RunState, index: &TaskIndex) -> String {
    let mark = state.planned(index).and_then(|task| task.trial.as_ref()).map(|trial| &trial.mark);
    let shadow = state.trials.shadows.get(&TaskId::Leaf(index.clone()));
    let shadow = shadow.map(|shadow| format!(", done once more in run {}", shadow.run.short()));
    mark.map(|mark| format!("{}, {}{}", mark.trial, mark.arm.as_str(), shadow.unwrap_or_default()))
        .unwrap_or_default()
}

/// How a task is to be done.
fn as_planned(planned: &PlanTask) -> [ToldOfTask; 4] {
    [
        ("critical", if planned.critical { "yes" } else { "" }.to_owned()),
        ("tools", planned.tools.join(", ")),
        ("blueprint", planned.blueprint.as_ref().map(|call| call.name.clone()).unwrap_or_default()),
        ("priority", own_priority(planned.priority)),
    ]
}

/// Who does a task together, and what they came to.
fn of_group(state: &RunState, index: &TaskIndex) -> Vec<ToldOfTask> {
    let Some(group) = state.groups.get(index) else { return Vec::new() };
    let mut told = vec![("pattern", group.pattern.to_string()), ("members", figures::list(&group.members))];
    if let Some(found) = &group.verdict {
        told.push(("verdict", format!("{}, {}", found.counts, found.by.in_words())));
        told.extend(found.dissent.iter().map(|other| ("dissent", other.to_string())));
    }
    told
}

/// What became of a task so far.
fn as_it_stands(state: &RunState, index: &TaskIndex, found: &TaskState) -> Vec<ToldOfTask> {
    let mut told = vec![
        ("agent", found.agent.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("model", found.answers.model.clone().unwrap_or_default()),
        ("in part", in_part(state, index).unwrap_or_default().to_owned()),
    ];
    told.extend(found.reasons.iter().map(|reason| ("because", reason.clone())));
    told
}

/// What a task is to reach on its way, and whether it did.
fn milestones(state: &RunState, index: &TaskIndex) -> Vec<String> {
    let Some(planned) = state.plan.as_ref().and_then(|plan| plan.tasks.get(index)) else { return Vec::new() };
    let result = state.planned(index).and_then(result_of);
    let line = |milestone: &String| {
        let reached = result.is_some_and(|result| result.names_milestone(milestone));
        format!("({}) {milestone}", if reached { "x" } else { " " })
    };
    planned.milestones.iter().map(line).collect()
}

/// What stands below a task in the tree: what it has come to, and its milestones.
pub(super) fn below(state: &RunState, index: &TaskIndex) -> Vec<String> {
    let is_done = state.planned(index).is_some_and(|task| task.status == TaskStatus::Completed);
    let short = summary::of(state, index, Detail::Seen).filter(|_| is_done).map(|summary| summary.short);
    short.into_iter().chain(milestones(state, index)).collect()
}

/// A priority that is not the usual one.
fn own_priority(priority: i8) -> String {
    if priority == 0 { String::new() } else { priority.to_string() }
}
