//! Three servers with three copies of everything: one may die at any moment.

use std::collections::HashSet;
use std::process::Stdio;
use std::time::Duration;

use muster_support::cluster::Cluster;
use muster_support::fleet::{both, wait_until};
use muster_support::model_server::ModelServer;
use muster_support::workload::{MODEL_CALLS, Speech, script};

use serde_json::Value;

use super::support::{of_kind, with_model};

const LIMIT: Duration = Duration::from_secs(60);
/// Offers that may be begun twice: those that are made again while their first copy is on its way.
const MOST_TWICE: usize = 4;

/// Written to the record by now.
fn written(folder: &muster_support::fleet::Folder) -> usize {
    folder.json_lines(&["trace", "last", "--json"]).map_or(0, |trace| trace.len())
}

#[test]
fn a_run_outlives_one_server_of_three() {
    let mut cluster = Cluster::start().unwrap();
    let server = ModelServer::start(script(Duration::from_millis(150), Speech::Native)).unwrap();
    let folder = with_model(&server).with("MUSTER_BUS_URL", cluster.url()).with("MUSTER_BUS_REPLICAS", "3");
    let fleet = folder.up(&["--set", "agent.model=openai/scripted", "--set", "limits.max_width=8"]).unwrap();
    let run = ["run", "Work out the eight sums.", "--json"];
    let asker = fleet.folder().command(&run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("work has begun", LIMIT, || written(fleet.folder()) > 20).unwrap();
    cluster.kill(0).unwrap();
    let output = asker.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}\n{}", both(&output), fleet.folder().logs());
    cluster.revive(0).unwrap();
    // A server that has only just come back refuses to answer, or lacks the end of the record.
    let mut trace = Vec::new();
    wait_until("the whole record can be read", LIMIT, || {
        trace = fleet.folder().json_lines(&["trace", "last", "--json"]).unwrap_or_default();
        trace.iter().any(|entry| entry.to_string().contains("run_completed"))
    })
    .unwrap();
    let outcomes: Vec<(&Value, &Value)> =
        of_kind(&trace, "outcome").map(|entry| (&entry["task"], &entry["generation"])).collect();
    let tasks: HashSet<String> = outcomes.iter().map(|(task, _)| task.to_string()).collect();
    assert_eq!(tasks.len(), 18, "plan, eight leaves, eight reflections, report");
    let generations: HashSet<String> = outcomes.iter().map(|(task, of)| format!("{task} {of}")).collect();
    assert_eq!(generations.len(), outcomes.len(), "one outcome for each offer: {outcomes:?}");
    // An offer that is made again just when its late copy is taken may be begun twice; one of the two is told to stop.
    let most = MODEL_CALLS + MOST_TWICE;
    assert!(server.arrived() <= most, "{} calls, {MODEL_CALLS} needed", server.arrived());
}
