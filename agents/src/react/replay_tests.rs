use muster_shared::flow::ObservationStatus;
use muster_shared::ids::{AgentId, Role};
use muster_shared::run::AgentKey;
use muster_shared::time::Millis;
use serde_json::json;

use super::call::taken_apart;
use super::*;
use crate::testing::{leaf, step};

const ANSWER: &str = r#"{"thought": "a sum", "action": "calculator", "arguments": {"expression": "1+1"}}"#;

fn call(answer: &str) -> ModelCall {
    let template = step(1, "x", Value::Null, ObservationStatus::Success).calls.remove(0);
    ModelCall { answer: answer.to_owned(), ..template }
}

fn summed(calls: Vec<ModelCall>) -> Step {
    let step = step(1, "calculator", json!({"expression": "1+1"}), ObservationStatus::Success);
    Step { thought: Thought { text: "a sum".into(), ..Thought::default() }, calls, ..step }
}

fn record(event: AgentEvent) -> Vec<Entry> {
    let offer = leaf(Role::Worker);
    let (role, agent, task, generation) =
        (Role::Worker, AgentId::new("worker", 1), offer.task.clone(), offer.generation);
    let key = AgentKey { role, agent, task, generation };
    let entry = |seq, event| Entry { seq: Seq(seq), at: Millis(seq), run: offer.run, event };
    vec![entry(1, RecordEvent::Offered(offer.clone())), entry(2, RecordEvent::Agent(key, event))]
}

#[test]
fn a_step_follows_from_the_answers_behind_it() {
    let whole = record(AgentEvent::Step(summed(vec![call("Let me see."), call(ANSWER)])));
    assert_eq!(replay(&whole).unwrap(), Replayed { steps: 1, answers: 2, taken: 0 });
    let silent = record(AgentEvent::Step(summed(Vec::new())));
    assert_eq!(replay(&silent).unwrap(), Replayed { steps: 0, answers: 0, taken: 1 });
}

#[test]
fn the_first_step_that_comes_out_differently_is_named() {
    let mut other = summed(vec![call(ANSWER)]);
    other.action.arguments = json!({"expression": "2+2"});
    let divergence = replay(&record(AgentEvent::Step(other))).unwrap_err();
    assert_eq!((divergence.seq, divergence.task.to_string()), (Seq(2), "1".to_owned()));
    assert!(divergence.expected.contains("2+2") && divergence.came.contains("1+1"), "{divergence:?}");
    let superfluous = summed(vec![call(ANSWER), call(ANSWER)]);
    let divergence = replay(&record(AgentEvent::Step(superfluous))).unwrap_err();
    assert!(divergence.expected.contains("answer 1 was not taken"), "{divergence:?}");
    let unread = summed(vec![call("Let me see.")]);
    let divergence = replay(&record(AgentEvent::Step(unread))).unwrap_err();
    assert!(divergence.came.contains("asked again"), "{divergence:?}");
}

#[test]
fn native_calls_are_found_again_in_what_was_kept() {
    let answer = "So:\n[call] a {\n\"x\": \"[call] b\"}\n[call] b broken {".to_owned();
    let starts = [answer.find("[call] a").unwrap(), answer.rfind("[call] b broken").unwrap()];
    let calls_at = starts.map(|at| u32::try_from(at).unwrap()).to_vec();
    let (text, calls) = taken_apart(&ModelCall { answer, calls_at, ..call("") });
    assert_eq!(text, "So:");
    assert_eq!((calls[0].name.as_str(), &calls[0].arguments), ("a", &json!({"x": "[call] b"})));
    assert_eq!((calls[1].name.as_str(), &calls[1].arguments), ("b", &json!("broken {")));
}

