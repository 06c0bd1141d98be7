//! Tasks that several agents do: committees, and groups of whom the first good result counts.

use std::time::Duration;

use muster_support::model_server::{CapturedRequest, Fault, Reply};
use serde_json::{Value, json};

use super::scenarios::{ask, asker, done, learnt, model, plan, written};
use super::support::of_kind;

const GOAL: &str = "Find out which colour apples have, and say how sure that is.";

fn task(pattern: &str) -> Value {
    json!([{ "name": "the colour", "goal": "Find out the colour.", "role": "worker", "pattern": pattern }])
}

fn others(who: &str, request: &CapturedRequest, pattern: &str) -> Reply {
    match who {
        "planner" => plan(&task(pattern)),
        "reflector" => learnt("It went as planned."),
        "writer" => written("# Colours\n\nApples are red."),
        who => panic!("{who} asks: {:?}", request.messages),
    }
}

#[test]
fn a_committee_that_splits_two_to_one_reports_its_verdict_with_the_dissent() {
    let (_server, folder) = model(|who, request| match who {
        "1~a" | "1~c" => done("Apples are red."),
        "1~b" => done("Apples are green."),
        who => others(who, request, "committee:3"),
    });
    let ended = ask(&folder, GOAL, &["--planning", "always"]);
    let report = ended.report(&folder);
    assert!(report.contains("Apples are red.") && report.contains("1~b: Apples are green."), "{report}");
    let verdict = &ended.state["groups"]["1"]["verdict"];
    assert_eq!((&verdict["counts"], &verdict["by"]), (&json!("1~a"), &json!("majority")), "{verdict}");
    assert_eq!(verdict["dissent"][0]["member"], "1~b");
    let shown = folder.output(&["show", "last"]).unwrap();
    assert!(shown.contains("1~b member") && shown.contains("2 of 3 agree"), "{shown}");
    let one = folder.output(&["show", "last", "1"]).unwrap();
    assert!(one.contains("committee:3") && one.contains("1~b: Apples are green."), "{one}");
    let traced = folder.output(&["trace", "last"]).unwrap();
    assert!(traced.contains("1 is done by 1~a, 1~b, 1~c") && traced.contains("dissent: 1~b"), "{traced}");
    let drawn = folder.output(&["graph", "last"]).unwrap();
    assert!(drawn.contains("t1 -.- t1ma"), "{drawn}");
}

#[test]
fn members_of_a_committee_read_what_the_others_found_and_think_again() {
    let (_server, folder) = model(|who, request| match who {
        "1~a" => done("Apples are red."),
        "1~b" if request.holds("Round 1 of discussion") => {
            assert!(
                request.holds("view of 1~a") && request.holds("Apples are red."),
                "{}",
                request.last_text()
            );
            done("Apples are red.")
        }
        "1~b" => done("Apples are green."),
        who => others(who, request, "committee:2:1"),
    });
    let ended = ask(&folder, GOAL, &["--planning", "always"]);
    ended.report(&folder);
    let verdict = &ended.state["groups"]["1"]["verdict"];
    assert_eq!(verdict["by"], "unanimity", "{verdict}");
}

#[test]
fn of_a_redundant_group_the_first_good_result_counts_and_the_slow_one_is_billed_no_further() {
    let (server, folder) = model(|who, request| match who {
        "1~a" if request.turns() == 0 => Reply::fault(Fault::Slow(Duration::from_secs(30))),
        "1~b" => done("Apples are red."),
        who => others(who, request, "redundant:2"),
    });
    let ended = ask(&folder, GOAL, &["--planning", "always"]);
    ended.report(&folder);
    let tasks = &ended.state["tasks"];
    assert_eq!((&tasks["1"]["status"], &tasks["1~a"]["status"]), (&json!("completed"), &json!("aborted")));
    assert_eq!(ended.state["groups"]["1"]["verdict"]["counts"], "1~b");
    let asked = server.log().iter().filter(|entry| asker(&entry.request) == "1~a").count();
    assert!(asked <= 1, "the slow one was asked {asked} times");
    let outcome = of_kind(&ended.trace, "outcome").find(|entry| entry["task"] == "1~a");
    assert!(outcome.is_none_or(|outcome| outcome["event"]["ending"] == "cancelled"), "{outcome:?}");
}
