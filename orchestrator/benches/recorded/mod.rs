//! A run of the yardstick workload W, driven turn by turn in memory: a plan of eight tasks that do not need each other, three
//! tool steps each, a reflection on each, a report. Nothing of it depends on clock or chance.

use std::collections::VecDeque;
use std::time::Duration;

use muster_orchestrator::turn::{
    Action, Appending, Driver, DriverRules, Inbox, Next, Order, RunLog, RunMessage, Turn, TurnEnd, TurnRules,
    View, WrittenAt,
};
use muster_orchestrator::{Capacity, decide_with_room};
use muster_shared::flow::{
    Action as Chosen, Ending, Goal, ModelCall, Observation, ObservationStatus, Outcome, PlanDraft, Product,
    Reflection, Report, RunLimits, Step, StepDigest, StoredMessage, TaskDraft, TaskOffered, TaskResult,
    TemplateRef, Thought, Usage, Work,
};
use muster_shared::ids::{AgentId, Attempt, Queue, Role, RunId, Seq};
use muster_shared::run::{AgentEvent, AgentKey, EVENT_VERSION, Entry, Input, RecordEvent, RunState, Started};
use muster_shared::time::Millis;
use muster_shared::wire::Profile;
use uuid::Uuid;

/// The run.
const ID: RunId = RunId::from_uuid(Uuid::from_u128(7));
/// Tasks of the plan.
const LEAVES: usize = 8;
/// Tool steps of each.
const TOOL_STEPS: u32 = 3;
/// Most inputs that are put off, as in the settings.
const MAX_DEFERRED: usize = 256;

/// What one run came to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    /// Turns.
    pub(crate) turns: u32,
    /// Decisions that were written.
    pub(crate) decisions: u32,
    /// Entries of the record.
    pub(crate) entries: u32,
}

type Message = RunMessage<Box<Entry>, ()>;

/// Something an agent does next.
enum Doing {
    Start(Box<TaskOffered>),
    End(Box<TaskOffered>),
}

/// A fleet, one run of it, and its record, which is only counted.
pub(crate) struct Recorded {
    fleet: Capacity,
    driver: Driver<Box<Entry>, ()>,
    doing: VecDeque<Doing>,
    last: u64,
    now: Millis,
    batches: u128,
    count: Count,
}

impl Recorded {
    /// Drives the run to its end. What agents say is made by `says`, so that it can be told from what is measured.
    pub(crate) fn run(mut measured: impl FnMut(&mut dyn FnMut())) -> Count {
        let mut run = Self::new();
        measured(&mut || run.hear(RunMessage::Order(Order { input: goal(), answer: () })));
        while let Some(doing) = run.doing.pop_front() {
            let mut message = Some(run.said(doing));
            measured(&mut || message.take().into_iter().for_each(|message| run.hear(message)));
        }
        assert!(run.driver.log().and_then(RunLog::run).is_none_or(has_report), "the run has its report");
        run.count
    }

    fn new() -> Self {
        let fleet = Capacity::default();
        let roles = [("planner", 1, 1), ("worker", 4, 2), ("reflector", 1, 8), ("writer", 1, 1)];
        for (role, agents, slots) in roles {
            for token in 1..=agents {
                drop(fleet.joined(&profile(role, token, slots)));
            }
        }
        let rules = DriverRules { max_turns_in_vain: 100, pause_in_vain: Duration::from_secs(1) };
        Self {
            fleet,
            driver: Driver::new(rules),
            doing: VecDeque::new(),
            last: 0,
            now: Millis(1_000_000),
            batches: 0,
            count: Count::default(),
        }
    }

    fn view(&mut self) -> View<'_> {
        self.batches += 1;
        let batch = Uuid::from_u128(self.batches);
        View { now: self.now, fleet: &self.fleet, holds_lease: true, batch, decide: decide_with_room }
    }

    fn hear(&mut self, message: Message) {
        let mut actions = VecDeque::from(self.driver.receive(message));
        while let Some(action) = actions.pop_front() {
            match action {
                Action::Begin { log, inbox } => {
                    let end = self.turn(log.map(|log| *log), inbox);
                    actions.extend(self.driver.ended(end));
                }
                Action::Stop
                | Action::SetAlarm(_)
                | Action::Wait(_)
                | Action::StepAside(_)
                | Action::EndPause
                | Action::LeaveAlone(_) => {}
            }
        }
    }

    fn turn(&mut self, log: Option<RunLog>, inbox: Inbox<Box<Entry>, ()>) -> TurnEnd {
        self.count.turns += 1;
        let rules =
            TurnRules { by: AgentId::new("orchestrator", 1), max_deferred: MAX_DEFERRED, snapshot_every: 0 };
        let mut next = Turn::begin(ID, rules, log, inbox, &self.view());
        loop {
            next = match next {
                Next::Read(step) => step.read(Ok(RunLog::default()), &self.view()),
                Next::Claim(step) => step.is_ours(&self.view()),
                Next::FindAgents(step) => step.found(Ok(Vec::new()), &self.view()),
                Next::LastStep(step) => step.read::<Entry>(Ok(Vec::new()), &self.view()),
                Next::LastWord(step) => step.read(Ok(None), &self.view()),
                Next::Tell(step) => step.told(&self.view()),
                Next::Append(step) => {
                    let offers = step.written.decided.offer.as_deref().into_iter();
                    let offers = offers.chain(&step.written.offers);
                    self.doing.extend(offers.map(|offer| Doing::Start(Box::new(offer.clone()))));
                    let first = Seq(self.last + 1);
                    let entries = 1 + step.written.offers.len() as u64;
                    self.last += entries;
                    self.count.decisions += 1;
                    self.count.entries += u32::try_from(entries).unwrap_or(u32::MAX);
                    let link = step.written.link.clone().over([]).hash;
                    step.went(Appending::Appended(WrittenAt { first, link }), &self.view())
                }
                Next::Perform(step) => step.performed(&self.view()),
                Next::Done(end) => return *end,
            };
        }
    }

    /// What an agent writes.
    fn said(&mut self, doing: Doing) -> Message {
        let (offer, event) = match doing {
            Doing::Start(offer) => {
                let (pid, host, ack) = (7, "here".to_owned(), "$JS.ACK.TASKS.worker.1.7.7.1".to_owned());
                let started = Started { attempt: Attempt(1), ack, pid, host, after_step: 0 };
                self.doing.push_back(Doing::End(offer.clone()));
                (offer, AgentEvent::Started(started))
            }
            Doing::End(offer) => {
                let outcome = outcome(&offer);
                (offer, AgentEvent::Outcome(outcome.into()))
            }
        };
        let role = role_of(&offer.work);
        // Whoever begins it ends it.
        let agent = match &offer.queue {
            Queue::Agent(asked) => asked.clone(),
            Queue::Role(_) => AgentId::new(&role.to_string(), 1),
        };
        let key = AgentKey { role, agent, task: offer.task.clone(), generation: offer.generation };
        self.last += 1;
        self.count.entries += 1;
        self.now = self.now.after(Duration::from_millis(5));
        let entry =
            Entry { seq: Seq(self.last), at: self.now, run: ID, event: RecordEvent::Agent(key, event) };
        RunMessage::Signal(Box::new(entry))
    }
}

