#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use futures::StreamExt;
use muster_bus::{ControlTarget, RecordFilter};
use muster_shared::flow::{Ending, ObservationStatus, Outcome, Product, Step, TaskOffered, Work};
use muster_shared::ids::{AgentId, Attempt, Generation, RunId, Seq, TaskId};
use muster_shared::run::{AgentEvent, Decided, EventKind, RecordEvent, RunEvent};
use muster_shared::wire::{ControlMessage, LiveKind};
use serde_json::{Value, json};
use uuid::Uuid;

mod alone;
mod held;
mod park;
mod uncertain;
mod wait;

use super::*;
use crate::model::chat::{
    ChatAnswer, ChatModel, ChatRequest, ChatRole, Delta, FinishReason, ModelError, ModelErrorKind,
    TokenUsage, ToolCall, Wasted,
};
use crate::model::offline::OfflineModel;
use crate::react::model::{ChatClient, ModelClient};
use crate::react::prompt::CallStyle;
use crate::testing::{leaf, offer};
use crate::tools::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};

const LIMIT: Duration = Duration::from_secs(20);

/// Runs a test inside an actix system on a multi-threaded runtime, as the program does.
fn in_system(test: impl Future<Output = ()>) {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let system = actix::System::with_tokio_rt(runtime);
    system.block_on(async { tokio::time::timeout(LIMIT, test).await.expect("the test ends in time") });
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
    Ok(ChatAnswer {
        text: text.into(),
        reasoning: None,
        tool_calls: calls,
        usage: TokenUsage { input: 100, output: 10, cached: 0 },
        wasted: Wasted::default(),
        model: "scripted".into(),
        provider: "test".into(),
        finish: FinishReason::Stop,
        millis: 1,
    })
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
        self.decide(offer.run, Vec::new(), std::slice::from_ref(offer)).await;
    }

    async fn decide(&self, run: RunId, events: Vec<RunEvent>, offers: &[TaskOffered]) {
        let decided = Decided {
            batch: Uuid::now_v7(),
            by: self.bus.who().clone(),
            inputs: Vec::new(),
            now: now(),
            basis: Seq(0),
            after: None,
            capacity: BTreeMap::new(),
            offers: u32::try_from(offers.len()).unwrap(),
            offer: None,
            continues: false,
            specialists: Vec::new(),
            placements: Vec::new(),
            events,
        };
        let before = self.bus.record().read(&RecordFilter::Decisions(run), Seq(0)).await.unwrap();
        let after = before.last().map_or(Seq(0), |entry| entry.seq);
        let encoding = muster_shared::wire::Encoding::default();
        self.bus.record().append_decision(run, after, &decided, offers, encoding).await.unwrap();
    }

    /// An orchestrator decides that an agent is lost with the task.
    async fn orphan(&self, offer: &TaskOffered, agent: &AgentId) {
        let lost = RunEvent::TaskOrphaned {
            task: offer.task.clone(),
            generation: offer.generation,
            attempt: Attempt(1),
            agent: agent.clone(),
            reason: "its connection ended".into(),
            last_step: 0,
            beside: 0,
        };
        self.decide(offer.run, vec![lost], &[]).await;
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
            AgentEvent::Outcome(outcome) => Some(outcome),
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

#[test]
fn a_leaf_of_three_tool_steps_makes_five_entries() {
    in_system(async {
        let ground = Ground::new();
        let model = Scripted::new(|question, _| if question < 3 { compute(question) } else { submits("4") });
        let offer = leaf(Role::Worker);
        let outcome = ground.done(ground.chat_kit(Role::Worker, &model), &offer).await;
        use EventKind::{Outcome, Started, Step};
        assert_eq!(ground.kinds(&offer).await, [Started, Step, Step, Step, Outcome]);
        assert_eq!((outcome.ending, conclusion(&outcome)), (Ending::Done, "4"));
        assert_eq!(
            (outcome.usage.model_calls, outcome.usage.tool_calls, outcome.usage.input_tokens),
            (4, 3, 400)
        );
        assert_eq!(outcome.steps.len(), 4);
        assert_eq!(outcome.steps[0].action, "calculator 0 + 1");
        let steps = ground.steps(&offer).await;
        assert!(steps[0].observation.as_ref().unwrap().content.contains('1'));
        assert_eq!(steps[1].calls[0].same_messages, 2, "the prompt is kept as what was added");
        assert_eq!(outcome.last_step.unwrap().number, 4);
        assert!(ground.bus.tasks().waiting().await.unwrap().values().all(|count| *count == 0));
    });
}

#[test]
fn a_single_answer_makes_two_entries() {
    in_system(async {
        let ground = Ground::new();
        let document = "Here you are:\n{\"goal\": \"g\", \"tasks\": [{\"name\": \"a\", \"goal\": \"b\"}]}";
        let model = Scripted::new(|_, _| answer(document, Vec::new()));
        let plan = offer(
            TaskId::Plan,
            Role::Planner,
            Work::Plan {
                refused: Vec::new(),
                roles: vec!["worker".into()],
                lessons: Vec::new(),
                specialists: Vec::new(),
                tools: Vec::new(),
                blueprints: Vec::new(),
                draft: None,
                replan: None,
                answers: Vec::new(),
            },
        );
        let outcome = ground.done(ground.chat_kit(Role::Planner, &model), &plan).await;
        assert_eq!(ground.kinds(&plan).await, [EventKind::Started, EventKind::Outcome]);
        assert!(matches!(outcome.product, Some(Product::Plan(draft)) if draft.tasks.len() == 1));
    });
}

#[test]
fn offline_rules_go_through_the_same_loop() {
    in_system(async {
        let ground = Ground::new();
        let write = Work::Write {
            results: Vec::new(),
            failed: Vec::new(),
            uncovered: vec!["all of it".into()],
            stale: Vec::new(),
            conflicts: Vec::new(),
            revision: None,
        };
        let write = offer(TaskId::Write, Role::Writer, write);
        let outcome =
            ground.done(ground.context(Role::Writer, ModelClient::Offline(OfflineModel)), &write).await;
        assert_eq!(ground.kinds(&write).await, [EventKind::Started, EventKind::Outcome]);
        assert!(matches!(outcome.product, Some(Product::Report(report)) if report.offline));
        assert_eq!(outcome.usage.model_calls, 0);
        assert!(!outcome.last_step.unwrap().thought.text.is_empty());
    });
}

#[test]
fn what_goes_wrong_becomes_an_observation_and_work_goes_on() {
    in_system(async {
        let ground = Ground::new();
        let model = Scripted::new(|question, _| match question {
            0 => calls("calculater", json!({})),
            1 | 2 => compute(7),
            3 => calls("calculator", json!({"formula": 1})),
            4 => calls("test.panic", json!({})),
            _ => submits("done after all"),
        });
        let offer = leaf(Role::Worker);
        let context = ground.chat_kit(Role::Worker, &model).with_tools([Arc::new(Panics) as Arc<dyn Tool>]);
        let outcome = ground.done(context, &offer).await;
        assert_eq!(outcome.ending, Ending::Done);
        let seen: Vec<_> =
            ground.steps(&offer).await.into_iter().map(|step| step.observation.unwrap()).collect();
        use ObservationStatus::{Error, Refused, Success};
        assert_eq!(
            seen.iter().map(|seen| seen.status).collect::<Vec<_>>(),
            [Refused, Success, Refused, Refused, Error]
        );
        assert!(seen[0].content.contains("Did you mean `calculator`?"), "{}", seen[0].content);
        assert!(seen[2].content.contains("step 2"), "{}", seen[2].content);
        assert!(seen[4].content.contains("broke"), "{}", seen[4].content);
    });
}

struct Panics;

#[async_trait]
impl Tool for Panics {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("test.panic", "panics", json!({"type": "object"}))
    }

    async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        panic!("a fault of the tool")
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_asked_again_in_the_same_step() {
    in_system(async {
        let ground = Ground::new();
        let model = Scripted::new(|question, request| match question {
            0 => answer("Well, let me see.", Vec::new()),
            _ => {
                let told = &request.messages.last().unwrap().content;
                assert!(told.contains("not taken") && told.contains("\"conclusion\""), "{told}");
                submits("read")
            }
        });
        let offer = leaf(Role::Worker);
        let outcome = ground.done(ground.chat_kit(Role::Worker, &model), &offer).await;
        assert_eq!((outcome.ending, conclusion(&outcome)), (Ending::Done, "read"));
        assert_eq!(ground.kinds(&offer).await, [EventKind::Started, EventKind::Outcome]);
        let calls = outcome.last_step.unwrap().calls;
        assert_eq!((calls.len(), calls[1].same_messages, calls[1].messages.len()), (2, 2, 2));
    });
}

#[test]
fn at_the_limit_of_steps_the_best_there_is_counts() {
    in_system(async {
        let ground = Ground::new();
        let model = Scripted::new(|question, _| compute(question));
        let mut offer = leaf(Role::Worker);
        offer.limits.max_steps = 3;
        let outcome = ground.done(ground.chat_kit(Role::Worker, &model), &offer).await;
        assert_eq!(outcome.ending, Ending::DonePartial);
        assert!(outcome.reason.contains("limit of 3 steps"), "{}", outcome.reason);
        assert_eq!(ground.steps(&offer).await.len(), 2);
        assert_eq!(
            outcome.usage.model_calls,
            2 + 3,
            "the last step is asked three times, and all is counted"
        );
    });
}

#[test]
fn a_model_that_fails_for_good_ends_the_task_with_its_reason() {
    in_system(async {
        let ground = Ground::new();
        let model = Scripted::new(|question, _| match question {
            0 => compute(1),
            _ => Err(ModelError::new(
                ModelErrorKind::Unauthorized,
                "test/scripted",
                "the key is wrong: set TEST_KEY",
            )),
        });
        let offer = leaf(Role::Worker);
        let outcome = ground.done(ground.chat_kit(Role::Worker, &model), &offer).await;
        assert_eq!(outcome.ending, Ending::ModelFailed);
        assert!(outcome.reason.contains("set TEST_KEY"), "{}", outcome.reason);
        assert_eq!(outcome.usage.model_calls, 1);
    });
}

#[test]
fn a_server_without_native_calls_is_asked_in_text() {
    in_system(async {
        let ground = Ground::new();
        let model = Scripted::new(|question, request| {
            if !request.tools.is_empty() {
                return Err(ModelError::new(
                    ModelErrorKind::BadRequest,
                    "test/scripted",
                    "tools are not supported",
                ));
            }
            assert!(request.system.contains("\"action\""), "{}", request.system);
            match question {
                0 => answer(
                    "{\"thought\": \"t\", \"action\": \"calculator\", \"arguments\": {\"expression\": \"2*3\"}}",
                    Vec::new(),
                ),
                _ => answer(
                    "{\"thought\": \"t\", \"action\": \"submit\", \"arguments\": {\"ending\": \"done\", \"conclusion\": \"6\"}}",
                    Vec::new(),
                ),
            }
        });
        let offer = leaf(Role::Worker);
        let outcome = ground.done(ground.chat_kit(Role::Worker, &model), &offer).await;
        assert_eq!((outcome.ending, conclusion(&outcome)), (Ending::Done, "6"));
    });
}

#[test]
fn a_fault_of_ours_ends_one_task_and_nothing_else() {
    in_system(async {
        let ground = Ground::new();
        let broken = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&broken);
        let model = Scripted::new(move |question, _| match question {
            0 => compute(1),
            _ if seen.fetch_add(1, Ordering::Relaxed) == 0 => panic!("a fault of ours"),
            _ => submits("fine"),
        });
        let running = ground.start(ground.chat_kit(Role::Worker, &model));
        let first = leaf(Role::Worker);
        ground.offer(&first).await;
        let outcome = ground.outcome(&first).await;
        assert_eq!(outcome.ending, Ending::AgentFailed);
        assert!(outcome.reason.contains("a fault of ours"), "{}", outcome.reason);
        assert_eq!(outcome.usage.model_calls, 1, "what the record holds is counted");
        let second = leaf(Role::Worker);
        ground.offer(&second).await;
        assert_eq!(ground.outcome(&second).await.ending, Ending::Done);
        running.stop().await;
    });
}

