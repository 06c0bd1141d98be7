#![allow(clippy::unwrap_used)]
use std::time::Duration;

use serde_json::{Value, json};

use super::facts::{best, lines};
use super::request::fences;
use super::words::{asked, columns, files, sums};
use super::*;
use crate::model_server::{Protocol, SeenCall, SeenMessage};

const PASSAGES: &str = "kestrel.md:10-13 (Kestrel > Limits)\n10| ## Limits\n11| \n12| A loop ends after 25 iterations.\n13| Retries are free.\n\n\
                        twin.md:4-6 (Twin)\n4| # Twin\n5| \n6| The iteration limit is 40 per engine.";

fn tool(name: &str, fields: &[&str], required: &[&str]) -> Value {
    let fields: serde_json::Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": fields, "required": required}}})
}

fn request(task: &str, observed: &[(&str, Value, &str)], tools: &[Value]) -> CapturedRequest {
    let message =
        |role: &str, text: String| SeenMessage { role: role.into(), text, ..SeenMessage::default() };
    let mut messages = vec![
        message("system", "You are somebody.".into()),
        message("user", format!("Do this:\n<<<n0 task\n{task}\nn0>>>\n")),
    ];
    for (at, (tool, arguments, text)) in observed.iter().enumerate() {
        let id = format!("c{at}");
        let call = SeenCall { id: id.clone(), name: (*tool).into(), arguments: arguments.clone() };
        messages.push(SeenMessage { calls: vec![call], ..message("assistant", String::new()) });
        messages.push(SeenMessage {
            answers: Some(id),
            ..message("tool", format!("<<<n0 observation\n{text}\nn0>>>"))
        });
    }
    CapturedRequest {
        number: 1,
        at: Duration::ZERO,
        protocol: Protocol::OpenAi,
        model: "good".into(),
        stream: false,
        key: None,
        messages,
        tools: Vec::new(),
        body: json!({"tools": tools}),
        violations: Vec::new(),
    }
}

fn research_tools() -> Vec<Value> {
    vec![
        tool("docs_search", &["query", "thought"], &["query"]),
        tool(
            "submit",
            &["ending", "conclusion", "findings", "body", "unanswered", "reason"],
            &["ending", "conclusion"],
        ),
    ]
}

fn step(request: &CapturedRequest) -> answers::Answer {
    leaf::step(&Seen::of(request))
}

#[test]
fn what_a_text_asks_for_is_read() {
    let compared = asked(
        "Compare the four documents by their iteration limits, recovery and memory, and recommend one. Cite path:line.",
    );
    assert_eq!(
        (compared.of_each, compared.aspects.as_slice()),
        (true, &["iteration limits", "recovery", "memory"].map(str::to_owned)[..])
    );
    let found = asked("Find what each document says about iteration limits, recovery. Cite every finding.");
    assert_eq!(found.aspects, ["iteration limits", "recovery"]);
    assert_eq!(asked("How deep may it go? Who says so?").aspects, ["How deep may it go?", "Who says so?"]);
    let table = asked("How much may a goal cost in each of the designs? Write it to the file `a.md`.");
    assert_eq!(
        (table.of_each, table.aspects.as_slice()),
        (true, &["How much may a goal cost in each of the designs?".to_owned()][..])
    );
    let labels = |text: &str| sums(text).into_iter().map(|sum| sum.label).collect::<Vec<_>>();
    assert_eq!(labels("What is 17.5 % of 2480?"), ["17.5 % of 2480"]);
    assert_eq!(labels("Work out 12% of 1,995, 3 x 4 and their sum."), ["12 % of 1995", "3 x 4", "sum"]);
    assert_eq!(labels("Chapters 3 and 4 of 12"), Vec::<String>::new());
    assert_eq!(files("Write `a.csv` and b.md. Cite path:line."), ["a.csv", "b.md"]);
    assert_eq!(files("What does a.md say?"), Vec::<String>::new());
    assert_eq!(columns("with the columns share, of and result."), ["share", "of", "result"]);
    assert_eq!(fences("x\n<<<q goal\na\nb\nq>>>\n<<<q task\nc\nq>>>").len(), 2);
}

