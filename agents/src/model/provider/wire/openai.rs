//! OpenAI's chat completions.

use std::borrow::Cow;

use genai::chat::{JsonSchemaDialect, sanitize_json_schema};
use serde::de::SeqAccess;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::super::convert::arguments_sent;
use super::Wishes;
use super::body::{Body, next};
use super::loose::{self, Count, First, Given, List, Loose, Object, Text};
use super::partial::{Broken, OnDelta, Partial, PartialCall};
use super::sse::SseEvent;
use crate::model::chat::{
    ChatMessage, ChatRequest, ChatRole, ReasoningEffort, TokenUsage, ToolCall, ToolDecl,
};
use crate::model::json::write_json;
use crate::model::kept::WireForm;

/// OpenAI's own server.
const OFFICIAL: &str = "api.openai.com";
/// Most tool calls of one answer that are told apart by their place.
const MOST_CALLS: u64 = 10_000;

/// Where the server that knows of it is to end a beginning that it caches. Elsewhere it is not spoken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caching {
    /// As the server does by itself.
    ByItself,
    /// Also after the system prompt, before which the tools stand: the tasks of a role have both in common.
    Marked,
}

impl Caching {
    /// From GPT-5.6 on, a beginning is found again only where its end was marked, and what is written into the cache
    /// costs a quarter more than what is not.
    pub(super) fn of(model: &str, host: Option<&str>) -> Self {
        let knows = host == Some(OFFICIAL) && finds_marks_only(model);
        if knows { Self::Marked } else { Self::ByItself }
    }
}

