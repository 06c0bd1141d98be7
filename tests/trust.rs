//! Whose files count, from outside: a project that was planted, one's own, trusted and changed; a planted state of a fleet.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, missing_docs)]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use muster_support::fleet::{Folder, both};
use muster_support::skip::skipped;

/// Longest wait for what has to happen.
const LIMIT: Duration = Duration::from_secs(30);

/// A user that is nobody here.
const STRANGER: u32 = 65534;

fn project() -> Folder {
    let folder = Folder::new(env!("CARGO_BIN_EXE_muster")).unwrap();
    let home = folder.path().to_owned();
    // What the user trusts, and the user's own settings, lie elsewhere than the project.
    fs::create_dir(home.join("home")).unwrap();
    folder.with("HOME", home.join("home").display().to_string())
}

/// A project whose file runs a script as the server: it leaves a mark.
fn with_program() -> (Folder, PathBuf) {
    let folder = project();
    script(&folder, "first");
    folder.write("muster.toml", "[limits]\nmax_steps = 7\n\n[server]\nbinary = \"./server.sh\"\n").unwrap();
    let mark = folder.path().join("mark");
    (folder, mark)
}

fn script(folder: &Folder, words: &str) {
    let path = folder.write("server.sh", format!("#!/bin/sh\necho {words} > mark\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs `muster` and gives the exit code and all that it said.
fn said(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String) {
    let output = folder.run(arguments).unwrap();
    (output.status.code(), both(&output))
}

fn refused(folder: &Folder, arguments: &[&str], words: &[&str]) {
    let (code, said) = said(folder, arguments);
    assert_eq!(code, Some(2), "{arguments:?}: {said}");
    // Errors are wrapped.
    let said = said.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(said.contains(word), "{arguments:?}: no {word:?} in {said}");
    }
}

fn trust(folder: &Folder) -> String {
    folder.output(&["trust", "--yes"]).unwrap()
}

fn is_root() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        skipped("files of another user", "only root can make them");
    }
    is_root
}

const COMMANDS: [&[&str]; 6] =
    [&["up"], &["up", "--detach"], &["run", "What is it?"], &["ps"], &["runs"], &["agent", "worker"]];

#[test]
fn a_program_of_a_project_runs_when_it_was_trusted_and_as_it_was_then() {
    let (folder, mark) = with_program();
    for command in COMMANDS {
        refused(&folder, command, &["run a program", "server.binary", "muster.toml:5", "muster trust"]);
    }
    // Who only looks is told what does not count, and what is harmless does.
    let (code, config) = said(&folder, &["config", "limits.max_steps"]);
    assert!(
        code == Some(0) && config.contains("muster.toml:2") && config.contains("server.binary"),
        "{config}"
    );
    let (code, doctor) = said(&folder, &["doctor"]);
    assert!(code == Some(1) && doctor.contains("muster trust"), "{doctor}");
    assert_eq!(said(&folder, &["down"]).0, Some(0));
    // Without a person to ask, nothing is trusted.
    refused(&folder, &["trust"], &["server.binary = ./server.sh", "muster.toml:5", "SHA-256", "--yes"]);
    assert!(!mark.exists(), "nothing of it was run");
    assert!(!folder.path().join("home/.local").exists(), "nothing is kept");

    assert!(trust(&folder).contains("is trusted as it is now"));
    let (_, up) = said(&folder, &["up"]);
    assert_eq!(fs::read_to_string(&mark).unwrap(), "first\n", "{up}");
    fs::remove_file(&mark).unwrap();

    script(&folder, "second");
    refused(&folder, &["up"], &["server.sh", "is not trusted as it is now", "muster trust"]);
    refused(&folder, &["trust"], &["Changed since you trusted it", "server.sh"]);
    assert!(!mark.exists(), "it was changed");
    trust(&folder);
    said(&folder, &["up"]);
    assert_eq!(fs::read_to_string(&mark).unwrap(), "second\n");
    fs::remove_file(&mark).unwrap();

    // Another line is no other meaning; another value is.
    folder.write("muster.toml", "[server]\nbinary = \"./server.sh\"\n").unwrap();
    said(&folder, &["up"]);
    assert!(fs::remove_file(&mark).is_ok());
    folder.write("muster.toml", "[server]\nbinary = \"/bin/false\"\n").unwrap();
    let changed =
        ["changed since you trusted it", "- server.binary = ./server.sh", "+ server.binary = /bin/false"];
    refused(&folder, &["up"], &changed);

    assert_eq!(said(&folder, &["trust", "--revoke"]).0, Some(0));
    folder.write("muster.toml", "[server]\nbinary = \"./server.sh\"\n").unwrap();
    refused(&folder, &["up"], &["muster trust"]);
    assert!(!mark.exists());
}

