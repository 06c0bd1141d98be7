//! The writer: delivers the answer.

use muster_shared::flow::{Product, Report, TaskOffered, Work};
use muster_shared::text::first_line;
use serde_json::{Value, json};

use super::{Document, Faults, RoleRules, Submission};
use crate::react::partial::UNFINISHED;

/// Longest title that is made from the goal, in characters.
const TITLE: usize = 100;
/// Longest note on an unfinished task, in characters.
const UNFINISHED_SHOWN: usize = 400;

pub(super) static RULES: RoleRules = RoleRules::single_answer(
    "writer",
    include_str!("../prompts/writer.md.j2"),
    schema,
    read,
    Some(from_prose),
);

fn schema(_: &TaskOffered) -> Value {
    json!({
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "one line"},
            "body": {"type": "string", "description": "the whole report in Markdown"},
            "unanswered": {"type": "array", "items": {"type": "string"}, "description": "what was asked and could not be answered"},
            "contradictions": {"type": "array", "items": {"type": "string"}, "description": "results that contradict each other"},
            "answers": super::answers_to_doubts()
        },
        "required": ["title", "body", "unanswered"]
    })
}

fn read(offer: &TaskOffered, document: &Document<'_>, faults: &mut Faults) -> Submission {
    let title = document.text("title");
    let (body, unanswered) = (document.needed_text("body", faults), document.texts("unanswered"));
    let body = if body.is_empty() { body } else { saying_what_is_unfinished(body, offer) };
    Submission::done(Product::Report(Report {
        title: if title.is_empty() { title_of(offer) } else { title },
        body: closed(with_data(body, offer)),
        unanswered,
        contradictions: document.texts("contradictions"),
        // Only the loop knows which mind wrote it.
        offline: false,
        partial: false,
        artifacts: Vec::new(),
    }))
}

/// A report says of tasks that did not end by themselves that their answers are partial, whether its author did or not.
fn saying_what_is_unfinished(mut body: String, offer: &TaskOffered) -> String {
    let Work::Write { results, .. } = &offer.work else { return body };
    let unfinished: Vec<String> = results
        .iter()
        .filter(|leaf| leaf.result.conclusion.starts_with(UNFINISHED))
        .map(|leaf| {
            format!(
                "- {} ({}): {}",
                leaf.name,
                leaf.index,
                first_line(&leaf.result.conclusion, UNFINISHED_SHOWN)
            )
        })
        .collect();
    if !unfinished.is_empty() {
        body.push_str("\n\n## Unfinished\n\n");
        body.push_str(&unfinished.join("\n"));
    }
    body
}

/// What specialists gave as data stands at the end of the report as it is: programs read it, and no author may change it.
/// What is too long is named only; `muster show` has it.
fn with_data(mut body: String, offer: &TaskOffered) -> String {
    let Work::Write { results, .. } = &offer.work else { return body };
    let given = results.iter().filter_map(|leaf| Some((leaf, leaf.result.shown_data()?)));
    let parts: Vec<String> =
        given.map(|(leaf, shown)| format!("{} ({}):\n\n{shown}", leaf.name, leaf.index)).collect();
    if !body.is_empty() && !parts.is_empty() {
        body.push_str("\n\n## Data\n\n");
        body.push_str(&parts.join("\n\n"));
    }
    body
}

/// A text ends with the end of a line.
fn closed(mut body: String) -> String {
    if !body.is_empty() {
        body.push('\n');
    }
    body
}

fn from_prose(offer: &TaskOffered, prose: &str) -> Product {
    Product::Report(Report { title: title_of(offer), body: prose.to_owned(), ..Report::default() })
}

fn title_of(offer: &TaskOffered) -> String {
    first_line(&offer.goal, TITLE)
}
