use muster_shared::flow::{Observation, ObservationStatus};
use muster_shared::ids::Role;
use muster_shared::time::Millis;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::prompts::Templates;
use crate::react::declaration::{Declaration, DeclareAs};
use crate::react::history::History;
use crate::react::limits::StepLimits;
use crate::react::prompt::{CallStyle, Conversation, Sampling};
use crate::react::record::{declared, keep_whole};
use crate::roles::rules_for;
use crate::testing::{leaf, step, toolset};

/// What a task of some steps leaves in the record, asked `asks` times in each, and the requests as they were sent.
fn recorded(style: CallStyle, how: DeclareAs, asks: &[usize]) -> (Vec<Entry>, Vec<Vec<StoredMessage>>) {
    let offer = leaf(Role::Worker);
    let brief = Templates::load(None).unwrap().brief(rules_for(&offer.work), &offer).unwrap().0;
    let limits = StepLimits { max_steps: 10, ..StepLimits::USUAL };
    let (task, generation) = (offer.task.clone(), offer.generation);
    let key = AgentKey { role: Role::Worker, agent: AgentId::new("worker", 1), task, generation };
    let mut entries = vec![Entry {
        seq: Seq(1),
        at: Millis(1),
        run: offer.run,
        event: RecordEvent::Offered(offer.clone()),
    }];
    let (mut history, mut sent) = (History::default(), Vec::new());
    let toolset = toolset(&offer);
    for (number, asks) in (1_u32..).zip(asks) {
        // Every step by another process: the record is all that is handed on.
        let settings = (style, Sampling::default(), limits);
        let mut conversation = Conversation::resume(&brief, &toolset, &history, settings, &offer.nonce);
        let mut done = step(number, "calculator", json!({"query": number}), ObservationStatus::Success);
        let mut template = done.calls.remove(0);
        template.template.name = "worker".into();
        for ask in 0..=*asks {
            if ask > 0 {
                conversation.ask_again("nonsense", "answer again");
            }
            let mut parameters = json!({"max_steps": 10, "max_asks": 3});
            let (request_hash, same_messages, messages) = conversation.keep(&mut parameters, how);
            done.calls.push(ModelCall {
                request_hash,
                same_messages,
                messages,
                parameters,
                ..template.clone()
            });
            sent.push(conversation.stored());
        }
        let event = RecordEvent::Agent(key.clone(), AgentEvent::Step(done));
        let entry = Entry { seq: Seq(u64::from(number) + 1), at: Millis(1), run: offer.run, event };
        history = history.and_then(vec![entry.clone()]);
        entries.push(entry);
    }
    (entries, sent)
}

/// The declarations of these tasks, as the store holds them.
fn stored_declarations() -> Declarations {
    let toolset = toolset(&leaf(Role::Worker));
    [Declaration::new(&declared(toolset.declarations()))].into_iter().collect()
}

proptest! {
    #[test]
    fn the_record_gives_back_what_was_sent_and_vouches_for_it(
        asks in prop::collection::vec(0_usize..3, 1..6),
        native in any::<bool>(),
        by_name in any::<bool>(),
    ) {
        let style = if native { CallStyle::Native } else { CallStyle::Text };
        let how = if by_name { DeclareAs::Name } else { DeclareAs::Whole };
        let (entries, sent) = recorded(style, how, &asks);
        let task = leaf(Role::Worker).task;
        let found = requests(&entries, &task, &stored_declarations());
        prop_assert_eq!(found.len(), sent.len());
        for (found, sent) in found.iter().zip(&sent) {
            prop_assert_eq!(&found.messages, sent);
            prop_assert_eq!(found.check, Check::Matches);
            prop_assert_eq!(found.tools.is_empty(), !native);
            prop_assert_eq!(found.tools_object.is_some(), native && by_name);
            prop_assert!(found.parameters["tools"].as_array().is_some_and(|names| names.len() == 4));
        }
        // The stable part comes first: whatever was sent for a step begins with what was sent for the step before.
        let firsts: Vec<&SentRequest> = found.iter().filter(|sent| sent.call == 1).collect();
        for pair in firsts.windows(2) {
            prop_assert!(pair[1].messages.starts_with(&pair[0].messages));
            prop_assert_eq!(&pair[1].tools, &pair[0].tools);
        }
    }
}

#[test]
fn what_was_changed_after_it_was_recorded_is_noticed() {
    let (mut entries, _) = recorded(CallStyle::Native, DeclareAs::Whole, &[0, 0]);
    let none = Declarations::default();
    let RecordEvent::Agent(_, AgentEvent::Step(step)) = &mut entries[1].event else { panic!() };
    step.calls[0].messages[1].content.push('!');
    let task = leaf(Role::Worker).task;
    let checks: Vec<Check> = requests(&entries, &task, &none).iter().map(|sent| sent.check).collect();
    assert_eq!(checks, [Check::Differs, Check::Differs], "the second holds the first");
    let RecordEvent::Agent(_, AgentEvent::Step(step)) = &mut entries[1].event else { panic!() };
    step.calls[0].parameters = json!({});
    assert_eq!(requests(&entries, &task, &none)[0].check, Check::Differs);
}

#[test]
fn a_request_is_chosen_by_step_and_call() {
    let (mut entries, _) = recorded(CallStyle::Native, DeclareAs::Name, &[0, 1, 0]);
    let task = leaf(Role::Worker).task;
    // A question apart from the conversation changes nothing of it.
    let RecordEvent::Agent(_, AgentEvent::Step(last)) = &mut entries[3].event else { panic!() };
    let mut parameters = json!({});
    let request = crate::model::chat::ChatRequest { system: "judge".into(), ..Default::default() };
    let (request_hash, messages) = keep_whole(&request, &mut parameters);
    let aside = ModelCall {
        request_hash,
        messages,
        parameters,
        aside: true,
        same_messages: 0,
        ..last.calls[0].clone()
    };
    last.calls.push(aside);
    last.observation = None::<Observation>;
    let found = requests(&entries, &task, &stored_declarations());
    let at = |step, call| {
        choose(&found, None, step, call).map(|at| (found[at].step, found[at].call, found[at].aside))
    };
    assert_eq!(at(None, None), Some((3, 1, false)));
    assert_eq!(at(Some(2), None), Some((2, 2, false)));
    assert_eq!(at(Some(2), Some(1)), Some((2, 1, false)));
    assert_eq!(at(Some(3), Some(2)), Some((3, 2, true)));
    assert_eq!(at(Some(4), None), None);
    assert!(found.iter().all(|sent| sent.check == Check::Matches), "{found:?}");
    assert_eq!(before(&found, 3).map(|sent| (sent.step, sent.call)), Some((2, 2)));
    assert_eq!(before(&found, 0), None);
}

#[test]
fn tools_that_are_not_in_the_store_are_said_to_be_missing() {
    let (entries, sent) = recorded(CallStyle::Native, DeclareAs::Name, &[0, 0]);
    let task = leaf(Role::Worker).task;
    let found = requests(&entries, &task, &Declarations::default());
    for (found, sent) in found.iter().zip(&sent) {
        assert_eq!((found.check, &found.messages), (Check::ToolsMissing, sent));
        assert!(found.tools.is_empty());
        assert_eq!(
            found.tools_object,
            Some(
                Declaration::new(&declared(toolset(&leaf(Role::Worker)).declarations()))
                    .by_name()
                    .as_str()
                    .unwrap()
                    .to_owned()
            )
        );
    }
}
