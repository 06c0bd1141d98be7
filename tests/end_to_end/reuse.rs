//! Answers that serve again: a fleet that is told to gives who asks the very same what was answered already; and those of pure
//! tools that say how long theirs do.

use std::time::Duration;

use muster_support::fleet::wait_until;
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::help::{act, done, plan_and_report};
use super::support::{of_kind, one_call, with_model};

fn answer(request: &CapturedRequest) -> Reply {
    let task = json!({ "name": "the apples", "goal": "Count the apples.", "role": "worker" });
    plan_and_report(request, &[task], "# Fruit\n\nSeven.").unwrap_or_else(|| match request.turns() {
        0 => act("calculator", json!({ "expression": "3 + 4" })),
        _ => done("Seven."),
    })
}

#[test]
fn what_was_answered_once_is_not_asked_again_by_the_same_role_in_the_same_words() {
    let server = ModelServer::start(Script::answering(answer)).unwrap();
    let folder = with_model(&server);
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

/// Looks a word up, which is seen in a file.
const LOOK_UP: &str = "\
import json, os, sys
word = json.load(sys.stdin)['word']
with open(os.path.join(os.environ['SEEN'], 'seen'), 'a') as seen:
    seen.write(word + '\\n')
print(json.dumps({'content': 'The ' + word + ' has six legs.', 'data': {'legs': 6}}))
";

#[test]
fn what_a_pure_tool_answered_once_serves_the_same_role_in_other_runs_and_is_called_once() {
    let arguments = json!({ "thought": "I look it up.", "word": "ant" });
    let script = Script::answering(move |request| one_call(request, "own_look_up", &arguments));
    let server = ModelServer::start(script).unwrap();
    let folder = with_model(&server);
    folder.write("tools/look_up.py", LOOK_UP).unwrap();
    let file = format!(
        "description = \"Looks a word up.\"\ncommand = [\"python3\", \"./look_up.py\"]\nsandbox = false\npure = true\n\
         cache = \"1h\"\n\n[parameters]\ntype = \"object\"\nrequired = [\"word\"]\nproperties.word.type = \"string\"\n\n\
         [environment]\nSEEN = \"{}\"\n",
        folder.path().display()
    );
    folder.write("tools/look_up.tool.toml", file).unwrap();
    folder.output(&["trust", "--yes"]).unwrap();
    let shown = folder.json(&["tools", "show", "own.look_up", "--json"]).unwrap();
    assert_eq!(shown["cache_ms"], 3_600_000, "{shown}");
    let fleet = folder.up(&["--set", "agent.model=openai/scripted"]).unwrap();
    let folder = fleet.folder();
    let listed = || folder.output(&["ps"]).is_ok_and(|table| table.contains("tools-own"));
    wait_until("the tools are served", Duration::from_secs(60), listed).unwrap();

    let ask = |goal: &str| -> Value {
        let summary = folder.json(&["run", goal, "--planning", "always", "--json"]).unwrap();
        assert_eq!(summary["status"], "completed", "{summary}\n{}", folder.logs());
        let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
        let step = of_kind(&trace, "step").find(|entry| entry["task"] == "1").unwrap().clone();
        step["event"]["observation"].clone()
    };
    let first = ask("How many legs has an ant?");
    assert_eq!(
        (&first["content"], &first["cached"]),
        (&json!("The ant has six legs."), &Value::Null),
        "{first}"
    );
    let again = ask("Tell me of the legs of ants.");
    let content = again["content"].as_str().unwrap();
    assert!(content.starts_with("[From the cache") && content.ends_with("The ant has six legs."), "{again}");
    assert!(again["cached"]["age_ms"].as_u64().unwrap() < 3_600_000, "{again}");
    let seen = std::fs::read_to_string(folder.path().join("seen")).unwrap();
    assert_eq!(seen, "ant\n", "it was looked up once");

    let stats = folder.json(&["tools", "stats", "--json"]).unwrap();
    let used = stats["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "own.look_up").unwrap();
    assert_eq!((&used["calls"], &used["cached"]), (&json!(2), &json!(1)), "{stats}");
    assert!(used["saved_ms"].as_u64().unwrap() > 0, "{stats}");
    assert!(folder.output(&["tools", "stats"]).unwrap().contains("SPARED"));
    let told = folder.output(&["trace", "last"]).unwrap();
    assert!(told.contains(" spared]"), "{told}");
    assert_eq!(folder.json(&["replay", "last", "--json"]).unwrap()["same"], true);
}
