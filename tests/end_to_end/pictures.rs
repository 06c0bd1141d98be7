//! Pictures among the documents: the task's own model is shown one when it asks to be, and the record holds none of its bytes.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use muster_support::fleet::Folder;
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::help::{act, done, plan_and_report, submit};
use super::support::{citations, of_kind, with_model};

const GOAL: &str = "How high is the tower in the picture?";
const SAID: &str = "A tower, 42 m high.";
/// One red pixel, and a word by which its bytes are found wherever they stand.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\
                         \0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82\
                         somewhere-else-nowhere";

fn answer(request: &CapturedRequest) -> Reply {
    if request.system().contains("You are shown one picture") {
        return Reply::text(SAID).with_usage(900, 9, 0);
    }
    let task = json!({
        "name": "the tower", "goal": "Look how high it is.", "role": "worker", "tools": ["corpus.read"]
    });
    let body = match request.holds("42 m") {
        true => "# The tower\n\nThe tower is 42 m high [tower.dat:1].",
        false => "# The tower\n\nNobody could look.",
    };
    if let Some(reply) = plan_and_report(request, &[task], body) {
        return reply;
    }
    if request.turns() == 0 {
        return act("corpus_look", json!({ "path": "tower.dat", "question": "How high is it?" }));
    }
    if request.last_text().contains("not known to see pictures") {
        return done("Nobody could look.");
    }
    let citation = json!({ "path": "tower.dat", "line": 1, "quote": "a tower, 42 m high" });
    let finding = json!({ "text": "The tower is 42 m high.", "citations": [citation], "verified": true });
    submit(&json!({
        "thought": "So.", "ending": "done", "conclusion": "The tower is 42 m high.", "findings": [finding]
    }))
}

/// A run over a folder with that picture, and one text.
fn ran(settings: &[&str]) -> (Folder, ModelServer, Value) {
    let server = ModelServer::start(Script::answering(answer)).unwrap();
    let folder = with_model(&server);
    folder.write("docs/tower.dat", PICTURE).unwrap();
    folder.write("docs/notes.md", "# Notes\n\nThe picture shows a building.\n").unwrap();
    let mut args = vec!["run", GOAL, "--docs", "docs", "-o", "report.md", "--json", "--planning", "always"];
    args.extend(["--set", "agent.model=openai/scripted"]);
    args.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let summary = folder.json(&args).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}\n{}", folder.logs());
    (folder, server, summary)
}

/// The step in which the picture was to be looked at.
fn look(folder: &Folder) -> (Value, String) {
    let trace = folder.json_lines(&["trace", "last", "--json", "--full"]).unwrap();
    let is_it =
        |entry: &&Value| entry["event"]["action"]["name"].as_str().is_some_and(|name| name.ends_with("look"));
    let step = of_kind(&trace, "step").find(is_it).map(|entry| entry["event"].clone()).unwrap_or_default();
    (step, trace.iter().map(Value::to_string).collect())
}

#[test]
fn a_model_that_sees_is_shown_a_picture_that_the_record_does_not_hold() {
    let (folder, server, _) = ran(&["agent.capabilities.scripted.sees=true"]);
    let log = server.log();
    let shown =
        log.iter().find(|entry| entry.request.system().contains("You are shown one picture")).unwrap();
    let messages = shown.request.body["messages"].as_array().unwrap();
    let parts = messages.last().unwrap()["content"].as_array().unwrap();
    let data = STANDARD.encode(PICTURE);
    assert_eq!(parts[0]["image_url"]["url"], format!("data:image/png;base64,{data}"));
    let line = "[picture: PNG, 1 x 1, 91 bytes; corpus.look shows it to a model]";
    let text = format!("How high is it?\n\nThe picture is the document tower.dat: {line}");
    assert_eq!(parts[1], json!({ "type": "text", "text": text }));
    assert!(log.iter().any(|entry| entry.request.tools.iter().any(|tool| tool == "corpus_look")));

    let (step, record) = look(&folder);
    let seen = step["observation"]["content"].as_str().unwrap();
    assert!(seen.starts_with("tower.dat:1, as the model openai/scripted"), "{step:#}");
    assert!(seen.ends_with(SAID), "{seen}");
    let aside = step["calls"].as_array().unwrap().iter().find(|call| call["aside"] == true).unwrap();
    assert_eq!(aside["template"]["name"], "asked-by:corpus.look");
    assert_eq!(aside["usage"]["input_tokens"], 900, "the task pays for it");
    assert!(aside.to_string().contains("[picture image/png, 91 bytes, sha256 "), "{aside:#}");
    let middle = &data[40..80];
    assert!(!record.contains(middle) && !record.contains("somewhere-else-nowhere"), "no bytes of it");

    let report = fs::read_to_string(folder.path().join("report.md")).unwrap();
    assert!(
        citations(&report).contains(&("tower.dat".to_owned(), 1)) || report.contains("tower.dat:1"),
        "{report}"
    );
    folder.output(&["replay", "last"]).unwrap();
    let prompt = folder.output(&["prompt", "last", "1", "1"]).unwrap();
    assert!(!prompt.contains(middle), "{prompt}");
}

#[test]
fn a_model_that_is_not_known_to_see_is_told_so() {
    let (folder, server, _) = ran(&[]);
    let log = server.log();
    assert!(log.iter().all(|entry| !entry.request.tools.iter().any(|tool| tool == "corpus_look")));
    assert!(log.iter().all(|entry| !entry.request.body.to_string().contains("image_url")));
    let (step, _) = look(&folder);
    let told = step["observation"]["content"].as_str().unwrap_or_default();
    assert!(told.contains("its model is not known to see pictures"), "{step:#}");
    folder.output(&["replay", "last"]).unwrap();
}
