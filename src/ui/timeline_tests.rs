//! Spans of a whole recorded run, of a death, and of what goes on.

#[path = "../../shared/tests/suite/small_run/mod.rs"]
mod small_run;

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::run::{AgentEvent, RecordEvent, RunState, ToolStarted, apply};
use small_run::{Record, begun, key};

use super::*;
use crate::render::golden;

/// What holds of all spans, however much of a run is known.
fn check(drawn: &Timeline) {
    let ids: BTreeSet<&str> = drawn.spans.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), drawn.spans.len(), "each has a name of its own: {drawn:#?}");
    assert!(drawn.spans.is_sorted_by_key(|span| span.start), "{drawn:#?}");
    for span in &drawn.spans {
        assert!(span.parent.as_deref().is_none_or(|parent| ids.contains(parent)), "{span:?}");
        assert!(span.end.is_none_or(|end| end >= span.start), "{span:?}");
    }
}

type Told<'a> = (SpanKind, u64, Option<u64>, &'a str);

fn told(drawn: &Timeline) -> Vec<Told<'_>> {
    let spans = drawn.spans.iter();
    spans.map(|span| (span.kind, span.start, span.end, span.state.as_str().unwrap_or_default())).collect()
}

#[test]
fn a_recorded_run_is_drawn_whole_and_its_sums_are_those_of_its_state() {
    let entries = golden::entries();
    let drawn = timeline(&entries);
    check(&drawn);
    assert_eq!((drawn.from, drawn.to), (entries[0].at.0, entries.last().unwrap().at.0));
    assert!(!drawn.cut);
    let mut state: Option<RunState> = None;
    entries.iter().for_each(|entry| apply(&mut state, entry).unwrap());
    let used = state.unwrap().used();
    let of = |kind: SpanKind| drawn.spans.iter().filter(move |span| span.kind == kind);
    let tokens: u64 = of(SpanKind::Task).map(|span| span.tokens).sum();
    assert_eq!(tokens, used.input_tokens + used.output_tokens);
    let began = |entry: &&Entry| matches!(&entry.event, RecordEvent::Agent(_, AgentEvent::Started(_)));
    assert_eq!(of(SpanKind::Task).count(), entries.iter().filter(began).count());
    assert_eq!(of(SpanKind::Step).count() as u64, used.steps);
    assert!(of(SpanKind::Wait).all(|span| span.end.is_some()), "everything that was offered was taken");
    assert!(of(SpanKind::Task).all(|span| span.end.is_some() && span.state != "lost"));
    let by_task: BTreeMap<&str, usize> = of(SpanKind::Task).fold(BTreeMap::new(), |mut all, span| {
        *all.entry(span.task.as_str()).or_default() += 1;
        all
    });
    assert!(by_task.len() > 1, "{by_task:?}");
}

#[test]
fn however_little_is_known_of_a_run_it_is_drawn() {
    for entries in [golden::entries(), small_run::record()] {
        for known in 0..=entries.len() {
            check(&timeline(&entries[..known]));
        }
        // One that lacks its beginning is drawn as far as it goes.
        check(&timeline(&entries[1..]));
    }
}

#[test]
fn a_death_is_drawn_as_a_takeover_and_what_nobody_had_as_a_wait() {
    let drawn = timeline(&small_run::record());
    let wanted = [
        (SpanKind::Wait, 0, Some(100), "done"),
        (SpanKind::Task, 100, Some(1_100), "gave_up"),
        (SpanKind::Wait, 1_110, Some(1_200), "done"),
        (SpanKind::Task, 1_200, Some(2_000), "lost"),
        (SpanKind::Wait, 2_000, Some(2_100), "done"),
        (SpanKind::Takeover, 2_100, Some(2_100), ""),
        (SpanKind::Task, 2_100, Some(2_600), "done"),
        (SpanKind::Wait, 2_610, Some(2_650), "done"),
        (SpanKind::Task, 2_650, Some(3_650), "done"),
    ];
    assert_eq!(told(&drawn), wanted);
    assert_eq!(drawn.spans[4].name, "its agent was lost");
    assert_eq!(drawn.spans[5].name, "worker-00000003 goes on where worker-00000002 was lost");
    assert_eq!((drawn.spans[3].attempt, drawn.spans[6].attempt), (1, 2));
}

