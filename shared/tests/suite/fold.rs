//! Folding a record: a run from goal to report, and what is refused on the way.

use crate::small_run::{self, RUN, leaf};
use muster_shared::flow::{
    Ending, Goal, Outcome, Plan, PlanDraft, Report, RunLimits, TaskDraft, TaskOffered, TaskStatus, Usage,
};
use muster_shared::ids::{AgentId, Attempt, Generation, Role, Seq, TaskId};
use muster_shared::plan::{progress, repair};
use muster_shared::run::event::{
    PlanAdopted, RunAborted, RunCompleted, RunCreated, RunFailed, TaskBlocked, TaskCompleted, TaskStarted,
    WritingBegan,
};
use muster_shared::run::invariants::check_all;
use muster_shared::run::{
    AgentEvent, AgentKey, ApplyError, Decided, EVENT_VERSION, Entry, Input, Phase, RecordEvent, RunEvent,
    RunState, RunStatus, StopReason, apply,
};
use muster_shared::time::Millis;

#[derive(Default)]
struct Record {
    state: Option<RunState>,
    seq: u64,
}

impl Record {
    fn add(&mut self, event: RecordEvent) -> Result<Seq, ApplyError> {
        self.seq += 1;
        let entry = Entry { seq: Seq(self.seq), at: Millis(self.seq), run: RUN, event };
        let before = self.state.clone();
        apply(&mut self.state, &entry).map_err(cause)?;
        let after = self.state.clone();
        if let Some(before) = before {
            check_all(&before, &entry, self.state.as_ref().unwrap()).unwrap();
        }
        apply(&mut self.state, &entry).unwrap();
        assert_eq!(self.state, after, "folding twice changes nothing");
        Ok(entry.seq)
    }

    fn decide(&mut self, inputs: Vec<Input>, events: Vec<RunEvent>, offers: u32) -> Result<Seq, ApplyError> {
        let (now, basis) = (Millis(self.seq * 10), Seq(self.seq));
        let decided = small_run::decided(u128::from(self.seq), now, inputs, events);
        self.add(RecordEvent::Decided(Decided { basis, offers, ..decided }))
    }

    fn offer(&mut self, task: TaskId, generation: u32) -> Result<Seq, ApplyError> {
        self.add(RecordEvent::Offered(offered(task, generation)))
    }

    fn outcome(&mut self, task: TaskId, generation: u32) -> Seq {
        let usage = Usage { model_calls: 1, ..Usage::default() };
        let outcome = Outcome { ending: Ending::Done, usage, ..Outcome::of_fault() };
        let key = AgentKey {
            role: Role::Worker,
            agent: AgentId::new("worker", 1),
            task,
            generation: Generation(generation),
        };
        self.add(RecordEvent::Agent(key, AgentEvent::Outcome(outcome.into()))).unwrap()
    }

    fn state(&self) -> &RunState {
        self.state.as_ref().unwrap()
    }

    fn status(&self, task: &TaskId) -> TaskStatus {
        self.state().tasks[task].status
    }
}

fn cause(error: ApplyError) -> ApplyError {
    if let ApplyError::Event { cause, .. } = error { *cause } else { error }
}

fn offered(task: TaskId, generation: u32) -> TaskOffered {
    TaskOffered { deadline: Millis(1_000), ..small_run::offered(task, generation) }
}

fn created(event_version: u32) -> RunEvent {
    let (goal, limits) = (Box::new(Goal::new("g")), RunLimits::default());
    RunEvent::RunCreated(RunCreated {
        goal,
        limits,
        event_version,
        secret: "s".to_owned(),
        deadline: Millis(9_999),
    })
}

fn plan() -> Plan {
    let leaf = |name: &str, needs: &[&str]| TaskDraft {
        name: name.to_owned(),
        goal: format!("do {name}"),
        depends_on: needs.iter().map(|text| (*text).to_owned()).collect(),
        ..TaskDraft::default()
    };
    let parent = TaskDraft { subtasks: vec![leaf("a", &[]), leaf("b", &["a"])], ..leaf("both", &[]) };
    let draft =
        PlanDraft { goal: "g".to_owned(), tasks: vec![parent, leaf("c", &["both"])], ..PlanDraft::default() };
    let (plan, notes) = repair(&draft, &RunLimits::default(), &[Role::Worker]);
    assert!(notes.is_empty(), "{notes:?}");
    plan
}

