use muster_shared::flow::TemplateRef;
use muster_shared::ids::Role;
use serde_json::json;

use super::*;
use crate::react::limits::StepLimits;
use crate::react::testing::{chosen, in_case};
use crate::testing::{NONCE, leaf, step};

fn with_case<T>(has_model: bool, then: impl FnOnce(&StepContext<'_>) -> T) -> T {
    in_case(&leaf(Role::Worker), has_model, StepLimits::USUAL, then)
}

fn in_vain(thoughts: [&str; 2]) -> History {
    let mut history = History::default();
    for (number, thought) in (1..).zip(thoughts) {
        let mut step = step(number, "corpus.search", json!({"query": number}), ObservationStatus::Error);
        step.thought.text = thought.into();
        history.push(step, false);
    }
    history
}

#[test]
fn the_model_is_asked_about_its_reasoning_only_on_suspicion() {
    let same = "I should search the documents for the limit of depth";
    let now = chosen("I should search the documents for the depth limit", "calculator", json!({}));
    with_case(true, |case| {
        assert!(reasons_alike(&in_vain([same, same]), &now, case));
        assert!(!reasons_alike(&in_vain([same, "Now something quite different"]), &now, case));
        assert!(!reasons_alike(&History::default(), &now, case), "two steps in vain at least");
        let mut learnt = in_vain([same, same]);
        learnt.push(step(3, "calculator", json!({"query": 1}), ObservationStatus::Success), false);
        assert!(!reasons_alike(&learnt, &now, case), "something new was learnt");
        let settled = ChosenAction { notes: vec![Note::Reconsidered], ..now.clone() };
        assert!(!reasons_alike(&in_vain([same, same]), &settled, case), "it was asked");
    });
    with_case(false, |case| {
        assert!(!reasons_alike(&in_vain([same, same]), &now, case), "nobody can be asked")
    });
}

#[test]
fn the_verdict_on_the_reasoning_decides() {
    let now = || chosen("again", "calculator", json!({"query": "1"}));
    let history = in_vain(["again", "again"]);
    with_case(true, |case| {
        let spins = consulted(
            &history,
            now(),
            ConsultQuestion::Reasoning,
            Ok(json!({"same": true, "why": "w"})),
            case,
        );
        let NextStep::Refuse { chosen, .. } = spins else { panic!("{spins:?}") };
        assert_eq!(chosen.notes, [Note::Spin { level: SpinLevel::SameReasoning, times: 1 }]);
        for said in [Ok(json!({"same": false, "why": ""})), Err("nothing".to_owned())] {
            let goes_on = consulted(&history, now(), ConsultQuestion::Reasoning, said, case);
            let NextStep::CallTool { chosen, pure: true } = goes_on else { panic!("{goes_on:?}") };
            assert_eq!(chosen.notes, [Note::Reconsidered]);
        }
    });
}

#[test]
fn what_is_asked_stands_in_fences_with_the_form_of_the_answer() {
    let mut history = in_vain(["a", "b"]);
    history.push(step(3, "calculator", json!({"query": "1"}), ObservationStatus::Success), false);
    let submit = chosen("t", "submit", json!({"conclusion": "20 levels"}));
    with_case(true, |case| {
        for question in [ConsultQuestion::Reasoning, ConsultQuestion::Verify(Verify::Whole)] {
            let asked = ask(question, &history, Some(&submit), case);
            assert!(asked.text.contains(&format!("<<<{NONCE} step 3")), "{}", asked.text);
            assert!(asked.system.contains(NONCE) && asked.system.contains(&asked.schema.to_string()));
        }
        let act = chosen("t", "analyze", json!({"material": "thin ice"}));
        let asked = ask(ConsultQuestion::Act, &history, Some(&act), case);
        assert!(asked.text.contains("thin ice"), "{}", asked.text);
    });
}

#[test]
fn an_answer_in_hand_is_not_asked_for_again() {
    let asked = ConsultRequest {
        purpose: "aside goal",
        system: String::new(),
        text: String::new(),
        schema: json!({"type": "object", "properties": {"reached": {"type": "boolean"}}, "required": ["reached"]}),
    };
    let call = |name: &str, answer: &str| {
        let call = step(1, "x", Value::Null, ObservationStatus::Success).calls.remove(0);
        let template = TemplateRef { name: name.into(), ..TemplateRef::default() };
        ModelCall { aside: true, template, answer: answer.into(), ..call }
    };
    let bad = || call("aside goal", "well");
    assert_eq!(said_before(&[], &asked), None);
    assert_eq!(said_before(&[call("aside verify", "{\"reached\": true}")], &asked), None);
    assert_eq!(said_before(&[bad()], &asked), None, "it may be asked once more");
    let good = call("aside goal", "So: {\"reached\": true}");
    assert_eq!(said_before(&[bad(), good], &asked), Some(Ok(json!({"reached": true}))));
    assert!(matches!(said_before(&[bad(), bad()], &asked), Some(Err(_))));
}
