//! The same goal with a language model (a scripted one), well-behaved and not.

use std::time::{Duration, Instant};

use muster_support::fleet::{Folder, both};
use muster_support::good_model::weak::{NativeTools, Nature, WeakModel};
use muster_support::good_model::{GoodModel, Temper};
use muster_support::model_server::{Fault, ModelServer, Reply, Script};
use muster_support::workload::{self, MODEL_CALLS, Speech, TOOL_CALLS};
use serde_json::Value;

use super::support::{folder, of_kind, with_model};

/// No run of this module may take longer, whatever the model server does.
const NEVER_A_HANG: Duration = Duration::from_secs(120);

fn ask(folder: &Folder) -> (i32, Value, String) {
    let settings =
        ["--set", "limits.max_width=8", "--set", "agent.calls.call=5s", "--set", "agent.retries.attempts=4"];
    let run =
        ["run", "Work out the eight sums.", "--model", "openai/scripted", "--json", "--deadline", "90s"];
    let began = Instant::now();
    let output = folder.run(&[&settings[..], &run[..]].concat()).unwrap();
    assert!(began.elapsed() < NEVER_A_HANG, "it hung:\n{}", both(&output));
    let summary = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code().unwrap_or(-1), summary, format!("{}\n{}", both(&output), folder.logs()))
}

fn completes_with(speech: Speech) {
    let server = ModelServer::start(workload::script(Duration::ZERO, speech)).unwrap();
    let folder = with_model(&server);
    let (code, summary, said) = ask(&folder);
    assert_eq!((code, &summary["status"]), (0, &Value::from("completed")), "{said}");
    assert_eq!(summary["usage"]["model_calls"], MODEL_CALLS, "{summary}");
    assert_eq!(summary["usage"]["tool_calls"], TOOL_CALLS, "{summary}");
    assert_eq!(server.completed(), MODEL_CALLS, "nothing was asked twice");
    assert!(server.violations().is_empty(), "{:?}", server.violations());
    assert!(summary["report"]["body"].as_str().unwrap().contains("gave 42"), "{summary}");
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    assert!(trace.len() <= 90, "workload W writes at most 90 record entries, not {}", trace.len());
    assert_eq!(of_kind(&trace, "outcome").count(), 18);
}

#[test]
fn native_tool_calls() {
    completes_with(Speech::Native);
}

#[test]
fn plain_text() {
    completes_with(Speech::PlainText);
}

/// Misbehaves on every third call in turn, else answers as W does: the run completes all the same.
fn completes_in_spite_of(fault: impl Fn() -> Reply + Send + Sync + 'static) {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let script = Script::answering(move |request| {
        let n = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        if n % 3 == 1 { fault() } else { workload::answer(request, Speech::Native) }
    });
    let server = ModelServer::start(script).unwrap();
    let (code, summary, said) = ask(&with_model(&server));
    assert_eq!((code, &summary["status"]), (0, &Value::from("completed")), "{said}");
}

#[test]
fn too_many_requests_with_retry_after() {
    completes_in_spite_of(|| Reply::status(429, Some("1")));
}

#[test]
fn internal_errors() {
    completes_in_spite_of(|| Reply::status(500, None));
}

#[test]
fn garbage() {
    completes_in_spite_of(|| Reply::fault(Fault::Garbage));
}

#[test]
fn half_a_body() {
    completes_in_spite_of(workload_half);
}

fn workload_half() -> Reply {
    Reply::text("this answer breaks off in the middle of").with_fault(Fault::HalfBody)
}

/// A server that never gets better: an honest failure that names the model, never a hang.
fn fails_honestly(reply: Reply) {
    let server = ModelServer::start(Script::new().otherwise(reply)).unwrap();
    let (code, summary, said) = ask(&with_model(&server));
    assert_eq!((code, &summary["status"]), (1, &Value::from("failed")), "{said}");
    let reason = summary["reason"].as_str().unwrap_or_default().to_lowercase();
    assert!(reason.contains("model"), "the reason says what failed: {reason}");
}

#[test]
fn a_server_that_never_answers() {
    fails_honestly(Reply::fault(Fault::Hang));
}

#[test]
fn a_server_that_is_always_broken() {
    fails_honestly(Reply::status(500, None));
}

#[test]
fn a_server_that_talks_nonsense_for_ever() {
    fails_honestly(Reply::text("I would rather talk about the weather."));
}

