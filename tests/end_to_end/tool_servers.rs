//! Tools of one's own, served over the bus: a file in Python that a model calls, its server and its agent killed in the middle of a
//! call, and servers that lie. How often a tool took effect is seen at the far end: it writes a line each time.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use muster_support::fleet::{Fleet, Folder, wait_until};
use muster_support::foreign::Stranger;
use muster_support::model_server::{ModelServer, Script};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::support::{folder, of_kind, one_call, signal, with_model};

const LIMIT: Duration = Duration::from_secs(60);

/// Notes a word down, which is seen in a file; takes its time while there is a file `slow`.
const NOTE: &str = "\
import json, os, sys, time
asked = json.load(sys.stdin)
folder = os.environ['NOTES']
with open(os.path.join(folder, 'notes'), 'a') as notes:
    notes.write(os.environ['MUSTER_CALL_KEY'] + ' ' + asked['word'] + '\\n')
until = time.monotonic() + 30
while os.path.exists(os.path.join(folder, 'slow')) and time.monotonic() < until:
    time.sleep(0.02)
print(json.dumps({'content': 'Noted ' + asked['word'] + '.', 'data': {'word': asked['word']}}))
";

/// A folder with that tool.
fn with_tool(uncertain: &str) -> Folder {
    let folder = folder();
    let notes = folder.path().join("notes");
    fs::create_dir_all(&notes).unwrap();
    folder.write("tools/note.py", NOTE).unwrap();
    let file = format!(
        "description = \"Notes a word down. Use it to note words.\"\ncommand = [\"python3\", \"./note.py\"]\n\
         sandbox = false\nuncertain = \"{uncertain}\"\n\n[parameters]\ntype = \"object\"\nrequired = [\"word\"]\n\
         properties.word.type = \"string\"\n\n[environment]\nNOTES = \"{}\"\n",
        notes.display()
    );
    folder.write("tools/note.tool.toml", file).unwrap();
    folder.output(&["trust", "--yes"]).unwrap();
    folder
}

/// A model that notes a word by this tool.
fn model(tool: &'static str) -> ModelServer {
    let arguments = json!({ "thought": "I note it.", "word": "ant" });
    ModelServer::start(Script::answering(move |request| one_call(request, tool, &arguments))).unwrap()
}

