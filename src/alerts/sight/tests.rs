//! What is measured of a run that was once recorded, and of processes that come and go.
#![allow(clippy::unwrap_used)]

use muster_shared::flow::{About, OnTimeout, Question};
use muster_shared::ids::QuestionId;
use muster_shared::run::{AgentEvent, QuestionState, RecordEvent};
use serde_json::{Value, json};

use super::super::evaluate::tests::rule;
use super::*;
use crate::render::golden;

/// A step that calls a tool.
pub(crate) fn step(tool: &str, status: &str, millis: u64) -> Value {
    json!({
        "number": 1, "thought": {}, "action": {"name": tool, "arguments": {}}, "millis": millis,
        "observation": {"status": status, "content": "12345", "millis": millis}
    })
}

/// An entry with a step of a role.
pub(crate) fn entry(at: Millis, role: &str, step: Value) -> Entry {
    let key = json!({"role": role, "agent": format!("{role}-1"), "task": "1", "generation": 1});
    let event = AgentEvent::Step(serde_json::from_value(step).unwrap());
    let event = RecordEvent::Agent(serde_json::from_value(key).unwrap(), event);
    let run: RunId = "00000000-0000-7000-8000-000000000001".parse().unwrap();
    Entry { seq: Seq(at.0), at, run, event }
}

fn of(when: Condition) -> Rule {
    Rule { when, above: when.usual(), ..rule(when.as_str()) }
}

fn measured(sight: &Sight, when: Condition, now: Millis) -> Vec<(String, f64)> {
    let readings = sight.readings(&[of(when)], &Measured::default(), now);
    readings[when.as_str()].iter().map(|one| (one.series.clone(), one.value)).collect()
}

fn profile(agent: &str, name: &str, role: &str, started_at: u64) -> Profile {
    let profile =
        json!({"agent": agent, "role": role, "name": name, "host": "here", "started_at": started_at});
    serde_json::from_value(profile).unwrap()
}

#[test]
fn a_run_is_followed_from_wherever_it_is_met_until_it_has_ended() {
    let entries = golden::entries();
    let (id, now) = (entries[0].run, entries[0].at);
    for met in [0, 1, entries.len() / 2] {
        let mut sight = Sight::new(&[of(Condition::StepTime)], BTreeMap::new());
        let (before, after) = entries.split_at(met);
        let mut was_read = before.is_empty();
        for entry in after {
            if sight.take(entry, now) == Err(ToBeRead(id)) {
                assert!(!was_read, "once is enough");
                was_read = true;
                let upto = entries.iter().filter(|one| one.seq <= entry.seq).cloned().collect::<Vec<_>>();
                sight.read(id, &upto, now);
            }
            // What comes twice counts once.
            assert_eq!(sight.take(entry, now), Ok(()));
        }
        assert!(sight.runs.is_empty() && sight.ended.len() == 1, "from {met}: it has ended");
        let counted: u64 = sight.window.roles(rule("r").window, now).values().map(|steps| steps.count).sum();
        let outcomes = |entry: &&Entry| match &entry.event {
            RecordEvent::Agent(_, AgentEvent::Step(_)) => true,
            RecordEvent::Agent(_, AgentEvent::Outcome(outcome)) => outcome.last_step.is_some(),
            RecordEvent::Agent(..) | RecordEvent::Decided(_) | RecordEvent::Offered(_) => false,
        };
        let steps = entries.iter().filter(outcomes).count();
        assert!(
            counted <= steps as u64 && (met > 0 || counted == steps as u64),
            "{counted} of {steps} from {met}"
        );
    }
}

#[test]
fn what_a_run_waits_for_and_uses_is_measured() {
    let entries = golden::entries();
    let mut sight = Sight::new(&[], BTreeMap::new());
    sight.joined(&profile("orchestrator-a", "", "orchestrator", 1), Millis(1));
    let half = entries.iter().take(entries.len() / 2).cloned().collect::<Vec<_>>();
    let (id, last) = (half[0].run, half[half.len() - 1].at);
    sight.read(id, &half, last);
    let later = last.after(Duration::from_secs(900));
    assert_eq!(measured(&sight, Condition::Stalled, later), [(id.short(), 900_000.0)]);
    assert!(measured(&sight, Condition::Questions, later).is_empty());
    assert!(measured(&sight, Condition::Budget, later).is_empty(), "it has none");

    let run = sight.runs.get_mut(&id).unwrap().run.as_mut().unwrap();
    let used = run.used();
    run.limits.budget.tokens = Some(used.tokens().max(1) * 2);
    run.limits.budget.steps = Some(used.steps.max(1) * 4);
    let question = QuestionState {
        about: About::Goal,
        question: Question::new("which\n\u{1b}[31m one?"),
        asked_at: last,
        asked_of: None,
        passed_on: 0,
        expires: later,
        on_timeout: OnTimeout::Proceed,
        approvals: Vec::new(),
        end: None,
    };
    let number: QuestionId = serde_json::from_value(json!(1)).unwrap();
    run.questions.insert(number, question);
    let share = if used.tokens() > 0 { 50.0 } else { 25.0 };
    assert_eq!(measured(&sight, Condition::Budget, later), [(id.short(), share)]);
    assert_eq!(measured(&sight, Condition::Questions, later), [(id.short(), 900_000.0)]);
    assert!(measured(&sight, Condition::Stalled, later).is_empty(), "it waits for a person");
    let readings = sight.readings(&[of(Condition::Questions)], &Measured::default(), later);
    let detail = &readings["questions"][0].detail;
    assert!(detail.contains("question 1: which") && !detail.contains('\u{1b}'), "{detail}");
}

