//! Several orchestrators: who has which run, and what happens to the runs of one that dies, leaves or stands still.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::support::{self, Answer, Fleet, Orchestrator, at_once, good, leaf};
use muster_bus::{Bus, BusSettings, LeaseNote, RecordFilter, SeenLease};
use muster_orchestrator::OrchestratorSettings;
use muster_shared::flow::{Goal, RunLimits, TaskDraft};
use muster_shared::ids::{AgentId, Generation, RunId, Seq};
use muster_shared::run::event::RunCreated;
use muster_shared::run::{Decided, Input, RecordEvent, RunEvent, RunStatus, StopReason};
use muster_shared::secret::Redactor;
use muster_shared::time::Millis;
use muster_shared::wire::Encoding;
use uuid::Uuid;

fn bus() -> Bus {
    let settings = BusSettings { lease_ttl: Duration::from_secs(1), ..BusSettings::default() };
    Bus::in_memory_with(&AgentId::new("test", 0), settings, Arc::new(Redactor::default()))
}

fn tasks() -> Vec<TaskDraft> {
    vec![leaf("apples", &[]), leaf("pears", &[]), leaf("the sum", &["1", "2"])]
}

fn slowly(millis: u64) -> Answer {
    Arc::new(move |offer| Some((Duration::from_millis(millis), good(offer, &tasks()))))
}

fn orchestrator(n: u32) -> AgentId {
    AgentId::new("orchestrator", n)
}

/// Decisions of a run: by whom, and when.
async fn decisions(fleet: &Fleet, run: RunId) -> Vec<(AgentId, Millis)> {
    let entries = fleet.bus.record().read(&RecordFilter::Decisions(run), Seq(0)).await.unwrap();
    let decided = entries.into_iter().filter_map(|entry| match entry.event {
        RecordEvent::Decided(decided) => Some((decided.by, entry.at)),
        RecordEvent::Offered(_) | RecordEvent::Agent(..) => None,
    });
    decided.collect()
}

async fn owner(fleet: &Fleet, run: RunId) -> AgentId {
    decisions(fleet, run).await.pop().unwrap().0
}

async fn submit(fleet: &Fleet, count: usize) -> Vec<RunId> {
    let mut runs = Vec::new();
    for _ in 0..count {
        runs.push(fleet.submit(Goal::new("What is so?")).await);
    }
    for run in &runs {
        fleet.wait(*run, |_| true).await;
    }
    runs
}

