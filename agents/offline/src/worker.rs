//! Working by rule: computing, looking citations up, and saying what cannot be done.

use muster_shared::flow::{
    Citation, Finding, LeafRef, Note, Observation, ObservationStatus, PlanTask, Product, Step, TaskOffered,
    TaskResult,
};

use super::arithmetic::{ambiguity, expressions};
use super::observed::{CALCULATOR, Observed, READ, calculator_call, dotted, look_call};
use super::planner::to_compute;
use super::researcher;
use super::statements::{is_html, without_signs};
use super::subquestions::subquestions;
use super::text::{counted, normalise_space, strip_markup, strip_tags};
use super::{OfflineMove, thought};

/// What a check calls a finding that it leaves out, before the place.
pub(super) const DROPPED: &str = "dropped ";
/// What stands as subquestion of a computed value.
pub(super) const COMPUTED: &str = "computed";

/// Lines that one look may span, so that neighbouring citations share it.
const MAX_SPAN: u32 = 100;
/// Most of a quotation that is looked for, in characters.
const LONGEST_LOOKED_FOR: usize = 200;
/// Lines after a citation's first in which its words may go on.
const LINES_OF_A_QUOTE: u32 = 14;
/// Steps at most, the submission included.
const MAX_STEPS: usize = 24;

pub(super) fn next(offer: &TaskOffered, task: &PlanTask, inputs: &[LeafRef], steps: &[Step]) -> OfflineMove {
    let left = (offer.limits.max_steps as usize).min(MAX_STEPS).saturating_sub(steps.len() + 1);
    if let Some(wanted) = to_compute(&task.goal, task.query.as_ref()) {
        return compute(wanted, steps, left);
    }
    let findings = cited(inputs);
    if !findings.is_empty() {
        return check(&findings, steps, left);
    }
    if !inputs.is_empty() {
        return nothing_to_check();
    }
    let wanted = expressions(&task.goal);
    if !wanted.is_empty() {
        return compute(&wanted, steps, left);
    }
    if offer.corpus.is_some() { researcher::next(offer, task, steps) } else { cannot(&task.goal) }
}

fn compute(wanted: &[String], steps: &[Step], left: usize) -> OfflineMove {
    let done: Vec<&Step> = steps.iter().filter(|step| dotted(&step.action.name) == CALCULATOR).collect();
    let (clear, ambiguous): (Vec<&String>, Vec<&String>) =
        wanted.iter().partition(|expression| ambiguity(expression).is_none());
    match clear.get(done.len()) {
        Some(expression) if left > 0 => calculator_call(
            thought(format!("Compute {expression}."), "A calculator does not slip.", "Submit the value."),
            expression,
        ),
        _ => submit_computed(&clear, &ambiguous, &done),
    }
}

fn submit_computed(wanted: &[&String], ambiguous: &[&String], done: &[&Step]) -> OfflineMove {
    let reasons =
        ambiguous.iter().filter_map(|expression| Some(format!("{expression}: {}", ambiguity(expression)?)));
    let mut result = TaskResult { unanswered: reasons.collect(), ..TaskResult::default() };
    for (number, expression) in wanted.iter().enumerate() {
        let observation = done.get(number).and_then(|step| value_of(step, done));
        match observation {
            Some(observation) if observation.status == ObservationStatus::Success => {
                result.findings.push(Finding {
                    text: normalise_space(&observation.content),
                    subquestion: COMPUTED.to_owned(),
                    confidence: 100,
                    ..Finding::default()
                });
            }
            Some(observation) => {
                result.unanswered.push(format!("{expression}: {}", normalise_space(&observation.content)));
            }
            None => result.unanswered.push((*expression).clone()),
        }
    }
    let values: Vec<&str> = result.findings.iter().map(|finding| finding.text.as_str()).collect();
    result.conclusion =
        if values.is_empty() { "Nothing could be computed.".to_owned() } else { values.join("; ") };
    result.milestones = values.iter().map(|value| format!("computed {value}")).collect();
    OfflineMove::submit(thought(result.conclusion.clone(), "", "Submit."), &Product::Result(result))
}