#[test]
fn whoever_is_missing_is_told_with_the_runs_that_wait() {
    let entries = golden::entries();
    let mut sight = Sight::new(&[], BTreeMap::new());
    sight.read(entries[0].run, &entries[..1], entries[0].at);
    let missing = |sight: &Sight| measured(sight, Condition::MissingRole, entries[0].at);
    assert!(missing(&sight).contains(&("orchestrator".to_owned(), 1.0)), "{:?}", missing(&sight));
    sight.joined(&profile("orchestrator-a", "", "orchestrator", 1), Millis(1));
    assert!(!missing(&sight).contains(&("orchestrator".to_owned(), 1.0)));
    sight.left(&"orchestrator-a".parse().unwrap());
    assert!(missing(&sight).contains(&("orchestrator".to_owned(), 1.0)));
}

#[test]
fn a_process_that_comes_again_under_its_name_was_started_again() {
    let mut sight = Sight::new(&[], BTreeMap::new());
    let now = Millis(10_000_000);
    for (n, (agent, name, started)) in [
        ("worker-a", "worker-1", 10),
        ("worker-a", "worker-1", 10),
        ("worker-b", "worker-1", 20),
        ("worker-a", "worker-1", 10),
        ("worker-c", "worker-1", 30),
        ("other-a", "", 10),
        ("other-b", "", 20),
        ("own-b", "own-b", 20),
    ]
    .into_iter()
    .enumerate()
    {
        sight.joined(&profile(agent, name, "worker", started), Millis(now.0 + n as u64));
    }
    let restarts = |sight: &Sight, now| measured(sight, Condition::Restarts, now);
    let later = now.after(Duration::from_secs(1));
    assert_eq!(restarts(&sight, later), [("worker-1@here".to_owned(), 2.0)]);
    // Whoever goes on knows of it, and sees what came while nobody looked.
    let mut next = Sight::new(&[], sight.restarts().clone());
    next.joined(&profile("worker-c", "worker-1", "worker", 30), later);
    assert_eq!(restarts(&next, later), [("worker-1@here".to_owned(), 2.0)]);
    next.joined(&profile("worker-d", "worker-1", "worker", 40), later);
    assert_eq!(restarts(&next, later), [("worker-1@here".to_owned(), 3.0)]);
    let long_after = now.after(Duration::from_secs(3600));
    assert!(restarts(&next, long_after).is_empty());
    next.forget(now.after(KNOWN * 2));
    assert_eq!(next.restarts().len(), 1, "it is there");
    next.left(&"worker-d".parse().unwrap());
    next.forget(now.after(KNOWN * 2));
    assert!(next.restarts().is_empty());
}

#[test]
fn orchestrators_and_those_that_take_no_tasks_are_started_again_too() {
    let mut sight = Sight::new(&[], BTreeMap::new());
    let now = Millis(10_000_000);
    for (agent, name, role, started) in [
        ("orchestrator-a", "orchestrator-1", "orchestrator", 10),
        ("orchestrator-b", "orchestrator-1", "orchestrator", 20),
        ("guard-secrets-a", "guard-secrets-1", "guard-secrets", 10),
        ("guard-secrets-b", "guard-secrets-1", "guard-secrets", 20),
        // Somebody gave one name to two processes.
        ("worker-a", "mine", "worker", 10),
        ("orchestrator-c", "mine", "orchestrator", 20),
        ("worker-b", "mine", "worker", 30),
    ] {
        sight.joined(&profile(agent, name, role, started), now);
    }
    let restarted: Vec<String> =
        measured(&sight, Condition::Restarts, now).into_iter().map(|(process, _)| process).collect();
    assert_eq!(restarted, ["guard-secrets-1@here", "orchestrator-1@here", "worker mine@here"]);
}

#[test]
fn what_could_not_be_read_is_not_measured() {
    let sight = Sight::new(&[], BTreeMap::new());
    let rules = [of(Condition::DeadLetters), of(Condition::RecordFull), of(Condition::Budget)];
    let none = sight.readings(&rules, &Measured::default(), Millis(1));
    assert_eq!(none.keys().collect::<Vec<_>>(), ["budget"]);
    let budget = Budget { model_calls: Some(10), ..Budget::UNLIMITED };
    let used = Usage { model_calls: 9, ..Usage::default() };
    let measured =
        Measured { dead: Some((3, "a\nb".to_owned())), fullness: Some(0.5), fleet: Some((budget, used)) };
    let all = sight.readings(&rules, &measured, Millis(1));
    assert_eq!((all["dead_letters"][0].value, all["dead_letters"][0].detail.as_str()), (3.0, "a b"));
    assert_eq!((all["record_full"][0].value, all["budget"][0].value), (50.0, 90.0));
    assert_eq!(all["budget"][0].series, "fleet");
}
