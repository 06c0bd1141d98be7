//! The answer parser: from what a model wrote to one action, or a failure the model can learn from.
//!
//! The forms are tried from the most to the least explicit: native tool calls, calls in tags, JSON, the YAML form
//! and `Action:` lines, a bare call. Size and depth are checked before anything else, because repairing
//! recurses. Prose is never an action.

pub mod answer;
mod calls;
mod clean;
mod document;
mod feedback;
mod fields;
mod json;
mod limits;
mod lines;
mod scan;
mod tags;
mod tools;
mod yaml;

pub use answer::{AnswerForm, ParseFailure, ParsedAction, ParsedAnswer};
pub use document::{parse_document, parse_whole_document};
pub use feedback::ask_again_for_document;
pub use limits::{MAX_BYTES, MAX_DEPTH};

use serde_json::Value;

use crate::model::chat::{ChatAnswer, ToolCall, ToolDecl};
use fields::Fields;
use tools::KnownTools;

/// Prefix of the text that replaces an answer which a provider withheld.
pub const WITHHELD: &str = "[declined]";

/// Longest part of a provider's refusal that is kept, in characters.
const MAX_REFUSAL: usize = 300;

/// The longest thought kept from prose around an action, in characters.
const MAX_THOUGHT: usize = 4_000;

/// Reads the action out of `answer`. `known_tools` settles doubtful cases; an unknown tool's name is returned as
/// it stands, since only the caller can tell the model what there is instead.
///
/// # Errors
/// A [`ParseFailure`], to be turned into words for the model by [`ask_again`].
pub fn parse_answer(answer: &ChatAnswer, known_tools: &[ToolDecl]) -> Result<ParsedAnswer, ParseFailure> {
    limits::check(&answer.text)?;
    let tools = KnownTools::new(known_tools);
    let cut = answer.finish.may_be_cut();
    let mut parsed = if answer.tool_calls.is_empty() {
        parse_text(&answer.text, &tools, cut)?
    } else {
        parse_native(answer, &tools, cut)?
    };
    if parsed.reasoning.is_none() {
        parsed.reasoning = answer.reasoning.as_deref().and_then(shown);
    }
    Ok(parsed)
}

fn parse_native(
    answer: &ChatAnswer,
    tools: &KnownTools<'_>,
    cut: bool,
) -> Result<ParsedAnswer, ParseFailure> {
    let mut repaired = false;
    let mut actions = Vec::with_capacity(answer.tool_calls.len());
    for call in &answer.tool_calls {
        let name = tools.resolve(&call.name).ok_or(ParseFailure::NoActionName)?;
        let arguments = native_arguments(call, &name, tools, cut, &mut repaired)?;
        actions.push(ParsedAction { name, arguments, call_id: Some(call.id.clone()) });
    }
    let mut actions = actions.into_iter();
    let action = actions.next().ok_or(ParseFailure::NoAction)?;
    let cleaned = clean::clean(&answer.text);
    let fields = json::objects(&cleaned.text).into_iter().find_map(|found| fields::thoughts(&found.value));
    let mut parsed = assemble(fields.unwrap_or_default(), action, AnswerForm::Native, repaired);
    parsed.more = actions.collect();
    if parsed.thought.is_none() {
        parsed.thought = prose(&cleaned.text);
    }
    parsed.reasoning = parsed.reasoning.or(cleaned.reasoning);
    Ok(parsed)
}

fn native_arguments(
    call: &ToolCall,
    name: &str,
    tools: &KnownTools<'_>,
    cut: bool,
    repaired: &mut bool,
) -> Result<Value, ParseFailure> {
    let Value::String(text) = &call.arguments else {
        limits::check_value(&call.arguments)?;
        return Ok(fields::arguments(call.arguments.clone(), name, tools));
    };
    limits::check(text)?;
    *repaired = true;
    let text = text.trim();
    if text.is_empty() {
        return if cut { Err(ParseFailure::CutOff) } else { Ok(fields::empty()) };
    }
    if let Some(found) = json::objects(text).into_iter().next() {
        if found.torn || (cut && !found.closed) {
            return Err(ParseFailure::CutOff);
        }
        return Ok(fields::arguments(found.value, name, tools));
    }
    if cut {
        return Err(ParseFailure::CutOff);
    }
    if text.starts_with(['{', '[']) {
        return Err(ParseFailure::Unreadable { why: format!("the arguments of {name} are no JSON") });
    }
    Ok(fields::arguments(Value::String(text.to_owned()), name, tools))
}

