#![allow(clippy::unwrap_used)]
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::model_server::{Protocol, SeenCall, SeenMessage};

const PASSAGES: &str = "kestrel.md:10-13 (Kestrel > Limits)\n10| ## Limits\n11| \n12| A loop ends after 25 iterations.\n13| Retries are free.\n\n\
                        twin.md:4-6 (Twin)\n4| # Twin\n5| \n6| The iteration limit is 40 per engine.";

fn tool(name: &str, fields: &[&str], required: &[&str]) -> Value {
    let fields: serde_json::Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": fields, "required": required}}})
}

/// A request with these messages.
pub(super) fn captured(model: &str, messages: Vec<SeenMessage>, body: Value) -> CapturedRequest {
    CapturedRequest {
        number: 1,
        at: Duration::ZERO,
        protocol: Protocol::OpenAi,
        model: model.into(),
        stream: false,
        key: None,
        messages,
        tools: Vec::new(),
        body,
        violations: Vec::new(),
    }
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
    captured("good", messages, json!({"tools": tools}))
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
