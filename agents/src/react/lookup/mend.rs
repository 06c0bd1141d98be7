//! Corrections of a product by the verdicts on its places: a citation moves to the line that contains its quote; a statement
//! with a proven fault is left out and named as unanswered. Pure.

use std::ops::Range;

use muster_corpus::CitedPlace;
use muster_shared::flow::{Citation, Finding, Product, Standing, Step, TaskOffered, TaskResult};

use super::super::history::History;
use super::sheet::bare;
use super::{Cite, Judged, Looked, Spot, Text, Verdict, look};
use crate::roles::Submission;

/// A submission with its places corrected; faults stay.
pub(in crate::react) fn corrected(mut submission: Submission, judged: &Judged) -> Submission {
    if let Some(product) = &mut submission.product {
        mend(product, judged, false);
    }
    submission
}

/// A submission with its places corrected and without statements with a proven fault, which it names as unanswered.
pub(in crate::react) fn left_out(mut submission: Submission, judged: &Judged) -> Submission {
    if let Some(product) = &mut submission.product {
        mend(product, judged, true);
    }
    submission
}

/// The submission of a step that was sent back, without its faults.
pub(in crate::react) fn as_far_as_it_stands(
    history: &History,
    submission: Submission,
    step: &Step,
    offer: &TaskOffered,
) -> Submission {
    match look(history, &step.notes, &submission, offer) {
        Looked::Known(judged) => left_out(submission, &judged),
        Looked::ToAsk(_) => submission,
    }
}

/// Corrects places; with `strict`, statements with a proven fault are left out.
fn mend(product: &mut Product, judged: &Judged, strict: bool) {
    match product {
        Product::Result(result) => mend_result(result, judged, strict),
        Product::Report(report) => {
            mend_text(&mut report.body, Text::Report, judged, strict);
            name_gaps(&mut report.unanswered, judged, strict);
        }
        _ => {}
    }
}

fn mend_result(result: &mut TaskResult, judged: &Judged, strict: bool) {
    mend_text(&mut result.conclusion, Text::Conclusion, judged, strict);
    mend_text(&mut result.body, Text::Body, judged, strict);
    let mut kept: Vec<Finding> = Vec::new();
    for (at, mut finding) in std::mem::take(&mut result.findings).into_iter().enumerate() {
        mend_text(&mut finding.text, Text::Finding(at), judged, strict);
        let (had, verdict) = (finding.citations.len(), |of| judged.verdict(Spot::Finding(at, of)));
        let good = |of: usize| matches!(verdict(of), Some(Verdict::Stands(_) | Verdict::Seen));
        let left: Vec<usize> =
            (0..had).filter(|of| !matches!(verdict(*of), Some(Verdict::False { .. }))).collect();
        finding.looked_up =
            !left.is_empty() && left.iter().all(|of| good(*of)) && (strict || left.len() == had);
        finding.citations = mended(&finding.citations, strict, verdict);
        if !strict || had == 0 || !finding.citations.is_empty() {
            kept.push(finding);
        }
    }
    result.findings = kept;
    for (at, claim) in result.claims.iter_mut().enumerate() {
        claim.evidence = mended(&claim.evidence, strict, |of| judged.verdict(Spot::Claim(at, of)));
    }
    name_gaps(&mut result.unanswered, judged, strict);
}

/// Names each statement that was left out once, as its author wrote it.
fn name_gaps(unanswered: &mut Vec<String>, judged: &Judged, strict: bool) {
    let lost = judged.cites.iter().filter(|(cite, verdict)| {
        strict && matches!(verdict, Verdict::False { .. }) && !judged.has_other_place(cite)
    });
    for (cite, _) in lost {
        let statement = bare(&cite.place.statement);
        let is_known = || unanswered.iter().any(|known| known.contains(statement));
        if !statement.is_empty() && !is_known() {
            unanswered.push(statement.to_owned());
        }
    }
}

/// Citations with corrected lines; with `strict`, without those with a proven fault.
fn mended<'a>(
    citations: &[Citation],
    strict: bool,
    verdict: impl Fn(usize) -> Option<&'a Verdict>,
) -> Vec<Citation> {
    let kept = citations.iter().enumerate().filter_map(|(of, citation)| match verdict(of) {
        Some(Verdict::False { .. }) if strict => None,
        Some(Verdict::Stands(Standing { path, line, .. })) => Some(Citation {
            path: path.clone().unwrap_or_else(|| citation.path.clone()),
            line: line.unwrap_or(citation.line),
            quote: citation.quote.clone(),
        }),
        Some(Verdict::False { .. } | Verdict::Seen | Verdict::Unknown) | None => Some(citation.clone()),
    });
    kept.collect()
}

