//! Tasks that agents bid for.

use std::time::Duration;

use muster_support::bidder::Bidder;
use muster_support::fleet::wait_until;
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

/// What became of the bids that won: task, agent, whether it was held.
fn held(trace: &[Value]) -> Vec<(String, String, bool)> {
    let decided =
        of_kind(trace, "decided").flat_map(|entry| entry["event"]["events"].as_array().into_iter().flatten());
    let held = decided.filter(|event| event["event"] == "bid_held");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    held.map(|event| (text(&event["task"]), text(&event["agent"]), event["kept"] == true)).collect()
}

#[test]
fn whoever_promises_little_and_delivers_late_stops_winning() {
    const LIAR: &str = "worker-liar";
    let (_server, folder) = model(|who, request| match who {
        "planner" => {
            let task = |name: &str, after: &[&str]| {
                json!({
                    "name": name, "goal": format!("Find out the colour of the {name}."), "role": "worker",
                    "pattern": "auction", "depends_on": after,
                })
            };
            plan(&json!([task("apple", &[]), task("pear", &["apple"]), task("plum", &["pear"])]))
        }
        "2" | "3" => answer("1", request),
        who => answer(who, request),
    });
    let fleet = folder.up(&["--scale", "worker=1", "--set", "agent.model=openai/scripted"]).unwrap();
    let folder = fleet.folder();
    // Nothing is promised sooner than at once; for a while that wins whatever is done.
    let (promised, takes) = (Duration::ZERO, Duration::from_millis(600));
    let _liar = Bidder::join(&fleet.url(), "worker", LIAR, promised, takes).unwrap();
    let listed = || {
        let listed = folder.json(&["ps", "--json"]).unwrap_or_default();
        listed.as_array().into_iter().flatten().find(|one| one["agent"] == LIAR).cloned()
    };
    wait_until("the liar has joined", Duration::from_secs(30), || listed().is_some()).unwrap();

    let first = ask(folder, GOAL, &["--planning", "always"]);
    first.report(folder);
    let whose: Vec<Value> = awards(&first.trace).iter().map(|award| award["to"].clone()).collect();
    assert_eq!(whose.len(), 3, "{whose:?}");
    assert_eq!(whose[0], LIAR);
    let honest = whose[1].as_str().unwrap_or_else(|| panic!("{whose:?}")).to_owned();
    assert!(honest != LIAR && whose[2] == json!(honest), "{whose:?}");
    let lie = |task: &str, agent: &str, kept| (task.to_owned(), agent.to_owned(), kept);
    assert_eq!(held(&first.trace), [lie("1", LIAR, false), lie("2", &honest, true), lie("3", &honest, true)]);
    let starters: Vec<&Value> = of_kind(&first.trace, "started")
        .filter(|entry| ["1", "2", "3"].iter().any(|task| entry["task"] == *task))
        .map(|entry| &entry["by"])
        .collect();
    assert_eq!(starters, whose.iter().collect::<Vec<_>>(), "who was awarded a task did it");
    let traced = folder.output(&["trace", "last"]).unwrap();
    for part in [
        format!("{LIAR} bid 0 ms and $0.000000, 99 % sure: weighs 0.50 and won"),
        format!("{LIAR} did not hold its bid for 1: "),
        format!("{LIAR} bid 0 ms and $0.000000, 99 % sure, held 0 of 1 bids before"),
        format!("2 is awarded to {honest}"),
        format!("{honest} held its bid for 2: "),
    ] {
        assert!(traced.contains(&part), "{part:?} in {traced}");
    }

    // Later runs know it from the beginning, and people see it.
    let is_known = || listed().is_some_and(|one| one["track_record"]["bids_broken"] == 1);
    wait_until("what it did is known", Duration::from_secs(30), is_known).unwrap();
    assert!(folder.output(&["ps"]).unwrap().contains("1/1, 1 bid broken"));
    let second = ask(folder, GOAL, &["--planning", "always"]);
    second.report(folder);
    let whose: Vec<Value> = awards(&second.trace).iter().map(|award| award["to"].clone()).collect();
    assert_eq!(whose, [json!(honest), json!(honest), json!(honest)]);
    assert!(held(&second.trace).iter().all(|(_, agent, kept)| *agent == honest && *kept));
}

/// Joins as an agent that wins every auction, and has the run that is asked for show what it does with that.
fn with_a_winner(
    settings: &[&str],
    join: impl FnOnce(&str, &str) -> Result<Bidder, muster_support::foreign::StrangerError>,
) -> (Vec<Value>, String) {
    const WINNER: &str = "worker-winner";
    let (_server, folder) = model(answer);
    let usual = ["--scale", "worker=1", "--set", "agent.model=openai/scripted"];
    let fleet = folder.up(&[&usual[..], settings].concat()).unwrap();
    let folder = fleet.folder();
    let _winner = join(&fleet.url(), WINNER).unwrap();
    let listed = || {
        let listed = folder.json(&["ps", "--json"]).unwrap_or_default();
        listed.as_array().into_iter().flatten().find(|one| one["agent"] == WINNER).cloned()
    };
    wait_until("the winner has joined", Duration::from_secs(30), || listed().is_some()).unwrap();
    let ended = ask(folder, GOAL, &["--planning", "always"]);
    assert!(ended.report(folder).contains("Apples are red."));
    let whose: Vec<Value> = awards(&ended.trace).iter().map(|award| award["to"].clone()).collect();
    assert_eq!(whose, [json!(WINNER)], "it wins once, and not the same task again");
    assert_eq!(held(&ended.trace), [("1".to_owned(), WINNER.to_owned(), false)], "its bid is broken");
    let last = of_kind(&ended.trace, "outcome").filter(|entry| entry["task"] == "1").last().unwrap();
    assert_ne!(last["by"], WINNER);
    let is_known = || listed().is_some_and(|one| one["track_record"]["bids_broken"] == 1);
    wait_until("what it did is known", Duration::from_secs(30), is_known).unwrap();
    (ended.trace.clone(), folder.output(&["trace", "last"]).unwrap())
}

#[test]
fn a_winner_that_never_starts_loses_the_task_within_the_time_that_is_set() {
    let (trace, _) = with_a_winner(&["--set", "limits.start_within=2s"], |url, agent| {
        Bidder::join_idle(url, "worker", agent)
    });
    let started: Vec<&Value> = of_kind(&trace, "started").filter(|entry| entry["task"] == "1").collect();
    assert_eq!(started.len(), 1, "{started:?}");
}

#[test]
fn a_winner_that_falls_silent_loses_the_task_within_the_time_that_is_set() {
    let (trace, told) = with_a_winner(&["--set", "limits.silence=2s"], |url, agent| {
        Bidder::join(url, "worker", agent, Duration::ZERO, Duration::from_secs(600))
    });
    let started: Vec<&Value> = of_kind(&trace, "started").filter(|entry| entry["task"] == "1").collect();
    assert_eq!(started.len(), 2, "{started:?}");
    assert!(
        told.contains("1 is taken from worker-winner: worker-winner wrote nothing about it for"),
        "{told}"
    );
}
