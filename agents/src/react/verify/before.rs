//! Citations as they were checked before places were looked up: records of then are decided again by it. Pure.

use std::collections::BTreeSet;

use muster_offline::seen_lines;
use muster_shared::flow::{Check, Citation, Report, Step, TaskOffered, TaskResult};

use super::super::history::History;
use super::brief;
use super::rules::{VerifyFaults, citations};

/// Lines after a citation's first in which its words may go on.
const LINES_OF_A_QUOTE: u32 = 14;

/// A citation must name a document that was seen in this task or by one before it, and words that stand there.
pub(super) fn correct(
    history: &History,
    offer: &TaskOffered,
    result: &TaskResult,
    known: &[&Citation],
    faults: &mut VerifyFaults,
) {
    if offer.corpus.is_none() {
        return;
    }
    let pages = seen_lines(history.steps());
    let shown = |path: &str| history.steps().iter().any(|step| shows(step, path));
    for citation in citations(&result.findings) {
        let (path, line) = (&citation.path, citation.line);
        let page = pages.get(path);
        let by_others = known.iter().any(|other| other.path == *path);
        if page.is_none() && !by_others && !shown(path) {
            faults.add(Check::Correctness, format!("{path}:{line} is cited, and {path} was never read"));
        }
        let Some(first) = page.and_then(|page| page.get(&line)) else { continue };
        let after = (1..=LINES_OF_A_QUOTE).filter_map(|n| page.and_then(|page| page.get(&(line + n))));
        let there: Vec<&str> = std::iter::once(first).chain(after).map(String::as_str).collect();
        if !bare(&there.join(" ")).contains(&bare(&citation.quote)) {
            let quote = brief(&citation.quote);
            faults.add(Check::Correctness, format!("{quote:?} does not stand at {path}:{line}"));
        }
    }
}

fn shows(step: &Step, path: &str) -> bool {
    step.observations().any(|seen| seen.content.contains(path))
}

pub(super) fn correct_report(report: &Report, known: &BTreeSet<&str>, faults: &mut VerifyFaults) {
    if known.is_empty() {
        return;
    }
    for (path, line) in cited_in(&report.body) {
        if !known.contains(path) {
            faults.add(Check::Correctness, format!("{path}:{line} is cited, and no result names {path}"));
        }
    }
}

/// `path.ext:12` in a text, as it was read before places were looked up. Addresses and times are none.
pub(super) fn cited_in(text: &str) -> impl Iterator<Item = (&str, u32)> {
    let is_part = |c: char| c.is_alphanumeric() || "/._-:".contains(c);
    text.split(move |c| !is_part(c)).filter_map(|word| {
        let (path, line) = word.trim_end_matches([':', '.']).rsplit_once(':')?;
        let line = line.parse().ok()?;
        let (_, extension) = path.rsplit_once('.')?;
        let is_file = extension.chars().any(char::is_alphabetic) && !extension.contains('/');
        (is_file && !path.contains(':')).then_some((path, line))
    })
}

/// Letters and digits alone: markup and white space do not count.
fn bare(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
