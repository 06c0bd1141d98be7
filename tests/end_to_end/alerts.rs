//! Alerts of a running fleet: a waiting question and a failing tool are each posted once when they fire and once when they are
//! resolved, although the receiver fails and the fleet restarts.

mod receiver;

use std::process::Stdio;
use std::time::Duration;

use muster_support::fleet::{Fleet, both, wait_until};
use muster_support::model_server::{CapturedRequest, ModelServer};
use serde_json::{Value, json};

use self::receiver::{Mode, Receiver};
use super::help::{act, done, script_of};
use super::support::with_model;

const LIMIT: Duration = Duration::from_secs(60);

/// Rule and status of each alert that was delivered, sorted.
fn delivered(receiver: &Receiver) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let taken = receiver.taken();
    let alerts = taken.iter().flat_map(|one| one.json()["alerts"].as_array().cloned().unwrap_or_default());
    let mut all: Vec<_> = alerts.map(|alert| (text(&alert["rule"]), text(&alert["status"]))).collect();
    all.sort();
    all
}

fn until_delivered(fleet: &Fleet, receiver: &Receiver, rule: &str, status: &str) {
    let wanted = (rule.to_owned(), status.to_owned());
    wait_until(&format!("{rule} is {status}"), LIMIT, || delivered(receiver).contains(&wanted))
        .unwrap_or_else(|late| panic!("{late}: {:?}\n{}", delivered(receiver), fleet.folder().logs()));
}

#[test]
fn each_alert_is_posted_once_although_receiver_and_fleet_fail() {
    let receiver = Receiver::start();
    // Two tasks with three failing calls each: more of one task would count as a loop.
    let tasks = ["try it", "try it again"]
        .map(|name| json!({"name": name, "goal": format!("Use the tool to {name}."), "role": "worker"}));
    let server =
        ModelServer::start(script_of(tasks.to_vec(), |request: &CapturedRequest| match request.turns() {
            turn @ 0..=2 => act("own_broken", json!({"word": format!("w{turn}")})),
            _ => done("It does not work."),
        }))
        .unwrap();
    let folder = with_model(&server).with("MUSTER_ALERTS_WEBHOOK", receiver.url());
    folder.write(".config/muster/muster.toml", "[alerts]\nmax_question_wait = \"500ms\"\n").unwrap();
    let tool = "description = \"Says words.\"\ncommand = [\"false\"]\nsandbox = false\n\n[parameters]\ntype = \"object\"\n\
                properties.word.type = \"string\"\n";
    folder.write("tools/broken.tool.toml", tool).unwrap();
    folder.output(&["trust", "--yes"]).unwrap();
    let words = ["agent.model=openai/scripted"];
    let words: Vec<&str> = words.iter().flat_map(|setting| ["--set", setting]).collect();
    let fleet = folder.up(&words).unwrap();
    let folder = fleet.folder();

    // A question waits while the receiver fails in every way.
    receiver.set(Mode::Says(500));
    let run = ["run", "What works?", "--planning", "always", "--review", "--json", "--deadline", "110s"];
    let asker = folder.command(&run).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let tries =
        |mode: Mode| receiver.requests().iter().filter(|one| one.mode == mode && one.path == "/hook").count();
    for mode in [Mode::Says(500), Mode::Redirects] {
        receiver.set(mode);
        wait_until("it is tried", LIMIT, || tries(mode) > 0)
            .unwrap_or_else(|late| panic!("{late}\n{}", folder.logs()));
    }
    assert!(delivered(&receiver).is_empty());
    receiver.set(Mode::Takes);
    until_delivered(&fleet, &receiver, "questions", "firing");

    folder.output(&["approve", "last"]).unwrap();
    until_delivered(&fleet, &receiver, "questions", "resolved");
    let ended = asker.wait_with_output().unwrap();
    let summary: Value = serde_json::from_slice(&ended.stdout).unwrap_or_default();
    until_delivered(&fleet, &receiver, "tool_failures", "firing");

    let wanted = [("questions", "firing"), ("questions", "resolved"), ("tool_failures", "firing")];
    let wanted = wanted.map(|(rule, status)| (rule.to_owned(), status.to_owned()));
    assert_eq!(delivered(&receiver), wanted, "{}", folder.logs());
    let requests = receiver.requests();
    assert!(requests.iter().all(|one| one.path == "/hook"), "no redirect was followed");
    let question = receiver.taken()[0].json();
    let run = summary["run"].as_str().unwrap();
    assert!(question["text"].as_str().unwrap().contains("question 1 has waited"), "{question}");
    assert_eq!(question["alerts"][0]["subject"], format!("{run}/1"), "{question}");

    // The state outlives the fleet: nothing is posted again.
    let stored = std::fs::read_to_string(folder.path().join(".muster/alerts.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored["firing"], json!(["tool_failures/own.broken"]), "{stored}");
    folder.output(&["down"]).unwrap();
    let saved = || std::fs::metadata(folder.path().join(".muster/alerts.json")).unwrap().modified().unwrap();
    let before = saved();
    let up = [&["up", "--detach"], &words[..]].concat();
    let up = folder.run(&up).unwrap();
    assert!(up.status.success(), "{}", both(&up));
    // The evaluator saves its state after it has posted what it has to post.
    wait_until("the alerts are evaluated again", LIMIT, || saved() > before)
        .unwrap_or_else(|late| panic!("{late}\n{}", folder.logs()));
    assert_eq!(delivered(&receiver), wanted, "{}", folder.logs());
    folder.output(&["down"]).unwrap();
    assert!(!folder.logs().contains(&receiver.url()), "the URL is a secret");
}
