//! Other machines: invited, joined, at work, cut off and thrown out. On one machine, in folders of their own.
#![allow(clippy::print_stdout, reason = "the figures are read")]

mod apart;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use muster_support::fleet::{Folder, both, wait_until};
use muster_support::model_server::{CapturedRequest, LogEntry, ModelServer};
use serde_json::Value;

use super::deaths::{Catch, never, script};
use super::support::{folder, of_kind, with_model};

const LIMIT: Duration = Duration::from_secs(60);

/// A folder where something runs in the background. Dropped, it is stopped.
struct Up(Folder);

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.0.run(&["down"]);
    }
}

impl Up {
    /// A fleet that has no worker of its own.
    fn fleet(folder: Folder, arguments: &[&str]) -> Self {
        folder.output(&[&["up", "--detach", "--scale", "worker=0"], arguments].concat()).unwrap();
        Self(folder)
    }

    fn address(&self) -> String {
        let url = self.0.state().unwrap()["url"].as_str().unwrap().to_owned();
        url.rsplit('/').next().unwrap().to_owned()
    }

    fn invite(&self, arguments: &[&str]) -> Value {
        let address = self.address();
        self.0.json(&[&["invite", "--json", "--address", &address], arguments].concat()).unwrap()
    }

    fn line(&self, arguments: &[&str]) -> String {
        self.invite(arguments)["line"].as_str().unwrap().to_owned()
    }

    /// What `muster ps` says of machines.
    fn machines(&self) -> Vec<Value> {
        let listed = self.0.json(&["ps", "--json"]).unwrap();
        listed.as_array().unwrap().iter().filter(|one| one.get("joined_host").is_some()).cloned().collect()
    }

    fn trace(&self) -> Vec<Value> {
        self.0.json_lines(&["trace", "last", "--json"]).unwrap_or_default()
    }
}