#[test]
fn a_cancelled_task_ends_at_once() {
    in_system(async {
        let ground = Ground::new();
        let model = Scripted::slow(Duration::from_secs(60), |_, _| submits("too late"));
        let running = ground.start(ground.chat_kit(Role::Worker, &model));
        let offer = leaf(Role::Worker);
        ground.offer(&offer).await;
        while model.asked.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let begun = Instant::now();
        let cancel = ControlMessage::CancelRun { run: offer.run, reason: "not needed".into() };
        ground.bus.control().send(&ControlTarget::All, &cancel).await.unwrap();
        let outcome = ground.outcome(&offer).await;
        // The call lasts a minute.
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert_eq!((outcome.ending, outcome.reason.as_str()), (Ending::Cancelled, "not needed"));
        running.stop().await;
    });
}

#[test]
fn a_task_ends_at_its_deadline() {
    in_system(async {
        let ground = Ground::new();
        let model = Scripted::slow(Duration::from_secs(60), |_, _| submits("too late"));
        let mut offer = leaf(Role::Worker);
        offer.deadline = now().after(Duration::from_millis(300));
        let outcome = ground.done(ground.chat_kit(Role::Worker, &model), &offer).await;
        assert_eq!(outcome.ending, Ending::DeadlinePassed);
    });
}

