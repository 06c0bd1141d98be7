//! `muster show`.

mod task;

use std::collections::BTreeMap;

use muster_shared::flow::{Ending, Finding, Outcome, RefineOperation, Reflection, TaskResult, Usage};
use muster_shared::ids::{RunId, TaskId, TaskIndex};
use muster_shared::run::{RunState, TaskState};
use muster_shared::time::Millis;

use self::task::below;
pub(crate) use self::task::task;
use super::paint::Paint;
use super::progress::{self, Doing};
use super::{conflicts, drafts, figures, questions, runs, safe};

/// What a run used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsageOfRun {
    /// Its own tasks.
    pub(crate) own: Usage,
    /// These, and the runs within it.
    pub(crate) with_children: Usage,
}

/// What a run used, of which these are the runs within.
pub(crate) fn usage(state: &RunState, children: &[RunState]) -> UsageOfRun {
    // What ended is counted in the run already, with all that was within it.
    let (mut ended, mut with_children) = (Usage::default(), state.used());
    for (id, child) in &state.children {
        match &child.end {
            Some(end) => ended += end.usage,
            None => {
                let at_work = children.iter().find(|child| child.id == *id);
                with_children +=
                    at_work.map(|child| usage(child, children).with_children).unwrap_or_default();
            }
        }
    }
    UsageOfRun { own: state.used().without(ended), with_children }
}