#[test]
fn what_is_trusted_is_kept_for_the_user_alone_and_listed() {
    let (folder, _) = with_program();
    assert_eq!(folder.json(&["trust", "--list", "--json"]).unwrap(), serde_json::json!([]));
    let trusted = folder.json(&["trust", "--yes", "--json"]).unwrap();
    assert_eq!((&trusted["trusted"], &trusted["items"][0]["what"]), (&true.into(), &"program".into()));
    let listed = folder.json(&["trust", "--list", "--json"]).unwrap();
    assert_eq!(listed[0]["fingerprint"], trusted["fingerprint"]);
    assert!(folder.output(&["trust", "--list"]).unwrap().contains("server.binary"));

    let kept = folder.path().join("home/.local/state/muster/trust");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = fs::read_dir(&kept).unwrap().next().unwrap().unwrap().path();
    assert_eq!((mode(&kept), mode(&file)), (0o700, 0o600));
    // What others can write tells nobody what is trusted.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    refused(&folder, &["up"], &["can be written by others"]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let revoked = folder.json(&["trust", "--revoke", "--json"]).unwrap();
    assert_eq!(revoked["revoked"], true);
    assert_eq!(folder.json(&["trust", "--revoke", "--json"]).unwrap()["revoked"], false);
    // Where nothing needs it, nothing is asked.
    folder.write("muster.toml", "[limits]\nmax_steps = 7\n").unwrap();
    assert!(folder.output(&["trust"]).unwrap().contains("nothing here that needs your word"));
}

#[test]
fn flags_variables_and_the_users_own_file_are_the_users_word() {
    let (folder, mark) = with_program();
    let ran = |folder: &Folder, arguments: &[&str]| {
        let (_, said) = said(folder, arguments);
        assert!(fs::remove_file(&mark).is_ok(), "{arguments:?}: {said}");
    };
    ran(&folder, &["up", "--set", "server.binary=./server.sh"]);
    ran(&folder, &["up", "--config", "muster.toml"]);
    let own = "[server]\nbinary = \"./server.sh\"\n\n[limits]\nmax_width = 3\nmax_steps = 2\n";
    folder.write("home/.config/muster/muster.toml", own).unwrap();
    // The project's file goes before the user's own, and still needs the user's word.
    refused(&folder, &["up"], &["muster trust"]);
    folder.write("muster.toml", "[limits]\nmax_steps = 7\n").unwrap();
    ran(&folder, &["up"]);
    let limits = folder.output(&["config", "limits"]).unwrap();
    assert!(limits.contains(".config/muster/muster.toml:5") && limits.contains(" muster.toml:2"), "{limits}");
    fs::remove_file(folder.path().join("home/.config/muster/muster.toml")).unwrap();

    folder.write("muster.toml", "[server]\nbinary = \"./server.sh\"\n").unwrap();
    let path = folder.path().display().to_string();
    let folder = folder.with("MUSTER_TRUST", format!("/nowhere:{path}"));
    ran(&folder, &["up"]);
    let folder = folder.with("MUSTER_TRUST", ".");
    refused(&folder, &["up"], &["muster trust"]);
}

