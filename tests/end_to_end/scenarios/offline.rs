//! Without any model: what stays uncovered is searched for more widely, what one run taught improves the plan of the next,
//! and what is not sure of its findings has the rest planned anew.

use muster_support::fleet::{Folder, both};
use serde_json::{Value, json};

use super::super::support::folder;

const GOAL: &str = "How does a worker survive an outage?";
const ANSWER: &str = "its journal is replayed elsewhere. (`ops.md:3`)";

/// The question's own words stand with the bees only.
fn with_documents(bees: &str) -> Folder {
    let folder = folder();
    folder.write("docs/bees.txt", format!("{bees}\n")).unwrap();
    let ops = "# Ops\n\nA node that stays silent is replaced, and its journal is replayed elsewhere.\n";
    folder.write("docs/ops.md", ops).unwrap();
    folder
}

/// The report of a run, and the run.
fn asked(folder: &Folder, settings: &[&str]) -> (String, Value) {
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let run = ["run", GOAL, "--docs", "docs", "--quiet"];
    let output = folder.run(&[&settings[..], &run[..]].concat()).unwrap();
    // A first search that finds nothing counts in part where the plan had the wider one from the beginning.
    assert!([Some(0), Some(6)].contains(&output.status.code()), "{}", both(&output));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let replayed = folder.json(&["replay", "last", "--json"]).unwrap();
    assert_eq!(replayed["same"], true, "{replayed}");
    (report, folder.json(&["show", "last", "--json"]).unwrap())
}

fn planned(state: &Value) -> Vec<&str> {
    let tasks = state["plan"]["tasks"].as_object().unwrap();
    tasks.values().map(|task| task["name"].as_str().unwrap()).collect()
}

#[test]
fn what_a_refinement_found_out_stands_in_the_plan_of_the_next_run() {
    // Each of these brings up a fleet of its own: what was learnt outlives all processes.
    let folder = with_documents("Nobody knows the outage of a hive.");
    let (better, refined) = asked(&folder, &[]);
    assert!(better.contains(ANSWER), "{better}");
    assert!(refined["refinements"].to_string().contains("Wider: "), "{}", refined["refinements"]);
    assert!(
        refined["planning"]["iterated"].is_null(),
        "there was nothing to know yet: {}",
        refined["planning"]
    );

    let (again, improved) = asked(&folder, &[]);
    assert!(again.contains(ANSWER), "{again}");
    assert!(planned(&improved).iter().any(|name| name.starts_with("Wider: ")), "{improved}");
    let iterated = &improved["planning"]["iterated"];
    assert!(iterated["changes"].to_string().contains("Wider: "), "{iterated}");
    assert!(iterated["lessons"].to_string().contains("a wider search is worth one more task"), "{iterated}");
    let changes = improved["refinements"].as_array().into_iter().flatten().filter(|one| one[0] != json!([]));
    assert_eq!(changes.count(), 0, "nothing is left to refine: {}", improved["refinements"]);
}

#[test]
fn what_is_not_sure_of_its_findings_has_the_rest_planned_anew_in_another_way() {
    let folder = with_documents("The worker of a hive knows no outage.");
    let settings =
        ["limits.max_refinements=0", "limits.reflection=none", "limits.replan_below_confidence=90"];
    let (report, state) = asked(&folder, &settings);
    let replans = state["planning"]["replans"].as_array().unwrap_or_else(|| panic!("{report}"));
    let first = replans[0]["changes"].to_string();
    assert!(first.contains("Wider: ") && first.contains("left out 2 Check the citations"), "{first}");
    assert!(planned(&state).iter().any(|name| name.starts_with("Check the citations again")), "{state}");
    assert!(replans.len() <= 3, "{replans:?}");
    assert!(
        report.contains("(`bees.txt:1`)") && report.contains("✓"),
        "what was found is looked up: {report}"
    );
}
