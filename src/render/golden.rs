//! A whole run as it was once recorded, by version 1 of the events: it must fold for ever, and be shown as it is here.

use std::path::Path;

use muster_bus::subject::Subject;
use muster_shared::ids::{RunId, Seq, TaskId};
use muster_shared::run::{AgentEvent, Entry, RecordEvent, RunState, RunStatus, apply, invariants};
use muster_shared::time::Millis;
use muster_shared::wire::{Body, Envelope};

use super::paint::Paint;
use super::{figures, json, progress, run, runs, tap, trace};

#[derive(serde::Deserialize)]
struct Line {
    seq: u64,
    at: u64,
    subject: String,
    envelope: Envelope,
}

fn lines() -> Vec<Line> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/run-v1.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn entries() -> Vec<Entry> {
    lines().into_iter().map(entry).collect()
}

fn entry(line: Line) -> Entry {
    let subject = Subject::parse(&line.subject).unwrap();
    let run: RunId = subject.run().unwrap();
    let event = match (subject, line.envelope.body) {
        (_, Body::Decided(decided)) => RecordEvent::Decided(decided),
        (_, Body::Offered(offer)) => RecordEvent::Offered(offer),
        (Subject::Event(_, key, _), Body::Started(event)) => {
            RecordEvent::Agent(key, AgentEvent::Started(event))
        }
        (Subject::Event(_, key, _), Body::Step(event)) => RecordEvent::Agent(key, AgentEvent::Step(event)),
        (Subject::Event(_, key, _), Body::Outcome(event)) => {
            RecordEvent::Agent(key, AgentEvent::Outcome(event))
        }
        (subject, body) => panic!("{:?} on {subject}", body.kind()),
    };
    Entry { seq: Seq(line.seq), at: Millis(line.at), run, event }
}

/// The states of the run, one after each entry.
fn states() -> Vec<RunState> {
    let mut state: Option<RunState> = None;
    let mut states = Vec::new();
    for entry in entries() {
        let before = state.clone();
        apply(&mut state, &entry).unwrap();
        let after = state.clone().unwrap();
        if let Some(before) = before {
            invariants::check_all(&before, &entry, &after).unwrap();
        }
        states.push(after);
    }
    states
}

#[test]
fn a_record_of_version_1_folds_and_breaks_no_invariant() {
    let states = states();
    let last = states.last().unwrap();
    assert_eq!(last.status, RunStatus::Completed);
    assert_eq!(last.folded, Seq(49));
    assert!(last.report.is_some() && last.pending.is_empty());
}

#[test]
fn programs_find_the_fields_side_by_side() {
    let shown = json::run(states().last().unwrap());
    let mut fields: Vec<&str> = shown.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    insta::assert_snapshot!("show_json_fields", fields.join("\n"));
}

#[test]
fn it_is_shown() {
    let states = states();
    let last = states.last().unwrap();
    let now = last.ended_at.unwrap();
    insta::assert_snapshot!("show", run::show(last, now, None, Paint::PLAIN));
    insta::assert_snapshot!("show_narrow", run::show(last, now, Some(40), Paint::PLAIN));
    let index = last.reflections().map(|(index, _)| index).next().unwrap();
    insta::assert_snapshot!("show_task", run::task(last, index, Some(60), Paint::PLAIN).unwrap());
    insta::assert_snapshot!("runs", runs::table(std::slice::from_ref(last), now));
}

#[test]
fn its_progress_is_drawn() {
    let mut told = progress::Told::default();
    let news: Vec<String> = states().iter().flat_map(|state| told.changes(state)).collect();
    insta::assert_snapshot!("changes", news.join("\n"));
    let states = states();
    let half = &states[states.len() / 2];
    let doing = progress::Doing::new();
    insta::assert_snapshot!(
        "tree",
        progress::tree(half, &doing, half.decided_at, progress::DEFAULT_WIDTH, Paint::PLAIN)
    );
}

/// However far the decisions are behind the record.
#[test]
fn what_has_ended_is_not_in_work_and_calls_are_counted_once() {
    let mut undecided = 0;
    for state in states() {
        let tree = progress::tree(&state, &progress::Doing::new(), state.decided_at, 300, Paint::PLAIN);
        let used = figures::usage(&state.used());
        let shown = run::show(&state, state.decided_at, None, Paint::PLAIN);
        assert!(shown.contains(&format!("  used    {used}\n")) && tree.ends_with(&used), "{used}: {shown}");
        for (task, _) in state.seen.iter().filter(|(task, _)| state.seen_ended(task).is_some()) {
            if let TaskId::Leaf(index) = task {
                undecided += 1;
                assert!(tree.contains(&format!("[x] {index} ")), "{index} has ended: {tree}");
            }
        }
    }
    assert!(undecided > 0);
}

#[test]
fn its_timeline_is_told() {
    let mut timeline = trace::Timeline::new(Paint::PLAIN, false);
    let told: Vec<String> = entries().iter().filter_map(|entry| timeline.entry(entry, None)).collect();
    insta::assert_snapshot!("trace", told.join("\n"));
}

#[test]
fn its_messages_are_tapped() {
    let lines: Vec<String> = lines()
        .into_iter()
        .map(|line| tap::line(Millis(line.at), &line.subject, &Ok(line.envelope), Paint::PLAIN))
        .collect();
    insta::assert_snapshot!("tap", lines.join("\n"));
}