#[test]
fn a_file_that_others_can_write_does_not_count() {
    let (folder, mark) = with_program();
    trust(&folder);
    let file = folder.path().join("muster.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    for command in COMMANDS {
        refused(&folder, command, &["can be written by others", "chmod go-w", "muster trust"]);
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    refused(&folder, &["up"], &["can be written by others"]);
    assert!(!mark.exists());
    // As it is now, the file may be trusted all the same; a program that others can change is not run.
    trust(&folder);
    assert!(folder.output(&["config", "limits.max_steps"]).unwrap().contains("muster.toml:2"));
    refused(&folder, &["up"], &["server.sh", "nobody else may be able to write it"]);
    assert!(!mark.exists());
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    said(&folder, &["up"]);
    assert!(mark.exists());
}

#[test]
fn blueprints_and_templates_that_others_can_write_do_not_count() {
    let folder = project();
    let blueprint = folder.write("blueprints/mine.toml", "name = 3\n").unwrap();
    let template = folder.write("prompts/worker.md.j2", "Work.\n").unwrap();
    assert!(folder.output(&["blueprint", "list"]).unwrap().contains("mine"));
    for path in [&blueprint, &template] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
    }
    let listed = folder.run(&["blueprint", "list"]).unwrap();
    assert!(!String::from_utf8_lossy(&listed.stdout).contains("mine"), "{}", both(&listed));
    assert!(both(&listed).contains("do not count"), "{}", both(&listed));
    refused(&folder, &["blueprint", "show", "mine"], &["MUSTER_TRUST"]);
    let templates = ["--set", "agent.template_dir=prompts"];
    refused(&folder, &[&["ps"][..], &templates].concat(), &["prompt templates do not count", "MUSTER_TRUST"]);
    let path = folder.path().display().to_string();
    let folder = folder.with("MUSTER_TRUST", path);
    assert!(folder.output(&["blueprint", "list"]).unwrap().contains("mine"));
}

#[test]
fn a_folder_of_somebody_else_runs_nothing_and_sets_nothing() {
    if !is_root() {
        return;
    }
    let (folder, mark) = with_program();
    folder.write("agents/spy.agent.md", "---\nrole: spy\ndescription: Looks.\n---\nLook.\n").unwrap();
    folder.write("team.toml", "[members.spy]\ncommand = [\"./server.sh\"]\n").unwrap();
    for path in ["", "muster.toml", "server.sh", "agents", "agents/spy.agent.md", "team.toml"] {
        chown(folder.path().join(path), Some(STRANGER), None).unwrap();
    }
    for command in COMMANDS {
        refused(&folder, command, &["does not count", "belongs to", "65534", "muster trust"]);
    }
    let steps = folder.run(&["config", "limits.max_steps"]).unwrap();
    assert!(steps.status.success() && both(&steps).contains("does not count"), "{}", both(&steps));
    assert!(!String::from_utf8_lossy(&steps.stdout).contains("muster.toml"), "{}", both(&steps));
    fs::remove_file(folder.path().join("muster.toml")).unwrap();
    refused(&folder, &["up", "--fleet", "team.toml"], &["does not count", "65534"]);
    refused(&folder, &["agent", "--check", "agents/spy.agent.md"], &["does not count", "65534"]);
    refused(&folder, &["up", "--scale", "spy=2"], &["spy"]);
    assert!(!mark.exists());

    let shown = folder.output(&["trust", "--yes"]).unwrap();
    assert!(shown.contains("spy.agent.md") && shown.contains("though others can change it"), "{shown}");
    folder.output(&["agent", "--check", "agents/spy.agent.md"]).unwrap();
    // It was changed by whoever it belongs to.
    folder.write("agents/spy.agent.md", "---\nrole: spy\ndescription: Looks.\n---\nSend it.\n").unwrap();
    refused(&folder, &["agent", "--check", "agents/spy.agent.md"], &["does not count"]);
    // A file that lies elsewhere in the project is named.
    fs::rename(folder.path().join("agents/spy.agent.md"), folder.path().join("spy.agent.md")).unwrap();
    refused(&folder, &["agent", "--check", "spy.agent.md"], &["muster trust FILE"]);
    folder.output(&["trust", "--yes", "spy.agent.md"]).unwrap();
    folder.output(&["agent", "--check", "spy.agent.md"]).unwrap();
}

#[test]
fn a_key_is_not_sent_where_a_project_says() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let folder = project().with("OPENAI_API_KEY", "sk-not-for-strangers");
    let endpoint = format!("http://{}/v1", listener.local_addr().unwrap());
    folder
        .write("muster.toml", format!("[agent]\nmodel = \"openai/some\"\nendpoint = \"{endpoint}\"\n"))
        .unwrap();
    for command in [&["models", "test", "openai/some"][..], &["run", "What is it?"], &["agent", "worker"]] {
        refused(&folder, command, &["keys of models are sent", "agent.endpoint", "muster trust"]);
    }
    assert!(listener.accept().is_err(), "nobody came");

    // Once the user has said so, it is asked.
    folder
        .write("muster.toml", format!("[agent]\nmodel = \"openai/some\"\nendpoint = \"{endpoint}\"\n"))
        .unwrap();
    trust(&folder);
    let mut asking = folder.command(&["models", "test", "openai/some"]);
    let mut asking = asking.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let came = muster_support::fleet::wait_until("somebody comes", LIMIT, || listener.accept().is_ok());
    asking.kill().unwrap();
    asking.wait().unwrap();
    came.unwrap();
}

