//! Alerts of a fleet at work: a question that waits, a tool that fails, a dead letter, processes that are killed again and again. Each
//! is told once, signed, and told to be over once, though the receiver fails in every way and who looks after alerts is killed.

mod receiver;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::Duration;

use muster_support::fleet::{Fleet, both, wait_until};
use muster_support::foreign::Stranger;
use muster_support::model_server::{CapturedRequest, ModelServer};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use self::receiver::{Mode, Receiver};
use super::help::{act, done, script_of};
use super::support::{folder, signal};

const LIMIT: Duration = Duration::from_secs(60);
const SECRET: &str = "a secret of at least 16 bytes";

/// The user's own settings.
fn settings(url: &str) -> String {
    format!(
        "[alerts]\nto = [\"ops\"]\nevery = \"200ms\"\n\
         [alerts.destinations.ops]\nurl = \"{url}\"\nprivate = true\nsecret_file = \"hook.key\"\ntimeout = \"1s\"\n\
         [alerts.destinations.page]\ncommand = [\"/bin/sh\", \"-c\", \"cat >> page.log\"]\n\
         [alerts.rules.questions]\nabove = \"500ms\"\nclear = \"0s\"\n\
         [alerts.rules.tool_failures]\nwindow = \"12s\"\nleast = 2\nclear = \"1s\"\n\
         [alerts.rules.restarts]\nwindow = \"30s\"\nclear = \"1s\"\nto = [\"ops\", \"page\"]\n\
         [alerts.rules.dead_letters]\nclear = \"0s\"\nseverity = \"critical\"\n"
    )
}

/// What a notice says.
#[derive(Clone, PartialEq, Debug)]
struct Said {
    rule: String,
    change: String,
    /// The tools, roles, runs or processes, without their hosts.
    of: Vec<String>,
}

/// What was told, by id: whoever gets a notice twice knows it by that.
fn told(receiver: &Receiver) -> BTreeMap<String, Said> {
    let mut told = BTreeMap::new();
    for request in receiver.taken() {
        let body = request.json();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let series = body["data"]["series"].as_array().into_iter().flatten();
        let of = series.map(|one| text(&one["name"]).split('@').next().unwrap_or_default().to_owned());
        let (rule, change) = (text(&body["data"]["rule"]), text(&body["type"]));
        let what = Said { rule, change, of: of.collect() };
        let known = told.insert(request.header("webhook-id").to_owned(), what.clone());
        assert!(known.is_none_or(|known| known == what), "one id, one notice: {body}");
    }
    told
}

fn count(receiver: &Receiver, rule: &str, change: &str) -> usize {
    let change = format!("alert.{change}");
    told(receiver).values().filter(|said| said.rule == rule && said.change == change).count()
}

fn until_told(fleet: &Fleet, receiver: &Receiver, rule: &str, change: &str, times: usize) {
    until(fleet, receiver, &format!("{rule} {change}"), || count(receiver, rule, change) >= times);
}

/// Whether it was told that a process was started again too often, or is not any more.
fn is_told_of(receiver: &Receiver, process: &str, change: &str) -> bool {
    let wanted = format!("alert.{change}");
    let is_it = |said: &Said| {
        said.rule == "restarts" && said.change == wanted && said.of.iter().any(|name| name == process)
    };
    told(receiver).values().any(is_it)
}

fn until_told_of(fleet: &Fleet, receiver: &Receiver, process: &str, change: &str) {
    until(fleet, receiver, &format!("{process} {change}"), || is_told_of(receiver, process, change));
}

/// Kills a process until it is told that it was started again too often. Whoever just took over looks from then on alone: of what
/// died twice before that, he sees one.
fn kill_until_told(fleet: &Fleet, receiver: &Receiver, process: &str) {
    for _ in 0..3 {
        kill(fleet, process);
    }
    let is_told = || is_told_of(receiver, process, "fired");
    for _ in 0..2 {
        if wait_until("it is told", Duration::from_secs(5), is_told).is_ok() {
            return;
        }
        kill(fleet, process);
    }
    until_told_of(fleet, receiver, process, "fired");
}

fn until(fleet: &Fleet, receiver: &Receiver, what: &str, is_told: impl Fn() -> bool) {
    wait_until(&format!("{what} is told"), LIMIT, is_told).unwrap_or_else(|late| {
        let listed = fleet.folder().run(&["alerts"]).map(|output| both(&output));
        panic!("{late}: {:?}\n{listed:?}\n{}", told(receiver), fleet.folder().logs())
    });
}

