//! Specialists that users define by a file: joined by hand, dropped into a folder, changed, broken, taken away.

use std::time::Duration;

use muster_support::fleet::{both, wait_until};

use super::support::{folder, of_kind, write_documents};

const LIMIT: Duration = Duration::from_secs(30);

const CHECKER: &str = "\
---
role: loop_watcher
description: Finds out what limits loops.
capabilities: [delegation loops]
tools: [\"corpus.*\"]
contract:
  output:
    type: object
    required: [summary, findings]
    properties:
      summary: {type: string, minLength: 1}
      findings: {type: array, minItems: 1}
limits:
  slots: 1
---
Be exact.
";

#[test]
fn a_file_dropped_into_the_folder_is_used_by_the_next_run_and_followed() {
    let folder = folder();
    write_documents(&folder);
    let fleet = folder.up(&[]).unwrap();
    let folder = fleet.folder();
    let listed = |text: &str| folder.output(&["ps"]).is_ok_and(|table| table.contains(text));
    assert!(!listed("loop_watcher"));

    let file = folder.write("agents/watcher.agent.md", CHECKER).unwrap();
    wait_until("the specialist has joined", LIMIT, || listed("loop_watcher")).unwrap();
    let goal = "What limits delegation loops? Where is the record kept?";
    let summary = folder.json(&["run", goal, "--docs", "docs", "--json"]).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}");
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    let did: Vec<_> = of_kind(&trace, "outcome").filter(|entry| entry["role"] == "loop_watcher").collect();
    assert_eq!(did.len(), 1, "{did:?}");
    let data = &did[0]["event"]["product"]["result"]["data"];
    assert!(data["summary"].as_str().unwrap().contains("five hops"), "{data}");
    assert!(data["findings"][0]["text"].is_string(), "{data}");
    // People see it, and the report carries it.
    let index = did[0]["task"].as_str().unwrap();
    let shown = folder.output(&["show", "last", index]).unwrap();
    assert!(shown.contains("data: {") && shown.contains("\"summary\":"), "{shown}");
    let whole = folder.json(&["show", "last", index, "--json"]).unwrap();
    assert_eq!(whole["state"]["outcome"]["product"]["result"]["data"], *data);
    let report = summary["report"]["body"].as_str().unwrap();
    assert!(report.contains("## Data") && report.contains("\"summary\":"), "{report}");
    assert!(folder.json(&["replay", "last", "--json"]).is_ok());

    // A fault is said with its place, and the process of the faulty file ends.
    std::fs::write(&file, CHECKER.replace("slots: 1", "slotz: 1")).unwrap();
    wait_until("the fault is told", LIMIT, || listed("watcher.agent.md:14:3")).unwrap();
    wait_until("the specialist has left", LIMIT, || {
        folder.json(&["ps", "--json"]).is_ok_and(|listed| !listed.to_string().contains("\"loop_watcher\""))
    })
    .unwrap();

    std::fs::write(&file, CHECKER.replace("loop_watcher", "loop_keeper")).unwrap();
    wait_until("the mended one has joined", LIMIT, || listed("loop_keeper")).unwrap();
    std::fs::remove_file(&file).unwrap();
    wait_until("it has left with its file", LIMIT, || !listed("loop_keeper")).unwrap();
}

#[test]
fn files_are_checked_without_joining() {
    let folder = folder();
    for example in ["security-auditor", "fact-checker"] {
        let path = format!("{}/deploy/examples/{example}.agent.md", env!("CARGO_MANIFEST_DIR"));
        let checked = folder.json(&["agent", "--check", &path, "--json"]).unwrap();
        assert_eq!(checked["role"], example.replace('-', "_"));
    }
    folder.write("bad.agent.md", CHECKER.replace("tools:", "tols:")).unwrap();
    let output = folder.run(&["agent", "bad.agent.md"]).unwrap();
    let said = both(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("bad.agent.md:5:1") && said.contains("did you mean \"tools\""), "{said}");
    let missing = folder.run(&["agent", "--check", "nowhere.agent.md"]).unwrap();
    assert_eq!(missing.status.code(), Some(2), "{}", both(&missing));
}

#[test]
fn specialists_are_scaled_by_their_names_and_unknown_ones_refused() {
    let folder = folder();
    folder.write("agents/watcher.agent.md", CHECKER).unwrap();
    folder.write("agents/keeper.agent.md", CHECKER.replace("loop_watcher", "loop_keeper")).unwrap();
    for wrong in [&["--scale", "loop_wacher=2"][..], &["--set", "fleet.scale.loop_wacher=2", "--detach"]] {
        let refused = folder.run(&[&["up"], wrong].concat()).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
        assert!(both(&refused).contains("did you mean loop_watcher?"), "{}", both(&refused));
    }
    let fleet = folder.up(&["--scale", "loop_watcher=2", "--set", "fleet.scale.loop_keeper=3"]).unwrap();
    let folder = fleet.folder();
    let count = |role: &str| {
        let listed = folder.json(&["ps", "--json"]).unwrap_or_default();
        listed.as_array().into_iter().flatten().filter(|agent| agent["role"] == role).count()
    };
    wait_until("all have joined", LIMIT, || (count("loop_watcher"), count("loop_keeper")) == (2, 3)).unwrap();
    std::fs::remove_file(folder.path().join("agents/watcher.agent.md")).unwrap();
    wait_until("both have left with their file", LIMIT, || count("loop_watcher") == 0).unwrap();
    assert_eq!(count("loop_keeper"), 3);
}
