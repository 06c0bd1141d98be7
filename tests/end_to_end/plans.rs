//! Plans with all that their tasks may say, carried out by real processes.

use muster_support::fleet::both;
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::help::{act, done, plan_and_report};
use super::support::with_model;

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
