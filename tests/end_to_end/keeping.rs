//! A run goes from one fleet to another in a file; runs are kept, deleted, archived, and shrink when their time is over.

use std::path::Path;
use std::time::Duration;

use muster_support::fleet::{Folder, both, wait_until};
use muster_support::good_model::{GoodModel, Temper};
use muster_support::model_server::ModelServer;
use serde_json::Value;

use super::audit::fits;
use super::support::{folder, with_model, write_documents};

const GOAL: &str = "Work out 17.5 % of 2480 and 12 % of 1995. Write the numbers to the file `shares.csv` with the columns \
                    share, of and result.";

fn said(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String) {
    let output = folder.run(arguments).unwrap();
    // Long messages are broken into lines.
    let words: Vec<String> = both(&output).replace('│', "").split_whitespace().map(str::to_owned).collect();
    (output.status.code(), words.join(" "))
}

/// Asks for a file, and gives the run.
fn asked(folder: &Folder) -> String {
    let summary = folder.json(&["run", GOAL, "--model", "openai/good", "--json"]).unwrap();
    summary["run"].as_str().unwrap().to_owned()
}

fn model() -> ModelServer {
    ModelServer::start(GoodModel::new(Temper::default()).script()).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What different fleets say of one run.
fn views(folder: &Folder, run: &str) -> Vec<Value> {
    let of = |arguments: &[&str]| folder.json(arguments).unwrap();
    let trace = Value::Array(folder.json_lines(&["trace", run, "--json"]).unwrap());
    vec![
        of(&["show", run, "--json", "--full"]),
        of(&["replay", run, "--json"]),
        of(&["artifacts", run, "--json"]),
        of(&["prompt", run, "1", "--json"]),
        trace,
    ]
}

#[test]
fn a_run_goes_to_another_fleet_and_is_read_there_as_where_it_was_made() {
    let server = model();
    let here = with_model(&server);
    let run = asked(&here);
    let file = here.path().join("run.muster");
    let written = here.json(&["runs", "export", &run, "-o", text(&file), "--json"]).unwrap();
    assert_eq!(
        (&written["run"], &written["files"]),
        (&Value::from(run.as_str()), &Value::from(1)),
        "{written}"
    );
    fits(&here, &run);
    let before = views(&here, &run);

    let there = with_model(&server);
    let own = asked(&there);
    damaged(&there, &file);
    let imported = there.json(&["runs", "import", text(&file), "--json"]).unwrap();
    assert_eq!(imported["entries"], written["entries"], "{imported}");
    assert_eq!(views(&there, &run), before);
    let audit = there.json(&["audit", &run, "--json"]).unwrap();
    assert_eq!((&audit["result"], &audit["signed"]["keys"]), (&"fits".into(), &"claimed".into()), "{audit}");
    let listed = there.json(&["runs", "--json"]).unwrap();
    let ids: Vec<&str> = listed.as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    assert_eq!(ids, [own.as_str(), run.as_str()], "newest first");
    let (code, words) = said(&there, &["runs", "import", text(&file)]);
    assert!(code == Some(2) && words.contains("is here already"), "{words}");
    // What went once goes on.
    let again = there.path().join("again.muster");
    there.json(&["runs", "export", &run, "-o", text(&again), "--json"]).unwrap();
    let lines = |path: &Path| {
        std::fs::read_to_string(path).unwrap().lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let (one, other) = (lines(&file), lines(&again));
    assert_eq!(one[..one.len() - 1], other[..other.len() - 1]);

    // From an entry in its middle another run begins.
    let trace = before[4].as_array().unwrap();
    let at = trace[trace.len() / 2]["seq"].to_string();
    let fork = there.json(&["fork", &run, "--at", &at, "--model", "openai/good", "--json"]).unwrap();
    assert_eq!(fork["status"], "completed", "{fork}");

    let (code, words) = said(&there, &["runs", "delete", &run]);
    assert!(code == Some(2) && words.contains("nobody said yes"), "{words}");
    let (code, words) = said(&there, &["runs", "delete", &run, "--yes"]);
    assert!(code == Some(0) && words.contains("removed run"), "{words}");
    let (code, words) = said(&there, &["show", &run]);
    assert!(
        code == Some(1) && words.contains("was removed on") && words.contains("muster runs delete"),
        "{words}"
    );
    there.json(&["runs", "import", text(&file), "--json"]).unwrap();
    assert_eq!(views(&there, &run), before);
}

#[test]
fn fork_whose_documents_are_not_stored_is_refused_until_they_are_given_again() {
    let (here, there) = (folder(), folder());
    write_documents(&here);
    let asked = here.json(&["run", "How deep may delegation go?", "--docs", "docs", "--json"]).unwrap();
    let run = asked["run"].as_str().unwrap();
    let trace = here.json_lines(&["trace", run, "--json"]).unwrap();
    let at = trace[trace.len() / 2]["seq"].to_string();
    let file = here.path().join("run.muster");
    here.output(&["runs", "export", run, "-o", text(&file)]).unwrap();
    there.output(&["run", "What is 2 plus 2?"]).unwrap();
    there.output(&["runs", "import", text(&file)]).unwrap();
    let fork = ["fork", run, "--at", &at, "--json"];
    let (code, words) = said(&there, &fork);
    assert!(code == Some(2) && words.contains("are not stored here"), "{words}");
    there.write("docs/other.md", "Apples are red.\n").unwrap();
    let with_documents = [&fork[..], &["--docs", "docs"]].concat();
    let (code, words) = said(&there, &with_documents);
    assert!(code == Some(2) && words.contains("these are not the documents"), "{words}");
    std::fs::remove_file(there.path().join("docs/other.md")).unwrap();
    write_documents(&there);
    assert_eq!(there.json(&with_documents).unwrap()["status"], "completed");
}

/// What is no whole file is refused, and leaves nothing.
fn damaged(folder: &Folder, file: &Path) {
    let whole = std::fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let path = folder.path().join("damaged.muster");
    for (text, wanted) in [
        (lines[..lines.len() - 1].join("\n"), "it was cut off"),
        (whole.replacen("shares.csv", "sharing.csv", 1), "something in it was changed"),
        ("{\"muster_audit\":1}".to_owned(), "line 1"),
        (String::new(), "it is empty"),
    ] {
        std::fs::write(&path, text).unwrap();
        let (code, words) = said(folder, &["runs", "import", path.to_str().unwrap()]);
        assert!(code == Some(2) && words.contains(wanted), "{wanted}: {words}");
    }
    assert_eq!(folder.json(&["runs", "--json"]).unwrap().as_array().unwrap().len(), 1);
}

#[test]
fn runs_shrink_to_a_summary_when_their_time_is_over_unless_they_are_kept() {
    let server = model();
    let folder = with_model(&server).with("MUSTER_BUS_REMOVABLE", "true");
    let (first, kept) = (asked(&folder), asked(&folder));
    let shown = folder.json(&["show", &first, "--json"]).unwrap();
    folder.output(&["runs", "keep", &kept]).unwrap();
    let nothing = folder.json(&["gc", "--yes", "--json"]).unwrap();
    assert_eq!(
        nothing["over_time"].as_array().unwrap().len(),
        0,
        "all is kept unless a setting says otherwise"
    );

    let gc = ["--set", "keep.completed=1s", "gc", "--json"];
    let expired = || folder.json(&[&gc[..], &["--dry-run"]].concat()).unwrap()["over_time"].clone();
    wait_until("the first run has expired", Duration::from_secs(10), || {
        expired().as_array().is_some_and(|runs| !runs.is_empty())
    })
    .unwrap();
    let over = expired();
    assert_eq!(
        (over.as_array().unwrap().len(), &over[0]["run"]),
        (1, &Value::from(first.as_str())),
        "{over}"
    );
    let (code, words) = said(&folder, &gc);
    assert!(code == Some(2) && words.contains("nobody said yes"), "{words}");
    let done = folder.json(&[&gc[..], &["--yes"]].concat()).unwrap();
    assert_eq!(done["removed"][0]["run"], first.as_str(), "{done}");
    assert!(done["bytes"].as_u64().unwrap() > 1_000, "{done}");

    let summary = folder.json(&["show", &first, "--json"]).unwrap();
    assert_eq!(summary["report"], shown["report"]);
    assert_eq!(
        (&summary["status"], &summary["goal"]),
        (&shown["status"], &shown["goal"]["text"]),
        "{summary}"
    );
    assert_eq!(summary["record_removed"]["rule"], "keep.completed = 1s");
    let words = folder.output(&["show", &first]).unwrap();
    assert!(words.contains("removed its record") && words.contains("keep.completed = 1s"), "{words}");
    for command in ["trace", "replay", "audit", "artifacts"] {
        let (code, words) = said(&folder, &[command, &first]);
        assert!(code == Some(1) && words.contains("was removed on"), "{command}: {words}");
    }
    let (code, words) = said(&folder, &["fork", &first, "--at", "3", "--detach"]);
    assert!(code != Some(0), "{words}");
    fits(&folder, &kept);
    let listed = folder.output(&["runs"]).unwrap();
    assert!(listed.contains("completed, removed"), "{listed}");

    // Everything goes on as before.
    let last = asked(&folder);
    fits(&folder, &last);
    let doctor = folder.run(&["doctor", "--json"]).unwrap();
    let checks: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert!(!checks.to_string().contains("not there any more"), "{checks}");
    archived(&folder, &last);
}

/// Export and deletion in one, and back.
fn archived(folder: &Folder, run: &str) {
    let before = folder.json(&["show", run, "--json"]).unwrap();
    let done = folder.json(&["runs", "archive", run, "archive", "--yes", "--json"]).unwrap();
    assert_eq!(done["removed"]["done"], true, "{done}");
    let (code, words) = said(folder, &["show", run]);
    assert!(code == Some(1) && words.contains("muster runs archive"), "{words}");
    let file = folder.path().join("archive").join(format!("{run}.muster"));
    folder.output(&["runs", "import", text(&file)]).unwrap();
    assert_eq!(folder.json(&["show", run, "--json"]).unwrap(), before);
}

#[test]
fn a_fleet_that_keeps_all_says_so() {
    let server = model();
    let folder = with_model(&server);
    let run = asked(&folder);
    let (code, words) = said(&folder, &["runs", "delete", &run, "--yes"]);
    assert!(code == Some(1) && words.contains("bus.removable"), "{words}");
    fits(&folder, &run);
}
