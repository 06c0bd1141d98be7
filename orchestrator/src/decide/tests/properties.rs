//! What holds for every run, whatever agents do and in whatever order.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::flow::{Ending, Outcome, RunLimits, TaskDraft, TaskOffered, TaskStatus};
use muster_shared::ids::{Queue, Role, TaskId, TaskIndex};
use muster_shared::run::{Input, RecordEvent, RequestAction, RunState, RunStatus, Snapshot, apply};
use muster_shared::time::Millis;
use muster_shared::wire::Encoding;
use muster_shared::wire::codec::{decode_unbounded, encode};
use proptest::prelude::*;

use super::fleet::{Fleet, ID, advising, cancel, failed, good, leaf, queue};
use crate::decide::{Recorded, Situation, decide, next_deadline, next_review};

/// Plans in which every task may depend on earlier ones.
fn plans() -> impl Strategy<Value = Vec<TaskDraft>> {
    let needs = proptest::collection::vec(proptest::collection::vec(any::<bool>(), 5), 1..=5);
    needs.prop_map(|rows| {
        let tasks = rows.iter().enumerate().map(|(at, row)| {
            let on: Vec<String> =
                (0..at).filter(|before| row[*before]).map(|before| (before + 1).to_string()).collect();
            leaf(&format!("part {at}"), &on.iter().map(String::as_str).collect::<Vec<_>>())
        });
        tasks.collect()
    })
}

/// How each leaf behaves: well, failing for good, failing once, or asking for a refinement.
fn behave(offer: &TaskOffered, tasks: &[TaskDraft], manners: &[u8]) -> Outcome {
    let TaskId::Leaf(index) = &offer.task else { return good(offer, tasks) };
    let at = usize::from(index.position()).saturating_sub(1);
    match manners.get(at).copied().unwrap_or(0) % 4 {
        1 => failed(Ending::GaveUp, "nothing found"),
        2 if offer.generation.0 == 1 => failed(Ending::AgentFailed, "crashed"),
        3 => advising("found", "there is more"),
        _ => good(offer, tasks),
    }
}

fn finish(tasks: &[TaskDraft], manners: &[u8], picks: &[u8], slots: u32) -> Fleet {
    let mut fleet = Fleet::new();
    let slots: BTreeMap<Queue, u32> = Role::BUILT_IN.into_iter().map(|role| (queue(role), slots)).collect();
    fleet.slots = slots;
    fleet.submit("everything", RunLimits::default());
    let mut at = 0;
    let pick = |_| {
        at += 1;
        usize::from(picks[at % picks.len()])
    };
    fleet.work_in_order(pick, |offer| behave(offer, tasks, manners));
    fleet
}

fn with_status(fleet: &Fleet, status: TaskStatus) -> BTreeSet<TaskId> {
    let tasks = fleet.run().tasks.iter().filter(|(task, _)| matches!(task, TaskId::Leaf(_)));
    tasks.filter(|(_, state)| state.status == status).map(|(task, _)| task.clone()).collect()
}

/// Every decision of a record, made again from what stands before it.
fn replay(fleet: &Fleet) {
    let mut run: Option<RunState> = None;
    for (at, entry) in fleet.record.iter().enumerate() {
        if let RecordEvent::Decided(decided) = &entry.event {
            let situation = Situation {
                id: ID,
                now: decided.now,
                capacity: &decided.capacity,
                specialists: &decided.specialists,
                placing: &Recorded(&decided.placements),
            };
            let again = decide(run.as_ref(), &decided.inputs, situation).unwrap();
            assert_eq!(again.events, decided.events);
            let offers = fleet.record[at + 1..].iter().map_while(|entry| match &entry.event {
                RecordEvent::Offered(offer) => Some(offer.clone()),
                RecordEvent::Decided(_) | RecordEvent::Agent(..) => None,
            });
            let offers = decided.offer.iter().map(|offer| TaskOffered::clone(offer)).chain(offers);
            assert_eq!(again.offers, offers.collect::<Vec<_>>());
        }
        apply(&mut run, entry).unwrap();
    }
    assert_eq!(run, fleet.run);
}

#[test]
fn a_replay_names_the_first_decision_that_comes_out_differently() {
    let mut fleet = finish(&[leaf("part", &[])], &[0], &[0], 8);
    let whole = crate::replay::replay(ID, &fleet.record).unwrap();
    assert!(whole.decisions > 3 && whole.offers >= 4, "{whole:?}");
    let place = fleet.record.iter().position(|entry| match &entry.event {
        RecordEvent::Decided(decided) => {
            decided.offer.as_ref().is_some_and(|offer| offer.task == TaskId::Plan)
        }
        RecordEvent::Offered(_) | RecordEvent::Agent(..) => false,
    });
    let Some(entry) = place.and_then(|at| fleet.record.get_mut(at)) else { panic!("there is an offer") };
    let RecordEvent::Decided(decided) = &mut entry.event else { panic!("it is a decision") };
    decided.offer.as_mut().unwrap().goal = "another".into();
    let seq = entry.seq;
    let divergence = crate::replay::replay(ID, &fleet.record).unwrap_err();
    assert_eq!((divergence.seq, divergence.part), (seq, "offer"));
    assert!(divergence.expected.contains("another") && divergence.came.contains("everything"));
}

