//! Tasks that ask their peers and tell each other things: help, who can do something, what others gave, and a word to a
//! task that is being worked on. All of it is seen in the tap and comes out the same when the run is replayed.

use std::fs::File;
use std::process::{Child, Stdio};
use std::time::Duration;

use muster_support::fleet::{Fleet, Folder, both, wait_until};
use muster_support::model_server::{CapturedRequest, Fault, ModelServer, Reply, Script};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::support::{folder, of_kind, signal};

const LIMIT: Duration = Duration::from_secs(30);

const WATCHER: &str = "\
---
role: loop_watcher
description: Knows what limits loops.
capabilities: [delegation loops]
limits: {slots: 1}
---
Be most exact about hops.
";

pub(super) fn submit(arguments: &Value) -> Reply {
    Reply::call("submit", arguments)
}

pub(super) fn done(conclusion: &str) -> Reply {
    submit(
        &json!({"thought": "That is it.", "ending": "done", "reason": "so it is", "conclusion": conclusion}),
    )
}

pub(super) fn act(name: &str, mut arguments: Value) -> Reply {
    arguments["thought"] = json!(format!("I use {name}."));
    Reply::call(name, &arguments)
}

/// A model that plans these tasks for workers; `others` answers for whoever does them.
fn script(
    tasks: &[(&str, &str)],
    others: impl Fn(&CapturedRequest) -> Reply + Send + Sync + 'static,
) -> Script {
    let task = |(name, goal): &(&str, &str)| json!({"name": name, "goal": goal, "role": "worker"});
    script_of(tasks.iter().map(task).collect(), others)
}

/// The same with tasks as a planner writes them.
pub(super) fn script_of(
    tasks: Vec<Value>,
    others: impl Fn(&CapturedRequest) -> Reply + Send + Sync + 'static,
) -> Script {
    Script::answering(move |request| {
        plan_and_report(request, &tasks, "# Loops\n\nFive.").unwrap_or_else(|| others(request))
    })
}

/// Answer to the planner (these tasks), the reflector, the refiner, or the writer (a report with this body, whose first line is
/// the title). None for other roles.
pub(super) fn plan_and_report(request: &CapturedRequest, tasks: &[Value], body: &str) -> Option<Reply> {
    let system = request.system();
    let answer = if system.contains("You are the planner") {
        json!({"thought": "So.", "goal": "Look at it.", "tasks": tasks})
    } else if system.contains("You are the reflector") {
        json!({"thought": "Seen.", "summary": "Seen."})
    } else if system.contains("You are the refiner") {
        json!({"thought": "Fine.", "operations": []})
    } else if system.contains("You are the writer") {
        let title = body.lines().next().unwrap_or_default().trim_start_matches("# ");
        json!({"thought": "So.", "title": title, "body": body, "unanswered": []})
    } else {
        return None;
    };
    Some(submit(&answer))
}

pub(super) fn up(server: &ModelServer, folder: Folder, more: &[&str]) -> Fleet {
    let folder = folder.with("OPENAI_API_KEY", "test-key").with("OPENAI_BASE_URL", server.openai_url());
    let settings = ["agent.model=openai/scripted", "limits.max_steps=80"];
    let usual = settings.map(|setting| ["--set", setting]).concat();
    folder.up(&[more, &usual[..]].concat()).unwrap()
}

pub(super) fn ask(folder: &Folder) -> Child {
    let run = ["run", "What limits loops?", "--planning", "always", "--json", "--deadline", "60s"];
    folder.command(&run).stdout(Stdio::piped()).spawn().unwrap()
}

/// The trace of the run, which must have ended well and be decided alike when it is replayed.
pub(super) fn ended(folder: &Folder, asker: Child) -> Vec<Value> {
    let output = asker.wait_with_output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    let told = || format!("{}\n{}", folder.output(&["trace", "last"]).unwrap_or_default(), folder.logs());
    assert_eq!(summary["status"], "completed", "{summary}\n{}", told());
    let replayed = folder.run(&["replay", "last"]).unwrap();
    assert!(replayed.status.success(), "{}", both(&replayed));
    folder.json_lines(&["trace", "last", "--json"]).unwrap()
}

/// What each step of a task did, and what it observed.
pub(super) fn steps<'a>(trace: &'a [Value], task: &'a str) -> Vec<(&'a str, &'a str)> {
    let of_task = of_kind(trace, "step").filter(move |entry| entry["task"] == task);
    let text = |value: &'a Value| value.as_str().unwrap_or_default();
    of_task
        .map(|entry| {
            (text(&entry["event"]["action"]["name"]), text(&entry["event"]["observation"]["content"]))
        })
        .collect()
}

fn outcomes(trace: &[Value], task: &str) -> usize {
    of_kind(trace, "outcome").filter(|entry| entry["task"] == task).count()
}

