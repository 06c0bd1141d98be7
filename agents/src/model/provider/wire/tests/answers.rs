//! What is read of streamed answers.

use serde_json::{Value, json};

use super::{HOSTILE, both, request, serve, target};
use crate::model::chat::{ChatAnswer, ChatMessage, ChatModel as _, Delta, FinishReason, ModelError};
use crate::model::target::ModelProvider;

type Heard = (Result<ChatAnswer, ModelError>, Vec<Delta>);

/// What both ways make of an answer.
async fn hear(provider: ModelProvider, answer: &str) -> [Heard; 2] {
    let (address, _heads) = serve(answer.to_owned()).await;
    let mut heard = Vec::new();
    for asker in both(&target(provider, "house-model", &format!("http://{address}/v1/"))) {
        // Asked once, so that nothing is asked for whole.
        let mut deltas = Vec::new();
        let asked = asker.ask(&request("", [ChatMessage::user("x")]), &mut |delta| deltas.push(delta)).await;
        let asked = asked.map(|answer| ChatAnswer { millis: 0, ..answer });
        heard.push((asked, deltas));
    }
    heard.try_into().unwrap_or_else(|_| panic!("there are two"))
}

fn events(events: &[Value]) -> String {
    let event = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    events.iter().map(event).collect()
}

pub(super) fn openai(pieces: &[Value]) -> String {
    let choice = |piece: &Value| json!({"model": "house-2", "choices": [piece]});
    events(&pieces.iter().map(choice).collect::<Vec<_>>()) + "data: [DONE]\n\n"
}

