//! Every transition of a run, of its leaves and of what else its work is made of, each reached by decisions alone: some
//! hundred runs in which agents, people and the clock do what they like. What is reached is printed. What is listed and
//! not reached fails, and so does what is reached and not listed.

use std::collections::{BTreeMap, BTreeSet};

use muster_shared::flow::{
    Budget, DraftReviewPolicy, Ending, Goal, Outcome, Planning, Question, RefineOperation, RunLimits,
    TaskDraft, TaskOffered, TaskStatus, Wait, Work,
};
use muster_shared::ids::{AgentId, Attempt, Generation, QuestionId, Queue, Role, TaskId, TaskIndex};
use muster_shared::run::{
    AgentKey, Entry, Input, RecordEvent, RequestAction, RunState, apply, apply_event, apply_offer,
};
use muster_shared::time::Millis;

use crate::decide::holders;

use super::fleet::{
    Fleet, ID, advising, begins, cancel, draft_review, failed, leaf, lost, plan, refinement, reflection,
    report, result,
};

/// How often each transition was reached.
type Reached = BTreeMap<String, u32>;

const RUNS: u64 = 300;
const HAPPENINGS: u32 = 60;

/// What there is of each kind of thing: from each state, all that follow it. That a leaf fails before it was ever offered
/// could be folded, and no decision says so.
const ALL: [(&str, &str, &str); 21] = [
    ("run", "created", "aborted, failed, processing"),
    ("run", "processing", "aborted, completed, failed"),
    ("phase", "executing", "ended, writing"),
    ("phase", "planning", "ended, executing"),
    ("phase", "writing", "ended, executing"),
    ("leaf", "aborted", "created, skipped"),
    ("leaf", "blocked", "created, skipped"),
    ("leaf", "completed", "created"),
    ("leaf", "created", "aborted, blocked, left out of the plan, queued, skipped, split, waiting"),
    ("leaf", "failed", "created, skipped, split"),
    ("leaf", "processing", "aborted, completed, created, failed, processing, queued, skipped, split"),
    ("leaf", "queued", "aborted, completed, created, failed, processing, queued, skipped, split"),
    ("leaf", "skipped", "created"),
    ("leaf", "waiting", "created, skipped, split"),
    ("other task", "aborted", "created"),
    ("other task", "completed", "created"),
    ("other task", "created", "aborted, queued, waiting"),
    ("other task", "failed", "created"),
    ("other task", "processing", "aborted, completed, created, failed, processing, queued"),
    ("other task", "queued", "aborted, completed, created, failed, processing, queued"),
    ("other task", "waiting", "aborted, created"),
];

#[test]
fn every_transition_is_reached() {
    let mut reached = Reached::new();
    let by_chance = (0..RUNS).map(World::lived);
    for fleet in by_chance.chain(on_purpose()) {
        note_all(&fleet.record, &mut reached);
    }
    let rows = ALL
        .iter()
        .flat_map(|(kind, from, all)| all.split(", ").map(move |to| format!("{kind}: {from} > {to}")));
    let listed: BTreeSet<String> = rows.collect();
    println!("transitions of a run and its tasks, and how often {RUNS} runs reached each:");
    for name in listed.iter().chain(reached.keys().filter(|name| !listed.contains(*name))) {
        println!("{:>6}  {name}", reached.get(name).copied().unwrap_or(0));
    }
    let missing: Vec<&String> = listed.iter().filter(|name| !reached.contains_key(*name)).collect();
    let unknown: Vec<&String> = reached.keys().filter(|name| !listed.contains(*name)).collect();
    println!("{} of {} reached", listed.len() - missing.len(), listed.len());
    assert!(missing.is_empty(), "not reached: {missing:?}");
    assert!(unknown.is_empty(), "reached and not listed: {unknown:?}");
}

/// What of a run's state has transitions.
#[derive(Default, Clone, PartialEq)]
struct Stand {
    run: Option<(String, String)>,
    tasks: BTreeMap<TaskId, (&'static str, TaskStatus, Generation, Attempt)>,
}

impl Stand {
    fn of(run: &RunState) -> Self {
        let tasks = run.tasks.iter().filter_map(|(task, state)| {
            let kind = match task {
                TaskId::Leaf(index) => match &run.plan {
                    // What lies above others has the state of these.
                    Some(plan) if !plan.is_leaf(index) && state.status != TaskStatus::Split => return None,
                    Some(_) | None => "leaf",
                },
                TaskId::Plan
                | TaskId::Reflect(_)
                | TaskId::Refine(_)
                | TaskId::Settle(_)
                | TaskId::Write
                | TaskId::DraftReview(_) => "other task",
            };
            Some((task.clone(), (kind, state.status, state.generation, state.attempt)))
        });
        let status = format!("{:?}", run.status).split('(').next().unwrap_or_default().to_owned();
        Self { run: Some((status, format!("{:?}", run.phase))), tasks: tasks.collect() }
    }