fn parse_text(text: &str, tools: &KnownTools<'_>, cut: bool) -> Result<ParsedAnswer, ParseFailure> {
    let cleaned = clean::clean(text);
    let body = cleaned.text.as_str();
    if body.is_empty() && !tags::present(text) {
        if cut {
            return Err(ParseFailure::CutOff);
        }
        let thought_only = cleaned.reasoning.is_some();
        return Err(if thought_only { ParseFailure::NoAction } else { ParseFailure::Empty });
    }
    let found = tags::read(text, tools)
        .or_else(|| whole_json(body, tools))
        .or_else(|| yaml::read(body, tools))
        .or_else(|| lines::read(body, tools))
        .or_else(|| json::action(body, tools))
        .or_else(|| calls::alone(body, tools).map(|fields| Reading::of(fields, AnswerForm::Tags)));
    let Some(reading) = found else {
        return Err(why_not(body));
    };
    if reading.torn || (cut && reading.open_ended) {
        return Err(ParseFailure::CutOff);
    }
    let mut fields = reading.fields;
    let mut actions = std::mem::take(&mut fields.actions).into_iter();
    let action = actions.next().ok_or(ParseFailure::NoAction)?;
    let mut parsed = assemble(fields, action, reading.form, reading.repaired);
    parsed.more = actions.collect();
    parsed.reasoning = parsed.reasoning.or(cleaned.reasoning);
    Ok(parsed)
}

/// An answer that begins with JSON is JSON, whatever its strings hold.
fn whole_json(body: &str, tools: &KnownTools<'_>) -> Option<Reading> {
    let starts = body.starts_with(['{', '[']) || body.starts_with("```");
    if starts { json::action(body, tools) } else { None }
}

/// What one form made of a text.
struct Reading {
    fields: Fields,
    form: AnswerForm,
    repaired: bool,
    /// Whether the arguments end only because the text does, so that a cut answer would go unnoticed.
    open_ended: bool,
    /// Whether the text ends within a string of theirs.
    torn: bool,
}

impl Reading {
    fn of(fields: Fields, form: AnswerForm) -> Self {
        Self { fields, form, repaired: false, open_ended: false, torn: false }
    }
}

fn assemble(fields: Fields, action: ParsedAction, form: AnswerForm, repaired: bool) -> ParsedAnswer {
    ParsedAnswer {
        thought: fields.thought,
        reasoning: fields.reasoning,
        plan: fields.plan,
        criticism: fields.criticism,
        action,
        more: Vec::new(),
        form,
        repaired,
    }
}

/// Names the failure of a text in which no form found an action.
fn why_not(body: &str) -> ParseFailure {
    if let Some(failure) = withheld(body) {
        return failure;
    }
    if json::objects(body).iter().any(|found| found.value.is_object()) {
        return ParseFailure::NoActionName;
    }
    if body.starts_with(['{', '[']) {
        return ParseFailure::Unreadable { why: "it begins like JSON but is none".to_owned() };
    }
    ParseFailure::NoAction
}

/// The refusal, if a provider withheld the answer. Refusals in prose are not recognized: a model declines by its status.
fn withheld(text: &str) -> Option<ParseFailure> {
    let said = text.strip_prefix(WITHHELD)?.trim().chars().take(MAX_REFUSAL).collect();
    Some(ParseFailure::Refusal { said })
}

/// Prose fit to be a thought: without its label, fences and excess length.
fn prose(text: &str) -> Option<String> {
    let text = text.split("```").next().unwrap_or_default();
    let text = lines::without_label(text);
    shown(text)
}

fn shown(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.chars().take(MAX_THOUGHT).collect())
}
