//! Durable delegation without a model call, one at a time: a decision with its offer is appended, an agent takes the
//! task, appends `started` and `outcome`, the orchestrator has read the outcome, the task is acknowledged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use muster_bus::server::{LocalServer, ServerSettings};
use muster_bus::{Bus, RecordFilter};
use muster_shared::flow::{Ending, Outcome, RunLimits, TaskOffered};
use muster_shared::ids::{AgentId, Attempt, Generation, Queue, Role, RunId, Seq, TaskId};
use muster_shared::run::{AgentEvent, AgentKey, Decided, Input, RecordEvent, Started};
use muster_shared::secret::Redactor;
use muster_shared::time::Millis;
use muster_shared::wire::Encoding;
use muster_support::bare::broker;
use muster_support::figures::{Aim, Figure, Measured};
use uuid::Uuid;

use crate::print::median;

const ROUNDS: usize = 400;
/// Rounds before any count.
const WARM_UP: usize = 50;

pub(crate) fn measure() -> Vec<Figure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let measured = |sync_always: bool, name: &str| {
        let (rounds, bare) = runtime.block_on(with_server(sync_always));
        let part =
            |what: &str, time: Duration| Figure::new(format!("  {what}, {name}"), Measured::time(time));
        let phase = |of: fn(&Round) -> Duration| median(&mut rounds.iter().map(of).collect::<Vec<_>>());
        let whole = format!("durable delegation without a model call, {name}");
        vec![
            Figure::new(whole, Measured::time(phase(Round::whole)))
                .against("bare JetStream task round trip", Measured::time(bare))
                .aiming(Aim::TimesBare(1.5)),
            part("of which: decision and offer written", phase(|round| round.offered)),
            part("then: the agent has the task", phase(|round| round.taken)),
            part("then: started written", phase(|round| round.started)),
            part("then: outcome written", phase(|round| round.ended)),
            part("then: acknowledged, heard by the orchestrator", phase(|round| round.heard)),
        ]
    };
    [measured(true, "sync always"), measured(false, "default sync")].concat()
}

/// The parts of one delegation.
#[derive(Clone, Copy)]
struct Round {
    offered: Duration,
    taken: Duration,
    started: Duration,
    ended: Duration,
    heard: Duration,
}

impl Round {
    fn whole(&self) -> Duration {
        self.offered + self.taken + self.started + self.ended + self.heard
    }
}

async fn with_server(sync_always: bool) -> (Vec<Round>, Duration) {
    let store = tempfile::tempdir().unwrap();
    let settings =
        ServerSettings { store_dir: store.path().to_owned(), sync_always, ..ServerSettings::default() };
    let server = LocalServer::start(&settings).await.unwrap();
    muster_support::way::remember(&server.url(), store.path());
    let rounds = Box::pin(delegations(&server.url())).await;
    let mut bare = broker::task_round_trips(&server.url(), WARM_UP + ROUNDS).await.unwrap();
    server.stop().await.unwrap();
    (rounds[WARM_UP..].to_vec(), median(&mut bare[WARM_UP..]))
}

async fn delegations(url: &str) -> Vec<Round> {
    let settings = muster_support::way::settings(url);
    let connect = |name: &str| {
        let who: AgentId = name.parse().unwrap();
        let settings = settings.clone();
        async move { Bus::connect(&settings, &who, Arc::new(Redactor::default())).await.unwrap() }
    };
    let orchestrator = connect("orchestrator-bench").await;
    orchestrator.provision().await.unwrap();
    let agent = connect("worker-bench").await;
    let queue = agent.tasks().join(&Queue::Role(Role::Worker)).await.unwrap();
    let mut signals = orchestrator.record().follow(&RecordFilter::AgentSignals, Seq(0)).await.unwrap();

    let mut times = Vec::new();
    for _ in 0..WARM_UP + ROUNDS {
        let run = RunId::from_uuid(Uuid::now_v7());
        let offer = offer(run);
        let waiting = {
            let queue = queue.clone();
            tokio::spawn(async move { queue.take(Duration::from_secs(10)).await })
        };
        // The pull stands before the offer is made, as it does for an idle agent.
        tokio::time::sleep(Duration::from_millis(2)).await;
        let mut clock = Clock(Instant::now());
        let (decided, rest) = decided(orchestrator.who()).with_offers(vec![offer]);
        let record = orchestrator.record();
        record.append_decision(run, Seq(0), &decided, &rest, Encoding::MessagePack).await.unwrap();
        let offered = clock.lap();
        let taken = waiting.await.unwrap().unwrap().unwrap();
        let taken_after = clock.lap();
        let key = AgentKey {
            role: Role::Worker,
            agent: agent.who().clone(),
            task: TaskId::Write,
            generation: Generation(1),
        };
        let started = started(&taken.ack_subject);
        let seq =
            agent.record().append_agent(run, &key, Seq(0), &started, Encoding::MessagePack).await.unwrap();
        let started = clock.lap();
        agent.record().append_agent(run, &key, seq, &outcome(), Encoding::MessagePack).await.unwrap();
        let ended = clock.lap();
        let heard = async {
            while let Some(entry) = signals.next().await {
                if matches!(entry.unwrap().event, RecordEvent::Agent(_, AgentEvent::Outcome(_))) {
                    break;
                }
            }
        };
        let (done, ()) = tokio::join!(taken.done(), heard);
        done.unwrap();
        times.push(Round { offered, taken: taken_after, started, ended, heard: clock.lap() });
    }
    times
}

struct Clock(Instant);

impl Clock {
    fn lap(&mut self) -> Duration {
        let lap = self.0.elapsed();
        self.0 = Instant::now();
        lap
    }
}

fn decided(by: &AgentId) -> Decided {
    Decided {
        batch: Uuid::now_v7(),
        by: by.clone(),
        inputs: vec![Input::Capacity],
        now: Millis(1),
        basis: Seq(0),
        after: Seq(0),
        capacity: BTreeMap::new(),
        offers: 0,
        continues: false,
        specialists: Vec::new(),
        placements: Vec::new(),
        events: Vec::new(),
        offer: None,
    }
}

fn offer(run: RunId) -> TaskOffered {
    let work = serde_json::json!({ "write": { "results": [], "failed": [], "uncovered": [] } });
    let offer = serde_json::json!({
        "run": run, "task": TaskId::Write, "generation": 1, "queue": Queue::Role(Role::Worker), "work": work,
        "goal": "Delegate.", "limits": RunLimits::default(), "deadline": u64::MAX / 2, "nonce": "0".repeat(32),
        "encoding": Encoding::MessagePack,
    });
    serde_json::from_value(offer).unwrap()
}

fn started(ack: &str) -> AgentEvent {
    AgentEvent::Started(Started {
        attempt: Attempt(1),
        ack: ack.to_owned(),
        pid: 1,
        host: "bench".to_owned(),
        after_step: 0,
    })
}

fn outcome() -> AgentEvent {
    AgentEvent::Outcome(Outcome { ending: Ending::Done, reason: String::new(), ..Outcome::of_fault() }.into())
}
