//! Providers against the scripted model server: every protocol, every fault, never a hang.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_agents::model::chat::{
    ChatAnswer, ChatMessage, ChatModel, ChatRequest, Delta, FinishReason, ModelError, TokenUsage, ToolCall,
    ToolDecl, ignore_deltas,
};
use muster_agents::model::error::ModelErrorKind;
use muster_agents::model::provider::{CallLimits, Provider, ProviderClient};
use muster_agents::model::retry::{Resilient, RetryLimits};
use muster_agents::model::target::{ModelProvider, ModelTarget};
use muster_support::model_server::{Fault, ModelServer, Reply, Script};
use secrecy::SecretString;
use serde_json::json;

const ALL: [ModelProvider; 4] =
    [ModelProvider::OpenAi, ModelProvider::Anthropic, ModelProvider::Gemini, ModelProvider::Ollama];
const KEY: &str = "sk-very-secret";

fn target(server: &ModelServer, provider: ModelProvider) -> ModelTarget {
    let path = match provider {
        ModelProvider::OpenAi | ModelProvider::Anthropic => "/v1/",
        ModelProvider::Gemini => "/v1beta/",
        ModelProvider::Ollama | ModelProvider::Offline => "/",
    };
    ModelTarget {
        provider,
        model: "house-model".into(),
        endpoint: Some(format!("{}{path}", server.url()).parse().unwrap()),
        key: Some(SecretString::from(KEY)),
    }
}

fn limits() -> CallLimits {
    CallLimits {
        call: Duration::from_millis(1500),
        idle: Duration::from_millis(300),
        ..CallLimits::default()
    }
}

fn provider(server: &ModelServer, provider: ModelProvider) -> Provider {
    Provider::new(target(server, provider), limits(), ProviderClient::default()).unwrap()
}

fn question() -> ChatRequest {
    ChatRequest {
        system: "Be brief.".into(),
        messages: vec![ChatMessage::user("What is the answer?").into()],
        ..ChatRequest::default()
    }
}

async fn ask(model: &dyn ChatModel, request: &ChatRequest) -> (Result<ChatAnswer, ModelError>, Vec<Delta>) {
    let mut deltas = Vec::new();
    let answer =
        tokio::time::timeout(Duration::from_secs(20), model.ask(request, &mut |delta| deltas.push(delta)))
            .await
            .expect("the call hangs");
    (answer, deltas)
}

#[tokio::test]
async fn text_and_thought_stream_in_every_protocol() {
    for kind in ALL {
        let reply =
            Reply::text("It is forty-two, they say.").with_reasoning("Deep thought.").with_usage(12, 7, 0);
        let server = ModelServer::start(Script::new().when_text("the answer", reply)).unwrap();
        let (answer, deltas) = ask(&provider(&server, kind), &question()).await;
        let answer = answer.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        assert_eq!(answer.text, "It is forty-two, they say.", "{kind:?}");
        assert_eq!(answer.reasoning.as_deref(), Some("Deep thought."), "{kind:?}");
        assert_eq!(answer.usage, TokenUsage { input: 12, output: 7, cached: 0 }, "{kind:?}");
        assert_eq!(answer.finish, FinishReason::Stop, "{kind:?}");
        assert_eq!(answer.provider, kind.name());
        let texts: Vec<_> = deltas
            .iter()
            .filter_map(|delta| match delta {
                Delta::Text(text) => Some(text.as_str()),
                Delta::Thought(_) | Delta::ToolCall { .. } | Delta::Restart => None,
            })
            .collect();
        assert!(texts.len() > 1, "{kind:?} came in one piece: {deltas:?}");
        assert_eq!(texts.concat(), answer.text, "{kind:?}");
        assert!(deltas.contains(&Delta::Thought("Deep thought.".into())), "{kind:?}");
        assert_eq!(server.violations(), Vec::<String>::new(), "{kind:?}");
        let log = server.log();
        assert_eq!(log[0].request.system(), "Be brief.", "{kind:?}");
        let key = log[0].request.key.as_deref();
        assert!(kind == ModelProvider::Ollama || key == Some(KEY), "{kind:?} sent {key:?}");
    }
}

