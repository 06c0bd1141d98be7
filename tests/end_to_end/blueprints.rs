//! Runs by a blueprint: those that come with Muster, and what is refused before anything runs.

use std::fs;

use muster_support::fleet::{Folder, both};
use serde_json::Value;

use super::support::{citations, folder, of_kind, write_documents};

/// Runs a blueprint to its end. Without a model, a report may lack a required part; the exit code is then 6.
fn complete(folder: &Folder, arguments: &[&str]) -> Value {
    let output = folder.run(&[&["run", "--json", "--blueprint"], arguments].concat()).unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}\n{}", folder.logs());
    let code = if summary["complete"] == true { 0 } else { 6 };
    assert_eq!(output.status.code(), Some(code), "{summary}");
    summary
}

/// Who started tasks in the last run, by role.
fn roles(folder: &Folder) -> Vec<String> {
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    let mut roles: Vec<String> =
        of_kind(&trace, "started").map(|entry| entry["role"].as_str().unwrap().to_owned()).collect();
    roles.sort();
    roles.dedup();
    roles
}

#[test]
fn a_research_report_is_made_without_a_planner_and_its_run_can_be_made_a_blueprint() {
    let folder = folder();
    write_documents(&folder);
    let arguments = [
        "research_report",
        "--param",
        "topic=delegation and recovery",
        "--param",
        "questions=What limits delegation loops?, How does a run survive the death of a worker?",
        "--docs",
        "docs",
    ];
    let summary = complete(&folder, &arguments);
    let body = summary["report"]["body"].as_str().unwrap();
    let paths: Vec<String> = citations(body).into_iter().map(|(path, _)| path).collect();
    assert!(paths.iter().any(|path| path == "delegation.md"), "{body}");
    assert!(paths.iter().any(|path| path == "recovery.txt"), "{body}");
    assert!(!roles(&folder).contains(&"planner".to_owned()));
    let trace = folder.output(&["trace", "last"]).unwrap();
    assert!(trace.contains("blueprint expanded by"), "{trace}");
    assert!(trace.contains("questions: 2-1, 2-2"), "{trace}");
    folder.output(&["replay", "last"]).unwrap();

    folder.output(&["blueprint", "save", "last", "mine"]).unwrap();
    folder.output(&["blueprint", "check", "mine"]).unwrap();
    let shown = |name| folder.json(&["blueprint", "show", name, "--json"]).unwrap();
    assert_eq!(shown("mine")["steps"], shown("research_report")["steps"], "nothing of it is dropped");
    let again = complete(&folder, &["mine", "--docs", "docs"]);
    assert_eq!(again["goal"], summary["goal"]);
}

#[test]
fn documents_are_reviewed_by_criteria() {
    let folder = folder();
    write_documents(&folder);
    folder
        .write("values.json", r#"{ "subject": "the rules of delegation", "criteria": ["limits", "depth"] }"#)
        .unwrap();
    let summary = complete(&folder, &["document_review", "--params", "values.json", "--docs", "docs"]);
    assert!(!citations(summary["report"]["body"].as_str().unwrap()).is_empty(), "{summary}");
    let shown = folder.output(&["show", "last"]).unwrap();
    assert!(shown.contains("Criterion: limits") && shown.contains("Verdict"), "{shown}");
    assert!(!shown.contains("with consent"), "what was not asked for is left out:\n{shown}");
}

#[test]
fn tickets_are_sorted() {
    let folder = folder();
    write_documents(&folder);
    let tickets = r#"tickets=["T1: a delegation loop is not refused", "T2: the record is kept in a file"]"#;
    let summary = complete(&folder, &["ticket_triage", "--param", tickets, "--docs", "docs"]);
    assert!(summary["goal"].as_str().unwrap().contains("T1: a delegation loop"), "{summary}");
    let state = folder.json(&["show", "last", "--json"]).unwrap();
    assert_eq!(state["plan"]["tasks"]["1-2"]["name"], "Ticket: T2: the record is kept in a file");
}

#[test]
fn what_is_wrong_is_said_before_anything_runs() {
    let folder = folder();
    let head = "name = \"bad\"\nversion = \"1\"\ngoal = \"g\"\n";
    folder
        .write(
            "blueprints/bad.toml",
            format!("{head}[[steps]]\nid = \"a\"\ngoal = \"use {{{{b.result}}}}\"\n"),
        )
        .unwrap();
    folder.write("blueprints/broken.toml", "name = \n").unwrap();
    let table: [(&[&str], &str); 7] = [
        (&["run", "--blueprint", "bad"], "line 6, column 8: steps[1].goal: there is no step \"b\""),
        (&["run", "--blueprint", "broken"], "line 1, column"),
        (&["run", "--blueprint", "nothing"], "there is no blueprint \"nothing\""),
        (&["run", "--blueprint", "ticket_triage"], "params.tickets: it is not given"),
        (&["run", "--blueprint", "ticket_triage", "--param", "ticket=x"], "did you mean \"tickets\"?"),
        (&["run", "--blueprint", "ticket_triage", "--params", "nowhere.json"], "nowhere.json"),
        (&["blueprint", "check", "blueprints/bad.toml"], "line 6, column 8"),
    ];
    for (arguments, why) in table {
        let output = folder.run(arguments).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", both(&output));
        let said = both(&output).split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "");
        assert!(said.contains(why), "{arguments:?}: {said}");
    }
    assert!(!folder.path().join(".muster/nats").exists(), "nothing was started");
    let listed = folder.output(&["blueprint", "list"]).unwrap();
    for name in ["bad", "broken", "research_report", "document_review", "ticket_triage"] {
        assert!(listed.contains(name), "{listed}");
    }
}

#[test]
fn a_role_that_nobody_has_is_refused_and_other_runs_go_on() {
    let folder = folder();
    write_documents(&folder);
    let text = folder.output(&["blueprint", "show", "document_review"]).unwrap();
    folder.write("mine.toml", text.replacen("role = \"researcher\"", "role = \"lawyer\"", 1)).unwrap();
    let fleet = folder.up(&[]).unwrap();
    let folder = fleet.folder();
    let run = ["run", "--blueprint", "./mine.toml", "--param", "subject=x", "--wait-for-role", "0s"];
    let output = folder.run(&run).unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", both(&output));
    assert!(both(&output).contains("no \"lawyer\" is in this fleet"), "{}", both(&output));
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    assert_eq!(of_kind(&trace, "started").count(), 0, "nobody was given anything");
    complete(folder, &["document_review", "--param", "subject=the rules", "--docs", "docs"]);
    assert!(fs::read_dir(folder.path().join("docs")).unwrap().count() > 0);
}
