//! A small run, made by hand, is explained: what failed, where time went, and what it used.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use muster_shared::explain::{Explanation, SegmentKind, explain};
use muster_shared::flow::{
    Budget, Citation, Ending, FailureKind, Finding, Goal, Outcome, PlanDraft, Product, Report, Response,
    RunLimits, TaskDraft, TaskOffered, TaskResult, TaskRights, Usage, Work,
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

const RUN: RunId = RunId::from_uuid(Uuid::from_u128(7));

#[derive(Default)]
struct Record(Vec<Entry>);

impl Record {
    fn add(&mut self, at: u64, event: RecordEvent) -> Seq {
        let seq = Seq(self.0.len() as u64 + 1);
        self.0.push(Entry { seq, at: Millis(at), run: RUN, event });
        seq
    }

    fn decide(&mut self, at: u64, inputs: Vec<Input>, events: Vec<RunEvent>, offer: Option<(&str, u32)>) {
        let decided = Decided {
            batch: Uuid::from_u128(u128::from(at)),
            by: AgentId::new("orchestrator", 1),
            inputs,
            now: Millis(at),
            basis: Seq(0),
            after: None,
            capacity: BTreeMap::new(),
            specialists: Vec::new(),
            placements: Vec::new(),
            readings: None,
            offers: 0,
            continues: false,
            events,
            offer: offer.map(|(task, generation)| Box::new(offered(leaf(task), generation))),
        };
        self.add(at, RecordEvent::Decided(decided));
    }

    fn start(&mut self, at: u64, (task, generation): (&str, u32), agent: u32) -> Seq {
        let started =
            Started { attempt: Attempt(0), ack: String::new(), pid: 1, host: String::new(), after_step: 0 };
        self.add(at, RecordEvent::Agent(key(task, generation, agent), AgentEvent::Started(started)))
    }

    fn end(
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

fn key(task: &str, generation: u32, agent: u32) -> AgentKey {
    AgentKey {
        role: Role::Worker,
        agent: AgentId::new("worker", agent),
        task: leaf(task),
        generation: Generation(generation),
    }
}

fn leaf(index: &str) -> TaskId {
    TaskId::Leaf(index.parse().unwrap())
}

fn offered(task: TaskId, generation: u32) -> TaskOffered {
    TaskOffered {
        run: RUN,
        task,
        generation: Generation(generation),
        queue: Queue::Role(Role::Worker),
        work: Work::Plan {
            refused: Vec::new(),
            roles: Vec::new(),
            lessons: Vec::new(),
            specialists: Vec::new(),
            tools: Vec::new(),
            blueprints: Vec::new(),
            draft: None,
            replan: None,
            answers: Vec::new(),
            refused_plan: None,
            held_to: None,
        },
        goal: "g".to_owned(),
        role_name: String::new(),
        conversation: Vec::new(),
        corpus: None,
        model: None,
        limits: RunLimits::default(),
        budget: Budget::UNLIMITED,
        rights: TaskRights::default(),
        deadline: Millis(100_000),
        continues: None,
        answered: None,
        heard: Vec::new(),
        may_ask_peers: false,
        background: None,
        chain: Vec::new(),
        withheld: Vec::new(),
        alone: false,
        nonce: "n".to_owned(),
        encoding: Encoding::Json,
    }
}

fn begun() -> Vec<RunEvent> {
    let task = |name: &str, needs: &[&str]| TaskDraft {
        name: name.to_owned(),
        goal: format!("do {name}"),
        depends_on: needs.iter().map(|text| (*text).to_owned()).collect(),
        ..TaskDraft::default()
    };
    let tasks = vec![task("first", &[]), task("second", &["first"])];
    let draft = PlanDraft { goal: "g".to_owned(), tasks, questions: Vec::new() };
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

fn started((task, generation): (&str, u32), agent: u32, attempt: u32) -> RunEvent {
    RunEvent::TaskStarted(TaskStarted {
        task: leaf(task),
        generation: Generation(generation),
        agent: AgentId::new("worker", agent),
        attempt: Attempt(attempt),
        ack: String::new(),
        after_step: 0,
    })
}

fn completed(task: &str, generation: u32, outcome: Seq) -> RunEvent {
    RunEvent::TaskCompleted(TaskCompleted { task: leaf(task), generation: Generation(generation), outcome })
}

/// The first task fails once and is tried by another agent, which dies; a third one does it. Then comes the second.
fn record() -> Vec<Entry> {
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
    let orphaned = TaskOrphaned {
        task: leaf("1"),
        generation: Generation(2),
        attempt: Attempt(1),
        agent: AgentId::new("worker", 2),
        reason: "its connection is gone".to_owned(),
        last_step: 0,
        beside: 0,
    };
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

fn folded(entries: &[Entry]) -> RunState {
    let mut state = None;
    entries.iter().for_each(|entry| apply(&mut state, entry).unwrap());
    state.unwrap()
}

fn told(of: Option<&TaskId>) -> Explanation {
    let entries = record();
    explain(&folded(&entries), &entries, of)
}

#[test]
fn what_failed_is_told_with_what_was_done_about_it() {
    let told = told(None);
    let [trouble] = &told.troubles[..] else { unreachable!("{:?}", told.troubles) };
    let said: Vec<(bool, &str)> =
        trouble.items.iter().map(|item| (item.is_answer, item.told.text.as_str())).collect();
    assert_eq!(trouble.task, Some(leaf("1")));
    let [(true, answer), (false, retried), (false, lost)] = said[..] else { unreachable!("{said:?}") };
    assert!(answer.ends_with("another agent tries it"), "{answer}");
    assert_eq!(retried, "1 to be tried again: no use");
    assert!(lost.contains("worker-00000002") && lost.contains("its connection is gone"), "{lost}");
    let turns: Vec<&str> = told.turning_points.iter().map(|told| told.text.as_str()).collect();
    assert_eq!(turns, [lost]);
    assert_eq!(told.result.how, "it ended with a report, and all that was planned was done");
    assert_eq!(told.result.report.as_deref(), Some("So it is"));
}

#[test]
fn the_critical_path_is_followed_over_retries_and_takeovers() {
    use SegmentKind::{Agent, Decision, Lost, Work};
    let told = told(None);
    let path: Vec<(SegmentKind, u64)> =
        told.time.critical_path.iter().map(|part| (part.kind, part.millis)).collect();
    let wanted = [
        (Agent, 100),
        (Work, 1_000),
        (Decision, 10),
        (Agent, 90),
        (Lost, 800),
        (Agent, 100),
        (Work, 500),
        (Decision, 10),
        (Agent, 40),
        (Work, 1_000),
        (Decision, 50),
    ];
    assert_eq!(path, wanted);
    assert_eq!(told.time.total_ms, 3_700);
    let first = told.time.tasks.iter().find(|time| time.task == leaf("1")).unwrap();
    assert_eq!((first.offers, first.worked_ms, first.lost_ms, first.queued_ms), (2, 1_500, 800, 290));
    assert_eq!(first.agents.len(), 3);
}

#[test]
fn what_was_used_adds_up_by_task_and_role() {
    let told = told(None);
    let by_task: Vec<(Option<TaskId>, u64)> =
        told.cost.by_task.iter().map(|row| (row.task.clone(), row.usage.model_calls)).collect();
    assert_eq!(by_task, [(Some(leaf("1")), 5), (Some(leaf("2")), 4)]);
    let [role] = &told.cost.by_role[..] else { unreachable!("{:?}", told.cost.by_role) };
    assert_eq!((role.role.clone(), role.usage), (Some(Role::Worker), told.cost.total));
    assert_eq!(told.cost.total.cost_micros, 90);
}

#[test]
fn findings_are_told_with_where_they_stand_and_who_gave_them() {
    let told = told(Some(&leaf("2")));
    let [finding] = &told.evidence[..] else { unreachable!("{:?}", told.evidence) };
    assert_eq!((finding.text.as_str(), finding.agent.clone()), ("2 is so", Some(AgentId::new("worker", 1))));
    assert_eq!(finding.citations[0].path, "a.md");
    assert!(told.troubles.is_empty(), "nothing went wrong with the second task");
}

#[test]
fn every_beginning_of_a_record_is_explained_and_adds_up() {
    let entries = record();
    for end in 1..=entries.len() {
        let (part, state) = (&entries[..end], folded(&entries[..end]));
        let told = explain(&state, part, None);
        let mut sum = Usage::default();
        told.cost.by_task.iter().for_each(|row| sum += row.usage);
        assert_eq!(sum, state.used(), "after {end}");
        let path: u64 = told.time.critical_path.iter().map(|part| part.millis).sum();
        assert_eq!(path, told.time.total_ms, "after {end}");
    }
}
