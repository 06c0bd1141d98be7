//! `muster tools`: tools tried by hand with the engine of agents, and how their calls went in runs.

use std::process::{Output, Stdio};

use muster_support::fleet::{Folder, both};
use muster_support::model_server::ModelServer;
use serde_json::{Value, json};

use super::help::{act, done, script_of};
use super::support::{folder, with_model, write_documents};

fn tools(folder: &Folder, args: &[&str]) -> Output {
    folder.run(&[&["tools"], args].concat()).unwrap()
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn tools_are_listed_and_shown_with_what_they_touch_and_who_may_use_them() {
    let folder = folder();
    let listed = folder.json(&["tools", "list", "--json"]).unwrap();
    let listed = listed.as_array().unwrap();
    let of = |name: &str| listed.iter().find(|tool| tool["name"] == name).unwrap();
    assert_eq!(of("calculator")["touches"], json!([]));
    assert_eq!((&of("workspace.write")["pure"], &of("corpus.search")["pure"]), (&json!(false), &json!(true)));
    assert!(listed.iter().all(|tool| tool["on"] == (tool["off_until_allowed"] == false)), "{listed:?}");
    let table = out(&tools(&folder, &["list"]));
    assert!(
        table.lines().any(|line| line.starts_with("calculator ") && line.contains("built in")),
        "{table}"
    );

    let shown = folder.json(&["tools", "show", "corpus_search", "--json"]).unwrap();
    assert_eq!(shown["name"], "corpus.search");
    assert_eq!(shown["parameters"]["type"], "object");
    let roles = shown["roles"].as_array().unwrap();
    assert!(roles.contains(&json!("researcher")) && !roles.contains(&json!("planner")), "{roles:?}");
    let shown = out(&tools(&folder, &["show", "calculator"]));
    assert!(
        shown.contains("limits") && shown.contains("30.0s a call") && shown.contains("\"expression\""),
        "{shown}"
    );

    let unknown = tools(&folder, &["show", "calcuator"]);
    assert_eq!(code(&unknown), Some(2));
    assert!(both(&unknown).contains("did you mean calculator?"), "{}", both(&unknown));
    assert!(folder.state().is_none() && !folder.path().join(".muster").exists(), "nothing was begun");
}

#[test]
fn rights_and_settings_close_a_tool_by_hand_as_they_do_for_agents() {
    let folder = folder();
    let closed = ["--set", "limits.rights.tools=!calculator"];
    let listed = folder.json(&[&["tools", "list", "--json"], &closed[..]].concat()).unwrap();
    let of = listed.as_array().unwrap().iter().find(|tool| tool["name"] == "calculator").unwrap();
    assert_eq!(of["on"], false);
    let refused =
        tools(&folder, &[&["call", "calculator", "--args", r#"{"expression": "1"}"#], &closed[..]].concat());
    assert_eq!(code(&refused), Some(2), "{}", both(&refused));
    assert!(both(&refused).contains("Not done"), "{}", both(&refused));
}

#[test]
fn a_call_by_hand_ends_as_the_tool_does() {
    let folder = folder();
    let call =
        |args: &str, more: &[&str]| tools(&folder, &[&["call", "calculator", "--args", args], more].concat());
    let fine = call(r#"{"expression": "17.5 / 100 * 2480"}"#, &[]);
    assert_eq!((code(&fine), out(&fine).contains("434")), (Some(0), true), "{}", both(&fine));
    let result: Value = serde_json::from_str(&out(&call(r#"{"expression": "2 + 3"}"#, &["--json"]))).unwrap();
    assert_eq!((&result["status"], &result["tries"]), (&json!("success"), &json!(1)));
    for (args, said) in [
        (r#"{"expression": 7}"#, "/expression: 7 is not of type"),
        (r#"{"expression": "2 +"}"#, "something is missing at its end"),
        ("{", "the arguments are no JSON"),
        ("@missing.json", "cannot be read"),
    ] {
        let wrong = call(args, &[]);
        assert_eq!(code(&wrong), Some(2), "{args}: {}", both(&wrong));
        assert!(both(&wrong).contains(said), "{args}: {}", both(&wrong));
    }
    folder.write("args.json", r#"{"expression": "6 * 7"}"#).unwrap();
    assert!(out(&call("@args.json", &[])).contains("42"));
    assert_eq!(code(&tools(&folder, &["call", "nothing"])), Some(2));
}

#[test]
fn a_call_by_hand_reads_documents_and_changes_the_files_of_a_folder() {
    let folder = folder();
    write_documents(&folder);
    let query = r#"{"query": "how deep may delegation go"}"#;
    let found = tools(&folder, &["call", "corpus.search", "--args", query, "--docs", "docs"]);
    assert_eq!(code(&found), Some(0), "{}", both(&found));
    assert!(out(&found).contains("delegation.md"), "{}", both(&found));
    let without = tools(&folder, &["call", "corpus.search", "--args", query]);
    assert_eq!(code(&without), Some(2));
    assert!(both(&without).contains("--docs FOLDER"), "{}", both(&without));

    folder.write("here/notes/a.md", "one\n").unwrap();
    folder.write("here/.hidden", "no\n").unwrap();
    let listed = tools(&folder, &["call", "workspace.list", "--workspace", "here"]);
    assert!(out(&listed).contains("notes/a.md") && !out(&listed).contains("hidden"), "{}", both(&listed));
    let append = r#"{"path": "notes/a.md", "text": "two\n"}"#;
    let appended = tools(&folder, &["call", "workspace.append", "--args", append, "--workspace", "here"]);
    assert_eq!(code(&appended), Some(0), "{}", both(&appended));
    assert_eq!(std::fs::read_to_string(folder.path().join("here/notes/a.md")).unwrap(), "one\ntwo\n");

    let write = r#"{"path": "b.md", "text": "three"}"#;
    let written = both(&tools(&folder, &["call", "workspace.write", "--args", write]));
    let place = written.lines().find_map(|line| line.split("wrote ").nth(1)).unwrap().trim();
    assert_eq!(std::fs::read_to_string(place).unwrap(), "three");
    std::fs::remove_dir_all(std::path::Path::new(place).parent().unwrap()).unwrap();
}

#[test]
fn composites_of_the_folder_are_checked_shown_and_called_by_hand() {
    let folder = folder();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/examples/tools");
    for file in [
        "word_count.tool.toml",
        "word_count.py",
        "checksum.tool.toml",
        "checksum.sh",
        "word_table.composite.toml",
    ] {
        folder.write(&format!("tools/{file}"), std::fs::read(format!("{examples}/{file}")).unwrap()).unwrap();
    }
    let step = |name: &str, tool: &str| {
        format!("description = \"d\"\n[[steps]]\nname = \"{name}\"\ntool = \"{tool}\"\n")
    };
    folder.write("tools/away.composite.toml", step("a", "elsewhere.find")).unwrap();
    let checked = folder.json(&["agent", "tools", "--check", "--json"]).unwrap();
    assert_eq!(checked["faults"], json!([]), "{checked}");
    assert_eq!(checked["composites"][0]["missing"], json!(["elsewhere.find"]));
    assert_eq!(checked["composites"][1]["calls"], json!(["own.checksum", "own.word_count"]));

    let shown = folder.json(&["tools", "show", "own.word_table", "--json"]).unwrap();
    assert_eq!((&shown["pure"], &shown["source"]), (&json!(true), &json!("file word_table.composite.toml")));
    let missing = tools(&folder, &["show", "own.away"]);
    assert!(code(&missing) == Some(2) && both(&missing).contains("elsewhere.find"), "{}", both(&missing));

    let args = r#"{"texts": ["one two", "three"], "checksum": true}"#;
    let called: Value =
        serde_json::from_str(&out(&tools(&folder, &["call", "own.word_table", "--args", args, "--json"])))
            .unwrap();
    assert_eq!(called["data"]["result"]["words"][0]["words"], 2, "{called}");
    let outcomes: Vec<&Value> =
        called["data"]["steps"].as_array().unwrap().iter().map(|step| &step["outcome"]).collect();
    assert_eq!(outcomes, ["done", "done"], "{called}");
    let narrow = ["--set", "limits.rights.tools=!own.checksum"];
    let refused = tools(&folder, &[&["call", "own.word_table", "--args", args], &narrow[..]].concat());
    assert!(code(&refused) == Some(2) && both(&refused).contains("Not done"), "{}", both(&refused));

    folder
        .write("tools/round.composite.toml", step("a", "own.word_table") + &step("b", "own.round")[18..])
        .unwrap();
    folder.write("tools/ask.composite.toml", step("a", "request_info")).unwrap();
    let wrong = folder.run(&["agent", "tools", "--check"]).unwrap();
    let told = both(&wrong);
    assert_eq!(code(&wrong), Some(2), "{told}");
    assert!(told.contains("round.composite.toml:7:8: `own.round` calls itself"), "{told}");
    assert!(told.contains("`request_info` waits for somebody"), "{told}");
}

#[test]
fn arguments_come_from_standard_input() {
    let folder = folder();
    let mut command = folder.command(&["tools", "call", "calculator", "--args", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, br#"{"expression": "6 * 7"}"#).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(out(&output).contains("42"), "{}", both(&output));
}

#[test]
fn every_tool_tests_well() {
    let folder = folder();
    let tested = folder.json(&["tools", "test", "--json"]).unwrap();
    let tested = tested.as_array().unwrap();
    assert!(tested.len() > 20 && tested.iter().all(|check| check["verdict"] == "ok"), "{tested:?}");
    let one = out(&tools(&folder, &["test", "calculator"]));
    assert!(one.contains("calculator") && one.contains('5'), "{one}");
}

#[test]
fn how_calls_went_is_counted_from_the_record() {
    let task = json!({"name": "sums", "goal": "Add up.", "role": "worker"});
    let server = ModelServer::start(script_of(vec![task], |request| match request.turns() {
        0 => act("calculator", json!({"expression": "2 + 3"})),
        1 => act("calculator", json!({"expression": "2 +"})),
        2 => act("workspace.write", json!({"path": "a.md", "text": "five"})),
        _ => done("It is 5."),
    }))
    .unwrap();
    let folder = with_model(&server);
    let run = ["run", "Add two and three.", "--model", "openai/scripted", "--planning", "always", "--quiet"];
    let output = folder.run(&run).unwrap();
    assert!(output.status.success(), "{}\n{}", both(&output), folder.logs());
    for which in [&["--run", "last"][..], &[]] {
        let stats = folder.json(&[&["tools", "stats", "--json"], which].concat()).unwrap();
        let tools = stats["tools"].as_array().unwrap();
        let of = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap_or(&Value::Null);
        assert_eq!(
            (&of("calculator")["calls"], &of("calculator")["refused"]),
            (&json!(2), &json!(1)),
            "{stats}"
        );
        assert_eq!(
            (&of("workspace.write")["calls"], &of("submit")["calls"]),
            (&json!(1), &Value::Null),
            "{stats}"
        );
    }
    let table = out(&tools(&folder, &["stats"]));
    assert!(
        table.lines().any(|line| line.starts_with("calculator  ")) && table.contains("in 1 run"),
        "{table}"
    );
}
