//! A reviewer reads the draft of the report before it is delivered.

use std::process::Stdio;
use std::time::Duration;

use muster_support::fleet::{both, wait_until};
use muster_support::model_server::{CapturedRequest, ModelServer, Reply};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::scenarios::{ask, asker, done, ended, learnt, model, plan, submit, written};
use super::support::{of_kind, signal};

const LIMIT: Duration = Duration::from_secs(60);
const GOAL: &str = "Find out which colour apples have and how much they weigh.";
const FIRST: &str = "# Apples\n\nApples are blue.";
const SECOND: &str = "# Apples\n\nApples are red and weigh 150 g.";

fn others(who: &str, request: &CapturedRequest) -> Reply {
    match who {
        "planner" => {
            plan(&json!([{ "name": "apples", "goal": "Find out colour and weight.", "role": "worker" }]))
        }
        "1" => done("Apples are red and weigh 150 g."),
        "reflector" => learnt("It went as planned."),
        "writer" if request.holds("somebody else reviewed it") => {
            assert!(request.holds("Apples are blue.") && request.holds("no result says blue"));
            assert!(request.holds("how much they weigh"), "{}", request.last_text());
            written(SECOND)
        }
        "writer" => written(FIRST),
        who => panic!("{who} asks: {:?}", request.messages),
    }
}

fn revise() -> Reply {
    submit(&json!({
        "thought": "Blue?", "verdict": "revise",
        "remarks": [{ "place": "Apples", "text": "no result says blue" }],
        "unanswered": ["how much they weigh"], "unsupported": ["Apples are blue."],
    }))
}

fn reviewed(who: &str, request: &CapturedRequest) -> Reply {
    match who {
        "reviewer" if request.holds("weigh 150 g.\n") && request.holds("written again upon") => {
            submit(&json!({ "thought": "All is met.", "verdict": "accept" }))
        }
        "reviewer" => {
            assert!(request.holds("Apples are blue."), "{}", request.last_text());
            revise().with_delay(Duration::from_millis(1_500))
        }
        who => others(who, request),
    }
}

/// How often somebody was asked, in whatever words.
fn calls(server: &ModelServer, who: &str) -> usize {
    server.log().iter().filter(|entry| asker(&entry.request) == who).count()
}

#[test]
fn a_draft_is_written_again_upon_remarks_though_the_orchestrator_is_killed_meanwhile() {
    let (server, folder) = model(reviewed);
    let fleet = folder.up(&["--set", "agent.model=openai/scripted"]).unwrap();
    let folder = fleet.folder();
    let asking = ["run", GOAL, "--json", "--planning", "always", "--draft-review", "--deadline", "60s"];
    let asked = folder.command(&asking).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.wait_until(LIMIT, |server| calls(server, "reviewer") == 1).unwrap();
    let before = fleet.pid("orchestrator-1").unwrap();
    signal(before, Signal::SIGKILL);
    wait_until("another is there", LIMIT, || fleet.pid("orchestrator-1").is_some_and(|pid| pid != before))
        .unwrap();
    let output = asked.wait_with_output().unwrap();
    let ended = ended(folder, output.status.code(), &output.stdout, both(&output));
    assert_eq!(ended.report(folder), SECOND);
    assert_eq!((calls(&server, "reviewer"), calls(&server, "writer")), (2, 2), "nothing is asked twice");
    assert_eq!((server.arrived(), server.completed()), (7, 7), "{}", folder.logs());

    let reviews = &ended.state["drafts"]["reviews"];
    assert_eq!(reviews[0]["end"]["reviewed"]["revise"], true, "{reviews}");
    assert_eq!(reviews[1]["end"]["reviewed"]["review"]["verdict"], "accept", "{reviews}");
    assert_eq!(reviews.as_array().map(Vec::len), Some(2));
    let outcomes: Vec<&Value> =
        of_kind(&ended.trace, "outcome").filter(|entry| entry["task"] == "draft-review-1").collect();
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    let traced = folder.output(&["trace", "last"]).unwrap();
    for wanted in [
        "the draft of the report is reviewed before it is delivered (review 1)",
        "review 1 of the draft: it is written again",
        "remark: Apples: no result says blue",
        "remark: not answered: how much they weigh",
        "remark: not supported by the results: Apples are blue.",
        "review 2 of the draft: accepted",
    ] {
        assert!(traced.contains(wanted), "{wanted}: {traced}");
    }
    let shown = folder.output(&["show", "last"]).unwrap();
    assert!(shown.contains("review the draft") && shown.contains("1. it is written again"), "{shown}");
    let replayed = folder.output(&["replay", "last"]);
    assert!(replayed.is_ok(), "{replayed:?}");
}

#[test]
fn remarks_for_which_no_round_is_left_are_said_in_the_report() {
    let (_server, folder) = model(|who, request| match who {
        "reviewer" => revise(),
        who => others(who, request),
    });
    let more = ["--planning", "always", "--set", "limits.draft_review=on"];
    let ended = ask(&folder, GOAL, &more);
    let report = ended.report(&folder);
    assert!(report.starts_with(SECOND) && report.contains("- Apples: no result says blue"), "{report}");
    let unanswered = &ended.summary["report"]["unanswered"];
    assert!(unanswered.as_array().unwrap().contains(&json!("how much they weigh")), "{unanswered}");
}
