//! What there is to report when a run is stopped before its report was written. Put together by rule: there is no time,
//! or no budget, left to ask a model.

use std::fmt::Write as _;

use muster_shared::flow::{Finding, LeafRef, Report};
use muster_shared::run::{RunState, left_out_by_plans};
use muster_shared::text::{beginning, normalise_space};

use super::{conflicts, remarks, response, survey};

/// Most findings that are listed of one task.
const MOST_FINDINGS: usize = 50;

/// Longest conclusion that is kept, in characters.
const LONGEST: usize = 4_000;

/// Longest line, in characters.
const LONGEST_LINE: usize = 600;

/// The report of a run that is stopped for this reason; nothing when no task had given anything.
pub(super) fn report(run: &RunState, reason: &str) -> Option<Report> {
    let results = survey::results(run);
    if results.is_empty() {
        return None;
    }
    let title = format!("Partial report: {}", line(&run.goal.text, 120));
    let mut body = format!(
        "# {title}\n\n> This is not the whole answer: {}. It was put together by rule from what the tasks had given \
         until then.\n",
        line(reason, LONGEST_LINE)
    );
    for leaf in &results {
        add(&mut body, leaf);
    }
    let unanswered = unanswered(run, &results);
    if !unanswered.is_empty() {
        body.push_str("\n## What is missing\n\n");
        body.extend(unanswered.iter().map(|what| format!("- {what}\n")));
    }
    Some(Report { title, body, unanswered, partial: true, ..Report::default() })
}

/// The report of a run that is stopped for this reason where guards of reports gave no leave: nothing of what was found.
pub(super) fn withheld(run: &RunState, reason: &str) -> Report {
    let title = format!("Partial report: {}", line(&run.goal.text, 120));
    let body = format!(
        "# {title}\n\n> This is not the whole answer: {}. What the tasks had given is withheld: the guards of reports did \
         not let it through.\n",
        line(reason, LONGEST_LINE)
    );
    Report { title, body, partial: true, ..Report::default() }
}

fn add(body: &mut String, leaf: &LeafRef) {
    // Writing into a text cannot fail.
    let _ = write!(
        body,
        "\n## {} {}\n\n{}\n",
        leaf.index,
        line(&leaf.name, LONGEST_LINE),
        beginning(leaf.result.conclusion.trim(), LONGEST)
    );
    let findings = &leaf.result.findings;
    if !findings.is_empty() {
        body.push('\n');
    }
    body.extend(findings.iter().take(MOST_FINDINGS).map(finding));
    let more = findings.len().saturating_sub(MOST_FINDINGS);
    if more > 0 {
        let _ = writeln!(body, "- and {more} more, which `muster show` lists");
    }
}

fn finding(finding: &Finding) -> String {
    format!("- {}{}\n", line(&finding.text, LONGEST_LINE), finding.places())
}

/// What tasks could not answer, tasks that gave nothing, and those that were never done.
fn unanswered(run: &RunState, results: &[LeafRef]) -> Vec<String> {
    let open = results.iter().flat_map(|leaf| leaf.result.unanswered.iter().cloned());
    let nothing =
        survey::fruitless(run).into_iter().map(|(index, name, why)| format!("{index} {name}: {why}"));
    let not_ended =
        survey::not_ended(run).into_iter().map(|(index, name)| format!("{index} {name}: not done"));
    open.chain(nothing)
        .chain(not_ended)
        .chain(left_out_by_plans(run).iter().map(ToString::to_string))
        .chain(survey::uncovered(run))
        .chain(response::note(run))
        .chain(remarks::unchecked_note(run))
        .chain(conflicts::notes(run))
        .map(|what| line(&what, LONGEST_LINE))
        .collect()
}

/// A text on one line, cut short.
pub(super) fn line(text: &str, most: usize) -> String {
    beginning(&normalise_space(text), most)
}