#[test]
fn a_wrong_key_is_said_to_be_one() {
    let server = ModelServer::start(Script::new().otherwise(Reply::status(401, None))).unwrap();
    let (code, summary, said) = ask(&with_model(&server));
    assert_eq!(code, 1, "{said}");
    let reason = summary["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("OPENAI_API_KEY"), "it says what to set: {reason}");
}

/// `muster models test` with these arguments.
fn tried(server: &ModelServer, arguments: &[&str]) -> (Option<i32>, String, Value) {
    let asked = ["models", "test", "openai/house-model"];
    let ended = with_model(server).run(&[&asked[..], arguments].concat()).unwrap();
    let said = both(&ended);
    (ended.status.code(), said, serde_json::from_slice(&ended.stdout).unwrap_or(Value::Null))
}

fn failed(results: &Value) -> Vec<&str> {
    let trials = results["trials"].as_array().unwrap().iter();
    trials.filter(|trial| trial["well"] == false).map(|trial| trial["name"].as_str().unwrap()).collect()
}

#[test]
fn a_good_model_passes_all_trials() {
    let server = ModelServer::start(GoodModel::new(Temper::default()).script()).unwrap();
    let (code, said, _) = tried(&server, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("openai/house-model: 12 of 12 well") && said.contains("calls a tool"), "{said}");
    assert!(!said.contains("  set "), "{said}");
    let (code, said, results) = tried(&server, &["--json"]);
    assert_eq!((code, &results["passed"], &results["of"]), (Some(0), &12.into(), &12.into()), "{said}");
    assert_eq!(failed(&results), Vec::<&str>::new());
    assert!(results["tokens"].as_u64().unwrap() > 1_000, "{results}");
}

#[test]
fn a_weak_model_is_told_by_what_it_does_not_do() {
    const TOOLS: [&str; 4] = [
        "calls a tool",
        "calls tools side by side",
        "calls the tool that it has to",
        "goes on from a tool's result",
    ];
    const LONG: &str = "finds a fact in a long text";
    for tools in [NativeTools::Refused, NativeTools::Ignored] {
        let weak = WeakModel::new(Nature { context: 4_096, tools, ..Nature::default() });
        let server = ModelServer::start(weak.script()).unwrap();
        let (code, said, _) = tried(&server, &[]);
        assert_eq!(code, Some(1), "{said}");
        for setting in ["tools = \"text\"", "parallel = false", "context = 4000"] {
            let setting = format!("  set agent.capabilities.\"house-model\".{setting}");
            assert_eq!(said.matches(&setting).count(), 1, "{setting}: {said}");
        }
        let (code, said, results) = tried(&server, &["--json"]);
        let mut named: Vec<&str> = TOOLS.to_vec();
        named.push(LONG);
        assert_eq!((code, failed(&results)), (Some(1), named), "{said}");
        assert_eq!(results["passed"], 7, "{results}");
    }
}

#[test]
fn a_model_that_can_be_told_is_told_how_much_to_reason() {
    let server = ModelServer::start(GoodModel::new(Temper::default()).script()).unwrap();
    let efforts = |model: &str| -> Vec<Value> {
        let before = server.log().len();
        let folder = with_model(&server);
        let settings =
            ["--set", "agent.reasoning_effort=low", "--set", "agent.temperature=0.5", "--model", model];
        let ended = folder.run(&[&["run", "What is 17.5 % of 2480?"], &settings[..]].concat()).unwrap();
        assert_eq!(ended.status.code(), Some(0), "{}", both(&ended));
        let asked = server.log().split_off(before);
        let told = asked.iter().map(|entry| {
            let of = |name: &str| entry.request.body.get(name).cloned().unwrap_or_default();
            Value::from(vec![of("reasoning_effort"), of("temperature")])
        });
        told.collect()
    };
    let told = efforts("openai/gpt-5");
    assert!(
        !told.is_empty() && told.iter().all(|told| *told == serde_json::json!(["low", null])),
        "{told:?}"
    );
    let told = efforts("openai/gpt-4o");
    assert!(!told.is_empty() && told.iter().all(|told| *told == serde_json::json!([null, 0.5])), "{told:?}");

    let folder = folder();
    let shown =
        |model: &str, set: &[&str]| both(&folder.run(&[&["models", "show", model], set].concat()).unwrap());
    let line = |said: &str| {
        let line = said.lines().find(|line| line.trim_start().starts_with("reasoning effort"));
        line.and_then(|line| line.rsplit("  ").next()).unwrap_or_default().to_owned()
    };
    assert_eq!(line(&shown("openai/gpt-5", &[])), "can be told: agent.reasoning_effort");
    assert_eq!(line(&shown("openai/gpt-5", &["--set", "agent.reasoning_effort=low"])), "low");
    let of_role = ["--set", "agent.reasoning_effort=low", "--set", "agent.reasoning_efforts.planner=high"];
    assert_eq!(line(&shown("openai/gpt-5", &of_role)), "low, planner high");
    assert_eq!(line(&shown("openai/gpt-4o", &["--set", "agent.reasoning_effort=low"])), "cannot be told");
    let json = folder.json(&["models", "show", "anthropic/claude-sonnet-4-5", "--json"]).unwrap();
    assert_eq!(json["capabilities"]["effort"], true, "{json}");
}