/// The request for a streamed answer.
pub(super) fn body(request: &ChatRequest, model: &str, caching: Caching, wishes: Wishes) -> Vec<u8> {
    let mut body = Body::of(request);
    body.field("model", model);
    body.field("stream", &true);
    // Questions apart from a task have no tools. Nothing goes on from them: they are not worth being written.
    let is_apart = request.tools.is_empty();
    let marks = caching == Caching::Marked && !is_apart;
    if caching == Caching::Marked && is_apart {
        body.field("prompt_cache_options", &json!({"mode": "explicit"}));
    }
    if !request.tools.is_empty() {
        body.raw("tools", request.tools.written(WireForm::OpenAi, |tools, into| write_tools(tools, into)));
    }
    if wishes.chosen && request.chooses() {
        let only = request.only.as_ref();
        body.field_if(
            "tool_choice",
            only.map(|name| json!({"type": "function", "function": {"name": name}})),
        );
        body.field_if("parallel_tool_calls", request.one_call.then_some(false));
    }
    let system = (!request.system.is_empty()).then(|| request.system.written(WireForm::OpenAi, write_text));
    body.list("messages", |into| {
        if let Some(system) = system {
            into.extend_from_slice(br#"{"role":"system","content":"#);
            if marks {
                into.extend_from_slice(br#"[{"type":"text","text":"#);
                into.extend_from_slice(system);
                into.extend_from_slice(br#","prompt_cache_breakpoint":{"mode":"explicit"}}]"#);
            } else {
                into.extend_from_slice(system);
            }
            into.push(b'}');
        }
        for message in &request.messages {
            next(into);
            into.extend_from_slice(message.written(WireForm::OpenAi, write_message));
        }
    });
    if let Some(schema) = request.schema.as_ref().filter(|_| wishes.formatted) {
        let schema = sanitize_json_schema(schema, JsonSchemaDialect::OpenAiStrict);
        let spec = json!({"name": "answer", "strict": true, "schema": schema});
        body.field("response_format", &json!({"type": "json_schema", "json_schema": spec}));
    }
    body.field("stream_options", &json!({"include_usage": true}));
    body.field_if("temperature", request.temperature.filter(|_| wishes.tempered));
    let effort = request.effort.filter(|_| wishes.reasoned);
    body.field_if("reasoning_effort", effort.map(ReasoningEffort::as_word));
    let most = if counts_reasoning(model) { "max_completion_tokens" } else { "max_tokens" };
    body.field_if(most, request.max_tokens);
    body.finish()
}

/// Models whose limit is on all that they write, reasoning included.
fn counts_reasoning(model: &str) -> bool {
    ["gpt-5", "gpt-6", "o1", "o3", "o4"].iter().any(|begin| model.starts_with(begin))
}

/// The models from GPT-5.6 on.
fn finds_marks_only(model: &str) -> bool {
    let Some(rest) = model.strip_prefix("gpt").map(|rest| rest.strip_prefix('-').unwrap_or(rest)) else {
        return false;
    };
    let version = rest.split('-').next().unwrap_or_default();
    let mut numbers = version.splitn(2, '.').map(|number| {
        // Four digits are a date.
        number.parse::<u32>().ok().filter(|_| number.len() <= 2 && number.bytes().all(|b| b.is_ascii_digit()))
    });
    match (numbers.next().flatten(), numbers.next()) {
        (Some(major), None) => major > 5,
        (Some(major), Some(Some(minor))) => (major, minor) >= (5, 6),
        (Some(_), Some(None)) | (None, _) => false,
    }
}

pub(super) fn write_text(text: &String, into: &mut Vec<u8>) {
    write_json(text, into);
}

#[derive(Serialize)]
struct Declared<'a> {
    r#type: &'static str,
    function: DeclaredFunction<'a>,
}

#[derive(Serialize)]
struct DeclaredFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    strict: bool,
}

fn write_tools(tools: &[ToolDecl], into: &mut Vec<u8>) {
    into.push(b'[');
    for ToolDecl { name, description, parameters } in tools {
        let function = DeclaredFunction { name, description, parameters, strict: false };
        next(into);
        write_json(&Declared { r#type: "function", function }, into);
    }
    into.push(b']');
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Said<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Said<'a> {
    Text(&'a str),
    Parts(Vec<SaidPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SaidPart<'a> {
    ImageUrl { image_url: PictureUrl },
    Text { text: &'a str },
}

#[derive(Serialize)]
struct PictureUrl {
    url: String,
}

/// What is said; where pictures are shown, after them.
fn said(message: &ChatMessage) -> Said<'_> {
    if message.pictures.is_empty() || message.role != ChatRole::User {
        return Said::Text(&message.content);
    }
    let shown = message.pictures.iter().map(|picture| PictureUrl { url: picture.url() });
    let shown = shown.map(|image_url| SaidPart::ImageUrl { image_url });
    Said::Parts(shown.chain([SaidPart::Text { text: &message.content }]).collect())
}

#[derive(Serialize)]
struct Call<'a> {
    r#type: &'static str,
    id: &'a str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: String,
}

fn write_message(message: &ChatMessage, into: &mut Vec<u8>) {
    let (role, is_result) = match message.role {
        ChatRole::System => ("system", false),
        ChatRole::User => ("user", false),
        ChatRole::Assistant => ("assistant", false),
        ChatRole::Tool => ("tool", true),
    };
    let call = |call: &'_ ToolCall| arguments_sent(call).to_string();
    let calls = message.tool_calls.iter().filter(|_| message.role == ChatRole::Assistant).map(|made| Call {
        r#type: "function",
        id: &made.id,
        function: CalledFunction { name: &made.name, arguments: call(made) },
    });
    let written = Message {
        role,
        content: said(message),
        tool_calls: calls.collect(),
        tool_call_id: is_result.then(|| message.tool_call_id.as_deref().unwrap_or_default()),
    };
    write_json(&written, into);
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Chunk<'a> {
    #[serde(borrow)]
    model: Text<'a>,
    error: Given,
    #[serde(borrow)]
    choices: First<Object<Choice<'a>>>,
    usage: Object<Usage>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Object<Piece<'a>>,
    #[serde(borrow)]
    finish_reason: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Piece<'a> {
    #[serde(borrow)]
    content: Content<'a>,
    #[serde(borrow)]
    reasoning_content: Text<'a>,
    #[serde(borrow)]
    reasoning: Text<'a>,
    #[serde(borrow)]
    refusal: Text<'a>,
    #[serde(borrow)]
    tool_calls: List<Object<CallPiece<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CallPiece<'a> {
    index: Count,
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    function: Object<FunctionPiece<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FunctionPiece<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    arguments: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    prompt_tokens: Count,
    completion_tokens: Count,
    prompt_tokens_details: Object<UsageDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct UsageDetails {
    cached_tokens: Count,
}

/// A text, or the typed pieces of Mistral's reasoning models.
#[derive(Default)]
struct Content<'a> {
    text: Cow<'a, str>,
    reasoning: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TypedPiece<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    thinking: Content<'a>,
}

impl<'de> Loose<'de> for Content<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self { text, reasoning: String::new() }
    }

    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut content = Self::default();
        while let Some(piece) = items.next_element::<Object<TypedPiece<'de>>>()? {
            let piece = piece.0.unwrap_or_default();
            content.text.to_mut().push_str(piece.text.get().unwrap_or_default());
            content.reasoning.push_str(&piece.thinking.text);
        }
        Ok(content)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        loose::read::<Content<'de>, D>(deserializer)
    }
}

