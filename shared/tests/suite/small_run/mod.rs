//! A small run, made by hand: a failure, a death, and what follows. For tests that tell something of it.
#![allow(dead_code, clippy::unwrap_used, unreachable_pub)]

use std::collections::BTreeMap;

use muster_shared::flow::{
    Citation, Ending, FailureKind, Finding, Goal, Outcome, PlanDraft, Product, Report, Response, RunLimits,
    TaskDraft, TaskOffered, TaskResult, Usage,
};
use muster_shared::ids::{AgentId, Attempt, Generation, Queue, Role, RunId, Seq, TaskId};
use muster_shared::plan::repair;
use muster_shared::run::event::{
    FailureAnswered, PlanAdopted, RunCompleted, RunCreated, TaskCompleted, TaskOrphaned, TaskRetried,
    TaskStarted, WritingBegan,
};
use muster_shared::run::{
    AgentEvent, AgentKey, Decided, Entry, Input, RecordEvent, RunEvent, RunState, Started, apply,
};
use muster_shared::time::Millis;
use muster_shared::wire::Encoding;
use uuid::Uuid;

pub const RUN: RunId = RunId::from_uuid(Uuid::from_u128(7));

/// A worker is lost with its first try of a generation of task 1.
pub fn orphaned(generation: u32, worker: u32, last_step: u32) -> TaskOrphaned {
    TaskOrphaned {
        task: leaf("1"),
        generation: Generation(generation),
        attempt: Attempt(1),
        agent: AgentId::new("worker", worker),
        reason: "its connection is gone".to_owned(),
        last_step,
        beside: 0,
    }
}

/// A decision of the first orchestrator without offers.
pub fn decided(batch: u128, now: Millis, inputs: Vec<Input>, events: Vec<RunEvent>) -> Decided {
    Decided {
        batch: Uuid::from_u128(batch),
        by: AgentId::new("orchestrator", 1),
        inputs,
        now,
        basis: Seq(0),
        after: Seq(0),
        capacity: BTreeMap::new(),
        specialists: Vec::new(),
        placements: Vec::new(),
        offers: 0,
        continues: false,
        events,
        offer: None,
    }
}

#[derive(Default)]
pub struct Record(pub Vec<Entry>);

impl Record {
    pub fn add(&mut self, at: u64, event: RecordEvent) -> Seq {
        let seq = Seq(self.0.len() as u64 + 1);
        self.0.push(Entry { seq, at: Millis(at), run: RUN, event });
        seq
    }

    pub fn decide(&mut self, at: u64, inputs: Vec<Input>, events: Vec<RunEvent>, offer: Option<(&str, u32)>) {
        let offer = offer.map(|(task, generation)| Box::new(offered(leaf(task), generation)));
        let decided = decided(u128::from(at), Millis(at), inputs, events);
        self.add(at, RecordEvent::Decided(Decided { offer, ..decided }));
    }

    pub fn start(&mut self, at: u64, (task, generation): (&str, u32), agent: u32) -> Seq {
        let started =
            Started { attempt: Attempt(0), ack: String::new(), pid: 1, host: String::new(), after_step: 0 };
        self.add(at, RecordEvent::Agent(key(task, generation, agent), AgentEvent::Started(started)))
    }

    pub fn end(
        &mut self,
        at: u64,
        (task, generation): (&str, u32),
        agent: u32,
        calls: u64,
        ending: Ending,
    ) -> Seq {
        let citation = Citation { path: "a.md".to_owned(), line: 3, quote: String::new() };
        let finding =
            Finding { text: format!("{task} is so"), citations: vec![citation], ..Finding::default() };
        let result = TaskResult { findings: vec![finding], ..TaskResult::default() };
        let outcome = Outcome {
            ending,
            reason: if ending == Ending::Done { String::new() } else { "no use".to_owned() },
            product: (ending == Ending::Done).then_some(Product::Result(result)),
            last_step: None,
            steps: Vec::new(),
            usage: Usage { model_calls: calls, cost_micros: calls * 10, ..Usage::default() },
            contract_violation: None,
        };
        self.add(at, RecordEvent::Agent(key(task, generation, agent), AgentEvent::Outcome(outcome.into())))
    }
}

pub fn key(task: &str, generation: u32, agent: u32) -> AgentKey {
    AgentKey {
        role: Role::Worker,
        agent: AgentId::new("worker", agent),
        task: leaf(task),
        generation: Generation(generation),
    }
}

pub fn leaf(index: &str) -> TaskId {
    TaskId::Leaf(index.parse().unwrap())
}