fn answers() -> Vec<(ModelProvider, &'static str, String)> {
    use ModelProvider::{Anthropic, Gemini, OpenAi};
    let call =
        |index: u32, fields: Value| json!({"delta": {"tool_calls": [{"index": index, "function": fields}]}});
    let named = json!({"delta": {"tool_calls": [
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "search", "arguments": ""}},
        {"index": 1, "id": "c2", "type": "function", "function": {"name": "read", "arguments": "{\"p\":"}},
    ]}});
    let stop = json!({"delta": {}, "finish_reason": "stop"});
    let block = |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta =
        |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let close = |index: u32| json!({"type": "content_block_stop", "index": index});
    let begun = json!({"type": "message_start", "message": {"model": "house-2", "usage": {
        "input_tokens": 5, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 30, "output_tokens": 1}}});
    let ended = |reason: &str| json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}});
    let done = json!({"type": "message_stop"});
    let text = [
        block(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": HOSTILE})),
        close(0),
    ];
    let tool = [
        block(1, json!({"type": "tool_use", "id": "t1", "name": "search", "input": {}})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{\"query\""})),
        delta(1, json!({"type": "input_json_delta", "partial_json": ": \"é\"}"})),
    ];
    let anthropic = |middle: &[&[Value]], reason: &str| {
        let middle = middle.concat();
        events(&[&[begun.clone()][..], &middle, &[ended(reason), done.clone()]].concat())
    };
    let gemini = |parts: Value, finish: Option<&str>| {
        json!({"modelVersion": "house-2", "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish}],
               "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "thoughtsTokenCount": 4,
                                 "cachedContentTokenCount": 2, "toolUsePromptTokenCount": 1, "totalTokenCount": 15}})
    };
    vec![
        (OpenAi, "text", openai(&[json!({"delta": {"role": "assistant", "content": HOSTILE}}), stop.clone()])),
        (OpenAi, "spaces stay", openai(&[json!({"delta": {"content": " a "}}), json!({"delta": {"content": "\n"}}), stop.clone()])),
        (OpenAi, "thoughts", openai(&[
            json!({"delta": {"reasoning_content": "hm", "content": null}}),
            json!({"delta": {"reasoning": "so", "content": "x"}}),
            stop.clone(),
        ])),
        (OpenAi, "typed pieces", openai(&[
            json!({"delta": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "if"}]}]}}),
            json!({"delta": {"content": [{"type": "text", "text": "No"}]}}),
            stop.clone(),
        ])),
        (OpenAi, "calls", openai(&[
            named.clone(),
            call(0, json!({"arguments": "{\"q\": \"é\"}"})),
            call(1, json!({"arguments": " 1}"})),
            json!({"delta": {}, "finish_reason": "tool_calls"}),
        ])),
        (OpenAi, "a call without an id, with garbage for arguments", openai(&[
            call(0, json!({"name": "search", "arguments": "{\"q\": 1,}"})),
            stop.clone(),
        ])),
        (OpenAi, "other types", openai(&[
            json!({"delta": {"content": 5, "tool_calls": {"index": 0}, "reasoning": {"a": 1}}, "finish_reason": 7}),
            json!({"delta": {"content": "x"}, "finish_reason": "house_reason"}),
        ])),
        (OpenAi, "usage in the end", events(&[
            json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "length"}], "usage": null}),
            json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 8}}}),
        ]) + "data: [DONE]\n\n"),
        (OpenAi, "usage with the reason", events(&[
            json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}),
            json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 2}}),
        ]) + "data: [DONE]\n\n"),
        (OpenAi, "an error", events(&[json!({"error": {"message": "too many requests", "code": "429"}})])),
        (OpenAi, "an error in a word", events(&[json!({"error": "context window exceeded"})])),
        (OpenAi, "garbage", "data: {\"choices\": [\n\n".to_owned()),
        (OpenAi, "cut off", events(&[json!({"choices": [{"delta": {"content": "x"}}]})])),
        (OpenAi, "nothing", "data: [DONE]\n\n".to_owned()),
        (OpenAi, "signs of life", format!(": wait\r\n\r\n{}", openai(&[json!({"delta": {"content": "x"}}), stop]).replace('\n', "\r\n"))),
        (Anthropic, "text", anthropic(&[&text], "end_turn")),
        (Anthropic, "thoughts and a call", anthropic(&[
            &[block(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
              delta(0, json!({"type": "thinking_delta", "thinking": "hm"}))],
            &[close(0), json!({"type": "ping"})], &tool, &[close(1)],
        ], "tool_use")),
        (Anthropic, "a call without arguments", anthropic(&[&tool[..1], &[close(1)]], "tool_use")),
        (Anthropic, "a call that a limit cut off", anthropic(&[&text, &tool[..2]], "max_tokens")),
        (Anthropic, "redacted thoughts", anthropic(&[
            &[block(0, json!({"type": "redacted_thinking", "data": "xyz"})), close(0)], &text], "end_turn")),
        (Anthropic, "a refusal", anthropic(&[&text], "refusal")),
        (Anthropic, "no reason", events(&[&[begun.clone()][..], &text, std::slice::from_ref(&done)].concat())),
        (Anthropic, "cut off", events(&[&[begun.clone()][..], &text, &[ended("end_turn")]].concat())),
        (Anthropic, "an error", events(&[&[begun.clone()][..], &text[..2], &[
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})]].concat())),
        (Anthropic, "an error in no JSON", "event: error\ndata: it broke\n\n".to_owned()),
        (Anthropic, "a call without a name", events(&[begun, block(0, json!({"type": "tool_use", "id": "x"}))])),
        (Gemini, "text", events(&[gemini(json!([{"text": HOSTILE}]), None), gemini(json!([{"text": "b"}, {"text": "c"}]), Some("STOP"))])),
        (Gemini, "thoughts", events(&[gemini(json!([{"text": "hm", "thought": true}, {"text": "so"}]), None), gemini(json!([]), Some("MAX_TOKENS"))])),
        (Gemini, "calls", events(&[gemini(json!([
            {"functionCall": {"name": "search", "args": {"q": "é"}}, "thoughtSignature": "mark"},
            {"functionCall": {"name": "read", "id": "own"}},
        ]), Some("STOP"))])),
        (Gemini, "a mark on a text", events(&[
            gemini(json!([{"text": "so", "thoughtSignature": "mark"}]), None),
            gemini(json!([{"functionCall": {"name": "search", "args": {}}}]), Some("STOP")),
        ])),
        (Gemini, "a reason only", events(&[gemini(json!([{"text": "x"}]), None), json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 1}})])),
        (Gemini, "a refusal", events(&[json!({"candidates": [{"finishReason": "SAFETY"}]})])),
        (Gemini, "blocked", events(&[json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})])),
        (Gemini, "an error", events(&[json!({"error": {"code": 429, "message": "rate_limit"}})])),
        (Gemini, "cut off", events(&[gemini(json!([{"text": "x"}]), None)])),
        (Gemini, "other types", events(&[gemini(json!([5, {"text": 1}, {"inlineData": {"mimeType": "a", "data": "b"}}, {"text": "x"}]), Some("STOP"))])),
    ]
}