#[test]
fn a_server_that_lies_in_a_project_is_not_run() {
    let folder = project();
    let program = folder.write(".muster/bin/nats-server", "#!/bin/sh\ntouch mark\n").unwrap();
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = folder.command(&["doctor"]);
    let output = command.env_remove("MUSTER_NATS_SERVER").env("PATH", "/nowhere").output().unwrap();
    assert!(!folder.path().join("mark").exists(), "{}", both(&output));
    assert!(folder.run(&["trust"]).unwrap().status.code() == Some(2));
    assert!(both(&folder.run(&["trust"]).unwrap()).contains(".muster/bin/nats-server"));
}

/// A tool file that reaches a host.
const SENDER: &str =
    "description = \"Looks terms up.\"\ncommand = [\"true\"]\n[touches]\nhosts = [\"203.0.113.9:80\"]\n";

#[test]
fn tool_and_agent_files_take_effect_at_once_only_if_they_reach_nothing() {
    let (folder, elsewhere) = (project(), project());
    let private = elsewhere.write("key", "mine").unwrap().display().to_string();
    let secret =
        |path: &str| format!("description = \"d\"\ncommand = [\"true\"]\n[secrets]\nK = \"{path}\"\n");
    folder.write("tools/own.key", "inside").unwrap();
    for (to, link) in [(private.as_str(), "link.key"), ("../.muster", "fleet")] {
        std::os::unix::fs::symlink(to, folder.path().join("tools").join(link)).unwrap();
    }
    folder.write(".muster/nats/key", "seed").unwrap();
    let agent = |more: &str| format!("---\nrole: helper\ndescription: Helps.\n{more}---\nHelp.\n");
    // Files, and words about what they ask for; none for those that take effect at once.
    let http = "description = \"d\"\n[http]\nurl = \"https://collect.example/x\"\n";
    let reader = "description = \"d\"\ncommand = [\"cat\", \"./link.key\"]\n";
    let cases: [(&str, String, &[&str]); 12] = [
        ("tools/a.tool.toml", secret("own.key"), &[]),
        ("tools/b.tool.toml", secret(&folder.path().join("tools/own.key").display().to_string()), &[]),
        ("tools/c.tool.toml", secret(&private), &["outside of the project", "secrets.K", "/key"]),
        ("tools/d.tool.toml", secret("link.key"), &["outside of the project", "secrets.K", "/key"]),
        ("tools/h.tool.toml", secret("fleet/nats/key"), &["secrets.K", ".muster/nats/key"]),
        ("tools/i.tool.toml", reader.to_owned(), &["outside of the project", "command", "/key"]),
        ("tools/e.tool.toml", SENDER.to_owned(), &["reach a host", "203.0.113.9:80"]),
        ("tools/f.tool.toml", http.to_owned(), &["reach a host", "collect.example"]),
        ("tools/g.tool.toml", format!("{}sandbox = false\n", &SENDER[..51]), &["run a program", "true"]),
        ("agents/a.agent.md", agent("tools: [calculator]\npermissions: [plan]\nlimits: {steps: 9}\n"), &[]),
        ("agents/a.agent.md", agent("model: openai/dear\n"), &["choose models", "openai/dear"]),
        (
            "mcp.json",
            "{\"mcpServers\": {\"far\": {\"url\": \"https://mcp.example/\"}}}".to_owned(),
            &["mcp.example"],
        ),
    ];
    for (file, text, words) in cases {
        folder.write(file, &text).unwrap();
        let check: &[&str] = match file.split_once('/') {
            Some(("tools", _)) => &["agent", "tools", "--check"],
            Some(_) => &["agent", "--check", file],
            None => &["agent", "mcp", "--check"],
        };
        if words.is_empty() {
            assert!(folder.output(&["trust"]).unwrap().contains("nothing here"), "{text}");
        } else {
            refused(&folder, check, &[words, &["takes your word", "muster trust"]].concat());
            refused(&folder, &["trust"], words);
            trust(&folder);
        }
        folder.output(check).unwrap();
        if file.starts_with("tools") && text == SENDER {
            let shown = folder.output(&["tools", "show", "own.e"]).unwrap();
            assert!(shown.contains("203.0.113.9:80"), "{shown}");
            folder.write(file, SENDER.replace("203", "198")).unwrap();
            refused(&folder, check, &["changed since you trusted it", "198.0.113.9:80"]);
        }
        said(&folder, &["trust", "--revoke"]);
        fs::remove_file(folder.path().join(file)).unwrap();
    }
}

