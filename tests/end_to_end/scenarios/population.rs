//! Search, compute, answer: a number is found in documents, a share of it is computed from what was found, and the report
//! has both.

use muster_support::model_server::{CapturedRequest, Reply};
use serde_json::json;

use super::super::support::of_kind;
use super::{ask, done, learnt, model, plan, submit, written};

const CITIES: &str =
    "# Cities\n\nOsaka has 2753862 inhabitants.\nTokyo has 14047590 inhabitants.\nKyoto is smaller.\n";
const GOAL: &str = "Find the population of Tokyo, and work out a tenth of it.";

/// The first run of digits after these words, wherever the request has it.
fn number_after(request: &CapturedRequest, words: &str) -> String {
    let found = request.messages.iter().rev().find_map(|message| message.text.split_once(words));
    let rest = found.map(|(_, rest)| rest).unwrap_or_default();
    rest.chars().skip_while(|letter| !letter.is_ascii_digit()).take_while(char::is_ascii_digit).collect()
}

/// Nothing is known to this model but what it was shown.
fn answer(who: &str, request: &CapturedRequest) -> Reply {
    match (who, request.turns()) {
        ("planner", _) => plan(&json!([
            { "name": "population", "goal": "Find the population of Tokyo.", "role": "researcher" },
            { "name": "tenth", "goal": "Compute a tenth of it: {{population.result}}", "depends_on": ["population"] },
        ])),
        ("1", 0) => {
            Reply::call("corpus_search", &json!({ "thought": "Look it up.", "query": "Tokyo inhabitants" }))
        }
        ("1", _) => {
            let people = number_after(request, "Tokyo has");
            submit(&json!({
                "thought": "There it stands.", "ending": "done", "conclusion": format!("Tokyo has {people} inhabitants."),
                "findings": [{ "text": format!("Tokyo has {people} inhabitants."), "confidence": 95, "citations": [
                    { "path": "cities.md", "line": 4, "quote": "Tokyo has 14047590 inhabitants." },
                ]}],
            }))
        }
        ("2", 0) => {
            let people = number_after(request, "Tokyo has");
            let expression = format!("{people} / 10");
            Reply::call("calculator", &json!({ "thought": "A tenth.", "expression": expression }))
        }
        ("2", _) => {
            done(&format!("A tenth of it is {}.", request.last_text().rsplit("= ").next().unwrap().trim()))
        }
        ("reflector", _) => learnt("It went as planned."),
        ("writer", _) => {
            let (people, tenth) =
                (number_after(request, "Tokyo has"), number_after(request, "A tenth of it is"));
            written(&format!("Tokyo has {people} inhabitants (`cities.md:4`); a tenth of it is {tenth}."))
        }
        (who, _) => panic!("{who} asks: {:?}", request.messages),
    }
}

#[test]
fn what_was_found_is_computed_with_and_both_are_answered() {
    let (server, folder) = model(answer);
    folder.write("docs/cities.md", CITIES).unwrap();
    let ended = ask(&folder, GOAL, &["--docs", "docs"]);
    let report = ended.report(&folder);
    assert_eq!(report, "Tokyo has 14047590 inhabitants (`cities.md:4`); a tenth of it is 1404759.");
    let tools: Vec<(&str, &str)> = of_kind(&ended.trace, "step")
        .map(|entry| (entry["task"].as_str().unwrap(), entry["event"]["action"]["name"].as_str().unwrap()))
        .collect();
    assert_eq!(tools, [("1", "corpus.search"), ("2", "calculator")], "each in its turn, and nothing else");
    let sequence = |kind: &str, task: &str| {
        of_kind(&ended.trace, kind).find(|entry| entry["task"] == task).unwrap()["seq"].as_u64().unwrap()
    };
    assert!(sequence("outcome", "1") < sequence("started", "2"), "what is computed waits for what is found");
    assert!(server.violations().is_empty(), "{:?}", server.violations());
}
