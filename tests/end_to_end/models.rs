//! The same goal with a language model (a scripted one), well-behaved and not.

use std::time::{Duration, Instant};

use muster_support::fleet::{Folder, both};
use muster_support::model_server::{Fault, ModelServer, Reply, Script};
use muster_support::workload::{self, MODEL_CALLS, Speech, TOOL_CALLS};
use serde_json::Value;

use super::support::{folder, of_kind};

/// No run of this module may take longer, whatever the model server does.
const NEVER_A_HANG: Duration = Duration::from_secs(120);

fn with_model(server: &ModelServer) -> Folder {
    folder()
        .with("OPENAI_API_KEY", "test-key-for-the-scripted-server")
        .with("OPENAI_BASE_URL", server.openai_url())
}

fn ask(folder: &Folder) -> (i32, Value, String) {
    let settings =
        ["--set", "limits.max_width=8", "--set", "agent.calls.call=5s", "--set", "agent.retries.total=20s"];
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
