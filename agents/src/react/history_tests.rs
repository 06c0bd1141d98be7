use muster_shared::flow::{FurtherAction, Outcome};
use muster_shared::ids::{AgentId, Generation, Role, RunId, TaskId};
use muster_shared::run::{AgentKey, Started};
use muster_shared::time::Millis;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::testing::step;

fn entries(events: Vec<AgentEvent>) -> Vec<Entry> {
    let key = AgentKey {
        role: Role::Worker,
        agent: AgentId::new("worker", 1),
        task: TaskId::Plan,
        generation: Generation(1),
    };
    let entry = |(at, event): (u64, AgentEvent)| Entry {
        seq: Seq(at * 10),
        at: Millis(at),
        run: RunId::from_uuid(Uuid::nil()),
        event: RecordEvent::Agent(key.clone(), event),
    };
    (1..).zip(events).map(entry).collect()
}

fn started(attempt: u32) -> AgentEvent {
    AgentEvent::Started(Started {
        attempt: Attempt(attempt),
        ack: String::new(),
        pid: 1,
        host: String::new(),
        after_step: 0,
    })
}

fn searched(number: u32) -> Step {
    step(number, "corpus.search", json!({"query": number}), ObservationStatus::Success)
}

#[test]
fn work_goes_on_after_the_last_step_of_whoever_took_it() {
    let history = History::fold(entries(vec![
        started(1),
        AgentEvent::Step(searched(1)),
        AgentEvent::Step(searched(2)),
        started(2),
        AgentEvent::Step(searched(3)),
    ]));
    assert_eq!(history.next_step(), 4);
    assert_eq!(history.next_attempt(), Attempt(3));
    assert_eq!(history.last(), Seq(50));
    assert_eq!(history.usage().model_calls, 3);
    assert_eq!(history.usage().tool_calls, 3);
    assert_eq!(history.digests()[2].action, "corpus.search");
    assert!(!history.is_closed());
}

#[test]
fn an_outcome_closes_the_generation() {
    let outcome = AgentEvent::Outcome(Outcome::of_fault().into());
    assert!(History::fold(entries(vec![started(1), outcome])).is_closed());
    assert!(!History::fold(Vec::new()).is_closed());
}

#[test]
fn a_call_that_was_begun_is_known_until_its_step_is_there() {
    let mut writing = step(1, "workspace.write", json!({"query": "a"}), ObservationStatus::Success);
    writing.observation = None;
    let call = ToolStarted { step: writing, idempotency_key: "k".into() };
    let begun = AgentEvent::ToolStarted(call.clone());
    let history = History::fold(entries(vec![started(1), begun.clone()]));
    assert_eq!(history.begun(), Some(&call));

    let ended = step(1, "workspace.write", json!({"query": "a"}), ObservationStatus::Timeout);
    let history = History::fold(entries(vec![started(1), begun, AgentEvent::Step(ended.clone())]));
    assert!(history.begun().is_none());
    assert!(history.same_action(&ended.action).is_none(), "it may be done once more, knowingly");
}

#[test]
fn a_digest_shows_the_main_argument_cut_short() {
    let long = Action { name: "t".into(), arguments: json!({"n": 1, "query": "x".repeat(200)}) };
    assert_eq!(in_brief(&long).chars().count(), 2 + DIGEST_ARGUMENT + 1);
    let many = Action { name: "t".into(), arguments: json!({"query": "one\ntwo"}) };
    assert_eq!(in_brief(&many), "t one");
}

#[test]
fn a_digest_has_every_call_of_the_step() {
    let one = |tool: &str, status, millis| FurtherAction {
        action: Action { name: tool.into(), arguments: json!({"query": "b"}) },
        observation: Some(Observation { millis, ..Observation::new(status, "seen".into()) }),
    };
    let more = vec![
        one("corpus.read", ObservationStatus::Error, 7),
        one("calculater", ObservationStatus::Refused, 0),
        FurtherAction { observation: None, ..one("think", ObservationStatus::Success, 0) },
        one("calculator", ObservationStatus::Timeout, 9),
    ];
    let first = step(1, "corpus.search", json!({"query": "a"}), ObservationStatus::Success);
    let digest = digest(&Step { more, ..first });
    assert_eq!((digest.status, digest.millis), (Some(ObservationStatus::Success), 3));
    let call = |tool: &str, status, millis| CallDigest { tool: tool.into(), status, millis };
    let made =
        [call("corpus.read", ObservationStatus::Error, 7), call("calculator", ObservationStatus::Timeout, 9)];
    assert_eq!(digest.more, made, "what was refused was not called");
}

#[test]
fn the_first_word_of_a_digest_is_the_tool() {
    let further = FurtherAction {
        action: Action { name: "calculator".into(), arguments: json!({"query": "1"}) },
        observation: None,
    };
    for (arguments, brief) in [
        (json!({"query": "a b"}), "corpus.search a b; calculator 1"),
        (json!({"n": 1}), "corpus.search ; calculator 1"),
    ] {
        let step = step(1, "corpus.search", arguments, ObservationStatus::Error);
        let digest = digest(&Step { more: vec![further.clone()], ..step });
        assert_eq!(digest.action, brief);
        let outcome = Outcome { steps: vec![digest], ..Outcome::of_fault() };
        assert_eq!(outcome.failed_tool(), Some("corpus.search"));
    }
}