    /// Notes what is different afterwards.
    fn note(&self, after: &Self, reached: &mut Reached) {
        let mut count = |kind: &str, from: &str, to: &str| {
            *reached.entry(format!("{kind}: {from} > {to}").to_lowercase()).or_default() += 1;
        };
        let (new, old) = (after.run.clone().unwrap_or_default(), self.run.clone().unwrap_or_default());
        for (kind, from, to) in [("run", old.0, new.0), ("phase", old.1, new.1)] {
            if from != to && !from.is_empty() {
                count(kind, &from, &to);
            }
        }
        for (task, (kind, status, generation, attempt)) in &after.tasks {
            let Some((_, was, older, tried)) = self.tasks.get(task) else { continue };
            let again = match status {
                TaskStatus::Queued => generation > older,
                TaskStatus::Processing => attempt > tried,
                TaskStatus::Created
                | TaskStatus::Waiting
                | TaskStatus::Completed
                | TaskStatus::Failed
                | TaskStatus::Aborted
                | TaskStatus::Skipped
                | TaskStatus::Blocked
                | TaskStatus::Split => false,
            };
            if was != status || again {
                count(kind, &format!("{was:?}"), &format!("{status:?}"));
            }
        }
        for (task, (kind, was, _, _)) in &self.tasks {
            if !after.tasks.contains_key(task) && *kind == "leaf" {
                count(kind, &format!("{was:?}"), "left out of the plan");
            }
        }
    }
}

/// Folds a record event by event: a decision may move a task more than once.
fn note_all(record: &[Entry], reached: &mut Reached) {
    let mut run: Option<RunState> = None;
    for entry in record {
        let mut folded = run.clone();
        let mut before = folded.as_ref().map(Stand::of).unwrap_or_default();
        let mut noted = |run: &RunState| {
            let after = Stand::of(run);
            before.note(&after, reached);
            before = after;
        };
        match &entry.event {
            RecordEvent::Decided(decided) => {
                for event in &decided.events {
                    apply_event(&mut folded, ID, event, decided.now).unwrap();
                    folded.iter().for_each(&mut noted);
                }
                if let (Some(run), Some(offer)) = (folded.as_mut(), &decided.offer) {
                    apply_offer(run, offer, decided.now).unwrap();
                    noted(run);
                }
            }
            RecordEvent::Offered(offer) => {
                let run = folded.as_mut().unwrap();
                apply_offer(run, offer, run.decided_at).unwrap();
                noted(run);
            }
            RecordEvent::Agent(..) => {}
        }
        apply(&mut run, entry).unwrap();
    }
}

/// A source of chance that gives the same for the same seed.
struct Chance(u64);

impl Chance {
    fn of(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }

    fn happens(&mut self, one_in: u64) -> bool {
        self.of(one_in) == 0
    }

    fn one<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[usize::try_from(self.of(all.len() as u64)).unwrap()]
    }

    /// A task of the plan.
    fn task(&mut self, run: &RunState) -> TaskIndex {
        let all: Vec<TaskIndex> = run.plan.iter().flat_map(|plan| plan.tasks.keys().cloned()).collect();
        // What went wrong is what people care for.
        let wrong = |index: &&TaskIndex| {
            let status = run.planned(index).map(|task| task.status);
            matches!(status, Some(TaskStatus::Aborted | TaskStatus::Blocked | TaskStatus::Failed))
        };
        let wrong: Vec<TaskIndex> = all.iter().filter(wrong).cloned().collect();
        if !wrong.is_empty() && self.happens(2) {
            return self.one(&wrong).clone();
        }
        if all.is_empty() || self.happens(20) { TaskIndex::top(9) } else { self.one(&all).clone() }
    }
}

/// A run among agents, people and a clock that do what they like.
struct World {
    fleet: Fleet,
    chance: Chance,
    asked: u128,
}