/// Reads the next event.
pub(super) fn hear(event: &SseEvent<'_>, partial: &mut Partial, on_delta: OnDelta<'_>) -> Result<(), Broken> {
    if event.data == "[DONE]" {
        partial.ended = true;
        return Ok(());
    }
    let chunk: Chunk<'_> = serde_json::from_str(event.data)?;
    if chunk.error.0 {
        let mut body: Value = serde_json::from_str(event.data)?;
        return Err(Broken::Reported(body["error"].take()));
    }
    partial.name_model(chunk.model.said());
    let usage = chunk.usage.0.as_ref().and_then(counted);
    let Some(choice) = chunk.choices.0.and_then(|choice| choice.0) else {
        // The last words of a stream.
        partial.usage = partial.usage.or(usage);
        return Ok(());
    };
    if let Some(piece) = &choice.delta.0 {
        let thoughts =
            [Some(piece.content.reasoning.as_str()), piece.reasoning_content.get(), piece.reasoning.get()];
        let thought = thoughts.into_iter().flatten().find(|thought| !thought.is_empty());
        partial.think(thought.unwrap_or_default(), &mut *on_delta);
        partial.say(&piece.content.text, &mut *on_delta);
        partial.refuse(piece.refusal.get().unwrap_or_default());
        for call in piece.tool_calls.0.iter().flatten().filter_map(|call| call.0.as_ref()) {
            hear_call(call, partial, &mut *on_delta);
        }
    }
    if let Some(finish) = choice.finish_reason.get() {
        partial.finish = Some(finish.to_owned());
        partial.usage = usage.or(partial.usage);
    }
    Ok(())
}

fn hear_call(piece: &CallPiece<'_>, partial: &mut Partial, on_delta: OnDelta<'_>) {
    let (Some(key), Some(function)) = (piece.index.0.filter(|at| *at < MOST_CALLS), &piece.function.0) else {
        return;
    };
    let arguments = function.arguments.get().unwrap_or_default();
    match partial.call(key) {
        // Some servers say id and name with every piece.
        Some(known) => {
            if let Some(name) = function.name.said() {
                name.clone_into(&mut known.name);
                known.id = piece.id.said().map_or_else(|| std::mem::take(&mut known.id), str::to_owned);
            }
            partial.grow_call(key, arguments, on_delta);
        }
        None => {
            let id = piece.id.get().map_or_else(|| format!("call_{key}"), str::to_owned);
            let name = function.name.get().unwrap_or_default().to_owned();
            let raw = arguments.to_owned();
            partial.begin_call(PartialCall { key, id, name, raw, ..PartialCall::default() }, on_delta);
        }
    }
}

fn counted(usage: &Usage) -> Option<TokenUsage> {
    let is_there = usage.prompt_tokens.0.is_some() || usage.completion_tokens.0.is_some();
    let cached = usage.prompt_tokens_details.0.as_ref().and_then(|details| details.cached_tokens.0);
    is_there.then(|| TokenUsage {
        input: usage.prompt_tokens.0.unwrap_or(0),
        output: usage.completion_tokens.0.unwrap_or(0),
        cached: cached.unwrap_or(0),
    })
}
