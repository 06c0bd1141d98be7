use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use futures::StreamExt;
use muster_bus::{ControlTarget, RecordFilter};
use muster_shared::flow::{Ending, ObservationStatus, Outcome, Product, Step, TaskOffered};
use muster_shared::ids::{AgentId, Attempt, Generation, RunId, Seq, TaskId};
use muster_shared::run::event::TaskOrphaned;
use muster_shared::run::{AgentEvent, Decided, EventKind, RecordEvent, RunEvent};
use muster_shared::wire::{ControlMessage, LiveKind};
use serde_json::{Value, json};
use uuid::Uuid;

mod alone;
mod approval;
mod endings;
mod handing_over;
mod held;
mod park;
mod rights;
mod slots;
mod steps;
mod stopping;
mod uncertain;
mod wait;

use super::*;
use crate::model::chat::{
    ChatAnswer, ChatModel, ChatRequest, ChatRole, Delta, ModelError, ModelErrorKind, TokenUsage, ToolCall,
};
use crate::react::model::{ChatClient, ModelClient};
use crate::react::prompt::CallStyle;
use crate::testing::{answered, leaf, offer, planning, writing};
use crate::tools::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
use muster_offline::OfflineModel;

const LIMIT: Duration = Duration::from_secs(20);

/// Runs a test inside an actix system on a multi-threaded runtime, as the program does.
fn in_system(test: impl Future<Output = ()>) {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let system = actix::System::with_tokio_rt(runtime);
    system.block_on(async { tokio::time::timeout(LIMIT, test).await.expect("the test ends in time") });
}

