//! Anthropic's messages.

use serde_json::{Value, json};

use super::super::reply::Reply;
use super::super::request::{CapturedRequest, SeenCall, SeenMessage};
use super::openai::{middle, unique};
use super::{Read, list, string, text_of, usage};

pub(super) fn read(body: &Value) -> Read {
    let mut messages = Vec::new();
    if let Some(system) = body.get("system") {
        messages.push(SeenMessage {
            role: "system".to_owned(),
            text: text_of(system),
            ..SeenMessage::default()
        });
    }
    for message in list(body, "messages") {
        read_message(message, &mut messages);
    }
    let mut violations = Vec::new();
    if body.get("max_tokens").and_then(Value::as_u64).is_none() {
        violations.push("max_tokens is missing".to_owned());
    }
    Read {
        model: string(body, "model"),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        messages,
        tools: list(body, "tools").iter().map(|tool| string(tool, "name")).collect(),
        violations,
    }
}

/// One message of Anthropic's may hold several tool results: each becomes a message.
fn read_message(message: &Value, messages: &mut Vec<SeenMessage>) {
    let content = message.get("content").cloned().unwrap_or_default();
    let of_type = |wanted: &'static str| {
        content
            .as_array()
            .into_iter()
            .flatten()
            .filter(move |part| part.get("type").and_then(Value::as_str) == Some(wanted))
    };
    let results: Vec<_> = of_type("tool_result")
        .map(|part| SeenMessage {
            role: "tool".to_owned(),
            text: part.get("content").map(text_of).unwrap_or_default(),
            answers: Some(string(part, "tool_use_id")),
            ..SeenMessage::default()
        })
        .collect();
    let only_results = !results.is_empty();
    messages.extend(results);
    let text = text_of(&content);
    if only_results && text.is_empty() {
        return;
    }
    let calls = of_type("tool_use").map(|part| SeenCall {
        id: string(part, "id"),
        name: string(part, "name"),
        arguments: part.get("input").cloned().unwrap_or_default(),
    });
    messages.push(SeenMessage { role: string(message, "role"), text, calls: calls.collect(), answers: None });
}

pub(super) fn whole(reply: &Reply, request: &CapturedRequest) -> Value {
    let mut content = Vec::new();
    if let Some(reasoning) = &reply.reasoning {
        content.push(json!({"type": "thinking", "thinking": reasoning, "signature": "s"}));
    }
    if !reply.text.is_empty() {
        content.push(json!({"type": "text", "text": reply.text}));
    }
    for call in &reply.calls {
        content.push(json!({"type": "tool_use", "id": unique(&call.id, request), "name": call.name,
                            "input": call.value()}));
    }
    let (input, output, cached) = usage(reply, request);
    json!({"id": format!("msg_{}", request.number), "type": "message", "role": "assistant", "model": request.model,
           "content": content, "stop_reason": stop_reason(reply),
           "usage": {"input_tokens": input - cached.min(input), "cache_read_input_tokens": cached, "output_tokens": output}})
}

pub(super) fn streamed(reply: &Reply, request: &CapturedRequest) -> Vec<String> {
    let (input, output, cached) = usage(reply, request);
    let mut parts = vec![event(&json!({"type": "message_start", "message": {
        "id": format!("msg_{}", request.number), "type": "message", "role": "assistant", "model": request.model,
        "content": [],
        "usage": {"input_tokens": input - cached.min(input), "cache_read_input_tokens": cached, "output_tokens": 0}}}))];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        parts.push(event(&json!({"type": "content_block_start", "index": index, "content_block": start})));
        for delta in deltas {
            parts.push(event(&json!({"type": "content_block_delta", "index": index, "delta": delta})));
        }
        parts.push(event(&json!({"type": "content_block_stop", "index": index})));
        index += 1;
    };
    if let Some(reasoning) = &reply.reasoning {
        block(
            json!({"type": "thinking", "thinking": ""}),
            vec![
                json!({"type": "thinking_delta", "thinking": reasoning}),
                json!({"type": "signature_delta", "signature": "s"}),
            ],
        );
    }
    if !reply.text.is_empty() {
        let deltas =
            reply.text_pieces().into_iter().map(|piece| json!({"type": "text_delta", "text": piece}));
        block(json!({"type": "text", "text": ""}), deltas.collect());
    }
    for call in &reply.calls {
        let (first, second) = call.arguments.split_at(middle(&call.arguments));
        let delta = |piece: &str| json!({"type": "input_json_delta", "partial_json": piece});
        block(
            json!({"type": "tool_use", "id": unique(&call.id, request), "name": call.name, "input": {}}),
            vec![delta(first), delta(second)],
        );
    }
    parts.push(event(&json!({"type": "message_delta", "delta": {"stop_reason": stop_reason(reply)},
                             "usage": {"output_tokens": output}})));
    parts.push(event(&json!({"type": "message_stop"})));
    parts
}

fn event(body: &Value) -> String {
    format!("event: {}\ndata: {body}\n\n", string(body, "type"))
}

fn stop_reason(reply: &Reply) -> &str {
    match reply.finish_reason() {
        "stop" => "end_turn",
        "length" => "max_tokens",
        "tool_calls" => "tool_use",
        "content_filter" => "refusal",
        other => other,
    }
}
