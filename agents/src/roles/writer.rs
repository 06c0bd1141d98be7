//! The writer: delivers the answer.

use muster_shared::flow::{Product, Report, TaskOffered};
use serde_json::{Value, json};

use super::{Document, Faults, RoleRules, SINGLE_ANSWER_STEPS, Submission};

/// Longest title that is made from the goal, in characters.
const TITLE: usize = 100;

pub(super) static RULES: RoleRules = RoleRules {
    name: "writer",
    template: include_str!("../prompts/writer.md.j2"),
    tools: &[],
    max_steps: Some(SINGLE_ANSWER_STEPS),
    schema,
    read,
    from_prose: Some(from_prose),
    contract: None,
    specialist: None,
};

fn schema(_: &TaskOffered) -> Value {
    json!({
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "one line"},
            "body": {"type": "string", "description": "the whole report in Markdown"},
            "unanswered": {"type": "array", "items": {"type": "string"}, "description": "what was asked and could not be answered"}
        },
        "required": ["title", "body", "unanswered"]
    })
}

fn read(offer: &TaskOffered, document: &Document<'_>, faults: &mut Faults) -> Submission {
    let title = document.text("title");
    Submission::done(Product::Report(Report {
        title: if title.is_empty() { title_of(offer) } else { title },
        body: closed(document.needed_text("body", faults)),
        unanswered: document.texts("unanswered"),
        // Only the loop knows which mind wrote it.
        offline: false,
        partial: false,
    }))
}

/// A text ends with the end of a line.
fn closed(mut body: String) -> String {
    if !body.is_empty() {
        body.push('\n');
    }
    body
}

fn from_prose(offer: &TaskOffered, prose: &str) -> Product {
    Product::Report(Report {
        title: title_of(offer),
        body: prose.to_owned(),
        unanswered: Vec::new(),
        offline: false,
        partial: false,
    })
}

fn title_of(offer: &TaskOffered) -> String {
    crate::react::history::cut(&offer.goal, TITLE)
}
