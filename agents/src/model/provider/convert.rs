//! Between our types and genai's.

use std::borrow::Cow;
use std::sync::Arc;

use genai::adapter::AdapterKind;
use genai::chat as g;
use genai::resolver::{AuthData, Endpoint};
use genai::{ModelIden, ServiceTarget};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::CallLimits;
use super::wire::Wishes;
use crate::model::chat::{
    ChatAnswer, ChatMessage, ChatRequest, ChatRole, FinishReason, ReasoningEffort, TokenUsage, ToolCall,
    Wasted,
};
use crate::model::kept::Kept;
use crate::model::target::{ModelProvider, ModelTarget};

/// Sent to servers that check no key: some refuse a request without any.
pub(super) const NO_KEY: &str = "none";

/// The explicit target genai is called with.
pub(super) fn service_target(target: &ModelTarget) -> ServiceTarget {
    let kind = match target.provider {
        // Offline never gets here; the chat-completions protocol is the least surprising reading.
        ModelProvider::OpenAi | ModelProvider::Offline => AdapterKind::OpenAI,
        ModelProvider::Anthropic => AdapterKind::Anthropic,
        ModelProvider::Gemini => AdapterKind::Gemini,
        ModelProvider::Ollama => AdapterKind::Ollama,
    };
    let key = target.key.as_ref().map_or(NO_KEY, ExposeSecret::expose_secret);
    ServiceTarget {
        endpoint: Endpoint::from_owned(target.endpoint_or_default()),
        auth: AuthData::from_single(key),
        model: ModelIden::new(kind, target.model.as_str()),
    }
}

/// What is asked.
pub(super) fn request(request: &ChatRequest, target: &ModelTarget) -> g::ChatRequest {
    let mut messages: Vec<g::ChatMessage> = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        let next = convert_message(message, &request.messages, &target.name());
        // Anthropic wants all results of one turn in one message; Ollama can hold only one in each.
        if target.provider == ModelProvider::Anthropic
            && message.role == ChatRole::Tool
            && let Some(last) = messages.last_mut()
            && last.role == g::ChatRole::Tool
        {
            for part in next.content.into_parts() {
                last.content.push(part);
            }
        } else {
            messages.push(next);
        }
    }
    let tools: Vec<_> = request
        .tools
        .iter()
        .map(|tool| {
            g::Tool::new(tool.name.as_str())
                .with_description(tool.description.as_str())
                .with_schema(tool.parameters.clone())
        })
        .collect();
    let mut asked = g::ChatRequest::from_messages(messages);
    asked.system = (!request.system.is_empty()).then(|| request.system.to_string());
    asked.tools = (!tools.is_empty()).then_some(tools);
    asked
}

fn convert_message(message: &ChatMessage, all: &[Kept<ChatMessage>], target: &str) -> g::ChatMessage {
    match message.role {
        ChatRole::System => g::ChatMessage::system(message.content.as_str()),
        ChatRole::User if message.pictures.is_empty() => g::ChatMessage::user(message.content.as_str()),
        ChatRole::User => {
            let shown = message.pictures.iter().map(|picture| {
                g::ContentPart::from_binary_base64(&picture.media_type, Arc::clone(picture.data()), None)
            });
            let said = g::ContentPart::from_text(message.content.as_str());
            g::ChatMessage::user(g::MessageContent::from_parts(shown.chain([said]).collect::<Vec<_>>()))
        }
        ChatRole::Assistant => {
            let mut parts = Vec::new();
            if !message.content.is_empty() {
                parts.push(g::ContentPart::from_text(message.content.as_str()));
            }
            let calls = message.tool_calls.iter().map(|call| convert_call(call, target));
            parts.extend(calls.map(g::ContentPart::ToolCall));
            g::ChatMessage::assistant(g::MessageContent::from_parts(parts))
        }
        ChatRole::Tool => {
            let id = message.tool_call_id.as_deref().unwrap_or_default();
            let mut result = g::ToolResponse::new(id, message.content.as_str());
            // Gemini matches results by name.
            result.fn_name = all
                .iter()
                .flat_map(|message| &message.tool_calls)
                .find(|call| call.id == id)
                .map(|call| call.name.clone());
            g::ChatMessage::from(result)
        }
    }
}

