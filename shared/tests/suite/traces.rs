//! A small run, made by hand, as spans: by the conventions, the same however the record is read, and linked where a task
//! went from one to another.

use std::collections::{BTreeMap, BTreeSet};

use crate::small_run::{RUN, Record, begun, completed, key, leaf, orphaned, record, started};
use muster_shared::flow::{
    Action, Ending, Goal, ModelCall, Observation, ObservationStatus, Parent, Step, TaskRights, TemplateRef,
    Thought, Usage,
};
use muster_shared::ids::{Generation, RunId};
use muster_shared::run::event::RunCreated;
use muster_shared::run::{AgentEvent, Entry, Input, RecordEvent, RunEvent, ToolStarted};
use muster_shared::time::Millis;
use muster_shared::traces::{
    Attempted, Called, Course, ParentSpan, Span, Stage, TraceId, Tracer, Value, Why, otlp, root_span, spans,
};
use muster_shared::wire::TraceContext;
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

fn attribute<'a>(span: &'a Span, key: &str) -> Option<&'a Value> {
    span.attributes.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
}

fn text<'a>(span: &'a Span, key: &str) -> &'a str {
    match attribute(span, key) {
        Some(Value::Text(text)) => text,
        other => unreachable!("{key}: {other:?} in {span:#?}"),
    }
}

fn step(number: u32, tool: &str, status: ObservationStatus) -> Step {
    let usage =
        Usage { model_calls: 1, input_tokens: 90, output_tokens: 10, cost_micros: 5, ..Usage::default() };
    let template = TemplateRef { name: "worker".to_owned(), version: 2, hash: String::new() };
    let call = json!({
        "model": "gemini/flash", "template": template, "request_hash": "", "same_messages": 0,
        "messages": [{ "role": "user", "content": "SECRET-PROMPT" }],
        "parameters": { "temperature": 0.5, "max_tokens": 100 },
        "answer": "SECRET-ANSWER", "usage": usage, "millis": 50,
    });
    let call: ModelCall = serde_json::from_value(call).unwrap();
    Step {
        number,
        thought: Thought::default(),
        action: Action { name: tool.to_owned(), arguments: json!({ "expression": "SECRET-ARGUMENT" }) },
        observation: Some(Observation { millis: 30, ..Observation::new(status, "SECRET-RESULT".to_owned()) }),
        more: Vec::new(),
        notes: Vec::new(),
        heard: Vec::new(),
        calls: vec![call],
        millis: 90,
        outside_millis: 80,
    }
}

/// A task of which the first agent dies in a tool that has a lasting effect; the next goes on with it.
fn with_steps() -> Vec<Entry> {
    let mut record = Record::default();
    record.decide(1_000, Vec::new(), begun(), Some(("1", 1)));
    let start = record.start(1_100, ("1", 1), 1);
    record.decide(1_110, vec![Input::Agent { seq: start }], vec![started(("1", 1), 1, 1)], None);
    let say =
        |record: &mut Record, at, agent, event| record.add(at, RecordEvent::Agent(key("1", 1, agent), event));
    say(&mut record, 1_200, 1, AgentEvent::Step(step(1, "calculator", ObservationStatus::Success)));
    let begun = Step { observation: None, ..step(2, "mail", ObservationStatus::Success) };
    let begun = ToolStarted { step: Step { millis: 0, ..begun }, idempotency_key: "k".to_owned() };
    say(&mut record, 1_300, 1, AgentEvent::ToolStarted(begun));
    let lost = orphaned(1, 1, 1);
    record.decide(1_400, vec![Input::Timer], vec![RunEvent::TaskOrphaned(lost)], None);
    let start = record.start(1_500, ("1", 1), 2);
    say(&mut record, 1_600, 2, AgentEvent::Step(step(2, "mail", ObservationStatus::Timeout)));
    let end = record.end(1_700, ("1", 1), 2, 2, Ending::Done);
    let inputs = [start, end].map(|seq| Input::Agent { seq }).to_vec();
    record.decide(1_710, inputs, vec![started(("1", 1), 2, 2), completed("1", 1, end)], Some(("2", 1)));
    record.0
}