#[tokio::test]
async fn numbers_of_tokens_without_bounds_are_no_panic() {
    let most = u64::from(u32::MAX / 2);
    for kind in ALL {
        let script =
            Script::new().when_text("the answer", Reply::text("Forty-two.").with_usage(most, most, 0));
        let server = ModelServer::start(script).unwrap();
        match ask(&provider(&server, kind), &question()).await.0 {
            Ok(answer) => assert_eq!(answer.text, "Forty-two.", "{kind:?}"),
            Err(error) => assert_eq!(error.kind, ModelErrorKind::BadAnswer, "{kind:?}: {error}"),
        }
    }
}

#[tokio::test]
async fn tools_are_declared_called_and_answered_in_every_protocol() {
    for kind in ALL {
        let script = Script::new()
            .when(
                |request| request.tool_results() == 0,
                Reply::call("search", &json!({"query": "délégation"}))
                    .and_call("read", &json!({"path": "a.md", "line": 3})),
            )
            .when(|request| request.tool_results() == 2, Reply::text("Done."));
        let server = ModelServer::start(script).unwrap();
        let model = provider(&server, kind);
        let mut request = question();
        let tool = |name: &str| ToolDecl {
            name: name.into(),
            description: "A tool.".into(),
            parameters: json!({"type": "object", "properties": {"query": {"type": "string"}}}),
        };
        request.tools = vec![tool("search"), tool("read")].into();
        let answer = ask(&model, &request).await.0.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        let calls: Vec<_> =
            answer.tool_calls.iter().map(|call| (call.name.as_str(), &call.arguments)).collect();
        assert_eq!(
            calls,
            [("search", &json!({"query": "délégation"})), ("read", &json!({"path": "a.md", "line": 3}))],
            "{kind:?}"
        );
        assert_eq!(server.log()[0].request.tools, ["search", "read"], "{kind:?}");

        let ids: Vec<_> = answer.tool_calls.iter().map(|call| call.id.clone()).collect();
        request.messages.push(ChatMessage::calls(answer.text, answer.tool_calls).into());
        for id in ids {
            request.messages.push(ChatMessage::tool_result(id, r#"{"found": true}"#).into());
        }
        let answer = ask(&model, &request).await.0.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        assert_eq!(answer.text, "Done.", "{kind:?}");
        assert_eq!(server.violations(), Vec::<String>::new(), "{kind:?}");
        let seen = &server.log()[1].request;
        assert!(seen.last_text().contains("found"), "{kind:?}");
        assert_eq!(seen.messages[2].calls[0].arguments, json!({"query": "délégation"}), "{kind:?}");
    }
}

#[tokio::test]
async fn faults_become_errors_of_their_kind_in_every_protocol() {
    let cases: &[(Fault, &str)] = &[
        (Fault::Status { code: 401, retry_after: None, body: None }, "unauthorized"),
        (Fault::Status { code: 400, retry_after: None, body: None }, "bad_request"),
        (Fault::Status { code: 404, retry_after: None, body: None }, "bad_request"),
        (Fault::Status { code: 429, retry_after: Some("7".into()), body: None }, "rate_limited"),
        (Fault::Status { code: 500, retry_after: None, body: Some("<html>".into()) }, "overloaded"),
        (Fault::Status { code: 503, retry_after: Some("2".into()), body: None }, "overloaded"),
        (
            Fault::Status {
                code: 400,
                retry_after: None,
                body: Some(json!({"error": {"message": "prompt is too long: 9 > 8"}}).to_string()),
            },
            "context_too_long",
        ),
        (Fault::Garbage, "bad_answer"),
        (Fault::Empty, "bad_answer"),
        (Fault::HalfBody, "bad_answer"),
        (Fault::Stall, "timeout"),
        (Fault::Hang, "timeout"),
    ];
    for kind in ALL {
        for (fault, expected) in cases {
            let server = ModelServer::start(Script::new().otherwise(Reply::fault(fault.clone()))).unwrap();
            let begun = Instant::now();
            let error = ask(&provider(&server, kind), &question()).await.0.unwrap_err();
            assert_eq!(error.kind.name(), *expected, "{kind:?} {fault:?}: {error}");
            assert!(begun.elapsed() < Duration::from_secs(3), "{kind:?} {fault:?}");
            assert!(!format!("{error} {error:?}").contains(KEY));
        }
    }
}

#[tokio::test]
async fn retry_after_reaches_the_error_and_is_waited_for() {
    let server = ModelServer::start(
        Script::new()
            .when(|_| true, Reply::status(429, Some("1")))
            .once()
            .when(|_| true, Reply::status(500, None))
            .once()
            .otherwise(Reply::text("ok")),
    )
    .unwrap();
    let model = Arc::new(provider(&server, ModelProvider::OpenAi));
    let limits = RetryLimits { base: Duration::from_millis(20), ..RetryLimits::default() };
    let (answer, deltas) = ask(&Resilient::new(model, [], limits), &question()).await;
    let answer = answer.unwrap();
    assert_eq!((answer.text.as_str(), answer.wasted.calls), ("ok", 2));
    assert_eq!(deltas.iter().filter(|delta| **delta == Delta::Restart).count(), 2);
    let times: Vec<_> = server.log().iter().map(|entry| entry.request.at).collect();
    let waited = times[1] - times[0];
    assert!(waited >= Duration::from_secs(1), "came back after {waited:?}");
    assert!(waited < Duration::from_secs(2), "came back after {waited:?}");
}

#[tokio::test]
async fn errors_within_a_stream_keep_their_kind() {
    for (kind, expected) in [("rate_limit_exceeded", "rate_limited"), ("server_error", "overloaded")] {
        let fault = Fault::ErrorEvent { kind: kind.into() };
        let server = ModelServer::start(Script::new().otherwise(Reply::fault(fault))).unwrap();
        for provider_kind in [ModelProvider::OpenAi, ModelProvider::Anthropic] {
            let error = ask(&provider(&server, provider_kind), &question()).await.0.unwrap_err();
            assert_eq!(error.kind.name(), expected, "{error}");
        }
    }
}

#[tokio::test]
async fn servers_that_do_not_stream_are_asked_whole_from_then_on() {
    for kind in [ModelProvider::OpenAi, ModelProvider::Anthropic, ModelProvider::Gemini] {
        let reply = Reply::text("whole").with_fault(Fault::NotStreamed);
        let server = ModelServer::start(Script::new().otherwise(reply)).unwrap();
        let model = provider(&server, kind);
        let (answer, deltas) = ask(&model, &question()).await;
        let answer = answer.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        assert_eq!((answer.text.as_str(), answer.wasted.calls), ("whole", 1), "{kind:?}");
        assert_eq!(deltas, [Delta::Text("whole".into())], "{kind:?}");
        assert_eq!(ask(&model, &question()).await.0.unwrap().wasted.calls, 0, "{kind:?}");
        let streamed: Vec<_> = server.log().iter().map(|entry| entry.request.stream).collect();
        assert_eq!(streamed, [true, false, false], "{kind:?}");
    }
}

#[tokio::test]
async fn a_stream_without_its_end_mark_counts_when_it_says_why_it_stopped() {
    let reply = Reply::text("all there").with_fault(Fault::NoEndMark);
    let server = ModelServer::start(Script::new().otherwise(reply)).unwrap();
    let answer = ask(&provider(&server, ModelProvider::OpenAi), &question()).await.0.unwrap();
    assert_eq!(answer.text, "all there");
}

/// The second half is missing and the connection ends as if nothing was: what is there is not taken for the whole.
#[tokio::test]
async fn half_an_answer_is_a_fault_of_the_transport_and_asked_for_again() {
    let written = json!({"path": "deal.md", "content": "the buyer shall NOT pay more than 500 euros"});
    for kind in ALL {
        for fault in [Fault::HalfThenEnd, Fault::HalfThenMark] {
            let call = || Reply::text("I write it.").and_call("write_file", &written);
            for half in [call(), Reply::text(written.to_string())] {
                let whole = Reply::call("write_file", &written);
                let script = Script::new().when(|_| true, half.with_fault(fault.clone())).once();
                let server = ModelServer::start(script.otherwise(whole)).unwrap();
                let limits = RetryLimits { base: Duration::from_millis(1), ..RetryLimits::default() };
                let model = Resilient::new(Arc::new(provider(&server, kind)), [], limits);
                let answer = ask(&model, &question()).await.0;
                let answer = answer.unwrap_or_else(|error| panic!("{kind:?} {fault:?}: {error}"));
                // OpenAI's mark without a reason: the answer comes, and says that it may be cut.
                if answer.wasted.calls == 0 {
                    assert_eq!((kind, answer.tool_calls.len()), (ModelProvider::OpenAi, 0), "{fault:?}");
                    assert!(answer.finish.may_be_cut(), "{kind:?} {fault:?}: {:?}", answer.finish);
                    continue;
                }
                assert_eq!(answer.wasted.calls, 1, "{kind:?} {fault:?}");
                assert_eq!(answer.tool_calls[0].arguments, written, "{kind:?} {fault:?}");
            }
        }
    }
}

/// The provider says that the answer is whole, and its call ends in the middle of a text.
#[tokio::test]
async fn a_call_that_ends_within_a_text_is_no_answer() {
    let torn = r#"{"path": "deal.md", "content": "the buyer shall NOT pay more than"#;
    for kind in [ModelProvider::OpenAi, ModelProvider::Anthropic] {
        for fault in [None, Some(Fault::NotStreamed)] {
            if kind == ModelProvider::Anthropic && fault.is_some() {
                continue;
            }
            let mut reply = Reply::raw_call("write_file", torn);
            if let Some(fault) = fault.clone() {
                reply = reply.with_fault(fault);
            }
            let server = ModelServer::start(Script::new().otherwise(reply)).unwrap();
            let error = ask(&provider(&server, kind), &question()).await.0.unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::BadAnswer, "{kind:?} {fault:?}: {error}");
            assert!(error.is_transient() && error.message.contains("middle of a tool call"), "{error}");
        }
        // A limit is no fault of the transport: whoever asked hears of it.
        let reply = Reply::raw_call("write_file", torn).with_finish("length");
        let server = ModelServer::start(Script::new().otherwise(reply)).unwrap();
        let answer = ask(&provider(&server, kind), &question()).await.0.unwrap();
        assert_eq!((answer.finish.clone(), answer.tool_calls.len()), (FinishReason::Length, 1), "{kind:?}");
    }
}

/// Nothing is an answer too: whoever asked says what is wrong with it.
#[tokio::test]
async fn an_empty_answer_comes_as_one() {
    for kind in ALL {
        let server = ModelServer::start(Script::new().otherwise(Reply::text(""))).unwrap();
        let answer = ask(&provider(&server, kind), &question()).await.0;
        let answer = answer.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        assert_eq!((answer.text.as_str(), answer.tool_calls.len()), ("", 0), "{kind:?}");
        assert_eq!(server.arrived(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn bad_tool_arguments_are_kept_for_the_parser() {
    let raw = r#"{"query": "x",}"#;
    for kind in [ModelProvider::OpenAi, ModelProvider::Anthropic] {
        let server = ModelServer::start(Script::new().otherwise(Reply::raw_call("search", raw))).unwrap();
        let answer = ask(&provider(&server, kind), &question())
            .await
            .0
            .unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        assert_eq!(answer.tool_calls[0].name, "search", "{kind:?}");
        assert_eq!(answer.tool_calls[0].raw, raw, "{kind:?}");
    }
    // The same from a server that answers whole, where the client library gives the call up.
    let reply = Reply::raw_call("search", raw).with_fault(Fault::NotStreamed);
    let server = ModelServer::start(Script::new().otherwise(reply)).unwrap();
    let answer = ask(&provider(&server, ModelProvider::OpenAi), &question()).await.0.unwrap();
    assert_eq!(answer.tool_calls[0].raw, raw);
    // And such a call must not break the next request.
    let mut request = question();
    let call = answer.tool_calls[0].clone();
    let result = ChatMessage::tool_result(call.id.clone(), "arguments are no JSON");
    let call = ChatMessage::calls("", vec![ToolCall { arguments: json!(raw), ..call }]);
    request.messages.extend([call.into(), result.into()]);
    for kind in ALL {
        let server = ModelServer::start(Script::new().otherwise(Reply::text("sorry"))).unwrap();
        let answer = ask(&provider(&server, kind), &request)
            .await
            .0
            .unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        assert_eq!(answer.text, "sorry");
        assert_eq!(server.violations(), Vec::<String>::new(), "{kind:?}");
    }
}

#[tokio::test]
async fn refusals_and_spent_limits_are_told_apart() {
    for kind in [ModelProvider::OpenAi, ModelProvider::Anthropic, ModelProvider::Gemini] {
        let server =
            ModelServer::start(Script::new().otherwise(Reply::text("").with_finish("content_filter")))
                .unwrap();
        let error = ask(&provider(&server, kind), &question()).await.0.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Refused, "{kind:?}: {error}");
    }
    for kind in [ModelProvider::OpenAi, ModelProvider::Gemini] {
        for fault in [None, Some(Fault::NotStreamed)] {
            let mut reply = Reply::refusing("I will not write that.");
            if let Some(fault) = fault.clone().filter(|_| kind == ModelProvider::OpenAi) {
                reply = reply.with_fault(fault);
            }
            let server = ModelServer::start(Script::new().otherwise(reply)).unwrap();
            let error = ask(&provider(&server, kind), &question()).await.0.unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Refused, "{kind:?} {fault:?}: {error}");
            let said = if kind == ModelProvider::OpenAi { "I will not write that." } else { "SAFETY" };
            assert!(error.message.contains(said), "{error}");
        }
    }
    let server = ModelServer::start(Script::new().otherwise(Reply::text("").with_finish("length"))).unwrap();
    let answer = ask(&provider(&server, ModelProvider::OpenAi), &question()).await.0.unwrap();
    assert_eq!((answer.finish, answer.text.as_str()), (FinishReason::Length, ""));
    let server =
        ModelServer::start(Script::new().otherwise(Reply::text("half").with_finish("length"))).unwrap();
    let answer = ask(&provider(&server, ModelProvider::OpenAi), &question()).await.0.unwrap();
    assert_eq!(answer.finish, FinishReason::Length);
}

#[tokio::test]
async fn an_answer_format_is_asked_for_and_given_up_when_refused() {
    let mut request = question();
    request.schema = Some(json!({"type": "object", "properties": {"a": {"type": "integer"}}}));
    let refuse = Reply::fault(Fault::Status {
        code: 400,
        retry_after: None,
        body: Some(json!({"error": {"message": "unknown field response_format"}}).to_string()),
    });
    let server = ModelServer::start(
        Script::new()
            .when(|request| request.body.get("response_format").is_some(), refuse)
            .otherwise(Reply::json(&json!({"a": 1}))),
    )
    .unwrap();
    let model = provider(&server, ModelProvider::OpenAi);
    let answer = ask(&model, &request).await.0.unwrap();
    assert_eq!((answer.text.as_str(), answer.wasted.calls), (r#"{"a":1}"#, 1));
    assert_eq!(ask(&model, &request).await.0.unwrap().wasted.calls, 0);
}

#[tokio::test]
async fn a_closed_port_is_unreachable_and_says_what_to_check() {
    let server = ModelServer::start(Script::new()).unwrap();
    let gone = target(&server, ModelProvider::OpenAi);
    drop(server);
    let model = Provider::new(gone, limits(), ProviderClient::default()).unwrap();
    let error = model.ask(&question(), &mut ignore_deltas).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("OPENAI_BASE_URL"), "{error}");
}

#[tokio::test]
async fn https_works_without_anyone_having_installed_a_crypto_provider() {
    // A plain-text port: the handshake must fail as a connection, not as a panic.
    let server = ModelServer::start(Script::new()).unwrap();
    let mut target = target(&server, ModelProvider::OpenAi);
    target.endpoint = Some(server.openai_url().replace("http://", "https://").parse().unwrap());
    let model = Provider::new(target, limits(), ProviderClient::default()).unwrap();
    let error = model.ask(&question(), &mut ignore_deltas).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable, "{error}");
}

#[tokio::test]
async fn model_names_that_end_like_an_effort_stay_whole() {
    let server = ModelServer::start(Script::new().otherwise(Reply::text("ok"))).unwrap();
    let mut target = target(&server, ModelProvider::OpenAi);
    target.model = "qwen-max".into();
    let model = Provider::new(target, limits(), ProviderClient::default()).unwrap();
    assert_eq!(model.ask(&question(), &mut ignore_deltas).await.unwrap().text, "ok");
    assert_eq!(server.log()[0].request.model, "qwen-max");
    assert!(server.log()[0].request.body.get("reasoning_effort").is_none());
}