/// The arguments as they go back: providers refuse a history whose arguments are no object.
pub(super) fn arguments_sent(call: &ToolCall) -> Cow<'_, Value> {
    match call.arguments.is_object() {
        true => Cow::Borrowed(&call.arguments),
        false => Cow::Owned(json!({ "unreadable_arguments": call.raw })),
    }
}

fn convert_call(call: &ToolCall, target: &str) -> g::ToolCall {
    let signatures = call.signatures_for(target);
    g::ToolCall {
        call_id: call.id.clone(),
        fn_name: call.name.clone(),
        fn_arguments: arguments_sent(call).into_owned(),
        thought_signatures: (!signatures.is_empty()).then(|| signatures.to_vec()),
    }
}

/// How it is asked.
pub(super) fn options(
    request: &ChatRequest,
    target: &ModelTarget,
    limits: &CallLimits,
    wishes: Wishes,
) -> g::ChatOptions {
    let mut options = g::ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_content(true)
        .with_capture_reasoning_content(true)
        .with_capture_tool_calls(true)
        .with_capture_raw_body(true)
        .with_stream_header_timeout(limits.first.min(limits.call))
        .with_stream_read_timeout(limits.idle);
    options.temperature = request.temperature.filter(|_| wishes.tempered);
    options.max_tokens = request.max_tokens;
    options.reasoning_effort = effort(request, target, wishes).or_else(|| keep_model_name(target));
    if let (true, Some(schema)) = (wishes.formatted, &request.schema) {
        options.response_format = answer_format(schema, request, target);
    }
    options
}

/// How much the model is to reason. What its name says where genai reads it holds, and would not be read beside another.
fn effort(request: &ChatRequest, target: &ModelTarget, wishes: Wishes) -> Option<g::ReasoningEffort> {
    let in_name = g::ReasoningEffort::from_model_name(&target.model).0.is_some();
    if in_name && target.provider != ModelProvider::OpenAi {
        return None;
    }
    request.effort.filter(|_| wishes.reasoned).map(|effort| match effort {
        ReasoningEffort::Low => g::ReasoningEffort::Low,
        ReasoningEffort::Medium => g::ReasoningEffort::Medium,
        ReasoningEffort::High => g::ReasoningEffort::High,
    })
}

/// genai takes a name such as `qwen-max` for `qwen` with the effort "max"; an effort that it does not send
/// keeps the name whole.
fn keep_model_name(target: &ModelTarget) -> Option<g::ReasoningEffort> {
    let (effort, _) = g::ReasoningEffort::from_model_name(&target.model);
    (target.provider == ModelProvider::OpenAi && effort.is_some()).then_some(g::ReasoningEffort::Budget(0))
}

fn answer_format(
    schema: &Value,
    request: &ChatRequest,
    target: &ModelTarget,
) -> Option<g::ChatResponseFormat> {
    match target.provider {
        // Ollama's client knows plain JSON only, and a format silences native tool calls.
        ModelProvider::Ollama => request.tools.is_empty().then_some(g::ChatResponseFormat::JsonMode),
        ModelProvider::OpenAi | ModelProvider::Anthropic | ModelProvider::Gemini | ModelProvider::Offline => {
            Some(g::ChatResponseFormat::JsonSpec(g::JsonSpec::new("answer", schema.clone())))
        }
    }
}

/// A whole answer of genai's in our terms.
pub(super) fn answer(response: &g::ChatResponse, target: &ModelTarget) -> ChatAnswer {
    let tool_calls =
        response.content.tool_calls().into_iter().cloned().map(|call| tool_call(call, None)).collect();
    ChatAnswer {
        text: response.content.texts().join("\n\n"),
        reasoning: response.reasoning_content.clone().filter(|text| !text.is_empty()),
        tool_calls,
        usage: usage(&response.usage),
        wasted: Wasted::default(),
        model: response.provider_model_iden.model_name.to_string(),
        provider: target.provider.name().to_owned(),
        finish: finish(response.stop_reason.as_ref()),
        millis: 0,
    }
}

