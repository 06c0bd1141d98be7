//! What models are sent: it can be read back exactly, with nobody alive, and its stable part comes first.

use muster_support::fleet::both;
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::support::folder;

fn answer(request: &CapturedRequest) -> Reply {
    let submit = |arguments: Value| Reply::call("submit", &arguments);
    let system = request.system();
    if system.contains("You are the planner") {
        let task = json!({ "name": "the sum", "goal": "Add up.", "role": "worker" });
        submit(json!({ "thought": "One task.", "goal": "Add up.", "tasks": [task] }))
    } else if system.contains("You are the reflector") {
        submit(json!({ "thought": "Fine.", "summary": "It went as planned." }))
    } else if system.contains("You are the writer") {
        submit(json!({ "thought": "All is in.", "title": "Sum", "body": "# Sum\n\n5", "unanswered": [] }))
    } else if request.turns() < 2 {
        let expression = format!("{} + 1", request.turns() + 2);
        Reply::call("calculator", &json!({ "thought": "I need to know.", "expression": expression }))
    } else {
        submit(json!({ "thought": "Known.", "ending": "done", "conclusion": "It is 5.", "findings": [] }))
    }
}

#[test]
fn what_was_sent_is_read_back_and_vouched_for_with_nobody_alive() {
    let server = ModelServer::start(Script::answering(answer)).unwrap();
    let folder = folder().with("OPENAI_API_KEY", "k").with("OPENAI_BASE_URL", server.openai_url());
    let output = folder.run(&["run", "Add two and three.", "--model", "openai/scripted", "--quiet"]).unwrap();
    assert!(output.status.success(), "{}\n{}", both(&output), folder.logs());
    assert!(folder.state().is_none(), "the fleet of the run is gone");

    let log = server.log();
    let asked: Vec<&CapturedRequest> = log.iter().map(|entry| &*entry.request).collect();
    let worker: Vec<_> =
        asked.into_iter().filter(|request| request.system().contains("You are a worker")).collect();
    assert_eq!(worker.len(), 3);
    for pair in worker.windows(2) {
        assert!(pair[1].messages.starts_with(&pair[0].messages), "the stable part comes first");
    }
    for (step, request) in ["1", "2", "3"].iter().zip(&worker) {
        let shown = folder.json(&["prompt", "last", "1", step, "--json"]).unwrap();
        assert_eq!(shown["check"], "matches", "{shown}");
        let messages = shown["messages"].as_array().unwrap();
        assert_eq!(messages.len(), request.messages.len());
        for (shown, sent) in messages.iter().zip(&request.messages) {
            assert_eq!(shown["role"], sent.role.as_str());
            assert!(shown["content"].as_str().unwrap().contains(sent.text.trim()), "{shown} for {sent:?}");
        }
        let tools: Vec<&str> =
            shown["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(tools, request.tools);
    }

    let diff = folder.output(&["prompt", "last", "1", "--diff"]).unwrap();
    assert!(diff.contains("Since step 2: 4 messages"), "{diff}");
    assert!(diff.contains("\n+ [result of step-2]") && !diff.contains("\n- "), "{diff}");
    let missing = folder.run(&["prompt", "last", "1", "9"]).unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(both(&missing).contains("1, 2, 3"), "{}", both(&missing));

    let replayed = folder.json(&["replay", "--rerender", "--json"]).unwrap();
    assert_eq!((&replayed["same"], &replayed["prompts"]["differences"]), (&json!(true), &json!([])));
    assert_eq!(replayed["prompts"]["prompts"], server.completed());
    folder
        .write("mine/worker.md.j2", "{# version 9 #}\nMine.\n=== task ===\n{{ fence('goal', goal) }}")
        .unwrap();
    let other = folder.run(&["--set", "agent.template_dir=mine", "replay", "--rerender"]).unwrap();
    assert_eq!(other.status.code(), Some(1), "{}", both(&other));
    assert!(both(&other).contains("3 of 6 prompts"), "{}", both(&other));
}
