//! A fleet that is up: others join it, watch it, leave it.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use muster_support::fleet::wait_until;

use super::support::{folder, of_kind, write_documents};

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn a_second_researcher_joins_and_takes_tasks_while_a_tap_watches() {
    let folder = folder();
    write_documents(&folder);
    // One slot each: two research tasks at once need both researchers.
    let fleet = folder.up(&["--set", "agent.slots.researcher=1"]).unwrap();
    let folder = fleet.folder();
    let seen = folder.path().join("seen.jsonl");
    let mut tap = folder
        .command(&["tap", "--json"])
        .stdout(std::fs::File::create(&seen).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut second = folder
        .command(&["--set", "agent.slots.researcher=1", "agent", "researcher"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let joined = wait_until("the second researcher is listed", LIMIT, || {
        folder
            .json(&["ps", "--json"])
            .is_ok_and(|listed| listed.to_string().contains(&format!("\"pid\":{}", second.id())))
    });
    let goal = "What limits delegation loops? How does a run survive the death of a worker? Where is the record kept?";
    let summary = folder.json(&["run", goal, "--docs", "docs", "--json"]).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}");

    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    let researchers: BTreeSet<u64> = of_kind(&trace, "started")
        .filter(|entry| entry["role"] == "researcher")
        .map(|entry| entry["event"]["pid"].as_u64().unwrap())
        .collect();
    // Heartbeats come every few seconds, a run may be over sooner.
    let subjects = ["run.", "evt.", "live.", "cmd.", "hb."].map(|subject| format!("\"subject\":\"{subject}"));
    let tapped = || std::fs::read_to_string(&seen).unwrap_or_default();
    let all_seen = wait_until("every kind of subject is in the tap", LIMIT, || {
        let text = tapped();
        subjects.iter().all(|subject| text.contains(subject))
    });
    tap.kill().unwrap();
    tap.wait().unwrap();
    second.kill().unwrap();
    second.wait().unwrap();
    joined.unwrap();
    assert_eq!(researchers.len(), 2, "both researchers did tasks: {researchers:?}");

    all_seen.unwrap();
    let seen = tapped();
    assert!(!seen.contains("unreadable"), "everything was decoded:\n{seen}");
}
