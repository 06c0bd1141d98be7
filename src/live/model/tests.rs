use std::collections::BTreeSet;

use muster_bus::{RegistryChange, Tapped};
use muster_shared::flow::{TaskStatus, Usage};
use muster_shared::ids::{Generation, Role, Seq, TaskId};
use muster_shared::run::apply;
use muster_shared::time::Millis;
use muster_shared::wire::{Live, LiveKind};
use proptest::prelude::*;

use super::*;
use crate::render::golden;

fn record(run: RunId) -> Vec<Arc<Entry>> {
    golden::entries_of(run).into_iter().map(Arc::new).collect()
}

fn run(n: u128) -> RunId {
    RunId::from_uuid(Uuid::from_u128(0x0197_a1b2_0000_7000_8000_0000_0000_0000 + n))
}

fn folded(record: &[Arc<Entry>]) -> RunState {
    let mut state = None;
    record.iter().for_each(|entry| apply(&mut state, entry).unwrap());
    state.unwrap()
}

fn up() -> Model {
    let mut model = Model::new(Most { runs: 3, entries: 1_000, messages: 5 });
    model.take(Input::Link(Link::Anew("nats://a".into())));
    model.take(Input::CaughtUp);
    model
}

/// How a part of a record may come.
#[derive(Debug, Clone)]
enum Batch {
    /// The next entries, one by one, after going back by some that came already.
    Entries {
        back: usize,
        count: usize,
    },
    /// All that stands there by then, read anew, or somewhat less.
    Record {
        back: usize,
        count: usize,
    },
    Open,
    Close,
}

