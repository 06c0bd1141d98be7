//! Steering runs from another terminal: pausing, skipping, doing again, new goals, stopping. The model is scripted and
//! keeps its answers back where a test wants it to, so that there is time to interrupt.

#![expect(clippy::print_stdout, reason = "how fast agents answer is shown with --no-capture")]

use std::collections::{BTreeSet, HashMap};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muster_support::fleet::{Fleet, Folder, both, wait_until};
use muster_support::model_server::{CapturedRequest, Fault, ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::help::{act, done, plan_and_report};
use super::support::with_model;

const LIMIT: Duration = Duration::from_secs(60);

/// An interrupted agent answers far faster; on a busy machine this is never missed for luck.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Tools that a leaf uses before it submits.
const STEPS: usize = 2;

/// A model that plans two leaves and one that uses both, and keeps back what it is told to.
struct Model {
    server: ModelServer,
    held: Arc<Mutex<BTreeSet<String>>>,
}

impl Model {
    /// Keeps back the last answers of these tasks.
    fn holding(tasks: &[&str]) -> Self {
        let held: BTreeSet<String> = tasks.iter().map(|task| (*task).to_owned()).collect();
        let held = Arc::new(Mutex::new(held));
        let keeps = Arc::clone(&held);
        let script = Script::answering(move |request| {
            let is_last = request.turns() == STEPS || task_of(request) == "write";
            if is_last && keeps.lock().unwrap().contains(task_of(request)) {
                return Reply::fault(Fault::Hang);
            }
            answer(request)
        });
        Self { server: ModelServer::start(script).unwrap(), held }
    }

    fn folder(&self) -> Folder {
        with_model(&self.server)
    }

    fn release(&self, task: &str) {
        self.held.lock().unwrap().remove(task);
    }

    /// Waits until the answer that is kept back has been asked for so many times.
    fn until_held(&self, task: &str, times: usize) {
        let asked = |server: &ModelServer| {
            let log = server.log();
            let held = log.iter().filter(|entry| {
                let request = &entry.request;
                task_of(request) == task && (request.turns() == STEPS || task == "write")
            });
            held.count() >= times
        };
        self.server.wait_until(LIMIT, asked).unwrap();
    }

    /// The first question about a task that holds these words.
    fn was_told(&self, task: &str, words: &str) -> bool {
        self.server.log().iter().any(|entry| task_of(&entry.request) == task && entry.request.holds(words))
    }

    /// Requests that were answered more than once.
    fn repeated(&self) -> Vec<String> {
        let mut answered: HashMap<String, usize> = HashMap::new();
        for entry in self.server.log().iter().filter(|entry| entry.completed.is_some()) {
            *answered.entry(entry.request.body.to_string()).or_default() += 1;
        }
        answered.into_iter().filter(|(_, times)| *times > 1).map(|(request, _)| request).collect()
    }
}

fn task_of(request: &CapturedRequest) -> &str {
    if request.system().contains("You are the writer") {
        return "write";
    }
    if request.system().contains("You are a worker") {
        return request.between("Your task, ", ":").unwrap_or_default();
    }
    "another"
}

fn answer(request: &CapturedRequest) -> Reply {
    let task = |name: &str, on: &[&str]| json!({ "name": name, "goal": format!("Work out {name}."), "role": "worker", "depends_on": on });
    let tasks = [task("the apples", &[]), task("the pears", &[]), task("the sum", &["1", "2"])];
    plan_and_report(request, &tasks, "# Fruit\n\nAll of it.").unwrap_or_else(|| match request.turns() {
        turn @ 0..STEPS => act("calculator", json!({ "expression": format!("{turn} + 1") })),
        _ => done(&format!("{} are counted", task_of(request))),
    })
}

fn ask(fleet: &Fleet, more: &[&str]) -> Child {
    let run =
        ["run", "How much fruit is there?", "--planning", "always", "--model", "openai/scripted", "--json"];
    let arguments = [&run[..], more].concat();
    fleet.folder().command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The end of a run: exit code, summary, and everything that was said.
fn end(asker: Child) -> (i32, Value, String) {
    let output = asker.wait_with_output().unwrap();
    let summary = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code().unwrap_or(-1), summary, both(&output))
}

fn trace(fleet: &Fleet) -> Vec<Value> {
    fleet.folder().json_lines(&["trace", "last", "--json"]).unwrap()
}

/// Milliseconds from when a command was sent, and from when it was decided, until agents answered the interruption.
fn interrupted_after(fleet: &Fleet, told: &Value, kind: &str) -> (u64, u64) {
    let id = told["request"].as_str().unwrap().replace('-', "");
    let sent = u64::from_str_radix(&id[..12], 16).unwrap();
    let trace = trace(fleet);
    let decided = trace.iter().find(|entry| entry["seq"] == told["seq"]).unwrap()["at"].as_u64().unwrap();
    let answered =
        trace.iter().filter(|entry| entry["kind"] == kind && entry["seq"].as_u64() > told["seq"].as_u64());
    let last = answered.filter_map(|entry| entry["at"].as_u64()).max().unwrap();
    (last.saturating_sub(sent), last.saturating_sub(decided))
}

fn refused(fleet: &Fleet, arguments: &[&str]) -> (i32, String) {
    let output = fleet.folder().run(arguments).unwrap();
    (output.status.code().unwrap_or(-1), both(&output))
}

#[test]
fn a_paused_run_is_put_down_at_once_and_goes_on_without_a_call_repeated() {
    let model = Model::holding(&["1", "2"]);
    let fleet = model.folder().up(&[]).unwrap();
    let asker = ask(&fleet, &[]);
    model.until_held("1", 1);
    model.until_held("2", 1);

    let told =
        fleet.folder().json(&["pause", "last", "--reason", "the price is to be checked", "--json"]).unwrap();
    assert_eq!(told["at_work"], 0, "{told}");
    let (from_sent, from_decided) = interrupted_after(&fleet, &told, "released");
    println!(
        "pause: put down {from_sent} ms after the command was sent, {from_decided} ms after it was decided"
    );
    assert!(Duration::from_millis(from_sent) < AT_ONCE, "{from_sent} ms");
    for arguments in [&["show", "last"][..], &["runs"], &["ps"], &["trace", "last"]] {
        let said = fleet.folder().output(arguments).unwrap();
        assert!(said.contains("paused"), "{arguments:?}: {said}");
    }
    assert!(fleet.folder().output(&["show", "last"]).unwrap().contains("the price is to be checked"));
    let (code, said) = refused(&fleet, &["pause", "last"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("paused already"), "{said}");

    model.release("1");
    model.release("2");
    fleet.folder().output(&["resume", "last", "--deadline", "10m"]).unwrap();
    let (code, summary, said) = end(asker);
    assert_eq!((code, &summary["status"]), (0, &json!("completed")), "{said}\n{}", fleet.folder().logs());
    assert_eq!(model.repeated(), Vec::<String>::new());
    let starts = trace(&fleet);
    let goes_on =
        starts.iter().filter(|entry| entry["kind"] == "started" && entry["event"]["after_step"] == STEPS);
    assert_eq!(goes_on.count(), 2, "both go on after their last step");
    let (code, said) = refused(&fleet, &["resume", "last"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("has ended (completed)"), "{said}");
}

#[test]
fn tasks_are_skipped_done_again_and_given_new_goals_with_the_reasons_in_the_prompts() {
    let model = Model::holding(&["2", "write"]);
    let fleet = model.folder().up(&[]).unwrap();
    let asker = ask(&fleet, &[]);
    model.until_held("2", 1);

    let (code, said) = refused(&fleet, &["skip", "last", "2-4"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("there is no task 2-4; nearest to it: 2 (the pears)"), "{said}");

    fleet.folder().output(&["skip", "last", "2", "--reason", "pears are out of season"]).unwrap();
    model.until_held("write", 1);
    assert!(model.was_told("3", "pears are out of season"), "what depends on it goes on and is told");

    let told = fleet.folder().output(&["redo", "last", "1", "--reason", "count the green ones too"]).unwrap();
    assert!(told.contains("1 is done again") && told.contains("3 is done again"), "{told}");
    model.until_held("write", 2);
    assert!(model.was_told("1", "count the green ones too"));

    let told = fleet.folder().output(&["edit", "last", "3", "--goal", "Work out the product."]).unwrap();
    assert!(told.contains("3 has a new goal") && told.contains("3 is done again"), "{told}");
    model.until_held("write", 3);
    assert!(model.was_told("3", "Work out the product."));

    let edit =
        fleet.folder().command(&["edit", "last", "--editor"]).env("EDITOR", "sed -i s/fruit/food/").output();
    let edited = edit.unwrap();
    assert!(edited.status.success(), "{}", both(&edited));
    model.until_held("write", 4);
    assert!(model.was_told("write", "How much food is there?"), "the report answers the new goal");
    model.release("write");
    fleet.folder().output(&["redo", "last", "2", "--reason", "a late delivery"]).unwrap();
    model.until_held("2", 2);
    model.release("2");
    fleet.folder().output(&["redo", "last", "2"]).unwrap();
    let (code, summary, said) = end(asker);
    assert_eq!((code, &summary["status"]), (0, &json!("completed")), "{said}\n{}", fleet.folder().logs());
    assert_eq!(summary["goal"], "How much food is there?");
}

#[test]
fn cancelling_interrupts_an_agent_in_the_middle_of_a_model_call_at_once() {
    let model = Model::holding(&["1", "2"]);
    let fleet = model.folder().up(&[]).unwrap();
    let asker = ask(&fleet, &[]);
    model.until_held("1", 1);
    model.until_held("2", 1);
    let told = fleet.folder().json(&["cancel", "last", "--reason", "no longer needed", "--json"]).unwrap();
    let (code, summary, said) = end(asker);
    assert_eq!((code, &summary["status"]["aborted"]), (4, &json!("cancelled")), "{said}");
    assert!(said.contains("no longer needed"), "{said}");
    let both_ended = || {
        let trace = trace(&fleet);
        trace.iter().filter(|entry| entry["event"]["ending"] == "cancelled").count() == 2
    };
    wait_until("both agents have answered", LIMIT, both_ended).unwrap();
    let (from_sent, from_decided) = interrupted_after(&fleet, &told, "outcome");
    println!("cancel: {from_sent} ms after the command was sent, {from_decided} ms after it was decided");
    assert!(Duration::from_millis(from_sent) < AT_ONCE, "{from_sent} ms");
}

#[test]
fn a_run_out_of_time_delivers_a_partial_report_by_itself() {
    let model = Model::holding(&["2", "write"]);
    let folder = model.folder();
    let run = [
        "run",
        "How much fruit is there?",
        "--planning",
        "always",
        "--model",
        "openai/scripted",
        "--deadline",
        "8s",
        "-o",
        "part.md",
    ];
    let output = folder.run(&run).unwrap();
    assert_eq!(output.status.code(), Some(4), "{}\n{}", both(&output), folder.logs());
    assert!(both(&output).contains("partial report: part.md"), "{}", both(&output));
    let report = std::fs::read_to_string(folder.path().join("part.md")).unwrap();
    assert!(report.starts_with("# Partial report") && report.contains("1 are counted"), "{report}");
    assert!(model.was_told("write", "the pears"), "the writer was asked while there was time");
}