/// Runs a test with a new bus.
fn on_ground(test: impl AsyncFnOnce(Ground)) {
    in_system(async { test(Ground::new()).await });
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The next offer of a task that was suspended.
fn next(offer: &TaskOffered) -> TaskOffered {
    let continues = offer.continues.or(Some(offer.generation));
    TaskOffered { generation: offer.generation.next(), continues, ..offer.clone() }
}

type Script = Arc<dyn Fn(usize, &ChatRequest) -> Result<ChatAnswer, ModelError> + Send + Sync>;

/// A model that answers by a script: which question of this task it is (from 0), and the request.
struct Scripted {
    script: Script,
    delay: Duration,
    /// By step: how many answers were given in full.
    finished: Mutex<BTreeMap<usize, u32>>,
    asked: AtomicU32,
}

impl Scripted {
    fn new(
        script: impl Fn(usize, &ChatRequest) -> Result<ChatAnswer, ModelError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::slow(Duration::ZERO, script)
    }

    fn slow(
        delay: Duration,
        script: impl Fn(usize, &ChatRequest) -> Result<ChatAnswer, ModelError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (finished, asked) = (Mutex::default(), AtomicU32::new(0));
        Arc::new(Self { script: Arc::new(script), delay, finished, asked })
    }
}

#[async_trait]
impl ChatModel for Scripted {
    async fn ask(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatAnswer, ModelError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(self.delay).await;
        let question = request.messages.iter().filter(|message| message.role == ChatRole::Assistant).count();
        let answer = (self.script)(question, request)?;
        on_delta(Delta::Text(format!("{} ", answer.text)));
        *self.finished.lock().unwrap().entry(question).or_default() += 1;
        Ok(answer)
    }

    fn describe(&self) -> String {
        "test/scripted".into()
    }
}

fn answer(text: &str, calls: Vec<ToolCall>) -> Result<ChatAnswer, ModelError> {
    let (usage, provider) = (TokenUsage { input: 100, output: 10, cached: 0 }, "test".into());
    Ok(ChatAnswer { tool_calls: calls, usage, provider, ..answered(text) })
}

fn calls(tool: &str, arguments: Value) -> Result<ChatAnswer, ModelError> {
    answer("I need to know.", vec![ToolCall::new("c", tool, arguments)])
}

fn compute(n: usize) -> Result<ChatAnswer, ModelError> {
    calls("calculator", json!({"expression": format!("{n} + 1")}))
}

fn submits(conclusion: &str) -> Result<ChatAnswer, ModelError> {
    calls("submit", json!({"ending": "done", "conclusion": conclusion}))
}

/// A bus, and what is asked of agents on it.
struct Ground {
    bus: Bus,
    folder: tempfile::TempDir,
    names: AtomicU32,
}

impl Ground {
    fn new() -> Self {
        let bus = Bus::in_memory(&AgentId::new("orchestrator", 0));
        Self { bus, folder: tempfile::tempdir().unwrap(), names: AtomicU32::new(1) }
    }

    fn context(&self, role: Role, model: ModelClient) -> AgentContext {
        self.kit_that_drains(role, model, Duration::from_millis(100))
    }

    fn kit_that_drains(&self, role: Role, model: ModelClient, drain: Duration) -> AgentContext {
        let name = AgentId::new(&role.to_string(), self.names.fetch_add(1, Ordering::Relaxed));
        let settings =
            AgentSettings { cache_dir: self.folder.path().join("cache"), drain, ..AgentSettings::default() };
        let models: ModelClientFactory = Arc::new(move |_| Ok(model.clone()));
        AgentContext::new(self.bus.as_agent(&name), role, settings, Arc::new(Redactor::default()), models)
    }

    fn chat_kit(&self, role: Role, model: &Arc<Scripted>) -> AgentContext {
        let model: Arc<dyn ChatModel> = model.clone();
        self.context(role, ModelClient::Chat(ChatClient::new(model, CallStyle::Native)))
    }

    /// Starts an agent; it stops with the guard.
    fn start(&self, context: AgentContext) -> Running {
        let stop = CancellationToken::new();
        let agent = context.bus().who().clone();
        let handle = actix::spawn(run_with(Arc::new(context), stop.clone()));
        Running { stop, agent, handle }
    }

    async fn offer(&self, offer: &TaskOffered) {
        self.decide(offer.run, &[], std::slice::from_ref(offer)).await;
    }

    async fn decide(&self, run: RunId, events: &[RunEvent], offers: &[TaskOffered]) {
        let decided = json!({
            "batch": Uuid::now_v7(), "by": self.bus.who(), "inputs": [], "now": muster_bus::now(), "basis": 0,
            "after": 0, "offers": offers.len(), "events": events,
        });
        let decided: Decided = serde_json::from_value(decided).unwrap();
        let before = self.bus.record().read(&RecordFilter::Decisions(run), Seq(0)).await.unwrap();
        let after = before.last().map_or(Seq(0), |entry| entry.seq);
        let encoding = muster_shared::wire::Encoding::default();
        self.bus.record().append_decision(run, after, &decided, offers, encoding).await.unwrap();
    }

    /// An orchestrator decides that an agent is lost with the task.
    async fn orphan(&self, offer: &TaskOffered, agent: &AgentId) {
        let lost = RunEvent::TaskOrphaned(TaskOrphaned {
            task: offer.task.clone(),
            generation: offer.generation,
            attempt: Attempt(1),
            agent: agent.clone(),
            reason: "its connection ended".into(),
            last_step: 0,
            beside: 0,
        });
        self.decide(offer.run, &[lost], &[]).await;
    }

    async fn entries(&self, offer: &TaskOffered) -> Vec<(AgentId, AgentEvent)> {
        let entries = self.bus.record().read(&filter(offer), Seq(0)).await.unwrap();
        let agents = entries.into_iter().filter_map(|entry| match entry.event {
            RecordEvent::Agent(key, event) => Some((key.agent, event)),
            RecordEvent::Decided(_) | RecordEvent::Offered(_) => None,
        });
        agents.collect()
    }

    async fn kinds(&self, offer: &TaskOffered) -> Vec<EventKind> {
        self.entries(offer).await.iter().map(|(_, event)| event.kind()).collect()
    }

    async fn steps(&self, offer: &TaskOffered) -> Vec<Step> {
        let entries = self.entries(offer).await;
        let steps = entries.into_iter().filter_map(|(_, event)| match event {
            AgentEvent::Step(step) => Some(step),
            _ => None,
        });
        steps.collect()
    }

    /// Waits for an event of the task.
    async fn until<T>(&self, offer: &TaskOffered, found: impl Fn(AgentEvent) -> Option<T>) -> T {
        let mut entries = self.bus.record().follow(&filter(offer), Seq(0)).await.unwrap();
        while let Some(entry) = entries.next().await {
            if let RecordEvent::Agent(_, event) = entry.unwrap().event
                && let Some(found) = found(event)
            {
                return found;
            }
        }
        panic!("the record ended");
    }

    async fn outcome(&self, offer: &TaskOffered) -> Outcome {
        self.until(offer, |event| match event {
            AgentEvent::Outcome(outcome) => Some(Outcome::clone(&outcome)),
            _ => None,
        })
        .await
    }

    /// One task by one agent, from offer to outcome. What the agent decided can be decided again from the record.
    async fn done(&self, context: AgentContext, offer: &TaskOffered) -> Outcome {
        let running = self.start(context);
        self.offer(offer).await;
        let outcome = self.outcome(offer).await;
        running.stop().await;
        let entries = self.bus.record().read(&RecordFilter::Run(offer.run), Seq(0)).await.unwrap();
        crate::react::replay::replay(&entries).unwrap();
        outcome
    }
}

fn filter(offer: &TaskOffered) -> RecordFilter {
    RecordFilter::Task { run: offer.run, task: offer.task.clone(), generation: offer.generation }
}

struct Running {
    stop: CancellationToken,
    agent: AgentId,
    handle: tokio::task::JoinHandle<Result<(), AgentError>>,
}

impl Running {
    async fn stop(self) {
        self.stop.cancel();
        self.handle.await.unwrap().unwrap();
    }
}

fn conclusion(outcome: &Outcome) -> &str {
    match &outcome.product {
        Some(Product::Result(result)) => &result.conclusion,
        other => panic!("no result: {other:?}"),
    }
}

fn reach(interrupt: crate::react::interrupt::Interrupts) -> guard::Reach {
    guard::Reach { interrupt, mailbox: crate::react::mailbox::Mailbox::default(), slot: Default::default() }
}

impl Ground {
    /// One task of a worker that asks this model.
    async fn does(&self, model: &Arc<Scripted>) -> (TaskOffered, Outcome) {
        let offer = leaf(Role::Worker);
        let outcome = self.done(self.chat_kit(Role::Worker, model), &offer).await;
        (offer, outcome)
    }

    /// Waits until the task is released.
    async fn released(&self, offer: &TaskOffered) -> muster_shared::run::Released {
        let released = self.until(offer, |event| match event {
            AgentEvent::Released(released) => Some(released),
            _ => None,
        });
        released.await
    }

    async fn done_by(&self, context: AgentContext, offer: &TaskOffered) -> Outcome {
        let running = self.start(context);
        let outcome = self.outcome(offer).await;
        running.stop().await;
        outcome
    }
}