fn planned() -> Record {
    let mut record = Record::default();
    record
        .decide(
            Vec::new(),
            vec![created(1), RunEvent::PlanAdopted(PlanAdopted { plan: plan(), repairs: Vec::new() })],
            1,
        )
        .unwrap();
    record.offer(leaf("1-1"), 1).unwrap();
    record
}

fn start(record: &mut Record, task: TaskId, attempt: u32) -> Result<Seq, ApplyError> {
    let agent = AgentId::new("worker", attempt);
    let event = RunEvent::TaskStarted(TaskStarted {
        task,
        generation: Generation(1),
        agent,
        attempt: Attempt(attempt),
        ack: String::new(),
        after_step: 0,
    });
    record.decide(Vec::new(), vec![event], 0)
}

fn complete(task: TaskId, outcome: Seq) -> RunEvent {
    RunEvent::TaskCompleted(TaskCompleted { task, generation: Generation(1), outcome })
}

#[test]
fn a_run_goes_from_goal_to_report() {
    let mut record = planned();
    assert_eq!((record.state().status, record.state().phase), (RunStatus::Processing, Phase::Executing));
    assert_eq!(record.status(&leaf("1")), TaskStatus::Queued);
    start(&mut record, leaf("1-1"), 1).unwrap();
    start(&mut record, leaf("1-1"), 2).unwrap();
    assert_eq!(record.status(&leaf("1")), TaskStatus::Processing);

    for (index, next) in [("1-1", Some("1-2")), ("1-2", Some("2")), ("2", None)] {
        let outcome = record.outcome(leaf(index), 1);
        assert_ne!(record.status(&leaf(index)), TaskStatus::Completed, "nothing is decided yet");
        let offers = u32::from(next.is_some());
        record
            .decide(vec![Input::Agent { seq: outcome }], vec![complete(leaf(index), outcome)], offers)
            .unwrap();
        assert_eq!(record.status(&leaf(index)), TaskStatus::Completed);
        if let Some(next) = next {
            record.offer(leaf(next), 1).unwrap();
        }
    }
    let tree = progress::render(&progress::lines(record.state(), progress::Detail::Decided));
    assert_eq!(tree, "[x] 1 both\n  [x] 1-1 a\n  [x] 1-2 b\n[x] 2 c\n");
    let report = Report { title: "t".to_owned(), ..Report::default() };
    record
        .decide(
            Vec::new(),
            vec![
                RunEvent::WritingBegan(WritingBegan { from: None }),
                RunEvent::RunCompleted(RunCompleted { report }),
            ],
            0,
        )
        .unwrap();
    assert_eq!(record.state().status, RunStatus::Completed);
    assert_eq!(record.state().spending.used.model_calls, 3);
    assert!(record.state().pending.is_empty());
}

#[test]
fn an_offer_inside_a_decision_is_folded_as_one_that_follows_it() {
    let (mut inside, mut apart) = (planned(), planned());
    let at = inside.outcome(leaf("1-1"), 1);
    assert_eq!(apart.outcome(leaf("1-1"), 1), at);
    let made = || vec![Input::Agent { seq: at }];
    apart.decide(made(), vec![complete(leaf("1-1"), at)], 1).unwrap();
    apart.offer(leaf("1-2"), 1).unwrap();
    let (decided, rest) = completing(made(), at).with_offers(vec![offered(leaf("1-2"), 1)]);
    assert!(rest.is_empty());
    inside.add(RecordEvent::Decided(decided)).unwrap();
    assert_eq!(inside.status(&leaf("1-2")), TaskStatus::Queued);
    let tasks = |record: &Record| {
        let mut tasks = record.state().tasks.clone();
        tasks.values_mut().for_each(|task| task.offered_at = None);
        tasks
    };
    assert_eq!(tasks(&inside), tasks(&apart));
    assert_eq!(inside.state().decided, inside.state().folded);
    assert!(matches!(inside.offer(leaf("2"), 1), Err(ApplyError::OfferWithoutDecision { .. })));
}