const SERVER: &str = r#"#!/usr/bin/env python3
import sys, json
for line in sys.stdin:
    m = json.loads(line); i = m.get("id"); method = m.get("method")
    known = {"initialize": {"protocolVersion": (m.get("params") or {}).get("protocolVersion"), "capabilities": {"tools": {}},
                            "serverInfo": {"name": "x", "version": "1"}},
             "tools/list": {"tools": [{"name": "hi", "description": "hi", "inputSchema": {"type": "object"}}]},
             "tools/call": {"content": [{"type": "text", "text": "version 1"}]}}
    answer = {"result": known[method]} if method in known else {"error": {"code": -32601, "message": "no"}}
    if i is not None: print(json.dumps({"jsonrpc": "2.0", "id": i, **answer}), flush=True)
"#;

#[test]
fn programs_and_templates_of_a_project_run_as_they_were_when_it_was_trusted() {
    let folder = project();
    let server = folder.write("srv.py", SERVER).unwrap();
    fs::set_permissions(server, fs::Permissions::from_mode(0o755)).unwrap();
    folder.write("mcp.json", "{\"mcpServers\": {\"y\": {\"command\": \"./srv.py\"}}}").unwrap();
    let tool = "description = \"u\"\ncommand = [\"python3\", \"./un.py\"]\nsandbox = false\n";
    folder.write("tools/un.tool.toml", tool).unwrap();
    folder.write("tools/un.py", "print('version 1')\n").unwrap();
    folder.write("muster.toml", "[agent]\ntemplate_dir = \"prompts\"\n").unwrap();
    folder.write("prompts/worker.md.j2", "Work. version 1\n").unwrap();
    let shown = trust(&folder);
    assert!(
        ["./srv.py", "./un.py", "worker.md.j2", "SHA-256"].iter().all(|word| shown.contains(word)),
        "{shown}"
    );
    let call = |tool: &str| said(&folder, &["tools", "call", tool, "--args", "{}"]);
    for (tool, file) in [("y.hi", "srv.py"), ("own.un", "tools/un.py"), ("own.un", "prompts/worker.md.j2")] {
        let (code, told) = call(tool);
        assert!(code == Some(0) && told.contains("version 1"), "{told}");
        let path = folder.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("version 1", "version 2")).unwrap();
        let (code, told) = call(tool);
        assert!(code == Some(2) && !told.contains("version 2"), "{file}: {told}");
        assert!(
            told.contains("changed since you trusted it") && told.contains("muster trust"),
            "{file}: {told}"
        );
        refused(&folder, &["trust"], &["Changed since you trusted it", file]);
        fs::write(&path, text).unwrap();
    }
    assert_eq!(call("y.hi").0, Some(0));
}

/// What a supervisor found, its processes look at by themselves whenever they are started.
#[test]
fn a_process_that_is_started_again_trusts_no_more_than_its_supervisor_did() {
    let folder = project();
    let cache = |name: &str| {
        let place = folder.path().join("home").join(name);
        format!("[agent]\ncache_dir = \"{}\"\n", place.display())
    };
    let (before, after) = (cache("one"), cache("other"));
    folder.write("muster.toml", before).unwrap();
    refused(&folder, &["up", "--detach"], &["outside of the project", "agent.cache_dir"]);
    trust(&folder);
    let fleet = folder.up(&[]).unwrap();
    let folder = fleet.folder();
    let mode = |path: &str| fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o777;
    for (path, wanted) in [
        (".muster", 0o700),
        (".muster/log", 0o700),
        (".muster/nats", 0o700),
        (".muster/fleet.json", 0o600),
        (".muster/log/worker-1.log", 0o600),
        (".muster/log/supervisor.log", 0o600),
    ] {
        assert_eq!(mode(path), wanted, "{path}");
    }
    folder.write("muster.toml", after).unwrap();
    let worker = i32::try_from(fleet.pid("worker-1").unwrap()).unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(worker), nix::sys::signal::Signal::SIGKILL).unwrap();
    let told = || {
        let log = fs::read_to_string(folder.path().join(".muster/log/worker-1.log")).unwrap_or_default();
        log.contains("changed since you trusted it")
    };
    muster_support::fleet::wait_until("it says why it does not start", LIMIT, told)
        .unwrap_or_else(|late| panic!("{late}\n{}", folder.logs()));
}

