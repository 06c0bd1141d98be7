//! A fleet in memory: one run, its record, and agents that answer as a test says.

use std::collections::BTreeMap;

use muster_shared::flow::{
    Advice, Awaited, DraftRemark, DraftReview, DraftVerdict, Ending, Finding, Goal, Outcome, PeerRequest,
    PlanDraft, Product, RefineOperation, Reflection, Report, RunLimits, Specialty, TaskDraft, TaskOffered,
    TaskResult, Wait, Work,
};
use muster_shared::ids::{AgentId, Attempt, Queue, Role, RunId, Seq, TaskId};
use muster_shared::run::event::RequestRefused;
use muster_shared::run::invariants::check_all;
use muster_shared::run::{
    AgentEvent, AgentKey, Decided, Entry, Input, RecordEvent, Released, Request, RequestAction, RunEvent,
    RunState, RunStatus, Started, apply,
};
use muster_shared::time::Millis;
use uuid::Uuid;

use crate::decide::{Decision, Effect, Place, Recorded, Situation, decide, in_work};
use crate::replay::replay;

/// Somebody asks the run to stop, without an id.
pub(super) fn cancel(by: &str, reason: &str) -> Input {
    let request = Request::new(ID, RequestAction::Cancel).because(reason);
    Input::Request(Request { by: by.into(), ..request })
}

pub(super) struct Fleet {
    pub(super) run: Option<RunState>,
    pub(super) record: Vec<Entry>,
    pub(super) now: Millis,
    pub(super) slots: BTreeMap<Queue, u32>,
    pub(super) specialists: Vec<Specialty>,
    /// Says to whom leaves go.
    pub(super) placing: Box<dyn Place>,
    /// Offers that no agent has ended.
    pub(super) open: Vec<TaskOffered>,
    pub(super) effects: Vec<Effect>,
    pub(super) deferred: Vec<Input>,
    /// Whether decisions that nobody waits for are put off, as the driver does.
    pub(super) defer: bool,
}

pub(super) const ID: RunId = RunId::from_uuid(Uuid::from_u128(7));

pub(super) fn queue(role: Role) -> Queue {
    Queue::Role(role)
}

/// One offer more than there are slots waits for a role, and none for a single agent.
const fn spare(queue: &Queue) -> u32 {
    match queue {
        Queue::Role(_) => 1,
        Queue::Agent(_) => 0,
    }
}

impl Fleet {
    pub(super) fn new() -> Self {
        let slots = Role::BUILT_IN.into_iter().map(|role| (queue(role), 8)).collect();
        Self {
            run: None,
            record: Vec::new(),
            now: Millis(1_000_000),
            slots,
            specialists: Vec::new(),
            placing: Box::new(Recorded(&[])),
            open: Vec::new(),
            effects: Vec::new(),
            deferred: Vec::new(),
            defer: true,
        }
    }

    pub(super) fn submitted(limits: RunLimits) -> Self {
        let mut fleet = Self::new();
        fleet.submit("Which limits are there?", limits);
        fleet
    }

    /// A new run with these limits, as they are.
    pub(super) fn with_goal(goal: Goal, limits: RunLimits) -> Self {
        let mut fleet = Self::new();
        fleet.begin_as_it_is(goal, limits);
        fleet
    }

    /// A run whose planner has given these tasks.
    pub(super) fn planned(limits: RunLimits, tasks: Vec<TaskDraft>) -> Self {
        let mut fleet = Self::submitted(limits);
        fleet.do_task("plan", plan(tasks));
        fleet
    }

    pub(super) fn submit(&mut self, goal: &str, limits: RunLimits) {
        self.begin(Goal::new(goal), limits);
    }

    /// Begins a run that is planned once: what makes plans anew has tests of its own.
    pub(super) fn begin(&mut self, goal: Goal, limits: RunLimits) {
        let planning = muster_shared::flow::Planning::Always;
        self.begin_as_it_is(goal, RunLimits { planning, max_replans: 0, ..limits });
    }

    pub(super) fn begin_as_it_is(&mut self, goal: Goal, limits: RunLimits) {
        let (goal, secret) = (Box::new(goal), "ab".repeat(32));
        self.turn(vec![Input::Goal { goal, limits, secret, lessons: Vec::new(), signed: None }]);
    }

    pub(super) fn run(&self) -> &RunState {
        self.run.as_ref().unwrap()
    }

    pub(super) fn status(&self) -> RunStatus {
        self.run().status
    }

