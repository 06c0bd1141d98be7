//! Programs in other languages on the task gateway: by request and reply alone they do tasks, die, and send what they should
//! not.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use muster_support::fleet::{Fleet, Folder, both, wait_until};
use muster_support::foreign::Stranger;
use muster_support::model_server::{CapturedRequest, ModelServer, Reply, Script};
use muster_support::process::Running;
use muster_support::{go, node, python, way};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::help::plan_and_report;
use super::support::{folder, of_kind, signal, with_model};

mod rights;
mod wrong;

const LIMIT: Duration = Duration::from_secs(40);
const GOAL: &str = "Say the word count of this goal.";
const ROLE: &str = "word_counter";

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/examples").join(name)
}

/// A specialist in any language.
struct Specialist(Running);

impl Specialist {
    /// An interpreter and its file, or a program alone.
    fn join(program: &[&Path], fleet: &Fleet, pace: &str) -> Self {
        let mut command = Command::new(program[0]);
        let told = way::program(&fleet.url(), "word_counter").unwrap();
        command.args(&program[1..]).envs(told).env("PACE", pace);
        Self(Running(command.stdout(Stdio::null()).spawn().unwrap()))
    }

    fn is_listed(&self, folder: &Folder) -> bool {
        let pid = format!("\"pid\":{}", self.0.0.id());
        folder.json(&["ps", "--json"]).is_ok_and(|listed| listed.to_string().contains(&pid))
    }

    fn joined(program: &[&Path], fleet: &Fleet, pace: &str) -> Self {
        let joined = Self::join(program, fleet, pace);
        wait_until("it has joined", LIMIT, || joined.is_listed(fleet.folder())).unwrap();
        joined
    }
}

/// Somebody who waits for a run, and the run.
fn submit(folder: &Folder, more: &[&str]) -> (Child, String) {
    let newest = || folder.json(&["runs", "-n", "1", "--json"]).ok()?[0]["run"].as_str().map(str::to_owned);
    let before = newest();
    let mut command = folder.command(&[&["run", GOAL, "--quiet"], more].concat());
    let asker = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the run is there", LIMIT, || newest() != before).unwrap();
    (asker, newest().unwrap())
}

fn trace(folder: &Folder, run: &str) -> Vec<Value> {
    folder.json_lines(&["trace", run, "--json"]).unwrap_or_default()
}

/// What was written under the role, of one kind.
fn of_role<'a>(trace: &'a [Value], kind: &'a str) -> Vec<&'a Value> {
    of_kind(trace, kind).filter(|entry| entry["role"] == ROLE).collect()
}

fn numbers(trace: &[Value]) -> Vec<u64> {
    of_role(trace, "step").iter().map(|entry| entry["event"]["number"].as_u64().unwrap()).collect()
}

/// A program played by the test itself: it has a NATS connection, and asks.
struct Program<'a> {
    stranger: &'a Stranger,
    agent: String,
    contract: Value,
}

impl<'a> Program<'a> {
    fn new(stranger: &'a Stranger, name: &str) -> Self {
        Self { stranger, agent: format!("{ROLE}-{name}"), contract: json!({}) }
    }

    fn ask(&self, verb: &str, said: &Value) -> Value {
        let answer = self.stranger.request(&format!("agent.{ROLE}.{verb}"), said.to_string().as_bytes());
        let bytes = answer.unwrap_or_else(|error| panic!("{verb} {said}: {error}"));
        serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{verb} {said}: {error}: {bytes:?}"))
    }

    fn who(&self) -> Value {
        json!({ "agent": self.agent, "patience_ms": 5000, "slots": 2, "description": "Counts the words of a text.",
                "capabilities": ["word count"], "contract": self.contract })
    }

    /// Enters itself into the registry, so that a plan may name its role.
    fn enter(&self) {
        let mut who = self.who();
        who["patience_ms"] = json!(100);
        assert_eq!(self.ask("take", &who), json!({ "task": null }));
    }

    fn take(&self) -> Value {
        self.taken(String::new)
    }