impl Judged {
    fn verdict(&self, spot: Spot) -> Option<&Verdict> {
        self.cites.iter().find(|(cite, _)| cite.spot == spot).map(|(_, verdict)| verdict)
    }

    fn together<'a>(&'a self, cite: &'a Cite) -> impl Iterator<Item = &'a (Cite, Verdict)> {
        self.cites.iter().filter(move |(other, _)| other.place.group == cite.place.group)
    }

    /// Whether another place of the same statement stands.
    fn has_other_place(&self, cite: &Cite) -> bool {
        self.together(cite).any(|(_, verdict)| matches!(verdict, Verdict::Stands(_) | Verdict::Seen))
    }

    fn is_first_of_statement(&self, cite: &Cite) -> bool {
        self.together(cite).next().is_some_and(|(first, _)| first == cite)
    }
}

/// Corrects the places of a text from its end, so that earlier positions stay valid.
fn mend_text(text: &mut String, of: Text, judged: &Judged, strict: bool) {
    for (cite, verdict) in judged.cites.iter().rev().filter(|(cite, _)| cite.spot == Spot::Text(of)) {
        let Some(found) = &cite.text else { continue };
        match verdict {
            Verdict::Stands(standing) if standing.path.is_some() || standing.line.is_some() => {
                text.replace_range(found.at.clone(), &moved(cite, standing));
            }
            Verdict::False { .. } if strict => {
                let is_last_place = judged.is_first_of_statement(cite) && !judged.has_other_place(cite);
                let statement = statement_at(text, cite, &found.at).filter(|_| is_last_place);
                text.replace_range(statement.unwrap_or_else(|| citation_at(text, &found.at)), "");
            }
            Verdict::Stands(_) | Verdict::Seen | Verdict::Unknown | Verdict::False { .. } => {}
        }
    }
}

/// `a.md:12 (3 → 12)`: a corrected place; it names the move to another line.
fn moved(cite: &Cite, Standing { path, line, .. }: &Standing) -> String {
    let CitedPlace { path: cited, line: from, last, .. } = &cite.place;
    let path = path.as_deref().filter(|path| !path.contains(' ')).unwrap_or(cited);
    let first = line.unwrap_or(*from);
    let length = last.saturating_sub(*from);
    let last = if length > 0 { format!("-{}", first.saturating_add(length)) } else { String::new() };
    let note = line.map(|line| format!(" ({from} → {line})")).unwrap_or_default();
    format!("{path}:{first}{last}{note}")
}

/// The range of the statement that leads up to a citation, if it is a sentence or an item of the text and not all of it.
fn statement_at(text: &str, cite: &Cite, at: &Range<usize>) -> Option<Range<usize>> {
    let statement = cite.place.statement.trim_start();
    let is_whole = !statement.is_empty() && !statement.contains('|');
    let start = at.start.checked_sub(statement.len()).filter(|_| is_whole)?;
    text.get(start..at.start).filter(|before| *before == statement)?;
    let after = text[at.end..].trim_start_matches(['`', ']', ')']).trim_start_matches('.');
    let end = text.len() - after.len();
    let is_part = statement.starts_with(['#', ',', ';', ']', ')', '`']);
    let is_all = text[..start].trim().is_empty() && after.trim().is_empty();
    (!is_part && !is_all).then_some(start..end)
}

/// The range of a citation with its brackets and the separator next to it.
fn citation_at(text: &str, at: &Range<usize>) -> Range<usize> {
    let (mut start, mut end) = (at.start, at.end);
    for (open, close) in [('`', '`'), ('[', ']'), ('(', ')')] {
        if text[..start].ends_with(open) && text[end..].starts_with(close) {
            (start, end) = (start - open.len_utf8(), end + close.len_utf8());
        }
    }
    let before = text[..start].trim_end_matches(' ');
    if before.ends_with([',', ';']) {
        start = before.trim_end_matches([',', ';']).len();
    } else if text[end..].starts_with([',', ';']) {
        end = text.len() - text[end..].trim_start_matches([',', ';', ' ']).len();
    } else {
        start = before.len();
    }
    start..end
}
