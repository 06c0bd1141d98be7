//! Commands that wait for a fleet: it stays while it is used, they find it again where it comes up, and what is lacking is
//! told.

use std::io::Read;
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use muster_support::fleet::{Folder, both, wait_until};
use muster_support::model_server::{Fault, ModelServer, Reply, Script};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::support::{folder, signal, with_model, write_documents};

const LIMIT: Duration = Duration::from_secs(60);

/// Answers nothing: a run with it goes on until somebody ends it.
fn silent() -> ModelServer {
    ModelServer::start(Script::new().otherwise(Reply::fault(Fault::Hang))).unwrap()
}

fn with(server: &ModelServer) -> Folder {
    with_model(server)
}

fn asking(folder: &Folder, more: &[&str]) -> Child {
    let run = ["run", "Wait for ever.", "--model", "openai/silent", "--json"];
    let mut command = folder.command(&[&run, more].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn url(folder: &Folder) -> String {
    let state = folder.state().unwrap_or_default();
    state["url"].as_str().unwrap_or_default().to_owned()
}

/// Reads what a process says until it has said this.
fn says(child: &mut Child, words: &str) -> String {
    let mut errors = child.stderr.take().unwrap();
    let said = read_until(&mut errors, words);
    child.stderr = Some(errors);
    said
}

/// Reads until these words came.
fn read_until(source: &mut impl Read, words: &str) -> String {
    let mut said = String::new();
    let began = Instant::now();
    let mut buffer = [0; 1024];
    while !said.contains(words) && began.elapsed() < LIMIT {
        match source.read(&mut buffer).unwrap() {
            0 => break,
            bytes => said.push_str(&String::from_utf8_lossy(&buffer[..bytes])),
        }
    }
    assert!(said.contains(words), "{words} in: {said}");
    said
}

#[test]
fn two_runs_at_the_same_moment_bring_up_one_fleet_that_ends_after_both() {
    let folder = folder();
    write_documents(&folder);
    let run = ["run", "How deep may delegation go?", "--docs", "docs", "--json"];
    let ask = || folder.command(&run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for output in [ask(), ask(), ask()].map(|child| child.wait_with_output().unwrap()) {
        assert_eq!(output.status.code(), Some(0), "{}\n{}", both(&output), folder.logs());
    }
    wait_until("the fleet has ended", LIMIT, || folder.state().is_none()).unwrap();
    assert_eq!(folder.json(&["runs", "--json"]).unwrap().as_array().map(Vec::len), Some(3));
}

#[test]
fn a_fleet_that_was_brought_up_for_a_run_stays_while_another_uses_it() {
    let server = silent();
    let folder = with(&server);
    let first = asking(&folder, &["--deadline", "3s"]);
    wait_until("the fleet is up", LIMIT, || server.arrived() > 0).unwrap();
    let second = asking(&folder, &["--deadline", "1h"]);
    wait_until("the second run is asked too", LIMIT, || server.arrived() > 1).unwrap();
    let ended = first.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(4), "{}", both(&ended));
    assert!(both(&ended).contains("deadline") || both(&ended).contains("time of 3 s"), "{}", both(&ended));
    folder.output(&["cancel", "last", "--reason", "enough"]).unwrap();
    let ended = second.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(4), "{}", both(&ended));
    assert!(both(&ended).contains("enough"), "{}", both(&ended));
    wait_until("the fleet has ended", LIMIT, || folder.state().is_none()).unwrap();
}

#[test]
fn a_fleet_ends_with_a_run_that_was_killed() {
    let server = silent();
    let folder = with(&server);
    let mut first = asking(&folder, &[]);
    wait_until("the fleet is up", LIMIT, || server.arrived() > 0).unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    wait_until("the fleet has ended", LIMIT, || folder.state().is_none()).unwrap();
}

#[test]
fn a_local_fleet_keeps_its_port() {
    let folder = folder();
    folder.output(&["up", "--detach"]).unwrap();
    let before = url(&folder);
    folder.output(&["down"]).unwrap();
    folder.output(&["up", "--detach"]).unwrap();
    let after = url(&folder);
    folder.output(&["down"]).unwrap();
    assert!(!before.is_empty());
    assert_eq!(before, after);
}

#[test]
fn who_waits_finds_the_fleet_again_at_another_port() {
    let server = silent();
    let folder = with(&server);
    folder.output(&["up", "--detach"]).unwrap();
    let before = url(&folder);
    let mut asker = asking(&folder, &["--set", "ask.lost_limit=60s"]);
    wait_until("the run is under way", LIMIT, || server.arrived() > 0).unwrap();
    let mut follower = folder
        .command(&["trace", "last", "--follow", "--json", "--set", "ask.lost_limit=60s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Only who has found the fleet can lose it.
    let shown = read_until(follower.stdout.as_mut().unwrap(), "\"seq\":");
    let mut joined = folder.command(&["agent", "worker"]).stderr(Stdio::piped()).spawn().unwrap();
    says(&mut joined, "joining the fleet");
    let supervisor = folder.state().unwrap()["supervisor"]["pid"].as_u64().unwrap();
    signal(u32::try_from(supervisor).unwrap(), Signal::SIGKILL);
    // Somebody else takes its port.
    let port = before.rsplit(':').next().unwrap().to_owned();
    let mut taken = None;
    wait_until("the port is free", LIMIT, || {
        taken = TcpListener::bind(format!("127.0.0.1:{port}")).ok();
        taken.is_some()
    })
    .unwrap();
    says(&mut asker, "the fleet is gone");
    folder.output(&["up", "--detach"]).unwrap();
    assert_ne!(url(&folder), before);
    says(&mut asker, "up again");
    says(&mut joined, "joining it there");
    wait_until("the worker that was started by hand is listed", LIMIT, || {
        let listed = folder.json(&["ps", "--json"]).unwrap_or_default();
        listed.to_string().contains(&format!("\"pid\":{}", joined.id()))
    })
    .unwrap();
    folder.output(&["cancel", "last", "--reason", "seen enough"]).unwrap();
    let (asker, follower) = (asker.wait_with_output().unwrap(), shown + &follower_output(&mut follower));
    joined.kill().unwrap();
    joined.wait().unwrap();
    folder.output(&["down"]).unwrap();
    assert_eq!(asker.status.code(), Some(4), "{}", both(&asker));
    assert!(both(&asker).contains("seen enough"), "{}", both(&asker));
    assert!(follower.contains("seen enough"), "{follower}");
    let seqs: Vec<&str> = follower.lines().filter_map(|line| line.split("\"seq\":").nth(1)).collect();
    let mut once = seqs.clone();
    once.dedup();
    assert_eq!(seqs, once, "no entry comes twice");
}

fn follower_output(follower: &mut Child) -> String {
    let mut text = String::new();
    follower.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    follower.wait().unwrap();
    text
}

#[test]
fn who_waits_for_a_fleet_that_is_gone_says_so_and_ends() {
    let server = silent();
    let folder = with(&server);
    folder.output(&["up", "--detach"]).unwrap();
    let asker = asking(&folder, &["--set", "ask.lost_limit=1s"]);
    wait_until("the run is under way", LIMIT, || server.arrived() > 0).unwrap();
    let mut tap = folder.command(&["tap", "--set", "ask.lost_limit=1s"]);
    let mut tap = tap.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    says(&mut tap, "watching");
    folder.output(&["down"]).unwrap();
    let down = Instant::now();
    for output in [asker.wait_with_output().unwrap(), tap.wait_with_output().unwrap()] {
        assert_eq!(output.status.code(), Some(3), "{}", both(&output));
        assert!(both(&output).contains("muster up"), "{}", both(&output));
    }
    assert!(down.elapsed() < Duration::from_secs(20), "{:?}", down.elapsed());
}

#[test]
fn a_fleet_in_the_background_is_up_when_everybody_has_joined() {
    let folder = folder();
    folder.output(&["up", "--detach", "--scale", "worker=3"]).unwrap();
    let listed = folder.json(&["ps", "--json"]);
    folder.output(&["down"]).unwrap();
    assert_eq!(listed.unwrap().as_array().map(Vec::len), Some(1 + 6 + 2));
}

#[test]
fn a_role_that_is_missing_is_told_within_seconds_and_the_run_goes_on_when_it_comes() {
    let folder = folder();
    write_documents(&folder);
    folder.output(&["up", "--detach", "--scale", "writer=0"]).unwrap();
    let run = ["run", "How deep may delegation go?", "--docs", "docs"];
    let mut asker = folder.command(&run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    says(&mut asker, "muster agent writer");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let told = |arguments: &[&str]| folder.output(arguments).unwrap();
    for arguments in [&["ps"][..], &["show", "last"], &["doctor"]] {
        let text = told(arguments);
        assert!(text.contains("writer") && text.contains("muster agent writer"), "{arguments:?}: {text}");
    }
    let mut writer = folder.command(&["agent", "writer"]).stderr(Stdio::null()).spawn().unwrap();
    let output = asker.wait_with_output().unwrap();
    writer.kill().unwrap();
    writer.wait().unwrap();
    folder.output(&["down"]).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}\n{}", both(&output), folder.logs());
}

#[test]
fn a_goal_asked_again_with_its_id_is_one_run_and_another_goal_is_refused() {
    let folder = folder();
    write_documents(&folder);
    let fleet = folder.up(&[]).unwrap();
    // It sorts behind ids of any clock; the order of runs is that of the event log.
    let id = "f47ac10b-58cc-4372-a567-0e02b2c3d479";
    let run = ["run", "How deep may delegation go?", "--docs", "docs", "--json", "--run-id", id];
    let first = fleet.folder().json(&run).unwrap();
    let second = fleet.folder().json(&run).unwrap();
    assert_eq!(first["run"], second["run"]);
    assert_eq!(first["ended_at"], second["ended_at"]);
    for (other, what) in [
        (&["run", "How deep is the sea?", "--docs", "docs"][..], "another goal"),
        (&["run", "How deep may delegation go?"], "belongs to this goal"),
    ] {
        let output = fleet.folder().run(&[other, &["--json", "--run-id", id]].concat()).unwrap();
        let said = both(&output);
        assert!(output.status.code() == Some(2) && said.contains(what), "{other:?}: {said}");
    }
    let newer = fleet.folder().json(&["run", "What is 2 plus 2?", "--json"]).unwrap();
    let runs = fleet.folder().json(&["runs", "--json"]).unwrap();
    let ids: Vec<&Value> = runs.as_array().unwrap().iter().map(|run| &run["run"]).collect();
    assert_eq!(ids, [&newer["run"], &first["run"]]);
    assert_eq!(fleet.folder().json(&["show", "last", "--json"]).unwrap()["id"], newer["run"]);
}
