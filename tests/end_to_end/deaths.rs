//! Agents that are killed or frozen in the middle of a task: others go on, nothing finished is asked for again.
#![allow(clippy::print_stdout, reason = "the figures are read")]

use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use muster_bus::Bus;
use muster_shared::ids::Queue;
use muster_shared::secret::Redactor;
use muster_support::fleet::{Fleet, Folder, both, wait_until};
use muster_support::foreign::Stranger;
use muster_support::model_server::{CapturedRequest, Fault, LogEntry, ModelServer, Reply, Script};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::help::{act, done, plan_and_report, submit};
use super::support::{folder, of_kind, signal, with_model};

const LIMIT: Duration = Duration::from_secs(60);
/// Model calls of one list: seven sums and the answer.
const CALLS: usize = 8;

/// How the scripted model answers the call that is made after so many steps, the first time it is asked.
#[derive(Clone, Copy)]
pub(super) struct Catch {
    pub(super) step: usize,
    pub(super) times: usize,
    pub(super) reply: fn(Reply) -> Reply,
}

pub(super) fn never(_: Reply) -> Reply {
    Reply::fault(Fault::Hang)
}

/// A model that plans `lists` tasks of eight calls each. Calls that the catch fits are answered as it says, as many
/// times for each list.
pub(super) fn script(lists: usize, catch: Catch) -> Script {
    let asked = std::sync::Mutex::new(std::collections::BTreeMap::<String, usize>::new());
    Script::answering(move |request| {
        let reply = answer(request, lists);
        let Some(list) = list_of(request).filter(|_| request.turns() == catch.step) else { return reply };
        let mut asked = asked.lock().unwrap();
        let count = asked.entry(list).or_default();
        *count += 1;
        if *count <= catch.times { (catch.reply)(reply) } else { reply }
    })
}

fn answer(request: &CapturedRequest, lists: usize) -> Reply {
    if request.system().contains("You are the refiner") {
        let operations = json!([{ "operation": "exit", "reason": "the rest will do" }]);
        return submit(&json!({ "thought": "Nothing to be changed.", "operations": operations }));
    }
    let task = |n: usize| json!({ "name": format!("sums of list {n}"), "goal": format!("Add up list {n}."), "role": "worker" });
    let tasks: Vec<Value> = (1..=lists).map(task).collect();
    plan_and_report(request, &tasks, "# Sums\n\nAll lists were added up.").unwrap_or_else(|| {
        let step = request.turns();
        if step + 1 < CALLS {
            return act("calculator", json!({ "expression": format!("{} + {step}", 40 + step) }));
        }
        done("All sums are known.")
    })
}

/// Which list a worker asks about; nothing for other roles.
fn list_of(request: &CapturedRequest) -> Option<String> {
    let worker = request.system().contains("You are a worker");
    worker.then(|| request.between("Add up list ", ".").map(str::to_owned)).flatten()
}

/// A fleet that works on a run with a scripted model.
pub(super) struct Scene {
    pub(super) fleet: Fleet,
    pub(super) server: ModelServer,
    asker: Option<Child>,
}

impl Scene {
    pub(super) fn begin(script: Script, arguments: &[&str]) -> Self {
        Self::begin_in(folder(), script, arguments)
    }

    /// The same in a folder with variables of its own.
    pub(super) fn begin_in(folder: Folder, script: Script, arguments: &[&str]) -> Self {
        let server = ModelServer::start(script).unwrap();
        let folder = folder.with("OPENAI_API_KEY", "test-key").with("OPENAI_BASE_URL", server.openai_url());
        let usual = ["--set", "limits.max_width=8", "--set", "agent.model=openai/scripted"];
        let fleet = folder.up(&[arguments, &usual].concat()).unwrap();
        let mut scene = Self { fleet, server, asker: None };
        scene.ask();
        scene
    }

    fn ask(&mut self) {
        let run = ["--set", "limits.max_width=8", "run", "Add up the lists.", "--json", "--deadline", "100s"];
        let asker = self.fleet.folder().command(&run).stdout(Stdio::piped()).spawn().unwrap();
        self.asker = Some(asker);
    }