#[test]
fn what_was_done_by_an_offer_that_only_seemed_lost_counts() {
    let first = leaf(Role::Worker);
    let second = muster_shared::flow::TaskOffered {
        generation: first.generation.next(),
        continues: Some(first.generation),
        ..first.clone()
    };
    let agent = |offer: &muster_shared::flow::TaskOffered, event| {
        let (role, agent) = (Role::Worker, AgentId::new("worker", 1));
        let key = AgentKey { role, agent, task: offer.task.clone(), generation: offer.generation };
        RecordEvent::Agent(key, event)
    };
    let started = |after_step| {
        let (ack, host) = (String::new(), String::new());
        AgentEvent::Started(Started { attempt: Attempt(1), ack, pid: 1, host, after_step })
    };
    let same = summed(vec![call(ANSWER)]);
    let refused = Observation::new(ObservationStatus::Refused, String::new());
    let again = Step { number: 2, observation: Some(refused), ..same.clone() };
    let events = [
        RecordEvent::Offered(first.clone()),
        RecordEvent::Offered(second.clone()),
        agent(&first, started(0)),
        agent(&first, AgentEvent::Step(same)),
        agent(&second, started(1)),
        agent(&second, AgentEvent::Step(again)),
    ];
    let entry = |(seq, event)| Entry { seq: Seq(seq), at: Millis(seq), run: first.run, event };
    let record: Vec<Entry> = (1..).zip(events).map(entry).collect();
    // The second offer's step repeats that of the first one, which only whoever saw that refuses.
    assert_eq!(replay(&record).map(|done| done.steps), Ok(2));
}

/// What a result cites was looked up then. No document is at hand now: the note of the step decides.
#[test]
fn what_was_looked_up_is_decided_again_by_the_record() {
    use muster_shared::flow::{CorpusRef, PlaceFound, Standing};

    const SUBMITTED: &str = r#"{"thought": "t", "action": "submit", "arguments": {"ending": "done",
        "conclusion": "It is 20 (a.md:3)."}}"#;
    let submit = serde_json::from_str::<Value>(SUBMITTED).unwrap();
    let outcome_by = |found: PlaceFound, conclusion: &str, ending| {
        let mut last = summed(vec![call(SUBMITTED)]);
        last.thought.text = "t".into();
        last.action = Action { name: Action::SUBMIT.into(), arguments: submit["arguments"].clone() };
        last.observation = None;
        let mut offer = leaf(Role::Worker);
        offer.corpus = Some(CorpusRef { id: "c".into(), files: 1, bytes: 9, outline: String::new() });
        let submission = rules_for(&offer.work).submission(&offer, &last.action.arguments).unwrap();
        let looked = crate::react::lookup::look(&History::default(), &[], &submission, &offer);
        let crate::react::lookup::Looked::ToAsk(asked) = looked else { panic!("nothing is cited") };
        last.notes.push(note_of(&asked, Ok(vec![found])));
        let result = muster_shared::flow::TaskResult { conclusion: conclusion.into(), ..Default::default() };
        let mut outcome = Outcome::of_fault();
        (outcome.ending, outcome.reason) = ending;
        outcome.product = Some(Product::Result(result));
        outcome.last_step = Some(Box::new(last));
        let mut record = record(AgentEvent::Outcome(Arc::new(outcome)));
        if let RecordEvent::Offered(offer) = &mut record[0].event {
            offer.corpus = Some(CorpusRef { id: "c".into(), files: 1, bytes: 9, outline: String::new() });
        }
        replay(&record)
    };
    let done = || (Ending::Done, String::new());
    let moved = || PlaceFound::Stands(Standing { line: Some(12), ..Standing::default() });
    let corrected = outcome_by(moved(), "It is 20 (a.md:12 (3 → 12)).", done());
    assert_eq!(corrected.map(|done| done.steps), Ok(1));
    let otherwise = outcome_by(moved(), "It is 20 (a.md:3).", done());
    assert!(otherwise.is_err(), "the note decides");
    let left_out = outcome_by(PlaceFound::NoLine { lines: 2 }, "It is 20.", done());
    assert!(left_out.is_err(), "a wrong citation is refused before it is left out");
}
