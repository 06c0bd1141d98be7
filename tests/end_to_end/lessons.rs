//! What one run teaches reaches the runs after it, across processes and fleets.

use muster_support::fleet::both;
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use serde_json::json;

use super::help::{done, plan_and_report, submit};
use super::support::with_model;

const LESSON: &str = "the orchard list is counted twice unless the rows are numbered first";

/// A model whose reflector has something to say.
fn answer(request: &CapturedRequest) -> Reply {
    if request.system().contains("You are the reflector") {
        return submit(&json!({ "thought": "There is one.", "summary": "Counted.", "on_plan": [LESSON] }));
    }
    let task = json!({ "name": "the apples", "goal": "Count the apples.", "role": "worker" });
    plan_and_report(request, &[task], "# Fruit").unwrap_or_else(|| done("Seven."))
}

#[test]
fn a_later_run_with_a_like_goal_is_told_what_an_earlier_one_taught() {
    let server = ModelServer::start(Script::answering(answer)).unwrap();
    let folder = with_model(&server);
    // Each of these brings up a fleet of its own: what is kept outlives all processes.
    let ask = |goal: &str| {
        let before = server.log().len();
        let output = folder
            .run(&["run", goal, "--planning", "always", "--model", "openai/scripted", "--quiet"])
            .unwrap();
        assert!(output.status.success(), "{}\n{}", both(&output), folder.logs());
        let log = server.log();
        let asked = |role: &str| {
            let of_role = log[before..].iter().find(|entry| entry.request.system().contains(role));
            of_role.map(|entry| entry.request.holds(LESSON)).unwrap()
        };
        (asked("You are the planner"), asked("You are a worker"))
    };
    assert_eq!(ask("How many apples grow in the orchard?"), (false, false), "there is nothing to know yet");
    assert_eq!(ask("How many apples does the orchard have now?"), (true, true));
    assert_eq!(ask("Who wrote the oldest poem?"), (false, false), "it has nothing to do with it");
    // What it was told stands in its record, so that a replay needs nothing else.
    let runs = folder.json(&["runs", "--json"]).unwrap();
    let told = runs.as_array().unwrap()[1]["run"].as_str().or(runs[1]["id"].as_str()).unwrap().to_owned();
    let trace = folder.output(&["trace", &told, "--full"]).unwrap();
    assert!(trace.contains("taught by earlier runs:") && trace.contains(LESSON), "{trace}");
    let replayed = folder.json(&["replay", &told, "--json"]).unwrap();
    assert_eq!(replayed["same"], true, "{replayed}");
}