/// A tool call of genai's in our terms; `raw` is what the model wrote, when it was seen.
pub(super) fn tool_call(call: g::ToolCall, raw: Option<String>) -> ToolCall {
    let raw = raw.unwrap_or_else(|| match &call.fn_arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    ToolCall {
        id: call.call_id,
        name: call.fn_name,
        arguments: call.fn_arguments,
        raw,
        signatures: call.thought_signatures.unwrap_or_default(),
        signer: None,
    }
}

pub(super) fn finish(reason: Option<&g::StopReason>) -> FinishReason {
    match reason {
        Some(g::StopReason::Completed(_) | g::StopReason::StopSequence(_)) => FinishReason::Stop,
        Some(g::StopReason::MaxTokens(_)) => FinishReason::Length,
        Some(g::StopReason::ToolCall(_)) => FinishReason::ToolCalls,
        Some(g::StopReason::ContentFilter(_)) => FinishReason::ContentFilter,
        Some(g::StopReason::Other(other)) => FinishReason::Other(other.clone()),
        None => FinishReason::Other(String::new()),
    }
}

pub(super) fn usage(usage: &g::Usage) -> TokenUsage {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(0);
    TokenUsage {
        input: count(usage.prompt_tokens),
        output: count(usage.completion_tokens),
        cached: count(usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens)),
    }
}

/// Reads a chat-completions body leniently: arguments that are no JSON stay text, for the parser to repair.
pub(super) fn openai_answer(body: &Value, target: &ModelTarget) -> Option<ChatAnswer> {
    let choice = body.pointer("/choices/0")?;
    let message = choice.get("message")?;
    let calls = message.get("tool_calls")?.as_array()?;
    let tool_calls = calls
        .iter()
        .enumerate()
        .map(|(index, call)| {
            let name = call.pointer("/function/name")?.as_str()?;
            let given = call.pointer("/function/arguments").cloned().unwrap_or_default();
            let raw = given.as_str().map_or_else(|| given.to_string(), str::to_owned);
            Some(ToolCall {
                id: call
                    .get("id")
                    .and_then(Value::as_str)
                    .map_or_else(|| format!("call_{index}"), str::to_owned),
                name: name.to_owned(),
                arguments: serde_json::from_str(&raw).unwrap_or(Value::String(raw.clone())),
                raw,
                signatures: Vec::new(),
                signer: None,
            })
        })
        .collect::<Option<Vec<_>>>()?;
    let text = |key: &str| message.get(key).and_then(Value::as_str).map(str::to_owned);
    let tokens = |path: &str| body.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let reason = choice.get("finish_reason").and_then(Value::as_str);
    Some(ChatAnswer {
        text: text("content").unwrap_or_default(),
        reasoning: text("reasoning_content").or_else(|| text("reasoning")),
        tool_calls,
        usage: TokenUsage {
            input: tokens("/usage/prompt_tokens"),
            output: tokens("/usage/completion_tokens"),
            cached: tokens("/usage/prompt_tokens_details/cached_tokens"),
        },
        wasted: Wasted::default(),
        model: body.get("model").and_then(Value::as_str).unwrap_or(&target.model).to_owned(),
        provider: target.provider.name().to_owned(),
        finish: finish(reason.map(|reason| g::StopReason::from(reason.to_owned())).as_ref()),
        millis: 0,
    })
}

/// What is said of a question or an answer that the provider held back.
pub(super) fn withheld(why: &str) -> String {
    format!("the provider withheld the answer for policy reasons ({why}): ask differently")
}

/// What the model said instead of an answer, in a chat-completions body.
pub(super) fn refusal(body: &Value) -> Option<String> {
    let message = body.pointer("/choices/0/message")?;
    let said = message.get("refusal").and_then(Value::as_str)?.trim();
    let answers =
        |key: &str| message.get(key).is_some_and(|value| value.as_str() != Some("") && !value.is_null());
    (!said.is_empty() && !answers("content") && !answers("tool_calls")).then(|| said.to_owned())
}
