//! A record in four parts: everything goes on as in one.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Stdio};
use std::time::Duration;

use muster_support::bare::broker;
use muster_support::fleet::{Fleet, Folder, both, wait_until};
use muster_support::model_server::ModelServer;
use muster_support::workload::{self, Speech};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::audit::fits;
use super::support::{folder, of_kind, signal, with_model};

const LIMIT: Duration = Duration::from_secs(60);
/// Runs at the same time: enough that several parts have some.
const RUNS: usize = 6;

fn ask(folder: &Folder, n: usize) -> Child {
    let goal = format!("Add up list {n}.");
    let run = ["run", &goal, "--model", "openai/scripted", "--json"];
    folder.command(&run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn trace(folder: &Folder, run: &str) -> Vec<Value> {
    folder.json_lines(&["trace", run, "--json"]).unwrap_or_default()
}

/// The process that a name in the record belongs to.
fn pid_of(fleet: &Fleet, agent: &Value) -> u32 {
    let listed = fleet.folder().json(&["ps", "--json"]).unwrap();
    let found = listed.as_array().unwrap().iter().find(|process| process["agent"] == *agent);
    let pid = found.unwrap_or_else(|| panic!("{agent} is in {listed}"))["pid"].as_u64().unwrap();
    u32::try_from(pid).unwrap()
}

/// How many messages each stream of the record holds.
fn held(url: &str) -> Vec<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let streams = (0..4).map(|part| format!("RUNS_{part}_OF_4"));
    runtime.block_on(broker::messages(url, streams)).unwrap()
}

#[test]
fn runs_in_four_parts_outlive_an_agent_and_an_orchestrator_and_are_done_once() {
    let server = ModelServer::start(workload::script(Duration::from_millis(300), Speech::Native)).unwrap();
    let folder = with_model(&server);
    let scale = ["--scale", "orchestrator=2", "--scale", "worker=3"];
    let fleet = folder.up(&[&["--set", "bus.partitions=4"], &scale[..]].concat()).unwrap();
    let folder = fleet.folder();
    let askers: Vec<Child> = (0..RUNS).map(|n| ask(folder, n)).collect();
    wait_until("leaves are worked on", LIMIT, || {
        of_kind(&trace(folder, "last"), "started").any(|entry| entry["task"] == "1-1")
    })
    .unwrap_or_else(|late| panic!("{late}\n{}", folder.logs()));
    let entries = trace(folder, "last");
    let worker = of_kind(&entries, "started").find(|entry| entry["task"] == "1-1").unwrap();
    signal(pid_of(&fleet, &worker["by"]), Signal::SIGKILL);
    signal(pid_of(&fleet, &of_kind(&entries, "decided").last().unwrap()["by"]), Signal::SIGKILL);
    let mut runs = BTreeSet::new();
    for asker in askers {
        let output = asker.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}\n{}", both(&output), folder.logs());
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        runs.insert(summary["run"].as_str().unwrap().to_owned());
    }
    assert_eq!(runs.len(), RUNS);
    for run in &runs {
        fits(folder, run);
        let entries = trace(folder, run);
        let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
        for outcome in of_kind(&entries, "outcome") {
            *outcomes.entry(format!("{}.{}", outcome["task"], outcome["generation"])).or_default() += 1;
        }
        // The plan is made in two: of eight tasks, four go below another.
        assert_eq!(outcomes.len(), 2 + 8 + 8 + 1, "{outcomes:?}");
        assert!(outcomes.values().all(|count| *count == 1), "{outcomes:?}");
        folder.output(&["replay", run]).unwrap();
    }
    let listed = folder.json(&["runs", "--json"]).unwrap();
    let listed = listed.as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap().to_owned());
    assert_eq!(listed.collect::<BTreeSet<_>>(), runs);
    assert!(folder.output(&["doctor"]).unwrap().contains("whole; the newest 6 runs"));
    let held = held(&fleet.url());
    assert!(held.iter().filter(|messages| **messages > 0).count() > 1, "{held:?}");
}

#[test]
fn a_fleet_whose_settings_say_another_number_of_parts_says_so_and_does_not_begin() {
    let fleet = folder().up(&["--set", "bus.partitions=4"]).unwrap();
    fleet.folder().output(&["run", "What is 6 * 7?", "--model", "offline", "--quiet"]).unwrap();
    fleet.folder().output(&["down"]).unwrap();
    let refused = fleet.folder().run(&["up", "-d"]).unwrap();
    assert!(!refused.status.success());
    // Long lines are broken.
    let said = both(&refused).replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("is in 4 part(s), and `bus.partitions` is 1: set it to 4"), "{said}");
    let read = fleet.folder().output(&["runs"]).unwrap();
    assert!(read.contains("What is 6 * 7?"), "who only reads need not know: {read}");
}
