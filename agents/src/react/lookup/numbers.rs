//! Numbers of a report come from results: one that stands in none of them, nor follows from one by rounding or by another
//! way to write it, is named. Pure.

use std::ops::Range;

use muster_corpus::figures::{Known, is_marker, joined};
use muster_shared::flow::{LeafRef, Report, TaskOffered, Work};
use muster_shared::text::{normalise_space, numerals};

use super::scan;

/// What stands before such numbers at the end of a report.
const NOTE: &str = "\n> Not from the results of this run:";
/// Most numbers that are named.
const MOST: usize = 8;
/// Letters around a number that are shown with it.
const SHOWN: usize = 24;

/// The numbers of a report, as they stand with the words around them, that come from no result.
pub(in crate::react) fn not_from_results(report: &Report, offer: &TaskOffered) -> Vec<String> {
    let Work::Write { results, .. } = &offer.work else { return Vec::new() };
    let known = Known::of(&given(offer, results));
    let text = own_part(&report.body);
    let left_out = not_said(text);
    let mut unknown: Vec<String> = Vec::new();
    for number in joined(text, numerals(text), &known) {
        let is_said = !left_out.iter().any(|range| range.contains(&number.at.start));
        if is_said && !is_marker(text, &number) && !known.has(text, &number) {
            let shown = in_context(text, &number.at);
            if !unknown.contains(&shown) {
                unknown.push(shown);
            }
        }
    }
    unknown.truncate(MOST);
    unknown
}

/// All texts that numbers may come from.
fn given(offer: &TaskOffered, results: &[LeafRef]) -> Vec<String> {
    let mut texts = vec![offer.goal.clone(), offer.role_name.clone()];
    texts.extend(offer.conversation.iter().flat_map(|turn| [turn.asked.clone(), turn.answered.clone()]));
    for leaf in results {
        let result = &leaf.result;
        texts.extend([leaf.name.clone(), leaf.goal.clone(), result.conclusion.clone(), result.body.clone()]);
        texts.extend(result.unanswered.iter().chain(&result.milestones).cloned());
        for finding in &result.findings {
            texts.extend([
                finding.text.clone(),
                finding.subquestion.clone(),
                format!("{} %", finding.confidence),
            ]);
            texts.extend(finding.citations.iter().map(|citation| citation.quote.clone()));
        }
        for claim in &result.claims {
            texts.extend([claim.subject.clone(), claim.value.to_string(), claim.method.clone()]);
            texts.push(format!("{} %", claim.confidence));
            texts.extend(claim.evidence.iter().map(|citation| citation.quote.clone()));
        }
        texts.extend(result.data.iter().map(|data| data.to_string()));
    }
    if let Work::Write { failed, uncovered, conflicts, revision, .. } = &offer.work {
        texts.extend(failed.iter().map(|entry| serde_json::to_string(entry).unwrap_or_default()));
        texts.extend(uncovered.iter().cloned());
        texts.extend(conflicts.iter().map(|conflict| serde_json::to_string(conflict).unwrap_or_default()));
        texts.extend(
            revision.iter().map(|revision| serde_json::to_string(&revision.review).unwrap_or_default()),
        );
    }
    let findings: usize = results.iter().map(|leaf| leaf.result.findings.len()).sum();
    texts.push(format!("{} {findings}", results.len()));
    texts
}

/// The part of a report that its author wrote.
fn own_part(body: &str) -> &str {
    let added = ["\n## Unfinished\n", "\n## Data\n", "\n> Not borne out:", NOTE];
    added.iter().filter_map(|section| body.find(section)).min().map_or(body, |end| &body[..end])
}

/// What is not said: code, places, addresses, headings' numbers, marks of notes.
fn not_said(text: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = scan::places(text).into_iter().map(|place| place.at).collect();
    ranges.extend(scan::fences(text));
    let mut at = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let bare = word.trim_start_matches(['(', '[', '<', '*', '`', '"']);
        let is_note = word.trim_end_matches([',', '.', ';', ':']).trim().starts_with('[')
            && word.trim().trim_end_matches([',', '.', ';', ':']).ends_with(']')
            && word.len() < 8;
        let is_path = bare.contains('/') && bare.contains(|c: char| c.is_alphabetic());
        if bare.contains("://") || is_note || is_path || is_index(bare) {
            ranges.push(at..at + word.len());
        }
        at += word.len();
    }
    ranges
}