/// What was told of the arguments of a call.
fn arguments(deltas: &[Delta], call: usize) -> String {
    let pieces = deltas.iter().filter_map(|delta| match delta {
        Delta::ToolCall { nth, arguments } => (*nth == call).then_some(arguments.as_str()),
        Delta::Text(_) | Delta::Thought(_) | Delta::Restart => None,
    });
    pieces.collect()
}

#[tokio::test]
async fn answers_are_those_of_the_library() {
    for (provider, name, answer) in answers() {
        let [(own, own_deltas), (library, library_deltas)] = hear(provider, &answer).await;
        match (own, library) {
            (Ok(own), Ok(library)) => {
                assert_eq!(own, library, "{provider:?} {name}");
                assert_eq!(own_deltas, library_deltas, "{provider:?} {name}");
                // Each piece is told once, however long the arguments become.
                for (at, call) in own.tool_calls.iter().enumerate() {
                    assert_eq!(arguments(&own_deltas, at), call.raw, "{provider:?} {name}");
                }
            }
            (Err(own), Err(library)) => {
                assert_eq!(own.kind, library.kind, "{provider:?} {name}: {own} / {library}");
            }
            (own, library) => panic!("{provider:?} {name}: {own:?} / {library:?}"),
        }
    }
}

/// What is read better than by the library.
#[tokio::test]
async fn answers_that_the_library_does_not_read() {
    let stop = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
    let counted = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}});
    // Calls counted from 1 are no two calls.
    let call = json!({"choices": [{"delta": {"tool_calls": [{"index": 1, "id": "c", "function": {"name": "t", "arguments": "{}"}}]}}]});
    let [(own, _), _] =
        hear(ModelProvider::OpenAi, &(events(&[call, stop.clone()]) + "data: [DONE]\n\n")).await;
    assert_eq!(own.unwrap().tool_calls.len(), 1);
    // Without the closing mark, what was counted still counts.
    let text = json!({"choices": [{"delta": {"content": "x"}}]});
    let [(own, _), _] = hear(ModelProvider::OpenAi, &events(&[text.clone(), stop.clone(), counted])).await;
    assert_eq!(own.unwrap().usage.total(), 4);
    // An error that is null is none.
    let no_error = json!({"error": null, "choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]});
    let [(own, _), _] = hear(ModelProvider::OpenAi, &events(&[no_error])).await;
    assert_eq!(own.unwrap().text, "x");
    // Refusals come in pieces.
    let refusal = |text: &str| json!({"choices": [{"delta": {"refusal": text}}]});
    let [(own, _), _] = hear(ModelProvider::OpenAi, &events(&[refusal("I "), refusal("won't"), stop])).await;
    assert_eq!(own.unwrap_err().message, "I won't");
    // Calls of the same tool in different pieces are different calls.
    let call = |n: u32, finish: Option<&str>| {
        let parts = json!([{"functionCall": {"name": "t", "args": {"n": n}}}]);
        json!({"candidates": [{"content": {"parts": parts}, "finishReason": finish}]})
    };
    let [(own, _), _] = hear(ModelProvider::Gemini, &events(&[call(1, None), call(2, Some("STOP"))])).await;
    let calls = own.unwrap().tool_calls;
    assert_eq!(calls.iter().map(|call| call.raw.as_str()).collect::<Vec<_>>(), [r#"{"n":1}"#, r#"{"n":2}"#]);
    assert_ne!(calls[0].id, calls[1].id);
    // Blocks of a kind that is not known are passed over.
    let anthropic = events(&[
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "house_block"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "house_delta", "it": 1}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"text": "x"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ]);
    let [(own, _), _] = hear(ModelProvider::Anthropic, &anthropic).await;
    let own = own.unwrap();
    assert_eq!((own.text.as_str(), own.finish), ("x", FinishReason::Stop));
}

#[tokio::test]
async fn an_answer_without_end_is_given_up() {
    let piece = json!({"choices": [{"delta": {"content": "x".repeat(1 << 20)}}]});
    let [(own, _), _] = hear(ModelProvider::OpenAi, &events(&vec![piece; 5])).await;
    assert!(own.unwrap_err().message.contains("longer than"));
}