fn has_report(run: &RunState) -> bool {
    run.report.is_some() && run.tasks.values().all(|task| task.status.is_ended())
}

fn role_of(work: &Work) -> Role {
    match work {
        Work::Plan { .. } => Role::Planner,
        Work::Reflect { .. } => Role::Reflector,
        Work::Write { .. } => Role::Writer,
        _ => Role::Worker,
    }
}

fn goal() -> Input {
    Input::Goal {
        goal: Box::new(Goal::new("Work out the eight sums.")),
        limits: RunLimits {
            planning: muster_shared::flow::Planning::Always,
            max_width: 8,
            ..RunLimits::default()
        },
        secret: "ab".repeat(32),
        lessons: Vec::new(),
        signed: None,
    }
}

#[allow(clippy::unwrap_used, reason = "a constant form")]
fn profile(role: &str, token: u32, slots: u32) -> Profile {
    let profile = serde_json::json!({
        "agent": AgentId::new(role, token), "role": role, "pid": token, "host": "here", "slots": slots,
        "event_version": EVENT_VERSION, "model": "openai/scripted",
    });
    serde_json::from_value(profile).unwrap()
}

/// How a task ends, as large as agents write it.
fn outcome(offer: &TaskOffered) -> Outcome {
    let steps = if matches!(offer.work, Work::Execute { .. }) { TOOL_STEPS + 1 } else { 1 };
    let digest = |number| StepDigest {
        number,
        action: format!("calculator {{\"expression\":\"40 + {number}\"}}"),
        status: Some(ObservationStatus::Success),
        millis: 5,
        more: Vec::new(),
    };
    Outcome {
        ending: Ending::Done,
        reason: String::new(),
        product: Some(product(&offer.work)),
        last_step: Some(Box::new(step(steps))),
        steps: (1..=steps).map(digest).collect(),
        usage: Usage { steps: steps.into(), model_calls: steps.into(), ..Usage::default() },
        contract_violation: None,
    }
}

fn step(number: u32) -> Step {
    let parameters =
        serde_json::json!({ "temperature": 0.2, "max_tokens": 4096, "tools": ["calculator", "submit"] });
    let message = |role: &str, content: String| StoredMessage { role: role.into(), content };
    Step {
        number,
        thought: Thought { text: "All three sums are known.".into(), ..Thought::default() },
        action: Chosen {
            name: Chosen::SUBMIT.into(),
            arguments: serde_json::json!({ "ending": "done", "conclusion": "The sums are 40, 42 and 44.", "findings": [] }),
        },
        observation: Some(Observation::new(ObservationStatus::Success, "42".into())),
        more: Vec::new(),
        notes: Vec::new(),
        heard: Vec::new(),
        calls: vec![ModelCall {
            model: "openai/scripted".into(),
            template: TemplateRef::default(),
            request_hash: "ab".repeat(32),
            same_messages: 5,
            messages: vec![message("assistant", "x".repeat(200)), message("tool", "y".repeat(300))],
            aside: false,
            parameters,
            answer: "z".repeat(300),
            calls_at: Vec::new(),
            signatures: Vec::new(),
            cut: false,
            usage: Usage::default(),
            millis: 5,
        }],
        millis: 6,
        outside_millis: 5,
    }
}

fn product(work: &Work) -> Product {
    match work {
        Work::Plan { .. } => {
            let task = |n: usize| TaskDraft {
                name: format!("sum number {n} of the list"),
                goal: format!("Work out the sums of list {n}."),
                role: Some("worker".into()),
                ..TaskDraft::default()
            };
            let tasks = (1..=LEAVES).map(task).collect();
            Product::Plan(PlanDraft { goal: "Add up.".into(), tasks, ..PlanDraft::default() })
        }
        Work::Reflect { .. } => Product::Reflection(Reflection {
            summary: "Three sums, one result.".into(),
            ..Reflection::default()
        }),
        Work::Write { .. } => Product::Report(Report {
            title: "Eight sums".into(),
            body: "# Eight sums\n\nAll eight tasks gave 42.".into(),
            ..Report::default()
        }),
        _ => Product::Result(TaskResult {
            conclusion: "The sums are 40, 42 and 44.".into(),
            ..TaskResult::default()
        }),
    }
}
