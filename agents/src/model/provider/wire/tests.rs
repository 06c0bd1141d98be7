//! What is written is what the client library would write, what is read is what it would read, and connections are
//! used again.

mod answers;
mod effort;
mod pictures;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use muster_support::model_server::{ModelServer, Reply, Script};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use self::answers::openai;
use super::super::{CallLimits, Provider, ProviderClient};
use super::{Door, Wishes};
use crate::model::chat::{ChatMessage, ChatModel as _, ChatRequest, ToolCall, ToolDecl, ignore_deltas};
use crate::model::kept::WireForm;
use crate::model::target::{ModelProvider, ModelTarget};

const HOSTILE: &str = "\"quotes\" \\ back\nline\ttab \u{1} \u{2028} é 漢 🦀 </script>";

fn target(provider: ModelProvider, model: &str, endpoint: &str) -> ModelTarget {
    let key = Some(SecretString::from("sk-very-secret"));
    ModelTarget { provider, model: model.into(), endpoint: Some(endpoint.parse().unwrap()), key }
}

/// Both ways to ask a target: by our own means, and by the library.
fn both(target: &ModelTarget) -> [Provider; 2] {
    let limits = CallLimits { call: Duration::from_secs(5), ..CallLimits::default() };
    let client = ProviderClient::default();
    let own = Provider::new(target.clone(), limits, client.clone()).unwrap();
    assert!(own.door.is_some(), "{target:?}");
    let library = Provider { door: None, ..Provider::new(target.clone(), limits, client).unwrap() };
    [own, library]
}

/// All that a request may wish.
const ALL: Wishes = Wishes { formatted: true, chosen: true, reasoned: true, tempered: true };

fn tools() -> Vec<ToolDecl> {
    let parameters = json!({
        "type": "object",
        "properties": {"query": {"type": "string", "description": HOSTILE}, "most": {"type": "integer", "default": 3}},
        "required": ["query"],
    });
    let tool =
        |name: &str, parameters| ToolDecl { name: name.into(), description: HOSTILE.into(), parameters };
    vec![tool("search", parameters), tool("read", json!({"type": "object"}))]
}

fn request(system: &str, messages: impl IntoIterator<Item = ChatMessage>) -> ChatRequest {
    let messages = messages.into_iter().map(Into::into).collect();
    ChatRequest { system: system.into(), messages, ..ChatRequest::default() }
}

/// Everything that a request can hold.
fn requests() -> Vec<ChatRequest> {
    let call = |id: &str, name: &str| ToolCall::new(id, name, json!({"query": HOSTILE, "n": [1, 2.5, null]}));
    let signed = ToolCall { signatures: vec!["mark".into(), "other".into()], ..call("toolu_1", "search") };
    let unreadable = ToolCall { arguments: json!("{torn"), raw: "{torn".into(), ..call("step-3", "read") };
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/b"}},
                        "$defs": {"b": {"type": "object", "properties": {"c": {"type": "string"}}}}});
    let asked = || ChatMessage::user("go on");
    let conversation = [
        ChatMessage::user(HOSTILE),
        ChatMessage::assistant(HOSTILE),
        asked(),
        ChatMessage::calls("", vec![call("step-1", "search")]),
        ChatMessage::tool_result("step-1", HOSTILE),
        ChatMessage::calls(HOSTILE, vec![signed, call("call#read#0", "read")]),
        ChatMessage::tool_result("toolu_1", "{\"found\": true}"),
        ChatMessage::tool_result("call#read#0", ""),
        ChatMessage::calls("again", vec![unreadable, call("", "read")]),
        ChatMessage::tool_result("step-3", "no JSON"),
        ChatMessage::tool_result("", "without an id"),
        asked(),
    ];
    let odd = [
        ChatMessage::user(""),
        ChatMessage::system("late"),
        ChatMessage::assistant(""),
        ChatMessage::tool_result("call#gone#7", "of a call that is gone"),
        ChatMessage::system("later"),
        ChatMessage::tool_result("unheard-of", "of a call that never was"),
        ChatMessage::assistant(""),
        ChatMessage::tool_result("unheard-of", "once more"),
    ];
    let tuned = ChatRequest { temperature: Some(0.7), max_tokens: Some(321), ..request("", [asked()]) };
    let whole = request(HOSTILE, conversation);
    vec![
        request("Be brief.", [asked()]),
        tuned.clone(),
        ChatRequest { tools: tools().into(), ..whole.clone() },
        ChatRequest { schema: Some(schema), ..ChatRequest { tools: tools().into(), ..tuned } },
        whole,
        request("Be brief.", odd.clone()),
        request("", odd),
    ]
}