    pub(super) fn reason(&self) -> &str {
        self.run().reason.as_deref().unwrap_or_default()
    }

    /// Decides as the driver does: first to see what is wanted, then with what the queues have room for.
    pub(super) fn turn(&mut self, inputs: Vec<Input>) {
        let mut all = std::mem::take(&mut self.deferred);
        all.extend(inputs);
        let none: BTreeMap<Queue, u32> = self.slots.keys().map(|queue| (queue.clone(), 0)).collect();
        let dry = self.decide(&all, &none);
        let mut capacity: BTreeMap<Queue, u32> =
            self.slots.iter().map(|(queue, slots)| (queue.clone(), slots + spare(queue))).collect();
        for (queue, held) in dry.after.as_deref().map(in_work).unwrap_or_default() {
            // A role that nobody has takes one offer, which it holds, and is none of those that are there.
            if let Some(room) = capacity.get_mut(&queue) {
                *room = room.saturating_sub(held);
            }
        }
        let decision = self.decide(&all, &capacity);
        self.check(&decision, &capacity);
        if self.defer && decision.deferrable {
            self.deferred = all;
            assert_eq!(decision.put_off().as_deref(), self.run.as_ref(), "as if nothing was decided");
            return;
        }
        let more = decision.more;
        self.write(decision, all, capacity);
        if more {
            self.turn(vec![Input::Capacity]);
        }
    }

    fn decide(&self, inputs: &[Input], capacity: &BTreeMap<Queue, u32>) -> Decision {
        let situation = Situation {
            id: ID,
            now: self.now,
            capacity,
            specialists: &self.specialists,
            placing: &*self.placing,
        };
        decide(self.run.as_ref(), inputs, situation).unwrap()
    }

    fn check(&self, decision: &Decision, capacity: &BTreeMap<Queue, u32>) {
        for (queue, room) in capacity {
            let made = decision.offers.iter().filter(|offer| offer.queue == *queue).count();
            assert!(made <= *room as usize, "{made} offers for {queue}, which has room for {room}");
        }
    }

    fn write(&mut self, decision: Decision, inputs: Vec<Input>, capacity: BTreeMap<Queue, u32>) {
        let Decision { events, offers, effects, after, told_of_specialists, placements, .. } = decision;
        let decided = Decided {
            batch: Uuid::from_u128(self.record.len() as u128),
            by: "orchestrator-1".parse().unwrap(),
            inputs,
            now: self.now,
            basis: self.run.as_ref().map_or(Seq(0), |run| run.folded),
            after: self.run.as_ref().map_or(Seq(0), |run| run.decided),
            capacity,
            offers: 0,
            continues: false,
            specialists: if told_of_specialists { self.specialists.clone() } else { Vec::new() },
            placements,
            events,
            offer: None,
        };
        self.open.retain(|open| offers.iter().all(|offer| open.task != offer.task));
        self.open.extend(offers.iter().cloned());
        let (decided, rest) = decided.with_offers(offers);
        self.append(RecordEvent::Decided(decided));
        for offer in rest {
            self.append(RecordEvent::Offered(offer));
        }
        self.effects.extend(effects);
        assert_eq!(self.positionless(self.run.as_ref()), self.positionless(after.as_deref()));
        if self.status().is_ended() {
            self.open.clear();
        }
    }

    /// The run without what a decision cannot know: positions in the record, and what is for people only.
    pub(super) fn positionless(&self, run: Option<&RunState>) -> Option<RunState> {
        let mut run = run.cloned()?;
        (run.folded, run.decided, run.decided_at, run.batch) = (Seq(0), Seq(0), Millis(0), None);
        run.seen.clear();
        run.tasks.values_mut().filter_map(|task| task.lost.as_mut()).for_each(|lost| lost.at = Seq(0));
        Some(run)
    }

    fn next_seq(&self) -> Seq {
        Seq(self.record.last().map_or(0, |entry| entry.seq.0) + 1)
    }

    fn append(&mut self, event: RecordEvent) -> Seq {
        let seq = self.next_seq();
        let entry = Entry { seq, at: self.now, run: ID, event };
        let before = self.run.clone();
        apply(&mut self.run, &entry).unwrap();
        if let Some(before) = before {
            check_all(&before, &entry, self.run()).unwrap();
        }
        self.record.push(entry);
        seq
    }

    /// An agent reports, and the run decides upon it.
    pub(super) fn report(&mut self, offer: &TaskOffered, event: AgentEvent) {
        let input = self.report_only(offer, event);
        self.turn(vec![input]);
    }

