use uuid::Uuid;

use super::super::event::{AgentKey, RunCreated, Unreadable};
use super::*;
use crate::flow::{Action, Goal, Outcome, RunLimits, Step, StepDigest, Thought};
use crate::ids::{AgentId, Role, RunId};
use crate::run::EVENT_VERSION;
use crate::time::Millis;

const RUN: RunId = RunId::from_uuid(Uuid::from_u128(7));

fn entry(seq: u64, event: RecordEvent) -> Entry {
    Entry { seq: Seq(seq), at: Millis(seq), run: RUN, event }
}

fn decided(seq: u64, basis: u64, after: u64, named: &[u64]) -> Entry {
    let inputs: Vec<Input> = named.iter().map(|seq| Input::Agent { seq: Seq(*seq) }).collect();
    let decided = serde_json::json!({
        "batch": Uuid::from_u128(u128::from(seq)), "by": AgentId::new("orchestrator", 1), "inputs": inputs,
        "now": seq, "basis": basis, "after": after, "offers": 0, "events": [],
    });
    entry(seq, RecordEvent::Decided(serde_json::from_value(decided).unwrap()))
}

fn created(seq: u64) -> Entry {
    let mut first = decided(seq, 0, 0, &[]);
    if let RecordEvent::Decided(decided) = &mut first.event {
        decided.events.push(RunEvent::RunCreated(RunCreated {
            goal: Box::new(Goal::new("Why?")),
            limits: RunLimits::default(),
            event_version: EVENT_VERSION,
            secret: "ab".repeat(32),
            deadline: Millis(1_000),
        }));
    }
    first
}

fn of_agent(seq: u64, event: AgentEvent) -> Entry {
    let (role, agent) = (Role::Worker, AgentId::new("worker", 1));
    let key = AgentKey { role, agent, task: "1".parse().unwrap(), generation: Generation(1) };
    entry(seq, RecordEvent::Agent(key, event))
}

fn step(seq: u64, number: u32) -> Entry {
    let step = Step {
        number,
        thought: Thought::default(),
        action: Action { name: "think".into(), arguments: serde_json::Value::Null },
        observation: None,
        calls: Vec::new(),
        millis: 0,
        outside_millis: 0,
        more: Vec::new(),
        notes: Vec::new(),
        heard: Vec::new(),
    };
    of_agent(seq, AgentEvent::Step(step))
}

/// The end of a task that took these steps, the last of which it brings itself.
fn outcome(seq: u64, numbers: &[u32]) -> Entry {
    let digest = |number: &u32| StepDigest {
        number: *number,
        action: "think".into(),
        status: None,
        millis: 0,
        more: Vec::new(),
    };
    let steps: Vec<StepDigest> = numbers.iter().map(digest).collect();
    let last = step(seq, numbers.last().copied().unwrap_or(1));
    let RecordEvent::Agent(_, AgentEvent::Step(last)) = last.event else { panic!("it is a step") };
    of_agent(
        seq,
        AgentEvent::Outcome(Outcome { steps, last_step: Some(Box::new(last)), ..Outcome::of_fault() }.into()),
    )
}

fn unreadable(seq: u64, kind: EventKind) -> Entry {
    of_agent(seq, AgentEvent::Unreadable(Unreadable { kind, why: "nonsense".into() }))
}

/// A whole record: a decision upon a start, and one upon an end, each after the one before.
fn whole() -> Vec<Entry> {
    vec![
        created(10),
        decided(11, 10, 10, &[]),
        unreadable(13, EventKind::Started),
        decided(14, 13, 11, &[13]),
        step(15, 1),
        step(17, 2),
        step(18, 3),
        outcome(20, &[1, 2, 3, 4]),
        decided(21, 20, 14, &[20]),
        decided(22, 21, 21, &[]),
    ]
}

fn without(seq: u64) -> Vec<String> {
    let left: Vec<Entry> = whole().into_iter().filter(|entry| entry.seq != Seq(seq)).collect();
    gaps(&left).iter().map(Gap::to_string).collect()
}

#[test]
fn nothing_is_missing_from_a_whole_record() {
    assert_eq!(gaps(&whole()), []);
    assert_eq!(gaps(&[]), []);
    let mut early = whole();
    early.insert(0, unreadable(3, EventKind::Outcome));
    assert_eq!(gaps(&early), [], "what somebody wrote before the run was created is about nothing");
}

#[test]
fn whatever_is_lost_between_others_is_named() {
    for (lost, said) in [
        (10, "beginning is missing"),
        (11, "entry 11 is missing, which entry 14 names"),
        (13, "entry 13 is missing, which entry 14 names"),
        (14, "entry 14 is missing, which entry 21 names"),
        (15, "step 1 of task 1 (generation 1) is missing"),
        (17, "step 2 of task 1 (generation 1) is missing"),
        (20, "entry 20 is missing, which entry 21 names"),
        (21, "entry 21 is missing, which entry 22 names"),
    ] {
        let found = without(lost);
        assert!(found.iter().any(|gap| gap.contains(said)), "{lost}: {found:?}");
    }
}

#[test]
fn offers_that_were_announced_and_are_not_there_are_missing() {
    let mut announced = created(1);
    if let RecordEvent::Decided(decided) = &mut announced.event {
        decided.offers = 2;
    }
    assert_eq!(gaps(&[announced]), [Gap::Offers { decision: Seq(1), missing: 2 }]);
}

#[test]
fn a_step_that_stands_there_and_cannot_be_read_is_not_missing() {
    let entries = [created(1), step(2, 1), unreadable(3, EventKind::Step), step(4, 3)];
    assert_eq!(gaps(&entries), []);
    let entries = [created(1), step(2, 4), step(4, 5)];
    assert_eq!(gaps(&entries), [], "a generation may go on from another");
}