/// The bodies that both ways send.
async fn bodies(provider: ModelProvider, model: &str, path: &str, request: &ChatRequest) -> Vec<Value> {
    let server = ModelServer::start(Script::new().otherwise(Reply::text("ok"))).unwrap();
    for asker in both(&target(provider, model, &format!("{}{path}", server.url()))) {
        // The server may well refuse it: what was sent counts.
        let _ = asker.ask(request, &mut ignore_deltas).await;
    }
    server.log().iter().map(|entry| entry.request.body.clone()).collect()
}

#[tokio::test]
async fn requests_are_those_of_the_library() {
    for (provider, model, path) in [
        (ModelProvider::OpenAi, "house-model", "/v1/"),
        (ModelProvider::Anthropic, "house-model", "/v1/"),
        (ModelProvider::Gemini, "house-model", "/v1beta/"),
        (ModelProvider::Gemini, "gemini-3-pro", "/v1beta/"),
    ] {
        for (at, request) in requests().iter().enumerate() {
            let bodies = bodies(provider, model, path, request).await;
            let [own, library] = bodies.as_slice() else { panic!("{provider:?} {at}: {bodies:?}") };
            assert_eq!(own, library, "{provider:?} {at}");
        }
    }
}

#[test]
fn which_tool_is_called_is_said_in_the_providers_words() {
    let chosen = ChatRequest {
        tools: tools().into(),
        only: Some("search".into()),
        one_call: true,
        ..request("Be brief.", [ChatMessage::user("go on")])
    };
    let written = |provider, chosen: &ChatRequest, wishes| -> Value {
        let door = Door::of(&target(provider, "house-model", "http://127.0.0.1:9/v1/")).unwrap();
        serde_json::from_slice(&door.body(chosen, wishes)).unwrap()
    };
    let openai = written(ModelProvider::OpenAi, &chosen, ALL);
    assert_eq!(openai["tool_choice"], json!({"type": "function", "function": {"name": "search"}}));
    assert_eq!(openai["parallel_tool_calls"], json!(false));
    let anthropic = written(ModelProvider::Anthropic, &chosen, ALL);
    let only = json!({"type": "tool", "name": "search", "disable_parallel_tool_use": true});
    assert_eq!(anthropic["tool_choice"], only);
    let gemini = written(ModelProvider::Gemini, &chosen, ALL);
    let only = json!({"mode": "ANY", "allowedFunctionNames": ["search"]});
    assert_eq!(gemini["toolConfig"], json!({"functionCallingConfig": only}));
    for provider in [ModelProvider::OpenAi, ModelProvider::Anthropic, ModelProvider::Gemini] {
        let bare = Wishes { chosen: false, ..ALL };
        let free = ChatRequest { only: None, one_call: false, ..chosen.clone() };
        assert_eq!(written(provider, &chosen, bare), written(provider, &free, ALL), "{provider:?}");
        // Without tools there is nothing to choose.
        let no_tools = ChatRequest { tools: Vec::new().into(), ..chosen.clone() };
        let free = ChatRequest { only: None, one_call: false, ..no_tools.clone() };
        assert_eq!(written(provider, &no_tools, ALL), written(provider, &free, ALL), "{provider:?}");
    }
}

