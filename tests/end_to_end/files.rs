//! Files that tasks wrote reach whoever asked for them; what a run does and uses is told where nobody looks at a tree.

use std::path::Path;

use muster_support::fleet::{Folder, both};
use muster_support::good_model::{GoodModel, Temper};
use muster_support::model_server::{ModelServer, Script};
use serde_json::{Value, json};

use super::help::{act, done, plan_and_report};
use super::support::with_model;

const GOAL: &str = "Work out 17.5 % of 2480 and 12 % of 1995. Write the numbers to the file `shares.csv` with the columns \
                    share, of and result.";

fn server() -> ModelServer {
    ModelServer::start(GoodModel::new(Temper::default()).script()).unwrap()
}

/// Asks for the file, and gives the exit code and all that was said.
fn ask(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String) {
    let ended = folder.run(&[&["run", GOAL, "--model", "openai/good"], arguments].concat()).unwrap();
    (ended.status.code(), both(&ended))
}

fn read(folder: &Folder, path: &str) -> String {
    std::fs::read_to_string(folder.path().join(path)).unwrap_or_default()
}

#[test]
fn files_that_were_asked_for_are_in_a_directory_named_after_the_report() {
    let server = server();
    let folder = with_model(&server);
    folder.write("out/readme.txt", "").unwrap();
    let (code, said) = ask(&folder, &["-o", "out/report.md"]);
    assert_eq!(code, Some(0), "{said}");
    let wanted = "share,of,result\n17.5 %,2480,434\n12 %,1995,239.4\n";
    assert_eq!(read(&folder, "out/report.files/shares.csv"), wanted, "{said}");
    assert!(said.contains(&format!("file: out/report.files/shares.csv ({} B)", wanted.len())), "{said}");

    // The same again is no harm; another file of that name stays as it is.
    let (code, said) = ask(&folder, &["-o", "out/report.md"]);
    assert!(code == Some(0) && said.contains("as it was there already"), "{said}");
    folder.write("out/report.files/shares.csv", "mine\n").unwrap();
    let (code, said) = ask(&folder, &["-o", "out/report.md"]);
    assert!(
        code == Some(7) && said.contains("file not copied: shares.csv") && said.contains("--force"),
        "{said}"
    );
    assert_eq!(read(&folder, "out/report.files/shares.csv"), "mine\n");
    let (code, said) = ask(&folder, &["-o", "out/report.md", "--force"]);
    assert_eq!((code, read(&folder, "out/report.files/shares.csv").as_str()), (Some(0), wanted), "{said}");
}

