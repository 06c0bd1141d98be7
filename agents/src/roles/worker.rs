//! The worker: does leaves that act, check and compute.

use muster_shared::flow::{Advice, Citation, Ending, Finding, Product, TaskOffered, TaskResult, Work};
use muster_shared::text::within_bytes;
use serde_json::{Value, json};

use super::{Document, Faults, RoleRules, Submission, claims};

pub(super) static RULES: RoleRules = RoleRules {
    name: "worker",
    template: include_str!("../prompts/worker.md.j2"),
    tools: &["*"],
    max_steps: None,
    schema,
    read,
    from_prose: Some(from_prose),
    contract: None,
    specialist: None,
};

/// What most tasks need.
pub(super) static BASE_TOOLS: [&str; 6] =
    ["calculator", "corpus.read", "corpus.search", "request_info", "workspace.read", "workspace.write"];

/// What weak models are told of.
pub(crate) static FEW_TOOLS: [&str; 4] = ["calculator", "corpus.read", "corpus.search", "workspace.write"];

/// Prose of so many characters is a document, and not a conclusion.
const LONG_PROSE: usize = 600;

/// The endings that a model may choose, by the word it uses (W6).
const ENDINGS: [(&str, Ending); 6] = [
    ("done", Ending::Done),
    ("done_partial", Ending::DonePartial),
    ("escalate", Ending::Escalate),
    ("delegate", Ending::Delegate),
    ("blocked", Ending::Blocked),
    ("give_up", Ending::GaveUp),
];

/// What a task is escalated for rather than guessed (W6).
pub(crate) const TRIGGERS: [&str; 5] =
    ["ambiguity", "business_decision", "security_risk", "conflicting_constraints", "missing_information"];

/// How an agent ends that began with the whole goal and finds that it has to be planned.
const PLAN: &str = "plan";

/// Whether the agent may say that what is left of the goal has to be planned.
fn may_plan(offer: &TaskOffered) -> bool {
    matches!(offer.work, Work::Execute { may_plan: true, .. })
}

pub(super) fn schema(offer: &TaskOffered) -> Value {
    let mut schema = schema_of_result(offer);
    if may_plan(offer) {
        let ending = &mut schema["properties"]["ending"];
        let words = ENDINGS.map(|(word, _)| word).into_iter().chain([PLAN]);
        ending["enum"] = words.collect::<Vec<_>>().into();
        let told = ending["description"].as_str().unwrap_or_default();
        ending["description"] = format!(
            "{told}; plan: the work is to be split among several agents (`reason` says why, `conclusion` and `findings` \
             what is known so far)"
        )
        .into();
    }
    schema
}

fn schema_of_result(offer: &TaskOffered) -> Value {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let mut schema = json!({
        "type": "object",
        "properties": {
            "ending": {
                "type": "string",
                "enum": ENDINGS.map(|(word, _)| word),
                "description": "done, also when what was looked for is not there; done_partial: part was not done; escalate: a person must decide; delegate: another role should do it; blocked: cannot go on"
            },
            "reason": {"type": "string", "description": "why it ends so; needed unless done"},
            "trigger": {"type": "string", "enum": TRIGGERS, "description": "of an escalation"},
            "conclusion": {"type": "string", "description": "the answer in a few sentences"},
            "body": {"type": "string", "description": "the document that was asked for, in Markdown"},
            "findings": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string", "description": "one statement"},
                        "citations": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "properties": {
                                    "path": {"type": "string"},
                                    "line": {"type": "integer", "minimum": 1},
                                    "quote": {"type": "string", "description": "the exact words there; leave it out rather than reword them"}
                                },
                                "required": ["path", "line"]
                            }
                        },
                        "confidence": {"type": "integer", "minimum": 0, "maximum": 100}
                    },
                    "required": ["text"]
                }
            },
            "unanswered": texts,
            "amends": {"type": "boolean", "description": "after a refusal: only the fields given here change"},
            "answers": super::answers_to_doubts(),
            "advice": {
                "type": "object",
                "description": "whether the plan should be changed, and what later tasks should know",
                "properties": {
                    "refine": {"type": "boolean"},
                    "reason": {"type": "string"},
                    "suggestions": texts
                }
            }
        },
        "required": ["ending", "conclusion"]
    });
    let properties = &mut schema["properties"];
    if super::wants_claims(offer) {
        properties["claims"] = claims::schema();
    }
    if offer.work.leaf().is_some_and(|task| !task.milestones.is_empty()) {
        properties["milestones"] =
            json!({"type": "array", "items": {"type": "string"}, "description": "those that were reached"});
    }
    schema
}

pub(super) fn read(offer: &TaskOffered, document: &Document<'_>, faults: &mut Faults) -> Submission {
    if may_plan(offer) && document.text("ending").trim().eq_ignore_ascii_case(PLAN) {
        return read_wish_for_plan(document, faults);
    }
    let ending = read_ending(document, faults);
    let reason = reason_of(ending, document);
    let result = read_result(document, faults);
    let empty = result.conclusion.is_empty() && result.findings.is_empty();
    if ending.is_success() {
        if empty {
            faults.add("`conclusion` is empty: say what was found or made, or end with give_up and a reason");
        }
        return Submission { ending, reason, product: Some(Product::Result(result)) };
    }
    // A model often explains an early end in its conclusion.
    let reason = if reason.is_empty() { result.conclusion.clone() } else { reason };
    if reason.is_empty() {
        faults.add("`reason` is empty: say why the task ends so");
    }
    Submission { ending, reason, product: (!empty).then_some(Product::Result(result)) }
}