    /// Who has a task: whoever began it last, whether or not that was decided upon.
    fn has(&self, offer: &TaskOffered) -> Option<AgentId> {
        let run = self.run();
        let begins = |key: &AgentKey, event: &AgentEvent| {
            let is_it = key.task == offer.task && key.generation == offer.generation;
            is_it && matches!(event, AgentEvent::Started(_))
        };
        let begun = run.pending.values().rfind(|(key, event)| begins(key, event));
        let held = run.tasks.get(&offer.task).and_then(|task| task.agent.clone());
        begun.map(|(key, _)| key.agent.clone()).or(held)
    }

    /// An agent reports, and nobody has decided yet.
    pub(super) fn report_only(&mut self, offer: &TaskOffered, event: AgentEvent) -> Input {
        let role = match &offer.queue {
            Queue::Role(role) => role.clone(),
            Queue::Agent(_) => Role::Worker,
        };
        // Whoever has the task speaks of it.
        let takes = matches!(event, AgentEvent::Started(_));
        let has = self.has(offer).filter(|_| !takes);
        let agent = has.unwrap_or_else(|| match &offer.queue {
            Queue::Agent(asked) => asked.clone(),
            Queue::Role(_) => AgentId::new(&role.to_string(), 1),
        });
        let key = AgentKey { role, agent, task: offer.task.clone(), generation: offer.generation };
        self.note(key, event)
    }

    /// An agent of the test's choice reports, and the run decides upon it.
    pub(super) fn report_as(&mut self, key: AgentKey, event: AgentEvent) {
        let input = self.note(key, event);
        self.turn(vec![input]);
    }

    /// The same, and nobody has decided yet.
    pub(super) fn report_only_as(&mut self, key: AgentKey, event: AgentEvent) -> Input {
        self.note(key, event)
    }

    fn note(&mut self, key: AgentKey, mut event: AgentEvent) -> Input {
        let queue = self.run.as_ref().and_then(|run| run.tasks.get(&key.task)?.queue.clone());
        if let (AgentEvent::Started(started), Some(queue)) = (&mut event, queue)
            && let Some(number) = started.ack.strip_prefix("ack")
        {
            started.ack = ack_in(&queue, number.trim_start_matches('-').parse().unwrap_or(0));
        }
        let seq = self.next_seq();
        let input = Input::of_agent(seq, &event);
        self.append(RecordEvent::Agent(key, event));
        input
    }

    pub(super) fn start(&mut self, offer: &TaskOffered) {
        self.report(offer, started());
    }

    pub(super) fn end(&mut self, offer: &TaskOffered, outcome: Outcome) {
        self.open.retain(|open| open.task != offer.task || open.generation != offer.generation);
        self.report(offer, AgentEvent::Outcome(outcome.into()));
    }

    /// An agent starts an open task.
    pub(super) fn begin_task(&mut self, task: &str) -> TaskOffered {
        let offer = self.find(task);
        self.start(&offer);
        offer
    }

    /// An agent ends an open task.
    pub(super) fn end_task(&mut self, task: &str, outcome: Outcome) -> TaskOffered {
        let offer = self.find(task);
        self.end(&offer, outcome);
        offer
    }

    /// An agent starts an open task and ends it.
    pub(super) fn do_task(&mut self, task: &str, outcome: Outcome) -> TaskOffered {
        self.begin_task(task);
        self.end_task(task, outcome)
    }

    /// An agent does an open task with the outcome of [`good`].
    pub(super) fn do_well(&mut self, task: &str, tasks: &[TaskDraft]) -> TaskOffered {
        let outcome = good(&self.find(task), tasks);
        self.do_task(task, outcome)
    }

    /// The timer fires at this time.
    pub(super) fn at(&mut self, time: Millis) {
        self.now = time;
        self.turn(vec![Input::Timer]);
    }

    pub(super) fn pass(&mut self, millis: u64) {
        self.at(Millis(self.now.0 + millis));
    }

    /// Everything goes well to the end of the run, and its record replays.
    pub(super) fn finish(&mut self, tasks: &[TaskDraft]) {
        self.work(|offer| good(offer, tasks));
        assert_eq!(self.status(), RunStatus::Completed, "{}", self.reason());
        replay(ID, &self.record).unwrap();
    }

