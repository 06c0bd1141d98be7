//! A whole run as it was recorded: it must fold, and be shown as it is here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use muster_bus::subject::Subject;
use muster_shared::flow::{RefineOperation, RefusedOperation, TaskStatus, Usage};
use muster_shared::ids::{Generation, RunId, Seq, TaskId, TaskIndex};
use muster_shared::run::{
    AgentEvent, Child, ChildEnd, Entry, RecordEvent, RunState, RunStatus, Spending, apply, invariants,
};
use muster_shared::time::Millis;
use muster_shared::wire::{Body, Envelope};

use super::paint::Paint;
use super::{doing, explain, figures, json, progress, run, runs, tap, trace};

#[derive(serde::Deserialize)]
struct Line {
    seq: u64,
    at: u64,
    subject: String,
    envelope: Envelope,
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/run.jsonl")
}

fn lines() -> Vec<Line> {
    let text = std::fs::read_to_string(golden()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The entries of the run.
pub(crate) fn entries() -> Vec<Entry> {
    lines().into_iter().map(entry).collect()
}

/// The same as the record of another run.
pub(crate) fn entries_of(run: RunId) -> Vec<Entry> {
    let own = entries()[0].run.to_string();
    let text = std::fs::read_to_string(golden()).unwrap().replace(&own, &run.to_string());
    text.lines().map(|line| entry(serde_json::from_str(line).unwrap())).collect()
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
            RecordEvent::Agent(key, AgentEvent::Outcome(event.into()))
        }
        (subject, body) => panic!("{:?} on {subject}", body.kind()),
    };
    Entry { seq: Seq(line.seq), at: Millis(line.at), run, event }
}

/// The run as it was at its end.
pub(crate) fn a_run() -> RunState {
    states().pop().unwrap()
}

/// The states of the run as people see them, one after each entry.
fn states() -> Vec<RunState> {
    folded().iter().map(|state| state.as_seen().into_owned()).collect()
}

