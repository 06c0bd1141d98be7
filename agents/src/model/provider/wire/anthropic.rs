//! Anthropic's messages.

use genai::chat::{JsonSchemaDialect, sanitize_json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::convert::arguments_sent;
use super::Wishes;
use super::anthropic_limits::most_tokens;
use super::body::{Body, late_system, next};
use super::loose::{Count, Object, Text};
use super::openai::write_text;
use super::partial::{Broken, OnDelta, Partial, PartialCall};
use super::sse::SseEvent;
use crate::model::chat::{ChatMessage, ChatRequest, ChatRole, TokenUsage, ToolDecl};
use crate::model::json::write_json;
use crate::model::kept::WireForm;
use crate::model::picture::ChatPicture;

/// The version of the protocol.
pub(super) const VERSION: &str = "2023-06-01";

/// Anthropic's own server.
pub(super) const OFFICIAL: &str = "api.anthropic.com";
/// Where a beginning ends that is to be cached.
const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

/// The request for a streamed answer. `marked`: the server is told where beginnings end that come again, after the system
/// prompt, before which the tools stand, and after the last message.
pub(super) fn body(request: &ChatRequest, model: &str, marked: bool, wishes: Wishes) -> Vec<u8> {
    // Questions apart from a task have no tools. Nothing goes on from them.
    let marked = marked && !request.tools.is_empty();
    let mut body = Body::of(request);
    body.field("model", model);
    body.field("stream", &true);
    if let Some(texts) = late_system(request) {
        body.field("system", &texts.join("\n\n"));
    } else if !request.system.is_empty() {
        let system = request.system.written(WireForm::Anthropic, write_text);
        if marked {
            body.list("system", |into| {
                into.extend_from_slice(br#"{"type":"text","text":"#);
                into.extend_from_slice(system);
                into.extend_from_slice(MARK);
                into.push(b'}');
            });
        } else {
            body.raw("system", system);
        }
    }
    if !request.tools.is_empty() {
        body.raw("tools", request.tools.written(WireForm::Anthropic, |tools, into| write_tools(tools, into)));
    }
    if wishes.chosen && request.chooses() {
        let mut choice = match &request.only {
            Some(name) => json!({"type": "tool", "name": name}),
            None => json!({"type": "auto"}),
        };
        if request.one_call {
            choice["disable_parallel_tool_use"] = Value::Bool(true);
        }
        body.field("tool_choice", &choice);
    }
    body.list("messages", |into| write_messages(request, marked, into));
    if let Some(schema) = request.schema.as_ref().filter(|_| wishes.formatted) {
        let schema = sanitize_json_schema(schema, JsonSchemaDialect::AnthropicStructured);
        body.field("output_config", &json!({"format": {"type": "json_schema", "schema": schema}}));
    }
    let most = request.max_tokens.unwrap_or_else(|| most_tokens(model));
    let thinking = thinking(request, most, wishes);
    // A model that thinks takes no temperature.
    let tempered = wishes.tempered && thinking.is_none();
    body.field_if("temperature", request.temperature.filter(|_| tempered));
    body.field_if("thinking", thinking.map(|tokens| json!({"type": "enabled", "budget_tokens": tokens})));
    body.field("max_tokens", &most);
    body.finish()
}

/// The fewest tokens that Anthropic lets a model think with.
const LEAST_THINKING: u32 = 1_024;

/// Tokens to think with, out of the `most` of an answer. None where a tool is to be called, and none after calls of tools:
/// the thoughts before them, which would have to come back, are not kept.
fn thinking(request: &ChatRequest, most: u32, wishes: Wishes) -> Option<u32> {
    let effort = request.effort.filter(|_| wishes.reasoned)?;
    let is_forced = request.only.is_some() && wishes.chosen;
    let has_called = request.messages.iter().any(|message| !message.tool_calls.is_empty());
    let tokens = effort.tokens().min(most / 2);
    (!is_forced && !has_called && tokens >= LEAST_THINKING).then_some(tokens)
}

#[derive(Serialize)]
struct Declared<'a> {
    name: &'a str,
    input_schema: &'a Value,
    description: &'a str,
}

fn write_tools(tools: &[ToolDecl], into: &mut Vec<u8>) {
    into.push(b'[');
    for ToolDecl { name, description, parameters } in tools {
        next(into);
        write_json(&Declared { name, input_schema: parameters, description }, into);
    }
    into.push(b']');
}

/// All results of one turn go into one message.
fn write_messages(request: &ChatRequest, marked: bool, into: &mut Vec<u8>) {
    let mut results = false;
    let last = request.messages.len().saturating_sub(1);
    for (at, message) in request.messages.iter().enumerate() {
        let is_result = message.role == ChatRole::Tool;
        if results && !is_result {
            into.extend_from_slice(b"]}");
        } else if is_result && !results {
            next(into);
            into.extend_from_slice(br#"{"role":"user","content":["#);
        }
        results = is_result;
        if message.role != ChatRole::System {
            next(into);
            let written = message.written(WireForm::Anthropic, write_message);
            if marked && at == last {
                mark(message, written, into);
            } else {
                into.extend_from_slice(written);
            }
        }
    }
    if results {
        into.extend_from_slice(b"]}");
    }
}

/// The last message, with a mark at its end: of a result on the part that it is, of plain text on that text.
fn mark(message: &ChatMessage, written: &[u8], into: &mut Vec<u8>) {
    let is_text =
        message.role == ChatRole::User && !message.content.is_empty() && message.pictures.is_empty();
    match (message.role, written.split_last()) {
        (ChatRole::Tool, Some((b'}', part))) => {
            into.extend_from_slice(part);
            into.extend_from_slice(MARK);
            into.push(b'}');
        }
        _ if is_text => {
            into.extend_from_slice(br#"{"role":"user","content":[{"type":"text","text":"#);
            write_json(&message.content, into);
            into.extend_from_slice(MARK);
            into.extend_from_slice(b"}]}");
        }
        (ChatRole::Tool | ChatRole::User | ChatRole::System | ChatRole::Assistant, _) => {
            into.extend_from_slice(written);
        }
    }
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Image { source: Source<'a> },
    Text { text: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: &'a Value },
    ToolResult { content: &'a str, tool_use_id: &'a str },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

/// What a message shows, and what it says after that.
fn shown(message: &ChatMessage) -> Content<'_> {
    let sources = message.pictures.iter().map(|picture| {
        let ChatPicture { media_type, .. } = picture;
        Source { r#type: "base64", media_type, data: picture.data() }
    });
    let pictures = sources.map(|source| Part::Image { source });
    let said = (!message.content.is_empty()).then_some(Part::Text { text: &message.content });
    Content::Parts(pictures.chain(said).collect())
}

/// A message; of a result, the part of one.
fn write_message(message: &ChatMessage, into: &mut Vec<u8>) {
    let content = message.content.as_str();
    match message.role {
        ChatRole::User if !message.pictures.is_empty() => {
            write_json(&Message { role: "user", content: shown(message) }, into);
        }
        ChatRole::System | ChatRole::User => {
            write_json(&Message { role: "user", content: Content::Text(content) }, into);
        }
        ChatRole::Tool => {
            let tool_use_id = message.tool_call_id.as_deref().unwrap_or_default();
            write_json(&Part::ToolResult { content, tool_use_id }, into);
        }
        ChatRole::Assistant if message.tool_calls.is_empty() && !content.is_empty() => {
            write_json(&Message { role: "assistant", content: Content::Text(content) }, into);
        }
        ChatRole::Assistant => {
            let inputs: Vec<_> = message.tool_calls.iter().map(arguments_sent).collect();
            let text = (!content.is_empty()).then_some(Part::Text { text: content });
            let calls = message.tool_calls.iter().zip(&inputs);
            let calls = calls.map(|(call, input)| Part::ToolUse { id: &call.id, name: &call.name, input });
            let content = Content::Parts(text.into_iter().chain(calls).collect());
            write_json(&Message { role: "assistant", content }, into);
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow)]
    message: Object<Begun<'a>>,
    #[serde(borrow)]
    content_block: Object<Block<'a>>,
    index: Count,
    #[serde(borrow)]
    delta: Object<Piece<'a>>,
    usage: Object<Usage>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Begun<'a> {
    #[serde(borrow)]
    model: Text<'a>,
    usage: Object<Usage>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Block<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    thinking: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Piece<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    thinking: Text<'a>,
    #[serde(borrow)]
    partial_json: Text<'a>,
    #[serde(borrow)]
    stop_reason: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    input_tokens: Count,
    output_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_read_input_tokens: Count,
}

/// Reads the next event.
pub(super) fn hear(event: &SseEvent<'_>, partial: &mut Partial, on_delta: OnDelta<'_>) -> Result<(), Broken> {
    if event.name == Some("error") {
        let body = serde_json::from_str(event.data).unwrap_or_else(|_| Value::from(event.data));
        return Err(Broken::Reported(body));
    }
    let said: Event<'_> = serde_json::from_str(event.data)?;
    // Where a server does not number its blocks, the one that began last is meant.
    let block = said.index.0.unwrap_or_else(|| partial.last_key());
    match event.name.or(said.r#type.get()).unwrap_or_default() {
        "message_start" => {
            let begun = said.message.0.unwrap_or_default();
            partial.name_model(begun.model.said());
            count(partial, begun.usage.0.as_ref());
        }
        "message_delta" => {
            count(partial, said.usage.0.as_ref());
            let reason = said.delta.0.as_ref().and_then(|delta| delta.stop_reason.get());
            partial.finish = reason.map(str::to_owned).or(partial.finish.take());
        }
        "content_block_start" => {
            let begun = said.content_block.0.unwrap_or_default();
            let key = said.index.0.unwrap_or_else(|| partial.next_key());
            begin_block(key, &begun, partial, on_delta)?;
        }
        "content_block_delta" => {
            let piece = said.delta.0.unwrap_or_default();
            partial.think(piece.thinking.get().unwrap_or_default(), &mut *on_delta);
            partial.say(piece.text.get().unwrap_or_default(), &mut *on_delta);
            if let Some(arguments) = piece.partial_json.get() {
                partial.grow_call(block, arguments, on_delta);
            }
        }
        "content_block_stop" => {
            if let Some(call) = partial.call(block) {
                call.closed = true;
            }
        }
        "message_stop" => partial.ended = true,
        "error" => return Err(Broken::Reported(serde_json::from_str(event.data)?)),
        // Signs of life, and what newer versions of the protocol may add.
        _ => {}
    }
    Ok(())
}

fn begin_block(
    key: u64,
    block: &Block<'_>,
    partial: &mut Partial,
    on_delta: OnDelta<'_>,
) -> Result<(), Broken> {
    if block.r#type.get() != Some("tool_use") {
        partial.think(block.thinking.get().unwrap_or_default(), &mut *on_delta);
        partial.say(block.text.get().unwrap_or_default(), on_delta);
        return Ok(());
    }
    let (Some(id), Some(name)) = (block.id.get(), block.name.get()) else {
        return Err(Broken::Garbage(
            "the answer is garbage: a tool call in it has no id or no name".to_owned(),
        ));
    };
    let (id, name) = (id.to_owned(), name.to_owned());
    partial.begin_call(PartialCall { key, id, name, ..PartialCall::default() }, on_delta);
    Ok(())
}

/// Takes what an event tells of tokens; what is read from a cache is not among `input_tokens`.
fn count(partial: &mut Partial, said: Option<&Usage>) {
    let Some(said) = said else { return };
    let (read, written) =
        (said.cache_read_input_tokens.0.unwrap_or(0), said.cache_creation_input_tokens.0.unwrap_or(0));
    let caches = read > 0 || written > 0;
    if said.input_tokens.0.is_none() && said.output_tokens.0.is_none() && !caches {
        return;
    }
    let usage = partial.usage.get_or_insert(TokenUsage::default());
    if let Some(input) = said.input_tokens.0 {
        usage.input = input.saturating_add(read).saturating_add(written);
    }
    if let Some(output) = said.output_tokens.0 {
        usage.output = output;
    }
    if caches {
        usage.cached = read;
    }
}