impl World {
    fn lived(seed: u64) -> Fleet {
        let mut chance = Chance(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
        let mut fleet = Fleet::new();
        let limits = limits(&mut chance);
        fleet.begin_as_it_is(Goal::new("Find out about everything there is."), limits);
        let mut world = Self { fleet, chance, asked: 0 };
        for _ in 0..HAPPENINGS {
            if world.fleet.status().is_ended() {
                break;
            }
            world.happen();
        }
        world.fleet
    }

    fn happen(&mut self) {
        self.fleet.now = Millis(self.fleet.now.0 + 10);
        match self.chance.of(28) {
            0 => self.ask(RequestAction::Pause),
            1 | 2 => self.ask(RequestAction::Resume { deadline_ms: None }),
            3 => {
                let task = self.task();
                self.ask(RequestAction::Skip { task });
            }
            4 => {
                let task = self.task();
                self.ask(RequestAction::Redo { task });
            }
            5 => {
                let task = Some(self.task()).filter(|_| !self.chance.happens(4));
                self.ask(RequestAction::Edit { task, goal: "something new".into() });
            }
            6 if self.chance.happens(12) => {
                self.fleet.turn(vec![cancel("bob", "")]);
            }
            6 => self.fleet.pass(6_000),
            7 if self.chance.happens(8) => self.fleet.pass(60 * 60 * 1000),
            7 => self.fleet.pass(30_000),
            8 => {
                let question = QuestionId(u32::try_from(self.chance.of(3) + 1).unwrap());
                self.ask(RequestAction::Answer { question, text: "so".into() });
            }
            9 => self.lose(),
            _ => self.work(),
        }
    }

    fn task(&mut self) -> TaskIndex {
        self.chance.task(self.fleet.run())
    }

    fn ask(&mut self, action: RequestAction) {
        self.asked += 1;
        self.fleet.ask(self.asked, action);
    }

    fn lose(&mut self) {
        let holders: Vec<AgentId> = holders(self.fleet.run()).into_iter().collect();
        if holders.is_empty() {
            return;
        }
        let agent = self.chance.one(&holders).clone();
        self.fleet.turn(vec![lost(agent)]);
    }

    /// An agent does something with an offer that is open.
    fn work(&mut self) {
        if self.fleet.open.is_empty() {
            return self.fleet.turn(vec![Input::Capacity]);
        }
        let offer = self.chance.one(&self.fleet.open).clone();
        match self.chance.of(12) {
            0..3 => self.start(&offer),
            3 => self.fleet.park(&offer),
            4 => {
                self.start(&offer);
                let question = Question { within_ms: Some(5_000), ..Question::new("Which?") };
                self.fleet.wait(&offer, Wait::Answer(question));
            }
            what => {
                // What is begun and ended before anybody decides, is decided at once.
                if what > 5 {
                    self.start(&offer);
                }
                let outcome = self.outcome(&offer);
                self.fleet.end(&offer, outcome);
            }
        }
    }

    /// Another try of the offer, by one of two agents.
    fn start(&mut self, offer: &TaskOffered) {
        let role: Role = offer.queue.to_string().parse().unwrap_or(Role::Worker);
        let one_of_two = AgentId::new(&role.to_string(), u32::try_from(self.chance.of(2) + 1).unwrap());
        let agent = match &offer.queue {
            Queue::Agent(asked) => asked.clone(),
            Queue::Role(_) => one_of_two,
        };
        let tried = self.fleet.run().tasks.get(&offer.task).map_or(0, |state| state.attempt.0);
        let key = AgentKey { role, agent, task: offer.task.clone(), generation: offer.generation };
        self.fleet.report_as(key, begins(tried + 1, "ack"));
    }

    fn outcome(&mut self, offer: &TaskOffered) -> Outcome {
        let chance = &mut self.chance;
        if chance.happens(6) {
            let ending = [Ending::AgentFailed, Ending::GaveUp, Ending::Escalate, Ending::ModelFailed];
            return failed(*chance.one(&ending), "it would not do");
        }
        match &offer.work {
            Work::Plan { .. } => plan(tasks(chance)),
            Work::Execute { .. } if chance.happens(4) => advising("found", "there is more"),
            Work::Execute { task, .. } => result(&task.name),
            Work::Reflect { .. } => reflection(chance.happens(3).then_some("there is more")),
            Work::Refine { .. } => {
                let run = self.fleet.run.as_ref().unwrap();
                refinement((0..3).map(|_| operation(chance, run)).collect())
            }
            Work::Write { .. } => report(),
            Work::DraftReview { .. } => draft_review(if chance.happens(2) { &["more"] } else { &[] }),
        }
    }
}

/// What hardly ever comes about by chance.
fn on_purpose() -> Vec<Fleet> {
    let redo = |fleet: &mut Fleet, n: u128, task: &str| {
        fleet.ask(n, RequestAction::Redo { task: task.parse().unwrap() });
    };
    let skip = |fleet: &mut Fleet, n: u128, task: &str| {
        fleet.ask(n, RequestAction::Skip { task: task.parse().unwrap() });
    };
    let mut all = Vec::new();
    for busy in [false, true] {
        let (goal, limits) = (Box::new(Goal::new("too much")), RunLimits::default());
        let mut fleet = Fleet::new();
        fleet.turn(vec![Input::Refuse { goal, limits, reason: "not now".into(), busy }]);
        all.push(fleet);
    }
    // What failed is split.
    let mut fleet = Fleet::planned(RunLimits::default(), vec![leaf("one", &[])]);
    fleet.do_task("1", failed(Ending::Escalate, "it is too much"));
    fleet.do_task("reflect-1", reflection(Some("it is too much")));
    split(&mut fleet, "1");
    all.push(fleet);
    // Something is split that somebody wants done again meanwhile, whether or not an agent has begun with it.
    for begun in [false, true] {
        let mut fleet = done_but_for_the_refiner();
        redo(&mut fleet, 1, "1");
        if begun {
            fleet.begin_task("1");
        }
        split(&mut fleet, "1");
        all.push(fleet);
    }
    // What was cut off, or could not begin, is done after all, or left out.
    let short = RunLimits { run_deadline_ms: 60_000, ..RunLimits::default() };
    for (failing, limits, wrong) in [(true, RunLimits::default(), "2"), (false, short, "1")] {
        for left_out in [false, true] {
            let three = vec![leaf("one", &[]), leaf("two", &["one"]), leaf("three", &[])];
            let mut fleet = Fleet::planned(limits.clone(), three);
            fleet.do_task("3", result("three"));
            if failing {
                fleet.do_task("1", failed(Ending::Escalate, "it would not do"));
                fleet.do_task("reflect-1", reflection(None));
                fleet.do_task("reflect-3", reflection(None));
            }
            // Of a short run, this is within the time that is kept for the report.
            fleet.pass(57_000);
            redo(&mut fleet, 1, if left_out { "3" } else { wrong });
            if left_out {
                skip(&mut fleet, 2, wrong);
                fleet.do_task("3", result("three again"));
            }
            all.push(fleet);
        }
    }
    all
}

/// A run whose two leaves have ended, and whose refiner has its task in hand.
pub(super) fn done_but_for_the_refiner() -> Fleet {
    let mut fleet = Fleet::planned(RunLimits::default(), vec![leaf("one", &[]), leaf("two", &[])]);
    for (task, index) in [("1", "reflect-1"), ("2", "reflect-2")] {
        fleet.do_task(task, advising("found", "there is more"));
        fleet.do_task(index, reflection(None));
    }
    fleet.begin_task("refine-1");
    fleet
}

/// The refiner wants a task split in two.
pub(super) fn split(fleet: &mut Fleet, task: &str) {
    let into = vec![leaf("one half", &[]), leaf("the other half", &[])];
    let split = RefineOperation::Split { task: task.parse().unwrap(), into };
    fleet.end_task("refine-1", refinement(vec![split]));
}

fn limits(chance: &mut Chance) -> RunLimits {
    let some = |wanted: bool, limit: u64| wanted.then_some(limit);
    RunLimits {
        planning: Planning::Always,
        max_replans: if chance.happens(2) { 1 } else { 0 },
        max_deaths: 2,
        max_refinements: 5,
        draft_review: if chance.happens(3) { DraftReviewPolicy::On } else { DraftReviewPolicy::Off },
        budget: Budget { model_calls: some(chance.happens(5), 12), ..Budget::UNLIMITED },
        ..RunLimits::default()
    }
}

/// A plan, now and then one that cannot be carried out.
fn tasks(chance: &mut Chance) -> Vec<TaskDraft> {
    let name = |number: u64| format!("part {number}");
    let mut tasks: Vec<TaskDraft> = Vec::new();
    for number in 1..=chance.of(3) + 1 {
        let before = (1..number).filter(|_| chance.happens(2)).map(name).collect::<Vec<_>>();
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        tasks.push(TaskDraft { critical: chance.happens(5), ..leaf(&name(number), &before) });
    }
    if chance.happens(4) {
        tasks[0].subtasks = vec![leaf("one half", &[]), leaf("the other half", &["one half"])];
    }
    if chance.happens(8) {
        tasks[0].depends_on = vec!["nothing".into()];
    }
    tasks
}

fn operation(chance: &mut Chance, run: &RunState) -> RefineOperation {
    let named = |chance: &mut Chance| leaf(&format!("more {}", chance.of(1_000)), &[]);
    match chance.of(5) {
        0 | 4 => RefineOperation::Split { task: chance.task(run), into: vec![named(chance), named(chance)] },
        1 => RefineOperation::Add { after: chance.task(run), tasks: vec![named(chance)] },
        2 => RefineOperation::Delete { task: chance.task(run), reason: "not needed".into() },
        _ => RefineOperation::Exit { reason: "enough".into() },
    }
}