async fn all_complete(fleet: &Fleet, runs: &[RunId]) {
    for run in runs {
        let state = fleet.finished(*run).await;
        assert_eq!(state.status, RunStatus::Completed, "{:?}", state.reason);
        assert!(
            state.tasks.values().all(|task| task.generation == Generation(1)),
            "nothing was offered twice"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runs_of_a_dead_orchestrator_are_shared_by_the_living() {
    let fleet = Fleet::start(bus(), 8, slowly(700)).await;
    let first = Orchestrator::start(&fleet.bus, 1);
    let runs = submit(&fleet, 12).await;
    let (_second, _third) = (Orchestrator::start(&fleet.bus, 2), Orchestrator::start(&fleet.bus, 3));
    let begin = Instant::now();
    while fleet.bus.leases().list().await.unwrap().len() < 3 {
        assert!(begin.elapsed() < support::LIMIT);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    first.kill();
    let killed = Instant::now();
    all_complete(&fleet, &runs).await;
    println!("12 runs were taken over and finished {:?} after the kill", killed.elapsed());
    let mut heirs: BTreeMap<AgentId, u32> = BTreeMap::new();
    for run in &runs {
        let authors: Vec<AgentId> = decisions(&fleet, *run).await.into_iter().map(|(by, _)| by).collect();
        let mut turns = authors.clone();
        turns.dedup();
        assert!(turns.len() <= 2, "a run changes hands once: {turns:?}");
        *heirs.entry(turns.pop().unwrap()).or_default() += 1;
    }
    println!("{heirs:?}");
    assert!(heirs.contains_key(&orchestrator(2)) && heirs.contains_key(&orchestrator(3)), "{heirs:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_creator_died_after_its_first_decision_is_found() {
    let fleet = Fleet::start(bus(), 2, at_once(|offer| good(offer, &tasks()))).await;
    let dead = fleet.bus.as_agent(&orchestrator(9));
    drop(dead.leases().begin(nothing_named()).await.unwrap());
    let run = RunId::from_uuid(Uuid::now_v7());
    dead.record().append_decision(run, Seq(0), &creation(&dead), &[], Encoding::default()).await.unwrap();
    let _living = Orchestrator::start(&fleet.bus, 1);
    all_complete(&fleet, &[run]).await;
    let begin = Instant::now();
    while fleet.bus.leases().list().await.unwrap().len() > 1 {
        assert!(begin.elapsed() < support::LIMIT, "the lease of the dead one is removed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Decisions with offers inside stand elsewhere in the record than others do.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_found_whose_heir_died_after_a_decision_with_an_offer_and_before_it_could_name_it() {
    let successor = orchestrator(9);
    let written = {
        let fleet = Fleet::start(bus(), 2, slowly(60_000)).await;
        let _author = Orchestrator::start(&fleet.bus, 9);
        let run = fleet.submit(Goal::new("What is so?")).await;
        fleet.wait(run, |state| state.tasks.values().any(|task| task.offered_at.is_some())).await;
        fleet.bus.record().read(&RecordFilter::Decisions(run), Seq(0)).await.unwrap()
    };
    let fleet = Fleet::start(bus(), 2, at_once(|offer| good(offer, &tasks()))).await;
    let dead = fleet.bus.as_agent(&successor);
    let record = dead.record();
    let (mut last, mut with_offer) = (Seq(0), false);
    let run = written[0].run;
    for entry in written {
        let RecordEvent::Decided(decided) = entry.event else { continue };
        with_offer |= decided.offer.is_some();
        // Its lease names a position just before what it did last.
        if decided.offer.is_some() {
            let note = LeaseNote { through: last.into(), ..nothing_named() };
            drop(dead.leases().begin(note).await.unwrap());
        }
        let appended = record.append_decision(run, last, &decided, &[], Encoding::default());
        last = appended.await.unwrap().last;
        if with_offer {
            break;
        }
    }
    assert!(with_offer, "the decision that offers the plan holds it");
    let _living = Orchestrator::start(&fleet.bus, 1);
    all_complete(&fleet, &[run]).await;
}

/// An orchestrator that cannot handle a run leaves it alone for a while, and may die meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_left_alone_is_not_lost_with_its_orchestrator() {
    let fleet = Fleet::start(bus(), 2, at_once(|offer| good(offer, &tasks()))).await;
    let dead = fleet.bus.as_agent(&orchestrator(9));
    let run = RunId::from_uuid(Uuid::now_v7());
    let (record, creation) = (dead.record(), creation(&dead));
    let created = record.append_decision(run, Seq(0), &creation, &[], Encoding::default());
    let through = created.await.unwrap().last;
    drop(
        dead.leases()
            .begin(LeaseNote { through: through.into(), left_alone: vec![run], ..nothing_named() })
            .await
            .unwrap(),
    );
    let _living = Orchestrator::start(&fleet.bus, 1);
    all_complete(&fleet, &[run]).await;
}

/// Nobody rings but whoever has the run: that its time is up is seen by whoever comes after all have died.
#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_a_run_is_up_whoever_died_meanwhile() {
    let fleet = Fleet::start(bus(), 1, Arc::new(|_| None)).await;
    let deadline_ms = |millis| Goal { deadline_ms: Some(millis), ..Goal::new("What is so?") };
    let (first, second) = (Orchestrator::start(&fleet.bus, 1), Orchestrator::start(&fleet.bus, 2));
    let (while_dead, after) =
        (fleet.submit(deadline_ms(1_500)).await, fleet.submit(deadline_ms(3_000)).await);
    for run in [while_dead, after] {
        fleet.wait(run, |state| !state.tasks.is_empty()).await;
    }
    first.kill();
    second.kill();
    let open = fleet.fold(while_dead).await.unwrap();
    assert!(!open.status.is_ended(), "no orchestrator is online");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    tokio::time::sleep(Duration::from_millis(open.deadline.0).saturating_sub(now)).await;
    let _third = Orchestrator::start(&fleet.bus, 3);
    for run in [while_dead, after] {
        let ended = fleet.finished(run).await;
        assert_eq!(ended.status, RunStatus::Aborted(StopReason::DeadlinePassed), "{:?}", ended.reason);
        assert!(ended.ended_at.is_some_and(|at| at >= ended.deadline), "not before its time");
    }
}

/// An orchestrator that reads a run of another event version stops owning it, and never skips the event.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_another_event_version_is_left_alone() {
    let fleet = Fleet::start(bus(), 2, at_once(|offer| good(offer, &tasks()))).await;
    let dead = fleet.bus.as_agent(&orchestrator(9));
    let run = RunId::from_uuid(Uuid::now_v7());
    let mut unknown = creation(&dead);
    if let Some(RunEvent::RunCreated(created)) = unknown.events.first_mut() {
        created.event_version += 1;
    }
    drop(dead.leases().begin(LeaseNote { runs: vec![run], ..nothing_named() }).await.unwrap());
    dead.record().append_decision(run, Seq(0), &unknown, &[], Encoding::default()).await.unwrap();
    let _living = Orchestrator::start(&fleet.bus, 1);
    let begin = Instant::now();
    let is_left = |lease: &SeenLease| lease.holder == orchestrator(1) && lease.note.left_alone == [run];
    while !fleet.bus.leases().list().await.unwrap().iter().any(is_left) {
        assert!(begin.elapsed() < support::LIMIT, "the lease names it among those that are left alone");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(decisions(&fleet, run).await.len(), 1, "nothing follows from what is not known");
}

fn nothing_named() -> LeaseNote {
    LeaseNote {
        room: 8,
        runs: Vec::new(),
        through: Seq(0).into(),
        domains: Vec::new(),
        left_alone: Vec::new(),
        given_up: false,
    }
}

fn creation(bus: &Bus) -> Decided {
    let (goal, limits, secret) = (Box::new(Goal::new("What is so?")), RunLimits::default(), "ab".repeat(32));
    let deadline = Millis(u64::MAX / 2);
    let (lessons, signed) = (Vec::new(), None);
    let (its_goal, its_limits, its_secret) = (goal.clone(), limits.clone(), secret.clone());
    let input = Input::Goal { goal: its_goal, limits: its_limits, secret: its_secret, lessons, signed };
    let created = RunEvent::RunCreated(RunCreated { goal, limits, event_version: 1, secret, deadline });
    let decided = serde_json::json!({
        "batch": Uuid::new_v4(), "by": bus.who(), "inputs": [input], "now": 1, "basis": 0, "after": 0, "offers": 0,
        "events": [created],
    });
    serde_json::from_value(decided).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orchestrator_that_leaves_gives_its_runs_over_within_a_second() {
    let fleet = Fleet::start(bus(), 8, slowly(300)).await;
    let first = Orchestrator::start(&fleet.bus, 1);
    let runs = submit(&fleet, 6).await;
    let _second = Orchestrator::start(&fleet.bus, 2);
    let begin = Instant::now();
    while fleet.bus.leases().list().await.unwrap().len() < 2 {
        assert!(begin.elapsed() < support::LIMIT);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    first.stop();
    let left = Instant::now();
    all_complete(&fleet, &runs).await;
    println!("6 runs were handed over and finished {:?} after the stop", left.elapsed());
    for run in &runs {
        let decisions = decisions(&fleet, *run).await;
        let last_of_first = decisions.iter().rposition(|(by, _)| *by == orchestrator(1));
        assert!(
            decisions.iter().skip(last_of_first.map_or(0, |at| at + 1)).all(|(by, _)| *by == orchestrator(2))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_reach_the_owner_whoever_takes_them_from_the_queue() {
    let fleet = Fleet::start(bus(), 1, Arc::new(|_| None)).await;
    let (_one, _two) = (Orchestrator::start(&fleet.bus, 1), Orchestrator::start(&fleet.bus, 2));
    let runs = submit(&fleet, 16).await;
    let mut owners = Vec::new();
    for run in &runs {
        owners.push(owner(&fleet, *run).await);
    }
    let begin = Instant::now();
    for run in &runs {
        fleet.cancel(*run).await;
    }
    for (run, owner_before) in runs.iter().zip(owners) {
        assert!(matches!(fleet.finished(*run).await.status, RunStatus::Aborted(_)));
        assert_eq!(owner(&fleet, *run).await, owner_before, "only its owner decides");
    }
    println!("16 cancels by two orchestrators: {:?}", begin.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_goal_that_finds_one_orchestrator_full_goes_to_another() {
    let fleet = Fleet::start(bus(), 1, Arc::new(|_| None)).await;
    let settings = OrchestratorSettings { max_runs: 2, ..OrchestratorSettings::default() };
    let _one = Orchestrator::with(&fleet.bus, 1, settings.clone());
    let _two = Orchestrator::with(&fleet.bus, 2, settings);
    let runs = submit(&fleet, 4).await;
    let mut owners: BTreeMap<AgentId, u32> = BTreeMap::new();
    for run in runs {
        *owners.entry(owner(&fleet, run).await).or_default() += 1;
    }
    assert_eq!(owners, BTreeMap::from([(orchestrator(1), 2), (orchestrator(2), 2)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_takeover_goes_on_from_a_kept_state_and_from_the_record_if_that_is_broken() {
    for broken in [false, true] {
        let fleet = Fleet::start(bus(), 2, slowly(100)).await;
        let settings = OrchestratorSettings { snapshot_every: 5, ..OrchestratorSettings::default() };
        let first = Orchestrator::with(&fleet.bus, 1, settings.clone());
        let run = submit(&fleet, 1).await.remove(0);
        let newest = format!("snap/{run}/newest");
        let begin = Instant::now();
        let at = loop {
            if let Some(at) = fleet.bus.store().get(&newest).await.unwrap() {
                break String::from_utf8(at.to_vec()).unwrap();
            }
            assert!(begin.elapsed() < support::LIMIT, "a state is kept");
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        first.kill();
        let name = format!("snap/{run}/{at}");
        let kept = fleet.bus.store().get(&name).await.unwrap().unwrap();
        let secret = fleet.fold(run).await.unwrap().secret;
        assert!(!String::from_utf8_lossy(&kept).contains(&secret));
        if broken {
            fleet.bus.store().put_named(&name, kept.slice(..kept.len() / 2)).await.unwrap();
        }
        let _second = Orchestrator::with(&fleet.bus, 2, settings);
        all_complete(&fleet, &[run]).await;
        let begin = Instant::now();
        loop {
            let gone = fleet.bus.store().get(&name).await.unwrap().is_none();
            let newer = fleet.bus.store().get(&newest).await.unwrap().unwrap();
            if broken || gone == (newer != at.as_bytes()) {
                break;
            }
            assert!(begin.elapsed() < support::LIMIT, "only the newest is kept");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