    /// The end of the run, which must be a good one.
    pub(super) fn summary(&mut self) -> Value {
        let output = self.asker.take().unwrap().wait_with_output().unwrap();
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        let told = || {
            format!(
                "{}\n{}",
                self.fleet.folder().output(&["trace", "last"]).unwrap(),
                self.fleet.folder().logs()
            )
        };
        assert_eq!(summary["status"], "completed", "{summary}\n{}", told());
        summary
    }

    pub(super) fn trace(&self) -> Vec<Value> {
        self.fleet.folder().json_lines(&["trace", "last", "--json"]).unwrap_or_default()
    }

    /// The calls of workers after so many steps, in order of arrival.
    pub(super) fn calls(&self, step: usize) -> Vec<LogEntry> {
        let of_step = |entry: &LogEntry| list_of(&entry.request).is_some() && entry.request.turns() == step;
        self.server.log().into_iter().filter(of_step).collect()
    }

    pub(super) fn wait_for_calls(&self, step: usize, count: usize) {
        let arrived = self.server.wait_until(LIMIT, |_| self.calls(step).len() >= count);
        arrived.unwrap_or_else(|late| panic!("{late}\n{}", self.fleet.folder().logs()));
    }

    /// Agent and process of whoever started the task last.
    pub(super) fn holder(&self, task: &str) -> (String, u32) {
        let trace = self.trace();
        let started = of_kind(&trace, "started").filter(|entry| entry["task"] == task).last();
        let started = started.unwrap_or_else(|| panic!("nobody started {task}:\n{trace:#?}"));
        let pid = started["event"]["pid"].as_u64().unwrap();
        (started["by"].as_str().unwrap().to_owned(), u32::try_from(pid).unwrap())
    }

    /// No call that had been answered was made again.
    pub(super) fn assert_nothing_repeated(&self) {
        let mut finished = std::collections::BTreeSet::new();
        for LogEntry { request, completed } in self.server.log() {
            let Some(list) = list_of(&request) else { continue };
            let call = (list, request.turns());
            assert!(!finished.contains(&call), "list {} was asked again after step {}", call.0, call.1);
            if completed.is_some() {
                finished.insert(call);
            }
        }
        assert!(self.server.violations().is_empty(), "{:?}", self.server.violations());
    }
}

/// Kills the worker that has the task at step 5 of 8.
#[test]
fn another_worker_goes_on_where_a_killed_one_was() {
    let catch = Catch { step: 4, times: 1, reply: never };
    let mut scene = Scene::begin(script(1, catch), &["--scale", "worker=2"]);
    scene.wait_for_calls(4, 1);
    let (agent, pid) = scene.holder("1");
    let killed = scene.server.now();
    signal(pid, Signal::SIGKILL);
    scene.wait_for_calls(4, 2);
    let took = scene.calls(4)[1].request.at.saturating_sub(killed);
    assert!(took < Duration::from_secs(2), "taken over after {took:?}");
    let summary = scene.summary();
    assert_eq!(summary["report"]["title"], "Sums");
    scene.assert_nothing_repeated();

    let trace = scene.trace();
    let starts: Vec<&Value> = of_kind(&trace, "started").filter(|entry| entry["task"] == "1").collect();
    assert_eq!(starts.len(), 2, "{starts:?}");
    assert_ne!(starts[1]["by"], agent.as_str());
    assert_eq!(starts[1]["event"]["after_step"], 4, "four steps are in the record, the fifth is taken again");
    assert_eq!(of_kind(&trace, "outcome").filter(|entry| entry["task"] == "1").count(), 1);
    let told = trace.iter().any(|entry| entry.to_string().contains("task_orphaned"));
    assert!(told, "the record says why");
}