/// Kills a process of the fleet, and waits until the one that takes its place has joined.
fn kill(fleet: &Fleet, name: &str) {
    let before = fleet.pid(name).unwrap();
    signal(before, Signal::SIGKILL);
    let joined = || {
        let now = fleet.pid(name).filter(|pid| *pid != before);
        let listed = fleet.folder().json(&["ps", "--json"]).unwrap_or_default();
        let mut there = listed.as_array().into_iter().flatten();
        now.is_some_and(|pid| there.any(|process| process["pid"] == pid))
    };
    wait_until("another is there", LIMIT, joined)
        .unwrap_or_else(|late| panic!("{late}\n{}", fleet.folder().logs()));
}

/// Kills whoever looks after alerts, and waits until another one does.
fn kill_who_looks(fleet: &Fleet) {
    let holder = || fleet.folder().json(&["alerts", "--json"]).unwrap_or_default()["holder"].clone();
    let before = holder();
    assert!(before.is_string(), "{before}");
    kill(fleet, "alerts-1");
    wait_until("another looks after alerts", LIMIT, || holder().is_string() && holder() != before)
        .unwrap_or_else(|late| panic!("{late}\n{}", fleet.folder().logs()));
}

fn why_it_waits(fleet: &Fleet) -> String {
    let listed = fleet.folder().json(&["alerts", "--json"]).unwrap_or_default();
    listed["waiting"][0]["why"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn each_alert_is_told_once_and_over_once_whoever_fails() {
    let receiver = Receiver::start();
    let task = json!({"name": "try it", "goal": "Try the tool.", "role": "worker"});
    let server =
        ModelServer::start(script_of(vec![task], |request: &CapturedRequest| match request.turns() {
            turn @ 0..=2 => act("own_broken", json!({"word": format!("w{turn}")})),
            _ => done("It does not work."),
        }))
        .unwrap();
    let folder = folder().with("OPENAI_API_KEY", "test-key").with("OPENAI_BASE_URL", server.openai_url());
    folder.write(".config/muster/muster.toml", settings(&receiver.url())).unwrap();
    folder.write(".config/muster/hook.key", format!("{SECRET}\n")).unwrap();
    let tool = "description = \"Says words.\"\ncommand = [\"false\"]\nsandbox = false\n\n[parameters]\ntype = \"object\"\n\
                properties.word.type = \"string\"\n";
    folder.write("tools/broken.tool.toml", tool).unwrap();
    folder.output(&["trust", "--yes"]).unwrap();
    let words = ["agent.model=openai/scripted", "fleet.agents_look=200ms", "fleet.max_restart_wait=200ms"];
    let words: Vec<&str> = words.iter().flat_map(|setting| ["--set", setting]).collect();
    let fleet = folder.up(&words).unwrap();
    let folder = fleet.folder();
    let listed =
        || folder.output(&["ps"]).is_ok_and(|table| table.contains("tools-own") && table.contains("alerts"));
    wait_until("tools and alerts are looked after", LIMIT, listed).unwrap();

    // A destination is tried; what it says is told.
    let tried = folder.output(&["alerts", "test"]).unwrap();
    assert!(tried.contains("ops taken: status 204") && tried.contains("page taken"), "{tried}");
    receiver.set(Mode::Says(503));
    let tried = folder.run(&["alerts", "test", "ops", "--json"]).unwrap();
    assert!(tried.status.code() == Some(1) && both(&tried).contains("status 503"), "{}", both(&tried));
    let before: BTreeSet<String> = told(&receiver).into_keys().collect();
    assert_eq!(before.len(), 1, "{before:?}");

    // A question waits, and the receiver fails in every way meanwhile. Whoever tells is killed while it does.
    receiver.set(Mode::Says(500));
    let run = ["run", "What works?", "--planning", "always", "--review", "--json", "--deadline", "110s"];
    let asker = folder.command(&run).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let tries =
        |mode: Mode| receiver.requests().iter().filter(|one| one.mode == mode && one.path == "/hook").count();
    wait_until("it answers 500", LIMIT, || tries(Mode::Says(500)) > 0).unwrap();
    let line = folder.output(&["ps"]).unwrap();
    assert!(line.contains("alerts fire: questions ("), "{line}");
    receiver.set(Mode::Redirects);
    wait_until("it redirects", LIMIT, || tries(Mode::Redirects) > 0).unwrap();
    wait_until("why is told", LIMIT, || why_it_waits(&fleet).contains("it redirects, which is not followed"))
        .unwrap();
    receiver.set(Mode::Hangs);
    wait_until("it hangs", LIMIT, || tries(Mode::Hangs) > 0).unwrap();
    kill_who_looks(&fleet);
    receiver.set(Mode::Down);
    wait_until("it is down", LIMIT, || why_it_waits(&fleet).contains("no connection")).unwrap();
    assert_eq!(told(&receiver).len(), before.len(), "nothing was taken");
    receiver.set(Mode::Takes);
    until_told(&fleet, &receiver, "questions", "fired", 1);

    // The run goes on: the tool fails.
    folder.output(&["approve", "last"]).unwrap();
    until_told(&fleet, &receiver, "questions", "resolved", 1);
    let ended = asker.wait_with_output().unwrap();
    let summary: Value = serde_json::from_slice(&ended.stdout).unwrap_or_default();
    until_told(&fleet, &receiver, "tool_failures", "fired", 1);
    kill_who_looks(&fleet);

    // An agent and an orchestrator are killed again and again; neither is at work.
    for process in ["worker-1", "orchestrator-1"] {
        kill_until_told(&fleet, &receiver, process);
    }

    // A dead letter comes and goes; then one of which nobody wants to hear.
    let stranger = Stranger::connect(&fleet.url()).unwrap();
    let letters = || folder.json(&["dead", "list", "--json"]).unwrap_or_default();
    let bury = || {
        stranger.publish("cmd.0193f0c0c0c07000800000000000dead.submit", b"no command").unwrap();
        stranger.flush().unwrap();
        wait_until("it is a dead letter", LIMIT, || letters()[0]["seq"].is_u64()).unwrap();
    };
    let drop_it = || folder.output(&["dead", "drop", &letters()[0]["seq"].to_string()]).unwrap();
    bury();
    until_told(&fleet, &receiver, "dead_letters", "fired", 1);
    drop_it();
    until_told(&fleet, &receiver, "dead_letters", "resolved", 1);
    folder.output(&["alerts", "silence", "dead_letters", "1h", "--because", "we know"]).unwrap();
    bury();
    let is_silent = || folder.output(&["alerts"]).is_ok_and(|text| text.contains("1 firing, silenced"));
    wait_until("it fires and is silenced", LIMIT, is_silent).unwrap();
    assert_eq!(count(&receiver, "dead_letters", "fired"), 1);
    folder.output(&["alerts", "silence", "dead_letters", "--lift"]).unwrap();
    until_told(&fleet, &receiver, "dead_letters", "fired", 2);
    drop_it();
    until_told(&fleet, &receiver, "dead_letters", "resolved", 2);

    // What is over is told once, and nothing else was told.
    until_told(&fleet, &receiver, "tool_failures", "resolved", 1);
    until_told_of(&fleet, &receiver, "worker-1", "resolved");
    until_told_of(&fleet, &receiver, "orchestrator-1", "resolved");
    let mut told = told(&receiver);
    told.retain(|id, _| !before.contains(id));
    let mut by_kind: BTreeMap<(String, String), usize> = BTreeMap::new();
    for Said { rule, change, of } in told.into_values() {
        *by_kind.entry((rule, change)).or_default() += of.len();
    }
    let wanted = [("dead_letters", 2), ("questions", 1), ("restarts", 2), ("tool_failures", 1)];
    let both_ways = |(rule, times): (&str, usize)| {
        ["alert.fired", "alert.resolved"].map(|change| ((rule.to_owned(), change.to_owned()), times))
    };
    let wanted: BTreeMap<(String, String), usize> = wanted.into_iter().flat_map(both_ways).collect();
    assert_eq!(by_kind, wanted, "{}", folder.logs());

    // All of it was signed, went where it was to go, and says what happened.
    let requests = receiver.requests();
    assert!(requests.iter().all(|one| one.path == "/hook"), "no redirect was followed");
    assert!(requests.iter().all(|one| one.is_signed(SECRET.as_bytes())));
    assert!(requests.iter().all(|one| !one.is_signed(b"another secret of that length")));
    let fired = |rule: &str| {
        let of = |one: &&receiver::Request| {
            one.json()["data"]["rule"] == rule && one.json()["type"] == "alert.fired"
        };
        requests.iter().find(of).unwrap().json()["data"].clone()
    };
    let question = fired("questions");
    assert_eq!(question["series"][0]["run"], summary["run"], "{question}\n{summary}");
    assert!(question["series"][0]["detail"].as_str().unwrap().contains("question 1"), "{question}");
    let failures = fired("tool_failures");
    assert_eq!(failures["series"][0]["shown"], "100%", "{failures}");
    assert!(failures["series"][0]["name"].as_str().unwrap().contains("broken"), "{failures}");
    let restarts = fired("restarts");
    assert!(restarts["series"][0]["name"].as_str().unwrap().starts_with("worker-1@"), "{restarts}");
    assert_eq!(fired("dead_letters")["severity"], "critical");

    // The command was given the same.
    let pages = std::fs::read_to_string(folder.path().join("page.log")).unwrap_or_default();
    for words in ["alert.test", "alert.fired", "alert.resolved", "worker-1@", "orchestrator-1@"] {
        assert!(pages.contains(words), "{words}: {pages}");
    }
    let logs = folder.logs();
    assert!(!logs.contains(SECRET), "{logs}");
    assert!(folder.output(&["ps"]).is_ok_and(|table| !table.contains("alerts fire")));
}