    /// The next task; `why` tells what there is to know when none comes.
    fn taken(&self, why: impl Fn() -> String) -> Value {
        let mut task = Value::Null;
        wait_until("a task is given", LIMIT, || {
            task = self.ask("take", &self.who())["task"].clone();
            !task.is_null()
        })
        .unwrap_or_else(|late| panic!("{late}: {}", why()));
        task
    }

    /// Records a step, and gives its number.
    fn stepped(&self, token: &str, id: &str) -> u64 {
        let answer = self.step(token, id);
        answer["step"].as_u64().unwrap_or_else(|| panic!("{id}: {answer}"))
    }

    fn step(&self, token: &str, id: &str) -> Value {
        let action = json!({ "name": "count" });
        let said =
            json!({ "token": token, "id": id, "thought": "Count.", "action": action, "observation": id });
        self.ask("step", &said)
    }
}

fn token(answer: &Value) -> String {
    answer["token"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn code(answer: &Value) -> &str {
    answer["error"]["code"].as_str().unwrap_or_default()
}

/// The gateway that made a token, as its process is listed.
fn home(folder: &Folder, token: &str) -> (String, u32) {
    let said = token.split('-').nth(1).unwrap();
    let bytes: Vec<u8> =
        (0..said.len()).step_by(2).map(|at| u8::from_str_radix(&said[at..at + 2], 16).unwrap()).collect();
    let home = String::from_utf8(bytes).unwrap().split(' ').next_back().unwrap().to_owned();
    let listed = folder.json(&["ps", "--json"]).unwrap();
    let pid = find_pid(&listed, &home).unwrap_or_else(|| panic!("{home} in {listed}"));
    (home, u32::try_from(pid).unwrap())
}

fn find_pid(listed: &Value, agent: &str) -> Option<u64> {
    match listed {
        Value::Object(fields) if fields.get("agent").is_some_and(|name| name == agent) => {
            fields["pid"].as_u64()
        }
        Value::Object(fields) => fields.values().find_map(|value| find_pid(value, agent)),
        Value::Array(items) => items.iter().find_map(|value| find_pid(value, agent)),
        _ => None,
    }
}

/// It does a task, dies at one that another then goes on with, and obeys.
fn lives_and_dies(program: &[&Path]) {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    let first = Specialist::joined(program, &fleet, "0.05");
    let (mut asker, done) = submit(folder, &[]);
    assert!(asker.wait().unwrap().success(), "{}", folder.logs());
    let record = trace(folder, &done);
    let outcome = of_role(&record, "outcome");
    assert_eq!(outcome.len(), 1, "{record:?}");
    assert_eq!(outcome[0]["event"]["product"]["result"]["data"]["words"], 7);
    assert_eq!(numbers(&record), [1, 2, 3]);
    drop(first);

    // It dies at work; a second one goes on after its last step.
    let slow = Specialist::joined(program, &fleet, "2");
    let (mut asker, orphaned) = submit(folder, &[]);
    wait_until("it took a step", LIMIT, || !of_role(&trace(folder, &orphaned), "step").is_empty()).unwrap();
    drop(slow);
    let second = Specialist::join(program, &fleet, "0.05");
    assert!(asker.wait().unwrap().success(), "{}", folder.logs());
    let record = trace(folder, &orphaned);
    assert_eq!(numbers(&record), [1, 2, 3], "no step was taken twice");
    assert_eq!(of_role(&record, "started").len(), 2);
    assert_eq!(of_role(&record, "outcome").len(), 1);
    drop(second);

    let _third = Specialist::joined(program, &fleet, "2");
    let (mut asker, cancelled) = submit(folder, &[]);
    wait_until("it was started", LIMIT, || !of_role(&trace(folder, &cancelled), "started").is_empty())
        .unwrap();
    folder.output(&["cancel", &cancelled]).unwrap();
    wait_until("it has ended", LIMIT, || {
        let record = trace(folder, &cancelled);
        of_role(&record, "outcome").iter().any(|entry| entry["event"]["ending"] == "cancelled")
    })
    .unwrap();
    assert_eq!(asker.wait().unwrap().code(), Some(4));
    assert_eq!(folder.json(&["dead", "list", "--json"]).unwrap(), json!([]));
}

#[test]
fn a_python_specialist_does_tasks_obeys_and_may_die() {
    let Some(python) = python::with_nats().unwrap() else { return };
    lives_and_dies(&[&python, &example("specialist.py")]);
}

#[test]
fn a_node_specialist_does_tasks_obeys_and_may_die() {
    let Some(node) = node::with_nats(&example("specialist.mjs")).unwrap() else { return };
    lives_and_dies(&[Path::new("node"), &node]);
}

#[test]
fn a_go_specialist_does_tasks_obeys_and_may_die() {
    let Some(program) = go::with_nats(&example("specialist.go")).unwrap() else { return };
    lives_and_dies(&[&program]);
}

/// An offer that nobody took before its run ended is given to nobody.
#[test]
fn what_a_cancelled_run_offered_is_not_given_out() {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let program = Program::new(&stranger, "one");
    program.enter();
    let (mut asker, run) = submit(folder, &[]);
    wait_until("it is offered", LIMIT, || {
        let shown = folder.json(&["show", &run, "--json", "--full"]).unwrap_or_default();
        let tasks = shown["tasks"].as_object().cloned().unwrap_or_default();
        tasks.values().any(|task| task["status"] == "queued" && task["queue"].to_string().contains(ROLE))
    })
    .unwrap_or_else(|late| panic!("{late}: {:?}", folder.output(&["show", &run, "--json"])));
    folder.output(&["cancel", &run]).unwrap();
    assert_eq!(asker.wait().unwrap().code(), Some(4));
    // Its end is in the record a moment before what is offered is taken back.
    let offered = || {
        let info = stranger.request("$JS.API.STREAM.INFO.TASKS", b"").unwrap();
        serde_json::from_slice::<Value>(&info).unwrap()["state"]["messages"].as_u64()
    };
    wait_until("what was offered is taken back", LIMIT, || offered() == Some(0)).unwrap();
    // With the time that offers have to come in, and beyond that from which they are looked up.
    for patience in [500, 3_000] {
        let mut who = program.who();
        who["patience_ms"] = json!(patience);
        assert_eq!(program.ask("take", &who), json!({ "task": null }));
    }
    let record = trace(folder, &run);
    assert!(of_role(&record, "started").is_empty(), "{record:?}");
    let audited = folder.run(&["audit", &run]).unwrap();
    assert!(audited.status.success(), "{}", both(&audited));
    assert!(!both(&audited).contains("wait for the next decision"), "{}", both(&audited));
}

/// The gateway is killed while a program has a task: it goes on at another one with the same token, and what it sends again
/// because the answer was lost is recorded once.
#[test]
fn a_task_goes_on_at_another_gateway_with_the_same_token() {
    let fleet = folder().up(&["--scale", "orchestrator=2"]).unwrap();
    let folder = fleet.folder();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let program = Program::new(&stranger, "one");
    program.enter();
    let (mut asker, run) = submit(folder, &[]);
    let task = program.take();
    let (first, words) = (token(&task), task["goal"].as_str().unwrap().split_whitespace().count());
    assert_eq!((task["next_step"].as_u64(), words), (Some(1), 7), "{task}");
    assert_eq!(program.stepped(&first, "a"), 1);
    let (killed, pid) = home(folder, &first);
    signal(pid, Signal::SIGKILL);

    let mut answer = Value::Null;
    wait_until("another gateway goes on", LIMIT, || {
        let said = json!({ "token": first, "id": "a", "thought": "Count.", "action": { "name": "count" }, "observation": "a" });
        let asked = stranger.request(&format!("agent.{ROLE}.step"), said.to_string().as_bytes());
        answer = asked.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        answer["step"].is_u64()
    })
    .unwrap_or_else(|late| panic!("{late}: {answer}"));
    assert_eq!(answer["step"], 1, "it had been recorded before");
    let (now_at, _) = home(folder, &token(&answer));
    assert_ne!(now_at, killed);
    // The old token is as good as the new one.
    assert_eq!(program.stepped(&first, "b"), 2);
    assert_eq!(program.stepped(&token(&answer), "c"), 3);
    let result = json!({ "conclusion": "7 words.", "data": { "words": 7 } });
    let finish = json!({ "token": first, "id": "end", "result": result });
    let ended = program.ask("finish", &finish);
    assert_eq!(ended, json!({ "ending": "done", "recorded": true }));
    assert_eq!(program.ask("finish", &finish), ended, "sent again");
    assert!(asker.wait().unwrap().success(), "{}", folder.logs());
    let record = trace(folder, &run);
    assert_eq!(numbers(&record), [1, 2, 3]);
    assert_eq!((of_role(&record, "started").len(), of_role(&record, "outcome").len()), (1, 1));
}

/// A gateway that stands still and wakes up again writes nothing that another one has written meanwhile.
#[test]
fn a_gateway_that_stood_still_does_no_harm() {
    let fleet = folder().up(&["--scale", "orchestrator=2"]).unwrap();
    let folder = fleet.folder();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let program = Program::new(&stranger, "one");
    program.enter();
    let (mut asker, run) = submit(folder, &[]);
    let first = token(&program.take());
    let (_, pid) = home(folder, &first);
    signal(pid, Signal::SIGSTOP);
    let said = |id: &str| json!({ "token": first, "id": id, "thought": "Count.", "action": { "name": "count" }, "observation": id });
    let mut answer = Value::Null;
    for id in ["a", "b"] {
        wait_until("it is recorded", LIMIT, || {
            let asked = stranger.request(&format!("agent.{ROLE}.step"), said(id).to_string().as_bytes());
            answer = asked.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
            answer["step"].is_u64()
        })
        .unwrap_or_else(|late| panic!("{late}: {answer}"));
    }
    signal(pid, Signal::SIGCONT);
    assert_eq!(answer["step"], 2, "{answer}");
    for (number, id) in [(1, "a"), (2, "b"), (3, "c"), (3, "c")] {
        assert_eq!(program.stepped(&first, id), number, "{id}");
    }
    let finish = json!({ "token": first, "id": "end", "result": { "conclusion": "7 words." } });
    assert_eq!(program.ask("finish", &finish)["recorded"], true);
    assert!(asker.wait().unwrap().success(), "{}", folder.logs());
    assert_eq!(numbers(&trace(folder, &run)), [1, 2, 3]);
}

/// A task that is taken from its program does not count against what it may have in hand.
#[test]
fn a_program_may_take_the_next_task_when_one_was_taken_from_it() {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let program = Program::new(&stranger, "one");
    program.enter();
    let mut lost = Vec::new();
    for _ in 0..2 {
        let (asker, run) = submit(folder, &[]);
        lost.push((asker, run, token(&program.take())));
    }
    assert_eq!(code(&program.ask("take", &program.who())), "busy", "it has two slots");
    for (_, run, _) in &lost {
        folder.output(&["cancel", run]).unwrap();
    }
    for (mut asker, _, token) in lost {
        assert_eq!(asker.wait().unwrap().code(), Some(4));
        // While its end is just being written, a beat tells nothing yet.
        let mut beat = Value::Null;
        wait_until("it is told", LIMIT, || {
            beat = program.ask("beat", &json!({ "token": token }));
            !beat["order"].is_null()
        })
        .unwrap();
        assert_eq!((&beat["order"], &beat["over"]), (&json!("cancel"), &json!(true)), "{beat}");
    }
    let (mut asker, _) = submit(folder, &[]);
    let finish = json!({ "token": token(&program.take()), "result": { "conclusion": "7 words." } });
    assert_eq!(program.ask("finish", &finish)["recorded"], true);
    assert!(asker.wait().unwrap().success(), "{}", folder.logs());
}

/// Nothing is heard of a program that has no connection of its own name: its task goes to another within the time set.
#[test]
fn a_task_of_a_silent_program_goes_to_another() {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let (silent, other) = (Program::new(&stranger, "silent"), Program::new(&stranger, "other"));
    silent.enter();
    let (mut asker, run) = submit(folder, &[]);
    let lost = silent.take();
    assert_eq!(silent.stepped(&token(&lost), "a"), 1);
    let task = other.take();
    assert_eq!(task["next_step"], 2, "it goes on after the last step: {task}");
    assert_eq!(task["steps"][0]["observation"]["content"], "a", "{task}");
    let refused = silent.step(&token(&lost), "b");
    assert_eq!((code(&refused), &refused["error"]["over"]), ("given_away", &json!(true)), "{refused}");
    let beat = silent.ask("beat", &json!({ "token": token(&lost) }));
    assert_eq!((&beat["order"], &beat["over"]), (&json!("given_away"), &json!(true)), "{beat}");
    let finish = json!({ "token": token(&task), "result": { "conclusion": "7 words." } });
    assert_eq!(other.ask("finish", &finish)["recorded"], true);
    assert!(asker.wait().unwrap().success(), "{}", folder.logs());
    let record = trace(folder, &run);
    assert_eq!((numbers(&record), of_role(&record, "released").len()), (vec![1], 1), "{record:?}");
}

#[test]
fn two_equal_specialists_share_the_work() {
    let Some(python) = python::with_nats().unwrap() else { return };
    let fleet = folder().up(&["--scale", "orchestrator=2"]).unwrap();
    let folder = fleet.folder();
    let file = example("specialist.py");
    let _both = [0, 1].map(|_| Specialist::joined(&[&python, &file], &fleet, "0.3"));
    let askers: Vec<(Child, String)> = (0..8).map(|_| submit(folder, &[])).collect();
    let mut agents: Vec<String> = Vec::new();
    for (mut asker, run) in askers {
        assert!(asker.wait().unwrap().success(), "{}", folder.logs());
        let record = trace(folder, &run);
        assert_eq!((numbers(&record), of_role(&record, "outcome").len()), (vec![1, 2, 3], 1), "{record:?}");
        agents.push(of_role(&record, "started")[0]["by"].as_str().unwrap().to_owned());
    }
    agents.sort();
    agents.dedup();
    assert_eq!(agents.len(), 2, "{agents:?}");
}

/// What a program may do besides steps: files, word to a person, and back with the answer.
#[test]
fn a_program_writes_files_and_waits_for_a_person() {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let program = Program::new(&stranger, "one");
    program.enter();
    let (mut asker, run) = submit(folder, &[]);
    let first = token(&program.take());
    let files = |said: Value| {
        let mut said = said;
        said["token"] = json!(first);
        program.ask("files", &said)
    };
    assert_eq!(files(json!({ "do": "put", "path": "count.md", "text": "seven\n" }))["bytes"], 6);
    assert_eq!(files(json!({ "do": "get", "path": "count.md" }))["text"], "seven\n");
    assert_eq!(files(json!({ "do": "list" }))["files"][0]["path"], "count.md");
    assert_eq!(code(&files(json!({ "do": "get", "path": "none.md" }))), "not_found");
    assert_eq!(code(&files(json!({ "do": "put", "path": "../out", "text": "x" }))), "invalid");
    assert_eq!(code(&files(json!({ "do": "read", "path": "a.md" }))), "not_found", "there are no documents");
    assert_eq!(program.stepped(&first, "a"), 1);

    let question = json!({ "text": "Do numerals count?", "choices": ["yes", "no"] });
    let wait = json!({ "token": first, "id": "w", "for": { "answer": question }, "thought": "Unclear." });
    let waits = program.ask("wait", &wait);
    assert_eq!((&waits["waits"], &waits["over"]), (&json!(true), &json!(true)), "{waits}");
    assert_eq!(program.ask("wait", &wait), waits, "sent again");
    assert_eq!(code(&program.step(&first, "b")), "put_down");
    wait_until("it is asked", LIMIT, || {
        folder.json(&["questions", "--json"]).is_ok_and(|asked| asked.to_string().contains("numerals"))
    })
    .unwrap();
    folder.output(&["answer", &run, "1", "no"]).unwrap();
    let task = program.take();
    assert_eq!((task["generation"].as_u64(), task["next_step"].as_u64()), (Some(2), Some(3)), "{task}");
    assert!(task["answered"]["observation"]["content"].as_str().unwrap().contains("no"), "{task}");
    let finish = json!({ "token": token(&task), "result": { "conclusion": "7 words." } });
    assert_eq!(program.ask("finish", &finish)["recorded"], true);
    assert!(asker.wait().unwrap().success(), "{}", folder.logs());
    assert_eq!(numbers(&trace(folder, &run)), [1, 2]);
}

/// What the scripted model answers: one task for the program, and what the program asks by itself.
fn answer(request: &CapturedRequest) -> Reply {
    let task = json!({ "name": "count", "goal": "Say what the note says.", "role": ROLE });
    plan_and_report(request, &[task], "# Note\n\nIt says seven (`note.md:1`).")
        .unwrap_or_else(|| Reply::text("Seven, I think.").with_usage(100, 10, 0))
}

/// A program asks the fleet's model and is charged for it; what its result cites is looked up in the documents.
#[test]
fn a_program_asks_the_model_and_what_it_cites_is_looked_up() {
    let model = ModelServer::start(Script::answering(answer)).unwrap();
    let folder = with_model(&model);
    folder.write("docs/note.md", "There are seven apples.\n").unwrap();
    let fleet = folder.up(&["--set", "agent.model=openai/scripted"]).unwrap();
    let folder = fleet.folder();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let program = Program::new(&stranger, "one");
    program.enter();
    let (mut asker, run) = submit(folder, &["--docs", "docs"]);
    let task = program.take();
    let first = token(&task);
    assert_eq!(task["documents"]["count"], 1, "{task}");
    let read = program.ask("files", &json!({ "token": first, "do": "read", "path": "note.md" }));
    assert_eq!(read["lines"][0], "There are seven apples.", "{read}");

    let before = model.completed();
    let asked = json!({ "token": first, "id": "m", "system": "You are a counter.",
        "messages": [{ "role": "user", "content": "How many apples?" }] });
    let answered = program.ask("model", &asked);
    assert_eq!(answered["text"], "Seven, I think.", "{answered}");
    assert_eq!(program.ask("model", &asked), answered, "sent again, it is not asked again");
    assert_eq!(model.completed(), before + 1);
    let said = json!({ "token": first, "thought": "Ask.", "action": { "name": "ask" }, "observation": "seven",
        "usage": { "model_calls": 2, "input_tokens": 1000 } });
    let mut implausible = said.clone();
    implausible["usage"]["model_calls"] = json!(4_000_000_000_u32);
    let refused = program.ask("step", &implausible);
    assert_eq!(code(&refused), "invalid", "{refused}");
    assert_eq!(program.ask("step", &said)["step"], 1);

    let cites = |line: u32, quote: &str| {
        let finding = json!({ "text": "There are seven apples.",
            "citations": [{ "path": "note.md", "line": line, "quote": quote }] });
        json!({ "token": first, "result": { "conclusion": "Seven.", "findings": [finding] } })
    };
    let refused = program.ask("finish", &cites(1, "There are eight pears."));
    assert_eq!(code(&refused), "bad_result", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("note.md"), "{refused}");
    assert_eq!(program.ask("finish", &cites(1, "There are seven apples."))["recorded"], true);
    assert!(asker.wait().unwrap().success(), "{}", folder.logs());
    let record = trace(folder, &run);
    let outcome = of_role(&record, "outcome")[0]["event"].clone();
    assert_eq!(outcome["product"]["result"]["findings"][0]["looked_up"], true, "{outcome}");
    assert_eq!(
        (&outcome["usage"]["model_calls"], &outcome["usage"]["input_tokens"]),
        (&json!(3), &json!(1100)),
        "one by the gateway, two that it says itself: {outcome}"
    );
}