#[test]
fn anthropics_own_server_is_told_where_beginnings_end_that_come_again() {
    let door =
        Door::of(&target(ModelProvider::Anthropic, "house-model", "https://api.anthropic.com/v1/")).unwrap();
    let mark = json!({"type": "ephemeral"});
    for request in requests().iter().filter(|request| !request.tools.is_empty()) {
        let body: Value = serde_json::from_slice(&door.body(request, ALL)).unwrap();
        if !request.system.is_empty() {
            assert_eq!(body["system"][0]["cache_control"], mark, "{body}");
        }
        let last = body["messages"].as_array().unwrap().last().unwrap();
        assert_eq!(last["content"].as_array().unwrap().last().unwrap()["cache_control"], mark, "{last}");
        assert!(body.to_string().matches("cache_control").count() <= 2);
    }
    let result = ChatRequest {
        tools: tools().into(),
        ..request(
            "s",
            [
                ChatMessage::user("go"),
                ChatMessage::calls("", vec![ToolCall::new("1", "read", json!({}))]),
                ChatMessage::tool_result("1", "found"),
            ],
        )
    };
    let body: Value = serde_json::from_slice(&door.body(&result, ALL)).unwrap();
    let last = &body["messages"][2]["content"][0];
    assert_eq!(
        (&last["type"], &last["content"], &last["cache_control"]),
        (&json!("tool_result"), &json!("found"), &mark)
    );
    // A question apart from a task is asked once.
    let apart = request("s", [ChatMessage::user("go")]);
    assert!(!String::from_utf8(door.body(&apart, ALL)).unwrap().contains("cache_control"));
}

#[tokio::test]
async fn what_hangs_on_the_models_name_is_as_the_library_has_it() {
    let openai = "gpt-4o-mini gpt-4.1-2025-04-14 gpt-5 gpt-5-high gpt-5.5 gpt-5.6 gpt-5.6-mini gpt-5.10-low gpt-6 \
                  gpt-6.0-2026-01-02 gpt6 gpt-oss-120b chatgpt-6 gpt-0613 gpt o1 o3-mini o4-mini-high qwen-max \
                  deepseek-r1-zero ns::gpt-5.7 openrouter/openai/gpt-6";
    let anthropic = "claude-sonnet-4-5 claude-opus-4-8 claude-opus-4-5-20251101 claude-opus-4-20250514 claude-opus-4-1 \
                     claude-opus-5 claude-opus-3 claude-opus claude-3-opus-20240229 claude-3-5-sonnet-20241022 \
                     claude-3-5-haiku-latest claude-3-7-sonnet-latest claude-haiku-4-5 claude-haiku-5 claude-sonnet-5 \
                     claude-3-haiku-20240307 claude-fable-5 claude-mythos house-model claude-2 ns::claude-opus-4-1 \
                     eu.anthropic.claude-opus-4-1";
    for (provider, models) in [(ModelProvider::OpenAi, openai), (ModelProvider::Anthropic, anthropic)] {
        for model in models.split_whitespace() {
            for most in [None, Some(77)] {
                let asked = ChatRequest { max_tokens: most, ..request("", [ChatMessage::user("x")]) };
                let mut bodies = bodies(provider, model, "/v1/", &asked).await;
                // The library has nothing cached unless it is told of marks.
                for body in &mut bodies {
                    body.as_object_mut().unwrap().remove("prompt_cache_options");
                }
                assert_eq!(bodies.first(), bodies.last(), "{model}");
                assert_eq!(bodies.len(), 2, "{model}");
            }
        }
    }
}