/// Who takes an offer and dies before it can say so has it in hand, and the record does not know.
#[test]
fn an_offer_that_died_with_its_taker_before_it_was_started_is_handed_on() {
    let server = ModelServer::start(Script::answering(|request| answer(request, 1))).unwrap();
    let folder = with_model(&server);
    let slow = ["--set", "limits.start_within=60s", "--set", "bus.ack_wait=60s"];
    let usual = ["--scale", "planner=2", "--set", "agent.model=openai/scripted"];
    let fleet = folder.up(&[&slow[..], &usual].concat()).unwrap();
    let planners = || fleet.pids().into_iter().filter(|(name, _)| name.starts_with("planner"));
    planners().for_each(|(_, pid)| signal(pid, Signal::SIGSTOP));
    let run = ["run", "Add up the lists.", "--json", "--deadline", "50s"];
    let asker =
        fleet.folder().command(&[&slow[..2], &run[..]].concat()).stdout(Stdio::piped()).spawn().unwrap();
    let traced = |kind: &str| {
        let trace = fleet.folder().json_lines(&["trace", "last", "--json"]).unwrap_or_default();
        of_kind(&trace, kind).filter(|entry| entry["task"] == "plan").count()
    };
    wait_until("a planner has the offer in hand", LIMIT, || is_in_hand(&fleet.url(), "planner")).unwrap();
    assert_eq!(traced("started"), 0);
    planners().for_each(|(_, pid)| signal(pid, Signal::SIGKILL));
    wait_until("another planner starts", Duration::from_secs(20), || traced("started") > 0)
        .unwrap_or_else(|late| panic!("{late}\n{}", fleet.folder().logs()));
    let output = asker.wait_with_output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["status"], "completed", "{summary}");
}

/// Whether an offer of a role was given out and is not done.
fn is_in_hand(url: &str, role: &str) -> bool {
    let queue = Queue::Role(role.parse().unwrap());
    let settings = muster_support::way::settings(url);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let who = "looker".parse().unwrap();
        let bus = Bus::connect(&settings, &who, Arc::new(Redactor::default())).await.unwrap();
        bus.tasks().in_hand(&queue).await.unwrap() > 0
    })
}

#[test]
fn a_killed_worker_with_eight_tasks_loses_the_calls_in_flight_and_no_more() {
    let catch = Catch { step: 2, times: 1, reply: never };
    let mut scene = Scene::begin(script(8, catch), &["--scale", "worker=1"]);
    scene.wait_for_calls(2, 8);
    let (_, pid) = scene.holder("8");
    signal(pid, Signal::SIGKILL);
    let summary = scene.summary();
    scene.assert_nothing_repeated();
    let asked = scene.server.log().iter().filter(|entry| list_of(&entry.request).is_some()).count();
    assert_eq!(asked, 8 * CALLS + 8, "the eight calls in flight were made again");
    // Plan, reflections and report come on top of the leaves' calls.
    let usage = &summary["usage"];
    assert_eq!(usage["model_calls"], 8 * CALLS + 8 + 2, "{usage}");
    assert_eq!(usage["wasted_calls"], 8, "what was sent and not answered is counted: {usage}");
}

/// A worker that is frozen while the model answers loses its task; awake again, it can do nothing to it.
fn frozen_at(step: usize) {
    // The frozen worker's answer comes while it sleeps; the next one's never, until it is killed.
    fn late_then_never(reply: Reply) -> Reply {
        reply.with_delay(Duration::from_secs(1))
    }
    let catch = Catch { step, times: 1, reply: late_then_never };
    let mut scene = Scene::begin(script(1, catch), &["--scale", "worker=2", "--set", "agent.slots.worker=1"]);
    scene.wait_for_calls(step, 1);
    let (zombie, pid) = scene.holder("1");
    let frozen = Instant::now();
    signal(pid, Signal::SIGSTOP);
    scene.wait_for_calls(step, 2);
    println!("taken over from a frozen worker after {:?}", frozen.elapsed());
    signal(pid, Signal::SIGCONT);
    let woken = scene.server.now();
    let log = || scene.fleet.folder().logs();
    wait_until("the woken worker learns that it lost the task", LIMIT, || {
        log().contains("another agent has the task")
    })
    .unwrap();
    scene.summary();

    let trace = scene.trace();
    let of_task: Vec<&Value> =
        trace.iter().filter(|entry| entry["task"] == "1" && entry["by"].is_string()).collect();
    let second = of_task.iter().rposition(|entry| entry["kind"] == "started").unwrap();
    assert_ne!(of_task[second]["by"], zombie.as_str());
    let after: Vec<_> = of_task[second..].iter().filter(|entry| entry["by"] == zombie.as_str()).collect();
    assert!(after.is_empty(), "the zombie wrote: {after:?}");
    assert_eq!(of_kind(&trace, "outcome").filter(|entry| entry["task"] == "1").count(), 1);

    // It is as good as any other again: with one slot each, two tasks at once need both workers.
    assert!(scene.server.now() > woken);
    scene.ask();
    wait_until("the woken worker takes a task", LIMIT, || {
        let trace = scene.trace();
        let mut started = of_kind(&trace, "started");
        started.any(|entry| entry["by"] == zombie.as_str()) || {
            // One list only: whoever is free takes it. Ask until the woken one does.
            if scene.asker.as_mut().is_some_and(|asker| asker.try_wait().is_ok_and(|ended| ended.is_some())) {
                scene.ask();
            }
            false
        }
    })
    .unwrap();
    scene.summary();
}

