//! A program that has only a NATS client and speaks JSON by the published schema.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use muster_support::fleet::{Folder, both, wait_until};
use muster_support::foreign::{Stranger, UNREADABLE};
use muster_support::model_server::{Fault, ModelServer, Reply};
use muster_support::python;
use serde_json::{Value, json};

use super::help::{ask, done, ended, script_of, up};
use super::support::{folder, of_kind};

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn a_json_program_submits_a_goal_and_reads_the_whole_run() {
    let fleet = folder().up(&[]).unwrap();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let run = "0193f0c0-c0c0-7000-8000-00000000cafe";
    let simple = run.replace('-', "");
    let record = stranger.subscribe(&[&format!("run.{simple}.>"), &format!("evt.{simple}.>")]).unwrap();
    let envelope = json!({
        "v": 1,
        "id": "0193f0c0-c0c0-7000-8000-000000000001",
        "sender": "stranger",
        "sent": now(),
        "body": { "type": "command", "content": {
            "command": "submit", "run": simple, "goal": { "text": "What is 6 * 7?", "encoding": "json" }
        } },
    });
    stranger.order(&format!("cmd.{simple}.submit"), envelope.to_string().as_bytes()).unwrap();

    let schema: Value = fleet.folder().json(&["schema"]).unwrap();
    let (mut kinds, mut offers) = (Vec::new(), 0);
    let ended = loop {
        let (subject, bytes) = record.next(Duration::from_secs(60)).unwrap();
        let message: Value =
            serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{subject}: {error}"));
        assert_valid(&schema, &message);
        let kind = message["body"]["type"].as_str().unwrap().to_owned();
        let events = message["body"]["content"]["events"].as_array().cloned().unwrap_or_default();
        // A single offer travels inside its decision.
        offers += usize::from(kind == "offered" || message["body"]["content"]["offer"].is_object());
        kinds.push(kind);
        let end = |event: &&Value| ["run_completed", "run_failed"].iter().any(|end| event["event"] == *end);
        if let Some(end) = events.iter().find(end) {
            break end.clone();
        }
    };
    assert!(offers > 0, "offers were read");
    for kind in ["decided", "started", "outcome"] {
        assert!(kinds.iter().any(|found| found == kind), "{kind} was read: {kinds:?}");
    }
    assert_eq!(ended["event"], "run_completed", "{ended}\n{}", fleet.folder().logs());
    assert!(ended["report"]["body"].as_str().unwrap().contains("42"), "{ended}");
}

/// UTC milliseconds.
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

fn assert_valid(schema: &Value, message: &Value) {
    let validator = jsonschema::validator_for(schema).expect("the schema itself is valid");
    let faults: Vec<String> = validator.iter_errors(message).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?} in {message}");
}

/// Asks `ask.submit`, and reads the answer as the schema has it.
fn submit(stranger: &Stranger, schema: &Value, request: &str) -> Value {
    let bytes = stranger.request("ask.submit", request.as_bytes()).unwrap();
    let answer: Value = serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}"));
    assert_valid(schema, &answer);
    answer
}

#[test]
fn a_goal_that_is_submitted_by_request_is_answered() {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let schema: Value = folder.json(&["schema"]).unwrap();
    let ask = |goal: &str, more: Value| {
        let mut content = json!({ "ask": "submit", "goal": { "text": goal, "encoding": "json" } });
        content.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let id = "0193f0c0-c0c0-7000-8000-000000000009";
        let body = json!({ "type": "ask", "content": content });
        json!({ "id": id, "sender": "stranger", "sent": now(), "body": body }).to_string()
    };
    let sum = "What is 6 * 7?";
    let first = submit(&stranger, &schema, &ask(sum, json!({ "id": "order 66" })));
    assert_eq!(first["body"]["type"], "accepted", "{first}");
    assert_eq!(first["correlation"], "0193f0c0-c0c0-7000-8000-000000000009", "{first}");
    let run = first["body"]["content"]["run"].as_str().unwrap().to_owned();
    let again = submit(&stranger, &schema, &ask(sum, json!({ "id": "order 66" })));
    assert_eq!(again["body"]["content"]["run"], run.as_str(), "{again}");
    let ended = || folder.json(&["show", &run, "--json"]).is_ok_and(|shown| shown["status"] == "completed");
    wait_until("the run has ended", LIMIT, ended).unwrap();
    let named = "0193f0c0-c0c0-7000-8000-00000000beef".replace('-', "");
    for _ in 0..2 {
        let answer = submit(&stranger, &schema, &ask("What is 2 * 3?", json!({ "run": named })));
        assert_eq!(answer["body"]["content"]["run"], named.as_str(), "{answer}");
    }
    let runs = folder.json(&["runs", "--json"]).unwrap();
    assert_eq!(runs.as_array().unwrap().len(), 2, "asked twice, each is one run: {runs}");

    let other = ask("What is 6 * 8?", json!({ "id": "order 66" }));
    let both_ids = ask(sum, json!({ "id": "a", "run": named }));
    let not_ordered = ask(sum, json!({ "run": "0193f0c0c0c040008000000000000001" }));
    let priority = ask(sum, json!({})).replace("\"encoding\"", "\"priority\":1.5,\"encoding\"");
    let wrong_kind =
        json!({ "body": { "type": "heartbeat", "content": { "agent": "stranger" } } }).to_string();
    for (request, words) in [
        (ask("  ", json!({})), "body.content.goal: the goal is empty"),
        (other, "something else was asked under the id"),
        (both_ids, "give one of them"),
        (not_ordered, "version 7"),
        (priority, "body.content.goal.priority"),
        (wrong_kind, "field body.type"),
        ("{\"goal\": \"What is 6 * 7?\"}".to_owned(), "missing field `body`"),
        ("{ What is 6 * 7?".to_owned(), "not valid json"),
    ] {
        let answer = submit(&stranger, &schema, &request);
        assert_eq!(answer["body"]["type"], "error", "{request}: {answer}");
        let reason = answer["body"]["content"]["reason"].as_str().unwrap();
        assert!(reason.contains(words), "{request}: {reason}");
    }
    assert_eq!(
        folder.json(&["runs", "--json"]).unwrap().as_array().unwrap().len(),
        2,
        "nothing else was begun"
    );

    // An answer must not become a word of its own: into the record, for one.
    let into_record = format!("run.{run}.decided");
    stranger.publish_with_reply("ask.submit", &into_record, ask("  ", json!({})).as_bytes()).unwrap();
    stranger.flush().unwrap();
    submit(&stranger, &schema, &ask("  ", json!({})));
    assert!(folder.run(&["show", &run]).unwrap().status.success(), "the record is as it was");
}