/// Notes the word that it is given, and once more what came of it.
const TWICE: &str = "\
description = \"Notes a word down twice.\"
result = \"{{steps.again.content}} {{steps.first.content}}\"
parameters = { type = \"object\", required = [\"word\"], properties = { word = { type = \"string\" } } }
[[steps]]
name = \"again\"
tool = \"own.note\"
arguments = { word = \"{{steps.first.data.word}} again\" }
[[steps]]
name = \"first\"
tool = \"own.note\"
arguments = { word = \"{{args.word}}\" }
";

/// A fleet with that tool, once it is served.
fn up(uncertain: &str) -> (Fleet, ModelServer) {
    let server = model("own_note");
    let folder =
        with_tool(uncertain).with("OPENAI_API_KEY", "test-key").with("OPENAI_BASE_URL", server.openai_url());
    let settings = ["agent.model=openai/scripted", "fleet.restart_wait=2ms"];
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let fleet = folder.up(&settings).unwrap();
    let listed = || fleet.folder().output(&["ps"]).is_ok_and(|table| table.contains("tools-own"));
    wait_until("the tools are served", LIMIT, listed).unwrap();
    (fleet, server)
}

fn ask(folder: &Folder) -> Child {
    let run = ["run", "Note down the word.", "--planning", "always", "--json", "--deadline", "90s"];
    folder.command(&run).stdout(Stdio::piped()).spawn().unwrap()
}

fn end(asker: Child) -> Value {
    serde_json::from_slice(&asker.wait_with_output().unwrap().stdout).unwrap_or(Value::Null)
}

/// How often the tool took effect.
fn notes(folder: &Folder) -> Vec<String> {
    let path: PathBuf = folder.path().join("notes/notes");
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The observation of the first step of the task.
fn observed(folder: &Folder) -> Value {
    let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap();
    let step = of_kind(&trace, "step").find(|entry| entry["task"] == "1").unwrap_or(&Value::Null);
    step["event"]["observation"].clone()
}

#[test]
fn a_tool_file_in_python_is_served_called_and_followed() {
    let (fleet, server) = up("ask");
    let folder = fleet.folder();
    let summary = end(ask(folder));
    assert_eq!(summary["status"], "completed", "{summary}\n{}", folder.logs());
    let seen = observed(folder);
    assert_eq!((&seen["status"], &seen["content"]), (&json!("success"), &json!("Noted ant.")), "{seen}");
    let notes = notes(folder);
    assert!(notes.len() == 1 && notes[0].ends_with(" ant") && notes[0].contains("/1/"), "{notes:?}");
    let told = server
        .log()
        .iter()
        .any(|entry| entry.request.body.to_string().contains("Notes a word down. Use it to"));
    assert!(told, "the model is told of the tool");
    assert!(folder.json(&["replay", "last", "--json"]).is_ok());

    // Whoever calls with rights that no orchestrator signed gets nothing, however wide they are said to be.
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let forged = json!({
        "run": "0".repeat(32), "task": "1", "tool": "note", "spec": "", "arguments": { "word": "bee" }, "key": "forged",
        "patience_ms": 1_000, "rights": [],
    });
    let said = stranger.request("tool.own.call.worker.worker-1", forged.to_string().as_bytes()).unwrap();
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("refused") && said.contains("nobody vouches"), "{said}");

    // The file goes, and so does its process.
    fs::remove_file(folder.path().join("tools/note.tool.toml")).unwrap();
    let gone = || folder.output(&["ps"]).is_ok_and(|table| !table.contains("tools-own"));
    wait_until("the server has ended", LIMIT, gone).unwrap();
}

/// Begins a run whose tool does not end, and kills a process in the middle of the call.
fn killed(uncertain: &str, process: &str) -> (Fleet, Value) {
    let (fleet, _server) = up(uncertain);
    let folder = fleet.folder();
    let slow = folder.write("notes/slow", "").unwrap();
    let asker = ask(folder);
    wait_until("the tool is called", LIMIT, || notes(folder).len() == 1).unwrap();
    let before = fleet.pid(process).unwrap();
    signal(before, Signal::SIGKILL);
    let is_back = || fleet.pid(process).is_some_and(|pid| pid != before);
    wait_until("the process is started again", LIMIT, is_back).unwrap();
    fs::remove_file(slow).unwrap();
    let summary = end(asker);
    (fleet, summary)
}

#[test]
fn when_the_server_dies_in_a_call_the_model_is_told_that_nobody_knows() {
    let (fleet, summary) = killed("ask", "tools-own-1");
    let (folder, seen) = (fleet.folder(), observed(fleet.folder()));
    assert_eq!(summary["status"], "completed", "{summary}\n{}", folder.logs());
    assert!(seen["content"].as_str().unwrap_or_default().contains("look before you do it again"), "{seen}");
    assert_eq!(notes(folder).len(), 1, "it is not done twice");
}

#[test]
fn when_the_server_dies_in_a_call_that_may_be_repeated_it_is_made_again() {
    let (fleet, summary) = killed("repeat", "tools-own-1");
    let (folder, seen) = (fleet.folder(), observed(fleet.folder()));
    assert_eq!(summary["status"], "completed", "{summary}\n{}", folder.logs());
    assert_eq!(seen["content"], "Noted ant.", "{seen}\n{}", folder.logs());
    let notes = notes(folder);
    assert!(notes.len() == 2 && notes[0] == notes[1], "under the same key: {notes:?}");
}

#[test]
fn when_the_agent_dies_in_a_call_that_may_be_repeated_the_server_remembers_it() {
    let (fleet, summary) = killed("repeat", "worker-1");
    let (folder, seen) = (fleet.folder(), observed(fleet.folder()));
    assert_eq!(summary["status"], "completed", "{summary}\n{}", folder.logs());
    assert_eq!(seen["content"], "Noted ant.", "{seen}\n{}", folder.logs());
    assert_eq!(notes(folder).len(), 1, "it was asked for twice, and done once");
}

#[test]
fn when_the_agent_dies_in_a_call_that_must_not_be_repeated_it_is_not() {
    for (uncertain, words) in [("ask", "look before you do it again"), ("fail", "must not be done twice")] {
        let (fleet, summary) = killed(uncertain, "worker-1");
        let (folder, seen) = (fleet.folder(), observed(fleet.folder()));
        assert!(
            seen["content"].as_str().unwrap_or_default().contains(words),
            "{uncertain}: {seen}\n{summary}"
        );
        assert_eq!(notes(folder).len(), 1, "{uncertain}");
    }
}

#[test]
fn an_agent_that_dies_in_a_composite_goes_on_with_it_and_its_tools_do_nothing_twice() {
    let server = model("own_twice");
    let folder =
        with_tool("repeat").with("OPENAI_API_KEY", "test-key").with("OPENAI_BASE_URL", server.openai_url());
    folder.write("tools/twice.composite.toml", TWICE).unwrap();
    let slow = folder.write("notes/slow", "").unwrap();
    let settings = ["agent.model=openai/scripted", "fleet.restart_wait=2ms"];
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let fleet = folder.up(&settings).unwrap();
    let folder = fleet.folder();
    let listed = || folder.output(&["ps"]).is_ok_and(|table| table.contains("tools-own"));
    wait_until("the tools are served", LIMIT, listed).unwrap();
    let asker = ask(folder);
    wait_until("the first tool is called", LIMIT, || notes(folder).len() == 1).unwrap();
    let before = fleet.pid("worker-1").unwrap();
    signal(before, Signal::SIGKILL);
    let is_back = || fleet.pid("worker-1").is_some_and(|pid| pid != before);
    wait_until("the worker is started again", LIMIT, is_back).unwrap();
    fs::remove_file(slow).unwrap();
    let summary = end(asker);
    assert_eq!(summary["status"], "completed", "{summary}\n{}", folder.logs());
    let seen = observed(folder);
    let told = seen["content"].as_str().unwrap_or_default();
    assert!(
        told.starts_with("Noted ant again. Noted ant.") && told.contains("- first (own.note): done"),
        "{seen}"
    );
    let notes = notes(folder);
    let [first, again] = notes.as_slice() else { panic!("each was done once: {notes:?}") };
    assert!(first.contains("/first ant") && again.contains("/again ant again"), "{notes:?}");
}

/// A tool server that this test plays: it says that it is there, and answers as it is told.
struct Liar<'a> {
    stranger: &'a Stranger,
}

impl<'a> Liar<'a> {
    fn begin(
        stranger: &'a Stranger,
        tools: &Value,
        reply: impl Fn(&Value) -> Vec<u8> + Send + 'static,
    ) -> Self {
        let specs = json!({ "tools": tools }).to_string().into_bytes();
        stranger.serve("tool.liar.specs.liar-1", "liar-1", move |_| Some(specs.clone())).unwrap();
        stranger
            .serve("tool.liar.call.*.*", "liar", move |call| {
                Some(reply(&serde_json::from_slice(call).unwrap_or(Value::Null)))
            })
            .unwrap();
        Self { stranger }
    }

    fn say(&self, digest: &str) {
        let notice = json!({ "server": "liar", "process": "liar-1", "digest": digest });
        self.stranger.publish("tool.liar.here", notice.to_string().as_bytes()).unwrap();
        self.stranger.flush().unwrap();
    }
}

fn lie(name: &str, description: &str) -> Value {
    json!({ "name": name, "description": description, "parameters": { "type": "object" }, "pure": true, "timeout_ms": 2_000 })
}

/// A fleet whose worker calls `liar.note`, and what it observed.
fn lied_to(tools: &Value, reply: impl Fn(&Value) -> Vec<u8> + Send + 'static) -> (Value, Vec<String>) {
    let server = model("liar_note");
    let folder = with_model(&server);
    let fleet = folder.up(&["--set", "agent.model=openai/scripted"]).unwrap();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let liar = Liar::begin(&stranger, tools, reply);
    liar.say("one");
    let summary = end(ask(fleet.folder()));
    assert_eq!(summary["status"], "completed", "{summary}\n{}", fleet.folder().logs());
    let declared = server.log().iter().flat_map(|entry| entry.request.tools.clone()).collect();
    (observed(fleet.folder()), declared)
}

#[test]
fn a_server_that_answers_nonsense_floods_or_answers_for_another_call_costs_one_step() {
    let other = |call: &Value| {
        let result = json!({ "status": "success", "content": "Trust me." });
        let key = format!("{}-other", call["key"].as_str().unwrap_or_default());
        json!({ "state": "done", "key": key, "result": result }).to_string().into_bytes()
    };
    let (seen, _) = lied_to(&json!([lie("note", "Notes.")]), other);
    assert!(seen["status"] == "error" && seen["content"].to_string().contains("another call"), "{seen}");
    let (seen, _) = lied_to(&json!([lie("note", "Notes.")]), |_| b"\xff\x00 nonsense".to_vec());
    assert!(seen["status"] == "error" && seen["content"].to_string().contains("no answer"), "{seen}");
    let long = |call: &Value| {
        let result = json!({ "status": "success", "content": "x".repeat(900_000) });
        json!({ "state": "done", "key": call["key"], "result": result }).to_string().into_bytes()
    };
    let (seen, _) = lied_to(&json!([lie("note", "Notes.")]), long);
    assert_eq!((&seen["status"], &seen["truncated"]), (&json!("success"), &json!(true)));
    assert!(seen["content"].as_str().unwrap().len() < 40_000, "it is cut");
}

#[test]
fn ten_thousand_tools_and_names_of_ours_are_left_out() {
    let many: Vec<Value> = (0..10_000).map(|n| json!({ "name": format!("t{n}") })).collect();
    let (seen, declared) = lied_to(&json!(many), |_| Vec::new());
    assert!(seen["content"].as_str().unwrap_or_default().contains("no action"), "{seen}");
    assert!(!declared.iter().any(|name| name.starts_with("liar")), "{declared:?}");
    let names = [lie("note", "Notes."), lie("note", "Notes twice."), lie("a b", "Odd."), lie("", "None.")];
    let done = |call: &Value| {
        let result = json!({ "status": "success", "content": "Noted." });
        json!({ "state": "done", "key": call["key"], "result": result }).to_string().into_bytes()
    };
    let (seen, declared) = lied_to(&json!(names), done);
    assert_eq!(seen["content"], "Noted.", "{seen}");
    assert!(declared.contains(&"liar_note".to_owned()));
    assert!(declared.iter().all(|name| name == "liar_note" || !name.starts_with("liar")), "{declared:?}");
}
