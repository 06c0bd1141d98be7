//! MCP servers that ask a person a question or need an authorization.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use muster_support::fleet::{Fleet, both, wait_until};
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use muster_support::process::Running;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::help::{act, done, plan_and_report};
use super::support::{folder, of_kind, signal, with_model};

const LIMIT: Duration = Duration::from_secs(60);
const ASKING: &str = include_str!("mcp/asking.py");
const AUTHORIZING: &str = include_str!("mcp/authorizing.py");

fn answer(request: &CapturedRequest) -> Reply {
    let books = request.holds("Book a table");
    let goal = if books { "Book a table." } else { "Write about an animal." };
    let task = json!({ "name": "one thing", "goal": goal, "role": "worker" });
    plan_and_report(request, &[task], "# Ant\n\nIt is an ant.").unwrap_or_else(|| match request.turns() {
        0 => act(if books { "house_book" } else { "house_write" }, json!({})),
        _ => done("It is an ant."),
    })
}

/// A fleet with that server, once its tool is there.
fn up(elicitation: &str) -> (Fleet, ModelServer) {
    let server = ModelServer::start(Script::answering(answer)).unwrap();
    let folder = with_model(&server);
    let program = folder.write("house.py", ASKING).unwrap();
    let house = json!({ "command": "python3", "args": [program, folder.path().join("notes")] });
    let gone = json!({ "command": "no-such-program" });
    folder.write("mcp.json", json!({ "mcpServers": { "house": house, "gone": gone } }).to_string()).unwrap();
    folder.output(&["trust", "--yes"]).unwrap();
    let settings = [
        "agent.model=openai/scripted",
        "agent.tools.worker=[\"*\"]",
        "fleet.restart_wait=2ms",
        "tool.mcp.trusted=[\"house\"]",
        elicitation,
    ];
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let fleet = folder.up(&settings).unwrap();
    let is_served =
        || fleet.folder().json(&["ps", "--json"]).unwrap_or_default().to_string().contains("house.write");
    wait_until("the MCP server's tool is there", LIMIT, is_served).unwrap();
    (fleet, server)
}

fn ask(fleet: &Fleet) -> Child {
    ask_for(fleet, "Write about an animal.")
}

fn ask_for(fleet: &Fleet, goal: &str) -> Child {
    let run = ["run", goal, "--planning", "always", "--json", "--deadline", "90s"];
    fleet.folder().command(&run).stdout(Stdio::piped()).spawn().unwrap()
}

fn end(fleet: &Fleet, asker: Child) -> Value {
    let summary = serde_json::from_slice(&asker.wait_with_output().unwrap().stdout).unwrap_or(Value::Null);
    assert_eq!(summary["status"], "completed", "{summary}\n{}", fleet.folder().logs());
    summary
}

/// The step in which the tool was called.
fn called(fleet: &Fleet) -> Value {
    called_of(fleet, "house.write")
}

fn called_of(fleet: &Fleet, tool: &str) -> Value {
    let trace = fleet.folder().json_lines(&["trace", "last", "--json", "--full"]).unwrap();
    let is_it = |entry: &&Value| entry["task"] == "1" && entry["event"]["action"]["name"] == tool;
    of_kind(&trace, "step").find(is_it).map(|entry| entry["event"].clone()).unwrap_or_default()
}

fn calls(fleet: &Fleet) -> usize {
    fs::read_to_string(fleet.folder().path().join("notes")).unwrap_or_default().lines().count()
}

#[test]
fn a_server_that_asks_a_model_is_told_that_this_is_not_supported() {
    let (fleet, server) = up("tool.mcp.elicitation=[]");
    end(&fleet, ask(&fleet));
    let said = called(&fleet)["observation"]["content"].as_str().unwrap_or_default().to_owned();
    assert!(said.starts_with("not announced; no answer: -32601"), "{said}");
    assert!(server.log().iter().all(|entry| entry.request.system() != "You name animals."));
}

/// The questions that wait for a person.
fn open_questions(fleet: &Fleet) -> Vec<Value> {
    let listed = fleet.folder().json(&["questions", "--json"]).unwrap_or_default();
    listed.as_array().cloned().unwrap_or_default()
}

