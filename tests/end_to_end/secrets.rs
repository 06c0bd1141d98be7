//! Secrets planted at every door turn up nowhere: not in the record, the logs, the tap, the report or a prompt.

use std::process::Stdio;

use muster_support::foreign::Stranger;
use muster_support::model_server::{ModelServer, Reply, Script};
use serde_json::json;

use super::support::folder;

// Put together here so that no scanner takes this file for a leak.
fn planted() -> Vec<(&'static str, String)> {
    vec![
        ("the key of the model", format!("sk-{}", "proj-Zx81kLmQ0aaR7uVnB3yT5wPd")),
        ("the goal", format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8")),
        ("a document", format!("AKIA{}", "Q3EGRLNZ7XKPW2VD")),
        ("the model's answer", format!("xoxb-{}", "270318281828-314159265358-aBcDeFgHiJkLmNoPqRsTuVwX")),
    ]
}

#[test]
fn no_planted_secret_is_ever_seen_again() {
    let secrets = planted();
    let secret = |door: &str| secrets.iter().find(|(name, _)| *name == door).unwrap().1.clone();
    let answer = secret("the model's answer");
    let script = Script::answering(move |request| {
        let system = request.system();
        let call = |arguments| Reply::call("submit", &arguments);
        if system.contains("You are the planner") {
            let task = json!({ "name": "read", "goal": "Read the documents.", "role": "researcher" });
            call(json!({ "thought": format!("I know {answer}."), "goal": "Read.", "tasks": [task] }))
        } else if system.contains("You are the reflector") {
            call(json!({ "thought": "Fine.", "summary": format!("It said {answer}.") }))
        } else if system.contains("You are the writer") {
            call(
                json!({ "thought": "Done.", "title": "Keys", "body": format!("The key is {answer}."), "unanswered": [] }),
            )
        } else if request.tool_results() == 0 {
            Reply::call("corpus_search", &json!({ "thought": "Look.", "query": "deployment key account" }))
        } else {
            call(
                json!({ "thought": "Found.", "ending": "done", "conclusion": format!("It is {answer}."), "findings": [] }),
            )
        }
    });
    let server = ModelServer::start(script).unwrap();
    let folder = folder()
        .with("OPENAI_API_KEY", secret("the key of the model"))
        .with("OPENAI_BASE_URL", server.openai_url())
        .with("MUSTER_LOG", "debug");
    let document = format!(
        "# Deployment\n\nThe deployment key of the account is {} and stays so.\n",
        secret("a document")
    );
    folder.write("docs/deployment.md", document).unwrap();
    let fleet = folder.up(&[]).unwrap();
    let folder = fleet.folder();
    let tap =
        folder.command(&["tap", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();

    let goal = format!("What is the deployment key? Mine is {}", secret("the goal"));
    let output = folder.run(&["run", &goal, "--docs", "docs", "--model", "openai/scripted"]).unwrap();
    assert!(output.status.success(), "{}\n{}", muster_support::fleet::both(&output), folder.logs());

    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(tap.id().try_into().unwrap()),
        nix::sys::signal::Signal::SIGTERM,
    )
    .unwrap();
    let tap = tap.wait_with_output().unwrap();
    let stored = Stranger::connect(&fleet.url()).unwrap().everything_stored().unwrap();
    let prompts: Vec<u8> =
        server.log().iter().flat_map(|entry| entry.request.body.to_string().into_bytes()).collect();
    assert!(!stored.is_empty() && !tap.stdout.is_empty() && !prompts.is_empty() && !folder.logs().is_empty());
    let places: [(&str, Vec<u8>); 6] = [
        ("the record and every other stream", stored),
        ("the tap", [tap.stdout, tap.stderr].concat()),
        ("the logs", folder.logs().into_bytes()),
        ("what run printed", [output.stdout, output.stderr].concat()),
        ("prompts", prompts),
        ("show", folder.output(&["show", "last", "--json"]).unwrap().into_bytes()),
    ];
    for (door, secret) in &secrets {
        for (place, bytes) in &places {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "the secret planted in {door} is in {place}");
        }
    }
}