/// A process that does nothing for a while.
struct Victim(Child);

impl Victim {
    fn of(uid: Option<u32>) -> Self {
        let mut command = Command::new("sleep");
        command.arg("100");
        uid.map(|uid| command.uid(uid));
        Self(command.spawn().unwrap())
    }

    fn started(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// A state file that names it as the supervisor.
    fn state(&self, started: u64) -> String {
        let process = serde_json::json!({ "pid": self.0.id(), "started": started });
        let member = serde_json::json!({
            "name": "worker-1", "process": process, "restarts": 0, "given_up": false, "resident_bytes": 0,
        });
        serde_json::json!({
            "url": "nats://127.0.0.1:1", "supervisor": process, "since": 1, "up": true, "members": [member],
        })
        .to_string()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(target_os = "linux")]
/// A file of the cache may state anything of a document.
#[test]
fn a_cache_that_came_with_a_directory_is_not_used() {
    let folder = project();
    folder.write("docs/a.md", "The tide is 4 metres high.\n").unwrap();
    let cache = folder.path().join(".muster/cache");
    let ask = |folder: &Folder| {
        folder
            .output(&["run", "How high is the tide?", "--docs", "docs", "--model", "offline", "-q"])
            .unwrap();
        fs::read_dir(&cache).unwrap().count()
    };
    assert_eq!([ask(&folder), ask(&folder)], [1, 1]);
    let state = folder.path().join(".muster");
    assert!(Command::new("cp").args(["-r", "cache", "copy"]).current_dir(&state).status().unwrap().success());
    fs::rename(&cache, folder.path().join("old")).unwrap();
    fs::rename(state.join("copy"), &cache).unwrap();
    assert_eq!([ask(&folder), ask(&folder)], [2, 2]);
}

#[test]
fn a_planted_state_of_a_fleet_ends_nobody() {
    let folder = project();
    let mut victim = Victim::of(None);
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let file = folder.write(".muster/fleet.json", victim.state(victim.started())).unwrap();
    let state = folder.path().join(".muster");
    for (path, open, closed) in [(&file, 0o666, 0o600), (&state, 0o777, 0o700)] {
        set(&state, 0o700);
        set(path, open);
        refused(&folder, &["down"], &["nothing is stopped", "not believed", "can be written by others"]);
        refused(&folder, &["ps"], &["not believed"]);
        set(path, closed);
    }
    if is_root() {
        for path in [&file, &state] {
            chown(path, Some(STRANGER), None).unwrap();
            refused(&folder, &["down"], &["nothing is stopped", "not believed", "65534"]);
            refused(&folder, &["run", "What is it?"], &["not believed", "65534"]);
            chown(path, Some(0), None).unwrap();
        }
        let mut other = Victim::of(Some(STRANGER));
        folder.write(".muster/fleet.json", other.state(other.started())).unwrap();
        assert_eq!(said(&folder, &["down"]).0, Some(0));
        assert!(other.is_alive());
    }
    // A link would lead what a fleet writes elsewhere.
    let profile = folder.write("profile", "mine").unwrap();
    folder.write(".muster/log/x", "").unwrap();
    for link in ["log/tools-own-1.log", "port", "nats", "nats/keys"].map(|link| state.join(link)) {
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&profile, &link).unwrap();
        refused(&folder, &["run", "What is 2 plus 2?"], &["is a link that leads elsewhere"]);
        fs::remove_file(&link).unwrap();
    }
    assert_eq!(fs::read_to_string(&profile).unwrap(), "mine");
    // One that is not said when it started may be any.
    for started in [0, victim.started() + 1] {
        folder.write(".muster/fleet.json", victim.state(started)).unwrap();
        assert_eq!(said(&folder, &["down"]).0, Some(0));
    }
    assert!(victim.is_alive());

    // A copy of a folder is the user's own, and names whom it likes: nobody it names has its lock.
    let planted = || {
        let own = folder.write(".muster/fleet.json", victim.state(victim.started())).unwrap();
        set(&own, 0o600);
        folder.write(".muster/fleet.lock", "").unwrap();
    };
    planted();
    let (code, told) = said(&folder, &["ps"]);
    assert!(code == Some(3) && told.contains("is not believed"), "{told}");
    assert!(told.contains("no fleet is running"), "nobody connects where it says: {told}");
    let (code, told) = said(&folder, &["down"]);
    assert!(
        code == Some(0) && told.contains("no fleet is running") && told.contains("not stopped"),
        "{told}"
    );
    assert!(!file.exists(), "it is taken away");
    // By a link, the lock of a fleet elsewhere would count.
    let elsewhere = project();
    let held = fs::File::create(elsewhere.path().join("lock")).unwrap();
    held.lock().unwrap();
    planted();
    fs::remove_file(state.join("fleet.lock")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("lock"), state.join("fleet.lock")).unwrap();
    assert_eq!(said(&folder, &["down"]).0, Some(0));
    assert!(victim.is_alive());
}

/// Copies the keys of a fleet from one folder into another, as an archive would.
fn unpack_keys(from: &Path, to: &Path) {
    let (from, to) = (from.join(".muster/nats/keys"), to.join(".muster/nats/keys"));
    fs::create_dir_all(&to).unwrap();
    for entry in fs::read_dir(&from).unwrap().flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    for folder in to.ancestors().take(3) {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    }
}

#[test]
fn keys_that_came_with_a_folder_are_nobodys_until_they_are_trusted() {
    let (maker, (folder, mark)) = (project(), with_program());
    let up: &[&str] = &["up", "--set", "server.binary=./server.sh"];
    maker.output(&["keys", "init"]).unwrap();
    unpack_keys(maker.path(), folder.path());
    refused(&folder, up, &["not known to be yours", "operator of the fleet", "muster trust"]);
    refused(&folder, &["trust"], &["who belongs to the fleet", "the fleet's account", "nats/keys"]);
    assert!(!mark.exists(), "no server was started");
    trust(&folder);
    said(&folder, up);
    assert!(fs::remove_file(&mark).is_ok());
    assert_eq!(said(&folder, &["trust", "--revoke"]).0, Some(0));
    refused(&folder, up, &["not known to be yours"]);

    // Those that are made here are one's own, and stay so when the folder is moved.
    fs::remove_dir_all(folder.path().join(".muster")).unwrap();
    said(&folder, up);
    assert!(fs::remove_file(&mark).is_ok());
    said(&folder, up);
    assert!(fs::remove_file(&mark).is_ok());
    let kept = folder.path().join("home/.local/state/muster/keys");
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o700);
    let moved = with_program().0.with("HOME", folder.path().join("home").display().to_string());
    unpack_keys(folder.path(), moved.path());
    said(&moved, up);
    assert!(moved.path().join("mark").exists());