/// Folding from a kept state gives what folding everything gives, wherever the state was kept.
fn fold_from_every_position(fleet: &Fleet) {
    let mut run: Option<RunState> = None;
    for (at, entry) in fleet.record.iter().enumerate() {
        apply(&mut run, entry).unwrap();
        let snapshot = Snapshot::of(run.as_ref().unwrap(), fleet.record[0].seq, None);
        for encoding in [Encoding::MessagePack, Encoding::Json] {
            let bytes = encode(&snapshot, encoding).unwrap();
            let secret = run.as_ref().unwrap().secret.as_bytes();
            assert!(!bytes.windows(secret.len()).any(|part| part == secret), "the secret is not kept");
            let read: Snapshot = decode_unbounded(&bytes, encoding).unwrap();
            assert!(read.is_usable());
            let (restored, _) = read.restore(&fleet.record[0]).unwrap();
            assert_eq!(Some(&restored), run.as_ref());
            let mut folded = Some(restored);
            fleet.record[at + 1..].iter().for_each(|entry| apply(&mut folded, entry).unwrap());
            assert_eq!(folded, fleet.run);
        }
    }
    let another = Snapshot::of(fleet.run(), fleet.record[0].seq, None).restore(&fleet.record[1]);
    assert_eq!(another, None, "not with another entry than the first");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_run_ends_and_replays_to_the_same(
        tasks in plans(),
        manners in proptest::collection::vec(any::<u8>(), 5),
        picks in proptest::collection::vec(any::<u8>(), 1..40),
        slots in 0_u32..9,
    ) {
        let fleet = finish(&tasks, &manners, &picks, slots);
        prop_assert!(fleet.status().is_ended());
        replay(&fleet);
        prop_assert!(crate::replay::replay(ID, &fleet.record).is_ok());
        fold_from_every_position(&fleet);
    }

    /// Whatever roles have no agent, wherever one goes away: no task of such a role waits beyond the limit.
    #[test]
    fn no_task_waits_for_a_missing_role_beyond_the_limit(
        tasks in plans(),
        manners in proptest::collection::vec(any::<u8>(), 5),
        missing in proptest::sample::subsequence(Role::BUILT_IN.to_vec(), 0..5),
        leaves in 0_usize..40,
        pattern in proptest::sample::select(vec![None, Some("committee:3"), Some("redundant:2")]),
    ) {
        let pattern = pattern.map(str::to_owned);
        let tasks: Vec<TaskDraft> =
            tasks.into_iter().map(|task| TaskDraft { pattern: pattern.clone(), ..task }).collect();
        let mut fleet = Fleet::new();
        let limits = RunLimits { wait_for_role_ms: 5_000, ..RunLimits::default() };
        fleet.submit("everything", limits);
        for n in 0..400 {
            if n == leaves {
                fleet.slots.retain(|queue, _| !missing.iter().any(|role| *queue == Queue::Role(role.clone())));
                // No agent takes tasks from their queues.
                fleet.open.retain(|offer| fleet.slots.contains_key(&offer.queue));
                fleet.turn(vec![Input::Capacity]);
            }
            if fleet.status().is_ended() {
                break;
            }
            if let Some(offer) = fleet.open.first().cloned() {
                fleet.start(&offer);
                let outcome = behave(&offer, &tasks, &manners);
                fleet.end(&offer, outcome);
                continue;
            }
            let run = fleet.run();
            let due = next_review(run).into_iter().chain(next_deadline(run)).min().unwrap();
            fleet.at(due.max(Millis(fleet.now.0 + 1_000)));
        }
        prop_assert!(fleet.status().is_ended(), "{:?}", fleet.run());
        prop_assert!(fleet.now.0 < 1_000_000 + 60_000, "{}", fleet.now.0);
        replay(&fleet);
    }

    #[test]
    fn the_order_in_which_agents_end_does_not_matter(
        tasks in plans(),
        manners in proptest::collection::vec(any::<u8>(), 5),
        one in proptest::collection::vec(any::<u8>(), 1..40),
        other in proptest::collection::vec(any::<u8>(), 1..40),
    ) {
        let (one, other) = (finish(&tasks, &manners, &one, 8), finish(&tasks, &manners, &other, 2));
        prop_assert_eq!(one.status(), other.status());
        for status in [TaskStatus::Completed, TaskStatus::Failed, TaskStatus::Blocked] {
            prop_assert_eq!(with_status(&one, status), with_status(&other, status));
        }
    }

    /// Every entry is checked against the invariants as it is written.
    #[test]
    fn whatever_people_ask_and_whenever_a_run_ends_and_replays_to_the_same(
        tasks in plans(),
        manners in proptest::collection::vec(any::<u8>(), 5),
        happenings in proptest::collection::vec(any::<(u8, u8)>(), 0..60),
        slots in 1_u32..9,
    ) {
        let mut fleet = Fleet::new();
        fleet.slots = Role::BUILT_IN.into_iter().map(|role| (queue(role), slots)).collect();
        fleet.submit("everything", RunLimits::default());
        for (n, happening) in (1..).zip(happenings) {
            happen(&mut fleet, n, happening, &tasks, &manners);
            keep_aside(&fleet);
        }
        if fleet.run().control.paused.is_some() {
            fleet.work(|offer| behave(offer, &tasks, &manners));
            fleet.ask(1000, RequestAction::Resume { deadline_ms: None });
        }
        // Nobody holds what was put down behind the run's back.
        fleet.turn(vec![Input::Capacity]);
        fleet.work(|offer| behave(offer, &tasks, &manners));
        prop_assert!(fleet.status().is_ended(), "{:?}", fleet.run());
        replay(&fleet);
    }

    #[test]
    fn a_run_goes_on_after_its_orchestrator_died_at_any_entry(
        tasks in plans(),
        manners in proptest::collection::vec(any::<u8>(), 5),
        picks in proptest::collection::vec(any::<u8>(), 1..40),
        died in any::<prop::sample::Index>(),
    ) {
        let whole = finish(&tasks, &manners, &picks, 8);
        let batches: Vec<usize> = whole.record.iter().enumerate()
            .filter(|(_, entry)| !matches!(entry.event, RecordEvent::Offered(_)))
            .map(|(at, _)| at).skip(1).collect();
        let mut fleet = Fleet { now: whole.now, ..Fleet::new() };
        fleet.record = whole.record[..batches[died.index(batches.len())]].to_vec();
        for entry in &fleet.record {
            apply(&mut fleet.run, entry).unwrap();
        }
        take_over(&mut fleet);
        fleet.work(|offer| behave(offer, &tasks, &manners));
        prop_assert_eq!(fleet.status(), whole.status());
        if whole.status() == RunStatus::Completed {
            let done = TaskStatus::Completed;
            prop_assert_eq!(with_status(&fleet, done), with_status(&whole, done));
        }
        replay(&fleet);
    }
}

