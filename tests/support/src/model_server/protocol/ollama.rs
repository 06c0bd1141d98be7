//! Ollama's `/api/chat`. It has no call ids: results follow their calls in order.

use serde_json::{Value, json};

use super::super::reply::Reply;
use super::super::request::{CapturedRequest, SeenCall, SeenMessage};
use super::{Read, list, string, usage};

pub(super) fn read(body: &Value) -> Read {
    let mut messages: Vec<SeenMessage> = Vec::new();
    let mut open: std::collections::VecDeque<String> = std::collections::VecDeque::new();
    for message in list(body, "messages") {
        let role = string(message, "role");
        let calls: Vec<_> = list(message, "tool_calls")
            .iter()
            .filter_map(|call| call.get("function"))
            .enumerate()
            .map(|(index, function)| SeenCall {
                id: format!("{}-{index}", messages.len()),
                name: string(function, "name"),
                arguments: function.get("arguments").cloned().unwrap_or_default(),
            })
            .collect();
        let answers = (role == "tool").then(|| open.pop_front().unwrap_or_default());
        open.extend(calls.iter().map(|call| call.id.clone()));
        messages.push(SeenMessage { role, text: string(message, "content"), calls, answers });
    }
    let tools = list(body, "tools")
        .iter()
        .filter_map(|tool| tool.get("function"))
        .map(|function| string(function, "name"))
        .collect();
    Read {
        model: string(body, "model"),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(true),
        messages,
        tools,
        violations: Vec::new(),
    }
}

pub(super) fn whole(reply: &Reply, request: &CapturedRequest) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.text, "tool_calls": calls(reply)});
    if let Some(reasoning) = &reply.reasoning {
        message["thinking"] = json!(reasoning);
    }
    last(&message, reply, request)
}

pub(super) fn streamed(reply: &Reply, request: &CapturedRequest) -> Vec<String> {
    let line =
        |message: &Value| format!("{}\n", json!({"model": request.model, "message": message, "done": false}));
    let mut lines = Vec::new();
    if let Some(reasoning) = &reply.reasoning {
        lines.push(line(&json!({"role": "assistant", "content": "", "thinking": reasoning})));
    }
    for piece in reply.text_pieces() {
        lines.push(line(&json!({"role": "assistant", "content": piece})));
    }
    if !reply.calls.is_empty() {
        lines.push(line(&json!({"role": "assistant", "content": "", "tool_calls": calls(reply)})));
    }
    lines.push(format!("{}\n", last(&json!({"role": "assistant", "content": ""}), reply, request)));
    lines
}

fn calls(reply: &Reply) -> Value {
    let call = |call: &super::super::reply::ScriptedCall| json!({"function": {"name": call.name, "arguments": call.value()}});
    reply.calls.iter().map(call).collect()
}

fn last(message: &Value, reply: &Reply, request: &CapturedRequest) -> Value {
    let (input, output, _) = usage(reply, request);
    let reason = if reply.finish_reason() == "length" { "length" } else { "stop" };
    json!({"model": request.model, "message": message, "done": true, "done_reason": reason,
           "prompt_eval_count": input, "eval_count": output})
}
