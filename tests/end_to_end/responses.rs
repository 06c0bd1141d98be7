//! What is done about failures, seen in the trace: a task whose tool fails does without it, a question that is too
//! long goes to a larger model, and too many failures end in a report of what there is.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use muster_support::fleet::{both, wait_until};
use muster_support::model_server::{CapturedRequest, Fault, ModelServer, Reply};
use serde_json::{Value, json};

use super::help::{act, ask, done, ended, script_of, steps, submit, up};
use super::support::{folder, of_kind};

fn task(name: &str, goal: &str, on: &[&str]) -> Value {
    json!({"name": name, "goal": goal, "role": "worker", "depends_on": on})
}

fn gives_up(reason: &str) -> Reply {
    submit(&json!({"thought": "It is no use.", "ending": "give_up", "reason": reason}))
}

fn is_about(request: &CapturedRequest, goal: &str) -> bool {
    request.messages.get(1).is_some_and(|message| message.text.contains(goal))
}

/// What was done about failures: of which task, which failure, which response, and the model that tries it.
fn answers(trace: &[Value]) -> Vec<Value> {
    let events = of_kind(trace, "decided").filter_map(|entry| entry["event"]["events"].as_array()).flatten();
    let answered = events.filter(|event| event["event"] == "failure_answered");
    let said = |event: &Value| json!([event["task"], event["failure"], event["response"], event["model"]]);
    answered.map(said).collect()
}

#[test]
fn a_task_whose_tool_fails_does_without_it() {
    let server = ModelServer::start(script_of(vec![task("count", "Count the hops.", &[])], |request| {
        // It is told what failed, and has it no more.
        let told =
            request.holds("the calculator fails. Do it without the tool that failed (calculator, withheld");
        let has_it = request.tools.iter().any(|name| name == "calculator");
        match (told, request.turns()) {
            (false, 0) if has_it => act("calculator", json!({"expression": "1 / 0"})),
            (false, _) => gives_up("the calculator fails"),
            (true, 0) if !has_it => act("calculator", json!({"expression": "1 / 0"})),
            (true, 1) if !has_it => done("Five, counted by hand."),
            (true, _) => gives_up("the calculator is still there"),
        }
    }))
    .unwrap();
    let fleet = up(&server, folder(), &[]);
    let folder = fleet.folder();
    let trace = ended(folder, ask(folder));
    assert_eq!(answers(&trace), [json!(["1", "tool_refused", "other_tool", null])]);
    let traced = folder.output(&["trace", "last"]).unwrap();
    assert!(traced.contains("1: a tool was refused; tried without that tool: calculator"), "{traced}");
    let steps = steps(&trace, "1");
    let [(first, _), (second, refused)] = &steps[..] else { panic!("{steps:?}") };
    assert_eq!([*first, *second], ["calculator"; 2], "a model that calls it all the same");
    assert!(!refused.contains("division") && refused.contains("calculator"), "{refused}");
}

#[test]
fn a_question_that_is_too_long_goes_to_a_larger_model() {
    let server = ModelServer::start(script_of(vec![task("count", "Count the hops.", &[])], |request| {
        if request.model == "larger" {
            return done("Five.");
        }
        let body = json!({"error": {"code": "context_length_exceeded", "message": "maximum context length"}});
        Reply::fault(Fault::Status { code: 400, retry_after: None, body: Some(body.to_string()) })
    }))
    .unwrap();
    let larger = ["--set", "limits.responses.stronger_models=openai/larger"];
    let fleet = up(&server, folder(), &larger);
    let folder = fleet.folder();
    let trace = ended(folder, ask(folder));
    assert_eq!(answers(&trace), [json!(["1", "question_too_long", "other_model", "openai/larger"])]);
    let asked = server.log().iter().filter(|entry| entry.request.model == "larger").count();
    assert!(asked >= 1, "the larger model did the task");
    let traced = folder.output(&["trace", "last"]).unwrap();
    let line = "1: the question was too long for the model; another model tries it: openai/larger";
    assert!(traced.contains(line), "{traced}");
}

#[test]
fn too_many_failures_end_in_a_report_of_what_there_is() {
    let tasks = vec![
        task("count", "Count the hops.", &[]),
        task("name", "Name the ways.", &[]),
        task("sum up", "Sum it up.", &["2"]),
    ];
    let used_up = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&used_up);
    let server = ModelServer::start(script_of(tasks, move |request| {
        if is_about(request, "Count the hops.") {
            gives_up("nobody can count them")
        } else if seen.load(Ordering::SeqCst) || is_about(request, "Sum it up.") {
            done("There are three ways.")
        } else {
            // It is at work until the others have failed.
            let expression = format!("{} + 1", request.turns());
            act("calculator", json!({"expression": expression})).with_delay(Duration::from_millis(150))
        }
    }))
    .unwrap();
    let fleet = up(&server, folder(), &["--set", "limits.responses.error_budget=1"]);
    let folder = fleet.folder();
    let asker = ask(folder);
    let is_used_up = || {
        let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap_or_default();
        trace.iter().any(|entry| entry.to_string().contains("error_budget_used_up"))
    };
    wait_until("the error budget is used up", Duration::from_secs(30), is_used_up).unwrap();
    used_up.store(true, Ordering::SeqCst);
    ended(folder, asker);
    let traced = folder.output(&["trace", "last"]).unwrap();
    assert!(traced.contains("error budget used up after 1 failures: nothing more is begun"), "{traced}");
    let shown = folder.json(&["show", "last", "--json"]).unwrap().to_string();
    assert!(shown.contains("as many failures as it may have (1)"), "{shown}");
    let sums = server.log().iter().filter(|entry| is_about(&entry.request, "Sum it up.")).count();
    assert_eq!(sums, 0, "what was not begun was left out");
}