#[test]
fn another_agent_goes_on_after_the_last_step_and_repeats_no_finished_call() {
    in_system(async {
        let ground = Ground::new();
        let model = Scripted::slow(Duration::from_millis(5), |question, _| match question {
            0..7 => compute(question),
            _ => submits("all eight"),
        });
        let offer = leaf(Role::Worker);
        ground.offer(&offer).await;
        let first = Arc::new(ground.chat_kit(Role::Worker, &model));
        let queue = first.bus().tasks().join(&offer.queue).await.unwrap();
        let task = queue.take(Duration::from_secs(5)).await.unwrap().unwrap();
        let ack = task.ack_subject.clone();
        let (_interrupt, watched) = watch::channel(None);
        let working = tokio::spawn(guard::guard(first, task, reach(watched)));
        ground
            .until(&offer, |event| matches!(event, AgentEvent::Step(step) if step.number == 5).then_some(()))
            .await;
        working.abort();
        assert!(working.await.unwrap_err().is_cancelled());

        let running = ground.start(ground.chat_kit(Role::Worker, &model));
        ground.bus.tasks().hand_on(&ack).await.unwrap();
        let outcome = ground.outcome(&offer).await;
        assert_eq!((outcome.ending, conclusion(&outcome)), (Ending::Done, "all eight"));
        let entries = ground.entries(&offer).await;
        let starts: Vec<_> = entries
            .iter()
            .filter_map(|(agent, event)| match event {
                AgentEvent::Started(started) => Some((agent.clone(), started.attempt.0, started.after_step)),
                _ => None,
            })
            .collect();
        let after = starts[1].2;
        assert!(after >= 5, "{starts:?}");
        assert_eq!((starts.len(), starts[1].0.clone(), starts[1].1), (2, running.agent.clone(), 2));
        let numbers: Vec<_> = ground.steps(&offer).await.iter().map(|step| step.number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
        // The answer on its way when the agent vanished may be asked for again; what was journaled may not.
        for (question, times) in &*model.finished.lock().unwrap() {
            let journaled_by_first = *question < usize::try_from(after).unwrap();
            assert!(
                *times == 1 || (!journaled_by_first && *question == usize::try_from(after).unwrap()),
                "{question}: {times}"
            );
        }
        let steps = ground.steps(&offer).await;
        assert!(steps.iter().skip(1).all(|step| step.calls[0].same_messages > 0), "the prompt goes on, too");
        running.stop().await;
    });
}

#[test]
fn an_offer_that_was_made_again_meanwhile_is_not_worked_on() {
    in_system(async {
        let ground = Ground::new();
        let model = Scripted::new(|_, _| submits("once"));
        let old = leaf(Role::Worker);
        ground.offer(&old).await;
        let context = Arc::new(ground.chat_kit(Role::Worker, &model));
        let queue = context.bus().tasks().join(&old.queue).await.unwrap();
        let wait = Duration::from_secs(5);
        queue.take(wait).await.unwrap().unwrap().hand_back(Duration::ZERO).await.unwrap();
        let new = TaskOffered { generation: old.generation.next(), ..old.clone() };
        ground.offer(&new).await;
        for _ in 0..2 {
            let task = queue.take(wait).await.unwrap().unwrap();
            let (_interrupt, watched) = watch::channel(None);
            guard::guard(Arc::clone(&context), task, reach(watched)).await;
        }
        assert_eq!(ground.kinds(&old).await, []);
        use EventKind::{Outcome, Started};
        assert_eq!(ground.kinds(&new).await, [Started, Outcome]);
        assert_eq!(ground.bus.tasks().waiting().await.unwrap().values().sum::<u64>(), 0);
    });
}

#[test]
fn who_lost_a_task_says_nothing_more() {
    in_system(async {
        let ground = Ground::new();
        let model = Scripted::slow(Duration::from_millis(300), |_, _| submits("slow"));
        let quick = Scripted::new(|_, _| submits("quick"));
        let offer = leaf(Role::Worker);
        ground.offer(&offer).await;
        let slow = Arc::new(ground.chat_kit(Role::Worker, &model));
        let slow_one = slow.bus().who().clone();
        let queue = slow.bus().tasks().join(&offer.queue).await.unwrap();
        let task = queue.take(Duration::from_secs(5)).await.unwrap().unwrap();
        let ack = task.ack_subject.clone();
        let (_interrupt, watched) = watch::channel(None);
        let working = tokio::spawn(guard::guard(slow, task, reach(watched)));
        ground.until(&offer, |event| matches!(event, AgentEvent::Started(_)).then_some(())).await;
        ground.orphan(&offer, &slow_one).await;
        ground.bus.tasks().hand_on(&ack).await.unwrap();
        let outcome = ground.done_by(ground.chat_kit(Role::Worker, &quick), &offer).await;
        working.await.unwrap();
        assert_eq!(conclusion(&outcome), "quick");
        use EventKind::{Outcome, Started};
        assert_eq!(ground.kinds(&offer).await, [Started, Started, Outcome]);
    });
}

impl Ground {
    async fn done_by(&self, context: AgentContext, offer: &TaskOffered) -> Outcome {
        let running = self.start(context);
        let outcome = self.outcome(offer).await;
        running.stop().await;
        outcome
    }
}

#[test]
fn an_agent_that_stops_hands_its_task_over() {
    in_system(async {
        let ground = Ground::new();
        let stuck = Scripted::slow(Duration::from_secs(60), |_, _| submits("never"));
        let running = ground.start(ground.chat_kit(Role::Worker, &stuck));
        let offer = leaf(Role::Worker);
        ground.offer(&offer).await;
        while stuck.asked.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        running.stop().await;
        let quick = Scripted::new(|_, _| submits("by another"));
        let outcome = ground.done_by(ground.chat_kit(Role::Worker, &quick), &offer).await;
        assert_eq!(conclusion(&outcome), "by another");
        use EventKind::{Outcome, Released, Started};
        assert_eq!(ground.kinds(&offer).await, [Started, Released, Started, Outcome]);
    });
}

#[test]
fn an_agent_that_stops_finishes_the_step_in_hand_and_begins_no_other() {
    in_system(async {
        let ground = Ground::new();
        let slow = Scripted::slow(Duration::from_millis(400), |question, _| compute(question));
        let model: Arc<dyn ChatModel> = slow.clone();
        let model = ModelClient::Chat(ChatClient::new(model, CallStyle::Native));
        let running = ground.start(ground.kit_that_drains(Role::Worker, model, Duration::from_secs(10)));
        let offer = leaf(Role::Worker);
        ground.offer(&offer).await;
        while slow.asked.load(Ordering::Relaxed) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let begun = Instant::now();
        running.stop().await;
        assert!(begun.elapsed() < Duration::from_secs(5), "it waits for the step and no longer");
        assert_eq!(slow.asked.load(Ordering::Relaxed), 2, "no further call is begun");
        let quick = Scripted::new(|_, _| submits("by another"));
        let outcome = ground.done_by(ground.chat_kit(Role::Worker, &quick), &offer).await;
        assert_eq!(conclusion(&outcome), "by another");
        assert_eq!(quick.asked.load(Ordering::Relaxed), 1, "no finished step is taken again");
        use EventKind::{Outcome, Released, Started, Step};
        assert_eq!(ground.kinds(&offer).await, [Started, Step, Step, Released, Started, Outcome]);
    });
}

#[test]
fn a_tool_with_lasting_effect_is_announced_before_it_runs() {
    in_system(async {
        let ground = Ground::new();
        let model = Scripted::new(|question, _| match question {
            0 => calls("workspace_write", json!({"path": "a.md", "text": "x"})),
            _ => submits("written"),
        });
        let offer = leaf(Role::Worker);
        let outcome = ground.done(ground.chat_kit(Role::Worker, &model), &offer).await;
        use EventKind::{Outcome, Started, Step, Tool};
        assert_eq!(ground.kinds(&offer).await, [Started, Tool, Step, Outcome]);
        assert_eq!(outcome.ending, Ending::Done);
        let steps = ground.steps(&offer).await;
        assert_eq!(steps[0].observation.as_ref().unwrap().status, ObservationStatus::Success, "{steps:?}");
    });
}

#[test]
fn slots_work_at_the_same_time_and_no_more_than_there_are() {
    in_system(async {
        let ground = Ground::new();
        let (now_busy, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let tool = Counts { busy: Arc::clone(&now_busy), most: Arc::clone(&most) };
        let model = Scripted::new(
            |question, _| if question == 0 { calls("test.count", json!({})) } else { submits("ok") },
        );
        let context = ground.chat_kit(Role::Worker, &model).with_tools([Arc::new(tool) as Arc<dyn Tool>]);
        let running = ground.start(context);
        let offers: Vec<_> = (0..24).map(|_| leaf(Role::Worker)).collect();
        for offer in &offers {
            ground.offer(offer).await;
        }
        for offer in &offers {
            assert_eq!(ground.outcome(offer).await.ending, Ending::Done);
        }
        assert_eq!(most.load(Ordering::Relaxed), 8);
        running.stop().await;
    });
}

struct Counts {
    busy: Arc<AtomicU32>,
    most: Arc<AtomicU32>,
}

#[async_trait]
impl Tool for Counts {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("test.count", "counts", json!({"type": "object"}))
    }

    async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        let busy = self.busy.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(busy, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(60)).await;
        self.busy.fetch_sub(1, Ordering::SeqCst);
        Ok(ToolOutput::text("counted"))
    }
}

