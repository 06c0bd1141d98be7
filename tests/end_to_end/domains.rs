//! Orchestrators of domains: whose runs they see to, and what becomes of them without these.

use std::process::Stdio;
use std::time::Duration;

use muster_support::fleet::{Fleet, Folder, both, wait_until};
use muster_support::model_server::{ModelServer, Reply, Script};
use muster_support::process::Running;
use serde_json::{Value, json};

use super::help::{done, plan_and_report};
use super::support::{folder, of_kind, with_model};

const LIMIT: Duration = Duration::from_secs(30);

/// A harbour is described by whoever has its ships counted, in a run of the domain `sea`.
fn script() -> Script {
    Script::answering(|request| {
        let goal = if request.holds("count the ships") { "count every ship" } else { "describe the harbour" };
        let task = json!({ "name": "It", "goal": goal, "role": "worker" });
        if let Some(reply) = plan_and_report(request, &[task], "# Report\n\nseven ships") {
            return reply;
        }
        if request.holds("count every ship") || request.holds("Its report:") {
            return done("seven ships lie there");
        }
        let arguments =
            json!({ "thought": "Others know ships.", "goal": "count the ships", "domain": "sea" });
        Reply::call("plan", &arguments)
    })
}

fn fleet(server: &ModelServer) -> Fleet {
    let folder = with_model(server);
    folder.up(&[]).unwrap()
}

/// The orchestrators of the fleet: the one of no domain, and the one of `sea`.
fn orchestrators(folder: &Folder) -> (Option<String>, Option<String>) {
    let listed = folder.json(&["ps", "--json"]).unwrap();
    let all = listed.as_array().unwrap().iter().filter(|process| process["role"] == "orchestrator");
    let (of_sea, general): (Vec<&Value>, Vec<&Value>) =
        all.partition(|process| process["specialist"]["capabilities"] == json!(["sea"]));
    let name = |found: &[&Value]| found.first().map(|process| process["agent"].as_str().unwrap().to_owned());
    (name(&general), name(&of_sea))
}

fn join(folder: &Folder) -> (Running, String, String) {
    let mut command = folder.command(&["orchestrator", "--set", "orchestrator.domains=[\"sea\"]"]);
    let process = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_until("both orchestrators are there", LIMIT, || {
        let (general, of_sea) = orchestrators(folder);
        general.is_some() && of_sea.is_some()
    })
    .unwrap();
    let (general, of_sea) = orchestrators(folder);
    (process, general.unwrap(), of_sea.unwrap())
}

/// Asks, and tells who decided of the run, and of those within it.
fn decided_by(folder: &Folder, arguments: &[&str]) -> (Vec<String>, Vec<String>) {
    let ask =
        ["run", "What is in the harbour?", "--planning", "always", "--model", "openai/scripted", "--json"];
    let summary = folder.json(&[&ask[..], arguments].concat()).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}\n{}", folder.logs());
    let by = |run: &str| {
        let trace = folder.json_lines(&["trace", run, "--json"]).unwrap();
        let mut by: Vec<String> = of_kind(&trace, "decided")
            .filter(|entry| entry["run"].as_str().is_none_or(|of| of.starts_with(run) || run == "last"))
            .map(|entry| entry["by"].as_str().unwrap().to_owned())
            .collect();
        by.sort();
        by.dedup();
        by
    };
    let own = summary["run"].as_str().unwrap();
    let runs = folder.json(&["runs", "--json"]).unwrap();
    let within = runs.as_array().unwrap().iter().find(|run| run["parent"]["run"] == own);
    let within = within.map(|run| by(run["run"].as_str().unwrap())).unwrap_or_default();
    (by(own), within)
}

#[test]
fn runs_of_a_domain_are_seen_to_by_its_orchestrator_and_by_any_without_it() {
    let server = ModelServer::start(script()).unwrap();
    let fleet = fleet(&server);
    let folder = fleet.folder();
    let (sea, general, of_sea) = join(folder);
    let listed = folder.output(&["ps"]).unwrap();
    assert!(listed.contains("orchestrator of sea"), "{listed}");
    for _ in 0..3 {
        assert_eq!(decided_by(folder, &[]), (vec![general.clone()], vec![of_sea.clone()]));
    }
    let (own, within) = decided_by(folder, &["--domain", "sea"]);
    assert_eq!((own, within), (vec![of_sea.clone()], vec![of_sea.clone()]));
    // Of a domain that nobody is there for.
    let (own, _) = decided_by(folder, &["--domain", "sky"]);
    assert_eq!(own, std::slice::from_ref(&general));

    drop(sea);
    let (own, within) = decided_by(folder, &["--domain", "sea"]);
    assert_eq!((own, within), (vec![general.clone()], vec![general]));
    folder.output(&["replay", "last"]).unwrap();
}

#[test]
fn a_domain_has_a_proper_name() {
    let folder = folder();
    for arguments in [
        &["run", "What?", "--domain", "The Sea"][..],
        &["orchestrator", "--set", "orchestrator.domains=[\"The Sea\"]"],
    ] {
        let output = folder.run(arguments).unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", both(&output));
        assert!(both(&output).contains("is no domain"), "{}", both(&output));
    }
}
