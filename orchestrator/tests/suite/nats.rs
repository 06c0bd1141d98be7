//! Whole runs on a real server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{Fleet, Orchestrator, good, leaf};
use muster_bus::server::{LocalServer, ServerSettings};
use muster_bus::{Bus, BusSettings, RecordFilter};
use muster_shared::flow::{Goal, PlanDraft, TaskDraft, TaskOffered};
use muster_shared::ids::{AgentId, Generation, RunId, Seq, TaskId};
use muster_shared::run::{RunState, RunStatus, StopReason};
use muster_shared::secret::Redactor;
use muster_support::foreign::{Stranger, UNREADABLE};
use tempfile::TempDir;

fn tasks() -> Vec<TaskDraft> {
    vec![leaf("apples", &[]), leaf("pears", &[]), leaf("the sum", &["1", "2"])]
}

/// Who has begun a task of a run.
async fn at_work(fleet: &Fleet, run: RunId, task: &TaskId) -> AgentId {
    let holder = |state: &RunState| state.seen.get(task).and_then(|seen| seen.agent.clone());
    let state = fleet.wait(run, |state| holder(state).is_some()).await;
    holder(&state).unwrap()
}

/// Publishes as a program does that has a NATS client and nothing else.
async fn publish(url: String, subject: String, payload: &'static str) {
    let publishing = std::thread::spawn(move || {
        let stranger = Stranger::connect(&url).unwrap();
        stranger.publish(&subject, payload.as_bytes()).unwrap();
        stranger.flush().unwrap();
    });
    tokio::task::spawn_blocking(move || publishing.join().unwrap()).await.unwrap();
}

async fn letters(bus: &Bus, subject: &str) -> Vec<String> {
    let letters = bus.dead().list(100).await.unwrap();
    letters.into_iter().filter(|letter| letter.subject == subject).map(|letter| letter.reason).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_wrote_and_nobody_can_read_costs_a_try_and_no_run() {
    let (_folder, server, bus) = started().await;
    // The first try of the only leaf is never ended by its agent.
    let one = || vec![leaf("apples", &[])];
    let answer = move |offer: &TaskOffered| {
        let hangs = matches!(offer.task, TaskId::Leaf(_)) && offer.generation == Generation(1);
        (!hangs).then(|| (Duration::ZERO, good(offer, &one())))
    };
    let fleet = Fleet::start(bus, 16, Arc::new(answer)).await;
    let _orchestrator = Orchestrator::start(&fleet.bus, 1);
    for (kind, payload, field) in UNREADABLE {
        let run =
            fleet.submit(Goal { plan: Some(Box::new(plan_of(one()))), ..Goal::new("What is so?") }).await;
        let task: TaskId = "1".parse().unwrap();
        let agent = at_work(&fleet, run, &task).await;
        let subject = format!("evt.{run}.worker.{agent}.1.1.{kind}");
        publish(server.url(), format!("evt.{run}.nonsense"), "of no task").await;
        publish(server.url(), subject.clone(), payload).await;
        let state = fleet.finished(run).await;
        assert_eq!(state.status, RunStatus::Completed, "{payload}: {:?}", state.reason);
        let reasons = state.tasks[&task].reasons.join("; ");
        assert!(reasons.contains(field) && reasons.contains("cannot be read"), "{payload}: {reasons}");
        let entries = fleet.bus.record().read(&RecordFilter::Run(run), Seq(0)).await.unwrap();
        muster_orchestrator::replay::replay(run, &entries).unwrap();
        assert_eq!(muster_shared::run::gaps(&entries), []);
        let letters = letters(&fleet.bus, &subject).await;
        assert_eq!(letters.len(), 1, "{payload}: {letters:?}");
        assert!(letters[0].contains(field), "{letters:?}");
    }
    drop(fleet);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_with_an_entry_that_cannot_be_read_is_cancelled_and_meets_its_deadline() {
    let (_folder, server, bus) = started().await;
    let one = || vec![leaf("apples", &[])];
    let answer =
        move |offer: &TaskOffered| offer.task.leaf().is_none().then(|| (Duration::ZERO, good(offer, &one())));
    let fleet = Fleet::start(bus, 16, Arc::new(answer)).await;
    let first = Orchestrator::start(&fleet.bus, 1);
    let plan = || Some(Box::new(plan_of(one())));
    let deadline_ms = Some(4_000);
    let short = fleet.submit(Goal { plan: plan(), deadline_ms, ..Goal::new("What is so?") }).await;
    let long = fleet.submit(Goal { plan: plan(), ..Goal::new("What is so?") }).await;
    let task: TaskId = "1".parse().unwrap();
    for run in [short, long] {
        let agent = at_work(&fleet, run, &task).await;
        publish(server.url(), format!("evt.{run}.worker.{agent}.1.1.outcome"), "I am done.").await;
    }
    // Whoever takes the runs over reads what stands there as well.
    first.kill();
    let _second = Orchestrator::start(&fleet.bus, 2);
    fleet.wait(long, |state| state.tasks[&task].generation > Generation(1)).await;
    fleet.cancel(long).await;
    assert_eq!(fleet.finished(long).await.status, RunStatus::Aborted(StopReason::Cancelled));
    assert!(fleet.finished(short).await.status.is_ended());
    drop(fleet);
    server.stop().await.unwrap();
}

async fn started() -> (TempDir, LocalServer, Bus) {
    let folder = tempfile::tempdir().unwrap();
    let settings =
        ServerSettings { store_dir: folder.path().join("nats"), port: 0, ..ServerSettings::default() };
    let server = LocalServer::start(&settings).await.unwrap();
    muster_support::way::remember(&server.url(), &folder.path().join("nats"));
    let settings = BusSettings { lease_ttl: Duration::from_secs(1), ..BusSettings::of_server(&server) };
    let bus = Bus::connect(&settings, &AgentId::new("test", 0), Arc::new(Redactor::default())).await.unwrap();
    bus.provision().await.unwrap();
    (folder, server, bus)
}

fn plan_of(tasks: Vec<TaskDraft>) -> PlanDraft {
    PlanDraft { goal: "the goal".into(), tasks, ..PlanDraft::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_complete_on_a_real_server_and_outlive_their_orchestrator() {
    let (_folder, server, bus) = started().await;
    let pause = Duration::from_millis(100);
    let fleet = Fleet::start(bus, 4, Arc::new(move |offer| Some((pause, good(offer, &tasks()))))).await;

    let first = Orchestrator::start(&fleet.bus, 1);
    let begin = Instant::now();
    let run = fleet.submit(Goal::new("What is so?")).await;
    let state = fleet.finished(run).await;
    assert_eq!(state.status, RunStatus::Completed, "{:?}", state.reason);
    let entries = fleet.bus.record().read(&RecordFilter::Run(run), Seq(0)).await.unwrap().len();
    println!("a run of 5 phases at 100 ms each on NATS: {:?}, {entries} entries", begin.elapsed());

    let run = fleet.submit(Goal::new("What is so?")).await;
    fleet.wait(run, |state| state.plan.is_some()).await;
    first.kill();
    assert!(!fleet.fold(run).await.unwrap().status.is_ended());
    let _second = Orchestrator::start(&fleet.bus, 2);
    let state = fleet.finished(run).await;
    assert_eq!(state.status, RunStatus::Completed, "{:?}", state.reason);
    drop(fleet);
    server.stop().await.unwrap();
}