/// What a computation gave. One that was not run again, since that would be going in circles, has the value that it had.
fn value_of<'a>(step: &'a Step, done: &[&'a Step]) -> Option<&'a Observation> {
    let spun = step.notes.iter().any(|note| matches!(note, Note::Spin { .. }));
    let same = |earlier: &&&Step| earlier.action == step.action && earlier.number < step.number;
    let first = if spun { done.iter().find(same).copied() } else { None };
    first.unwrap_or(step).observation.as_ref()
}

/// The findings of other tasks that name a place.
fn cited(inputs: &[LeafRef]) -> Vec<Finding> {
    let findings = inputs.iter().flat_map(|leaf| &leaf.result.findings);
    findings.filter(|finding| !finding.citations.is_empty()).cloned().collect()
}

fn check(findings: &[Finding], steps: &[Step], left: usize) -> OfflineMove {
    let observed = Observed::of(steps);
    let looks = looks(findings);
    let done = steps.iter().filter(|step| dotted(&step.action.name) == READ).count();
    match looks.get(done) {
        Some(look) if left > 0 => look_call(
            thought(
                format!("Look up {} in {}.", counted(look.citations, "citation", "citations"), look.path),
                "What is quoted must stand where it is said to stand.",
                "Compare the words with the quotation.",
            ),
            &look.path,
            &(look.first..=look.last),
            &look.words,
        ),
        _ => submit_checked(findings, &observed),
    }
}

/// Some lines of a document in which citations are looked up.
struct Look {
    path: String,
    first: u32,
    last: u32,
    citations: usize,
    /// What the first of them quotes: a very long line is shown around it.
    words: String,
}

/// The places to read, those with most citations first.
fn looks(findings: &[Finding]) -> Vec<Look> {
    let mut places: Vec<&Citation> = findings.iter().flat_map(|finding| &finding.citations).collect();
    places.sort();
    let mut looks: Vec<Look> = Vec::new();
    for place in places {
        let last = place.line.saturating_add(LINES_OF_A_QUOTE);
        match looks.last_mut() {
            Some(look) if look.path == place.path && last.saturating_sub(look.first) < MAX_SPAN => {
                look.last = look.last.max(last);
                look.citations += 1;
            }
            _ => {
                let (path, first) = (place.path.clone(), place.line.max(1));
                let words = place.quote.chars().take(LONGEST_LOOKED_FOR).collect();
                looks.push(Look { path, first, last, citations: 1, words });
            }
        }
    }
    looks.sort_by_key(|look| std::cmp::Reverse(look.citations));
    looks
}

/// What looking a citation up showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CitationCheck {
    Stands,
    Wrong,
    NotSeen,
}

fn verdict(citation: &Citation, observed: &Observed) -> CitationCheck {
    let Some(page) = observed.pages.get(&citation.path) else { return CitationCheck::NotSeen };
    let Some(first) = page.get(&citation.line) else { return CitationCheck::NotSeen };
    // Of a very long line only a part was shown: what does not stand in it may stand elsewhere.
    let in_part = first.starts_with('…') || first.ends_with('…');
    let bare = |text: &str| compared(&citation.path, text);
    let first = bare(&without_signs(&citation.path, first));
    let mut there = first.clone();
    for number in 1..=LINES_OF_A_QUOTE {
        let line = citation.line.checked_add(number).and_then(|line| page.get(&line));
        let Some(line) = line else { break };
        there.push(' ');
        there.push_str(&without_signs(&citation.path, line));
    }
    let there = bare(&there);
    let quote = bare(&citation.quote);
    match there.find(&quote) {
        Some(at) if !quote.is_empty() && at < first.len().max(1) => CitationCheck::Stands,
        Some(_) | None if in_part => CitationCheck::NotSeen,
        _ => CitationCheck::Wrong,
    }
}

/// A text as it is compared with another: white space does not count, nor do the tags of a web page.
fn compared(path: &str, text: &str) -> String {
    if is_html(path) {
        strip_markup(&strip_tags(text)).split_whitespace().collect()
    } else {
        normalise_space(text)
    }
}

fn submit_checked(findings: &[Finding], observed: &Observed) -> OfflineMove {
    let mut kept = Vec::new();
    let mut dropped = Vec::new();
    let mut open = 0_usize;
    for finding in findings {
        let verdicts: Vec<CitationCheck> =
            finding.citations.iter().map(|citation| verdict(citation, observed)).collect();
        if verdicts.contains(&CitationCheck::Wrong) {
            dropped.extend(finding.citations.iter().map(ToString::to_string));
            continue;
        }
        let verified = verdicts.iter().all(|verdict| *verdict == CitationCheck::Stands);
        open += usize::from(!verified);
        kept.push(Finding { verified, ..finding.clone() });
    }
    let stand = kept.len() - open;
    let mut conclusion = format!(
        "{stand} of {} stand where they are said to stand",
        counted(findings.len(), "citation", "citations")
    );
    if !dropped.is_empty() {
        conclusion.push_str(&format!("; dropped: {}", dropped.join(", ")));
    }
    if open > 0 {
        conclusion.push_str(&format!("; {open} could not be looked up"));
    }
    conclusion.push('.');
    let mut milestones =
        vec![format!("{} looked up", counted(findings.len() - open, "citation", "citations"))];
    milestones.extend(dropped.iter().map(|place| format!("{DROPPED}{place}")));
    let result =
        TaskResult { conclusion: conclusion.clone(), findings: kept, milestones, ..TaskResult::default() };
    OfflineMove::submit(thought(conclusion, "", "Submit what stands."), &Product::Result(result))
}

fn nothing_to_check() -> OfflineMove {
    let result = TaskResult {
        conclusion: "Nothing was cited, so there is nothing to look up.".to_owned(),
        ..TaskResult::default()
    };
    OfflineMove::submit(thought(result.conclusion.clone(), "", "Submit."), &Product::Result(result))
}

fn cannot(goal: &str) -> OfflineMove {
    let result = TaskResult {
        conclusion: "No documents were given, and no language model is set up: this cannot be answered. \
                     Give a folder of documents with --docs, or set up a model."
            .to_owned(),
        unanswered: subquestions(goal),
        ..TaskResult::default()
    };
    OfflineMove::submit(thought(result.conclusion.clone(), "", "Say so."), &Product::Result(result))
}