fn batch() -> impl Strategy<Value = Batch> {
    prop_oneof![
        4 => (0..4_usize, 0..30_usize).prop_map(|(back, count)| Batch::Entries { back, count }),
        1 => (0..4_usize, 0..30_usize).prop_map(|(back, count)| Batch::Record { back, count }),
        1 => Just(Batch::Open),
        1 => Just(Batch::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn however_a_record_comes_the_run_is_its_fold(batches in proptest::collection::vec(batch(), 0..12)) {
        let whole = record(run(1));
        let mut model = up();
        let (mut came, mut touched, mut is_open) = (0, BTreeSet::new(), true);
        model.take(Input::Opened(run(1)));
        let mut take = |model: &mut Model, input| {
            for change in model.take(input) {
                if let Change::Run(change) = change {
                    touched.extend(change.tasks);
                }
            }
        };
        for batch in batches {
            match batch {
                Batch::Entries { back, count } => {
                    let from = came - back.min(came);
                    let to = (came + count).min(whole.len());
                    for entry in &whole[from..to] {
                        take(&mut model, Input::Entry(Arc::clone(entry)));
                    }
                    came = to;
                }
                Batch::Record { back, count } => {
                    let to = (came + count).min(whole.len());
                    let upto = to - back.min(to);
                    take(&mut model, Input::Record { run: run(1), entries: whole[..upto].to_vec() });
                    came = came.max(upto);
                }
                Batch::Open if !is_open => {
                    // Whoever opens a run is given its record.
                    take(&mut model, Input::Opened(run(1)));
                    take(&mut model, Input::Record { run: run(1), entries: whole[..came].to_vec() });
                    is_open = true;
                }
                Batch::Close => {
                    take(&mut model, Input::Closed(run(1)));
                    is_open = false;
                }
                Batch::Open => {}
            }
            if came > 0 {
                let known = model.run(run(1)).unwrap();
                prop_assert_eq!(known.last(), whole[came - 1].seq);
                prop_assert_eq!(known.folded(), came as u64);
            }
        }
        for entry in &whole[came..] {
            take(&mut model, Input::Entry(Arc::clone(entry)));
        }
        let known = model.run(run(1)).unwrap();
        let wanted = folded(&whole);
        prop_assert_eq!(known.state(), Some(&wanted));
        prop_assert_eq!(known.damaged(), None);
        if is_open {
            prop_assert_eq!(known.entries().cloned().collect::<Vec<_>>(), whole);
            prop_assert_eq!(touched, wanted.tasks.keys().cloned().collect::<BTreeSet<_>>());
        } else {
            prop_assert_eq!(known.entries().count(), 0);
        }
    }
}

#[test]
fn of_an_open_run_exactly_the_tasks_that_changed_are_told() {
    let whole = record(run(1));
    let mut model = up();
    model.take(Input::Opened(run(1)));
    let mut before: Option<RunState> = None;
    for entry in &whole {
        let changes = model.take(Input::Entry(Arc::clone(entry)));
        let after = model.run(run(1)).unwrap().state().unwrap().clone();
        let told = changes.iter().find_map(|change| match change {
            Change::Run(change) => Some(change),
            _ => None,
        });
        let told = told.unwrap();
        assert_eq!((told.run, told.entries.len()), (run(1), 1));
        assert_eq!(model.run(run(1)).unwrap().last(), entry.seq);
        for (task, state) in &after.tasks {
            let known = before.as_ref().and_then(|before| before.tasks.get(task));
            assert!(known == Some(state) || told.tasks.contains(task), "{task} at {}", entry.seq);
        }
        before = Some(after);
    }
}

#[test]
fn what_ended_first_goes_first_and_what_is_open_stays() {
    let mut model = up();
    model.take(Input::Opened(run(1)));
    // Three that ended, the first of them open, and one at work.
    for n in [1, 2, 3] {
        model.take(Input::Record { run: run(n), entries: record(run(n)) });
    }
    model.take(Input::Entry(Arc::clone(&record(run(4))[0])));
    assert_eq!(model.runs().map(LiveRun::id).collect::<Vec<_>>(), [4, 3, 2, 1].map(run));
    let changes = model.take(Input::Record { run: run(5), entries: record(run(5)) });
    assert!(
        changes.iter().any(|change| matches!(change, Change::Gone(gone) if *gone == run(2))),
        "{changes:?}"
    );
    assert_eq!(model.runs().map(LiveRun::id).collect::<Vec<_>>(), [5, 4, 3, 1].map(run));
    // One that is not known and does not begin here is none that is kept.
    assert!(model.take(Input::Entry(Arc::clone(&record(run(6))[3]))).is_empty());
}

#[test]
fn a_fleet_that_comes_back_is_learnt_anew() {
    let mut model = up();
    model.take(Input::Record { run: run(1), entries: record(run(1)) });
    assert_eq!(model.link(), &Link::Up("nats://a".into()));
    let away = Link::Away("the fleet is gone".into());
    assert!(matches!(model.take(Input::Link(away.clone()))[..], [Change::Link]));
    assert!(model.take(Input::Link(away)).is_empty(), "it is told once");
    assert_eq!(model.runs().count(), 1, "what was known is still shown");
    let changes = model.take(Input::Link(Link::Anew("nats://b".into())));
    assert!(changes.iter().any(|change| matches!(change, Change::Gone(gone) if *gone == run(1))));
    assert!(!model.is_caught_up() && model.runs().count() == 0);
}

#[test]
fn a_record_that_cannot_be_followed_is_told_to_be_damaged_and_not_folded_on() {
    let mut model = up();
    let whole = record(run(1));
    model.take(Input::Entry(Arc::clone(&whole[0])));
    model.take(Input::Damaged { run: run(1), why: "message 7 cannot be read".into() });
    let known = model.run(run(1)).unwrap();
    assert_eq!((known.damaged(), known.is_at_work()), (Some("message 7 cannot be read"), false));
    model.take(Input::Entry(Arc::clone(&whole[1])));
    assert_eq!(model.run(run(1)).unwrap().last(), whole[0].seq);
    model.take(Input::Record { run: run(1), entries: whole.clone() });
    assert_eq!(model.run(run(1)).unwrap().state(), Some(&folded(&whole)));
}

/// An orchestrator may decide on what agents wrote long after it: it is shown at once.
#[test]
fn what_agents_wrote_is_shown_before_a_decision_names_it() {
    let (mut model, mut named) = (up(), 0);
    for entry in record(run(1)) {
        let before = model.run(run(1)).and_then(LiveRun::state).cloned();
        for event in entry.event.events() {
            let (task, status) = match event {
                RunEvent::TaskStarted(started) => (&started.task, TaskStatus::Processing),
                RunEvent::TaskCompleted(completed) => (&completed.task, TaskStatus::Completed),
                _ => continue,
            };
            let seen = before.as_ref().unwrap().tasks[task].status;
            assert!(seen == status || seen == TaskStatus::Completed, "{task}: {seen:?}, not {status:?}");
            named += 1;
        }
        model.take(Input::Entry(entry));
    }
    assert!(named > 5, "{named}");
}

fn says(step: u32, kind: LiveKind) -> Live {
    let role: Role = "worker".parse().unwrap();
    Live { run: run(1), role, task: TaskId::Plan, generation: Generation(1), step, kind }
}

#[test]
fn what_tasks_say_is_kept_of_open_runs_by_step_and_no_more_than_can_be_shown() {
    let mut model = up();
    let thought = |text: &str| LiveKind::Thought { text: text.to_owned() };
    model.take(Input::Record { run: run(1), entries: record(run(1)) });
    assert!(model.take(Input::Live(says(1, thought("a")))).is_empty(), "it is not open");
    model.take(Input::Opened(run(1)));
    for text in ["Both ", "are due"] {
        let changes = model.take(Input::Live(says(1, thought(text))));
        assert!(matches!(&changes[..], [Change::Doing { task: TaskId::Plan, .. }]), "{changes:?}");
    }
    let spoken = |model: &Model| model.run(run(1)).unwrap().spoken(&TaskId::Plan).cloned().unwrap();
    assert_eq!(spoken(&model).thought, "Both are due");
    model.take(Input::Live(says(2, LiveKind::Status { text: "step 2: x".into(), usage: Usage::default() })));
    assert_eq!((spoken(&model).step, spoken(&model).thought.as_str()), (2, ""));
    for _ in 0..100 {
        model.take(Input::Live(says(2, thought(&"é".repeat(1_000)))));
    }
    assert_eq!(spoken(&model).thought.chars().count(), 4_000);
    assert!(model.run(run(1)).unwrap().doing().unwrap()[&TaskId::Plan].starts_with("thinks: "));
    model.take(Input::Closed(run(1)));
    assert!(model.run(run(1)).unwrap().spoken(&TaskId::Plan).is_none());
}

fn tapped(at: u64) -> Box<Tapped> {
    let content = Err("no envelope".to_owned());
    let (subject, at) = ("hb.worker.w-1".to_owned(), Millis(at));
    Box::new(Tapped { subject, at, bytes: vec![0; 10].into(), headers: Vec::new(), content })
}

#[test]
fn of_what_passes_the_newest_is_kept_and_all_is_counted() {
    let mut model = up();
    for second in 0..4 {
        for n in 0..10 {
            model.take(Input::Tapped { tapped: tapped(second * 1_000 + n), dropped: u64::from(n == 0) });
        }
    }
    let traffic = model.traffic();
    assert_eq!((traffic.count(), traffic.dropped()), (44, 4));
    assert_eq!(traffic.passed().map(|passed| passed.number).collect::<Vec<_>>(), [40, 41, 42, 43, 44]);
    assert_eq!(traffic.rate(Millis(4_000)), 11);
    assert_eq!(traffic.rate(Millis(60_000)), 0);
    assert!(traffic.passed().all(|passed| passed.line().contains("unreadable hb.worker.w-1: no envelope")));
    assert!(matches!(model.take(Input::TapEnded)[..], [Change::TapEnded]));
    assert_eq!(model.traffic().passed().len(), 5, "what passed stays");
}

#[test]
fn who_comes_and_who_goes_is_told_and_who_was_there_is_not() {
    let mut model = Model::new(Most::default());
    let joins = |agent: &str| Input::Processes {
        change: Box::new(RegistryChange::Joined(
            serde_json::from_value(serde_json::json!({ "agent": agent, "role": "worker" })).unwrap(),
        )),
        at: Millis(1),
    };
    model.take(joins("worker-1"));
    assert_eq!(model.fleet().happened().len(), 0);
    model.take(Input::CaughtUp);
    model.take(joins("worker-2"));
    let left = Box::new(RegistryChange::Left("worker-1".parse().unwrap()));
    assert!(matches!(
        model.take(Input::Processes { change: left.clone(), at: Millis(2) })[..],
        [Change::Fleet]
    ));
    assert!(model.take(Input::Processes { change: left, at: Millis(3) }).is_empty());
    let told: Vec<&str> = model.fleet().happened().map(|happened| happened.text.as_str()).collect();
    assert_eq!(told, ["worker-1 is gone", "worker-2 came"]);
    assert_eq!(model.fleet().shown().in_json().len(), 1);
}

#[test]
fn another_orchestrator_and_a_lost_agent_are_told() {
    let mut model = up();
    let whole = record(run(1));
    let taken_over = |entry: &Arc<Entry>| {
        let mut entry = (**entry).clone();
        if let RecordEvent::Decided(decided) = &mut entry.event {
            decided.by = "orchestrator-9".parse().unwrap();
        }
        Arc::new(entry)
    };
    model.take(Input::Entry(Arc::clone(&whole[0])));
    let next =
        whole[1..].iter().position(|entry| matches!(entry.event, RecordEvent::Decided(_))).unwrap() + 1;
    whole[1..next].iter().for_each(|entry| drop(model.take(Input::Entry(Arc::clone(entry)))));
    let changes = model.take(Input::Entry(taken_over(&whole[next])));
    assert!(changes.iter().any(|change| matches!(change, Change::Fleet)));
    let told = &model.fleet().happened().next().unwrap().text;
    assert!(told.starts_with("orchestrator-9 took run "), "{told}");
    assert_eq!(model.run(run(1)).unwrap().last(), Seq(whole[next].seq.0));
}
