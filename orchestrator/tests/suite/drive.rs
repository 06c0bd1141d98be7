//! Whole runs: orchestrators in actix systems of their own, simulated agents, and a bus in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{self, Fleet, Orchestrator, at_once, failure, good, leaf, outcome};
use muster_bus::{Bus, BusSettings, RecordFilter};
use muster_orchestrator::OrchestratorSettings;
use muster_shared::flow::{
    Ending, Goal, People, Product, RefineOperation, Reflection, RunLimits, TaskDraft, TaskStatus, Work,
};
use muster_shared::ids::{AgentId, Generation, RunId, Seq, TaskId, TaskIndex};
use muster_shared::run::{RecordEvent, RunStatus, StopReason};
use muster_shared::secret::Redactor;

fn bus() -> Bus {
    let settings = BusSettings { lease_ttl: Duration::from_secs(1), ..BusSettings::default() };
    Bus::in_memory_with(&AgentId::new("test", 0), settings, Arc::new(Redactor::default()))
}

fn tasks() -> Vec<TaskDraft> {
    let mut last = leaf("the sum", &["1", "2"]);
    last.goal = "put together {{1.result}} and {{2.result}}".into();
    vec![leaf("apples", &[]), leaf("pears", &[]), last]
}

fn goal() -> Goal {
    Goal::new("What is so, and why?")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_goal_becomes_a_report() {
    let fleet = Fleet::start(bus(), 4, at_once(|offer| good(offer, &tasks()))).await;
    let orchestrator = Orchestrator::start(&fleet.bus, 1);
    let run = fleet.submit(goal()).await;
    let state = fleet.finished(run).await;
    assert_eq!(state.status, RunStatus::Completed, "{:?}", state.reason);
    assert_eq!(state.reflections().count(), 3);
    assert_eq!(state.report.unwrap().body, "apples is so\npears is so\nthe sum is so");
    assert_eq!(state.spending.used.model_calls, 8);
    let third = offers(&fleet, run).await.into_iter().find(|task| task.0 == "3").unwrap();
    assert!(third.1.contains("apples is so and pears is so"), "{}", third.1);
    orchestrator.stop();
    assert!(fleet.bus.leases().list().await.unwrap().is_empty(), "nothing was left to others");
}

/// Tasks that were offered, with the goal of leaves.
async fn offers(fleet: &Fleet, run: RunId) -> Vec<(String, String)> {
    let entries = fleet.bus.record().read(&RecordFilter::Run(run), Seq(0)).await.unwrap();
    let offers = entries.into_iter().filter_map(|entry| match entry.event {
        RecordEvent::Offered(offer) => Some(offer),
        RecordEvent::Decided(decided) => decided.offer.map(|offer| *offer),
        RecordEvent::Agent(..) => None,
    });
    offers
        .map(|offer| {
            let goal = match offer.work {
                Work::Execute { task, .. } => task.goal,
                _ => String::new(),
            };
            (offer.task.to_string(), goal)
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_tried_again_and_what_is_missing_is_added() {
    let answer = at_once(|offer| match (&offer.work, offer.generation) {
        (Work::Execute { .. }, Generation(1)) => failure(Ending::AgentFailed, "crashed"),
        (Work::Reflect { index, .. }, _) if *index == TaskIndex::top(1) => {
            let refine = Some("plums are missing".into());
            outcome(Product::Reflection(Reflection { refine, ..Reflection::default() }))
        }
        (Work::Refine { reasons, .. }, _) => {
            assert_eq!(reasons, &["1: plums are missing"]);
            let add = RefineOperation::Add { after: TaskIndex::top(2), tasks: vec![leaf("plums", &[])] };
            outcome(Product::Refinement(vec![add]))
        }
        _ => good(offer, &tasks()),
    });
    let fleet = Fleet::start(bus(), 2, answer).await;
    let _orchestrator = Orchestrator::start(&fleet.bus, 1);
    let run = fleet.submit(goal()).await;
    let state = fleet.finished(run).await;
    assert_eq!(state.status, RunStatus::Completed, "{:?}", state.reason);
    assert_eq!(state.refining.done.len(), 1);
    assert!(state.report.unwrap().body.contains("plums is so"));
    let leaves = state.tasks.iter().filter(|(task, _)| matches!(task, TaskId::Leaf(_)));
    assert!(leaves.clone().count() == 4 && leaves.clone().all(|(_, leaf)| leaf.generation == Generation(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planner_that_fails_ends_in_an_honest_failure() {
    let fleet = Fleet::start(bus(), 2, at_once(|_| failure(Ending::ModelFailed, "401"))).await;
    let _orchestrator = Orchestrator::start(&fleet.bus, 1);
    let run = fleet.submit(goal()).await;
    let state = fleet.finished(run).await;
    assert_eq!(state.status, RunStatus::Failed);
    assert!(state.reason.unwrap().contains("no plan could be made in 3 tries: 401"));
}

#[tokio::test(flavor = "multi_thread")]
async fn goals_that_are_none_are_refused_on_record() {
    let fleet = Fleet::start(bus(), 1, at_once(|offer| good(offer, &tasks()))).await;
    let people = People { approve_by: vec!["ann".to_owned()], ..People::default() };
    let limits = RunLimits { people, ..RunLimits::default() };
    let settings = OrchestratorSettings { limits, ..OrchestratorSettings::default() };
    let _orchestrator = Orchestrator::with(&fleet.bus, 1, settings);
    let empty = fleet.submit(Goal::new(" ")).await;
    let others = People { approve_by: vec!["cy".to_owned()], ..People::default() };
    let others = RunLimits { people: others, ..RunLimits::default() };
    let others = fleet.submit(Goal { limits: Some(others), ..goal() }).await;
    let others = fleet.finished(others).await;
    assert!(others.reason.unwrap().contains("in this fleet ann may approve"));
    let long = fleet.submit(Goal::new("why ".repeat(100_000))).await;
    let empty = fleet.finished(empty).await;
    let long = fleet.finished(long).await;
    assert!(empty.reason.unwrap().contains("the goal is empty"));
    assert!(long.reason.unwrap().contains("the goal has 400000 bytes"));
    assert!(long.goal.text.len() < 300);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_at_its_deadline_whatever_its_agents_do() {
    let fleet = Fleet::start(bus(), 1, Arc::new(|_| None)).await;
    let _orchestrator = Orchestrator::start(&fleet.bus, 1);
    let begin = Instant::now();
    let run = fleet.submit(Goal { deadline_ms: Some(700), ..goal() }).await;
    let state = fleet.finished(run).await;
    assert_eq!(state.status, RunStatus::Aborted(StopReason::DeadlinePassed));
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_can_be_cancelled() {
    let fleet = Fleet::start(bus(), 1, Arc::new(|_| None)).await;
    let _orchestrator = Orchestrator::start(&fleet.bus, 1);
    let run = fleet.submit(goal()).await;
    fleet.wait(run, |state| state.seen.contains_key(&TaskId::Plan)).await;
    fleet.cancel(run).await;
    let state = fleet.finished(run).await;
    assert_eq!(state.status, RunStatus::Aborted(StopReason::Cancelled));
    assert!(state.reason.unwrap().contains("enough"));
    assert_eq!(state.tasks[&TaskId::Plan].status, TaskStatus::Aborted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_for_a_run_that_does_not_exist_becomes_a_dead_letter() {
    let fleet = Fleet::start(bus(), 1, at_once(|offer| good(offer, &tasks()))).await;
    let _orchestrator = Orchestrator::start(&fleet.bus, 1);
    fleet.cancel(RunId::from_uuid(uuid::Uuid::from_u128(404))).await;
    let begin = Instant::now();
    loop {
        let dead = fleet.bus.dead().list(10).await.unwrap();
        if let Some(letter) = dead.first() {
            assert!(letter.reason.contains("there is no run"), "{}", letter.reason);
            break;
        }
        assert!(begin.elapsed() < support::LIMIT);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_runs_go_on_at_once_and_none_starves() {
    let fleet = Fleet::start(bus(), 4, at_once(|offer| good(offer, &tasks()))).await;
    let _orchestrator = Orchestrator::start(&fleet.bus, 1);
    let begin = Instant::now();
    let mut runs = Vec::new();
    for _ in 0..50 {
        runs.push(fleet.submit(goal()).await);
    }
    for run in runs {
        let state = fleet.finished(run).await;
        assert_eq!(state.status, RunStatus::Completed, "{:?}", state.reason);
        let generations = state.tasks.values().filter(|task| task.generation > Generation(1)).count();
        assert_eq!(generations, 0, "nothing was offered twice");
    }
    println!("50 runs of 3 leaves at once, in memory: {:?}", begin.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn goals_beyond_the_limit_wait_or_are_refused() {
    let fleet = Fleet::start(bus(), 1, Arc::new(|_| None)).await;
    let settings = OrchestratorSettings {
        max_runs: 1,
        patience: Duration::from_secs(1),
        ..OrchestratorSettings::default()
    };
    let _orchestrator = Orchestrator::with(&fleet.bus, 1, settings);
    let first = fleet.submit(goal()).await;
    fleet.wait(first, |_| true).await;
    let second = fleet.submit(goal()).await;
    let state = fleet.finished(second).await;
    assert!(state.reason.unwrap().contains("1 run is still going on"));
    assert!(!fleet.fold(first).await.unwrap().status.is_ended());
}

#[tokio::test(flavor = "multi_thread")]
async fn goal_that_waits_for_room_can_be_cancelled() {
    let fleet = Fleet::start(bus(), 1, Arc::new(|_| None)).await;
    let settings = OrchestratorSettings { max_runs: 1, ..OrchestratorSettings::default() };
    let _orchestrator = Orchestrator::with(&fleet.bus, 1, settings);
    let first = fleet.submit(Goal { deadline_ms: Some(4_000), ..goal() }).await;
    fleet.wait(first, |_| true).await;
    let second = fleet.submit(goal()).await;
    fleet.cancel(second).await;
    let state = fleet.finished(second).await;
    assert_eq!(state.status, RunStatus::Aborted(StopReason::Cancelled), "{:?}", state.reason);
}

/// Who decided how often.
async fn deciders(fleet: &Fleet, run: RunId) -> BTreeMap<AgentId, u32> {
    let mut by = BTreeMap::new();
    for entry in fleet.bus.record().read(&RecordFilter::Decisions(run), Seq(0)).await.unwrap() {
        if let RecordEvent::Decided(decided) = entry.event {
            *by.entry(decided.by).or_default() += 1;
        }
    }
    by
}

#[tokio::test(flavor = "multi_thread")]
async fn two_orchestrators_share_the_runs_and_every_run_has_one_author_at_a_time() {
    let fleet = Fleet::start(bus(), 4, at_once(|offer| good(offer, &tasks()))).await;
    let _one = Orchestrator::start(&fleet.bus, 1);
    let _two = Orchestrator::start(&fleet.bus, 2);
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(fleet.submit(goal()).await);
    }
    for run in runs {
        assert_eq!(fleet.finished(run).await.status, RunStatus::Completed);
        assert_eq!(deciders(&fleet, run).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_workload_stays_within_its_write_budget_when_driven() {
    let eight: Vec<TaskDraft> = (1..=8).map(|n| leaf(&format!("part {n}"), &[])).collect();
    let fleet = Fleet::start(bus(), 8, at_once(move |offer| good(offer, &eight))).await;
    let _orchestrator = Orchestrator::start(&fleet.bus, 1);
    let limits = RunLimits { max_width: 8, ..RunLimits::default() };
    let run = fleet.submit(Goal { limits: Some(limits), ..goal() }).await;
    let state = fleet.finished(run).await;
    assert_eq!(state.status, RunStatus::Completed, "{:?}", state.reason);
    let entries = fleet.bus.record().read(&RecordFilter::Run(run), Seq(0)).await.unwrap().len();
    println!("driven workload W without its 24 steps: {entries} entries of 66");
    assert!(entries <= 66, "{entries}");
}
