//! Gathering what genai streams, and noticing when it is no answer or only half of one.

use std::sync::{Arc, Mutex, MutexGuard};

use futures::StreamExt;
use genai::chat as g;
use genai::chat::{ChatFrameSink, ChatStream, ChatStreamEvent, FrameCtx, RawFrameRef};
use muster_shared::sync::lock;

use super::wire::ANSWER_BYTES;
use super::{classify, convert};
use crate::model::chat::{ChatAnswer, Delta, ModelError, ModelErrorKind, ToolCall, Wasted};
use crate::model::target::ModelTarget;

/// What came of a stream.
pub(super) enum Gathered {
    /// The answer.
    Answer(Box<ChatAnswer>),
    /// The server answered, but with no stream.
    NotStreaming,
}

/// Looks at raw frames for what genai does not report. Cheap on purpose: no frame is parsed twice.
#[derive(Clone, Default)]
pub(super) struct FrameWatch {
    seen: Arc<Mutex<FrameSummary>>,
}

#[derive(Default)]
struct FrameSummary {
    /// Blocks that arrived, of which `data` held an event.
    blocks: usize,
    data: usize,
    /// Why the provider answered nothing at all.
    blocked: Option<String>,
    model: Option<String>,
}

impl FrameSummary {
    /// The refusal in it, if it is one.
    fn withheld(&self, target: &ModelTarget) -> Option<ModelError> {
        let said = convert::withheld(self.blocked.as_deref()?);
        Some(ModelError::new(ModelErrorKind::Refused, target.name(), target.redact(&said)))
    }
}

impl FrameWatch {
    fn seen(&self) -> MutexGuard<'_, FrameSummary> {
        lock(&self.seen)
    }
}

impl ChatFrameSink for FrameWatch {
    fn on_frame(&self, _context: &FrameCtx, frame: RawFrameRef<'_>) {
        let mut seen = self.seen();
        seen.blocks += 1;
        if frame.data.is_empty() {
            return;
        }
        seen.data += 1;
        if let Some(why) = text_after(frame.data, "\"blockReason\"") {
            seen.blocked = Some(why.to_owned());
        }
        if seen.model.is_none() {
            seen.model = text_after(frame.data, "\"model\"").map(str::to_owned);
        }
    }
}

/// The plain string that follows `key` in compact or spaced JSON.
fn text_after<'a>(data: &'a str, key: &str) -> Option<&'a str> {
    let at = data.find(key)? + key.len();
    let rest = data[at..].trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    rest.split('"').next().filter(|text| !text.is_empty() && text.len() <= 200)
}

/// Reads the stream to its end.
pub(super) async fn gather(
    mut stream: ChatStream,
    watch: &FrameWatch,
    target: &ModelTarget,
    on_delta: &mut (dyn FnMut(Delta) + Send),
) -> Result<Gathered, ModelError> {
    let mut parts = Parts::default();
    let mut end = None;
    while let Some(event) = stream.next().await {
        match event.map_err(|error| {
            // A question that was blocked has no answer that could be read.
            watch.seen().withheld(target).unwrap_or_else(|| classify::error(&error, target))
        })? {
            ChatStreamEvent::Start
            | ChatStreamEvent::Heartbeat
            | ChatStreamEvent::ThoughtSignatureChunk(_) => {}
            ChatStreamEvent::Chunk(chunk) => {
                parts.text.push_str(&chunk.content);
                on_delta(Delta::Text(chunk.content));
            }
            ChatStreamEvent::ReasoningChunk(chunk) => {
                parts.reasoning.push_str(&chunk.content);
                on_delta(Delta::Thought(chunk.content));
            }
            ChatStreamEvent::ToolCallChunk(chunk) => on_delta(parts.note_call(chunk.tool_call)),
            ChatStreamEvent::End(stream_end) => {
                end = Some(stream_end);
                break;
            }
        }
        if parts.bytes() > ANSWER_BYTES {
            return Err(ModelError::new(
                ModelErrorKind::BadAnswer,
                target.name(),
                format!("the answer is longer than {ANSWER_BYTES} bytes"),
            ));
        }
    }
    conclude(parts, end, &watch.seen(), target)
}

/// What was streamed so far.
#[derive(Default)]
struct Parts {
    text: String,
    reasoning: String,
    /// Calls by id, each with its arguments so far.
    calls: Vec<ToolCall>,
}

impl Parts {
    /// Notes a chunk, which carries all arguments of its call so far.
    fn note_call(&mut self, call: g::ToolCall) -> Delta {
        let call = convert::tool_call(call, None);
        let known = self.calls.iter().position(|known| known.id == call.id);
        let nth = known.unwrap_or(self.calls.len());
        let before = known.map_or(0, |known| self.calls[known].raw.len());
        let arguments = call.raw.get(before..).unwrap_or_default().to_owned();
        match self.calls.get_mut(nth) {
            Some(known) => *known = call,
            None => self.calls.push(call),
        }
        Delta::ToolCall { nth, arguments }
    }

    fn bytes(&self) -> usize {
        let calls: usize = self.calls.iter().map(|call| call.raw.len()).sum();
        self.text.len() + self.reasoning.len() + calls
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty()
    }
}

fn conclude(
    parts: Parts,
    end: Option<g::StreamEnd>,
    seen: &FrameSummary,
    target: &ModelTarget,
) -> Result<Gathered, ModelError> {
    let cut_off = || {
        ModelError::new(
            ModelErrorKind::BadAnswer,
            target.name(),
            "the connection ended in the middle of the answer",
        )
    };
    if parts.text.is_empty()
        && parts.calls.is_empty()
        && let Some(withheld) = seen.withheld(target)
    {
        return Err(withheld);
    }
    let Some(end) = end else {
        if parts.is_empty() && seen.data == 0 && seen.blocks > 0 {
            return Ok(Gathered::NotStreaming);
        }
        return Err(cut_off());
    };
    // Some clients invent an end when the connection closes; a real one carries its reason.
    if end.captured_stop_reason.is_none() {
        let is_whole = parts.is_empty() && seen.data == 0 && seen.blocks > 0;
        return if is_whole { Ok(Gathered::NotStreaming) } else { Err(cut_off()) };
    }
    Ok(Gathered::Answer(Box::new(assemble(parts, end, seen, target))))
}

fn assemble(parts: Parts, end: g::StreamEnd, seen: &FrameSummary, target: &ModelTarget) -> ChatAnswer {
    let usage = end.captured_usage.as_ref().map(convert::usage).unwrap_or_default();
    let finish = convert::finish(end.captured_stop_reason.as_ref());
    let mut calls = parts.calls;
    if let Some(final_calls) = end.captured_into_tool_calls() {
        calls = final_calls
            .into_iter()
            .map(|call| {
                let raw = calls.iter().find(|known| known.id == call.call_id).map(|known| known.raw.clone());
                convert::tool_call(call, raw)
            })
            .collect();
    } else {
        for call in &mut calls {
            if let Ok(arguments) = serde_json::from_str(&call.raw) {
                call.arguments = arguments;
            }
        }
    }
    ChatAnswer {
        text: parts.text,
        reasoning: (!parts.reasoning.is_empty()).then_some(parts.reasoning),
        tool_calls: calls,
        usage,
        wasted: Wasted::default(),
        model: seen.model.clone().unwrap_or_else(|| target.model.clone()),
        provider: target.provider.name().to_owned(),
        finish,
        millis: 0,
    }
}
