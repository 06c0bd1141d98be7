//! A fleet of simulated agents on a bus, and orchestrators in systems of their own.

#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use muster_bus::{AppendError, Bus, RecordFilter, TakenTask};
use muster_orchestrator::{OrchestratorSettings, run, with_system};
use muster_shared::flow::{
    DraftReview, Ending, Goal, Outcome, PlanDraft, Product, RefineOperation, Reflection, Report, TaskDraft,
    TaskOffered, TaskResult, Usage, Work,
};
use muster_shared::ids::{AgentId, Attempt, Queue, Role, RunId, Seq};
use muster_shared::run::{
    AgentEvent, AgentKey, RecordEvent, Request, RequestAction, RunEvent, RunState, Started, apply,
};
use muster_shared::wire::{Command, Encoding, Profile};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Longest wait for anything.
pub const LIMIT: Duration = Duration::from_secs(30);

/// How an agent answers: with an outcome after a while, or never.
pub type Answer = Arc<dyn Fn(&TaskOffered) -> Option<(Duration, Outcome)> + Send + Sync>;

pub struct Fleet {
    pub bus: Bus,
    stop: CancellationToken,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Fleet {
    /// Agents of every built-in role with this many slots each.
    pub async fn start(bus: Bus, slots: u32, answer: Answer) -> Self {
        let stop = CancellationToken::new();
        for (n, role) in Role::BUILT_IN.into_iter().enumerate() {
            let agent = AgentId::new(&role.to_string(), u32::try_from(n).unwrap());
            let bus = bus.as_agent(&agent);
            let announced = bus.registry().announce(profile(&agent, &role, slots)).await.unwrap();
            let queue = bus.tasks().join(&Queue::Role(role.clone())).await.unwrap();
            for _ in 0..slots {
                let (bus, queue, role, answer) = (bus.clone(), queue.clone(), role.clone(), answer.clone());
                let stop = stop.clone();
                tokio::spawn(async move {
                    while !stop.is_cancelled() {
                        if let Ok(Some(task)) = queue.take(Duration::from_millis(200)).await {
                            tokio::select! {
                                () = stop.cancelled() => {}
                                () = work(&bus, &role, task, &answer) => {}
                            }
                        }
                    }
                });
            }
            let stop = stop.clone();
            tokio::spawn(async move {
                stop.cancelled().await;
                drop(announced);
            });
        }
        Self { bus, stop }
    }

    pub async fn submit(&self, goal: Goal) -> RunId {
        let run = RunId::from_uuid(Uuid::now_v7());
        let command = Command::Submit { run, goal: Box::new(goal) };
        self.bus.commands().send(&command, Encoding::default()).await.unwrap();
        run
    }

    pub async fn cancel(&self, run: RunId) {
        let command = Command::Request(Request::new(run, RequestAction::Cancel).because("enough"));
        self.bus.commands().send(&command, Encoding::default()).await.unwrap();
    }

    pub async fn fold(&self, run: RunId) -> Option<RunState> {
        let mut state = None;
        for entry in self.bus.record().read(&RecordFilter::Run(run), Seq(0)).await.unwrap() {
            apply(&mut state, &entry).unwrap();
        }
        state
    }

    /// The run once `when` holds.
    pub async fn wait(&self, run: RunId, when: impl Fn(&RunState) -> bool) -> RunState {
        let begin = Instant::now();
        loop {
            let state = self.fold(run).await;
            if let Some(state) = state.as_ref().filter(|state| when(state)) {
                return state.clone();
            }
            assert!(begin.elapsed() < LIMIT, "waited too long; the run stands at {state:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn finished(&self, run: RunId) -> RunState {
        self.wait(run, |state| state.status.is_ended()).await
    }

    /// How often each task was begun, and all decided events.
    pub async fn events(&self, run: RunId) -> Vec<RunEvent> {
        let entries = self.bus.record().read(&RecordFilter::Decisions(run), Seq(0)).await.unwrap();
        let decided = entries.into_iter().filter_map(|entry| match entry.event {
            RecordEvent::Decided(decided) => Some(decided.events),
            RecordEvent::Offered(_) | RecordEvent::Agent(..) => None,
        });
        decided.flatten().collect()
    }
}

/// An orchestrator in a thread with an actix system of its own.
pub struct Orchestrator {
    stop: CancellationToken,
    kill: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Orchestrator {
    pub fn start(bus: &Bus, number: u32) -> Self {
        Self::with(bus, number, OrchestratorSettings::default())
    }

    pub fn with(bus: &Bus, number: u32, settings: OrchestratorSettings) -> Self {
        let bus = bus.as_agent(&AgentId::new("orchestrator", number));
        let (stop, kill) = (CancellationToken::new(), CancellationToken::new());
        let (stopped, killed) = (stop.clone(), kill.clone());
        let thread = std::thread::spawn(move || {
            with_system(|| async move {
                tokio::select! {
                    ended = run(bus, settings, stopped) => ended.unwrap(),
                    // The system goes down with everything in it; nothing is given up in good order.
                    () = killed.cancelled() => {}
                }
            })
            .unwrap();
        });
        Self { stop, kill, thread: Some(thread) }
    }

    /// Stops it in good order.
    pub fn stop(mut self) {
        self.stop.cancel();
        self.thread.take().unwrap().join().unwrap();
    }

    /// Lets it die in the middle of whatever it does.
    pub fn kill(mut self) {
        self.kill.cancel();
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Orchestrator {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn work(bus: &Bus, role: &Role, taken: TakenTask, answer: &Answer) {
    let offer = taken.offer.clone();
    let key = AgentKey {
        role: role.clone(),
        agent: bus.who().clone(),
        task: offer.task.clone(),
        generation: offer.generation,
    };
    let filter =
        RecordFilter::Task { run: offer.run, task: offer.task.clone(), generation: offer.generation };
    let before = bus.record().read(&filter, Seq(0)).await.unwrap();
    let last = before.last().map_or(Seq(0), |entry| entry.seq);
    let ended = |event: &RecordEvent| matches!(event, RecordEvent::Agent(_, AgentEvent::Outcome(_)));
    if before.iter().any(|entry| ended(&entry.event)) {
        return taken.done().await.unwrap();
    }
    let started = Started {
        attempt: Attempt(u32::try_from(before.len()).unwrap() + 1),
        ack: taken.ack_subject.clone(),
        pid: 1,
        host: "here".into(),
        after_step: 0,
    };
    let Some(last) = write(bus, &offer, &key, last, AgentEvent::Started(started)).await else { return };
    let Some((pause, outcome)) = answer(&offer) else { return std::future::pending().await };
    tokio::time::sleep(pause).await;
    write(bus, &offer, &key, last, AgentEvent::Outcome(outcome.into())).await;
    taken.done().await.unwrap();
}

async fn write(bus: &Bus, offer: &TaskOffered, key: &AgentKey, after: Seq, event: AgentEvent) -> Option<Seq> {
    match bus.record().append_agent(offer.run, key, after, &event, offer.encoding).await {
        Ok(seq) => Some(seq),
        Err(AppendError::Conflict) => None,
        Err(error) => panic!("{error}"),
    }
}

fn profile(agent: &AgentId, role: &Role, slots: u32) -> Profile {
    let profile =
        serde_json::json!({ "agent": agent, "role": role.to_string(), "slots": slots, "model": "scripted" });
    serde_json::from_value(profile).unwrap()
}

pub fn outcome(product: Product) -> Outcome {
    let (reason, usage) = (String::new(), Usage { model_calls: 1, ..Usage::default() });
    Outcome { ending: Ending::Done, reason, product: Some(product), usage, ..Outcome::of_fault() }
}

pub fn failure(ending: Ending, reason: &str) -> Outcome {
    Outcome { ending, reason: reason.into(), product: None, ..outcome(Product::Report(Report::default())) }
}

pub fn leaf(name: &str, needs: &[&str]) -> TaskDraft {
    TaskDraft {
        name: name.into(),
        goal: format!("find out about {name}"),
        role: Some("worker".into()),
        expected_output: "a sentence".into(),
        depends_on: needs.iter().map(|on| (*on).to_owned()).collect(),
        ..TaskDraft::default()
    }
}

/// Answers as agents do that do everything well, with this plan.
pub fn good(offer: &TaskOffered, tasks: &[TaskDraft]) -> Outcome {
    match &offer.work {
        Work::Plan { .. } => outcome(Product::Plan(PlanDraft {
            goal: "the goal".into(),
            tasks: tasks.to_vec(),
            ..PlanDraft::default()
        })),
        Work::Execute { task, .. } => {
            let conclusion = format!("{} is so", task.name);
            outcome(Product::Result(TaskResult { conclusion, ..TaskResult::default() }))
        }
        Work::Reflect { .. } => outcome(Product::Reflection(Reflection::default())),
        Work::DraftReview { .. } => outcome(Product::DraftReview(DraftReview::default())),
        Work::Refine { .. } => {
            outcome(Product::Refinement(vec![RefineOperation::Exit { reason: "fine".into() }]))
        }
        Work::Write { results, .. } => {
            let body: Vec<&str> = results.iter().map(|leaf| leaf.result.conclusion.as_str()).collect();
            outcome(Product::Report(Report {
                title: "Report".into(),
                body: body.join("\n"),
                ..Report::default()
            }))
        }
    }
}

pub fn at_once(answer: impl Fn(&TaskOffered) -> Outcome + Send + Sync + 'static) -> Answer {
    Arc::new(move |offer| Some((Duration::ZERO, answer(offer))))
}
