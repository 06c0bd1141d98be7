//! Plans with all that their tasks may say, carried out by real processes.

use muster_support::fleet::{Folder, both};
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::help::{act, done, plan_and_report};
use super::support::{folder, of_kind, with_model, write_documents};

const GOAL: &str = "Add two and three, and say what became of it.";

/// Plans as told; everybody else does what is asked of them.
fn answer(request: &CapturedRequest, tasks: &[Value]) -> Reply {
    let body = "# Sum\n\nTwo and three is 5, and this is what became of it.";
    let has_calculator = request.tools.iter().any(|tool| tool == "calculator");
    plan_and_report(request, tasks, body).unwrap_or_else(|| match request.turns() == 0 && has_calculator {
        true => act("calculator", json!({ "expression": "2 + 3" })),
        false => done("It is 5."),
    })
}

#[test]
fn a_task_sees_the_tools_it_names_and_the_same_ones_at_each_step() {
    let refused_first = |request: &CapturedRequest| {
        let tool = if request.holds("did you mean calculator?") { "calculator" } else { "calculater" };
        let sum =
            json!({ "name": "the sum", "goal": "Add two and three.", "role": "worker", "tools": [tool] });
        let told = json!({ "name": "the words", "goal": "Say what became of it.", "role": "worker" });
        answer(request, &[sum, told])
    };
    let server = ModelServer::start(Script::answering(refused_first)).unwrap();
    let folder = with_model(&server);
    let run = ["run", GOAL, "--model", "openai/scripted", "--planning", "always", "--quiet"];
    let output = folder.run(&run).unwrap();
    assert!(output.status.success(), "{}\n{}", both(&output), folder.logs());

    let log = server.log();
    let workers = log.iter().map(|entry| &entry.request);
    let workers: Vec<_> = workers.filter(|request| request.system().contains("You are a worker")).collect();
    let of = |words: &str| workers.iter().filter(|request| request.holds(words)).collect::<Vec<_>>();
    let narrowed = of("Your task, 1:");
    assert_eq!(narrowed.len(), 2);
    for request in &narrowed {
        assert_eq!(request.tools, ["calculator", "escalate", "request_info", "submit"]);
        assert_eq!(request.body["tools"], narrowed[0].body["tools"], "byte for byte the same");
    }
    for request in of("Your task, 2:") {
        let most_need =
            ["calculator", "find_tool", "request_info", "use_tool", "workspace_read", "workspace_write"];
        assert_eq!(request.tools[..6], most_need, "what most tasks need, and a way to the others");
    }
    assert_eq!(server.violations(), Vec::<String>::new());
    let shown = folder.json(&["show", "last", "--json"]).unwrap();
    assert_eq!(shown["plan"]["tasks"]["1"]["tools"], json!(["calculator"]), "{shown}");
    assert_eq!(folder.json(&["replay", "--json"]).unwrap()["same"], true);
}

/// What the report of the newest run was found not to speak of.
fn not_spoken_of(folder: &Folder) -> Vec<Value> {
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    let events =
        of_kind(&trace, "decided").flat_map(|entry| entry["event"]["events"].as_array().unwrap().clone());
    let found = events.filter(|event| event["event"] == "words_uncovered" && event["by"] == "report");
    found.map(|event| event["words"].clone()).collect()
}

#[test]
fn a_report_that_leaves_out_what_was_asked_says_so() {
    let tasks = [
        json!({ "name": "the sum", "goal": "Add two and three.", "role": "worker" }),
        json!({ "name": "the words", "goal": "Say what became of it.", "role": "worker" }),
    ];
    let server = ModelServer::start(Script::answering(move |request| answer(request, &tasks))).unwrap();
    let folder = with_model(&server);
    let run = |goal: &str| {
        let flags = ["--model", "openai/scripted", "--planning", "always", "--priority", "7", "--json"];
        folder.json(&[&["run", goal], &flags[..]].concat()).unwrap()
    };
    let summary = run("Add two and three. Which planets have rings?");
    assert_eq!(summary["status"], "completed", "{summary}");
    assert_eq!(not_spoken_of(&folder), [json!(["Which planets have rings"])]);
    let shown = folder.output(&["show", "last"]).unwrap();
    assert!(shown.contains("does not speak of: Which planets have rings"), "{shown}");
    assert!(shown.contains("priority 7"), "{shown}");
    assert_eq!(folder.json(&["replay", "--json"]).unwrap()["same"], true);

    let summary = run("Add two and three. Keep it short, in two paragraphs at most.");
    assert_eq!(summary["status"], "completed", "{summary}");
    assert_eq!(not_spoken_of(&folder), Vec::<Value>::new());
}

#[test]
fn the_offline_model_gives_no_false_alarm() {
    let folder = folder();
    write_documents(&folder);
    let demo = "What limits delegation loops, how does a run survive the death of a worker, and which clouds is Muster \
                certified for?";
    for goal in [demo, "What limits delegation loops? Compute 12 * 12, and keep it short."] {
        drop(folder.output(&["run", goal, "--docs", "docs", "--quiet"]).unwrap());
        assert_eq!(not_spoken_of(&folder), Vec::<Value>::new(), "{goal}");
    }
}