#[test]
fn a_frozen_worker_that_wakes_up_adds_no_step() {
    frozen_at(4);
}

#[test]
fn a_frozen_worker_that_wakes_up_writes_no_outcome() {
    frozen_at(CALLS - 1);
}

#[test]
fn a_task_that_kills_three_workers_is_given_to_no_other_until_somebody_says_so() {
    // The first list's third call hangs three times, and so does the report, until the task is tried again.
    let (calls, reports) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let hang = |count: &AtomicUsize, times| count.fetch_add(1, Ordering::SeqCst) < times;
    let script = Script::answering(move |request| {
        let poison = list_of(request).as_deref() == Some("1") && request.turns() == 2;
        let report = request.system().contains("You are the writer");
        if poison && hang(&calls, 3) || report && hang(&reports, 1) {
            return Reply::fault(Fault::Hang);
        }
        answer(request, 2)
    });
    let mut scene = Scene::begin(script, &["--scale", "worker=2"]);
    let mut killed: Vec<String> = Vec::new();
    for death in 1..=3 {
        let poisoned = |entry: &LogEntry| list_of(&entry.request).as_deref() == Some("1");
        let asked = || scene.calls(2).iter().filter(|entry| poisoned(entry)).count();
        wait_until("another worker has the poison", LIMIT, || asked() >= death).unwrap();
        let (agent, pid) = scene.holder("1");
        assert!(!killed.contains(&agent), "it is another one each time");
        killed.push(agent);
        signal(pid, Signal::SIGKILL);
    }
    let folder = scene.fleet.folder();
    let letters = || folder.json(&["dead", "list", "--json"]).unwrap_or_default();
    wait_until("the task is among the dead letters", LIMIT, || {
        letters().as_array().is_some_and(|all| all.len() == 1)
    })
    .unwrap_or_else(|error| {
        panic!("{error}: {}", folder.output(&["trace", "last", "--json"]).unwrap_or_default())
    });
    let letter = &letters()[0];
    assert_eq!((&letter["content"]["agents"], &letter["content"]["last_step"]), (&json!(killed), &json!(2)));
    let seq = letter["seq"].to_string();
    let shown = folder.output(&["dead", "show", &seq]).unwrap();
    assert!(shown.contains("3 agents died") && shown.contains(&killed[2]), "{shown}");
    let trace = scene.trace();
    let events =
        trace.iter().flat_map(|entry| entry["event"]["events"].as_array().cloned().unwrap_or_default());
    let quarantined = events.into_iter().find(|event| event["event"] == "task_quarantined").unwrap();
    assert_eq!(quarantined["evidence"]["agents"], json!(killed));
    assert_eq!(of_kind(&trace, "started").filter(|entry| entry["task"] == "1").count(), 3);

    // Nothing is sent before a person has seen the letter and agreed.
    let shown = folder.run(&["dead", "retry", &seq]).unwrap();
    assert!(shown.status.code() == Some(2) && both(&shown).contains("3 agents died"), "{}", both(&shown));
    folder.output(&["dead", "retry", &seq, "--yes"]).unwrap();
    assert_eq!(letters(), json!([]));
    scene.summary();
    let trace = scene.trace();
    let outcome = of_kind(&trace, "outcome").find(|entry| entry["task"] == "1").unwrap();
    let next = quarantined["generation"].as_u64().unwrap() + 1;
    assert_eq!((&outcome["generation"], &outcome["event"]["ending"]), (&json!(next), &json!("done")));
}

