//! A program that has only a NATS client and speaks JSON by the published schema.

use std::time::Duration;

use muster_support::foreign::Stranger;
use serde_json::{Value, json};

use super::support::folder;

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
        "sent": 0,
        "body": { "type": "command", "content": {
            "command": "submit", "run": simple, "goal": { "text": "What is 6 * 7?", "encoding": "json" }
        } },
    });
    stranger.publish(&format!("cmd.{simple}.submit"), envelope.to_string().as_bytes()).unwrap();

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

fn assert_valid(schema: &Value, message: &Value) {
    let validator = jsonschema::validator_for(schema).expect("the schema itself is valid");
    let faults: Vec<String> = validator.iter_errors(message).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?} in {message}");
}