#[test]
fn files_go_where_they_are_sent_or_to_a_directory_of_the_run() {
    let server = server();
    let folder = with_model(&server);
    let ended = folder.run(&["run", GOAL, "--model", "openai/good", "--json", "--out", "made/here"]).unwrap();
    let summary: Value =
        serde_json::from_slice(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", both(&ended)));
    assert_eq!(summary["files"][0]["path"], "shares.csv");
    assert_eq!(summary["files"][0]["to"], Path::new("made/here/shares.csv").display().to_string());
    assert!(read(&folder, "made/here/shares.csv").contains("239.4"));
    // Programs get nothing that they did not ask for.
    let ended = folder.run(&["run", GOAL, "--model", "openai/good", "--json"]).unwrap();
    let summary: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert!(summary.get("files").is_none() && read(&folder, "shares.csv").is_empty(), "{summary}");
    // A person who named the file finds it.
    let (code, said) = ask(&folder, &[]);
    let copied =
        said.lines().find_map(|line| line.split_once("file: ")?.1.split(" (").next()).unwrap_or_default();
    assert!(code == Some(0) && copied.starts_with("run-") && copied.ends_with(".files/shares.csv"), "{said}");
    assert!(read(&folder, copied).contains("239.4"));
    folder.write("taken", "").unwrap();
    assert_eq!(ask(&folder, &["--out", "taken"]).0, Some(2));
}

#[test]
fn a_log_gets_a_line_for_each_step_and_what_was_used_beside_what_was_expected() {
    let server = server();
    let folder = with_model(&server);
    let (_, said) = ask(&folder, &[]);
    assert!(said.contains("estimated: 2 to 8 model calls") && said.contains("a guess by its size"), "{said}");
    assert!(said.contains("task 1: computes 17.5 / 100 * 2480"), "{said}");
    assert!(said.contains("task 1: writes shares.csv"), "{said}");
    assert!(said.contains("used: ") && said.contains("; estimated: 2 to 8"), "{said}");
    ask(&folder, &[]);
    ask(&folder, &[]);
    // By then the record knows such runs.
    let (_, said) = ask(&folder, &[]);
    assert!(said.contains("as the last 3 like it took"), "{said}");
    let (_, said) = ask(&folder, &["-q"]);
    assert!(!said.contains("estimated") && !said.contains("task 1"), "{said}");
}

#[test]
fn configuration_that_a_run_wrote_takes_effect_nowhere() {
    // The first three take effect nowhere. Tool files and servers of the project name the others, or would load them.
    const WRITTEN: &str = "notes.md scripts/release.py page.html.j2 tools/glossary.tool.toml tools/json.py tools/bin/prog tools/s.json \
                           agents/helper.agent.md Muster.toml mcp.json mcp.json.untrusted srv/server.py srv/json.py list.toml";
    let written: Vec<&str> = WRITTEN.split_whitespace().collect();
    let task = json!({ "name": "minutes", "goal": "Sum up.", "role": "worker" });
    let body = format!("See [notes](notes.md) and `{}`.", written.join("`, `"));
    let files = written.clone();
    let server = ModelServer::start(Script::answering(move |request| {
        plan_and_report(request, std::slice::from_ref(&task), &body).unwrap_or_else(|| {
            match files.get(request.turns()) {
                Some(path) => act("workspace_write", json!({ "path": path, "text": "# Glossary" })),
                None => done(&body),
            }
        })
    }))
    .unwrap();
    let folder = with_model(&server);
    let tool = "description = \"d\"\ncommand = [\"sh\", \"./bin/prog\"]\nschema = \"s.json\"\n";
    folder.write("tools/own.tool.toml", tool).unwrap();
    let run = |goal: &str, arguments: &[&str]| {
        let usual =
            ["run", goal, "--planning", "never", "--model", "openai/x", "--set", "limits.max_steps=20"];
        let ended = folder.run(&[&usual[..], arguments].concat()).unwrap();
        (ended.status.code(), both(&ended))
    };
    let found = |folder: &Folder| {
        let tools = folder.run(&["tools", "list"]).unwrap();
        both(&tools).contains("glossary")
            || folder.output(&["agent", "--check"]).is_ok_and(|told| told.contains("helper"))
    };
    // Inside a directory that is read as configuration, and with a name that the person gave.
    let (code, said) = run("Sum up the minutes in tools/glossary.tool.toml.", &["-o", "tools/r.md"]);
    assert_eq!(code, Some(0), "{said}");
    let first = said.find("tools/r.files/tools/glossary.tool.toml.untrusted").unwrap_or(usize::MAX);
    assert!(first < said.find("report: tools/r.md").unwrap_or(0) && said.contains("muster trust"), "{said}");
    assert!(
        said.contains("not copied: Muster.toml") && said.contains("not copied: agents/helper.agent.md"),
        "{said}"
    );
    assert!(
        read(&folder, "tools/r.md").contains("[notes](r.files/notes.md)"),
        "{}",
        read(&folder, "tools/r.md")
    );
    assert!(read(&folder, "tools/r.files/notes.md").contains("Glossary") && !found(&folder));
    // All files, into the project itself, where a server is not trusted and its program is missing.
    let servers = "{\"mcpServers\": {\"x\": {\"command\": \"python3\", \"args\": [\"srv/server.py\"]}}}";
    folder.write("servers.json", servers).unwrap();
    let settings = "[tool.mcp]\nfile = \"servers.json\"\n[guards.l]\nkind = \"allow-list\"\nfile = \"list.toml\"\nenabled = false\n";
    folder.write("muster.toml", settings).unwrap();
    folder.output(&["trust", "--yes"]).unwrap();
    let (code, said) = run("Sum up the minutes.", &["--out", ".", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    for path in &written {
        let is_plain = written[..3].contains(path);
        let is_other = path.ends_with(".untrusted");
        assert_eq!(folder.path().join(path).exists(), is_plain || is_other, "{path}: {said}");
        assert_eq!(folder.path().join(format!("{path}.untrusted")).exists(), !is_plain, "{path}: {said}");
    }
    assert!(!found(&folder));
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("linked")).unwrap();
    for refused in [
        ["-o", "x.tool.toml"],
        ["-o", "muster.toml"],
        ["-o", "tools/s.json"],
        ["-o", ".muster/r.md"],
        ["--out", ".muster/x"],
        ["--out", "linked/x"],
        ["-o", "linked/r.md"],
    ] {
        assert_eq!(run("Sum up.", &refused).0, Some(2), "{refused:?}");
    }
}
