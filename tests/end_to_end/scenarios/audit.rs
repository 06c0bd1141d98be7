//! The security of a program is looked at by a specialist that is one file in a folder: two looks, a result that is
//! verified link by link and mended once, and a report with every place.

use muster_support::model_server::{CapturedRequest, Reply};
use serde_json::{Value, json};

use super::super::support::{citations, of_kind};
use super::{ask, learnt, model, plan, submit, written};

const SPECIALIST: &str = "\
---
role: code_auditor
description: Names weaknesses of code with place and weight.
capabilities: [code security]
tools: [\"corpus.*\"]
contract:
  output:
    type: object
    required: [summary, weaknesses]
    properties:
      summary: {type: string, minLength: 1}
      weaknesses:
        type: array
        items:
          type: object
          required: [line, weight]
          properties:
            line: {type: integer, minimum: 1}
            weight: {enum: [low, high]}
---
Nothing counts that you have not read.

## Typical thoughts
- Is there a guard elsewhere?

## Done criteria
- Guards were looked for before each verdict
";

const CODE: &str = "\
const express = require('express');
const app = express();
app.get('/sum', (ask, give) => {
  give.send(String(eval(ask.query.terms)));
});
app.get('/find', (ask, give) => {
  store.all(\"SELECT * FROM boats WHERE name = '\" + ask.query.name + \"'\", (_, rows) => give.json(rows));
});
";

fn result(weights: [&str; 2]) -> Reply {
    let place = |line: u32, quote: &str| json!([{ "path": "server.js", "line": line, "quote": quote }]);
    submit(&json!({
        "thought": "Both are open: there is no guard.", "ending": "done", "conclusion": "Two weaknesses, none guarded.",
        "findings": [
            { "text": "A stranger's text is run as code.", "citations": place(4, "eval(ask.query.terms)") },
            { "text": "A name is put into a query.", "citations": place(7, "WHERE name = '") },
        ],
        "data": { "summary": "Two weaknesses.", "weaknesses": [
            { "line": 4, "weight": weights[0] }, { "line": 7, "weight": weights[1] },
        ]},
    }))
}

/// One link of the chain holds the first result back.
fn verify(request: &CapturedRequest) -> Reply {
    let asked = request.last_text();
    let result = asked.rsplit("Its result:").next().unwrap_or_default();
    let faults = if result.contains("\"low\"") && asked.contains("- correctness:") {
        json!([{ "check": "correctness", "why": "code from outside weighs high" }])
    } else {
        json!([])
    };
    Reply::json(&json!({ "faults": faults }))
}

fn answer(who: &str, request: &CapturedRequest) -> Reply {
    match who {
        "planner" => plan(&json!([{
            "name": "the audit", "goal": "Audit server.js for weaknesses.", "role": "code_auditor", "needs": ["code security"],
        }])),
        "aside" => verify(request),
        "reflector" => learnt("Both places were read."),
        "writer" => written("# Audit\n\nRun as code: `server.js:4`. Put into a query: `server.js:7`."),
        "1" if request.holds("weighs high") => result(["high", "high"]),
        "1" => match request.turns() {
            0 => Reply::call(
                "corpus_read",
                &json!({ "thought": "Read it first, for what runs text from outside.", "path": "server.js" }),
            ),
            1 => Reply::call(
                "corpus_search",
                &json!({ "thought": "Is either guarded anywhere?", "query": "sanitize escape prepared allowlist" }),
            ),
            _ => result(["low", "high"]),
        },
        who => panic!("{who} asks: {:?}", request.messages),
    }
}

#[test]
fn a_specialist_looks_twice_its_result_is_verified_and_mended_and_the_report_names_every_place() {
    let (server, folder) = model(answer);
    folder.write("agents/auditor.agent.md", SPECIALIST).unwrap();
    folder.write("code/server.js", CODE).unwrap();
    let fleet = folder.up(&["--set", "agent.limits.verification=full"]).unwrap();
    let folder = fleet.folder();
    let joined = || folder.output(&["ps"]).is_ok_and(|listed| listed.contains("code_auditor"));
    muster_support::fleet::wait_until("it has joined", std::time::Duration::from_secs(30), joined).unwrap();

    let ended =
        ask(folder, "Audit this program for weaknesses and report each with its place.", &["--docs", "code"]);
    let report = ended.report(folder);
    assert_eq!(citations(report), [("server.js".to_owned(), 4), ("server.js".to_owned(), 7)]);

    let steps: Vec<&Value> = of_kind(&ended.trace, "step")
        .filter(|entry| entry["task"] == "1")
        .map(|entry| &entry["event"])
        .collect();
    let actions: Vec<&str> = steps.iter().map(|step| step["action"]["name"].as_str().unwrap()).collect();
    assert_eq!(
        actions,
        ["corpus.read", "corpus.search", "submit"],
        "two looks, and a result that did not hold"
    );
    assert!(steps[0]["observation"]["content"].as_str().unwrap().contains("4| "), "{}", steps[0]);
    let refused = &steps[2]["notes"];
    assert!(refused.to_string().contains("code from outside weighs high"), "{refused}");

    let outcome = of_kind(&ended.trace, "outcome").find(|entry| entry["task"] == "1").unwrap();
    assert_eq!(outcome["role"], "code_auditor");
    let data = &outcome["event"]["product"]["result"]["data"];
    assert_eq!(data["weaknesses"][0], json!({ "line": 4, "weight": "high" }), "{data}");
    let held = outcome["event"]["last_step"]["notes"].to_string();
    assert!(held.contains("\"model\"") && !held.contains("why"), "all links hold: {held}");
    let asked = server.log().iter().filter(|entry| super::asker(&entry.request) == "aside").count();
    assert_eq!(
        asked,
        3 + 4 + 4,
        "the third link held the first result back; then all of them, and of the report"
    );
}
