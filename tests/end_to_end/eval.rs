//! Suites of goals with checks: run by a fleet, judged, kept, compared; and what goals cost with a model that answers in
//! good faith.

use muster_support::fleet::both;
use muster_support::good_model::Temper;
use muster_support::good_model::measure::{Measure, Measured, measure};
use serde_json::Value;

use super::support::folder;

/// A suite of our own, with documents beside it and two goals of which one fails.
const SUITE: &str = r#"
name = "house"
model = "offline"
docs = ["docs"]

[[goals]]
name = "depth"
goal = "What is the depth of delegation limited to?"
checks = { all = ["five hops"], citations = 1, calls = 50 }

[[goals]]
name = "sum"
goal = "What is 2 plus 2?"
docs = []
checks = { all = ["five"] }
"#;

#[test]
fn a_suite_is_judged_kept_and_compared() {
    let folder = folder();
    super::support::write_documents(&folder);
    folder.write("suite.toml", SUITE).unwrap();
    let ended = folder.run(&["eval", "suite.toml"]).unwrap();
    let said = both(&ended);
    assert_eq!(ended.status.code(), Some(7), "{said}");
    assert!(said.contains("depth     1/1") && said.contains("sum       0/1"), "{said}");
    assert!(said.contains("all: the report lacks five"), "{said}");

    // Each is an ordinary run of the record.
    let runs = folder.json(&["runs", "--json"]).unwrap();
    let goals: Vec<&str> = runs.as_array().unwrap().iter().map(|run| run["goal"].as_str().unwrap()).collect();
    assert_eq!(goals, ["What is 2 plus 2?", "What is the depth of delegation limited to?"]);

    let ended = folder
        .run(&["eval", "suite.toml", "--only", "depth", "--last", "--repeat", "2", "-o", "now.jsonl"])
        .unwrap();
    let said = both(&ended);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(said.contains("depth     2/2") && said.contains("1/1 → 2/2"), "{said}");
    let kept = std::fs::read_to_string(folder.path().join("now.jsonl")).unwrap();
    let rows: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((rows.len(), &rows[1]["repeat"], &rows[1]["exit"]), (2, &2.into(), &0.into()));
}

#[test]
fn two_settings_stand_side_by_side() {
    let folder = folder();
    super::support::write_documents(&folder);
    folder.write("suite.toml", SUITE).unwrap();
    let compared = ["--compare", "one=planning=never", "many=planning=always,limits.max_width=2"];
    let ended =
        folder.run(&[&["eval", "suite.toml", "--only", "depth", "--json"][..], &compared].concat()).unwrap();
    let results: Value =
        serde_json::from_slice(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", both(&ended)));
    let calls = |at: usize| {
        (results["summary"][at]["setting"].as_str().unwrap(), results["rows"][at]["exit"].as_u64().unwrap())
    };
    assert_eq!((calls(0), calls(1)), (("one", 0), ("many", 0)));
}

fn basics(temper: Temper, only: &str) -> Measured {
    let arguments = vec!["--only".to_owned(), only.to_owned()];
    let program = env!("CARGO_BIN_EXE_muster").to_owned();
    measure(&Measure { program, server: None, suite: "basics".to_owned(), arguments, temper }).unwrap()
}

/// The checks of a measured goal that did not pass, and what it used.
fn failed(measured: &Measured) -> (Vec<&str>, u64, u64) {
    let row = &measured.results["rows"][0];
    let checks = row["checks"].as_array().unwrap().iter();
    let failed =
        checks.filter(|check| check["passed"] == false).map(|check| check["check"].as_str().unwrap());
    (failed.collect(), row["calls"].as_u64().unwrap(), row["prompt_tokens"].as_u64().unwrap())
}

/// What a goal of the suite `basics` may use at most.
struct Bound {
    goal: &'static str,
    calls: u64,
    prompt_tokens: u64,
}

/// What the suite itself allows is 14 calls and 90,000 tokens, 5 and 12,000, 2 and 4,000: this model needs less.
const NOW: &[Bound] = &[
    Bound { goal: "compare", calls: 4, prompt_tokens: 22_000 },
    Bound { goal: "files", calls: 4, prompt_tokens: 8_000 },
    Bound { goal: "percent", calls: 2, prompt_tokens: 4_000 },
];

#[test]
fn a_model_in_good_faith_answers_truly_within_these_calls() {
    for Bound { goal, calls, prompt_tokens } in NOW {
        let measured = basics(Temper::default(), goal);
        let (failed, used, tokens) = failed(&measured);
        assert!(failed.is_empty(), "{goal}: {measured:?}");
        assert!(used <= *calls && tokens <= *prompt_tokens, "{goal}: {used} calls, {tokens} tokens");
        assert!(measured.violations.is_empty(), "{:?}", measured.violations);
        assert!(measured.made.is_empty());
    }
}

/// Share of answers with a mistake, in percent.
const MISTAKES: u8 = 25;
/// Most calls of the comparison with mistakes.
const MOST_CALLS: u64 = 10;

#[test]
fn mistakes_of_the_model_cost_calls_and_no_answer() {
    for seed in 1..4 {
        let measured = basics(Temper { mistakes: MISTAKES, seed }, "compare");
        let (failed, calls, _) = failed(&measured);
        assert!(failed.is_empty(), "seed {seed}: {measured:?}");
        assert!(calls <= MOST_CALLS, "seed {seed}: {calls} calls");
        assert!(!measured.made.is_empty(), "seed {seed}");
    }
}