/// The same as the log has them.
fn folded() -> Vec<RunState> {
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
fn steps_are_told_to_logs_in_plain_words() {
    let told: Vec<String> = entries()
        .into_iter()
        .filter_map(|entry| match entry.event {
            RecordEvent::Agent(key, AgentEvent::Step(step)) => Some(doing::step(&key.task, &step)),
            RecordEvent::Agent(..) | RecordEvent::Decided(_) | RecordEvent::Offered(_) => None,
        })
        .collect();
    assert_eq!(told.len(), 8);
    assert_eq!(
        told[0],
        "task 1: searches for \"limits delegation loops\" (Find what the documents say on: What limits delegation loops?)"
    );
    assert!(told[2].starts_with("task 1: reads delegation.md (delegation.md:5 speaks of"), "{}", told[2]);
}

#[test]
fn what_is_being_done_is_told_where_nothing_changes() {
    let states = states();
    let busy = |state: &&RunState| {
        state
            .tasks
            .iter()
            .any(|(task, found)| matches!(task, TaskId::Leaf(_)) && found.status == TaskStatus::Processing)
    };
    let state = states.iter().find(busy).unwrap();
    let at_work =
        |task: &TaskId| task.as_leaf().is_some() && state.tasks[task].status == TaskStatus::Processing;
    let task = state.tasks.keys().find(|task| at_work(task)).unwrap();
    let line = progress::still(state, &[(task.clone(), "reads a.md".to_owned())].into());
    assert!(line.starts_with("still at it: ") && line.contains(&format!("{task} reads a.md")), "{line}");
    assert_eq!(progress::still(&states[0], &BTreeMap::new()), "still at it: waiting for an agent");
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
fn a_change_of_plan_that_was_refused_does_not_look_like_one() {
    let mut state = states().pop().unwrap();
    let shown = |state: &RunState| {
        let doing = progress::Doing::new();
        let tree = progress::tree(state, &doing, state.decided_at, 300, Paint::PLAIN);
        tree.lines().find(|line| line.contains("change the plan")).unwrap().trim().to_owned()
    };
    assert_eq!(shown(&state), "[x] change the plan");
    let operation = RefineOperation::Delete { task: TaskIndex::top(1), reason: String::new() };
    let refused = vec![RefusedOperation { operation, reason: "it has begun".to_owned() }];
    state.refining.done[0] = (Vec::new(), refused);
    assert_eq!(shown(&state), "[~] change the plan (refused: it has begun)");
    let told = progress::Told::default().changes(&state);
    assert!(told.contains(&"change of plan refused: delete 1: it has begun".to_owned()), "{told:?}");
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
    insta::assert_snapshot!("show", run::show(last, &[], now, None, Paint::PLAIN));
    insta::assert_snapshot!("show_narrow", run::show(last, &[], now, Some(40), Paint::PLAIN));
    let index = last.reflections().map(|(index, _)| index).next().unwrap();
    insta::assert_snapshot!("show_task", run::task(last, index, Some(60), Paint::PLAIN).unwrap());
    insta::assert_snapshot!("runs", runs::table(std::slice::from_ref(last), &[], now));
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
    for folded in folded() {
        let state = folded.as_seen();
        let tree = progress::tree(&state, &progress::Doing::new(), state.decided_at, 300, Paint::PLAIN);
        let used = figures::usage(&state.used());
        let shown = run::show(&state, &[], state.decided_at, None, Paint::PLAIN);
        assert!(shown.contains(&format!("  used    {used}\n")) && tree.ends_with(&used), "{used}: {shown}");
        for (task, _) in folded.used_in_progress().filter(|(task, _)| folded.seen[*task].ended) {
            if let TaskId::Leaf(index) = task {
                undecided += 1;
                assert!(tree.contains(&format!("[x] {index} ")), "{index} has ended: {tree}");
            }
        }
    }
    assert!(undecided > 0);
}

/// Those that have ended are in its own count, those at work are not.
#[test]
fn calls_of_the_runs_within_are_counted_once() {
    let calls = |model_calls| Usage { model_calls, ..Usage::default() };
    let done = states().pop().unwrap();
    let id = |number: u64| format!("0197a1b2-0000-7000-8000-{number:012}").parse::<RunId>().unwrap();
    let run = |number: u64, used: u64| RunState {
        id: id(number),
        spending: Spending { used: calls(used), ..done.spending.clone() },
        children: BTreeMap::new(),
        ..done.clone()
    };
    let child = |end: Option<u64>| Child {
        task: TaskId::Write,
        generation: Generation(1),
        goal: Box::new(done.goal.clone()),
        asked_at: Millis(1),
        end: end.map(|used| {
            let (status, usage) = (RunStatus::Completed, calls(used));
            Box::new(ChildEnd { status, reason: String::new(), report: None, usage })
        }),
    };
    let (mut outer, mut at_work) = (run(1, 7), run(2, 20));
    outer.children = BTreeMap::from([(id(2), child(None)), (id(3), child(Some(4)))]);
    at_work.children = BTreeMap::from([(id(4), child(None))]);
    let children = [at_work, run(3, 4), run(4, 100)];
    let used = run::usage(&outer, &children);
    assert_eq!((used.own, used.with_children), (calls(3), calls(127)));
    let shown = run::show(&outer, &children, Millis(0), None, Paint::PLAIN);
    assert!(
        shown.contains("  used    127 model calls") && shown.contains("  itself  3 model calls"),
        "{shown}"
    );
}

#[test]
fn its_timeline_is_told() {
    let mut timeline = trace::Timeline::new(Paint::PLAIN, false);
    let told: Vec<String> = entries().iter().filter_map(|entry| timeline.entry(entry, None)).collect();
    insta::assert_snapshot!("trace", told.join("\n"));
}

#[test]
fn explanation_is_short_or_full() {
    let (state, entries) = (states().pop().unwrap(), entries());
    let explained = |task: Option<&TaskId>| muster_shared::explain::explain(&state, &entries, task);
    let whole = explained(None);
    assert_eq!(whole.cost.total, state.used());
    let text = |full| explain::text(&whole, full, None, Paint::PLAIN);
    let (short, full) = (text(false), text(true));
    for page in [&short, &full] {
        assert!(page.contains("\nResult\n  it ended with a report"), "{page}");
        assert!(page.contains("\nEvidence\n") && page.contains("\nTime and cost\n"), "{page}");
    }
    assert!(!short.contains("[entry") && !short.contains("\nCost by task\n"), "{short}");
    for title in ["Goals and commands", "Cost by task"] {
        assert!(full.contains(&format!("\n{title}\n")), "{title}: {full}");
    }
    assert!(full.contains("[entry") && full.contains("; not signed [entry"), "{full}");
    let task = state.tasks.keys().find(|task| task.as_leaf().is_some()).unwrap();
    let one = explain::text(&explained(Some(task)), true, Some(100), Paint::PLAIN);
    assert!(one.starts_with(&format!("Task {task} of run ")), "{one}");
}

#[test]
fn its_messages_are_tapped() {
    let lines: Vec<String> = lines()
        .into_iter()
        .map(|line| tap::line(Millis(line.at), &line.subject, &Ok(line.envelope), Paint::PLAIN))
        .collect();
    insta::assert_snapshot!("tap", lines.join("\n"));
}
