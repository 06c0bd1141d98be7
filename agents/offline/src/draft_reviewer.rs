//! Reviewing a draft by rule: whether there is anything in it, and which numbers and places in it no result has.

use std::collections::BTreeSet;

use muster_shared::flow::{
    DraftRemark, DraftReview, DraftVerdict, Finding, LeafRef, Product, Report, TaskOffered,
};
use muster_shared::text::numerals;

use super::text::{counted, normalise_space, sentences};
use super::{OfflineMove, thought};

/// Sections that tell of the run rather than of the matter.
const NOT_OF_THE_MATTER: [&str; 5] =
    ["Not answered by the documents", "Not done", "How this report was made", "Unfinished", "Data"];

pub(super) fn next(offer: &TaskOffered, draft: &Report, results: &[LeafRef]) -> OfflineMove {
    let review = review(&offer.goal, draft, results);
    let said = match review.verdict {
        DraftVerdict::Accept => "Nothing is wrong with the draft that a rule could tell.".to_owned(),
        DraftVerdict::Revise => {
            format!("There is {} on the draft.", counted(review.lines().len(), "remark", "remarks"))
        }
    };
    OfflineMove::submit(
        thought(said, "Every number and place is to be in a result.", "Submit the review."),
        &Product::DraftReview(review),
    )
}

fn review(goal: &str, draft: &Report, results: &[LeafRef]) -> DraftReview {
    let is_empty = !draft.body.lines().any(|line| !line.trim().is_empty() && !line.starts_with('#'));
    if is_empty {
        let text = "it says nothing".to_owned();
        let remarks = vec![DraftRemark { place: "the whole draft".to_owned(), text }];
        return DraftReview { verdict: DraftVerdict::Revise, remarks, ..DraftReview::default() };
    }
    let unsupported = unsupported(goal, draft, results);
    let verdict = if unsupported.is_empty() { DraftVerdict::Accept } else { DraftVerdict::Revise };
    DraftReview { verdict, unsupported, ..DraftReview::default() }.bounded()
}

/// The sentences with a number, or a place, that stands in no result.
fn unsupported(goal: &str, draft: &Report, results: &[LeafRef]) -> Vec<String> {
    let known = ReportFacts::of(goal, results);
    let statements = statements(&draft.body);
    let said = statements.iter().flat_map(|line| sentences(line).into_iter().map(|range| &line[range]));
    let wrong = said.map(normalise_space).filter(|text| !known.bears_out(text));
    let mut unsupported: Vec<String> = Vec::new();
    for text in wrong {
        if !unsupported.contains(&text) {
            unsupported.push(text);
        }
    }
    unsupported
}

/// The lines that say something of the matter.
fn statements(body: &str) -> Vec<&str> {
    let mut of_the_matter = true;
    let mut statements = Vec::new();
    for line in body.lines().map(str::trim) {
        if let Some(heading) = line.strip_prefix('#') {
            let heading = heading.trim_start_matches('#').trim();
            of_the_matter = !NOT_OF_THE_MATTER.contains(&heading);
        } else if of_the_matter && !line.is_empty() && !line.starts_with('>') {
            statements.push(line.trim_start_matches(['-', '*', ' ']));
        }
    }
    statements
}

/// Numbers and places that may stand in a report.
struct ReportFacts {
    numbers: BTreeSet<String>,
    places: BTreeSet<String>,
}

impl ReportFacts {
    fn of(goal: &str, results: &[LeafRef]) -> Self {
        let mut numbers: BTreeSet<String> = numbers(goal).collect();
        let mut places = BTreeSet::new();
        for leaf in results {
            let result = &leaf.result;
            let data = result.data.as_ref().map(|data| data.to_string());
            let claims = result.claims.iter().map(|claim| format!("{:?}", claim.value));
            let mut texts: Vec<String> = claims.chain(data).collect();
            texts.push(result.conclusion.clone());
            texts.extend([leaf.name.clone(), leaf.goal.clone()]);
            texts.extend(result.milestones.iter().chain(&result.unanswered).cloned());
            for Finding { text, citations, .. } in &result.findings {
                texts.push(text.clone());
                texts.extend(citations.iter().map(|place| place.quote.clone()));
                places.extend(citations.iter().map(ToString::to_string));
            }
            numbers.extend(texts.iter().flat_map(|text| self::numbers(text)));
        }
        Self { numbers, places }
    }

    fn bears_out(&self, sentence: &str) -> bool {
        let mut parts = sentence.split('`');
        let mut quoted = false;
        parts.all(|part| {
            let holds = if quoted {
                !is_place(part) || self.places.contains(part)
            } else {
                numbers(part).all(|number| self.numbers.contains(&number))
            };
            quoted = !quoted;
            holds
        })
    }
}

/// Whether this is written as a place in a document: `path:line`.
fn is_place(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(path, line)| {
        path.contains('.') && !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The numbers of a text that a rule can compare: of two digits or more.
fn numbers(text: &str) -> impl Iterator<Item = String> {
    let digits = numerals(text).into_iter().map(|number| number.digits);
    digits.filter(|number| number.bytes().filter(u8::is_ascii_digit).count() > 1)
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::{Citation, TaskResult};
    use muster_shared::ids::TaskIndex;

    use super::*;

    fn leaf(text: &str) -> LeafRef {
        let citations = vec![Citation { path: "a.md".into(), line: 3, quote: String::new() }];
        let finding = Finding { text: text.into(), citations, ..Finding::default() };
        let result = TaskResult { conclusion: text.into(), findings: vec![finding], ..TaskResult::default() };
        let (name, goal) = ("apples".into(), "Describe apples".into());
        LeafRef { index: TaskIndex::top(1), name, goal, query: None, result }
    }

    #[test]
    fn a_draft_is_held_against_goal_and_results() {
        let goal = "Describe apples and pears.";
        let good = "# Fruit\n\nApples weigh 150 g (`a.md:3`). Of pears nothing is known.";
        for (body, unsupported) in [
            (good, vec![]),
            ("Apples weigh 170 g. Pears are green.", vec!["Apples weigh 170 g."]),
            ("Apples weigh 150 g (`b.md:9`). Pears too.", vec!["Apples weigh 150 g (`b.md:9`)."]),
            // What tells of the run is no claim.
            ("Apples and pears.\n\n## How this report was made\n\nFrom 24 documents.", vec![]),
            ("Apples, 3 of them, and pears: see `muster show`.", vec![]),
        ] {
            let draft = Report { body: body.into(), ..Report::default() };
            let review = review(goal, &draft, &[leaf("Apples weigh 150 g")]);
            assert_eq!(review.unsupported, unsupported, "{body}");
        }
    }

    #[test]
    fn an_empty_draft_is_sent_back() {
        for body in ["", "# Only a title\n\n"] {
            let review = review("Describe apples.", &Report { body: body.into(), ..Report::default() }, &[]);
            assert!(review.asks_for_changes(), "{body:?}");
        }
    }
}
