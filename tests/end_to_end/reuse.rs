//! Answers that serve again: a fleet that is told to gives who asks the very same what was answered already.

use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::support::folder;

fn answer(request: &CapturedRequest) -> Reply {
    let submit = |arguments: Value| Reply::call("submit", &arguments);
    let system = request.system();
    if system.contains("You are the planner") {
        let task = json!({ "name": "the apples", "goal": "Count the apples.", "role": "worker" });
        submit(json!({ "thought": "One task.", "goal": "Count.", "tasks": [task] }))
    } else if system.contains("You are the reflector") {
        submit(json!({ "thought": "It went well.", "summary": "Counted." }))
    } else if system.contains("You are the writer") {
        submit(
            json!({ "thought": "All is in.", "title": "Fruit", "body": "# Fruit\n\nSeven.", "unanswered": [] }),
        )
    } else if request.turns() == 0 {
        Reply::call("calculator", &json!({ "thought": "Add.", "expression": "3 + 4" }))
    } else {
        submit(json!({ "thought": "Known.", "ending": "done", "conclusion": "Seven.", "findings": [] }))
    }
}

#[test]
fn what_was_answered_once_is_not_asked_again_by_the_same_role_in_the_same_words() {
    let server = ModelServer::start(Script::answering(answer)).unwrap();
    let folder = folder().with("OPENAI_API_KEY", "k").with("OPENAI_BASE_URL", server.openai_url());
    let settings = [
        "agent.reuse_answers=1h",
        "agent.model=openai/scripted",
        "agent.prices.scripted.input=1000",
        "agent.prices.scripted.output=1000",
    ];
    let up: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let fleet = folder.up(&up).unwrap();
    let ask = |goal: &str| -> (usize, Value) {
        let before = server.log().len();
        let summary = fleet.folder().json(&["run", goal, "--planning", "always", "--json"]).unwrap();
        assert_eq!(summary["status"], "completed", "{summary}\n{}", fleet.folder().logs());
        let shown = fleet.folder().json(&["show", "last", "--json"]).unwrap();
        (server.log().len() - before, shown["usage"].clone())
    };
    let (first, used) = ask("How many apples are there?");
    assert_eq!(used["model_calls"], first, "{used}");
    assert!(first >= 4 && used.get("reused_calls").is_none(), "{used}");

    // A reflector is told how long steps took, to the millisecond: it may have to be asked.
    let (again, used) = ask("How many apples are there?");
    assert!(again <= 1 && used["model_calls"] == again, "{used}");
    assert_eq!(used["reused_calls"], first - again, "each other answer served again: {used}");
    assert!(used["reused_micros"].as_u64().unwrap() > 0, "what that spared is told: {used}");
    let told = fleet.folder().output(&["show", "last"]).unwrap();
    assert!(told.contains("earlier answers reused"), "{told}");
    let replayed = fleet.folder().json(&["replay", "last", "--json"]).unwrap();
    assert_eq!(replayed["same"], true, "{replayed}");

    let (other, used) = ask("How many pears are there?");
    assert!(other > 0 && used["model_calls"] == other, "another question is asked: {used}");
}