#[test]
fn the_line_that_says_it_is_found_under_its_heading() {
    let lines = lines(PASSAGES);
    assert_eq!(lines.len(), 7);
    let (line, _) = best(&lines, "iteration limits", Some("kestrel.md")).unwrap();
    assert_eq!((line.number, line.text.as_str()), (12, "A loop ends after 25 iterations."));
    assert_eq!(best(&lines, "iteration limits", Some("twin.md")).unwrap().0.number, 6);
    assert_eq!(best(&lines, "colour of paint", None), None);
}

#[test]
fn it_searches_then_submits_what_it_saw() {
    let task = "Compare the documents by iteration limits, and recommend one.";
    let first = step(&request(task, &[], &research_tools()));
    assert_eq!(first.calls[0].tool, "docs_search");
    assert_eq!(first.calls[0].arguments, json!({"query": "iteration limits"}));
    let seen = [("docs_search", json!({"query": "iteration limits", "thought": "t"}), PASSAGES)];
    let last = step(&request(task, &seen, &research_tools()));
    let result = last.submitted().unwrap();
    assert_eq!(
        result["findings"][0]["citations"][0],
        json!({"path": "kestrel.md", "line": 12, "quote": "A loop ends after 25 iterations."})
    );
    assert_eq!((&result["ending"], result["findings"].as_array().unwrap().len()), (&json!("done"), 2));
    assert!(result["body"].as_str().unwrap().contains("`twin.md:6`"), "{result}");
}

#[test]
fn it_computes_then_writes_then_submits() {
    let tools = [
        tool("calculator", &["expression"], &["expression"]),
        tool("workspace_write", &["path", "text"], &["path", "text"]),
        tool("submit", &["ending", "conclusion"], &["ending", "conclusion"]),
    ];
    let task = "Work out 17.5 % of 2480 and 3 x 4. Write `r.csv` with the columns what and value.";
    let first = step(&request(task, &[], &tools));
    assert_eq!(first.calls.len(), 2);
    let mut seen = vec![
        ("calculator", first.calls[0].arguments.clone(), "17.5 / 100 * 2480 = 434"),
        ("calculator", first.calls[1].arguments.clone(), "3 * 4 = 12"),
    ];
    let second = step(&request(task, &seen, &tools));
    assert_eq!(
        second.calls[0].arguments,
        json!({"path": "r.csv", "text": "what,value\n17.5 % of 2480,434\n3 x 4,12\n"})
    );
    seen.push(("workspace_write", second.calls[0].arguments.clone(), "Wrote 40 bytes."));
    let last = step(&request(task, &seen, &tools));
    assert!(last.submitted().unwrap()["conclusion"].as_str().unwrap().contains("434"));
}

#[test]
fn mistakes_follow_the_seed_and_are_made_once() {
    let task = "Compare the documents by iteration limits.";
    let seen = [("docs_search", json!({"query": "iteration limits"}), PASSAGES)];
    let asked = request(task, &seen, &research_tools());
    let bad = |seed| {
        let model = GoodModel::new(Temper { mistakes: 100, seed });
        (0..40).for_each(|_| drop(model.answer(&asked)));
        model.made()
    };
    assert_eq!(bad(1), bad(1));
    assert!(bad(1).values().all(|times| *times == 1), "{:?}", bad(1));
    assert!(bad(1).len() >= 7, "{:?}", bad(1));
    let model = GoodModel::new(Temper { mistakes: 0, seed: 1 });
    drop(model.answer(&asked));
    assert!(model.made().is_empty());
}

#[test]
fn a_citation_is_spoilt_wherever_the_result_names_it() {
    let seen = [("docs_search", json!({"query": "iteration limits"}), PASSAGES)];
    let asked = request("Compare the documents by iteration limits.", &seen, &research_tools());
    let (good, read) = (step(&asked), Seen::of(&asked));
    for (mistake, wanted) in [(Mistake::LineTooHigh, "kestrel.md:9998`"), (Mistake::WrongFile, "twin.md:12`")]
    {
        assert!(mistake.fits(&read, &good));
        let bad = fault::spoilt(mistake, 0, &read, good.clone());
        assert!(bad.submitted().unwrap()["body"].as_str().unwrap().contains(wanted), "{mistake:?}");
    }
    let bad = fault::spoilt(Mistake::QuoteNumber, 0, &read, good);
    assert_eq!(
        bad.submitted().unwrap()["findings"][0]["citations"][0]["quote"],
        "A loop ends after 36 iterations."
    );
}