/// `1-2-3`: the index of a task.
fn is_index(word: &str) -> bool {
    let word = word.trim_end_matches(|c: char| !c.is_ascii_digit());
    let mut parts = word.split('-');
    let small = |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    word.matches('-').count() >= 1 && parts.all(small)
}

/// A number with some words around it.
fn in_context(text: &str, at: &Range<usize>) -> String {
    let line = text[..at.start].rfind('\n').map_or(0, |end| end + 1);
    let from = text.ceil_char_boundary(at.start.saturating_sub(SHOWN).max(line));
    let end = text[at.end..].find('\n').map_or(text.len(), |end| at.end + end);
    let to = text.floor_char_boundary((at.end + SHOWN).min(end));
    let from = text[from..at.start].find(' ').filter(|_| from > line).map_or(from, |space| from + space);
    let to = text[at.end..to].rfind(' ').filter(|_| to < end).map_or(to, |space| at.end + space);
    normalise_space(&text[from..to])
}

/// A report that says of these numbers that they come from no result.
pub(in crate::react) fn marked(mut report: Report, unknown: &[String]) -> Report {
    if !unknown.is_empty() && !report.body.contains(NOTE) {
        let listed: Vec<String> = unknown.iter().map(|number| format!("“{number}”")).collect();
        report.body = format!("{}\n{NOTE} {}.\n", report.body.trim_end(), listed.join(", "));
    }
    report
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::{Citation, Finding, TaskResult};
    use muster_shared::ids::{Role, TaskId, TaskIndex};
    use serde_json::json;

    use super::*;
    use crate::testing::{offer, work};

    fn writing(conclusion: &str) -> TaskOffered {
        let quote = "2009 lines were read in 21.6 s".to_owned();
        let finding = Finding {
            text: "The share is 17.5 %.".into(),
            citations: vec![Citation { path: "a.md".into(), line: 77, quote }],
            ..Finding::default()
        };
        let result =
            TaskResult { conclusion: conclusion.into(), findings: vec![finding], ..TaskResult::default() };
        let leaf = LeafRef {
            index: TaskIndex::top(1),
            name: "Count".into(),
            goal: "Count 3 things".into(),
            query: None,
            result,
        };
        let work = work(json!({ "write": { "results": [leaf], "failed": [], "uncovered": [] } }));
        let mut offer = offer(TaskId::Write, Role::Writer, work);
        offer.goal = "What holds since 2024-05-17 of the 12 limits?".into();
        offer
    }

    #[test]
    fn numbers_that_stand_in_no_result_are_named() {
        let offer =
            writing("The run used 226,431 tokens, 1.5 million bytes and 0.125 of them twice; v3.1.2.");
        for (body, expected) in [
            ("226431 tokens, 226 431 tokens, 226,431 tokens.", &[][..]),
            ("About 226 k tokens, 226,000 tokens, over 230,000 tokens, over 220,000 tokens.", &[]),
            ("1.5 million bytes, 1,500,000 bytes, 1.5 MB.", &[]),
            ("12.5 % of them, an eighth (0.13).", &[]),
            ("17.5 % is 0.175, some 18 %.", &[]),
            ("2,009 lines in 21.6 s, 22 s, 21,600 ms (a.md:4711).", &[]),
            ("Since 2024 (17 May), 12 limits.", &[]),
            ("# 7 ways\n\n1. First\n2) Second\n\n## 4.2 More\n\nOption 9, step 8 and table 6 [5].", &[]),
            ("There are 2 main options of 4 candidates, by task 1-2 (v3.1.2).", &[]),
            ("See https://x.org/9876 and\n```\nlet a = 4321;\n```\nand docs/v77/a.md.", &[]),
            ("It took 25 s.", &["It took 25 s."]),
            ("226,432 tokens were used.", &["226,432 tokens were used."]),
            ("That is 434 of them.", &["That is 434 of them."]),
            ("It is v3.1.3 now, or 17.6 %.", &["17.6 %."]),
            ("Line 77 says so: 78 of them.", &["Line 77 says so: 78 of them."]),
        ] {
            let report = Report { body: body.into(), ..Report::default() };
            let found = not_from_results(&report, &offer);
            assert_eq!(found.len(), expected.len(), "{body}: {found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.contains(expected.trim_end_matches('.')), "{body}: {found:?}");
            }
        }
        let unknown = vec!["took 25 s".to_owned()];
        let report = marked(Report { body: "It took 25 s.\n".into(), ..Report::default() }, &unknown);
        assert_eq!(report.body, "It took 25 s.\n\n> Not from the results of this run: “took 25 s”.\n");
    }
}