/// What was found so far is the result, and the reason goes to the planner.
fn read_wish_for_plan(document: &Document<'_>, faults: &mut Faults) -> Submission {
    let (reason, mut result) = (document.text("reason"), read_result(document, faults));
    let reason = if reason.is_empty() { result.conclusion.clone() } else { reason };
    if reason.is_empty() {
        faults.add("`reason` is empty: say why the work is to be split");
    }
    if result.conclusion.is_empty() {
        result.conclusion = format!("{}; the work is to be split: {reason}", TaskResult::NOTHING_YET);
    }
    let advice = result.advice.take().unwrap_or_default();
    result.advice = Some(Advice { plan: Some(reason.clone()), refine: false, ..advice });
    Submission { ending: Ending::DonePartial, reason, product: Some(Product::Result(result)) }
}

/// Why it ends so; what an escalation was triggered by stands before it.
fn reason_of(ending: Ending, document: &Document<'_>) -> String {
    let (reason, trigger) = (document.text("reason"), document.text("trigger").replace('_', " "));
    match (ending == Ending::Escalate, trigger.is_empty(), reason.is_empty()) {
        (true, false, false) => format!("{trigger}: {reason}"),
        (true, false, true) => trigger,
        (true, true, _) | (false, _, _) => reason,
    }
}

fn read_ending(document: &Document<'_>, faults: &mut Faults) -> Ending {
    let word = document.text("ending").to_lowercase().replace([' ', '-'], "_");
    if word.is_empty() {
        return Ending::Done;
    }
    let known = ENDINGS.iter().find(|(known, _)| *known == word);
    known.map_or_else(
        || {
            faults.add(format!(
                "`ending` is {word:?}; it must be one of {}",
                ENDINGS.map(|(word, _)| word).join(", ")
            ));
            Ending::Done
        },
        |(_, ending)| *ending,
    )
}

fn read_result(document: &Document<'_>, faults: &mut Faults) -> TaskResult {
    let findings = document.documents("findings", faults);
    TaskResult {
        conclusion: read_limited(document, "conclusion", TaskResult::MAX_CONCLUSION_BYTES, faults),
        body: read_limited(document, "body", TaskResult::MAX_BODY_BYTES, faults),
        findings: findings.iter().map(|finding| read_finding(finding, faults)).collect(),
        milestones: document.texts("milestones"),
        unanswered: document.texts("unanswered"),
        advice: document.get("advice").and_then(Document::of).map(|advice| Advice {
            refine: advice.flag("refine"),
            reason: advice.text("reason"),
            suggestions: advice.texts("suggestions"),
            plan: None,
        }),
        claims: claims::read(document),
        data: read_data(document, faults),
    }
}

/// A text within its limit.
fn read_limited(document: &Document<'_>, field: &str, most: usize, faults: &mut Faults) -> String {
    let text = document.text(field);
    check_size(field, text.len(), most, faults);
    text
}

fn check_size(field: &str, bytes: usize, most: usize, faults: &mut Faults) {
    if bytes > most {
        faults.add(format!(
            "`{field}` has {bytes} bytes, {most} is the most: write it to files, and name them"
        ));
    }
}

/// The result as data, within its limit.
fn read_data(document: &Document<'_>, faults: &mut Faults) -> Option<Box<Value>> {
    let data = document.get("data")?;
    check_size("data", data.to_string().len(), TaskResult::MAX_DATA_BYTES, faults);
    Some(Box::new(data.clone()))
}

fn read_finding(document: &Document<'_>, faults: &mut Faults) -> Finding {
    let citations = document.documents("citations", faults);
    Finding {
        text: document.needed_text("text", faults),
        citations: citations.iter().filter_map(|citation| read_citation(citation, faults)).collect(),
        subquestion: document.text("subquestion"),
        confidence: document.percent("confidence").unwrap_or_default(),
        verified: document.flag("verified"),
        looked_up: false,
    }
}

fn read_citation(document: &Document<'_>, faults: &mut Faults) -> Option<Citation> {
    let path = document.text("path");
    let line = document.number("line").and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0);
    match line {
        Some(line) if !path.is_empty() => Some(Citation { path, line, quote: document.text("quote") }),
        _ => {
            faults.add("a citation needs `path` and `line` (from 1), as the search shows them");
            None
        }
    }
}

fn from_prose(offer: &TaskOffered, prose: &str) -> Product {
    let _ = offer;
    let is_short = prose.chars().nth(LONG_PROSE).is_none() && !prose.contains("\n\n");
    if is_short {
        return Product::Result(TaskResult { conclusion: prose.to_owned(), ..TaskResult::default() });
    }
    let said =
        prose.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', '|', '`']));
    let said = said.unwrap_or(prose);
    let end = said.find(". ").map_or(said.len(), |at| at + 1);
    let conclusion = within_bytes(&said[..end], TaskResult::MAX_CONCLUSION_BYTES);
    Product::Result(TaskResult { conclusion, body: prose.to_owned(), ..TaskResult::default() })
}

/// The product of a leaf whose answer is prose.
pub(super) const FROM_PROSE: fn(&TaskOffered, &str) -> Product = from_prose;
