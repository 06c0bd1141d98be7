//! The protocols: how a request is read and a reply is written in each.

mod anthropic;
mod gemini;
mod ollama;
mod openai;

use axum::http::Method;
use serde_json::Value;

use super::reply::Reply;
use super::request::{CapturedRequest, SeenMessage};

/// A protocol the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// OpenAI's chat completions.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `generateContent`.
    Gemini,
    /// Ollama's `/api/chat`.
    Ollama,
}

/// Where a request went.
pub(super) struct Route {
    pub(super) protocol: Protocol,
    /// Gemini names the model and asks for a stream in the path.
    model: String,
    stream: bool,
}

/// What a request's body says.
#[derive(Default)]
pub(super) struct Read {
    pub(super) model: String,
    pub(super) stream: bool,
    pub(super) messages: Vec<SeenMessage>,
    pub(super) tools: Vec<String>,
    pub(super) violations: Vec<String>,
}

/// A reply ready to be sent; several parts when streamed.
pub(super) struct Rendered {
    pub(super) content_type: &'static str,
    pub(super) parts: Vec<String>,
}

impl Route {
    pub(super) fn find(method: &Method, path: &str) -> Option<Self> {
        if method != Method::POST {
            return None;
        }
        let plain = |protocol| Some(Self { protocol, model: String::new(), stream: false });
        if path.ends_with("/chat/completions") {
            return plain(Protocol::OpenAi);
        }
        if path.ends_with("/messages") {
            return plain(Protocol::Anthropic);
        }
        if path.ends_with("/api/chat") {
            return plain(Protocol::Ollama);
        }
        let (model, verb) = path.rsplit_once('/')?.1.split_once(':')?;
        let stream = match verb {
            "generateContent" => false,
            "streamGenerateContent" => true,
            _ => return None,
        };
        Some(Self { protocol: Protocol::Gemini, model: model.to_owned(), stream })
    }

    pub(super) fn read(&self, body: &Value) -> Read {
        let mut read = match self.protocol {
            Protocol::OpenAi => openai::read(body),
            Protocol::Anthropic => anthropic::read(body),
            Protocol::Gemini => gemini::read(body),
            Protocol::Ollama => ollama::read(body),
        };
        if self.protocol == Protocol::Gemini {
            read.model.clone_from(&self.model);
            read.stream = self.stream;
        }
        read
    }
}

impl Protocol {
    pub(super) fn render(self, reply: &Reply, request: &CapturedRequest, streamed: bool) -> Rendered {
        match (self, streamed) {
            (Self::OpenAi, false) => whole(&openai::whole(reply, request)),
            (Self::OpenAi, true) => events(openai::streamed(reply, request)),
            (Self::Anthropic, false) => whole(&anthropic::whole(reply, request)),
            (Self::Anthropic, true) => events(anthropic::streamed(reply, request)),
            (Self::Gemini, false) => whole(&gemini::whole(reply, request)),
            (Self::Gemini, true) => events(gemini::streamed(reply, request)),
            (Self::Ollama, false) => whole(&ollama::whole(reply, request)),
            (Self::Ollama, true) => {
                Rendered { content_type: "application/x-ndjson", parts: ollama::streamed(reply, request) }
            }
        }
    }

    /// How many parts at the end of a stream close it without adding to the answer.
    pub(super) fn end_marks(self) -> usize {
        match self {
            Self::OpenAi | Self::Anthropic => 1,
            Self::Gemini | Self::Ollama => 0,
        }
    }
}

fn whole(body: &Value) -> Rendered {
    Rendered { content_type: "application/json", parts: vec![body.to_string()] }
}

fn events(parts: Vec<String>) -> Rendered {
    Rendered { content_type: "text/event-stream", parts }
}

/// Tokens read, written and cached: as scripted, else made up from lengths (four bytes each).
fn usage(reply: &Reply, request: &CapturedRequest) -> (u64, u64, u64) {
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX);
    reply.usage.unwrap_or_else(|| {
        let read: usize = request.messages.iter().map(|message| message.text.len()).sum();
        let called: usize = reply.calls.iter().map(|call| call.arguments.len()).sum();
        (tokens(read), tokens(reply.text.len() + called), 0)
    })
}

/// A text that may be a string or a list of parts with a `text` each.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn string(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