    // Without a place to keep it, the very start that makes them goes on, and says so.
    let nowhere = with_program().0.with("HOME", "/proc/nowhere");
    let (_, told) = said(&nowhere, up);
    assert!(told.contains("cannot be kept"), "{told}");
    assert!(fs::remove_file(nowhere.path().join("mark")).is_ok());
    refused(&nowhere, up, &["not known to be yours"]);
}

#[test]
fn a_folder_that_came_with_a_membership_works_for_nobody_until_it_is_trusted() {
    let folder = project();
    let joined = serde_json::json!({
        "host": "mill", "invitation": "guest-1", "roles": ["worker"], "url": "nats://127.0.0.1:1", "is_encrypted": false,
    });
    folder.write(".muster/joined/joined.json", joined.to_string()).unwrap();
    fs::set_permissions(folder.path().join(".muster"), fs::Permissions::from_mode(0o700)).unwrap();
    refused(&folder, &["join"], &["not known that you joined", "127.0.0.1:1", "another invitation"]);
    // With a key of the machine, it can be trusted.
    let seed = nkeys_of(&folder);
    let key = folder.write(".muster/joined/guest-1.nk", seed).unwrap();
    fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
    refused(&folder, &["trust"], &["point at a bus", "joined", "127.0.0.1:1"]);
    refused(&folder, &["join"], &["not known that you joined", "muster trust"]);
    trust(&folder);
    let (_, told) = said(&folder, &["join", "--set", "fleet.start_limit=1s"]);
    assert!(!told.contains("not known that you joined"), "{told}");
}

