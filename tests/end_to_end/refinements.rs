//! What is learnt from one task changes the plan, and the report is better for it. Without any model.

use muster_support::fleet::{Folder, both};
use serde_json::json;

use super::support::folder;

const GOAL: &str = "How does a worker survive an outage?";

/// A search for the question's own words meets only the beehive.
fn asked(settings: &[&str], code: i32) -> (Folder, String) {
    let folder = folder();
    folder.write("docs/bees.txt", "Nobody knows the outage of a hive.\n").unwrap();
    let ops = "# Ops\n\nA node that stays silent is replaced, and its journal is replayed elsewhere.\n";
    folder.write("docs/ops.md", ops).unwrap();
    let output = folder.run(&[&["run", GOAL, "--docs", "docs", "--quiet"], settings].concat()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", both(&output));
    (folder, String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_subquestion_found_uncovered_gets_a_task_of_its_own_and_the_report_answers_it() {
    let (without, poorer) = asked(&["--set", "limits.reflection=none"], 6);
    assert!(!poorer.contains("ops.md:3"), "{poorer}");
    let unchanged = without.json(&["show", "last", "--refinements", "--json"]).unwrap();
    assert!(unchanged.as_array().unwrap().iter().all(|one| one["changes"] == json!([])), "{unchanged}");
    assert!(without.output(&["show", "last", "--reflection"]).unwrap().contains("no reflection so far"));

    let (folder, better) = asked(&[], 0);
    assert!(better.contains("its journal is replayed elsewhere. (`ops.md:3`)"), "{better}");
    let reflection = folder.json(&["show", "last", "1", "--reflection", "--json"]).unwrap();
    assert!(reflection["uncovered"][0].as_str().unwrap().contains("survive an outage"), "{reflection}");
    let refinements = folder.json(&["show", "last", "--refinements", "--json"]).unwrap();
    let changes = refinements[0]["changes"].to_string();
    assert!(changes.contains("Wider"), "{refinements}");
    assert!(refinements[0]["wanted"][0].as_str().unwrap().starts_with("1: "), "{refinements}");
    let shown = folder.output(&["show", "last"]).unwrap();
    for part in ["[x] 1 ", ") passages found", "Reflections", "uncovered: ", "+ added"] {
        assert!(shown.contains(part), "{part} is missing:\n{shown}");
    }
    let one = folder.output(&["show", "last", "1"]).unwrap();
    assert!(one.contains("Milestones") && one.contains("Reflection"), "{one}");
    let unknown = folder.run(&["show", "last", "7-7"]).unwrap();
    assert_eq!(unknown.status.code(), Some(2));
}