    /// Whether the delivery with this number was withdrawn.
    pub(super) fn has_withdrawn(&self, offer: &TaskOffered, number: u32) -> bool {
        let (task, queue, ack) = (offer.task.clone(), offer.queue.clone(), ack_in(&offer.queue, number));
        self.effects.contains(&Effect::Withdraw { task, queue, ack })
    }

    /// Reasons of the requests that were refused.
    pub(super) fn refusals(&self) -> Vec<&str> {
        let refused = self.events().into_iter().filter_map(|event| match event {
            RunEvent::RequestRefused(RequestRefused { reason, .. }) => Some(reason.as_str()),
            _ => None,
        });
        refused.collect()
    }

    /// Body of the report.
    pub(super) fn body(&self) -> &str {
        &self.run().report.as_ref().unwrap().body
    }

    /// An agent suspends a task that waits for something.
    pub(super) fn wait(&mut self, offer: &TaskOffered, wait: Wait) {
        self.open.retain(|open| open.task != offer.task);
        let wait = Some(Box::new(Awaited { step: 1, wait }));
        let released = Released { reason: "it waits".into(), parked: true, wait, ..Released::default() };
        self.report(offer, AgentEvent::Released(released));
    }

    /// An agent of the test's choice ends a task.
    pub(super) fn end_as(&mut self, key: AgentKey, outcome: Outcome) {
        self.open.retain(|open| open.task != key.task || open.generation != key.generation);
        self.report_as(key, AgentEvent::Outcome(outcome.into()));
    }

    /// An agent puts a task down where it stands.
    pub(super) fn park(&mut self, offer: &TaskOffered) {
        self.open.retain(|open| open.task != offer.task || open.generation != offer.generation);
        let released = Released { reason: "paused".into(), parked: true, ..Released::default() };
        self.report(offer, AgentEvent::Released(released));
    }

    /// Somebody asks something of the run; `n` tells the request from others.
    pub(super) fn ask(&mut self, n: u128, action: RequestAction) {
        self.ask_because(n, action, "so be it");
    }

    pub(super) fn ask_because(&mut self, n: u128, action: RequestAction, reason: &str) {
        let request = Request::new(ID, action).because(reason).with_id(Uuid::from_u128(n));
        self.turn(vec![Input::Request(Request { by: "ann".into(), ..request })]);
    }

    /// Lets agents do everything that is offered, oldest first, until nothing is.
    pub(super) fn work(&mut self, mut answer: impl FnMut(&TaskOffered) -> Outcome) {
        self.work_in_order(|_| 0, &mut answer);
    }

    /// The same, where `pick` says which of the open offers ends next.
    pub(super) fn work_in_order(
        &mut self,
        mut pick: impl FnMut(usize) -> usize,
        mut answer: impl FnMut(&TaskOffered) -> Outcome,
    ) {
        let mut rounds = 0;
        while !self.open.is_empty() {
            let offer = self.open[pick(self.open.len()) % self.open.len()].clone();
            self.now = Millis(self.now.0 + 10);
            self.start(&offer);
            let outcome = answer(&offer);
            self.end(&offer, outcome);
            rounds += 1;
            assert!(rounds < 1000, "the run does not come to an end");
        }
    }

    /// Events of all decisions, in order.
    pub(super) fn events(&self) -> Vec<&RunEvent> {
        let decided = self.record.iter().filter_map(|entry| match &entry.event {
            RecordEvent::Decided(decided) => Some(decided),
            RecordEvent::Offered(_) | RecordEvent::Agent(..) => None,
        });
        decided.flat_map(|decided| &decided.events).collect()
    }

    pub(super) fn offered(&self) -> Vec<&TaskOffered> {
        let offers = self.record.iter().filter_map(|entry| match &entry.event {
            RecordEvent::Offered(offer) => Some(offer),
            RecordEvent::Decided(decided) => decided.offer.as_deref(),
            RecordEvent::Agent(..) => None,
        });
        offers.collect()
    }

    pub(super) fn find(&self, task: &str) -> TaskOffered {
        let task: TaskId = task.parse().unwrap();
        self.open
            .iter()
            .find(|offer| offer.task == task)
            .cloned()
            .unwrap_or_else(|| panic!("{task} is not offered"))
    }

    /// A task asks its peers, and goes on at once where it is answered at once.
    pub(super) fn ask_peer(&mut self, task: &str, request: PeerRequest) {
        let offer = self.begin_task(task);
        self.wait(&offer, Wait::Peer(Box::new(request)));
    }
}