/// Joins by a line that no other user of the machine sees.
fn join(folder: &Folder, line: &str, arguments: &[&str]) -> Output {
    let mut command = folder.command(&[&["join", "-"], arguments].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn joined(folder: Folder, line: &str, arguments: &[&str]) -> Up {
    let output = join(&folder, line, &[&["--detach"], arguments].concat());
    assert!(output.status.success(), "{}\n{}", both(&output), folder.logs());
    Up(folder)
}

/// What a command says that ends with a code.
fn refused(output: &Output, code: i32) -> String {
    let said = both(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

#[test]
fn a_machine_joins_by_a_line_and_does_the_tasks_of_its_role() {
    let fleet = Up::fleet(folder(), &["--listen", "127.0.0.1"]);
    let line = fleet.0.output(&["invite"]).unwrap().trim().to_owned();
    println!("an invitation has {} letters", line.len());
    let began = Instant::now();
    let mill = joined(folder(), &line, &["--scale", "worker=2"]);
    println!("joined after {:?}", began.elapsed());

    let summary = fleet.0.json(&["run", "What is 2 + 3?", "--json"]).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}\n{}\n{}", fleet.0.logs(), mill.0.logs());
    let machines = fleet.machines();
    let [machine] = &machines[..] else { panic!("{machines:?}") };
    let name = machine["joined_host"].as_str().unwrap();
    assert_eq!(machine["agents"].as_array().unwrap().len(), 2, "{machine}");
    let trace = fleet.trace();
    let workers: Vec<&Value> = of_kind(&trace, "started").filter(|entry| entry["role"] == "worker").collect();
    assert!(!workers.is_empty(), "{trace:#?}");
    for started in workers {
        assert_eq!(started["event"]["host"], name, "{started}");
    }
    let listed = fleet.0.output(&["keys", "list"]).unwrap();
    assert!(listed.contains("joined by guest-") && listed.contains(&format!("on {name}")), "{listed}");
    let (theirs, ours) = (".muster/joined/ca.pem", ".muster/nats/keys/ca.pem");
    let read = |folder: &Folder, file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap();
    assert_eq!(read(&mill.0, theirs).trim(), read(&fleet.0, ours).trim(), "it knows the fleet's authority");
    let here = mill.0.output(&["ps"]).unwrap();
    assert!(here.contains("worker-1") && here.contains("worker-2"), "{here}");

    // What is kept there is for its user alone, and the invitation's secret is gone.
    let kept = mill.0.path().join(".muster/joined");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&kept), 0o700);
    for file in std::fs::read_dir(&kept).unwrap().flatten() {
        assert_eq!(mode(&file.path()), 0o600, "{}", file.path().display());
        let is_guests = file.file_name().to_string_lossy().starts_with("guest-");
        assert!(!is_guests || file.path().extension().unwrap() == "nk", "{}", file.path().display());
    }

    // It goes on by itself another time, and the line lets nobody else in.
    mill.0.output(&["down"]).unwrap();
    wait_until("its agents are gone", LIMIT, || fleet.machines()[0]["agents"].as_array().unwrap().is_empty())
        .unwrap();
    mill.0.output(&["join", "--detach"]).unwrap();
    wait_until("its agents are back", LIMIT, || fleet.machines()[0]["agents"].as_array().unwrap().len() == 2)
        .unwrap();
    let other = folder();
    assert!(refused(&join(&other, &line, &[]), 2).contains("used up"));
    let again = join(&mill.0, &line, &[]);
    assert!(refused(&again, 1).contains("already running"), "{}", both(&again));
    assert_eq!(fleet.machines().len(), 1);
}

#[test]
fn a_line_that_counts_no_more_is_refused_in_a_sentence() {
    let fleet = Up::fleet(folder(), &[]);
    let address = fleet.address();
    let other = folder();
    let refuses = |line: &str, words: &str| {
        let said = refused(&join(&other, line, &[]), 2);
        assert!(said.contains(words), "{words}: {said}");
    };
    refuses("", "no invitation");
    refuses("hello", "no invitation");
    let good = fleet.line(&["--uses", "2"]);
    refuses(&good[..good.len() - 5], "garbled");
    refuses(&good.replacen("muster1.", "muster7.", 1), "form 7");

    let withdrawn = fleet.invite(&[]);
    let name = withdrawn["name"].as_str().unwrap();
    assert!(fleet.0.output(&["invite", "--list"]).unwrap().contains(name));
    fleet.0.output(&["invite", "--withdraw", name]).unwrap();
    assert!(!fleet.0.output(&["invite", "--list"]).unwrap().contains(name));
    wait_until("the server knows it", LIMIT, || {
        both(&join(&other, withdrawn["line"].as_str().unwrap(), &[]))
            .contains("does not know this invitation")
    })
    .unwrap();
    let again = fleet.0.run(&["invite", "--withdraw", name]).unwrap();
    assert!(refused(&again, 2).contains("no invitation"));

    let short = fleet.invite(&["--expires", "1s"]);
    wait_until("its time is over", LIMIT, || {
        !fleet.0.output(&["invite", "--list"]).unwrap().contains(short["name"].as_str().unwrap())
    })
    .unwrap();
    refuses(short["line"].as_str().unwrap(), "this invitation ended at");

    // It is for workers, and another fleet's line is worth nothing here.
    let said = refused(&join(&other, &good, &["--scale", "planner=1"]), 2);
    assert!(said.contains("may start worker only, and not planner"), "{said}");
    let elsewhere = Up::fleet(folder(), &[]);
    let theirs = elsewhere.0.json(&["invite", "--json", "--address", &address]).unwrap();
    refuses(theirs["line"].as_str().unwrap(), "does not know this invitation");

    // Without encryption nothing of it goes over a network.
    for (arguments, words) in [
        (&["invite"][..], "listens on this machine alone"),
        (&["invite", "--address", "192.0.2.7:4222"], "listens on this machine alone"),
        (&["invite", "--address", "127.0.0.1"], "HOST:PORT"),
        (&["invite", "--role", "juggler"], "juggler"),
        (&["invite", "--uses", "0"], "1..=1000"),
        (&["invite", "--expires", "721h"], "30 days"),
        (&["join"], "joined no fleet yet"),
    ] {
        let output = fleet.0.run(arguments).unwrap();
        // A fleet runs here.
        let code = if arguments == ["join"] { 1 } else { 2 };
        let said = refused(&output, code);
        let words = if code == 1 { "already running" } else { words };
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    let said = refused(&folder().run(&["join"]).unwrap(), 2);
    assert!(said.contains("joined no fleet yet"), "{said}");
}

#[test]
fn whoever_waits_for_a_fleet_that_nobody_supervises_is_told_so() {
    let fleet = Up::fleet(folder(), &[]);
    let line = fleet.line(&[]);
    fleet.0.output(&["down"]).unwrap();
    let other = folder();
    let output = join(&other, &line, &["--set", "fleet.start_limit=1s"]);
    let said = refused(&output, 3);
    assert!(said.contains("no fleet answers at"), "{said}");
}

#[test]
fn a_machine_that_joined_goes_on_when_the_fleets_keys_are_rotated() {
    let fleet = Up::fleet(folder(), &["--listen", "127.0.0.1"]);
    let line = fleet.0.output(&["invite"]).unwrap();
    let mill = joined(folder(), &line, &["--scale", "worker=1"]);
    let ask = |goal: &str| fleet.0.json(&["run", goal, "--json", "--deadline", "60s"]).unwrap();
    assert_eq!(ask("What is 2 + 3?")["status"], "completed", "{}", fleet.0.logs());
    let files = ["host.creds", "worker-1.creds"].map(|file| mill.0.path().join(".muster/joined").join(file));
    let read = || files.clone().map(|file| std::fs::read_to_string(file).unwrap_or_default());
    let before = read();
    fleet.0.output(&["keys", "rotate", "--grace", "10m"]).unwrap();
    wait_until("it has credentials by the new keys", LIMIT, || {
        read().iter().zip(&before).all(|(now, before)| now != before)
    })
    .unwrap_or_else(|late| panic!("{late}\n{}\n{}", fleet.0.logs(), mill.0.logs()));
    // Whoever came in by keys of before is cut off, and comes back by those of now.
    fleet.0.output(&["keys", "rotate", "--finish"]).unwrap();
    let summary = ask("What is 4 * 5?");
    assert_eq!(summary["status"], "completed", "{summary}\n{}\n{}", fleet.0.logs(), mill.0.logs());
    wait_until("its worker is back", LIMIT, || fleet.machines()[0]["agents"].as_array().unwrap().len() == 1)
        .unwrap();
}

fn of_worker(request: &CapturedRequest) -> bool {
    request.system().contains("You are a worker")
}

#[test]
fn a_machine_that_is_thrown_out_ends_at_once_and_its_task_is_done_elsewhere() {
    let catch = Catch { step: 3, times: 1, reply: never };
    let model = ModelServer::start(script(1, catch)).unwrap();
    let set = ["--set", "agent.model=openai/scripted"];
    let fleet = Up::fleet(with_model(&model), &set);
    let mill = with_model(&model);
    let line = fleet.line(&[]);
    let mut joining = mill.command(&[&["join", "-", "--scale", "worker=2"], &set[..]].concat());
    let mut joining = joining.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    joining.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
    let has_two = |machine: &Value| machine["agents"].as_array().is_some_and(|agents| agents.len() == 2);
    wait_until("workers", LIMIT, || fleet.machines().first().is_some_and(has_two)).unwrap();

    let run = ["run", "Add up the lists.", "--json", "--deadline", "100s"];
    let asker = fleet.0.command(&run).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let calls = || model.log().into_iter().filter(|LogEntry { request, .. }| of_worker(request)).count();
    let at_work = model.wait_until(LIMIT, |_| calls() >= 4);
    at_work.unwrap_or_else(|late| panic!("{late}\n{}\n{}", fleet.0.logs(), mill.logs()));

    let name = fleet.machines()[0]["joined_host"].as_str().unwrap().to_owned();
    let began = Instant::now();
    let said = fleet.0.output(&["keys", "revoke", &name]).unwrap();
    assert!(said.contains("let in no more"), "{said}");
    let ended = joining.wait_with_output().unwrap();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "thrown out, and all ended after {took:?}");
    let said = refused(&ended, 3);
    assert!(said.contains("lets this machine in no more") && said.contains("thrown out"), "{said}");
    assert!(mill.state().is_none(), "nothing is left of it");
    assert!(fleet.machines().is_empty());

    // Somebody else does it.
    let mut worker = fleet.0.command(&[&set[..], &["agent", "worker"]].concat());
    let mut worker = worker.stderr(Stdio::null()).spawn().unwrap();
    let output = asker.wait_with_output().unwrap();
    worker.kill().unwrap();
    worker.wait().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    assert_eq!(summary["status"], "completed", "{summary}\n{}", fleet.0.logs());
    let trace = fleet.trace();
    let hosts: Vec<&Value> = of_kind(&trace, "started")
        .filter(|entry| entry["role"] == "worker")
        .map(|entry| &entry["event"]["host"])
        .collect();
    assert!(hosts.len() == 2 && hosts[0] == name.as_str() && hosts[1] != name.as_str(), "{hosts:?}");

    // It does not come back by what it has.
    let said = refused(&mill.run(&["join"]).unwrap(), 3);
    assert!(said.contains("thrown out"), "{said}");
}
