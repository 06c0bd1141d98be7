//! Tasks that agents bid for.

use muster_support::model_server::{CapturedRequest, Reply};
use serde_json::{Value, json};

use super::scenarios::{ask, done, learnt, model, plan, written};
use super::support::of_kind;

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