#[test]
fn peers_are_asked_and_told_and_the_tap_shows_it() {
    let server = ModelServer::start(script(
        &[("ask around", "Find out who knows."), ("count on", "Count until you are told.")],
        |request| {
            let brief = request.messages.get(1).map_or("", |message| message.text.as_str());
            if request.system().contains("Be most exact about hops") {
                return match request.turns() {
                    // Back to where the question came from.
                    0 => act("ask_peer", json!({"role": "worker", "question": "Which loops?"})),
                    _ => done("It is five hops."),
                };
            }
            if brief.contains("Count until you are told.") {
                return match request.holds("SHARED: five it is") {
                    true => done("I was told."),
                    false => act("calculator", json!({"expression": format!("{} + 1", request.turns())}))
                        .with_delay(Duration::from_millis(120)),
                };
            }
            match request.turns() {
                0 => act("who_can", json!({"needs": ["delegation loops"]})),
                1 => act("ask_peer", json!({"capability": "delegation loops", "question": "How many hops?"})),
                2 => act("share_info", json!({"text": "SHARED: five it is", "tasks": ["count on"]})),
                3 => act("request_context", json!({"tasks": ["3"]})),
                _ => done("Five, says the watcher."),
            }
        },
    ))
    .unwrap();
    let folder = folder();
    folder.write("agents/watcher.agent.md", WATCHER).unwrap();
    let fleet = up(&server, folder, &[]);
    let folder = fleet.folder();
    let joined = || folder.output(&["ps"]).is_ok_and(|table| table.contains("loop_watcher"));
    wait_until("the specialist has joined", LIMIT, joined).unwrap();
    let seen = folder.path().join("tap.txt");
    let mut tap = folder.command(&["tap"]).stdout(File::create(&seen).unwrap()).spawn().unwrap();
    let tapped = || std::fs::read_to_string(&seen).unwrap_or_default();
    wait_until("the tap sees a heartbeat", LIMIT, || tapped().contains("heartbeat")).unwrap();
    let trace = ended(folder, ask(folder));
    tap.kill().unwrap();
    tap.wait().unwrap();

    let asked = steps(&trace, "1");
    let names: Vec<&str> = asked.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["who_can", "ask_peer", "share_info", "request_context"], "{asked:?}");
    let observed = |at: usize| asked[at].1;
    assert!(observed(0).contains("loop_watcher (can delegation loops): Knows what limits"), "{asked:?}");
    assert!(observed(1).contains("It is five hops."), "{asked:?}");
    assert!(observed(2).contains("It is told to: 2"), "{asked:?}");
    assert!(observed(3).contains("gives: It is five hops."), "{asked:?}");
    let helped = steps(&trace, "3");
    assert!(helped[0].1.contains("it would come back to where it was"), "{helped:?}");
    assert_eq!((outcomes(&trace, "1"), outcomes(&trace, "3")), (1, 1));

    // It is heard once, kept with its step, and fenced as data in what the model is sent.
    let heard =
        of_kind(&trace, "outcome").chain(of_kind(&trace, "step")).filter(|entry| entry["task"] == "2");
    let heard: Vec<Value> = heard
        .map(|entry| entry["event"].get("last_step").unwrap_or(&entry["event"])["heard"].clone())
        .filter(|heard| !heard.is_null())
        .collect();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!((&heard[0][0]["from"], &heard[0][0]["number"]), (&json!("1"), &json!(1)));
    let log = server.log();
    let sent = log.iter().find(|entry| entry.request.holds("SHARED") && entry.request.holds("Count until"));
    assert!(sent.unwrap().request.holds("shared information\nTask 1 (ask around): SHARED: five it is\n"));

    let tapped = tapped();
    for line in [
        "capability query: who can do delegation loops?",
        "capability found to 1: ",
        "help request: who can do delegation loops is asked: How many hops?",
        "help given to 1: ",
        "information share: to count on: SHARED: five it is",
        "information_shared from 1: SHARED",
        "information for 2: from 1: SHARED",
        "context request: 3",
        "context given to 1: ",
    ] {
        assert!(tapped.contains(line), "{line} is not in the tap:\n{tapped}");
    }
    let traced = folder.output(&["trace", "last"]).unwrap();
    assert!(traced.contains("1 shares information 1 with 2: SHARED"), "{traced}");
    assert!(traced.contains("heard       from 1 (ask around): SHARED"), "{traced}");
}

#[test]
fn help_is_given_once_though_whoever_was_asked_is_killed() {
    let stuck = std::sync::atomic::AtomicUsize::new(0);
    let server = ModelServer::start(script(&[("ask", "Ask a researcher.")], move |request| {
        let brief = request.messages.get(1).map_or("", |message| message.text.as_str());
        match (brief.contains("Ask a researcher."), request.turns()) {
            (true, 0) => act("ask_peer", json!({"role": "researcher", "question": "How many hops?"})),
            (true, _) => done("Five."),
            (false, 0) => act("calculator", json!({"expression": "4 + 1"})),
            (false, _) if stuck.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 => {
                Reply::fault(Fault::Hang)
            }
            (false, _) => done("Five hops, I counted."),
        }
    }))
    .unwrap();
    let fleet = up(&server, folder(), &["--scale", "researcher=2"]);
    let folder = fleet.folder();
    let asker = ask(folder);
    let trace = || folder.json_lines(&["trace", "last", "--json"]).unwrap_or_default();
    let at_work = || {
        let trace = trace();
        let stepped = of_kind(&trace, "step").any(|entry| entry["task"] == "2");
        let mut started = of_kind(&trace, "started").filter(|entry| entry["task"] == "2");
        let pid = started.next().and_then(|entry| entry["event"]["pid"].as_u64());
        pid.filter(|_| stepped).and_then(|pid| u32::try_from(pid).ok())
    };
    wait_until("the helper is at work", LIMIT, || at_work().is_some()).unwrap();
    signal(at_work().unwrap(), Signal::SIGKILL);
    let trace = ended(folder, asker);

    let asked = steps(&trace, "1");
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].1.contains("Five hops, I counted."), "{asked:?}");
    assert_eq!((outcomes(&trace, "1"), outcomes(&trace, "2")), (1, 1), "answered once");
    assert_eq!(of_kind(&trace, "started").filter(|entry| entry["task"] == "2").count(), 2);
    assert_eq!(steps(&trace, "2").len(), 1, "what was done before the death is not done again");
}
