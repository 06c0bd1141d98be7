//! Results that contradict each other: found, settled, done again, and never unmarked in the report.

use muster_support::model_server::{CapturedRequest, Reply};
use serde_json::{Value, json};

use super::scenarios::{ask, learnt, model, plan, submit, written};

const GOAL: &str = "Find out how likely rain is in Paris on Saturday, from both forecasts.";

fn claiming(percent: u32, method: &str) -> Reply {
    submit(&json!({
        "thought": "That is what it says.", "ending": "done", "findings": [],
        "conclusion": format!("It rains with {percent} %."),
        "claims": [{ "subject": "chance of rain in Paris on Saturday", "value": percent, "unit": "%", "method": method }],
    }))
}

fn tasks() -> Value {
    json!([
        { "name": "first forecast", "goal": "Read the first forecast.", "role": "worker" },
        { "name": "second forecast", "goal": "Read the second forecast.", "role": "worker" },
    ])
}

/// The first read the wrong days, notices it when asked how it came to its value, and does it again.
fn weather(who: &str, request: &CapturedRequest) -> Reply {
    match who {
        "planner" => plan(&tasks()),
        "1" if request.holds("15 %") => claiming(15, "the forecast for Saturday"),
        "1" => claiming(30, ""),
        "2" => claiming(15, ""),
        "settle-1" => claiming(15, "I had read Saturday to Monday; for Saturday alone it is 15 %"),
        "settle-2" => claiming(15, "the forecast for Saturday"),
        "reflector" => learnt("It went as planned."),
        "writer" => written("# Rain\n\nIt rains in Paris on Saturday with 15 %."),
        who => panic!("{who} asks: {:?}", request.messages),
    }
}

#[test]
fn a_wrong_range_of_dates_is_found_by_asking_for_methods_and_mended() {
    let (_server, folder) = model(weather);
    let ended = ask(&folder, GOAL, &["--planning", "always"]);
    assert!(ended.report(&folder).contains("15 %"));
    let conflict = &ended.state["conflicts"]["1"];
    let verdict = &conflict["end"]["settled"];
    assert_eq!((&verdict["by"], &verdict["losers"]), (&json!("methods"), &json!(["1"])), "{conflict}");
    let traced = folder.output(&["trace", "last"]).unwrap();
    assert!(traced.contains("conflict 1: results contradict each other"), "{traced}");
    let shown = folder.output(&["show", "last"]).unwrap();
    assert!(shown.contains("chance of rain"), "{shown}");
}

#[test]
fn what_nobody_can_settle_is_marked_in_the_report() {
    let (_server, folder) = model(|who, request| match who {
        "1" => claiming(30, ""),
        "2" => claiming(15, ""),
        "writer" => written("# Rain\n\nIt rains in Paris on Saturday with 30 %."),
        "planner" => plan(&tasks()),
        "reflector" => learnt("It went as planned."),
        who => {
            assert!(!request.messages.is_empty());
            panic!("{who} is asked, though nobody is to be")
        }
    });
    let only_told = ["--planning", "always", "--set", "limits.conflicts.policy="];
    let ended = ask(&folder, GOAL, &only_told);
    let report = ended.report(&folder);
    assert!(report.contains("15 %") && report.contains("30 %"), "both sides are named: {report}");
}
