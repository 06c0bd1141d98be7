#![allow(clippy::unwrap_used)]
use muster_shared::flow::{ObservationStatus, TaskOffered, Work};
use muster_shared::ids::{AgentId, Generation};
use muster_shared::run::{AgentKey, Released, ToolStarted};
use muster_shared::time::Millis;
use serde_json::json;

use super::*;
use crate::react::declaration::DeclareAs;
use crate::react::history::History;
use crate::testing::{leaf, step};

fn entry(number: u64, offer: &TaskOffered, event: Option<AgentEvent>) -> Entry {
    let Work::Execute { task, .. } = &offer.work else { unreachable!() };
    let (role, agent) = (task.role.clone(), AgentId::new("one", 1));
    let key = AgentKey { role, agent, task: offer.task.clone(), generation: offer.generation };
    let event = match event {
        Some(event) => RecordEvent::Agent(key, event),
        None => RecordEvent::Offered(offer.clone()),
    };
    Entry { seq: Seq(number), at: Millis(1), run: offer.run, event }
}

/// The first step of a task, as it is sent under these rules.
fn first_step(offer: &TaskOffered, rules: &RoleRules) -> Step {
    let (brief, template) = Templates::load(None).unwrap().brief(rules, offer).unwrap();
    let mut sent = step(1, "calculator", json!({"query": 1}), ObservationStatus::Success);
    let history_of_task = TaskHistory { offer, history: History::default() };
    let mut call =
        ModelCall { template, parameters: json!({"tools": ["calculator"]}), ..sent.calls.remove(0) };
    let toolset = history_of_task.toolset(&call, rules);
    let limits = limits_of(&call).of_task(offer, rules, true);
    let settings = (CallStyle::Native, Sampling::default(), limits);
    let mut conversation =
        Conversation::resume(&brief, &toolset, &history_of_task.history, settings, &offer.nonce);
    let (request_hash, same_messages, messages) = conversation.keep(&mut call.parameters, DeclareAs::Name);
    sent.calls.push(ModelCall { request_hash, same_messages, messages, ..call });
    sent
}

#[test]
fn a_step_that_waited_is_held_against_the_offer_that_it_was_sent_under() {
    let offer = leaf(Role::Worker);
    let mut later =
        TaskOffered { generation: Generation(2), continues: Some(Generation(1)), ..offer.clone() };
    let Work::Execute { progress, .. } = &mut later.work else { unreachable!() };
    progress.push_str("\n[-] 2 What was delegated");
    let sent = first_step(&offer, roles::rules_for(&offer.work));
    let begun = ToolStarted { step: sent.clone(), idempotency_key: String::new() };
    let entries = [
        entry(1, &offer, None),
        entry(2, &offer, Some(AgentEvent::ToolStarted(begun))),
        entry(3, &offer, Some(AgentEvent::Released(Released { parked: true, ..Released::default() }))),
        entry(4, &later, None),
        entry(5, &later, Some(AgentEvent::Step(sent))),
    ];
    let again = rerender(&entries, &Templates::load(None).unwrap(), &[]);
    assert_eq!((again.prompts, again.same, again.differences), (1, 1, Vec::new()));
}

#[test]
fn a_specialist_is_rendered_by_its_definition_or_not_at_all() {
    let defined = |words: &str| {
        let text = format!("---\nrole: counter\ndescription: counts\n---\n{words}\n");
        Arc::new(Definition::parse(&text).unwrap())
    };
    let (as_sent, changed) = (defined("Count twice."), defined("Count once."));
    let other = Definition { role: "other".parse().unwrap(), ..(*as_sent).clone() };
    let offer = leaf("counter".parse().unwrap());
    let sent = first_step(&offer, &rules_of(Arc::clone(&as_sent)));
    let entries = [entry(1, &offer, None), entry(2, &offer, Some(AgentEvent::Step(sent)))];
    let templates = Templates::load(None).unwrap();

    let same = rerender(&entries, &templates, &[Arc::clone(&changed), as_sent]);
    assert_eq!((same.prompts, same.same, same.not_rendered), (1, 1, BTreeMap::new()));
    let differs = rerender(&entries, &templates, &[changed]);
    assert_eq!((differs.prompts, differs.same), (1, 0));
    assert_eq!(
        (differs.differences[0].sent.as_str(), differs.differences[0].came.as_str()),
        ("Count twice.", "Count once.")
    );
    let unknown = rerender(&entries, &templates, &[Arc::new(other)]);
    assert_eq!((unknown.prompts, unknown.same, unknown.differences.len()), (0, 0, 0));
    assert_eq!(unknown.not_rendered, BTreeMap::from([("counter".to_owned(), 1)]));
}