/// An agent is lost that held nothing elsewhere.
pub(super) fn lost(agent: AgentId) -> Input {
    Input::AgentLost { agent, reason: "its connection ended".into(), steps: BTreeMap::new(), elsewhere: 0 }
}

/// Where the acknowledgement of a delivery from a queue goes; tests that say `ack` or `ack-2` mean this.
pub(super) fn ack_in(queue: &Queue, number: u32) -> String {
    format!("$JS.ACK.TASKS.{queue}.1.{number}")
}

pub(super) fn started() -> AgentEvent {
    begins(1, "ack")
}

pub(super) fn begins(attempt: u32, ack: &str) -> AgentEvent {
    let (ack, host) = (ack.to_owned(), "here".to_owned());
    AgentEvent::Started(Started { attempt: Attempt(attempt), ack, pid: 1, host, after_step: 0 })
}

pub(super) fn agent(number: u32) -> AgentId {
    AgentId::new("worker", number)
}

/// A worker's key for an offer.
pub(super) fn key(number: u32, offer: &TaskOffered) -> AgentKey {
    let (task, generation) = (offer.task.clone(), offer.generation);
    AgentKey { role: Role::Worker, agent: agent(number), task, generation }
}

pub(super) fn done(product: Product) -> Outcome {
    let (reason, usage) =
        (String::new(), muster_shared::flow::Usage { model_calls: 1, ..Default::default() });
    Outcome { ending: Ending::Done, reason, product: Some(product), usage, ..Outcome::of_fault() }
}

pub(super) fn failed(ending: Ending, reason: &str) -> Outcome {
    Outcome { ending, reason: reason.into(), product: None, ..done(Product::Report(Report::default())) }
}

pub(super) fn leaf(name: &str, needs: &[&str]) -> TaskDraft {
    TaskDraft {
        name: name.into(),
        goal: format!("find out about {name}"),
        role: Some("worker".into()),
        expected_output: "a sentence".into(),
        depends_on: needs.iter().map(|on| (*on).to_owned()).collect(),
        ..TaskDraft::default()
    }
}

pub(super) fn plan(tasks: Vec<TaskDraft>) -> Outcome {
    done(Product::Plan(PlanDraft { goal: "the goal".into(), tasks, ..PlanDraft::default() }))
}

pub(super) fn result(conclusion: &str) -> Outcome {
    let finding = Finding { text: conclusion.into(), ..Finding::default() };
    let result =
        TaskResult { conclusion: conclusion.into(), findings: vec![finding], ..TaskResult::default() };
    done(Product::Result(result))
}

pub(super) fn advising(conclusion: &str, reason: &str) -> Outcome {
    let advice = Advice { refine: true, reason: reason.into(), suggestions: Vec::new(), plan: None };
    let result = TaskResult { conclusion: conclusion.into(), advice: Some(advice), ..TaskResult::default() };
    done(Product::Result(result))
}

pub(super) fn reflection(refine: Option<&str>) -> Outcome {
    let refine = refine.map(str::to_owned);
    done(Product::Reflection(Reflection { summary: "so it went".into(), refine, ..Reflection::default() }))
}

pub(super) fn refinement(operations: Vec<RefineOperation>) -> Outcome {
    done(Product::Refinement(operations))
}

pub(super) fn report() -> Outcome {
    done(Product::Report(Report { title: "Report".into(), body: "# Report".into(), ..Report::default() }))
}

/// A draft is accepted unless there are remarks on it.
pub(super) fn draft_review(remarks: &[&str]) -> Outcome {
    let remark = |text: &&str| DraftRemark { place: "Report".into(), text: (*text).into() };
    let verdict = if remarks.is_empty() { DraftVerdict::Accept } else { DraftVerdict::Revise };
    let remarks = remarks.iter().map(remark).collect();
    done(Product::DraftReview(DraftReview { verdict, remarks, ..DraftReview::default() }))
}

/// Answers as a fleet does in which everything goes well, with this plan.
pub(super) fn good(offer: &TaskOffered, tasks: &[TaskDraft]) -> Outcome {
    match &offer.work {
        Work::Plan { .. } => plan(tasks.to_vec()),
        Work::Execute { task, .. } => result(&format!("{} is so", task.name)),
        Work::Reflect { .. } => reflection(None),
        Work::Refine { .. } => refinement(vec![RefineOperation::Exit { reason: "fine".into() }]),
        Work::Write { .. } => report(),
        Work::DraftReview { .. } => draft_review(&[]),
    }
}
