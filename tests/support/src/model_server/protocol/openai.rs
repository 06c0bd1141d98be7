//! OpenAI's chat completions.

use serde_json::{Value, json};

use super::super::reply::Reply;
use super::super::request::{CapturedRequest, SeenCall, SeenMessage};
use super::{Read, list, string, text_of, usage};

pub(super) fn read(body: &Value) -> Read {
    let mut violations = Vec::new();
    let messages =
        list(body, "messages").iter().map(|message| read_message(message, &mut violations)).collect();
    let tools = list(body, "tools")
        .iter()
        .map(|tool| {
            if tool.pointer("/function/parameters/type").and_then(Value::as_str) != Some("object") {
                violations.push(format!("tool parameters are no object schema: {tool}"));
            }
            tool.get("function").map(|function| string(function, "name")).unwrap_or_default()
        })
        .collect();
    Read {
        model: string(body, "model"),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        messages,
        tools,
        violations,
    }
}

fn read_message(message: &Value, violations: &mut Vec<String>) -> SeenMessage {
    let calls = list(message, "tool_calls")
        .iter()
        .map(|call| {
            let function = call.get("function").cloned().unwrap_or_default();
            let arguments = string(&function, "arguments");
            SeenCall {
                id: string(call, "id"),
                name: string(&function, "name"),
                arguments: serde_json::from_str(&arguments).unwrap_or_else(|error| {
                    violations.push(format!("call arguments are no JSON ({error}): {arguments}"));
                    Value::Null
                }),
            }
        })
        .collect();
    SeenMessage {
        role: string(message, "role").replace("developer", "system"),
        text: message.get("content").map(text_of).unwrap_or_default(),
        calls,
        answers: message.get("tool_call_id").and_then(Value::as_str).map(str::to_owned),
    }
}

pub(super) fn whole(reply: &Reply, request: &CapturedRequest) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.text});
    if let Some(reasoning) = &reply.reasoning {
        message["reasoning_content"] = json!(reasoning);
    }
    if let Some(said) = &reply.refusal {
        message["content"] = Value::Null;
        message["refusal"] = json!(said);
    }
    if !reply.calls.is_empty() {
        let calls = reply.calls.iter().map(|call| {
            json!({"id": unique(&call.id, request), "type": "function",
                   "function": {"name": call.name, "arguments": call.arguments}})
        });
        message["tool_calls"] = calls.collect();
    }
    json!({
        "id": format!("chatcmpl-{}", request.number), "object": "chat.completion", "model": request.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason()}],
        "usage": usage_body(reply, request),
    })
}

pub(super) fn streamed(reply: &Reply, request: &CapturedRequest) -> Vec<String> {
    let mut parts = Vec::new();
    let mut delta = |delta: &Value, finish: Option<&str>| {
        parts.push(event(&json!({
            "id": format!("chatcmpl-{}", request.number), "object": "chat.completion.chunk", "model": request.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        })));
    };
    if let Some(reasoning) = &reply.reasoning {
        delta(&json!({"reasoning_content": reasoning}), None);
    }
    if let Some(said) = &reply.refusal {
        let (first, second) = said.split_at(middle(said));
        delta(&json!({"refusal": first}), None);
        delta(&json!({"refusal": second}), None);
    }
    for piece in reply.text_pieces() {
        delta(&json!({"content": piece}), None);
    }
    for (index, call) in reply.calls.iter().enumerate() {
        // Arguments come in two chunks, the second without id and name, as the real protocol does it.
        let middle = middle(&call.arguments);
        let (first, second) = call.arguments.split_at(middle);
        delta(
            &json!({"tool_calls": [{"index": index, "id": unique(&call.id, request), "type": "function",
                                    "function": {"name": call.name, "arguments": first}}]}),
            None,
        );
        delta(&json!({"tool_calls": [{"index": index, "function": {"arguments": second}}]}), None);
    }
    delta(&json!({}), Some(reply.finish_reason()));
    if request.body.pointer("/stream_options/include_usage") == Some(&json!(true)) {
        parts.push(event(&json!({"id": format!("chatcmpl-{}", request.number), "model": request.model,
                                 "choices": [], "usage": usage_body(reply, request)})));
    }
    parts.push("data: [DONE]\n\n".to_owned());
    parts
}

fn event(body: &Value) -> String {
    format!("data: {body}\n\n")
}

/// Ids that differ between the turns of a conversation, as real ones do.
pub(super) fn unique(id: &str, request: &CapturedRequest) -> String {
    format!("{id}_{}", request.number)
}

/// The character boundary nearest below the middle.
pub(super) fn middle(text: &str) -> usize {
    (0..=text.len() / 2).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

fn usage_body(reply: &Reply, request: &CapturedRequest) -> Value {
    let (input, output, cached) = usage(reply, request);
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
           "prompt_tokens_details": {"cached_tokens": cached}})
}
