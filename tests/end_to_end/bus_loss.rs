//! An agent that loses the bus in the middle of a model call finishes the call and writes what it has on return.

use std::process::{Child, Stdio};
use std::time::Duration;

use muster_support::fleet::{Fleet, both, wait_until};
use muster_support::model_server::ModelServer;
use muster_support::workload::{self, MODEL_CALLS, Speech};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::support::with_model;

const LIMIT: Duration = Duration::from_secs(60);

/// Long enough for the server to be away while calls are under way.
const CALL: Duration = Duration::from_millis(700);

/// A fleet that works on a run whose leaves are under way.
fn at_work(server: &ModelServer) -> (Fleet, Child) {
    let folder = with_model(server);
    let fleet = folder.up(&["--set", "limits.max_width=8"]).unwrap();
    let run = ["run", "Work out the eight sums.", "--model", "openai/scripted", "--json"];
    let mut command = fleet.folder().command(&run);
    let asker = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.wait_until(LIMIT, |server| server.arrived() > 1 + 8).unwrap();
    (fleet, asker)
}

fn model() -> ModelServer {
    ModelServer::start(workload::script(CALL, Speech::Native).keeping(200)).unwrap()
}

fn signal(fleet: &Fleet, signal: Signal) -> u32 {
    let pid = fleet.pid("nats-server").unwrap();
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
    pid
}

fn completes_without_a_call_repeated(fleet: &Fleet, asker: Child, server: &ModelServer) {
    let output = asker.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}\n{}", both(&output), fleet.folder().logs());
    let mut asked: Vec<String> =
        server.log().iter().map(|entry| entry.request.body["messages"].to_string()).collect();
    asked.sort_unstable();
    let twice: Vec<_> = asked.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| &pair[0]).collect();
    assert!(twice.is_empty(), "asked twice: {twice:?}\n{}", fleet.folder().logs());
    assert_eq!(server.arrived(), MODEL_CALLS, "no call was made twice");
    assert_eq!(server.completed(), MODEL_CALLS, "every call was finished");
}

#[test]
fn a_killed_server_costs_no_model_call() {
    let server = model();
    let (fleet, asker) = at_work(&server);
    let killed = signal(&fleet, Signal::SIGKILL);
    wait_until("the server was started again", LIMIT, || {
        fleet.pid("nats-server").is_some_and(|pid| pid != killed)
    })
    .unwrap();
    completes_without_a_call_repeated(&fleet, asker, &server);
}

#[test]
fn a_frozen_server_costs_no_model_call() {
    let server = model();
    let (fleet, asker) = at_work(&server);
    let before = server.completed();
    signal(&fleet, Signal::SIGSTOP);
    // The calls under way end, and nothing can be written of them.
    server
        .wait_until(LIMIT, |server| {
            server.completed() >= before + 8 || server.completed() == server.arrived()
        })
        .unwrap();
    signal(&fleet, Signal::SIGCONT);
    completes_without_a_call_repeated(&fleet, asker, &server);
}
