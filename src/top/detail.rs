//! What a task of a run does and did, as lines.

use std::sync::Arc;

use muster_shared::ids::TaskId;
use muster_shared::run::{Entry, RunState};
use muster_shared::time::Millis;

use super::rows::Tone;
use crate::commands::trace;
use crate::live::model::LiveRun;
use crate::render::paint::Paint;
use crate::render::trace::Timeline;
use crate::render::{doing, figures, runs};

/// Most entries of a task that are shown where it is told in brief: the newest.
const MOST_ENTRIES: usize = 200;

/// A line, and how it is to be seen.
pub(super) type Line = (Tone, String);

/// What a task does and did, the newest last. Lines are broken to fit.
pub(super) fn lines(run: &LiveRun, task: &TaskId, now: Millis, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(state) = run.state() {
        lines.extend(head(state, task, now).into_iter().flat_map(|(tone, line)| wrapped(tone, &line, width)));
    }
    let tasks = with_reflection(task);
    let about: Vec<(&Arc<Entry>, &TaskId)> = about(run, &tasks).collect();
    let left_out = about.len().saturating_sub(MOST_ENTRIES);
    if left_out > 0 {
        lines.push((Tone::Dim, format!("… {} before these", figures::plural(left_out as u64, "entry"))));
    }
    let mut timeline = Timeline::new(Paint::PLAIN, false);
    for (entry, task) in &about[left_out..] {
        let text = timeline.entry(entry, Some(task)).unwrap_or_default();
        for (at, line) in text.lines().enumerate() {
            let line = if at == 0 { line.trim_start() } else { line };
            let tone = if at == 0 { Tone::Strong } else { Tone::Plain };
            lines.extend(wrapped(tone, &without_margin(line), width));
        }
    }
    lines.extend(now_said(run, task).into_iter().flat_map(|(tone, line)| wrapped(tone, &line, width)));
    lines
}

/// All that stands in the record about a task, in full.
pub(super) fn in_full(run: &LiveRun, task: &TaskId) -> String {
    let mut timeline = Timeline::new(Paint::PLAIN, true);
    let tasks = with_reflection(task);
    let told = about(run, &tasks).filter_map(|(entry, task)| timeline.entry(entry, Some(task)));
    figures::lines(told)
}

/// The entries about one of these tasks, each with which.
fn about<'a>(run: &'a LiveRun, tasks: &'a [TaskId]) -> impl Iterator<Item = (&'a Arc<Entry>, &'a TaskId)> {
    run.entries().filter_map(|entry| Some((entry, tasks.iter().find(|task| is_about(entry, task))?)))
}

/// A task, and the reflection on it, which has no line of its own in the tree.
fn with_reflection(task: &TaskId) -> Vec<TaskId> {
    let reflection = task.as_leaf().map(|index| TaskId::Reflect(index.clone()));
    std::iter::once(task.clone()).chain(reflection).collect()
}

/// What there is to know of the task beside its course.
fn head(state: &RunState, task: &TaskId, now: Millis) -> Vec<Line> {
    let Some(found) = state.tasks.get(task) else { return Vec::new() };
    let planned = task.as_leaf().and_then(|index| state.plan.as_ref()?.tasks.get(&index.planned()));
    let name =
        planned.map_or_else(String::new, |planned| format!(" {}", figures::one_line(&planned.name, 200)));
    let mut lines = vec![(Tone::Strong, format!("{task}{name}"))];
    let mut facts = vec![format!("{:?}", found.status).to_lowercase()];
    facts.extend(planned.map(|planned| planned.role.to_string()));
    facts.extend(found.agent.as_ref().map(|agent| format!("with {agent}")));
    if found.generation.0 > 1 {
        facts.push(format!("try {}", found.generation));
    }
    let used =
        found.outcome.as_ref().map(|outcome| outcome.usage).or_else(|| Some(state.seen.get(task)?.usage));
    facts.extend(used.map(|used| figures::usage(&used)));
    if let Some(waiting) = &found.waiting {
        facts.push(format!("waits for {}", figures::span(now.since(waiting.since))));
    }
    lines.push((Tone::Dim, facts.join(" · ")));
    if let Some(planned) = planned.filter(|planned| planned.goal.trim() != planned.name.trim()) {
        lines.push((Tone::Plain, figures::one_line(&planned.goal, 600)));
    }
    if let Some(planned) = planned.filter(|planned| !planned.depends_on.is_empty()) {
        lines.push((Tone::Dim, format!("after {}", figures::list(&planned.depends_on))));
    }
    for (id, child) in state.children.iter().filter(|(_, child)| child.task == *task) {
        let how = child.end.as_ref().map_or("at work", |end| runs::of_status(end.status));
        lines.push((Tone::Warn, format!("→ run {} ({how}): o opens it", id.short())));
    }
    let reason = found.reasons.last().map(|reason| (Tone::Warn, figures::one_line(reason, 400)));
    lines.extend(reason);
    lines
}

/// What it says right now.
fn now_said(run: &LiveRun, task: &TaskId) -> Vec<Line> {
    let at_work =
        run.state().and_then(|state| state.tasks.get(task)).is_some_and(|found| !found.status.is_ended());
    let Some(said) = run.spoken(task).filter(|_| at_work) else { return Vec::new() };
    let text = |name: &str, text: &str| {
        (!text.trim().is_empty()).then(|| (Tone::Busy, format!("{name} {}", figures::harmless(text.trim()))))
    };
    let told = [
        text("now        ", &doing::status(&said.status)),
        text("thinks     ", &said.thought),
        text("writes     ", &said.answer),
    ];
    let lines = told.into_iter().flatten();
    lines
        .flat_map(|(tone, text)| text.lines().map(|line| (tone, line.to_owned())).collect::<Vec<_>>())
        .collect()
}

fn is_about(entry: &Entry, task: &TaskId) -> bool {
    trace::is_about(entry, task)
        || entry.event.events().iter().any(|event| event.task().as_ref() == Some(task))
}

/// Details stand far to the right in a trace: here there is less room.
fn without_margin(line: &str) -> String {
    let text = line.trim_start_matches(' ');
    let margin = line.len() - text.len();
    format!("{}{text}", " ".repeat(margin.saturating_sub(15)))
}

fn wrapped(tone: Tone, line: &str, width: usize) -> Vec<Line> {
    figures::wrap(line, width).lines().map(|line| (tone, figures::cut(line, width))).collect()
}
