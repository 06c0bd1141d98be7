//! A worker that is killed after it announced a call with lasting effect and before it recorded the end.

use std::process::Stdio;
use std::time::Duration;

use muster_support::fleet::{Fleet, wait_until};
use muster_support::foreign::Stranger;
use muster_support::model_server::{ModelServer, Script};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::support::{of_kind, one_call, with_model};

const LIMIT: Duration = Duration::from_secs(30);
/// How often a worker is killed before the kill comes in time: it has about a millisecond.
const TRIES: usize = 20;

/// Kills the worker as soon as it announces the call; gives the trace of the first run in which that came in time.
fn killed_in_the_call(tool: &'static str) -> (Fleet, ModelServer, Vec<Value>) {
    let server = ModelServer::start(Script::answering(move |request| {
        one_call(request, tool, &json!({ "thought": "Write it.", "path": "note.md", "text": "word\n" }))
    }))
    .unwrap();
    let folder = with_model(&server);
    let settings = ["agent.model=openai/scripted", "fleet.max_restarts=100", "fleet.restart_wait=2ms"];
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let fleet = folder.up(&settings).unwrap();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let announced = stranger.subscribe(&["evt.*.worker.*.*.*.tool"]).unwrap();
    let mut killed = 0;
    for _ in 0..TRIES {
        let worker = || fleet.pid("worker-1").unwrap_or(killed);
        wait_until("the worker is there", LIMIT, || worker() != killed).unwrap();
        killed = worker();
        let pid = Pid::from_raw(i32::try_from(killed).unwrap());
        let run = ["run", "Note down the word.", "--json", "--deadline", "60s"];
        let asker = fleet.folder().command(&run).stdout(Stdio::piped()).spawn().unwrap();
        announced.next(LIMIT).unwrap();
        kill(pid, Signal::SIGKILL).unwrap();
        let output = asker.wait_with_output().unwrap();
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        assert_eq!(summary["status"], "completed", "{summary}\n{}", fleet.folder().logs());
        let trace = fleet.folder().json_lines(&["trace", "last", "--json"]).unwrap();
        let mut of_task = trace.iter().filter(|entry| entry["task"] == "1");
        let is = |entry: Option<&Value>, kind: &str| entry.is_some_and(|entry| entry["kind"] == kind);
        let after = of_task.by_ref().skip_while(|entry| entry["kind"] != "tool").nth(1);
        if is(after, "started") {
            return (fleet, server, trace);
        }
    }
    panic!("no kill came in time");
}

fn first_step(trace: &[Value]) -> String {
    let step = of_kind(trace, "step").find(|entry| entry["task"] == "1").unwrap();
    step["event"]["observation"]["content"].as_str().unwrap().to_owned()
}

#[test]
fn the_model_is_told_that_nobody_knows() {
    let (_fleet, server, trace) = killed_in_the_call("workspace_append");
    let told = first_step(&trace);
    assert!(told.contains("not known"), "{told}");
    let asked = server.log().into_iter().filter(|entry| entry.request.holds("look before you do it again"));
    assert!(asked.count() > 0, "it stands in the next question");
}

#[test]
fn a_file_that_is_replaced_as_a_whole_is_written_again() {
    let (_fleet, server, trace) = killed_in_the_call("workspace_write");
    assert_eq!(first_step(&trace), "Wrote 5 bytes to note.md.");
    assert_eq!(of_kind(&trace, "tool").count(), 1, "it was announced once");
    assert!(server.violations().is_empty(), "{:?}", server.violations());
}
