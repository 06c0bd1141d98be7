//! What models answer: text and calls, documents, and what they submit.

use std::sync::LazyLock;

use muster_agents::model::chat::{ChatAnswer, FinishReason, TokenUsage, ToolCall, ToolDecl, Wasted};
use muster_agents::react::parse::{
    MAX_DEPTH, ParseFailure, ParsedAnswer, ask_again_for_document, parse_answer, parse_document,
    parse_whole_document,
};
use muster_agents::roles::rules_for;
use muster_shared::flow::TaskOffered;
use muster_shared::wire::{Body, Envelope};
use serde_json::{Value, json};

use super::{depth, ensure, golden_message, text_of};
use crate::{Seen, Shape, Target};

const WORDS: &[&str] = &[
    "<think>",
    "Action Input:",
    "<arg_key>",
    "<|im_end|>",
    "Final Answer:",
    "functions.",
    "<|python_tag|>",
    "{",
    "[",
    "]",
    ",",
    "True",
    "None",
    "//",
    "/*",
    "*/",
    ">-",
    "- ",
    "I'm sorry",
    "submit(answer=\"",
    "<invoke name=\"",
    "<parameter name=\"",
];

/// Answers of text: JSON, tags, lines, YAML, and prose around them.
pub(super) const TEXT: Target = Target::new("answers_text", Shape::Text, |input| {
    both(|finish| answer(&text_of(input), Vec::new(), finish))
})
.with_fixtures(&["agents/tests/corpus/malformed"])
.with_words(WORDS);

/// Native calls, whose arguments are the input.
pub(super) const NATIVE: Target = Target::new("answers_native", Shape::Json, |input| {
    both(|finish| {
        let raw = text_of(input).into_owned();
        let arguments = serde_json::from_str(&raw).unwrap_or_else(|_| json!(raw));
        let (id, name) = ("c1".into(), raw.chars().take(12).filter(|c| c.is_alphabetic()).collect());
        let own = ToolCall { name, ..call("search", &arguments, &raw) };
        let twice = vec![call("search", &arguments, &raw), ToolCall { id, ..own }];
        answer("", twice, finish)
    })
})
.with_fixtures(&["agents/tests/corpus/malformed/native.txt"])
.with_words(WORDS);

fn call(name: &str, arguments: &Value, raw: &str) -> ToolCall {
    let (name, arguments, raw) = (name.into(), arguments.clone(), raw.into());
    ToolCall { id: "c2".into(), name, arguments, raw, signatures: Vec::new(), signer: None }
}

fn answer(text: &str, tool_calls: Vec<ToolCall>, finish: FinishReason) -> ChatAnswer {
    ChatAnswer {
        text: text.to_owned(),
        reasoning: None,
        tool_calls,
        usage: TokenUsage::default(),
        wasted: Wasted::default(),
        model: "m".into(),
        provider: "p".into(),
        finish,
        millis: 0,
    }
}

static TOOLS: LazyLock<Vec<ToolDecl>> = LazyLock::new(|| {
    let tool =
        |name: &str, parameters| ToolDecl { name: name.into(), description: String::new(), parameters };
    let text = json!({"type": "string"});
    vec![
        tool(
            "search",
            json!({"type": "object", "properties": {"query": text, "limit": {"type": "integer"}}, "required": ["query"]}),
        ),
        tool(
            "write_file",
            json!({"type": "object", "properties": {"path": text, "content": text}, "required": ["path", "content"]}),
        ),
        tool("list_files", json!({"type": "object", "properties": {}})),
        tool(
            "submit",
            json!({"type": "object", "properties": {"answer": text, "success": {"type": "boolean"}}, "required": ["answer"]}),
        ),
    ]
});

/// An answer that ended and the same that was cut off.
fn both(answer: impl Fn(FinishReason) -> ChatAnswer) -> Result<Seen, String> {
    let cut = read(&answer(FinishReason::Length))?;
    let whole = read(&answer(FinishReason::Stop))?;
    Ok(if whole == Seen::Read { whole } else { cut })
}

fn read(answer: &ChatAnswer) -> Result<Seen, String> {
    match parse_answer(answer, &TOOLS) {
        Ok(parsed) => parsed_holds(&parsed).map(|()| Seen::Read),
        Err(failure) => Ok(Seen::at_door(failure.to_string())),
    }
}

fn parsed_holds(parsed: &ParsedAnswer) -> Result<(), String> {
    for action in std::iter::once(&parsed.action).chain(&parsed.more) {
        ensure(!action.name.trim().is_empty(), || "an action without a name".to_owned())?;
        let depth = depth(&action.arguments);
        ensure(depth <= MAX_DEPTH + 2, || format!("arguments {depth} levels deep"))?;
        serde_json::to_vec(&action.arguments).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Documents that models write where a schema asks for one.
pub(super) const DOCUMENTS: Target = Target::new("answers_documents", Shape::Json, |input| {
    let (text, schema) =
        (text_of(input), json!({"type": "object", "properties": {"answer": {"type": "string"}}}));
    let said = |failure: &ParseFailure| Seen::at_door(ask_again_for_document(failure, &schema));
    let whole = parse_whole_document::<Value>(&text, &schema, true);
    let found = parse_document::<Value>(&text, &schema);
    if let Ok(value) = &found {
        ensure(depth(value) <= MAX_DEPTH + 2, || "a document that is too deep".to_owned())?;
    }
    Ok(match (&found, &whole) {
        (Ok(_), _) => Seen::Read,
        (Err(failure), _) => said(failure),
    })
})
.with_fixtures(&["agents/tests/corpus/malformed/json.txt", "tests/fuzz/corpus/submissions"])
.with_words(WORDS);

/// What ends a task, for every kind of work.
pub(super) const SUBMISSIONS: Target = Target::new("submissions", Shape::Json, submission).with_words(&[
    "subtasks",
    "milestones",
    "expected_output",
    "add",
    "delete",
    "{{1.result}}",
    "pump.log:3",
    "critical",
    "patch",
]);

static OFFERS: LazyLock<Result<Vec<TaskOffered>, String>> = LazyLock::new(|| {
    let names =
        ["plan", "execute", "reflect", "refine", "write", "write_again", "draft_review", "answered", "heard"];
    names.iter().map(|name| offer(name)).collect()
});

/// An offer of that kind.
pub(super) fn offer(name: &str) -> Result<TaskOffered, String> {
    let message = golden_message(&format!("offered_{name}"))?;
    let envelope: Envelope = serde_json::from_value(message).map_err(|error| error.to_string())?;
    if let Body::Offered(offer) = envelope.body { Ok(offer) } else { Err(format!("{name} is no offer")) }
}

fn submission(input: &[u8]) -> Result<Seen, String> {
    let arguments: Value = match serde_json::from_slice(input) {
        Ok(arguments) => arguments,
        Err(_) => return Ok(Seen::Refused("no JSON".to_owned())),
    };
    let (mut taken, mut refused) = (false, Vec::new());
    for offer in OFFERS.as_ref().map_err(Clone::clone)? {
        match rules_for(&offer.work).submission(offer, &arguments) {
            Ok(submission) => {
                serde_json::to_vec(&submission.product).map_err(|error| error.to_string())?;
                taken = true;
            }
            Err(faults) => refused.extend(faults),
        }
    }
    Ok(Seen::by_several(taken, &refused))
}