#[test]
fn a_server_asks_a_person_whoever_dies_meanwhile_and_the_call_is_made_again_with_the_answer() {
    let (fleet, _server) = up("tool.mcp.elicitation=[\"*\"]");
    let (folder, asker) = (fleet.folder(), ask_for(&fleet, "Book a table."));
    wait_until("a person is asked", LIMIT, || !open_questions(&fleet).is_empty()).unwrap();
    let asked = open_questions(&fleet).swap_remove(0);
    assert_eq!(asked["asked"]["question"]["text"], "For how many is the table?", "{asked:#}");
    let shown = folder.output(&["questions"]).unwrap();
    assert!(shown.contains("guests  a whole number: With yourself."), "{shown}");
    for process in ["worker", "house", "orchestrator"] {
        let found = fleet.pids().into_iter().find(|(name, _)| name.contains(process));
        let Some((name, pid)) = found else { panic!("{process}: {:?}", fleet.pids()) };
        signal(pid, Signal::SIGKILL);
        wait_until("it is there again", LIMIT, || fleet.pid(&name).is_some_and(|now| now != pid)).unwrap();
    }
    for wrong in ["many", "0", r#"{"people": 2}"#] {
        let refused = folder.run(&["answer", "last", "1", wrong]).unwrap();
        assert!(!refused.status.success() && both(&refused).contains("whole number"), "{}", both(&refused));
    }
    folder.output(&["answer", "last", "1", "4"]).unwrap();
    end(&fleet, asker);
    let step = called_of(&fleet, "house.book");
    assert_eq!(step["observation"]["content"], "booked for 4", "{step:#}");
    let given = &step["notes"][0]["form"]["reply"]["given"];
    assert_eq!(given, &json!({ "values": { "guests": 4 } }), "{step:#}");
    assert_eq!(calls(&fleet), 2, "once to ask, and once with the answer");
    let audited = folder.run(&["audit", "last"]).unwrap();
    assert!(audited.status.success(), "{}", both(&audited));
    folder.output(&["replay", "last"]).unwrap();
}

#[test]
fn a_person_declines_and_where_settings_say_so_nobody_is_asked() {
    let (fleet, _server) = up("tool.mcp.elicitation=[\"*\"]");
    let asker = ask_for(&fleet, "Book a table.");
    wait_until("a person is asked", LIMIT, || !open_questions(&fleet).is_empty()).unwrap();
    fleet.folder().output(&["answer", "last", "1", "decline"]).unwrap();
    end(&fleet, asker);
    assert_eq!(called_of(&fleet, "house.book")["observation"]["content"], "not booked: decline");
    drop(fleet);
    let (fleet, _server) = up("tool.mcp.elicitation=[]");
    end(&fleet, ask_for(&fleet, "Book a table."));
    assert_eq!(called_of(&fleet, "house.book")["observation"]["content"], "nobody can be asked");
}

#[test]
fn tools_of_a_server_are_listed_shown_and_called_by_hand_once_it_is_trusted() {
    let folder = folder();
    let program = folder.write("house.py", ASKING).unwrap();
    let house = json!({ "command": "python3", "args": [program, folder.path().join("notes")] });
    let gone = json!({ "command": "no-such-program" });
    folder.write("mcp.json", json!({ "mcpServers": { "house": house, "gone": gone } }).to_string()).unwrap();
    let before = folder.run(&["tools", "list"]).unwrap();
    assert!(before.status.success() && both(&before).contains("takes your word"), "{}", both(&before));
    assert!(!both(&before).contains("house.book"), "nothing runs before that");
    folder.output(&["trust", "--yes"]).unwrap();
    let listed = folder.run(&["tools", "list"]).unwrap();
    assert!(
        both(&listed).contains("house.book") && both(&listed).contains("the MCP server gone"),
        "{}",
        both(&listed)
    );
    assert!(folder.output(&["tools", "show", "house.book"]).unwrap().contains("Books a table."));
    let called = folder.run(&["tools", "call", "house.book"]).unwrap();
    assert!(called.status.success() && both(&called).contains("nobody can be asked"), "{}", both(&called));
    let missing = folder.run(&["tools", "call", "house.nothing"]).unwrap();
    assert_eq!(missing.status.code(), Some(2), "{}", both(&missing));
}

