//! Tasks that agents bid for.

use std::process::Stdio;
use std::time::Duration;

use muster_support::fleet::{both, wait_until};
use muster_support::model_server::{CapturedRequest, Fault, Reply};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::scenarios::{ask, done, ended, learnt, model, plan, written};
use super::support::{of_kind, signal};

const GOAL: &str = "Find out which colour apples have, and say how sure that is.";

fn answer(who: &str, request: &CapturedRequest) -> Reply {
    match who {
        "planner" => plan(&json!([
            { "name": "the colour", "goal": "Find out the colour.", "role": "worker", "pattern": "auction" },
        ])),
        "1" => done("Apples are red."),
        "reflector" => learnt("It went as planned."),
        "writer" => written("# Colours\n\nApples are red."),
        who => panic!("{who} asks: {:?}", request.messages),
    }
}

fn awards(trace: &[Value]) -> Vec<Value> {
    let decided =
        of_kind(trace, "decided").flat_map(|entry| entry["event"]["events"].as_array().into_iter().flatten());
    decided.filter(|event| event["event"] == "task_awarded").cloned().collect()
}

#[test]
fn a_task_goes_to_whose_bid_wins() {
    let (_server, folder) = model(answer);
    let fleet = folder.up(&["--scale", "worker=2", "--set", "agent.model=openai/scripted"]).unwrap();
    let folder = fleet.folder();
    let ended = ask(folder, GOAL, &["--planning", "always"]);
    ended.report(folder);
    let awards = awards(&ended.trace);
    assert_eq!(awards.len(), 1, "{awards:?}");
    let winner = awards[0]["to"].as_str().unwrap_or_else(|| panic!("{awards:?}")).to_owned();
    let started = of_kind(&ended.trace, "started").find(|entry| entry["task"] == "1").unwrap();
    assert_eq!(started["by"], json!(winner));
    let traced = folder.output(&["trace", "last"]).unwrap();
    for part in ["agents are asked to bid for 1", "1 is awarded to", "and won", "its bid for 1"] {
        assert!(traced.contains(part), "{part:?} in {traced}");
    }
}

#[test]
fn whoever_dies_with_an_award_is_replaced() {
    let stuck = std::sync::atomic::AtomicUsize::new(0);
    let (_server, folder) = model(move |who, request| match who {
        "1" if stuck.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 => Reply::fault(Fault::Hang),
        who => answer(who, request),
    });
    let fleet = folder.up(&["--scale", "worker=2", "--set", "agent.model=openai/scripted"]).unwrap();
    let folder = fleet.folder();
    let asking = ["run", GOAL, "--json", "--planning", "always", "--deadline", "60s"];
    let asked = folder.command(&asking).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let winner = || {
        let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap_or_default();
        let started = of_kind(&trace, "started").find(|entry| entry["task"] == "1")?.clone();
        let holds_award = awards(&trace).first()?["to"] == started["by"];
        assert!(holds_award, "{started}");
        u32::try_from(started["event"]["pid"].as_u64()?).ok()
    };
    wait_until("the winner is at work", Duration::from_secs(30), || winner().is_some()).unwrap();
    signal(winner().unwrap(), Signal::SIGKILL);
    let output = asked.wait_with_output().unwrap();
    let ended = ended(folder, output.status.code(), &output.stdout, both(&output));
    assert!(ended.report(folder).contains("Apples are red."));
    let holders: Vec<&Value> = of_kind(&ended.trace, "started")
        .filter(|entry| entry["task"] == "1")
        .map(|entry| &entry["by"])
        .collect();
    assert!(holders.len() >= 2 && holders.first() != holders.last(), "{holders:?}");
    let outcomes = of_kind(&ended.trace, "outcome").filter(|entry| entry["task"] == "1").count();
    assert_eq!(outcomes, 1, "it is done once");
}