#[test]
fn answers_and_status_are_said_live_and_the_agent_is_in_the_registry() {
    in_system(async {
        let ground = Ground::new();
        let offer = leaf(Role::Worker);
        let mut live = ground.bus.live().watch(Some(offer.run)).await.unwrap();
        let model = Scripted::new(|question, _| if question == 0 { compute(1) } else { submits("2") });
        let running = ground.start(ground.chat_kit(Role::Worker, &model));
        ground.offer(&offer).await;
        let (mut said, mut lines) = (String::new(), Vec::new());
        while !lines.iter().any(|line: &String| line.starts_with("ended")) {
            match live.next().await.unwrap().kind {
                LiveKind::Answer { text } => said.push_str(&text),
                LiveKind::Status { text, .. } => lines.push(text),
                LiveKind::Thought { .. } => {}
            }
        }
        assert!(said.contains("I need to know."), "{said}");
        assert_eq!(lines[0], "step 1 of 10: calculator 1 + 1");
        let profiles = ground.bus.registry().list().await.unwrap();
        assert_eq!((profiles.len(), profiles[0].slots, profiles[0].model.as_str()), (1, 8, "test/scripted"));
        running.stop().await;
        assert!(ground.bus.registry().list().await.unwrap().is_empty());
    });
}

#[test]
fn secrets_reach_neither_record_nor_prompt() {
    in_system(async {
        let ground = Ground::new();
        let secret = "sk-proj-abcdefghijklmnopqrstuvwx0123456789ABCDEFGH";
        let model = Scripted::new(move |question, request| {
            let sent = serde_json::to_string(request).unwrap();
            assert!(!sent.contains(secret), "{sent}");
            match question {
                0 => calls("calculator", json!({"expression": format!("1 + 1 # {secret}")})),
                _ => submits(&format!("the key is {secret}")),
            }
        });
        let mut offer = leaf(Role::Worker);
        offer.goal = format!("use {secret}");
        let outcome = ground.done(ground.chat_kit(Role::Worker, &model), &offer).await;
        assert_eq!(outcome.ending, Ending::Done);
        assert!(!serde_json::to_string(&outcome).unwrap().contains(secret));
        assert!(!serde_json::to_string(&ground.steps(&offer).await).unwrap().contains(secret));
    });
}

#[test]
fn own_time_per_step_is_small_and_does_not_grow() {
    in_system(async {
        const STEPS: u32 = 500;
        let ground = Ground::new();
        let model =
            Scripted::new(|question, _| if question < 499 { compute(question) } else { submits("long") });
        let mut offer = leaf(Role::Worker);
        offer.limits.max_steps = STEPS;
        offer.deadline = now().after(Duration::from_secs(60));
        let mut context = ground.chat_kit(Role::Worker, &model);
        context.limit_steps(STEPS);
        let outcome = ground.done(context, &offer).await;
        assert_eq!(outcome.ending, Ending::Done, "{}", outcome.reason);
        let entries = ground.bus.record().read(&filter(&offer), Seq(0)).await.unwrap();
        let at: Vec<u64> = entries.iter().map(|entry| entry.at.0).collect();
        let span = |from: usize, to: usize| {
            Duration::from_millis(at[to] - at[from]) / u32::try_from(to - from).unwrap()
        };
        let (early, late) = (span(1, 101), span(399, 499));
        assert!(
            late < early * 4 + Duration::from_millis(1),
            "step 1 to 100: {early:?} each, 400 to 500: {late:?}"
        );
        assert!(early < Duration::from_millis(10), "{early:?}");
    });
}
