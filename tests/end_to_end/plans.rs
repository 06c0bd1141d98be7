//! Plans with all that their tasks may say, carried out by real processes.

use muster_support::fleet::both;
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::support::folder;

const GOAL: &str = "Add two and three, and say what became of it.";

fn submit(arguments: &Value) -> Reply {
    Reply::call("submit", arguments)
}

/// Plans as told; everybody else does what is asked of them.
fn answer(request: &CapturedRequest, tasks: &Value) -> Reply {
    let system = request.system();
    if system.contains("You are the planner") {
        submit(&json!({ "thought": "So.", "goal": "Add up.", "tasks": tasks }))
    } else if system.contains("You are the reflector") {
        submit(&json!({ "thought": "Fine.", "summary": "It went as planned." }))
    } else if system.contains("You are the writer") {
        let body = "# Sum\n\nTwo and three is 5, and this is what became of it.";
        submit(&json!({ "thought": "All is in.", "title": "Sum", "body": body, "unanswered": [] }))
    } else if request.turns() == 0 && request.tools.iter().any(|tool| tool == "calculator") {
        Reply::call("calculator", &json!({ "thought": "I need to know.", "expression": "2 + 3" }))
    } else {
        submit(&json!({ "thought": "Known.", "ending": "done", "conclusion": "It is 5.", "findings": [] }))
    }
}

#[test]
fn a_task_sees_the_tools_it_names_and_the_same_ones_at_each_step() {
    let refused_first = |request: &CapturedRequest| {
        let tool = if request.holds("did you mean calculator?") { "calculator" } else { "calculater" };
        let sum =
            json!({ "name": "the sum", "goal": "Add two and three.", "role": "worker", "tools": [tool] });
        let told = json!({ "name": "the words", "goal": "Say what became of it.", "role": "worker" });
        answer(request, &json!([sum, told]))
    };
    let server = ModelServer::start(Script::answering(refused_first)).unwrap();
    let folder = folder().with("OPENAI_API_KEY", "k").with("OPENAI_BASE_URL", server.openai_url());
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
    assert!(of("Your task, 2:").iter().all(|request| request.tools.len() > 8), "all that its role has");
    assert_eq!(server.violations(), Vec::<String>::new());
    let shown = folder.json(&["show", "last", "--json"]).unwrap();
    assert_eq!(shown["plan"]["tasks"]["1"]["tools"], json!(["calculator"]), "{shown}");
    assert_eq!(folder.json(&["replay", "--rerender", "--json"]).unwrap()["same"], true);
}