#[test]
fn innocents_that_die_with_a_poison_task_are_tried_alone_and_done() {
    const LISTS: usize = 4;
    let asked = std::sync::Mutex::new(std::collections::BTreeMap::<String, usize>::new());
    let script = Script::answering(move |request| {
        let reply = answer(request, LISTS);
        let Some(list) = list_of(request).filter(|_| request.turns() == 2) else { return reply };
        let mut asked = asked.lock().unwrap();
        let times = asked.entry(list.clone()).or_default();
        *times += 1;
        // All are in work at the first two deaths; the first list is there at the third, too.
        let hangs = if list == "1" { 3 } else { 2 };
        if *times <= hangs { Reply::fault(Fault::Hang) } else { reply }
    });
    let mut scene = Scene::begin(script, &["--scale", "worker=1"]);
    for death in 1..=2 {
        scene.wait_for_calls(2, LISTS * death);
        let (_, pid) = scene.holder("1");
        signal(pid, Signal::SIGKILL);
    }
    let poisoned = |entry: &LogEntry| list_of(&entry.request).as_deref() == Some("1");
    let asked = || scene.calls(2).iter().filter(|entry| poisoned(entry)).count();
    wait_until("the poison is tried a third time", LIMIT, || asked() >= 3).unwrap();
    let (_, pid) = scene.holder("1");
    signal(pid, Signal::SIGKILL);
    scene.summary();
    let trace = scene.trace();
    let events =
        trace.iter().flat_map(|entry| entry["event"]["events"].as_array().cloned().unwrap_or_default());
    let events: Vec<Value> = events.collect();
    let tasks = |kind: &str| {
        let of_kind = events.iter().filter(|event| event["event"] == kind);
        of_kind.map(|event| event["task"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(tasks("task_quarantined"), ["1"], "only what died alone is deadly");
    let mut done = tasks("task_completed");
    done.retain(|task| ["1", "2", "3", "4"].contains(&task.as_str()));
    done.sort();
    assert_eq!(done, ["2", "3", "4"], "the innocents are done");
}

#[test]
fn what_nobody_understands_can_be_looked_at_tried_again_and_dropped() {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    stranger.publish("cmd.0193f0c0c0c070008000000000000001.submit", b"{\"half\": \x1b[2J").unwrap();
    let letters = || folder.json(&["dead", "list", "--json"]).unwrap_or_default();
    let only = |seq: u64| letters().as_array().is_some_and(|all| all.len() == 1 && all[0]["seq"] == seq);
    wait_until("it is among the dead letters", LIMIT, || only(1)).unwrap();
    let table = folder.output(&["dead", "list"]).unwrap();
    assert!(table.contains("cmd.0193f0c0") && table.contains("WHY"), "{table}");
    let shown = folder.output(&["dead", "show", "1"]).unwrap();
    assert!(shown.contains("{\"half\"") && !shown.contains('\u{1b}'), "{shown}");

    let refused = folder.run(&["dead", "retry", "1", "--yes"]).unwrap();
    assert!(
        refused.status.code() == Some(2) && both(&refused).contains("it is not signed"),
        "{}",
        both(&refused)
    );
    folder.output(&["dead", "drop", "1"]).unwrap();
    assert_eq!(letters(), json!([]));
    for action in ["show", "retry", "drop"] {
        let refused = folder.run(&["dead", action, "1"]).unwrap();
        assert_eq!(refused.status.code(), Some(2));
        assert!(both(&refused).contains("no dead letter 1"), "{}", both(&refused));
    }
}
