//! An agent in another language, with no library of ours: it does tasks, is cancelled, dies, and is checked against the
//! protocol.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use muster_support::fleet::{Fleet, Folder, both, wait_until};
use muster_support::{python, way};
use serde_json::Value;

use super::support::{folder, of_kind};

const LIMIT: Duration = Duration::from_secs(30);
const GOAL: &str = "Say the word count of this goal.";

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/examples/specialist_direct.py")
}

/// The example at work. Dropped, it is killed.
struct Citizen(Child);

impl Citizen {
    fn join(python: &Path, fleet: &Fleet, pace: &str) -> Self {
        let mut command = Command::new(python);
        let told = way::program(&fleet.url(), "word_counter", true).unwrap();
        command.arg(example()).envs(told).env("PACE", pace);
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }

    fn is_listed(&self, folder: &Folder) -> bool {
        let pid = format!("\"pid\":{}", self.0.id());
        folder.json(&["ps", "--json"]).is_ok_and(|listed| listed.to_string().contains(&pid))
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Citizen {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Somebody who waits for a run, and the run.
fn submit(folder: &Folder) -> (Child, String) {
    let newest = || folder.json(&["runs", "-n", "1", "--json"]).ok()?[0]["run"].as_str().map(str::to_owned);
    let before = newest();
    let mut command = folder.command(&["run", GOAL, "--quiet"]);
    let asker = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the run is there", LIMIT, || newest() != before).unwrap();
    (asker, newest().unwrap())
}

fn trace(folder: &Folder, run: &str) -> Vec<Value> {
    folder.json_lines(&["trace", run, "--json"]).unwrap_or_default()
}

fn by_citizens<'a>(trace: &'a [Value], kind: &'a str) -> Vec<&'a Value> {
    of_kind(trace, kind).filter(|entry| entry["role"] == "word_counter").collect()
}

#[test]
fn a_python_agent_does_tasks_is_cancelled_and_may_die() {
    let Some(python) = python::with_nats().unwrap() else { return };
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    let mut first = Citizen::join(&python, &fleet, "0.05");
    wait_until("the first has joined", LIMIT, || first.is_listed(folder)).unwrap();

    let (mut asker, done) = submit(folder);
    assert!(asker.wait().unwrap().success());
    let record = trace(folder, &done);
    let outcome = by_citizens(&record, "outcome");
    assert_eq!(outcome.len(), 1, "{record:?}");
    assert_eq!(outcome[0]["event"]["product"]["result"]["data"]["words"], 7);
    assert_eq!(by_citizens(&record, "step").len(), 3);
    first.kill();

    // It dies at work; a second one goes on after its last step.
    let mut slow = Citizen::join(&python, &fleet, "2");
    wait_until("the slow one has joined", LIMIT, || slow.is_listed(folder)).unwrap();
    let (mut asker, orphaned) = submit(folder);
    wait_until("it took a step", LIMIT, || !by_citizens(&trace(folder, &orphaned), "step").is_empty())
        .unwrap();
    slow.kill();
    let second = Citizen::join(&python, &fleet, "0.05");
    assert!(asker.wait().unwrap().success());
    let record = trace(folder, &orphaned);
    let numbers: Vec<u64> =
        by_citizens(&record, "step").iter().map(|entry| entry["event"]["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3], "no step was taken twice");
    assert_eq!(by_citizens(&record, "started").len(), 2);
    drop(second);

    let third = Citizen::join(&python, &fleet, "2");
    wait_until("the third has joined", LIMIT, || third.is_listed(folder)).unwrap();
    let (mut asker, cancelled) = submit(folder);
    wait_until("it was started", LIMIT, || !by_citizens(&trace(folder, &cancelled), "started").is_empty())
        .unwrap();
    folder.output(&["cancel", &cancelled]).unwrap();
    wait_until("it has obeyed", LIMIT, || {
        let record = trace(folder, &cancelled);
        by_citizens(&record, "outcome").iter().any(|entry| entry["event"]["ending"] == "cancelled")
    })
    .unwrap();
    assert_eq!(asker.wait().unwrap().code(), Some(4));
}

/// It learns from its offer in which stream its run is.
#[test]
fn a_python_agent_does_tasks_of_a_record_in_four_parts() {
    let Some(python) = python::with_nats().unwrap() else { return };
    let fleet = folder().up(&["--set", "bus.partitions=4"]).unwrap();
    let folder = fleet.folder();
    let citizen = Citizen::join(&python, &fleet, "0.01");
    wait_until("it has joined", LIMIT, || citizen.is_listed(folder)).unwrap();
    for _ in 0..3 {
        let (mut asker, run) = submit(folder);
        assert!(asker.wait().unwrap().success());
        let record = trace(folder, &run);
        assert_eq!(by_citizens(&record, "step").len(), 3, "{record:?}");
        assert_eq!(by_citizens(&record, "outcome").len(), 1);
    }
}

/// Checks a file in Python; gives the names of the checks that failed, with what was found.
fn conform(folder: &Folder, python: &Path, file: &Path) -> (bool, Vec<(String, String)>) {
    let (python, file) = (python.display().to_string(), file.display().to_string());
    let output = folder.run(&["conform", "--limit", "4s", "--json", "--", &python, &file]).unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", both(&output)));
    let checks = found["checks"].as_array().unwrap().iter().filter(|check| check["verdict"] == "fail");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let failed = checks.map(|check| (text(&check["what"]), text(&check["found"]))).collect();
    assert_eq!(output.status.success(), found["conforms"] == true, "{}", both(&output));
    (found["conforms"] == true, failed)
}

#[test]
fn the_example_conforms() {
    let Some(python) = python::with_nats().unwrap() else { return };
    assert_eq!(conform(&folder(), &python, &example()), (true, Vec::new()));
}

/// What is changed in the example, and the faults that come of it.
type Spoilt = (&'static [(&'static str, &'static str)], &'static [(&'static str, &'static str)]);

/// The example with things spoilt: `muster conform` names every one.
#[test]
fn agents_that_break_the_protocol_are_told_how() {
    let Some(python) = python::with_nats().unwrap() else { return };
    let good = std::fs::read_to_string(example()).unwrap();
    let forgetful: Spoilt = (
        &[
            ("asyncio.sleep(5)", "asyncio.sleep(500)"),
            ("headers=headers)", "headers={})"),
            ("            return await (write(", "            return\n            return await (write("),
        ],
        &[
            ("heartbeat", "it was silent for"),
            ("fence", "has no header"),
            ("outcome", "the cancelled task has no outcome"),
            ("acknowledgement", "without an outcome"),
            ("cancellation", "did not end"),
        ],
    );
    let deaf: Spoilt = (
        &[("number=number,", "number=number * 2,"), ("if \"order\" in task:", "if \"order\" in []:")],
        &[("steps", "follows step"), ("cancellation", "ended as Done"), ("putting down", "ended as Done")],
    );
    let selfish: Spoilt = (
        &[
            ("made = await nc.request(f\"queue.{ROLE}.{ME}\", timeout=5)", "made = True"),
            ("take(nc.jetstream(), ROLE), ", ""),
            ("inactive_threshold=idle)", "inactive_threshold=idle, ack_wait=5)"),
            ("\"data\": {\"words\": words}", "\"data\": {\"words\": words, \"text\": \"x\" * 100_000}"),
            (
                "[\"word count\"]}",
                "[\"word count\"], \"contract\": {\"output\": {\"required\": [\"letters\"]}}}",
            ),
        ],
        &[
            ("queues", "nobody takes from task.word_counter.>"),
            ("queues", "ack_wait of @word_counter"),
            ("started", "the task in the role's queue was never started"),
            ("contract", "`data`"),
            ("sizes", "of the plain task has 1000"),
        ],
    );
    let reckless: Spoilt = (
        &[
            ("offer.get(\"continues\") or task[\"generation\"]", "task[\"generation\"]"),
            ("body[\"type\"] == \"stored\"", "body[\"type\"] == \"\""),
            (
                "return (await js.publish(subject, message(kind, **content), headers=headers)).seq",
                "\n        try: return (await js.publish(subject, message(kind, **content), headers=headers)).seq\n        except errors.APIError: return seq",
            ),
        ],
        &[
            ("started", "the task with a stored offer was never started"),
            ("steps", "step 1 follows step 1 in the task that goes on from an earlier generation"),
            ("after a refused write", "follows a refused step"),
        ],
    );
    let brittle: Spoilt = (
        &[("await msg.in_progress()", "os._exit(3)")],
        &[("process", "exit status: 3 while it had the plain task")],
    );
    let threads = [forgetful, deaf, selfish, reckless, brittle].map(|(changes, faults)| {
        let mut spoilt = good.clone();
        for (from, to) in changes {
            assert!(spoilt.contains(from), "{from}");
            spoilt = spoilt.replace(from, to);
        }
        let python = python.clone();
        std::thread::spawn(move || {
            let folder = folder();
            let file = folder.write("spoilt.py", spoilt).unwrap();
            let (conforms, failed) = conform(&folder, &python, &file);
            assert!(!conforms);
            for (what, said) in faults {
                let named = failed.iter().any(|(check, found)| check == what && found.contains(said));
                assert!(named, "{what}, {said}: {failed:?}");
            }
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn agents_of_a_living_fleet_are_checked_beside_its_runs() {
    let Some(python) = python::with_nats().unwrap() else { return };
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    let citizen = Citizen::join(&python, &fleet, "0.2");
    wait_until("it has joined", LIMIT, || citizen.is_listed(folder)).unwrap();
    let check = |arguments: &[&str]| {
        let output = folder.run(&[&["conform", "--limit", "5s", "--json"], arguments].concat()).unwrap();
        let found: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", both(&output)));
        (output.status.code(), found)
    };
    std::thread::scope(|scope| {
        // One in another language, and one of ours: what the first heartbeat says is waited for.
        for role in ["word_counter", "worker"] {
            scope.spawn(move || {
                let (code, found) = check(&["--role", role]);
                assert_eq!(code, Some(0), "{found}");
                assert!(found["agent"].as_str().unwrap().starts_with(role), "{found}");
            });
        }
        scope.spawn(|| {
            let (code, found) = check(&["nobody-1"]);
            let said = found["checks"][0]["found"].as_str().unwrap();
            assert_eq!(code, Some(1));
            assert!(
                said.starts_with("nobody-1 is not there; there are ") && said.contains("worker-"),
                "{said}"
            );
        });
    });
    assert_eq!(folder.json(&["dead", "list", "--json"]).unwrap(), serde_json::json!([]));
    // The fleet works as before.
    let (mut asker, _) = submit(folder);
    assert!(asker.wait().unwrap().success());
}

#[test]
fn conform_is_told_what_to_ask_and_what_counts() {
    let Some(python) = python::with_nats().unwrap() else { return };
    let folder = folder();
    let (python, file) = (python.display().to_string(), example().display().to_string());
    let task = folder.write("task.toml", "name = \"four\"\ngoal = \"One two three four.\"\n").unwrap();
    let started = std::time::Instant::now();
    let with = |more: &[&str]| {
        let output = folder.run(&[&["conform", "--limit", "5s", "--json"], more].concat()).unwrap();
        let found = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default();
        (output.status.code(), found, both(&output))
    };
    let (code, found, said) =
        with(&["--strict", "--task", &task.display().to_string(), "--", &python, &file]);
    let not_seen = |check: &&Value| check["verdict"] == "not_seen";
    let not_seen = found["checks"].as_array().unwrap().iter().filter(not_seen).count();
    assert_eq!(code, Some(i32::from(not_seen > 0)), "{said}");
    assert!(started.elapsed() < LIMIT, "{said}");
    for (wrong, reason) in [
        (&["--task", "nowhere.toml", "--", "true"][..], "cannot read"),
        (&["--task", "task.toml", "--goal", "g", "--", "true"], "cannot be used with"),
    ] {
        let (code, _, said) = with(wrong);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn a_command_that_ends_at_once_is_told() {
    let output = folder().run(&["conform", "--", "false"]).unwrap();
    let said = both(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the command ended with exit status: 1"), "{said}");
}