fn completing(inputs: Vec<Input>, at: Seq) -> Decided {
    let events = vec![complete(leaf("1-1"), at)];
    Decided { basis: at, ..small_run::decided(99, Millis(99), inputs, events) }
}

#[test]
fn what_is_used_counts_once_whatever_becomes_of_it() {
    let mut record = planned();
    start(&mut record, leaf("1-1"), 1).unwrap();
    let outcome = record.outcome(leaf("1-1"), 1);
    record.decide(vec![Input::Agent { seq: outcome }], Vec::new(), 0).unwrap();
    assert_eq!(record.state().spending.used.model_calls, 1);

    let mut stopped = planned();
    start(&mut stopped, leaf("1-1"), 1).unwrap();
    stopped.outcome(leaf("1-1"), 1);
    let stop = RunEvent::RunAborted(RunAborted {
        why: StopReason::Cancelled,
        reason: "enough".to_owned(),
        report: None,
    });
    stopped.decide(Vec::new(), vec![stop], 0).unwrap();
    assert_eq!(stopped.state().spending.used.model_calls, 1);
    assert_eq!(stopped.status(&leaf("1-1")), TaskStatus::Aborted);
    assert!(stopped.state().pending.is_empty());
}

#[test]
fn what_was_never_offered_has_no_effect() {
    let mut record = planned();
    record.outcome(leaf("2"), 1);
    record.outcome(leaf("1-1"), 2);
    record.outcome(leaf("9"), 1);
    assert!(record.state().pending.is_empty() && record.state().seen.is_empty());
}

#[test]
fn what_cannot_follow_is_named() {
    let mut empty = Record::default();
    assert_eq!(empty.offer(TaskId::Plan, 1), Err(ApplyError::NotCreated(Seq(1))));
    assert_eq!(
        empty.decide(Vec::new(), vec![created(EVENT_VERSION + 1)], 0),
        Err(ApplyError::UnknownVersion { run: RUN, version: EVENT_VERSION + 1 })
    );

    let outcome = planned().outcome(leaf("1-1"), 1);
    assert_eq!(
        planned().decide(Vec::new(), vec![complete(leaf("1-1"), outcome)], 0),
        Err(ApplyError::NoOutcome { task: leaf("1-1"), generation: Generation(1), seq: outcome })
    );
    assert!(matches!(planned().offer(leaf("1-2"), 1), Err(ApplyError::OfferWithoutDecision { .. })));
    let twice = planned().decide(Vec::new(), vec![created(1)], 0);
    assert!(matches!(twice, Err(ApplyError::CreatedTwice { .. })));
    assert!(matches!(start(&mut planned(), leaf("1"), 1), Err(ApplyError::UnknownTask { .. })));
    assert!(matches!(start(&mut planned(), leaf("2"), 1), Err(ApplyError::WrongGeneration { .. })));
    assert!(matches!(start(&mut planned(), leaf("1-1"), 0), Err(ApplyError::WrongAttempt { .. })));
    let blocked = RunEvent::TaskBlocked(TaskBlocked { task: "1-1".parse().unwrap(), reason: String::new() });
    let (task, from, to) = (leaf("1-1"), TaskStatus::Queued, TaskStatus::Blocked);
    let refused = planned().decide(Vec::new(), vec![blocked], 0);
    assert_eq!(refused, Err(ApplyError::IllegalTransition { task, from, to }));
    let mut record = planned();
    record.decide(Vec::new(), Vec::new(), 2).unwrap();
    assert!(matches!(
        record.decide(Vec::new(), Vec::new(), 0),
        Err(ApplyError::BatchIncomplete { missing: 2, .. })
    ));
    let failed = || RunEvent::RunFailed(RunFailed { reason: "no".to_owned() });
    let mut record = planned();
    record.decide(Vec::new(), vec![failed()], 0).unwrap();
    assert!(matches!(record.decide(Vec::new(), vec![failed()], 0), Err(ApplyError::RunEnded { .. })));
}
