//! Numbers of a report come from results: one that stands in none of them, nor follows from one by rounding or by another
//! way to write it, is named. Pure.

use std::ops::Range;

use muster_shared::flow::{LeafRef, Report, TaskOffered, Work};
use muster_shared::text::unit::{self, Dimension, Unit};
use muster_shared::text::{Numeral, normalise_space, numerals};

use super::scan;

/// What stands before such numbers at the end of a report.
const NOTE: &str = "\n> Not from the results of this run:";
/// Most numbers that are named.
const MOST: usize = 8;
/// Largest number that may count what the report itself lists.
const SMALL: f64 = 12.0;
/// Letters around a number that are shown with it.
const SHOWN: usize = 24;

/// Words that are counted by whoever writes a report.
const COUNTED: [&str; 34] = [
    "option",
    "document",
    "file",
    "task",
    "point",
    "step",
    "reason",
    "item",
    "source",
    "result",
    "finding",
    "question",
    "way",
    "thing",
    "part",
    "section",
    "difference",
    "criterion",
    "criteria",
    "candidate",
    "tool",
    "alternative",
    "approach",
    "category",
    "aspect",
    "key",
    "main",
    "of",
    "out",
    "other",
    "more",
    "different",
    "such",
    "recommendation",
];
/// Words before a number that names a place in the report.
const NAMING: [&str; 13] = [
    "option", "step", "section", "table", "figure", "fig", "no", "number", "part", "task", "chapter",
    "question", "item",
];
/// Words before a number that is not meant exactly.
const ABOUT: [&str; 14] = [
    "about",
    "around",
    "roughly",
    "nearly",
    "almost",
    "over",
    "approximately",
    "some",
    "under",
    "than",
    "ca",
    "circa",
    "to",
    "exceeding",
];

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

