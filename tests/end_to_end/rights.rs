//! What tasks may use: taken by a flag, a plan or a setting, refused where a call is carried out, and told by `muster trace`.

use std::fs;

use serde_json::{Value, json};

use super::support::{folder, of_kind};

const SUM: &str = "What is 17.5 % of 2480?";

/// The refusals that steps of a trace note, in order.
fn refusals(trace: &[Value]) -> Vec<Value> {
    let notes = trace.iter().flat_map(|entry| {
        let steps = [&entry["event"], &entry["event"]["last_step"]];
        steps.into_iter().flat_map(|step| step["notes"].as_array().cloned().unwrap_or_default())
    });
    notes.filter_map(|note| note.get("denied").map(|denied| denied["refusal"].clone())).collect()
}

#[test]
fn a_tool_that_a_flag_takes_is_refused_and_the_trace_says_who_took_it() {
    let folder = folder();
    // How it ends without its tool is not what is looked at.
    folder.run(&["run", SUM, "--planning", "never", "--deny-tools", "calculator", "--quiet"]).unwrap();
    let text = folder.output(&["trace", "last"]).unwrap();
    let said = "refused     calculator: this task may not call it (goal: all tools but calculator)";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("may use tools: all tools but calculator"), "{text}");
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    let told = refusals(&trace);
    let chain = json!([{ "by": "goal", "may": "all tools but calculator", "takes": true }]);
    assert_eq!(
        (&told[0]["right"], &told[0]["wanted"], &told[0]["chain"]),
        (&json!("tools"), &json!("calculator"), &chain)
    );
    let called = of_kind(&trace, "step").filter(|entry| entry["event"]["action"]["name"] == "calculator");
    for step in called {
        assert_eq!(step["event"]["observation"]["status"], "refused", "{step}");
    }
}

#[test]
fn a_document_that_may_not_be_read_reaches_no_report_and_no_record() {
    let folder = folder();
    for (path, text) in [
        ("docs/open.md", "# Harbour\n\nThe harbour opens at seven in the morning.\n"),
        ("docs/private/keys.md", "# Harbour\n\nThe harbour opens with the word swordfish.\n"),
    ] {
        folder.write(path, text).unwrap();
    }
    let ask =
        ["run", "When does the harbour open?", "--docs", "docs", "--deny-docs", "private", "-o", "r.md"];
    folder.output(&ask).unwrap();
    let report = fs::read_to_string(folder.path().join("r.md")).unwrap();
    assert!(report.contains("seven") && !report.contains("swordfish"), "{report}");
    let trace = folder.output(&["trace", "last", "--full"]).unwrap();
    assert!(!trace.contains("swordfish") && !trace.contains("keys.md"), "{trace}");
}

#[test]
fn a_plan_that_is_brought_gives_a_task_less_and_the_fleet_gives_no_more_than_it_has() {
    let folder = folder();
    folder.write(
        "plan.toml",
        format!(
            "goal = 'Sums'\n[[tasks]]\nname = 'sum'\ngoal = '{SUM}'\nrights = {{ tools = ['corpus.*'] }}\n\
             [[tasks]]\nname = 'other'\ngoal = 'What is 2 + 3?'\n"
        ),
    )
    .unwrap();
    let fleet = folder.up(&["--set", "limits.rights.people=false"]).unwrap();
    let ask = ["run", "Sums", "--plan", "plan.toml", "--set", "limits.rights.people=true", "--quiet"];
    fleet.folder().run(&ask).unwrap();
    let text = fleet.folder().output(&["trace", "last"]).unwrap();
    let said = "refused     calculator: this task may not call it (goal: all tools → plan task 1: corpus.*)";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("1 offered to") && text.contains("people: no"), "{text}");
    assert!(text.contains("5"), "the other task has its tools:\n{text}");
}

#[test]
fn a_pattern_that_is_none_is_refused_before_anything_is_begun() {
    let folder = folder();
    for (flag, value) in [("--allow-tools", "a*b"), ("--deny-docs", "../secret")] {
        let refused = folder.run(&["run", SUM, flag, value]).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{flag} {value}");
    }
    let refused = folder.run(&["run", SUM, "--set", "limits.rights.hosts=[\"no host\"]"]).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("limits.rights.hosts") || said.contains("names none of the hosts"), "{said}");
}