#[test]
fn what_tasks_have_in_common_is_cached_where_it_has_to_be_marked() {
    let body = |model: &str, endpoint: &str, request: &ChatRequest| -> Value {
        let door = Door::of(&target(ModelProvider::OpenAi, model, endpoint)).unwrap();
        serde_json::from_slice(&door.body(request, ALL)).unwrap()
    };
    let (official, house) = ("https://api.openai.com/v1/", "https://models.example.com/v1/");
    let asked = ChatRequest { tools: tools().into(), ..request(HOSTILE, [ChatMessage::user("x")]) };
    let marked = json!([{"type": "text", "text": HOSTILE, "prompt_cache_breakpoint": {"mode": "explicit"}}]);
    for (model, endpoint, system) in [
        ("gpt-5.6", official, &marked),
        ("gpt-6-mini", official, &marked),
        ("gpt-5.5", official, &json!(HOSTILE)),
        ("gpt-4.1", official, &json!(HOSTILE)),
        // Whoever speaks the same protocol need not know of it.
        ("gpt-5.6", house, &json!(HOSTILE)),
    ] {
        let body = body(model, endpoint, &asked);
        assert_eq!(&body["messages"][0]["content"], system, "{model} at {endpoint}");
        assert_eq!(body.get("prompt_cache_options"), None, "{model} at {endpoint}");
    }
    let apart = ChatRequest { tools: Vec::new().into(), ..asked };
    let none = json!({"mode": "explicit"});
    for (model, endpoint, options) in
        [("gpt-5.6", official, Some(&none)), ("gpt-5.5", official, None), ("gpt-5.6", house, None)]
    {
        let body = body(model, endpoint, &apart);
        assert_eq!(body["messages"][0]["content"], HOSTILE, "{model} at {endpoint}");
        assert_eq!(body.get("prompt_cache_options"), options, "{model} at {endpoint}");
    }
}

#[test]
fn marks_go_back_to_the_model_that_made_them_and_to_no_other() {
    let marks = |asked: &str, signer: Option<&str>| -> Value {
        let call = ToolCall {
            signatures: vec!["mark".into()],
            signer: signer.map(str::to_owned),
            ..ToolCall::new("step-1", "search", json!({}))
        };
        let messages = [
            ChatMessage::user("x"),
            ChatMessage::calls("", vec![call]),
            ChatMessage::tool_result("step-1", "found"),
        ];
        let request = request("", messages);
        let door = Door::of(&target(ModelProvider::Gemini, asked, "http://localhost/")).unwrap();
        // What was written for another model is not taken for this one.
        let other = Door::of(&target(ModelProvider::Gemini, "gemini-3-other", "http://localhost/"));
        other.unwrap().body(&request, ALL);
        let body: Value = serde_json::from_slice(&door.body(&request, ALL)).unwrap();
        body["contents"][1]["parts"][0]["thoughtSignature"].clone()
    };
    let none = json!("skip_thought_signature_validator");
    for (asked, signer, expected) in [
        ("gemini-3-pro", Some("gemini/gemini-3-pro"), json!("mark")),
        ("gemini-3-pro", Some("gemini/gemini-3-flash"), none.clone()),
        ("gemini-3-pro", Some("openai/gemini-3-pro"), none),
        ("gemini-2.5-pro", Some("gemini/gemini-2.5-pro"), json!("mark")),
        ("gemini-2.5-pro", Some("gemini/gemini-3-pro"), Value::Null),
    ] {
        assert_eq!(marks(asked, signer), expected, "{asked} after {signer:?}");
    }
}

#[test]
fn names_that_say_how_much_to_think_are_left_to_the_library() {
    let is_own = |provider, model: &str| Door::of(&target(provider, model, "http://localhost/")).is_some();
    for (model, expected) in
        [("house", true), ("house-high", false), ("house-none", false), ("house-zero", false)]
    {
        assert_eq!(is_own(ModelProvider::Anthropic, model), expected, "{model}");
        assert_eq!(is_own(ModelProvider::Gemini, model), expected, "{model}");
        assert!(is_own(ModelProvider::OpenAi, model), "{model}");
        assert!(!is_own(ModelProvider::Ollama, model), "{model}");
    }
}

/// Reads one request: its head and its body.
async fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut text = Vec::new();
    loop {
        if let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&text[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            let length: usize = length.parse().unwrap();
            if text.len() >= end + 4 + length {
                let head = String::from_utf8_lossy(&text[..end]).into_owned();
                return Some((head, String::from_utf8_lossy(&text[end + 4..]).into_owned()));
            }
        }
        if stream.read_buf(&mut text).await.ok()? == 0 {
            return None;
        }
    }
}