/// The numbers, where groups of three digits after a space are one that is known.
fn joined(text: &str, numbers: Vec<Numeral>, known: &Known) -> Vec<Numeral> {
    let mut all: Vec<Numeral> = Vec::new();
    for number in numbers {
        let is_group =
            text[number.at.clone()].len() == 3 && number.digits.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(before) = all.last_mut().filter(|before| is_group && before.at.end + 1 == number.at.start)
        {
            let digits = format!("{}{}", before.digits, &text[number.at.clone()]);
            let whole = Numeral { at: before.at.start..number.at.end, digits, suffix: number.suffix.clone() };
            if text[before.at.end..].starts_with(' ') && known.has(text, &whole) {
                *before = whole;
                continue;
            }
        }
        all.push(number);
    }
    all
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
    if let Work::Write { failed, uncovered, stale, conflicts, revision, .. } = &offer.work {
        texts.extend(failed.iter().map(|entry| serde_json::to_string(entry).unwrap_or_default()));
        texts.extend(uncovered.iter().cloned());
        texts.extend(stale.iter().map(|entry| serde_json::to_string(entry).unwrap_or_default()));
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

/// Whether a number only numbers something: an item of a list, a heading, an option.
fn is_marker(text: &str, number: &Numeral) -> bool {
    let line = text[..number.at.start].rfind('\n').map_or(0, |end| end + 1);
    let (before, after) = (&text[line..number.at.start], &text[number.at.end..]);
    let begins = before.trim_start().trim_start_matches(['#', '*', '-', '>', '|', ' ']).is_empty();
    let is_heading = before.trim_start().starts_with('#');
    let ends_marker =
        after.starts_with(['.', ')', ':']) && !after[1..].starts_with(|c: char| c.is_ascii_digit());
    let word = before.trim_end().rsplit(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
    let word = word.unwrap_or_default().to_lowercase();
    let is_ordinal = ["st", "nd", "rd", "th"].contains(&number.suffix.as_str());
    begins && (ends_marker || is_heading)
        || before.trim_end().ends_with('#')
        || is_ordinal
        || NAMING.contains(&word.trim_end_matches('s'))
}

/// What numbers the results have.
struct Known {
    digits: Vec<String>,
    values: Vec<(f64, Unit)>,
}

impl Known {
    fn of(texts: &[String]) -> Self {
        let (mut digits, mut values) = (Vec::new(), Vec::new());
        for text in texts {
            for number in numerals(text) {
                if let Some(value) = number.value() {
                    values.push((value.abs(), unit_of(text, &number)));
                }
                digits.push(number.digits.trim_start_matches('-').to_owned());
            }
            let words = text.split(|c: char| !c.is_alphabetic()).map(str::to_lowercase);
            let numbers = words.filter_map(|word| number_of(&word));
            values.extend(numbers.map(|value| (value, unit::read(""))));
        }
        Self { digits, values }
    }

    fn has(&self, text: &str, number: &Numeral) -> bool {
        let digits = number.digits.trim_start_matches('-');
        let Some(value) = number.value().map(f64::abs) else {
            return self.digits.iter().any(|known| known == digits);
        };
        if self.digits.iter().any(|known| known == digits) || counts(text, number, value) {
            return true;
        }
        let unit = unit_of(text, number);
        let decimals = i32::try_from(number.decimals()).unwrap_or(i32::MAX);
        let exact = 0.5 * 10f64.powi(-decimals);
        let rough = match is_about(text, number) {
            true => exact.max(zeros(value)),
            false => exact.max(zeros(value) * 0.5).min(value * 0.06),
        };
        self.values.iter().any(|(known, of)| {
            let near = |one: f64, other: f64, within: f64| (one - other).abs() <= within * (1.0 + 1e-9);
            let percent = |unit: &Unit| unit.dimension == Dimension::Percent;
            let plain = near(value, *known, rough) && has_more(*known, value);
            let multiplied = near(value * unit.factor, known * of.factor, rough * unit.factor)
                && (unit.dimension == of.dimension || is_bare(&unit) || is_bare(of));
            let in_percent = percent(&unit) && !percent(of) && near(value, known * 100.0, exact)
                || percent(of) && !percent(&unit) && near(value * 100.0, *known, exact * 100.0);
            plain || multiplied || in_percent
        })
    }
}

const fn is_bare(unit: &Unit) -> bool {
    matches!(unit.dimension, Dimension::None | Dimension::Other(_))
}

/// Whether a number may be another one rounded: that has more digits.
fn has_more(known: f64, value: f64) -> bool {
    known.fract() != 0.0 || zeros(value) > 1.0 && zeros(known) < zeros(value)
}

/// 1,000 for 25,000: by how much a whole number was rounded, as far as its zeros say.
fn zeros(value: f64) -> f64 {
    let mut step = 1.0;
    while value >= step * 100.0 && (value / (step * 10.0)).fract() == 0.0 {
        step *= 10.0;
    }
    step
}

/// Whether words before a number say that it is not meant exactly.
fn is_about(text: &str, number: &Numeral) -> bool {
    let before = text[..number.at.start].trim_end();
    let word = before.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
    before.ends_with(['~', '≈', '>', '<']) || ABOUT.contains(&word.as_str())
}

/// Whether a small number counts what the report lists.
fn counts(text: &str, number: &Numeral, value: f64) -> bool {
    let next = word_after(text, number).to_lowercase();
    let next = next.trim_end_matches('s');
    value <= SMALL && value.fract() == 0.0 && COUNTED.contains(&next) && number.suffix.is_empty()
}

fn word_after<'a>(text: &'a str, number: &Numeral) -> &'a str {
    let rest = text[number.at.end..].trim_start_matches([' ', '\u{a0}', '\u{202f}', '*', '-']);
    let end = rest.find(|c: char| !c.is_alphabetic() && c != '%' && c != '°').unwrap_or(rest.len());
    &rest[..end]
}

fn unit_of(text: &str, number: &Numeral) -> Unit {
    let short = match number.suffix.as_str() {
        "k" => Some(1e3),
        "m" | "mio" => Some(1e6),
        "b" | "bn" => Some(1e9),
        _ => None,
    };
    if let Some(times) = short.or_else(|| (word_after(text, number) == "k").then_some(1e3)) {
        return Unit { factor: times, ..unit::read("") };
    }
    let word = if number.suffix.is_empty() { word_after(text, number) } else { number.suffix.as_str() };
    let known = unit::read(word);
    match known.dimension {
        // Any noun would be a unit of its own.
        Dimension::Other(_) => Unit { dimension: Dimension::None, ..known },
        Dimension::None | Dimension::Percent | Dimension::Temperature | Dimension::Of(_) => known,
    }
}

fn number_of(word: &str) -> Option<f64> {
    const WORDS: [(&str, f64); 15] = [
        ("zero", 0.0),
        ("one", 1.0),
        ("two", 2.0),
        ("three", 3.0),
        ("four", 4.0),
        ("five", 5.0),
        ("six", 6.0),
        ("seven", 7.0),
        ("eight", 8.0),
        ("nine", 9.0),
        ("ten", 10.0),
        ("eleven", 11.0),
        ("twelve", 12.0),
        ("twenty", 20.0),
        ("thirty", 30.0),
    ];
    WORDS.iter().find(|(known, _)| *known == word).map(|(_, value)| *value)
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

    use super::*;
    use crate::testing::offer;

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
        let work = Work::Write {
            results: vec![leaf],
            failed: Vec::new(),
            uncovered: Vec::new(),
            stale: Vec::new(),
            conflicts: Vec::new(),
            revision: None,
        };
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