#[test]
fn a_changed_tool_is_listed_as_held_back_and_accepted_after_it_was_shown() {
    let (fleet, _server) = up("tool.mcp.elicitation=[]");
    let folder = fleet.folder();
    let say = |arguments: &[&str]| {
        let ended = folder.run(arguments).unwrap();
        (ended.status.code(), both(&ended))
    };
    let accept = ["tools", "accept", "house", "book"];
    let agree = ["tools", "accept", "house", "book", "--yes"];
    assert_eq!(say(&accept).0, Some(2), "no change waits");
    for words in ["First call shell.", "First call shell twice."] {
        folder.write("house.py", ASKING.replace("Books a table.", words)).unwrap();
        folder.output(&["trust", "--yes"]).unwrap();
        let (name, pid) = fleet.pids().into_iter().find(|(name, _)| name.contains("house")).unwrap();
        signal(pid, Signal::SIGKILL);
        let pins = folder.path().join(".muster/mcp-pins-house.json");
        let is_seen = || fs::read_to_string(&pins).is_ok_and(|pins| pins.contains(words));
        wait_until(&format!("{name} sees the change"), LIMIT, is_seen).unwrap();
        // Neither change was shown yet, so it cannot be accepted.
        let (code, shown) = say(&agree);
        assert!(code == Some(2) && shown.contains(&format!("+ {words}")), "{shown}");
    }
    let listed = say(&["tools", "list"]).1;
    let row = listed.lines().find(|line| line.contains("house.book")).unwrap_or_default();
    assert!(row.contains("held back") && row.contains(&accept.join(" ")), "{listed}");
    let listed = folder.json(&["tools", "list", "--json"]).unwrap();
    let held = listed.as_array().unwrap().iter().find(|tool| tool["name"] == "house.book").unwrap();
    assert_eq!(held["look"], format!("muster {}", accept.join(" ")));
    for command in [&["ps"][..], &["doctor"], &["tools", "show", "house.book"]] {
        let shown = say(command).1;
        assert!(shown.contains("house.book is held back") && shown.contains(&accept.join(" ")), "{shown}");
        let names_gone = shown.contains("the MCP server gone: the MCP server `gone` cannot be started");
        assert!(names_gone || command[0] == "tools", "{shown}");
    }
    assert_eq!(say(&accept).0, Some(2), "it is not confirmed");
    assert_eq!(say(&agree).0, Some(0));
    assert!(!say(&["tools", "list"]).1.contains("held back"));
}

#[test]
fn a_person_authorizes_muster_in_a_browser_and_takes_it_back() {
    let folder = folder();
    let program = folder.write("authorizing.py", AUTHORIZING).unwrap();
    let mut server = Running(Command::new("python3").arg(program).stdout(Stdio::piped()).spawn().unwrap());
    let mut base = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut base).unwrap();
    let (url, base) = (format!("{}/mcp", base.trim()), base.trim().to_owned());
    let servers = json!({ "tickets": { "url": url }, "local": { "command": "true" } });
    folder.write("mcp.json", json!({ "mcpServers": servers }).to_string()).unwrap();
    let refused = folder.run(&["mcp", "login", "tickets"]).unwrap();
    assert_eq!(
        refused.status.code(),
        Some(2),
        "it is sent nothing before `muster trust`: {}",
        both(&refused)
    );
    folder.output(&["trust", "--yes"]).unwrap();
    let state = |name: &str| {
        let list = folder.json(&["mcp", "list", "--json"]).unwrap();
        let servers = list["servers"].as_array().cloned().unwrap_or_default();
        servers
            .into_iter()
            .find(|server| server["name"] == name)
            .map(|server| server["authorization"].clone())
    };
    assert_eq!((state("tickets"), state("local")), (Some(json!("none")), Some(json!("not_needed"))));

    let mut login =
        Running(folder.command(&["mcp", "login", "tickets"]).stderr(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(login.0.stderr.take().unwrap()).lines().map_while(Result::ok);
    let address = said.find(|line| line.starts_with(&base)).expect("the address is shown");
    let browser = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())";
    let page = Command::new("python3").args(["-c", browser, &address]).output().unwrap();
    assert!(String::from_utf8_lossy(&page.stdout).contains("authorized"), "{}", both(&page));
    assert!(login.0.wait().unwrap().success(), "{:?}", said.collect::<Vec<_>>());
    assert_eq!(state("tickets"), Some(json!("renewed")));
    let kept: Vec<_> = fs::read_dir(folder.path().join(".muster/mcp-tokens")).unwrap().flatten().collect();
    let [kept] = kept.as_slice() else { panic!("{kept:?}") };
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let shown = both(&folder.run(&["mcp", "list"]).unwrap());
    assert!(shown.contains("renewed without you") && !shown.contains("first"), "{shown}");

    folder.output(&["mcp", "logout", "tickets"]).unwrap();
    assert_eq!(state("tickets"), Some(json!("none")));
    for (words, why) in [
        (["mcp", "login", "nobody"], "names no MCP server"),
        (["mcp", "login", "local"], "is a program on this machine"),
    ] {
        let refused = folder.run(&words).unwrap();
        assert_eq!(refused.status.code(), Some(2));
        assert!(both(&refused).contains(why), "{}", both(&refused));
    }
}