#[test]
fn tries_are_spans_below_the_run_and_linked_to_those_before_them() {
    let spans = spans(&record(), false);
    let root = spans.iter().find(|span| span.parent.is_none()).unwrap();
    assert_eq!(
        (root.name.as_str(), root.id, root.trace),
        ("invoke_workflow muster", root_span(RUN), RUN.into())
    );
    assert_eq!((root.start, root.end), (Millis(0), Millis(3_700)));
    assert_eq!(text(root, "muster.run.status"), "completed");
    let tries: Vec<&Span> = spans.iter().filter(|span| span.id != root.id).collect();
    let told: Vec<(&str, &str, Option<&str>, Vec<&str>)> = tries
        .iter()
        .map(|span| {
            let error = attribute(span, "error.type").map(|_| text(span, "error.type"));
            (
                text(span, "muster.task.id"),
                text(span, "muster.outcome"),
                error,
                span.links.iter().map(|link| link.why).collect(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("1", "gave_up", Some("gave_up"), vec![]),
            ("1", "lost", Some("agent_lost"), vec!["earlier_generation"]),
            ("1", "done", None, vec!["takeover"]),
            ("2", "done", None, vec![]),
        ]
    );
    for (before, after) in [(0, 1), (1, 2)] {
        assert_eq!(tries[after].links[0].span, tries[before].id);
    }
    assert!(tries.iter().all(|span| span.parent == Some(root.id) && span.name == "invoke_agent worker"));
    assert!(tries.iter().all(|span| span.error.is_some() == attribute(span, "error.type").is_some()));
    assert_eq!(text(tries[1], "gen_ai.agent.id"), "worker-00000002");
}

#[test]
fn calls_stand_below_their_try_and_one_that_was_broken_off_is_told() {
    let spans = spans(&with_steps(), false);
    let mut told: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for span in spans.iter().filter(|span| !span.name.starts_with("invoke")) {
        let above = spans.iter().find(|above| Some(above.id) == span.parent).unwrap();
        assert!(above.start <= span.start && span.start <= span.end && span.end <= above.end, "{span:#?}");
        let key = (text(above, "gen_ai.agent.id").to_owned(), format!("{} {}", span.name, why(span)));
        // Of several that are called alike, the first.
        told.entry(key).or_insert((span.start.0, span.end.0));
    }
    let of =
        |agent: u32, name: &str, times: (u64, u64)| ((format!("worker-{agent:08x}"), name.to_owned()), times);
    let wanted = [
        of(1, "chat flash ", (1_110, 1_160)),
        of(1, "execute_tool calculator ", (1_160, 1_190)),
        of(1, "execute_tool mail effect_unknown", (1_300, 1_400)),
        of(2, "execute_tool mail timeout", (1_560, 1_590)),
    ];
    for (key, times) in wanted {
        assert_eq!(told.get(&key), Some(&times), "{key:?}: {told:#?}");
    }
    // The answer that the first one journaled is not asked for again, and told once.
    assert_eq!(spans.iter().filter(|span| span.name == "chat flash").count(), 2);
    let chat = spans.iter().find(|span| span.name == "chat flash").unwrap();
    assert_eq!(
        (text(chat, "gen_ai.provider.name"), text(chat, "gen_ai.request.model")),
        ("gcp.gemini", "flash")
    );
    assert_eq!(attribute(chat, "gen_ai.usage.input_tokens"), Some(&Value::Whole(90)));
    assert_eq!(attribute(chat, "gen_ai.request.max_tokens"), Some(&Value::Whole(100)));
    let lost = spans.iter().find(|span| why(span) == "agent_lost").unwrap();
    assert_eq!(
        attribute(lost, "gen_ai.usage.output_tokens"),
        Some(&Value::Whole(20)),
        "what it used is its own"
    );
}

fn why(span: &Span) -> &str {
    attribute(span, "error.type").map_or("", |_| text(span, "error.type"))
}

#[test]
fn what_goes_on_is_known_before_a_decision_closes_it() {
    let entries = with_steps();
    let is_begun = |entry: &Entry| matches!(&entry.event, RecordEvent::Agent(_, AgentEvent::ToolStarted(_)));
    let (until, from) = entries.split_at(entries.iter().position(is_begun).unwrap() + 1);
    let mut course = Course::new(false);
    assert!(until.iter().all(|entry| course.read(entry).is_empty()));
    let going_on = course.going_on();
    let [one] = going_on.as_slice() else { unreachable!("{going_on:#?}") };
    assert!(one.end.is_none() && one.before.is_none() && course.is_held(&leaf("1"), Generation(1)));
    let stages: Vec<_> = one.held.steps.iter().map(|seen| (seen.step.number, seen.stage)).collect();
    assert_eq!(stages, [(1, Stage::Taken), (2, Stage::Begun)]);
    let calls = one.held.steps[1].calls(one.held.from, Millis(1_350));
    let called: Vec<_> = calls.iter().map(|call| (call.called.name(), call.start.0, call.end.0)).collect();
    assert_eq!(called, [("gemini/flash".to_owned(), 1_250, 1_300), ("mail".to_owned(), 1_300, 1_350)]);
    assert!(matches!(calls[1].called, Called::Unheard(_)));

    let over: Vec<Attempted> = from.iter().flat_map(|entry| course.read(entry)).collect();
    let before = |one: &Attempted| one.before.as_ref().map(|before| (before.why, before.loss));
    let told: Vec<_> = over.iter().map(|one| (one.held.number.0, before(one))).collect();
    assert_eq!(told, [(1, None), (2, Some((Why::Takeover, Some("was lost"))))]);
    assert!(course.going_on().is_empty() && !course.is_held(&leaf("1"), Generation(1)));
    assert!(!course.has_ended());
}

#[test]
fn whoever_begins_what_another_has_is_told_of_until_a_decision_says_that_he_has_it_not() {
    let mut record = Record::default();
    record.decide(0, Vec::new(), begun(), Some(("1", 1)));
    let first = record.start(100, ("1", 1), 1);
    record.decide(110, vec![Input::Agent { seq: first }], vec![started(("1", 1), 1, 1)], None);
    let second = record.start(200, ("1", 1), 2);
    let mut course = Course::new(false);
    for entry in &record.0 {
        course.read(entry);
    }
    let agents = |course: &Course| -> Vec<String> {
        course.going_on().iter().map(|one| one.held.agent.to_string()).collect()
    };
    assert_eq!(agents(&course), ["worker-00000001", "worker-00000002"]);
    record.decide(210, vec![Input::Agent { seq: second }], Vec::new(), None);
    course.read(record.0.last().unwrap());
    assert_eq!(agents(&course), ["worker-00000001"]);
}

/// An orchestrator that takes a run over may hear of a death and of whoever goes on at the same time.
#[test]
fn whoever_begins_with_the_decision_that_takes_the_task_from_another_keeps_it() {
    let mut record = Record::default();
    record.decide(0, Vec::new(), begun(), Some(("1", 1)));
    let first = record.start(100, ("1", 1), 1);
    record.decide(110, vec![Input::Agent { seq: first }], vec![started(("1", 1), 1, 1)], None);
    let lost = orphaned(1, 1, 0);
    let second = record.start(200, ("1", 1), 2);
    let events = vec![RunEvent::TaskOrphaned(lost), started(("1", 1), 2, 2)];
    record.decide(300, vec![Input::Timer, Input::Agent { seq: second }], events, None);
    let end = record.end(400, ("1", 1), 2, 1, Ending::Done);
    record.decide(410, vec![Input::Agent { seq: end }], vec![completed("1", 1, end)], Some(("2", 1)));
    let told: Vec<(String, String)> = spans(&record.0, false)
        .iter()
        .map(|span| (text(span, "gen_ai.agent.id").to_owned(), text(span, "muster.outcome").to_owned()))
        .collect();
    let of = |agent: &str, how: &str| (agent.to_owned(), how.to_owned());
    assert_eq!(told, [of("worker-00000001", "lost"), of("worker-00000002", "done")]);
}

#[test]
fn what_was_said_is_told_only_where_it_is_asked_for() {
    let entries = with_steps();
    let said = |content| format!("{:?}", spans(&entries, content));
    let (without, with) = (said(false), said(true));
    assert!(!without.contains("SECRET"), "{without}");
    for part in ["PROMPT", "ANSWER", "ARGUMENT", "RESULT"] {
        assert!(with.contains(&format!("SECRET-{part}")), "{part}");
    }
    let ids = |content| spans(&entries, content).iter().map(|span| span.id).collect::<Vec<_>>();
    assert_eq!(ids(false), ids(true));
}

#[test]
fn ids_are_unique_and_as_they_were() {
    for entries in [record(), with_steps()] {
        let spans = spans(&entries, false);
        let ids: BTreeSet<_> = spans.iter().map(|span| span.id).collect();
        assert_eq!(ids.len(), spans.len());
    }
    // They are derived from what they are about: backends that have them know them again for good.
    let first = spans(&record(), false).first().unwrap().id;
    assert_eq!(first.to_string(), "c9b21c71c9c90ee9");
}

proptest! {
    #[test]
    fn however_a_record_is_read_each_span_is_told_once_and_is_the_same(cut in 0usize..20, damaged in proptest::option::of(1usize..12)) {
        for mut entries in [record(), with_steps()] {
            if let Some(lost) = damaged.filter(|lost| *lost < entries.len()) {
                entries.remove(lost);
            }
            let whole = spans(&entries, false);
            let mut tracer = Tracer::new(false);
            let mut pieces = Vec::new();
            for (place, entry) in entries.iter().enumerate() {
                let closed = tracer.read(entry);
                if place >= cut {
                    pieces.extend(closed.spans);
                } else {
                    // Whoever takes over has read what was closed before, and leaves it to whoever closed it.
                    let told = closed.spans.len();
                    prop_assert!(whole.len() >= told);
                }
            }
            prop_assert!(whole.ends_with(&pieces));
            // Every one stands in the trace of the run, below something that is there or will be.
            let ids: BTreeSet<_> = whole.iter().map(|span| span.id).chain([root_span(RUN)]).collect();
            for span in &whole {
                prop_assert_eq!(span.trace, TraceId::from(RUN));
                prop_assert!(span.start <= span.end);
                prop_assert!(span.parent.is_none_or(|parent| ids.contains(&parent)));
            }
        }
    }

    #[test]
    fn a_trace_context_is_read_as_it_is_written_and_nothing_else_is_one(trace in 1u128.., span in 1u64.., sampled: bool, other in "\\PC{0,60}") {
        let context = format!("00-{trace:032x}-{span:016x}-0{}", u8::from(sampled));
        let read = ParentSpan::read(&TraceContext(context.clone())).unwrap();
        prop_assert_eq!((read.trace.0, read.span.0, read.is_sampled), (trace, span, sampled));
        prop_assert_eq!(read.written().0, context.clone());
        if let Some(read) = ParentSpan::read(&TraceContext(other.clone())) {
            prop_assert!(other.contains(&read.trace.to_string()));
        }
        for wrong in [context.to_uppercase().replace("00-", "ff-"), format!("{context}-x"), context.replace('-', "_")] {
            prop_assert_eq!(ParentSpan::read(&TraceContext(wrong)), None);
        }
    }
}

#[test]
fn later_versions_of_a_trace_context_may_say_more() {
    let later = format!("01-{:032x}-{:016x}-01-more", 5, 6);
    assert!(ParentSpan::read(&TraceContext(later)).is_some());
    for none in
        ["", "00-0-0-0", &format!("00-{:032x}-{:016x}-01", 0, 6), &format!("00-{:032x}-{:016x}-01", 5, 0)]
    {
        assert_eq!(ParentSpan::read(&TraceContext((*none).to_owned())), None, "{none}");
    }
}

fn begun_with(goal: Goal) -> Vec<Entry> {
    let mut entries = record();
    let Some(RecordEvent::Decided(decided)) = entries.first_mut().map(|entry| &mut entry.event) else {
        unreachable!()
    };
    if let Some(RunEvent::RunCreated(RunCreated { goal: old, .. })) = decided.events.first_mut() {
        **old = goal;
    }
    entries
}

#[test]
fn a_run_stands_below_whoever_asked_for_it_or_is_linked_to_the_run_that_it_is_a_part_of() {
    let above = ParentSpan {
        trace: TraceId(77),
        span: root_span(RunId::from_uuid(Uuid::from_u128(9))),
        is_sampled: true,
    };
    let below = spans(&begun_with(Goal { trace: Some(above.written()), ..Goal::new("g") }), false);
    assert!(below.iter().all(|span| span.trace == TraceId(77)));
    let root = below.iter().find(|span| span.id == root_span(RUN)).unwrap();
    assert_eq!(root.parent, Some(above.span));

    let parent = Parent {
        run: RunId::from_uuid(Uuid::from_u128(11)),
        task: leaf("3"),
        depth: 1,
        goals: Vec::new(),
        rights: TaskRights::default(),
        background: None,
    };
    let parent_run = parent.run;
    let part = spans(&begun_with(Goal { parent: Some(Box::new(parent)), ..Goal::new("g") }), false);
    let root = part.iter().find(|span| span.parent.is_none()).unwrap();
    let [link] = &root.links[..] else { unreachable!("{:?}", root.links) };
    assert_eq!((link.why, link.trace, link.span), ("parent_run", parent_run.into(), root_span(parent_run)));
}

#[test]
fn both_forms_of_otlp_say_the_same_number_of_spans() {
    let spans = spans(&with_steps(), false);
    let resource = [("service.name".to_owned(), "muster".to_owned())];
    let told = otlp::json(&spans, &resource);
    let listed = told["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(listed.len(), spans.len());
    assert_eq!(listed[0]["traceId"], RUN.to_string());
    let bytes = otlp::protobuf(&spans, &resource);
    let id = spans[0].id.0.to_be_bytes();
    assert!(bytes.windows(8).any(|part| part == id));
}
