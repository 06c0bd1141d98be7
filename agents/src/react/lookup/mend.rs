//! What becomes of a product by what is known of its places: what stands near is corrected, what does not stand is left
//! out and marked. Pure.

use std::ops::Range;

use muster_shared::flow::{Citation, Ending, Product, Report, Standing, Step, TaskOffered, TaskResult};

use super::super::history::History;
use super::{Cite, Judged, Looked, Spot, Text, Word, look};
use crate::roles::Submission;

/// Stands in a text where a place was that does not hold.
pub(super) const NOT_BORNE_OUT: &str = "*(not borne out)*";
/// What is added to a finding that has no place left.
const FINDING_NOT_BORNE_OUT: &str = "(not borne out: what it cited does not hold)";

/// A submission with its places corrected, and the others as they are.
pub(in crate::react) fn corrected(mut submission: Submission, judged: &Judged) -> Submission {
    if let Some(product) = &mut submission.product {
        mend(product, judged, false);
    }
    submission
}

/// A submission with its places corrected, and without those that do not hold; it says so.
pub(in crate::react) fn left_out(submission: Submission, judged: &Judged) -> Submission {
    let mut submission = without_false(submission, judged);
    let whys = judged.whys();
    if whys.is_empty() || submission.product.is_none() {
        return submission;
    }
    if submission.ending == Ending::Done {
        submission.ending = Ending::DonePartial;
    }
    let said = format!("left out, because it is not borne out: {}", whys.join("; "));
    submission.reason =
        if submission.reason.is_empty() { said } else { format!("{}; {said}", submission.reason) };
    submission
}

/// The same with nothing said of it but in the product itself.
pub(in crate::react) fn without_false(mut submission: Submission, judged: &Judged) -> Submission {
    let Some(product) = &mut submission.product else { return submission };
    mend(product, judged, true);
    let whys = judged.whys();
    if let Product::Report(report) = product
        && !whys.is_empty()
    {
        name_in(report, &whys);
    }
    submission
}

/// What was submitted in a step that did not hold, as far as its places stand.
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

fn name_in(report: &mut Report, whys: &[String]) {
    let listed: Vec<String> = whys.iter().map(|why| format!("> - {}\n", why.replace('\n', " "))).collect();
    report.body = format!("{}\n\n> Not borne out:\n{}", report.body.trim_end(), listed.concat());
}

/// Corrects what stands elsewhere; with `strict`, what does not stand is left out.
fn mend(product: &mut Product, judged: &Judged, strict: bool) {
    match product {
        Product::Result(result) => mend_result(result, judged, strict),
        Product::Report(report) => {
            mend_text(&mut report.body, Text::Report, judged, strict);
        }
        _ => {}
    }
}

fn mend_result(result: &mut TaskResult, judged: &Judged, strict: bool) {
    mend_text(&mut result.conclusion, Text::Conclusion, judged, strict);
    mend_text(&mut result.body, Text::Body, judged, strict);
    for (at, finding) in result.findings.iter_mut().enumerate() {
        mend_text(&mut finding.text, Text::Finding(at), judged, strict);
        let (had, word) = (finding.citations.len(), |of| judged.word(Spot::Finding(at, of)));
        let good = |of: usize| matches!(word(of), Some(Word::Stands(_) | Word::Seen));
        let left: Vec<usize> = (0..had).filter(|of| !matches!(word(*of), Some(Word::False { .. }))).collect();
        finding.looked_up =
            !left.is_empty() && left.iter().all(|of| good(*of)) && (strict || left.len() == had);
        finding.citations = mended(&finding.citations, strict, word);
        if strict && had > 0 && finding.citations.is_empty() {
            finding.verified = false;
            finding.text = format!("{} {FINDING_NOT_BORNE_OUT}", finding.text);
        }
    }
    for (at, claim) in result.claims.iter_mut().enumerate() {
        claim.evidence = mended(&claim.evidence, strict, |of| judged.word(Spot::Claim(at, of)));
    }
}

/// Citations with their line and words as they stand; with `strict`, without those that do not.
fn mended<'a>(
    citations: &[Citation],
    strict: bool,
    word: impl Fn(usize) -> Option<&'a Word>,
) -> Vec<Citation> {
    let numbered = citations.iter().enumerate();
    let kept = numbered.filter_map(|(of, citation)| match word(of) {
        Some(Word::False { .. }) if strict => None,
        Some(Word::Stands(Standing { path, line, quote, .. })) => Some(Citation {
            path: path.clone().unwrap_or_else(|| citation.path.clone()),
            line: line.unwrap_or(citation.line),
            quote: quote.clone().unwrap_or_else(|| citation.quote.clone()),
        }),
        Some(Word::False { .. } | Word::Seen | Word::Unknown) | None => Some(citation.clone()),
    });
    kept.collect()
}

impl Judged {
    fn whys(&self) -> Vec<String> {
        self.faults().into_iter().map(|fault| fault.why).collect()
    }

    fn word(&self, spot: Spot) -> Option<&Word> {
        self.cites.iter().find(|(cite, _)| cite.spot == spot).map(|(_, word)| word)
    }

    /// Whether another place of the same statement stands.
    fn is_borne_out_by_another(&self, cite: &Cite) -> bool {
        self.cites.iter().any(|(other, word)| {
            other.place.group == cite.place.group
                && other.spot == cite.spot
                && matches!(word, Word::Stands(_) | Word::Seen)
        })
    }
}

/// Corrects the places of a text from its end on, so that those before stay where they are.
fn mend_text(text: &mut String, of: Text, judged: &Judged, strict: bool) {
    for (cite, word) in judged.cites.iter().rev().filter(|(cite, _)| cite.spot == Spot::Text(of)) {
        let Some(found) = &cite.text else { continue };
        match word {
            Word::Stands(Standing { path, line, .. }) if path.is_some() || line.is_some() => {
                let path = path.as_deref().filter(|path| !path.contains(' ')).unwrap_or(&cite.place.path);
                let first = line.unwrap_or(cite.place.line);
                let length =
                    found.to.map(|to| to.saturating_sub(cite.place.line)).filter(|length| *length > 0);
                let last =
                    length.map(|length| format!("-{}", first.saturating_add(length))).unwrap_or_default();
                text.replace_range(found.at.clone(), &format!("{path}:{first}{last}"));
            }
            Word::False { .. } if strict => {
                let (at, by) = struck(text, &found.at, judged.is_borne_out_by_another(cite));
                text.replace_range(at, by);
            }
            _ => {}
        }
    }
}

/// What of a text is taken out with a place, and what stands there instead.
fn struck(text: &str, at: &Range<usize>, others_stand: bool) -> (Range<usize>, &'static str) {
    let (before, after) = (&text[..at.start], &text[at.end..]);
    if others_stand {
        // With what parts it from the others.
        let gap = after.len() - after.trim_start_matches([';', ',', ' ']).len();
        let is_first = before.trim_end().ends_with(['[', '(']);
        let lead = before.len() - before.trim_end_matches([';', ',', ' ']).len();
        return if is_first { (at.start..at.end + gap, "") } else { (at.start - lead..at.end, "") };
    }
    let (mut start, mut end) = (at.start, at.end);
    for (open, close) in [('`', '`'), ('[', ']'), ('(', ')')] {
        if text[..start].ends_with(open) && text[end..].starts_with(close) {
            (start, end) = (start - open.len_utf8(), end + close.len_utf8());
        }
    }
    (start..end, NOT_BORNE_OUT)
}