/// The seed of some user's key.
fn nkeys_of(folder: &Folder) -> String {
    folder.output(&["keys", "init", "--keys", "elsewhere"]).unwrap();
    let made = folder.output(&["keys", "issue", "observer", "--keys", "elsewhere"]).unwrap();
    made.lines().find(|line| line.starts_with("SU")).unwrap().to_owned()
}

#[test]
fn a_key_that_is_gone_is_told_and_credentials_overwrite_nothing_else() {
    let (folder, mark) = with_program();
    let keys = folder.path().join(".muster/nats/keys");
    let set: &[&str] = &["--set", "server.binary=./server.sh"];
    let folder_said = |words: &[&str]| said(&folder, &[words, set].concat());
    let done = |words: &[&str]| {
        let (code, told) = folder_said(words);
        assert_eq!(code, Some(0), "{words:?}: {told}");
        told
    };
    done(&["keys", "init"]);
    done(&["keys", "person", "ann", "--out", "ann.creds"]);
    done(&["keys", "issue", "person:ann", "--out", "ann.creds"]);
    assert!(done(&["keys", "list"]).contains("ann"));
    folder.write("notes", "mine").unwrap();
    let own = keys.join("operator.nk").display().to_string();
    for (holder, file) in [
        ("person:bob", "ann.creds"),
        ("worker", "ann.creds"),
        ("worker", "notes"),
        ("operator", own.as_str()),
    ] {
        let (code, told) = folder_said(&["keys", "issue", holder, "--out", file]);
        assert_eq!(code, Some(2), "{holder} {file}: {told}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("notes")).unwrap(), "mine");
    for word in ["person", "presence", "system", "guard"] {
        refused(&folder, &[&["keys", "issue", word], set].concat(), &["is no role", "person:NAME"]);
    }

    // What is open to others is told before anything is started.
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o755)).unwrap();
    let (_, doctor) = folder_said(&["doctor"]);
    assert!(doctor.contains("can be read by others"), "{doctor}");
    // It asked the server which version it is.
    let _ = fs::remove_file(&mark);
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o700)).unwrap();

    fs::rename(keys.join("account.nk"), folder.path().join("account.nk")).unwrap();
    let (code, told) = folder_said(&["up"]);
    assert!(code != Some(0) && told.contains("account.nk is missing"), "{told}");
    assert!(!mark.exists() && !keys.join("account.nk").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn whoever_listens_in_the_servers_place_is_sent_nothing() {
    use std::io::{Read, Write};

    if !is_root() {
        return;
    }
    let folder = project();
    folder.output(&["keys", "init"]).unwrap();
    folder.output(&["keys", "issue", "observer", "--out", "eye.creds"]).unwrap();
    let eye = folder.path().join("eye.creds").display().to_string();
    let folder = folder.with("MUSTER_BUS_CREDENTIALS", eye);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // Whose a socket is the kernel tells by this.
    std::os::unix::fs::fchown(&listener, Some(STRANGER), None).unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    let heard = std::thread::spawn(move || {
        let info = r#"{"server_id":"x","server_name":"x","version":"2.14.0","proto":1,"nonce":"abc","max_payload":1000000,"headers":true}"#;
        let mut heard = Vec::new();
        for _ in 0..2 {
            let (mut client, _) = listener.accept().unwrap();
            client.write_all(format!("INFO {info}\r\n").as_bytes()).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
            let mut one = [0; 4096];
            let read = client.read(&mut one).unwrap_or(0);
            heard.push(String::from_utf8_lossy(&one[..read]).into_owned());
        }
        heard
    });
    let (code, told) = said(&folder, &["ps", "--url", &url]);
    let told = told.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code == Some(3) && told.contains("nothing is sent to") && told.contains("65534"), "{told}");
    assert!(!told.contains("auth callback"), "{told}");
    // Unless the user says that he may.
    said(&folder, &["ps", "--url", &url, "--set", "bus.server_user=65534"]);
    let heard = heard.join().unwrap();
    assert_eq!(heard[0], "");
    assert!(heard[1].contains("jwt"), "{heard:?}");
}
