//! The end of a run: the writer's report, with what it does not say itself and everybody should know.

use muster_shared::flow::Report;
use muster_shared::ids::{Seq, TaskId};
use muster_shared::run::event::RunCompleted;
use muster_shared::run::{RunState, Shortfall, TaskEnd, count, lacks_planned_work, shortfalls};
use muster_shared::text::normalise_space;

use super::builder::DecisionBuilder;
use super::outcome::completed;
use super::partial::line;
use super::{blueprint, budget, conflicts, draft_review, remarks, response, survey};

/// Most tasks that are listed one by one.
const MOST_LISTED: usize = 50;

/// Longest line about one of them, in characters.
const LONGEST_LINE: usize = 600;

/// Takes the report over, and ends the run with it unless somebody reviews it first.
pub(super) fn written(decision: &mut DecisionBuilder<'_>, seq: Seq, report: Report) {
    completed(decision, TaskId::Write, seq);
    if !draft_review::begin(decision) {
        deliver(decision, report, None);
    }
}

/// Ends the run with this report. `unrevised` says why it was not written again although it was to be.
pub(super) fn deliver(decision: &mut DecisionBuilder<'_>, mut report: Report, unrevised: Option<&str>) {
    let critical = decision.open().map(survey::failed_critical).unwrap_or_default();
    report.unanswered.extend(critical.iter().cloned());
    let missing = decision.open().map(|run| blueprint::shortcomings(run, &report)).unwrap_or_default();
    report.unanswered.extend(missing);
    if let Some(note) = decision.open().and_then(budget::note) {
        report.body = with_note(&report.body, &note);
        report.unanswered.push(note);
    }
    let notes = [
        remarks::dissent_note,
        response::note,
        remarks::unchecked_note,
        remarks::refused_note,
        remarks::failed_steps_note,
        remarks::not_looked_up_note,
        remarks::milestones_note,
    ];
    for note in notes {
        if let Some(note) = decision.open().and_then(note) {
            report.body = with_note(&report.body, &note);
        }
    }
    if let Some(note) = decision.open().and_then(conflicts::note) {
        report.body = format!("{}\n\n{note}\n", report.body.trim_end());
    }
    if let Some(note) = decision.open().and_then(unread) {
        report.body = with_note(&report.body, &note);
    }
    if let Some(note) = decision.open().and_then(fetched) {
        report.body = format!("{}\n\n{note}\n", report.body.trim_end());
    }
    if let Some(section) = decision.open().and_then(|run| not_done(run, &report.body)) {
        report.body = format!("{}\n\n{section}", report.body.trim_end());
        for part in decision.open().map(missing_parts).unwrap_or_default() {
            // What the goal cannot do without is said already.
            let named = part.split(" (").next().unwrap_or(&part);
            if report.unanswered.iter().all(|known| !known.starts_with(named)) {
                report.unanswered.push(part);
            }
        }
    }
    if let Some(note) = decision.open().and_then(|run| draft_review::note(run, unrevised)) {
        report.body = format!("{}\n\n{note}\n", report.body.trim_end());
        let open = decision.open().and_then(|run| run.drafts.last_said()).into_iter();
        for part in open.flat_map(|review| review.unanswered.clone()) {
            if !report.unanswered.contains(&part) {
                report.unanswered.push(part);
            }
        }
    }
    // The section above lists failed tasks.
    let open =
        report.unanswered.iter().filter(|open| !critical.contains(open) && !is_told(&report.body, open));
    let open: Vec<&String> = open.collect();
    report.body = with_section(&report.body, "Not answered", &open);
    let differ = report.contradictions.iter().filter(|one| !is_told(&report.body, one));
    report.body = with_section(&report.body, "Contradictions", &differ.collect::<Vec<_>>());
    decision.emit(RunCompleted { report });
}

/// The body with a section of these items; without any as it is.
fn with_section(body: &str, heading: &str, items: &[&String]) -> String {
    if items.is_empty() {
        return body.to_owned();
    }
    let items: String = items.iter().map(|item| format!("- {}\n", line(item, LONGEST_LINE))).collect();
    format!("{}\n\n## {heading}\n\n{items}", body.trim_end())
}

/// Whether a text has these words, in this order.
fn is_told(text: &str, words: &str) -> bool {
    normalise_space(text).contains(&normalise_space(words))
}

/// Documents that nobody could read: whoever gave them takes them for searched.
fn unread(run: &RunState) -> Option<String> {
    (!run.goal.unread.is_empty())
        .then(|| format!("Not all documents could be read; {}.", line(&run.goal.unread, LONGEST_LINE)))
}

/// Where documents are from that were fetched, and as of when: what is cited may have changed since.
fn fetched(run: &RunState) -> Option<String> {
    let fetched = &run.goal.fetched;
    if fetched.is_empty() {
        return None;
    }
    let mut note = "Documents that were fetched for this run:\n".to_owned();
    for one in fetched.iter().take(MOST_LISTED) {
        note.push_str(&format!("\n- {}", line(&one.in_words(), LONGEST_LINE)));
    }
    let more = fetched.len().saturating_sub(MOST_LISTED);
    if more > 0 {
        note.push_str(&format!("\n- and {more} more"));
    }
    Some(note)
}

/// What the tasks did not give, by rule: whatever the writer says, nobody takes the report for the whole answer.
fn not_done(run: &RunState, body: &str) -> Option<String> {
    let mut short = shortfalls(run);
    let is_open = |task: &Shortfall| task.why.split("; ").any(|open| !is_told(body, open));
    short.retain(|task| !matches!(task.end, TaskEnd::LeftOpen | TaskEnd::Replaced) || is_open(task));
    if short.is_empty() {
        return None;
    }
    let counted = count(run)?.in_words();
    let said = if lacks_planned_work(run) { ". This report is not the whole answer" } else { "" };
    let mut section = format!("## What was not done\n\n{counted}{said}.\n\n");
    section.extend(short.iter().take(MOST_LISTED).map(|task| format!("- {}\n", one_line(task))));
    let more = short.len().saturating_sub(MOST_LISTED);
    if more > 0 {
        section.push_str(&format!("- and {more} more, which `muster show` lists\n"));
    }
    Some(section)
}

/// The same as parts of the goal that are not answered.
fn missing_parts(run: &RunState) -> Vec<String> {
    let short = shortfalls(run).into_iter().filter(|task| task.end.is_short() && task.end != TaskEnd::InPart);
    short.take(MOST_LISTED).map(|task| one_line(&task)).collect()
}

fn one_line(short: &Shortfall) -> String {
    line(&short.to_string(), LONGEST_LINE)
}

fn with_note(body: &str, note: &str) -> String {
    format!("{}\n\n> {note}\n", body.trim_end())
}
