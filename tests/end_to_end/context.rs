//! The shared context of a run: values that tasks and people write, read, and are told of.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use muster_support::fleet::{both, wait_until};
use muster_support::model_server::{CapturedRequest, ModelServer};
use serde_json::{Value, json};

use super::help::{act, ask, done, ended, script_of, steps, up};
use super::support::{folder, of_kind};

fn brief(request: &CapturedRequest) -> &str {
    request.messages.get(1).map_or("", |message| message.text.as_str())
}

fn task(name: &str, goal: &str, on: &[&str]) -> Value {
    json!({"name": name, "goal": goal, "role": "worker", "depends_on": on})
}

#[test]
fn a_value_is_written_resolved_and_read_and_a_stale_write_is_refused() {
    let tasks = vec![
        task("agree", "Agree on limit.", &[]),
        task("look", "Look within {{context.limit}} hops.", &["1"]),
    ];
    let server = ModelServer::start(script_of(tasks, |request| {
        let write = |value: u32| act("write_context", json!({"key": "limit", "value": value, "version": 0}));
        match (brief(request).contains("Agree on limit."), request.turns()) {
            (true, 0) => write(20),
            (true, 1) => write(30),
            (true, _) => done("It is twenty."),
            (false, 0) if brief(request).contains("Look within 20 hops.") => {
                act("read_context", json!({"key": "limit"}))
            }
            (false, _) => done("Looked."),
        }
    }))
    .unwrap();
    let fleet = up(&server, folder(), &[]);
    let folder = fleet.folder();
    let trace = ended(folder, ask(folder));

    let wrote = steps(&trace, "1");
    assert_eq!(wrote.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["write_context"; 2], "{wrote:?}");
    assert!(wrote[0].1.contains("limit is written, as version 1. It is told to: 2."), "{wrote:?}");
    let stale = "The context write is refused: limit has version 1 now, not 0: 20 (written by task 1";
    assert!(wrote[1].1.contains(stale), "{wrote:?}");
    let read = steps(&trace, "2");
    assert!(read[0].0 == "read_context" && read[0].1.contains("limit (version 1, by task 1 ("), "{read:?}");
    assert!(read[0].1.ends_with("): 20"), "{read:?}");
    let traced = folder.output(&["trace", "last"]).unwrap();
    assert!(traced.contains(") writes context.limit (version 1): 20"), "{traced}");
    let kept = folder.json(&["context", "last", "limit", "--json"]).unwrap();
    assert_eq!(
        (&kept["context"]["limit"]["value"], &kept["context"]["limit"]["version"]),
        (&json!(20), &json!(1))
    );
}

#[test]
fn what_a_person_writes_is_heard_by_the_task_at_work_that_names_it() {
    let tasks = vec![
        task("paint", "Paint the door {{context.colour}}.", &[]),
        task("wait", "Count until somebody says stop.", &[]),
    ];
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let server = ModelServer::start(script_of(tasks, move |request| {
        let paints = brief(request).contains("Paint the door (context.colour is not there yet");
        if (paints && request.holds("(a person): context.colour is now (version 2): blue"))
            || (!paints && stopped.load(Ordering::SeqCst))
        {
            return done("It is painted.");
        }
        let expression = format!("{} + 1", request.turns());
        act("calculator", json!({"expression": expression})).with_delay(Duration::from_millis(120))
    }))
    .unwrap();
    let fleet = up(&server, folder(), &["--scale", "worker=2"]);
    let folder = fleet.folder();
    let asker = ask(folder);
    let both_step = || {
        let trace = folder.json_lines(&["trace", "last", "--json"]).unwrap_or_default();
        ["1", "2"].iter().all(|task| !steps(&trace, task).is_empty())
    };
    wait_until("both are at work", Duration::from_secs(30), both_step).unwrap();
    let write = |value: &str, seen: &str| {
        let output = folder.run(&["context", "last", "--write", value, "--seen", seen]).unwrap();
        (output.status.code(), both(&output))
    };
    let (code, said) = write("colour=red", "0");
    assert!(
        code == Some(0) && said.contains("context.colour has version 1") && said.contains("told to 1"),
        "{said}"
    );
    let (code, said) = write("colour=green", "0");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("colour has version 1 now, not 0: red"), "{said}");
    let (code, said) = write("colour=blue", "1");
    assert!(code == Some(0) && said.contains("context.colour has version 2"), "{said}");
    stop.store(true, Ordering::SeqCst);
    let trace = ended(folder, asker);

    let heard = |task: &str| {
        let entries = of_kind(&trace, "outcome").chain(of_kind(&trace, "step"));
        let entries = entries.filter(|entry| entry["task"] == task).map(|entry| &entry["event"]);
        let steps = entries.map(|event| event.get("last_step").unwrap_or(event));
        let heard = steps.filter_map(|step| step["heard"].as_array()).flatten();
        heard.filter_map(|one| one["text"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert!(
        heard("1").iter().any(|text| text == "context.colour is now (version 2): blue"),
        "{:?}",
        heard("1")
    );
    assert!(heard("2").is_empty(), "it does not concern it: {:?}", heard("2"));
    let listed = folder.output(&["context", "last"]).unwrap();
    assert!(listed.contains("colour") && listed.contains("blue"), "{listed}");
    let missing = folder.run(&["context", "last", "smell"]).unwrap();
    assert_eq!(missing.status.code(), Some(2), "{}", both(&missing));
}
