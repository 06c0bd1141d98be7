//! The shared context of a run: values that tasks and people write, read, and are told of.

use muster_support::model_server::{CapturedRequest, ModelServer};
use serde_json::{Value, json};

use super::help::{act, ask, done, ended, script_of, steps, up};
use super::support::folder;

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