#[test]
fn the_example_submits_a_goal_and_sees_its_end() {
    let Some(python) = python::with_nats().unwrap() else { return };
    let fleet = folder().up(&[]).unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/examples/submit_goal.py");
    let asked = |goal: &str| {
        // In the fleet's folder it finds the address and the owner's credentials by itself.
        let mut command = std::process::Command::new(&python);
        command.args([example, goal]).env_remove("NATS_URL").current_dir(fleet.folder().path());
        command.stdin(Stdio::null()).output().unwrap()
    };
    let answered = asked("What is 6 * 7?");
    assert!(answered.status.success() && both(&answered).contains("42"), "{}", both(&answered));
    let refused = asked("   ");
    assert!(!refused.status.success() && both(&refused).contains("the goal is empty"), "{}", both(&refused));
}

/// The agent that has task 1 of the newest run in hand, and the run.
fn at_work(folder: &Folder) -> (String, String) {
    let find = || {
        let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap_or_default();
        let started = of_kind(&trace, "started").find(|entry| entry["task"] == "1").cloned()?;
        Some((started["run"].as_str()?.to_owned(), started["by"].as_str()?.to_owned()))
    };
    wait_until("somebody is at it", LIMIT, || find().is_some()).unwrap();
    find().unwrap()
}

#[test]
fn what_an_agent_writes_and_nobody_can_read_costs_a_try_and_is_shown() {
    let hang = std::sync::Arc::new(AtomicBool::new(false));
    let hangs = std::sync::Arc::clone(&hang);
    let tasks = vec![json!({"name": "count", "goal": "Count the hops.", "role": "worker"})];
    let server = ModelServer::start(script_of(tasks, move |_| match hangs.swap(false, Ordering::SeqCst) {
        true => Reply::fault(Fault::Hang),
        false => done("Five."),
    }))
    .unwrap();
    let fleet = up(&server, folder(), &[]);
    let folder = fleet.folder();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    for (kind, payload, field) in UNREADABLE {
        hang.store(true, Ordering::SeqCst);
        let before = folder.output(&["runs", "--json"]).unwrap();
        let asker = ask(folder);
        wait_until("the run is there", LIMIT, || folder.output(&["runs", "--json"]).unwrap() != before)
            .unwrap();
        let (run, agent) = at_work(folder);
        stranger.publish(&format!("evt.{run}.worker.{agent}.1.1.{kind}"), payload.as_bytes()).unwrap();
        stranger.publish(&format!("evt.{run}.worker.{agent}.1.1.nonsense"), b"of no task").unwrap();
        stranger.flush().unwrap();
        let trace = ended(folder, asker);
        let shown = of_kind(&trace, kind).find_map(|entry| entry["event"]["unreadable"].as_str()).unwrap();
        assert!(shown.contains(field), "{payload}: {shown}");
        let told = folder.output(&["trace", &run]).unwrap();
        assert!(told.contains("[unreadable:") && told.contains("nonsense"), "{payload}: {told}");
        assert!(both(&folder.run(&["show", &run, "1"]).unwrap()).contains(field), "{payload}");
    }
    let letters = folder.output(&["dead", "list", "--json"]).unwrap();
    for (_, payload, field) in UNREADABLE {
        assert!(letters.contains(field), "{payload}: {letters}");
    }
}

#[test]
fn a_record_that_lost_its_beginning_is_named_in_one_line() {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let runs = ["0193f0c0c0c070008000000000000001", "0193f0c1c0c070008000000000000002"];
    for run in runs {
        stranger.publish(&format!("run.{run}.task.worker.1"), b"{}").unwrap();
        stranger.publish(&format!("run.{run}.decided"), b"{}").unwrap();
    }
    let lost = "0193f0c2c0c070008000000000000003";
    stranger.publish(&format!("run.{lost}.task.worker.1"), b"{}").unwrap();
    stranger.flush().unwrap();
    for command in [&["runs"][..], &["ps"]] {
        let said = both(&folder.run(command).unwrap());
        let lines: Vec<&str> = said.lines().filter(|line| line.contains("left out")).collect();
        assert!(lines.len() == 1 && lines[0].contains("3 runs are left out"), "{command:?}: {said}");
    }
    let shown = both(&folder.run(&["trace", lost]).unwrap());
    assert!(shown.contains("[unreadable:"), "{shown}");
    let checked = both(&folder.run(&["doctor"]).unwrap());
    assert!(
        checked.contains(&format!("run {}: its beginning is missing", &lost[lost.len() - 12..])),
        "{checked}"
    );
}