/// A server that gives this answer to everybody, and tells the heads of what it was asked.
async fn serve(answer: String) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, heads) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let Some((head, _)) = read_request(&mut stream).await else { continue };
            let _ = tell.send(head);
            let begin = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(format!("{begin}{answer}").as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (address, heads)
}

#[tokio::test]
async fn addresses_and_headers_are_those_of_the_library() {
    for (provider, path) in [
        (ModelProvider::OpenAi, "/v1/"),
        (ModelProvider::OpenAi, "/deployments/house/?api-version=2026-01-01"),
        (ModelProvider::Anthropic, "/v1/"),
        (ModelProvider::Gemini, "/v1beta/"),
    ] {
        let (address, mut heads) = serve(String::new()).await;
        for access in ["", "me:secret@"] {
            let mut seen = Vec::new();
            let target = target(provider, "ns::house-model", &format!("http://{access}{address}{path}"));
            for asker in both(&target) {
                let _ = asker.ask(&requests()[2], &mut ignore_deltas).await;
                let head = heads.recv().await.unwrap();
                let mut lines: Vec<String> = head.lines().map(str::to_owned).collect();
                lines[1..].sort();
                seen.push(lines);
            }
            assert_eq!(seen[0], seen[1], "{provider:?} {path}");
        }
    }
}

#[test]
fn a_later_call_writes_what_is_new_only() {
    for (form, door) in [
        (WireForm::OpenAi, target(ModelProvider::OpenAi, "m", "http://localhost/")),
        (WireForm::Anthropic, target(ModelProvider::Anthropic, "m", "http://localhost/")),
        (WireForm::Gemini, target(ModelProvider::Gemini, "m", "http://localhost/")),
        (WireForm::Gemini3, target(ModelProvider::Gemini, "gemini-3", "http://localhost/")),
    ] {
        let door = Door::of(&door).unwrap();
        let mut request = requests()[2].clone();
        let unwritten = |request: &ChatRequest| {
            let parts = request.messages.iter().map(|message| message.is_written(form));
            let parts = parts.chain([request.tools.is_written(form)]);
            parts.filter(|is_written| !is_written).count()
        };
        assert_eq!(unwritten(&request), request.messages.len() + 1, "{form:?}");
        let first = door.body(&request, ALL);
        assert_eq!(unwritten(&request), 0, "{form:?}");
        let calls = ChatMessage::calls("", vec![ToolCall::new("step-9", "search", json!({}))]);
        request.messages.extend([calls.into(), ChatMessage::tool_result("step-9", "found").into()]);
        // Retries, fallbacks and limits of single calls ask with a copy.
        let copy = request.within(Some(99)).into_owned();
        assert_eq!(unwritten(&copy), 2, "{form:?}");
        let second = door.body(&copy, ALL);
        assert_eq!(unwritten(&request), 0, "{form:?}");
        let same = first.iter().zip(&second).take_while(|(one, other)| one == other).count();
        assert!(same > first.len() - 100, "{form:?}: only {same} of {} bytes stay", first.len());
    }
}

/// The last bytes of an answer come after its end mark; the connection is used again all the same.
#[tokio::test]
async fn connections_are_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/v1/", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let (heard, mut is_heard) = mpsc::unbounded_channel::<()>();
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            while read_request(&mut stream).await.is_some() {
                let body = openai(&[json!({"delta": {"content": "x"}, "finish_reason": "stop"})]);
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                let _ = stream.write_all(format!("{head}{:x}\r\n{body}\r\n", body.len()).as_bytes()).await;
                // The asker has its answer before the end comes.
                is_heard.recv().await;
                let _ = stream.write_all(b"0\r\n\r\n").await;
            }
        }
    });
    let [own, _] = both(&target(ModelProvider::OpenAi, "m", &endpoint));
    for asked in 1..=50 {
        own.ask(&request("", [ChatMessage::user("x")]), &mut ignore_deltas).await.unwrap();
        heard.send(()).unwrap();
        if connections.load(Ordering::Relaxed) < asked {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("every question opened a connection of its own");
}