/// A run in full: what was asked, the tree, results, reflections, refinements, usage, report. Lines are broken to fit
/// a terminal of `width` columns, if there is one.
pub(crate) fn show(
    state: &RunState,
    children: &[RunState],
    now: Millis,
    width: Option<usize>,
    paint: Paint,
) -> String {
    let columns = width.unwrap_or(progress::DEFAULT_WIDTH).saturating_sub(2);
    let tree = progress::tree_with(state, &Doing::new(), now, columns, paint, |index| below(state, index));
    let parts = [
        head(state, children, now, paint),
        section("Taught by earlier runs", &lessons(state), paint),
        section("Progress", &tree, paint),
        section("Questions", &questions::of_run(state, now), paint),
        section("Results", &results(state), paint),
        section("Conflicts", &conflicts::of_run(state), paint),
        section("Reflections", &reflections_of(state, None).unwrap_or_default(), paint),
        section("Changes of plan", &refinements(state), paint),
        section("Reviews of the draft", &drafts::section(state), paint),
    ];
    // The report has tables and code: its lines stay as they are.
    let report = section("Report", &report(state), paint);
    let parts = parts.into_iter().map(|part| figures::fitted(part, width)).chain([report]);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// All reflections, or that on one task; nothing when there is none.
pub(crate) fn reflections_of(state: &RunState, only: Option<&TaskIndex>) -> Option<String> {
    let wanted = state.reflections().filter(|(index, _)| only.is_none_or(|only| *index == only));
    let lines: Vec<String> = wanted.map(|(index, one)| reflection(index, one)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Every change of plan with what was refused; nothing when none was wanted.
pub(crate) fn refinements_of(state: &RunState) -> Option<String> {
    Some(refinements(state)).filter(|text| !text.is_empty())
}

fn result_of(task: &TaskState) -> Option<&TaskResult> {
    task.outcome.as_ref()?.result()
}

fn lessons(state: &RunState) -> String {
    let lines = state.planning.lessons.iter().map(|lesson| format!("- {}", figures::one_line(lesson, 400)));
    figures::lines(lines)
}

/// The runs that were begun for tasks, each with its tree below the task, and with how it is called from here: a task
/// of it is `1-2/1-1` in commands.
pub(crate) fn within(state: &RunState, children: &[RunState], now: Millis, paint: Paint) -> String {
    let mut paths: BTreeMap<RunId, String> = BTreeMap::from([(state.id, String::new())]);
    let outer = state.goal.parent.as_ref().map_or(0, |parent| parent.depth);
    let parts = children.iter().filter_map(|child| {
        let parent = child.goal.parent.as_ref()?;
        let path = format!("{}{}", paths.get(&parent.run).map_or("", String::as_str), parent.task);
        paths.insert(child.id, format!("{path}/"));
        let head = format!(
            "{path} → run {} ({}): {}",
            child.id.short(),
            runs::painted(child, paint),
            figures::one_line(&child.goal.text, 100)
        );
        let tree = progress::tree(child, &Doing::new(), now, progress::DEFAULT_WIDTH, paint);
        let depth = (parent.depth.saturating_sub(outer) as usize).saturating_sub(1);
        let asked = questions::open(child, now);
        let asked = if asked.is_empty() { asked } else { format!("\n{}", figures::indent(&asked, 2)) };
        Some(figures::indent(&format!("{head}\n{}{asked}", figures::indent(&tree, 2)), depth * 2))
    });
    section("Runs within", &figures::lines(parts), paint)
}

fn section(title: &str, body: &str, paint: Paint) -> String {
    if body.is_empty() {
        String::new()
    } else {
        format!("{}\n{}", paint.bold(title), figures::indent(body, 2))
    }
}

fn head(state: &RunState, children: &[RunState], now: Millis, paint: Paint) -> String {
    let took = figures::span(state.ended_at.unwrap_or(now).since(state.created_at));
    let mut lines = vec![
        format!("{} {} ({}, {took})", paint.bold("Run"), state.id, runs::painted(state, paint)),
        format!("  asked   {} UTC{}", figures::date(state.created_at), by(&state.goal.asked_by)),
        format!("  goal    {}", figures::one_line(&state.goal.text, 400)),
    ];
    if state.goal.priority != 0 {
        lines.push(format!("  before  others, with priority {}", state.goal.priority));
    }
    if let Some(parent) = &state.goal.parent {
        lines.push(format!("  for     {} of run {}", parent.task, parent.run.short()));
    }
    if let Some(filled) = &state.goal.blueprint {
        lines.push(format!("  by      blueprint {} {}", filled.blueprint.name, filled.blueprint.version));
    }
    if let Some(from) = &state.forked {
        lines.push(format!("  forked  from {} at entry {}", from.run, from.at));
    }
    if let Some(corpus) = &state.goal.corpus {
        let files = figures::plural(corpus.files, "file");
        lines.push(format!(
            "  docs    {files}, {} ({})",
            figures::bytes(corpus.bytes),
            figures::cut(&corpus.id, 13)
        ));
    }
    let fetched = state.goal.fetched.iter();
    lines.extend(fetched.map(|one| format!("  fetched {}", figures::one_line(&one.in_words(), 600))));
    let used = usage(state, children);
    lines.push(format!("  used    {}", figures::usage(&used.with_children)));
    if used.own != used.with_children {
        lines.push(format!("  itself  {}; the rest in the runs within", figures::usage(&used.own)));
    }
    if !state.limits.budget.is_unlimited() {
        lines.push(format!("  budget  {}", figures::spent(&state.limits.budget, &state.used())));
    }
    if state.responses.failures > 0 {
        lines.push(format!("  failed  {}", failures(state)));
    }
    if let Some(paused) = &state.control.paused {
        let since = figures::span(now.since(paused.since));
        lines.push(format!("  paused  for {since}: {}", figures::one_line(&paused.reason, 600)));
    }
    if let Some(reason) = &state.reason {
        lines.push(format!("  reason  {}", figures::one_line(reason, 600)));
    }
    lines.join("\n")
}

/// How many tries failed, and how many may.
fn failures(state: &RunState) -> String {
    let tries = figures::plural(u64::from(state.responses.failures), "failure");
    match (state.limits.responses.error_budget, state.responses.used_up) {
        (_, true) if state.responses.model_failures > 0 => {
            format!(
                "{tries}, the last {} for want of a usable answer: nothing more was begun",
                state.responses.model_failures
            )
        }
        (0, _) => tries,
        // Tries that were under way when the last was used up count too.
        (most, true) if state.responses.failures > most => {
            format!("{tries}, more than the {most} that there may be: nothing more was begun")
        }
        (most, false) => format!("{tries} of {most} that there may be"),
        (most, true) => format!("{tries} of {most} that there may be: nothing more was begun"),
    }
}

fn by(who: &str) -> String {
    if who.is_empty() { String::new() } else { format!(" by {}", figures::one_line(who, 60)) }
}

fn results(state: &RunState) -> String {
    let mut lines = Vec::new();
    for (task, found) in &state.tasks {
        let TaskId::Leaf(index) = task else { continue };
        let Some(outcome) = &found.outcome else { continue };
        let planned = state.plan.as_ref().and_then(|plan| plan.tasks.get(&index.planned()));
        let name = planned.map_or("", |task| &task.name);
        lines.push(format!("{index} {}", figures::one_line(name, 90)));
        lines.extend(how_it_ended(outcome).map(|how| format!("  {}", figures::one_line(&how, 600))));
        if let Some(result) = result_of(found) {
            lines.push(figures::indent(&result_text(result), 2));
        }
    }
    lines.join("\n")
}

/// How a task ended, unless it was simply done.
fn how_it_ended(outcome: &Outcome) -> Option<String> {
    let how = match outcome.ending {
        Ending::Done => return None,
        Ending::DonePartial => "done in part",
        Ending::Escalate => "a person has to decide",
        Ending::Delegate => "somebody else should do it",
        Ending::Blocked => "blocked",
        Ending::GaveUp => "given up",
        Ending::ModelFailed => "the model failed",
        Ending::AgentFailed => "the agent failed",
        Ending::DeadlinePassed => "its time was up",
        Ending::Cancelled => "cancelled",
        Ending::BudgetExhausted => "its budget was used up",
    };
    Some(if outcome.reason.is_empty() { how.to_owned() } else { format!("{how}: {}", outcome.reason) })
}

fn result_text(result: &TaskResult) -> String {
    let mut lines = vec![figures::harmless(result.conclusion.trim())];
    lines.extend(result.findings.iter().map(finding));
    lines.extend(
        result.unanswered.iter().map(|what| format!("? not answered: {}", figures::one_line(what, 300))),
    );
    lines.extend(result.data.iter().map(|data| format!("data: {}", figures::harmless(&data.to_string()))));
    if let Some(advice) = &result.advice {
        let refine = advice.refine.then(|| format!("advises to change the plan: {}", advice.reason));
        let suggestions = advice.suggestions.iter().map(|what| format!("for later tasks: {what}"));
        lines.extend(refine.into_iter().chain(suggestions).map(|line| figures::one_line(&line, 300)));
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

fn finding(finding: &Finding) -> String {
    let places: Vec<String> = finding.citations.iter().map(|c| format!("{}:{}", c.path, c.line)).collect();
    let verified = if finding.verified { ", checked" } else { "" };
    format!(
        "- {} [{}{verified}]",
        figures::one_line(&finding.text, 300),
        figures::one_line(&places.join(", "), 200)
    )
}

fn reflection(index: &TaskIndex, reflection: &Reflection) -> String {
    let mut lines = vec![format!("{index} {}", figures::one_line(&reflection.summary, 300))];
    let notes = reflection.on_plan.iter().map(|note| format!("plan: {note}"));
    let tools = reflection.on_tools.iter().map(|note| format!("{}: {}", note.tool, note.note));
    let uncovered = reflection.uncovered.iter().map(|what| format!("uncovered: {what}"));
    let refine = reflection.refine.iter().map(|why| format!("wants the plan changed: {why}"));
    let all = notes.chain(tools).chain(uncovered).chain(refine);
    lines.extend(all.map(|line| format!("  {}", figures::one_line(&line, 300))));
    lines.join("\n")
}

fn refinements(state: &RunState) -> String {
    let mut lines = Vec::new();
    for (number, reasons) in &state.refining.wanted {
        lines.push(format!("{number}. {}", figures::one_line(&reasons.join("; "), 300)));
        let Some((changes, refused)) = state.refinement(*number) else {
            lines.push("   not carried out".to_owned());
            continue;
        };
        lines.extend(changes.iter().map(|change| format!("   + {}", figures::one_line(change, 300))));
        lines.extend(refused.iter().map(|no| {
            let what = operation(&no.operation);
            format!("   refused: {}", figures::one_line(&format!("{what}: {}", no.reason), 300))
        }));
        if changes.is_empty() && refused.is_empty() {
            lines.push("   the plan was left as it is".to_owned());
        }
    }
    lines.join("\n")
}

/// An operation in a few words.
fn operation(operation: &RefineOperation) -> String {
    match operation {
        RefineOperation::Split { task, into } => {
            format!("split {task} into {}", figures::plural(into.len() as u64, "task"))
        }
        RefineOperation::Add { after, tasks } => {
            format!("add {} after {after}", figures::plural(tasks.len() as u64, "task"))
        }
        RefineOperation::Delete { task, .. } => format!("delete {task}"),
        RefineOperation::Exit { .. } => "exit".to_owned(),
    }
}

fn report(state: &RunState) -> String {
    state.report.as_ref().map_or_else(String::new, |report| safe::report(report.body.trim()))
}