/// The state that is kept aside is the whole of it: who goes on from there decides alike.
fn keep_aside(fleet: &Fleet) {
    let first = &fleet.record[0];
    let kept = encode(&Snapshot::of(fleet.run(), first.seq, None), Encoding::MessagePack).unwrap();
    let kept: Snapshot = decode_unbounded(&kept, Encoding::MessagePack).unwrap();
    let (restored, _) = kept.restore(first).unwrap();
    assert_eq!(&restored, fleet.run());
}

/// One thing that happens: somebody asks something, or an agent does something with an open offer.
fn happen(fleet: &mut Fleet, n: u128, (what, which): (u8, u8), tasks: &[TaskDraft], manners: &[u8]) {
    let task = TaskIndex::top(u16::from(which % 6) + 1);
    fleet.now = Millis(fleet.now.0 + 10);
    match what % 10 {
        0 => fleet.ask(n, RequestAction::Pause),
        1 => fleet.ask(n, RequestAction::Resume { deadline_ms: None }),
        2 => fleet.ask(n, RequestAction::Skip { task }),
        3 => fleet.ask(n, RequestAction::Redo { task }),
        4 => fleet.ask(n, RequestAction::Edit { task: Some(task), goal: "something new".into() }),
        5 if which < 64 => fleet.ask(n, RequestAction::Edit { task: None, goal: "a new goal".into() }),
        5 if which > 250 => fleet.turn(vec![cancel("bob", "")]),
        5 => fleet.turn(vec![Input::Capacity]),
        _ if fleet.open.is_empty() => fleet.turn(vec![Input::Timer]),
        doing => {
            let offer = fleet.open[usize::from(which) % fleet.open.len()].clone();
            match doing {
                6 => fleet.start(&offer),
                7 => fleet.park(&offer),
                _ => {
                    fleet.start(&offer);
                    let outcome = behave(&offer, tasks, manners);
                    fleet.end(&offer, outcome);
                }
            }
        }
    }
}

/// What another orchestrator does: decide upon what no decision has named. Agents hold what they held.
fn take_over(fleet: &mut Fleet) {
    let run = fleet.run();
    let mut inputs: Vec<Input> = run.undecided().collect();
    inputs.push(Input::Capacity);
    let newest = |offer: &TaskOffered| run.tasks[&offer.task].generation == offer.generation;
    let ended = |offer: &TaskOffered| {
        run.seen.get(&offer.task).is_some_and(|seen| seen.ended && seen.generation == offer.generation)
    };
    let held = |offer: &&TaskOffered| newest(offer) && !ended(offer);
    fleet.open = fleet.offered().into_iter().filter(held).cloned().collect();
    fleet.turn(inputs);
}
