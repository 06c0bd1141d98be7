//! How much a model is to reason, in the words of each provider, and without it once a server has refused it.

use super::*;
use crate::model::chat::ReasoningEffort;
use muster_support::model_server::Fault;

fn asked(effort: Option<ReasoningEffort>) -> ChatRequest {
    ChatRequest { effort, temperature: Some(0.2), ..request("Be brief.", [ChatMessage::user("go on")]) }
}

fn body(provider: ModelProvider, model: &str, request: &ChatRequest) -> Value {
    let door = Door::of(&target(provider, model, "http://127.0.0.1:9/v1/")).unwrap();
    serde_json::from_slice(&door.body(request, ALL)).unwrap()
}

#[test]
fn effort_is_told_in_the_providers_words() {
    use ModelProvider::{Anthropic, Gemini, OpenAi};
    use ReasoningEffort::{High, Low, Medium};
    let budget = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    let told = [(Low, "low", 1_024), (Medium, "medium", 8_192), (High, "high", 24_576)];
    for (effort, word, tokens) in told {
        let asked = asked(Some(effort));
        assert_eq!(body(OpenAi, "gpt-5", &asked)["reasoning_effort"], word);
        let anthropic = body(Anthropic, "claude-sonnet-4-5", &asked);
        assert_eq!(anthropic["thinking"], budget(tokens));
        assert!(anthropic.get("temperature").is_none(), "a model that thinks takes none: {anthropic}");
        let gemini = &body(Gemini, "gemini-2.5-pro", &asked)["generationConfig"]["thinkingConfig"];
        assert_eq!(gemini, &json!({"includeThoughts": true, "thinkingBudget": tokens}));
        let gemini = &body(Gemini, "gemini-3-pro", &asked)["generationConfig"]["thinkingConfig"];
        assert_eq!(gemini, &json!({"includeThoughts": true, "thinkingLevel": word}));
    }
    for (provider, model) in [(OpenAi, "gpt-5"), (Anthropic, "claude-sonnet-4-5"), (Gemini, "gemini-2.5-pro")]
    {
        let said = body(provider, model, &asked(None)).to_string();
        let words = ["reasoning_effort", "\"thinking\"", "thinkingBudget", "thinkingLevel"];
        assert!(words.iter().all(|word| !said.contains(word)), "{said}");
    }
}

#[test]
fn anthropic_thinks_only_where_its_protocol_lets_it() {
    let thinks = |asked: ChatRequest| {
        let body = body(ModelProvider::Anthropic, "claude-sonnet-4-5", &asked);
        assert_eq!(body.get("thinking").is_some(), body.get("temperature").is_none(), "{body}");
        body["thinking"]["budget_tokens"].as_u64()
    };
    let high = || ChatRequest { tools: tools().into(), ..asked(Some(ReasoningEffort::High)) };
    assert_eq!(thinks(high()), Some(24_576));
    // Thoughts share the tokens of the answer.
    assert_eq!(thinks(ChatRequest { max_tokens: Some(4_096), ..high() }), Some(2_048));
    assert_eq!(thinks(ChatRequest { max_tokens: Some(2_000), ..high() }), None);
    assert_eq!(thinks(ChatRequest { only: Some("search".into()), ..high() }), None);
    let mut called = high();
    called.messages.push(ChatMessage::calls("", vec![ToolCall::new("1", "read", json!({}))]).into());
    called.messages.push(ChatMessage::tool_result("1", "found").into());
    assert_eq!(thinks(called), None);
}

/// What a server was asked that refuses what holds `field` with these words.
async fn sent(field: &'static str, words: &str) -> Vec<Value> {
    let body = Some(json!({"error": {"message": words}}).to_string());
    let refuse = Reply::fault(Fault::Status { code: 400, retry_after: None, body });
    let script = Script::new().when(move |request| request.body.get(field).is_some(), refuse);
    let server = ModelServer::start(script.otherwise(Reply::text("ok"))).unwrap();
    let target = target(ModelProvider::OpenAi, "gpt-5", &format!("{}/v1/", server.url()));
    let provider = Provider::new(target, CallLimits::default(), ProviderClient::default()).unwrap();
    for _ in 0..2 {
        provider.ask(&asked(Some(ReasoningEffort::Low)), &mut ignore_deltas).await.unwrap();
    }
    server.log().iter().map(|entry| entry.request.body.clone()).collect()
}

#[tokio::test]
async fn what_a_server_refuses_it_is_not_asked_again() {
    for (field, words, kept) in [
        ("reasoning_effort", "Unrecognized request argument supplied: reasoning_effort", "temperature"),
        ("temperature", "Unsupported value: 'temperature' does not support 0.2", "reasoning_effort"),
    ] {
        let bodies = sent(field, words).await;
        let asked: Vec<bool> = bodies.iter().map(|body| body.get(field).is_some()).collect();
        assert_eq!(asked, [true, false, false], "{field}");
        assert!(bodies.iter().all(|body| body.get(kept).is_some()), "{field}: the other stays");
    }
}

#[test]
fn a_name_that_says_how_much_to_think_holds() {
    use super::super::super::convert::options;
    let effort = |provider, model: &str, effort| {
        let target = target(provider, model, "http://127.0.0.1:9/v1/");
        options(&asked(effort), &target, &CallLimits::default(), ALL).reasoning_effort.is_some()
    };
    let low = Some(ReasoningEffort::Low);
    assert!(!effort(ModelProvider::Gemini, "gemini-2.5-pro-high", low), "it would stay in the name");
    assert!(effort(ModelProvider::Gemini, "gemini-2.5-pro", low));
    assert!(
        effort(ModelProvider::Ollama, "gpt-oss:20b", low)
            && !effort(ModelProvider::Ollama, "gpt-oss:20b", None)
    );
}