pub fn offered(task: TaskId, generation: u32) -> TaskOffered {
    let usual = serde_json::json!({
        "run": RUN, "task": TaskId::Plan, "generation": generation, "queue": Queue::Role(Role::Worker),
        "work": { "plan": { "roles": [], "held_to": {} } }, "goal": "g", "limits": RunLimits::default(),
        "deadline": 100_000, "nonce": "n", "encoding": Encoding::Json,
    });
    TaskOffered { task, ..serde_json::from_value(usual).unwrap() }
}

pub fn begun() -> Vec<RunEvent> {
    let task = |name: &str, needs: &[&str]| TaskDraft {
        name: name.to_owned(),
        goal: format!("do {name}"),
        depends_on: needs.iter().map(|text| (*text).to_owned()).collect(),
        ..TaskDraft::default()
    };
    let tasks = vec![task("first", &[]), task("second", &["first"])];
    let draft = PlanDraft { goal: "g".to_owned(), tasks, ..PlanDraft::default() };
    let (plan, _) = repair(&draft, &RunLimits::default(), &[Role::Worker]);
    let created = RunCreated {
        goal: Box::new(Goal::new("g")),
        limits: RunLimits::default(),
        event_version: 1,
        secret: "s".to_owned(),
        deadline: Millis(100_000),
    };
    vec![RunEvent::RunCreated(created), RunEvent::PlanAdopted(PlanAdopted { plan, repairs: Vec::new() })]
}

pub fn started((task, generation): (&str, u32), agent: u32, attempt: u32) -> RunEvent {
    RunEvent::TaskStarted(TaskStarted {
        task: leaf(task),
        generation: Generation(generation),
        agent: AgentId::new("worker", agent),
        attempt: Attempt(attempt),
        ack: String::new(),
        after_step: 0,
    })
}

pub fn completed(task: &str, generation: u32, outcome: Seq) -> RunEvent {
    RunEvent::TaskCompleted(TaskCompleted { task: leaf(task), generation: Generation(generation), outcome })
}

/// The first task fails once and is tried by another agent, which dies; a third one does it. Then comes the second.
pub fn record() -> Vec<Entry> {
    let mut record = Record::default();
    record.decide(0, Vec::new(), begun(), Some(("1", 1)));
    let start = record.start(100, ("1", 1), 1);
    let end = record.end(1_100, ("1", 1), 1, 2, Ending::GaveUp);
    let answered = FailureAnswered {
        task: leaf("1"),
        generation: Generation(1),
        failure: FailureKind::GaveUp,
        response: Response::OtherAgent,
        model: None,
        marked: None,
        withheld: None,
    };
    let retried = TaskRetried {
        task: leaf("1"),
        generation: Generation(1),
        outcome: Some(end),
        reason: "no use".to_owned(),
        keeps_steps: false,
    };
    let events =
        vec![started(("1", 1), 1, 1), RunEvent::FailureAnswered(answered), RunEvent::TaskRetried(retried)];
    let inputs = [start, end].map(|seq| Input::Agent { seq }).to_vec();
    record.decide(1_110, inputs, events, Some(("1", 2)));
    let start = record.start(1_200, ("1", 2), 2);
    record.decide(1_210, vec![Input::Agent { seq: start }], vec![started(("1", 2), 2, 1)], None);
    let orphaned = orphaned(2, 2, 0);
    record.decide(2_000, vec![Input::Timer], vec![RunEvent::TaskOrphaned(orphaned)], None);
    let start = record.start(2_100, ("1", 2), 3);
    let end = record.end(2_600, ("1", 2), 3, 3, Ending::Done);
    let inputs = [start, end].map(|seq| Input::Agent { seq }).to_vec();
    record.decide(2_610, inputs, vec![started(("1", 2), 3, 2), completed("1", 2, end)], Some(("2", 1)));
    let start = record.start(2_650, ("2", 1), 1);
    let end = record.end(3_650, ("2", 1), 1, 4, Ending::Done);
    let inputs = [start, end].map(|seq| Input::Agent { seq }).to_vec();
    let report = Report { title: "So it is".to_owned(), ..Report::default() };
    let events = vec![
        started(("2", 1), 1, 1),
        completed("2", 1, end),
        RunEvent::WritingBegan(WritingBegan { from: None }),
        RunEvent::RunCompleted(RunCompleted { report }),
    ];
    record.decide(3_700, inputs, events, None);
    record.0
}

pub fn folded(entries: &[Entry]) -> RunState {
    let mut state = None;
    entries.iter().for_each(|entry| apply(&mut state, entry).unwrap());
    state.unwrap()
}
