//! A run is explained from its record: a failure and its mending are told, and the sums are those of `show`.

use muster_support::fleet::both;
use muster_support::model_server::ModelServer;
use serde_json::{Value, json};

use super::help::{act, ask, done, ended, script_of, submit, up};
use super::support::folder;

const FIELDS: [&str; 5] = ["model_calls", "tool_calls", "input_tokens", "output_tokens", "steps"];

fn gives_up() -> muster_support::model_server::Reply {
    submit(&json!({"thought": "It is no use.", "ending": "give_up", "reason": "the calculator fails"}))
}

fn sum(rows: &Value, field: &str) -> u64 {
    rows.as_array().unwrap().iter().filter_map(|row| row["usage"][field].as_u64()).sum()
}

#[test]
fn a_failure_and_its_mending_are_told_and_the_sums_are_those_of_show() {
    let tasks = vec![json!({"name": "count", "goal": "Count the hops.", "role": "worker", "depends_on": []})];
    let server = ModelServer::start(script_of(tasks, |request| {
        let told = request.holds("the calculator fails. Do it without the tool that failed");
        match (told, request.turns()) {
            (false, 0) => act("calculator", json!({"expression": "1 / 0"})),
            (false, _) => gives_up(),
            (true, _) => done("Five, counted by hand."),
        }
    }))
    .unwrap();
    let fleet = up(&server, folder(), &[]);
    let folder = fleet.folder();
    ended(folder, ask(folder));

    let text = folder.output(&["explain", "last"]).unwrap();
    for wanted in [
        "Result",
        "it ended with a report",
        "Failures",
        "1 count: done in the end",
        "calculator was refused",
        "→ 1: a tool was refused; tried without that tool: calculator",
        "Time and cost",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }

    let (told, shown) = (
        folder.json(&["explain", "last", "--json"]).unwrap(),
        folder.json(&["show", "last", "--json"]).unwrap(),
    );
    assert_eq!(told["cost"]["total"], shown["usage"], "{text}");
    for field in FIELDS {
        let used = shown["usage"][field].as_u64().unwrap_or(0);
        assert_eq!(sum(&told["cost"]["by_task"], field), used, "{field}: {told:#}");
        assert_eq!(sum(&told["cost"]["by_role"], field), used, "{field}: {told:#}");
    }
    assert!(
        told["cost"]["by_task"].as_array().unwrap().iter().all(|row| row["task"].is_string()),
        "{told:#}"
    );
    assert!(told["total_ms"].as_u64() > Some(0), "{told:#}");

    let one = folder.output(&["explain", "last", "1", "--full"]).unwrap();
    assert!(one.starts_with("Task 1 of run ") && one.contains("step 1: calculator was refused"), "{one}");
    assert!(one.contains("[entry") && !text.contains("[entry"), "{one}\n{text}");

    for (run, task, wanted) in [
        ("last", "9", "there is no task 9"),
        ("last", "refine-7", "nothing in this run is about task refine-7"),
        ("ffffffff", "1", "no run's id ends or begins with ffffffff"),
    ] {
        let refused = folder.run(&["explain", run, task]).unwrap();
        let said = both(&refused);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(wanted) && said.contains("help:"), "{wanted}: {said}");
    }
}
