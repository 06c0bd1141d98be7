//! Gemini's `generateContent`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::convert::arguments_sent;
use super::Wishes;
use super::body::{Body, late_system, next};
use super::loose::{Count, First, Flag, Given, List, Object, Text};
use super::openai::write_text;
use super::partial::{Broken, OnDelta, Partial, PartialCall};
use super::sse::SseEvent;
use crate::model::chat::{ChatMessage, ChatRequest, ChatRole, ReasoningEffort, TokenUsage, ToolDecl};
use crate::model::json::write_json;
use crate::model::kept::{Kept, WireForm};

/// What Gemini 3 takes for the signature of a call that has none.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The request for a streamed answer of this target.
pub(super) fn body(request: &ChatRequest, form: WireForm, target: &str, wishes: Wishes) -> Vec<u8> {
    let mut body = Body::of(request);
    if let Some(texts) = late_system(request) {
        body.field("systemInstruction", &json!({"parts": [{"text": texts.join("\n")}]}));
    } else if !request.system.is_empty() {
        let system = request.system.written(form, |text, into| {
            into.extend_from_slice(br#"{"parts":[{"text":"#);
            write_text(text, into);
            into.extend_from_slice(b"}]}");
        });
        body.raw("systemInstruction", system);
    }
    if !request.tools.is_empty() {
        body.raw("tools", request.tools.written(form, |tools, into| write_tools(tools, into)));
    }
    if let Some(only) = request.only.as_ref().filter(|_| wishes.chosen && request.chooses()) {
        let config = json!({"mode": "ANY", "allowedFunctionNames": [only]});
        body.field("toolConfig", &json!({"functionCallingConfig": config}));
    }
    body.list("contents", |into| write_contents(request, form, target, into));
    let schema = request.schema.as_ref().filter(|_| wishes.formatted);
    body.field(
        "generationConfig",
        &Generation {
            thinking_config: Thinking::of(request.effort.filter(|_| wishes.reasoned), form),
            response_mime_type: schema.map(|_| "application/json"),
            response_json_schema: schema,
            temperature: request.temperature.filter(|_| wishes.tempered),
            max_output_tokens: request.max_tokens,
        },
    );
    body.finish()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Generation<'a> {
    thinking_config: Thinking,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Thinking {
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
}

impl Thinking {
    /// Gemini 3 is told in words, those before it in tokens.
    fn of(effort: Option<ReasoningEffort>, form: WireForm) -> Self {
        let in_words = form == WireForm::Gemini3;
        Self {
            include_thoughts: true,
            thinking_budget: effort.filter(|_| !in_words).map(ReasoningEffort::tokens),
            thinking_level: effort.filter(|_| in_words).map(ReasoningEffort::as_word),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declared<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

fn write_tools(tools: &[ToolDecl], into: &mut Vec<u8>) {
    into.extend_from_slice(br#"[{"functionDeclarations":["#);
    for ToolDecl { name, description, parameters } in tools {
        next(into);
        write_json(&Declared { name, description, parameters_json_schema: parameters }, into);
    }
    into.extend_from_slice(b"]}]");
}

/// All results of one turn go into one entry.
fn write_contents(request: &ChatRequest, form: WireForm, target: &str, into: &mut Vec<u8>) {
    let mut results = false;
    for (at, message) in request.messages.iter().enumerate() {
        // What is not sent ends no turn either.
        let is_sent = match message.role {
            ChatRole::System => false,
            ChatRole::Assistant => !message.content.is_empty() || !message.tool_calls.is_empty(),
            ChatRole::User | ChatRole::Tool => true,
        };
        if !is_sent {
            continue;
        }
        let is_result = message.role == ChatRole::Tool;
        if results && !is_result {
            into.extend_from_slice(b"]}");
        } else if is_result && !results {
            next(into);
            into.extend_from_slice(br#"{"role":"user","parts":["#);
        }
        results = is_result;
        next(into);
        if is_result {
            write_result(message, &request.messages[..at], form, into);
        } else if message.tool_calls.iter().any(|call| call.signer.is_some()) {
            // What goes back hangs on who is asked: not the same for all of this form.
            write_message(message, form, target, into);
        } else {
            let write =
                |message: &ChatMessage, into: &mut Vec<u8>| write_message(message, form, target, into);
            into.extend_from_slice(message.written(form, write));
        }
    }
    if results {
        into.extend_from_slice(b"]}");
    }
}

/// A result is matched by the name of its call, and by its id where Gemini gave one: only its text is kept as bytes.
fn write_result(
    message: &Kept<ChatMessage>,
    before: &[Kept<ChatMessage>],
    form: WireForm,
    into: &mut Vec<u8>,
) {
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    let calls = before.iter().rev().flat_map(|message| &message.tool_calls);
    let called = calls.into_iter().find(|call| call.id == id).map(|call| call.name.as_str());
    let name = called.or_else(|| name_in_stand_in(id)).unwrap_or(id);
    into.extend_from_slice(br#"{"functionResponse":{"#);
    if let Some(id) = called.and_then(|_| own_id(id)) {
        into.extend_from_slice(br#""id":"#);
        write_json(id, into);
        into.push(b',');
    }
    into.extend_from_slice(br#""name":"#);
    write_json(name, into);
    into.extend_from_slice(br#","response":{"name":"#);
    write_json(name, into);
    into.extend_from_slice(br#","content":"#);
    into.extend_from_slice(message.written(form, |message, into| write_json(&message.content, into)));
    into.extend_from_slice(b"}}}");
}

/// The id to send back: not the one that stands in for an id that Gemini did not give.
fn own_id(id: &str) -> Option<&str> {
    (!id.is_empty() && name_in_stand_in(id).is_none()).then_some(id)
}

/// The tool's name in an id that stands in for one (`call#NAME#NUMBER`).
fn name_in_stand_in(id: &str) -> Option<&str> {
    let (name, number) = id.strip_prefix("call#")?.rsplit_once('#')?;
    (!name.is_empty() && number.parse::<usize>().is_ok()).then_some(name)
}

#[derive(Serialize)]
struct Entry<'a> {
    role: &'static str,
    parts: Vec<SentPart<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct SentPart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<InlineData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<SentCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

/// A picture.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct SentCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: Cow<'a, Value>,
}

fn write_message(message: &ChatMessage, form: WireForm, target: &str, into: &mut Vec<u8>) {
    let said = SentPart { text: Some(&message.content), ..SentPart::default() };
    if message.role != ChatRole::Assistant {
        let shown = message
            .pictures
            .iter()
            .map(|picture| InlineData { mime_type: &picture.media_type, data: picture.data() });
        let shown = shown.map(|data| SentPart { inline_data: Some(data), ..SentPart::default() });
        write_json(&Entry { role: "user", parts: shown.chain([said]).collect() }, into);
        return;
    }
    let calls = message.tool_calls.iter().enumerate().map(|(at, call)| SentPart {
        thought_signature: call
            .signatures_for(target)
            .first()
            .map(String::as_str)
            .or((form == WireForm::Gemini3 && at == 0).then_some(NO_SIGNATURE)),
        function_call: Some(SentCall { id: own_id(&call.id), name: &call.name, args: arguments_sent(call) }),
        ..SentPart::default()
    });
    let said = (!message.content.is_empty()).then_some(said);
    write_json(&Entry { role: "model", parts: said.into_iter().chain(calls).collect() }, into);
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Chunk<'a> {
    error: Given,
    #[serde(borrow)]
    candidates: First<Object<Candidate<'a>>>,
    #[serde(borrow)]
    prompt_feedback: Object<Feedback<'a>>,
    usage_metadata: Object<Usage>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow)]
    block_reason: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Object<Parts<'a>>,
    #[serde(borrow)]
    finish_reason: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Parts<'a> {
    #[serde(borrow)]
    parts: List<Object<Part<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    thought: Flag,
    #[serde(borrow)]
    thought_signature: Text<'a>,
    #[serde(borrow)]
    function_call: Object<Call<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Call<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    args: Value,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Usage {
    prompt_token_count: Count,
    tool_use_prompt_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    cached_content_token_count: Count,
}

/// Reads the next event.
pub(super) fn hear(event: &SseEvent<'_>, partial: &mut Partial, on_delta: OnDelta<'_>) -> Result<(), Broken> {
    let chunk: Chunk<'_> = serde_json::from_str(event.data)?;
    if chunk.error.0 {
        return Err(Broken::Reported(serde_json::from_str(event.data)?));
    }
    if let Some(why) = chunk.prompt_feedback.0.as_ref().and_then(|feedback| feedback.block_reason.said()) {
        partial.blocked = Some(why.to_owned());
    }
    partial.usage = chunk.usage_metadata.0.as_ref().map(counted).or(partial.usage);
    let candidate = chunk.candidates.0.and_then(|candidate| candidate.0).unwrap_or_default();
    let parts = candidate.content.0.unwrap_or_default().parts.0.unwrap_or_default();
    let parts: Vec<Part<'_>> = parts.into_iter().filter_map(|part| part.0).collect();
    let texts = |thought: bool| {
        parts.iter().filter(move |part| part.thought.0 == thought && part.function_call.0.is_none())
    };
    for part in texts(true) {
        partial.think(part.text.get().unwrap_or_default(), &mut *on_delta);
    }
    let said: String = texts(false).filter_map(|part| part.text.get()).collect();
    partial.say(&said, &mut *on_delta);
    for part in &parts {
        if let Some(call) = &part.function_call.0 {
            begin_call(call, part.thought_signature.get(), partial, &mut *on_delta);
        }
    }
    partial.mark(parts.iter().filter_map(|part| part.thought_signature.get()));
    partial.finish = candidate.finish_reason.get().map(str::to_owned);
    partial.ended = partial.finish.is_some();
    Ok(())
}

fn begin_call(call: &Call<'_>, mark: Option<&str>, partial: &mut Partial, on_delta: OnDelta<'_>) {
    let key = partial.next_key();
    let name = call.name.get().unwrap_or_default().to_owned();
    // Gemini seldom gives ids; results are matched by name then, and in order.
    let id = call.id.get().map_or_else(|| format!("call#{name}#{key}"), str::to_owned);
    let signatures = mark.map(str::to_owned).into_iter().collect();
    let raw = call.args.to_string();
    partial.begin_call(PartialCall { key, id, name, raw, closed: true, signatures }, on_delta);
}

fn counted(usage: &Usage) -> TokenUsage {
    let sum = |one: Count, other: Count| one.0.unwrap_or(0).saturating_add(other.0.unwrap_or(0));
    TokenUsage {
        input: sum(usage.prompt_token_count, usage.tool_use_prompt_token_count),
        // Thinking is not among the candidates' tokens.
        output: match usage.candidates_token_count.0 {
            Some(_) => sum(usage.candidates_token_count, usage.thoughts_token_count),
            None => 0,
        },
        cached: usage.cached_content_token_count.0.unwrap_or(0),
    }
}