#[test]
fn what_goes_on_is_drawn_at_once_and_lasts() {
    let entries = small_run::record();
    // Nobody has decided upon it yet.
    let last = |known: usize| {
        let drawn = timeline(&entries[..known]);
        let (kind, start, end, state) = *told(&drawn).last().unwrap();
        (kind, start, end, state.to_owned())
    };
    let of = |kind: SpanKind, start: u64, end: Option<u64>, state: &str| (kind, start, end, state.to_owned());
    assert_eq!(last(1), of(SpanKind::Wait, 0, None, "waiting"));
    assert_eq!(last(2), of(SpanKind::Task, 100, None, "processing"));
    assert_eq!(last(3), of(SpanKind::Task, 100, Some(1_100), "gave_up"));
    assert_eq!(last(6), of(SpanKind::Task, 1_200, None, "processing"));
    assert_eq!(last(7), of(SpanKind::Wait, 2_000, None, "waiting"));
}

/// A step of two calls of models and one of a tool.
fn step(number: u32, millis: u64, observation: Option<&Value>) -> Step {
    let call = |millis: u64| {
        let usage = Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() };
        json!({
            "model": "m", "template": { "name": "t", "version": 1, "hash": "" }, "request_hash": "", "same_messages": 0, "messages": [],
            "answer": "", "usage": usage, "millis": millis,
        })
    };
    serde_json::from_value(json!({
        "number": number, "thought": { "text": "t" }, "action": { "name": "calculator", "arguments": {} }, "millis": millis,
        "observation": observation, "calls": [call(50), call(30)],
    }))
    .unwrap()
}

#[test]
fn what_a_step_asked_and_called_stands_below_it_one_after_the_other() {
    let finished = json!({ "status": "success", "content": "2", "millis": 20 });
    let mut record = Record::default();
    record.decide(0, Vec::new(), begun(), Some(("1", 1)));
    record.start(1_000, ("1", 1), 1);
    let say = |record: &mut Record, at: u64, event: AgentEvent| {
        record.add(at, RecordEvent::Agent(key("1", 1, 1), event));
    };
    say(&mut record, 1_200, AgentEvent::Step(step(1, 100, Some(&finished))));
    let drawn = timeline(&record.0);
    check(&drawn);
    let first = [
        (SpanKind::Step, 1_100, Some(1_200), "done"),
        (SpanKind::Model, 1_100, Some(1_150), "done"),
        (SpanKind::Model, 1_150, Some(1_180), "done"),
        (SpanKind::Tool, 1_180, Some(1_200), "success"),
    ];
    assert_eq!(told(&drawn)[2..], first);
    let tokens: Vec<u64> = drawn.spans.iter().skip(1).map(|span| span.tokens).collect();
    assert_eq!(tokens, [24, 24, 12, 12, 0]);

    // A tool is begun: what was asked for it is known.
    let begun = ToolStarted { step: step(2, 0, None), idempotency_key: "k".to_owned() };
    say(&mut record, 1_300, AgentEvent::ToolStarted(begun));
    let drawn = timeline(&record.0);
    check(&drawn);
    let second = [
        (SpanKind::Step, 1_220, None, "processing"),
        (SpanKind::Model, 1_220, Some(1_270), "done"),
        (SpanKind::Model, 1_270, Some(1_300), "done"),
        (SpanKind::Tool, 1_300, None, "processing"),
    ];
    assert_eq!(told(&drawn)[6..], second);

    // What came of it is told in the same step, and no call twice.
    say(&mut record, 1_400, AgentEvent::Step(step(2, 180, Some(&finished))));
    let drawn = timeline(&record.0);
    check(&drawn);
    let second = [
        (SpanKind::Step, 1_220, Some(1_400), "done"),
        (SpanKind::Model, 1_220, Some(1_270), "done"),
        (SpanKind::Model, 1_270, Some(1_300), "done"),
        (SpanKind::Tool, 1_300, Some(1_320), "success"),
    ];
    assert_eq!(told(&drawn)[6..], second);
}
