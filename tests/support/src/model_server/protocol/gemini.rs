//! Gemini's `generateContent`. It has no call ids: results are matched by the tool's name.

use serde_json::{Value, json};

use super::super::reply::Reply;
use super::super::request::{CapturedRequest, SeenCall, SeenMessage};
use super::{Read, list, string, usage};

pub(super) fn read(body: &Value) -> Read {
    let mut messages = Vec::new();
    let system = body.get("systemInstruction").or_else(|| body.get("system_instruction"));
    if let Some(system) = system {
        messages.push(SeenMessage {
            role: "system".to_owned(),
            text: texts(system),
            ..SeenMessage::default()
        });
    }
    for content in list(body, "contents") {
        let results: Vec<_> = list(content, "parts")
            .iter()
            .filter_map(|part| part.get("functionResponse"))
            .map(|result| SeenMessage {
                role: "tool".to_owned(),
                text: result.get("response").map(Value::to_string).unwrap_or_default(),
                answers: Some(string(result, "name")),
                ..SeenMessage::default()
            })
            .collect();
        if !results.is_empty() {
            messages.extend(results);
            continue;
        }
        let calls = list(content, "parts").iter().filter_map(|part| part.get("functionCall"));
        messages.push(SeenMessage {
            role: string(content, "role").replace("model", "assistant"),
            text: texts(content),
            calls: calls
                .map(|call| SeenCall {
                    id: string(call, "name"),
                    name: string(call, "name"),
                    arguments: call.get("args").cloned().unwrap_or_default(),
                })
                .collect(),
            answers: None,
        });
    }
    let tools = list(body, "tools")
        .iter()
        .flat_map(|tool| tool.get("functionDeclarations").or_else(|| tool.get("function_declarations")))
        .filter_map(Value::as_array)
        .flatten()
        .map(|tool| string(tool, "name"))
        .collect();
    Read { messages, tools, ..Read::default() }
}

fn texts(content: &Value) -> String {
    list(content, "parts").iter().map(|part| string(part, "text")).collect()
}

pub(super) fn whole(reply: &Reply, request: &CapturedRequest) -> Value {
    let mut parts: Vec<Value> = Vec::new();
    if let Some(reasoning) = &reply.reasoning {
        parts.push(json!({"text": reasoning, "thought": true}));
    }
    if !reply.text.is_empty() {
        parts.push(json!({"text": reply.text}));
    }
    parts.extend(calls(reply));
    chunk(&parts, Some(finish_reason(reply)), reply, request)
}

pub(super) fn streamed(reply: &Reply, request: &CapturedRequest) -> Vec<String> {
    if reply.refusal.is_some() {
        // What is blocked has no candidate at all.
        let body = json!({"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": request.model});
        return vec![format!("data: {body}\n\n")];
    }
    let mut events: Vec<Vec<Value>> = Vec::new();
    if let Some(reasoning) = &reply.reasoning {
        events.push(vec![json!({"text": reasoning, "thought": true})]);
    }
    events.extend(reply.text_pieces().into_iter().map(|piece| vec![json!({"text": piece})]));
    // Gemini sends all calls in one chunk, the last one.
    events.push(calls(reply));
    let last = events.len() - 1;
    events
        .iter()
        .enumerate()
        .map(|(at, parts)| {
            let finish = (at == last).then(|| finish_reason(reply));
            format!("data: {}\n\n", chunk(parts, finish, reply, request))
        })
        .collect()
}

fn calls(reply: &Reply) -> Vec<Value> {
    let call = |call: &super::super::reply::ScriptedCall| json!({"functionCall": {"name": call.name, "args": call.value()}, "thoughtSignature": "mark"});
    reply.calls.iter().map(call).collect()
}

fn chunk(parts: &[Value], finish: Option<&str>, reply: &Reply, request: &CapturedRequest) -> Value {
    let (input, output, cached) = usage(reply, request);
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    json!({"candidates": [candidate], "modelVersion": request.model,
           "usageMetadata": {"promptTokenCount": input, "candidatesTokenCount": output,
                             "cachedContentTokenCount": cached, "totalTokenCount": input + output}})
}

fn finish_reason(reply: &Reply) -> &str {
    match reply.finish_reason() {
        "stop" | "tool_calls" => "STOP",
        "length" => "MAX_TOKENS",
        "content_filter" => "SAFETY",
        other => other,
    }
}
