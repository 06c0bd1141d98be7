//! `muster show`.

use muster_shared::flow::{Ending, Finding, Outcome, Product, TaskResult};
use muster_shared::ids::TaskId;
use muster_shared::run::RunState;
use muster_shared::time::Millis;

use super::paint::Paint;
use super::progress::{self, Doing};
use super::{figures, runs};

/// A run in full: what was asked, the tree, results, reflections, refinements, usage, report.
pub(crate) fn show(state: &RunState, now: Millis, paint: Paint) -> String {
    let parts = [
        head(state, now, paint),
        section(
            "Progress",
            &progress::tree(state, &Doing::new(), now, progress::DEFAULT_WIDTH, paint),
            paint,
        ),
        section("Results", &results(state), paint),
        section("Reflections", &reflections(state), paint),
        section("Changes of plan", &refinements(state), paint),
        section("Report", &report(state), paint),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn section(title: &str, body: &str, paint: Paint) -> String {
    if body.is_empty() {
        String::new()
    } else {
        format!("{}\n{}", paint.bold(title), figures::indent(body, 2))
    }
}

fn head(state: &RunState, now: Millis, paint: Paint) -> String {
    let took = figures::span(state.ended_at.unwrap_or(now).since(state.created_at));
    let mut lines = vec![
        format!("{} {} ({}, {took})", paint.bold("Run"), state.id, runs::painted(state, paint)),
        format!("  asked   {} UTC{}", figures::date(state.created_at), by(&state.goal.asked_by)),
        format!("  goal    {}", figures::one_line(&state.goal.text, 400)),
    ];
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
    lines.push(format!("  used    {}", figures::usage(&state.usage)));
    if !state.limits.budget.is_unlimited() {
        lines.push(format!("  budget  {}", figures::spent(&state.limits.budget, &state.usage)));
    }
    if let Some(paused) = &state.paused {
        let since = figures::span(now.since(paused.since));
        lines.push(format!("  paused  for {since}: {}", figures::one_line(&paused.reason, 600)));
    }
    if let Some(reason) = &state.reason {
        lines.push(format!("  reason  {}", figures::one_line(reason, 600)));
    }
    lines.join("\n")
}

fn by(who: &str) -> String {
    if who.is_empty() { String::new() } else { format!(" by {}", figures::one_line(who, 60)) }
}

fn results(state: &RunState) -> String {
    let mut lines = Vec::new();
    for (task, found) in &state.tasks {
        let TaskId::Leaf(index) = task else { continue };
        let Some(outcome) = &found.outcome else { continue };
        let name = state.plan.as_ref().and_then(|plan| plan.tasks.get(index)).map_or("", |task| &task.name);
        lines.push(format!("{index} {}", figures::one_line(name, 90)));
        lines.extend(how_it_ended(outcome).map(|how| format!("  {}", figures::one_line(&how, 600))));
        if let Some(Product::Result(result)) = &outcome.product {
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

fn reflections(state: &RunState) -> String {
    let mut lines = Vec::new();
    for (index, reflection) in &state.reflections {
        lines.push(format!("{index} {}", figures::one_line(&reflection.summary, 300)));
        let notes = reflection.on_plan.iter().map(|note| format!("plan: {note}"));
        let tools = reflection.on_tools.iter().map(|note| format!("{}: {}", note.tool, note.note));
        let uncovered = reflection.uncovered.iter().map(|what| format!("uncovered: {what}"));
        let refine = reflection.refine.iter().map(|why| format!("wants the plan changed: {why}"));
        let all = notes.chain(tools).chain(uncovered).chain(refine);
        lines.extend(all.map(|line| format!("  {}", figures::one_line(&line, 300))));
    }
    lines.join("\n")
}

fn refinements(state: &RunState) -> String {
    let mut lines = Vec::new();
    for (at, (changes, refused)) in state.refinements.iter().enumerate() {
        let wanted =
            u32::try_from(at + 1).ok().and_then(|n| state.wanted.get(&n)).cloned().unwrap_or_default();
        lines.push(format!("{}. {}", at + 1, figures::one_line(&wanted.join("; "), 300)));
        lines.extend(changes.iter().map(|change| format!("   + {}", figures::one_line(change, 300))));
        lines.extend(refused.iter().map(|no| format!("   refused: {}", figures::one_line(&no.reason, 300))));
    }
    lines.join("\n")
}

fn report(state: &RunState) -> String {
    state.report.as_ref().map_or_else(String::new, |report| figures::harmless(report.body.trim()))
}