#[test]
fn failed_tasks_are_told_whatever_the_writer_says() {
    let tasks = (1..=7).map(|n| task(&format!("check {n}"), &format!("Check part {n}."), &[])).collect();
    let server = ModelServer::start(script_of(tasks, |request| {
        let said = |ending: &str, reason: &str| {
            submit(&json!({"thought": "It is no use.", "ending": ending, "reason": reason}))
        };
        match (1..=7).find(|n| is_about(request, &format!("Check part {n}."))) {
            Some(1) => said("escalate", "the key stands in the log: a security risk"),
            Some(2..=5) => said("give_up", "the part is not there"),
            Some(_) | None => done("It is in order."),
        }
    }))
    .unwrap();
    let settings = ["limits.max_width=8", "limits.max_replans=0"].map(|setting| ["--set", setting]).concat();
    let fleet = up(&server, folder(), &settings);
    let folder = fleet.folder();
    let output = folder.run(&["run", "Check it all.", "--planning", "always", "--deadline", "60s"]).unwrap();
    let (report, said) = (String::from_utf8_lossy(&output.stdout), both(&output));
    assert_eq!(output.status.code(), Some(6), "{said}\n{}", folder.logs());
    assert!(said.contains("completed in part") && said.contains("2 of 7 tasks done, 5 failed"), "{said}");
    for part in ["## What was not done", "1 check 1 (failed): the key stands in the log: a security risk"] {
        assert!(report.contains(part), "{report}");
    }
    let listed = folder.json(&["runs", "--json"]).unwrap();
    assert_eq!(
        (&listed[0]["complete"], &listed[0]["count"]["failed"]),
        (&json!(false), &json!(5)),
        "{listed}"
    );
    let shown = folder.json(&["show", "last", "--json"]).unwrap();
    assert_eq!(shown["missing"].as_array().map(Vec::len), Some(5), "{}", shown["missing"]);
    for args in [&["runs"][..], &["show", "last"]] {
        let shown = folder.output(args).unwrap();
        assert!(shown.contains("completed in part"), "{shown}");
    }
    let replayed = folder.run(&["replay", "last"]).unwrap();
    assert!(replayed.status.success(), "{}", both(&replayed));
}

/// The broken worker is always free, and the good one is busy: a retry waits for the good one.
#[test]
fn an_agent_with_a_refused_key_takes_no_retry_and_gets_no_more_tasks() {
    let tasks = (1..=6).map(|n| task(&format!("part {n}"), &format!("Count part {n}."), &[])).collect();
    let answer = script_of(tasks, |request| {
        if request.key.as_deref().is_some_and(|key| key.contains("refused")) {
            return Reply::fault(Fault::Status { code: 401, retry_after: None, body: None });
        }
        done("Five.").with_delay(Duration::from_millis(300))
    });
    let server = ModelServer::start(answer).unwrap();
    let fleet = up(&server, folder(), &["--set", "agent.slots.worker=1"]);
    let folder = fleet.folder();
    let mut broken = folder.command(&["agent", "worker", "--set", "agent.slots.worker=4"]);
    let mut broken = broken.env("OPENAI_API_KEY", "refused-key").stderr(Stdio::null()).spawn().unwrap();
    let workers = || folder.output(&["ps"]).unwrap_or_default().matches(" worker ").count();
    wait_until("a second worker", Duration::from_secs(20), || workers() == 2).unwrap();
    let trace = ended(folder, ask(folder));
    let mut tries: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for entry in of_kind(&trace, "started").filter(|entry| entry["role"] == "worker") {
        tries.entry(entry["task"].to_string()).or_default().push(&entry["by"]);
    }
    assert_eq!(tries.len(), 6, "{tries:?}");
    for agents in tries.values() {
        let twice = agents.iter().any(|agent| agents.iter().filter(|other| other == &agent).count() > 1);
        assert!(!twice, "no agent tries a task again that it failed: {tries:?}");
    }
    let told = || folder.output(&["ps"]).unwrap_or_default().contains("it failed 3 tasks in a row");
    wait_until("ps with the reason", Duration::from_secs(10), told).unwrap();
    broken.kill().unwrap();
    broken.wait().unwrap();
}
