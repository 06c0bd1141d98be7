//! Orchestrators come, die and leave while runs go on; what is on record can be read whoever lives.

#![allow(clippy::print_stdout)]

use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use muster_support::fleet::{Fleet, Folder, both, wait_until};
use muster_support::model_server::ModelServer;
use muster_support::process::is_alive;
use muster_support::workload::{self, Speech};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::audit::fits;
use super::support::{of_kind, signal, with_model};

const LIMIT: Duration = Duration::from_secs(60);
/// Generous: the machine may be busy with other tests. What was measured is printed.
const GOES_ON_WITHIN: u64 = 10_000;
/// Less than the registry takes to forget the dead, and their queue to give their tasks out again.
const AFTER_EVERYTHING: Duration = Duration::from_secs(12);

fn now() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// The model of the yardstick workload, slowly enough to be disturbed.
fn model(millis: u64) -> ModelServer {
    let script = workload::script(Duration::from_millis(millis), Speech::Native).keeping(10_000);
    ModelServer::start(script).unwrap()
}

fn ask(folder: &Folder) -> Child {
    let run = ["run", "Add up.", "--model", "openai/scripted", "--json"];
    folder.command(&run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn completes(asker: Child, folder: &Folder) -> Value {
    let output = asker.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}\n{}", both(&output), folder.logs());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn trace(folder: &Folder, run: &str) -> Vec<Value> {
    folder.json_lines(&["trace", run, "--json"]).unwrap_or_default()
}

/// Waits until a plan was made and leaves are being worked on.
fn wait_until_busy(folder: &Folder) {
    wait_until("leaves are worked on", LIMIT, || {
        of_kind(&trace(folder, "last"), "started").any(|entry| entry["task"] == "1-1")
    })
    .unwrap_or_else(|late| {
        panic!("{late}\n{}\n{}", folder.output(&["trace", "last"]).unwrap_or_default(), folder.logs())
    });
}

/// Who decided last, and the process.
pub(super) fn owner(folder: &Folder, run: &str) -> (String, u32) {
    let by = of_kind(&trace(folder, run), "decided").last().unwrap()["by"].as_str().unwrap().to_owned();
    let listed = folder.json(&["ps", "--json"]).unwrap();
    let found = listed.as_array().unwrap().iter().find(|process| process["agent"] == by.as_str());
    let pid = found.unwrap_or_else(|| panic!("{by} is in {listed}"))["pid"].as_u64().unwrap();
    (by, u32::try_from(pid).unwrap())
}

/// How long after `since` somebody else than `before` decided, in milliseconds.
fn taken_over_after(folder: &Folder, run: &str, before: &str, since: u64) -> u64 {
    let entries = trace(folder, run);
    let first = of_kind(&entries, "decided").find(|entry| entry["by"] != before);
    let first = first.unwrap_or_else(|| panic!("another than {before} decided"));
    first["at"].as_u64().unwrap().saturating_sub(since)
}

/// Every call was answered once, and none that was answered was made a second time.
fn every_call_was_made_once(server: &ModelServer) {
    assert_eq!(server.arrived(), server.completed(), "what was asked was waited for");
    no_finished_call_was_repeated(server);
}

/// No call that was answered was made a second time.
fn no_finished_call_was_repeated(server: &ModelServer) {
    let log = server.log();
    let completed: Vec<_> = log.iter().filter(|entry| entry.completed.is_some()).collect();
    for (at, entry) in completed.iter().enumerate() {
        let twin = completed[..at].iter().find(|other| other.request.body == entry.request.body);
        assert!(twin.is_none(), "a call was made again that had been answered: {:?}", entry.request.body);
    }
}

fn two_orchestrators(server: &ModelServer) -> Fleet {
    let fleet = with_model(server).up(&["--scale", "orchestrator=2"]).unwrap();
    wait_until("two orchestrators are there", LIMIT, || {
        let listed = fleet.folder().json(&["ps", "--json"]).unwrap_or_default();
        let is_one = |process: &&Value| process["role"] == "orchestrator";
        listed.as_array().is_some_and(|all| all.iter().filter(is_one).count() == 2)
    })
    .unwrap();
    fleet
}

/// Ends the orchestrator of a run with this signal; the other one completes the run.
fn other_orchestrator_completes_after(end: Signal) {
    let server = model(400);
    let fleet = two_orchestrators(&server);
    let asker = ask(fleet.folder());
    wait_until_busy(fleet.folder());
    let (name, pid) = owner(fleet.folder(), "last");
    let ended = now();
    signal(pid, end);
    let summary = completes(asker, fleet.folder());
    let after = taken_over_after(fleet.folder(), summary["run"].as_str().unwrap(), &name, ended);
    println!("{end} to one of two orchestrators: the first decision of the other came {after} ms later");
    assert!(after <= GOES_ON_WITHIN, "{after} ms");
    fits(fleet.folder(), summary["run"].as_str().unwrap());
    every_call_was_made_once(&server);
}

#[test]
fn run_completes_after_its_orchestrator_is_killed() {
    other_orchestrator_completes_after(Signal::SIGKILL);
}

#[test]
fn run_completes_after_its_orchestrator_is_terminated() {
    other_orchestrator_completes_after(Signal::SIGTERM);
}

#[test]
fn with_no_orchestrator_left_runs_can_be_read_and_the_next_one_finishes_them() {
    let server = model(300);
    let fleet = with_model(&server).up(&["--set", "fleet.max_restarts=0"]).unwrap();
    let asker = ask(fleet.folder());
    wait_until_busy(fleet.folder());
    signal(fleet.pid("orchestrator-1").unwrap(), Signal::SIGKILL);
    wait_until("the orchestrator is given up", LIMIT, || fleet.folder().logs().contains("given up")).unwrap();
    let shown = fleet.folder().json(&["show", "last", "--json"]).unwrap();
    assert_eq!(shown["status"], "processing");
    let mut next = fleet.folder().command(&["orchestrator"]).spawn().unwrap();
    let started = Instant::now();
    completes(asker, fleet.folder());
    println!("the next orchestrator finished the run {:?} after its start", started.elapsed());
    signal(next.id(), Signal::SIGTERM);
    assert!(next.wait().unwrap().success(), "it ends in good order");
    every_call_was_made_once(&server);
}

#[test]
fn a_run_outlives_the_death_of_everything() {
    let server = model(300);
    let fleet = with_model(&server).up(&[]).unwrap();
    let mut asker = ask(fleet.folder());
    wait_until_busy(fleet.folder());
    let pids = fleet.pids();
    for (name, pid) in &pids {
        // Those that go with the supervisor may be gone already.
        let killed = kill(Pid::from_raw(i32::try_from(*pid).unwrap()), Signal::SIGKILL);
        println!("kill -9 {name}: {killed:?}");
    }
    asker.kill().unwrap();
    asker.wait().unwrap();
    // A process that was killed takes a moment to end.
    wait_until("all have ended", LIMIT, || !pids.iter().any(|(_, pid)| is_alive(*pid))).unwrap();
    // Nobody is there: the record is read from its files.
    let shown = fleet.folder().json(&["show", "last", "--json"]).unwrap();
    assert_eq!(shown["status"], "processing");
    let run = shown["id"].as_str().unwrap();
    assert!(!trace(fleet.folder(), run).is_empty());
    assert_eq!(fleet.folder().json(&["runs", "--json"]).unwrap().as_array().unwrap().len(), 1);
    fleet.folder().output(&["up", "--detach"]).unwrap();
    let up = Instant::now();
    // Nobody told of the deaths: the orchestrator finds by the roll that the registry names those who are not there.
    wait_until("the run has ended", LIMIT * 2, || {
        fleet.folder().json(&["show", run, "--json"]).is_ok_and(|shown| shown["ended_at"].is_u64())
    })
    .unwrap();
    let took = up.elapsed();
    println!("the run ended {took:?} after the fleet was up again");
    assert!(took < AFTER_EVERYTHING, "{took:?}");
    let shown = fleet.folder().json(&["show", run, "--json"]).unwrap();
    assert_eq!(shown["status"], "completed", "{shown}");
    fits(fleet.folder(), run);
    no_finished_call_was_repeated(&server);
}

#[test]
fn a_stream_goes_on_after_the_server_was_killed_with_no_gap_and_no_double() {
    let server = model(300);
    let fleet = with_model(&server).up(&[]).unwrap();
    let asker = ask(fleet.folder());
    wait_until_busy(fleet.folder());
    let follow = ["trace", "last", "--follow", "--json"];
    let heard = fleet.folder().path().join("followed.jsonl");
    let mut follower =
        fleet.folder().command(&follow).stdout(std::fs::File::create(&heard).unwrap()).spawn().unwrap();
    let has_begun = || std::fs::metadata(&heard).is_ok_and(|file| file.len() > 0);
    wait_until("the record is followed", LIMIT, has_begun).unwrap();
    let before = trace(fleet.folder(), "last").len();
    signal(fleet.pid("nats-server").unwrap(), Signal::SIGKILL);
    let summary = completes(asker, fleet.folder());
    assert!(follower.wait().unwrap().success());
    let text = std::fs::read_to_string(&heard).unwrap();
    let followed: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let whole = trace(fleet.folder(), summary["run"].as_str().unwrap());
    assert!(whole.len() > before, "it was killed in the middle");
    let seqs = |entries: &[Value]| entries.iter().map(|entry| entry["seq"].as_u64()).collect::<Vec<_>>();
    // The follower leaves with the end of the run; agents may write a last word after that.
    assert_eq!(seqs(&followed), seqs(&whole)[..followed.len()]);
    let ends = |entry: &Value| entry["event"]["events"].to_string().contains("run_completed");
    assert!(followed.last().is_some_and(ends), "it followed to the end");
}

#[test]
fn an_agent_that_is_told_to_end_finishes_its_calls_and_another_goes_on_at_the_next_step() {
    let server = model(700);
    let fleet = with_model(&server).up(&["--scale", "worker=2"]).unwrap();
    let asker = ask(fleet.folder());
    wait_until_busy(fleet.folder());
    let (arrived, begun) = (server.arrived(), Instant::now());
    wait_until("a call is under way", LIMIT, || server.arrived() > server.completed()).unwrap();
    let leaving = fleet.pid("worker-1").unwrap();
    signal(leaving, Signal::SIGTERM);
    wait_until("it has gone", LIMIT, || fleet.pid("worker-1").is_none_or(|pid| pid != leaving)).unwrap();
    println!("it had gone {:?} after it was told to, {arrived} calls were made before", begun.elapsed());
    let summary = completes(asker, fleet.folder());
    let entries = trace(fleet.folder(), summary["run"].as_str().unwrap());
    let released: Vec<&Value> = of_kind(&entries, "released").collect();
    println!("{} tasks were handed over", released.len());
    for handed_over in released {
        let of_task = |entry: &&Value| entry["task"] == handed_over["task"] && entry["by"].is_string();
        let after =
            entries.iter().filter(of_task).find(|entry| entry["seq"].as_u64() > handed_over["seq"].as_u64());
        let after = after.unwrap_or_else(|| panic!("nobody went on with {}", handed_over["task"]));
        assert_eq!(after["kind"], "started");
        assert_ne!(after["by"], handed_over["by"]);
    }
    every_call_was_made_once(&server);
}

#[test]
fn a_run_is_replayed_and_forked_from_an_entry_in_its_middle() {
    let server = model(50);
    let fleet = with_model(&server).up(&[]).unwrap();
    let folder = fleet.folder();
    let summary = completes(ask(folder), folder);
    let run = summary["run"].as_str().unwrap();
    let replayed = folder.json(&["replay", run, "--json"]).unwrap();
    assert_eq!(replayed["same"], true, "{replayed}");
    assert_eq!(replayed["answers"].as_u64().map(usize::try_from), Some(Ok(server.completed())), "{replayed}");
    println!("{}", folder.output(&["replay", run]).unwrap().trim());

    let entries = trace(folder, run);
    let ended = |entry: &&Value| entry["task"].as_str().is_some_and(|task| task.starts_with("reflect-"));
    let middle = of_kind(&entries, "started").find(ended).unwrap()["seq"].to_string();
    let asked = server.completed();
    let fork = ["fork", run, "--at", &middle, "--model", "openai/another", "--json"];
    let forked = folder.json(&fork).unwrap();
    assert_eq!(forked["status"], "completed");
    let again = server.completed() - asked;
    println!("forked at {middle} of {}: {again} model calls of {asked}", entries.len());
    assert!(again < asked, "what had ended is kept");
    assert!(server.log()[asked..].iter().all(|entry| entry.request.model == "another"));
    assert_eq!(trace(folder, run), entries, "the other run is left as it was");
    let shown = folder.output(&["show", forked["run"].as_str().unwrap()]).unwrap();
    assert!(shown.contains(&format!("from {run} at entry {middle}")), "{shown}");
    assert_eq!(folder.json(&["replay", "last", "--json"]).unwrap()["same"], true);
    // Each has a chain of its own, and that of the fork names where it left the other.
    let (chained, forks) = (fits(folder, run), fits(folder, "last"));
    assert_ne!(chained["head"], forks["head"]);
    let from = of_kind(&trace(folder, "last"), "decided").find_map(|entry| {
        let events = entry["event"]["events"].as_array()?.iter();
        events.filter(|event| event["event"] == "run_forked").find_map(|event| {
            let from = &event["from"];
            Some((from["link"].as_str()?.len(), from["at"].to_string()))
        })
    });
    assert_eq!(from, Some((64, middle.clone())), "{:?}", trace(folder, "last")[0]);

    let last = entries.last().unwrap()["seq"].to_string();
    let late = folder.run(&["fork", run, "--at", &last]).unwrap();
    assert_eq!(late.status.code(), Some(2), "{}", both(&late));
    assert!(both(&late).contains("had ended"), "{}", both(&late));
}
