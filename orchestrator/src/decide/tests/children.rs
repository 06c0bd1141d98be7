//! Runs within runs, seen from either side: a task that waits for a run of its own, and the run it waits for.

use muster_shared::flow::{
    Advice, Budget, ChildGoal, Ending, Goal, ObservationStatus, Outcome, Parent, Product, Report, RunLimits,
    TaskDraft, TaskOffered, TaskResult, TaskRights, Usage, Wait, Work,
};
use muster_shared::ids::{Generation, RunId, TaskId, TaskIndex};
use muster_shared::run::{Child, ChildEnd, Input, RequestAction, RunEvent, RunStatus, StopReason};
use muster_shared::time::Millis;
use muster_shared::wire::Command;
use uuid::Uuid;

use super::fleet::{Fleet, cancel, done, failed, good, leaf, plan};
use super::review::tasks;
use crate::decide::{Effect, in_work, next_deadline};

const WANTED: &str = "count the ships";
const SECOND: u64 = 1_000;

fn begun(limits: RunLimits) -> Fleet {
    Fleet::planned(limits, tasks())
}

/// Has task 1 ask for a run of its own.
fn want(fleet: &mut Fleet, goal: &str) {
    let offer = fleet.begin_task("1");
    want_only(fleet, &offer, goal);
}

pub(super) fn want_only(fleet: &mut Fleet, offer: &TaskOffered, goal: &str) {
    let wanted = ChildGoal { goal: goal.to_owned(), domain: None, blueprint: None };
    fleet.wait(offer, Wait::Run(Box::new(wanted)));
}

/// A run whose task 1 waits for a run of its own.
fn waiting(limits: RunLimits) -> Fleet {
    let mut fleet = begun(limits);
    want(&mut fleet, WANTED);
    fleet
}

fn child(fleet: &Fleet) -> (RunId, Child) {
    let found = fleet.run().children.iter().max_by_key(|(_, child)| child.generation);
    found.map(|(run, child)| (*run, child.clone())).unwrap_or_else(|| {
        let told = fleet.open.iter().find_map(|offer| offer.answered.as_ref());
        panic!("no run was begun: {told:?}")
    })
}

/// The run that task 1 waits for.
fn awaited(fleet: &Fleet) -> Option<RunId> {
    fleet.run().planned(&TaskIndex::top(1))?.waiting.as_ref()?.for_run
}

fn commands(fleet: &Fleet) -> Vec<&Command> {
    let commands = fleet.effects.iter().filter_map(|effect| match effect {
        Effect::Command { command } => Some(&**command),
        _ => None,
    });
    commands.collect()
}

/// What was sent to a run, by name.
fn told(fleet: &Fleet, run: RunId) -> Vec<&'static str> {
    commands(fleet).iter().filter(|command| command.run() == run).map(|command| command.name()).collect()
}

fn end(status: RunStatus, body: Option<&str>) -> ChildEnd {
    let report = body.map(|body| Report { body: body.into(), ..Report::default() });
    let usage = Usage { model_calls: 3, ..Usage::default() };
    ChildEnd { status, reason: "so it came".into(), report, usage }
}

fn tell_end(fleet: &mut Fleet, child: RunId, end: ChildEnd) {
    fleet.turn(vec![Input::ChildEnded { child, end: Box::new(end) }]);
}

fn told_of_end(fleet: &Fleet) -> usize {
    fleet.events().iter().filter(|event| matches!(event, RunEvent::ChildEnded(_))).count()
}

fn observation(offer: &TaskOffered) -> (ObservationStatus, &str) {
    let answered = offer.answered.as_deref().unwrap();
    (answered.observation.status, &answered.observation.content)
}

#[test]
fn a_task_that_asks_for_a_run_waits_for_it_without_a_slot() {
    let mut fleet = waiting(RunLimits::default());
    let (id, kept) = child(&fleet);
    assert_eq!((awaited(&fleet), told(&fleet, id)), (Some(id), vec!["attend"]));
    assert_eq!(in_work(fleet.run()).values().sum::<u32>(), 1, "only the other task is in work");
    let parent = kept.goal.parent.unwrap();
    assert_eq!((parent.run, parent.task.to_string().as_str(), parent.depth), (fleet.run().id, "1", 1));
    assert_eq!(parent.goals, ["Which limits are there?", "find out about one"]);
    fleet.work(|offer| good(offer, &tasks()));
    assert_eq!(fleet.status(), RunStatus::Processing, "it does not end before its child");
    let limits = kept.goal.limits.unwrap();
    assert_eq!(limits.max_nesting, fleet.run().limits.max_nesting);
}

/// A child is told the person's goal, the tasks above, what its task builds on and what was learnt; its own child too.
#[test]
fn a_run_within_a_run_is_told_what_it_is_a_part_of() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    let planning = fleet.find("plan");
    let whole = TaskDraft { subtasks: vec![leaf("inner", &["one"])], ..leaf("whole", &[]) };
    fleet.end(&planning, plan(vec![leaf("one", &[]), whole, leaf("two", &[])]));
    fleet.do_task("1", suggesting("Seven ships.", &["count the boats too", ""]));
    while let Some(offer) = fleet.open.iter().find(|offer| matches!(offer.task, TaskId::Reflect(_))).cloned()
    {
        fleet.end(&offer, good(&offer, &tasks()));
    }
    let task = fleet.open.iter().find(|offer| offer.task.to_string().starts_with('2')).cloned().unwrap();
    let Work::Execute { lessons, .. } = &task.work else { panic!() };
    assert_eq!(lessons, &["1 suggests: count the boats too"]);
    fleet.start(&task);
    want_only(&mut fleet, &task, WANTED);
    let (_, kept) = child(&fleet);
    let told = kept.goal.parent.as_ref().unwrap().background.clone().unwrap();
    assert_eq!(told.asked, "Which limits are there?");
    assert_eq!(
        told.above.last().map(String::as_str),
        Some("find out about inner; as part of: find out about whole")
    );
    assert_eq!(told.results, [("one".to_owned(), "Seven ships.".to_owned())]);
    assert_eq!(told.lessons, ["1 suggests: count the boats too"]);

    let mut within = Fleet::new();
    within.begin(Goal::clone(&kept.goal), RunLimits::default());
    assert_eq!(within.find("plan").background.as_deref(), Some(&*told), "its planner is told");
    within.end_task("plan", plan(tasks()));
    assert_eq!(within.find("1").background.as_deref(), Some(&*told), "and so are its tasks");
    want(&mut within, "count the masts");
    let deeper = child(&within).1.goal.parent.unwrap().background.unwrap();
    assert_eq!(deeper.asked, "Which limits are there?");
    assert_eq!(&deeper.above[told.above.len()..], [WANTED, "find out about one"]);
    assert_eq!(deeper.results, told.results);
}

fn suggesting(conclusion: &str, suggestions: &[&str]) -> Outcome {
    let suggestions = suggestions.iter().map(|said| (*said).to_owned()).collect();
    let advice = Advice { suggestions, ..Advice::default() };
    let result = TaskResult { conclusion: conclusion.into(), advice: Some(advice), ..TaskResult::default() };
    done(Product::Result(result))
}

#[test]
fn the_task_goes_on_with_what_came_of_its_run() {
    use RunStatus::{Aborted, Completed, Failed};
    use StopReason::{BudgetExhausted, Cancelled, DeadlinePassed, Refused};
    for (status, body, observed, words) in [
        (Completed, Some("Seven ships."), ObservationStatus::Success, "Its report:\n\nSeven ships."),
        (Failed, None, ObservationStatus::Error, "failed: so it came. Do it within this task"),
        (Failed, Some("Five."), ObservationStatus::Error, "What it had until then:\n\nFive."),
        (Aborted(Cancelled), None, ObservationStatus::Error, "was cancelled"),
        (Aborted(DeadlinePassed), Some("Two."), ObservationStatus::Error, "ran out of time"),
        (Aborted(BudgetExhausted), None, ObservationStatus::Error, "ran out of its budget"),
        (Aborted(Refused), None, ObservationStatus::Error, "was refused"),
    ] {
        let mut fleet = waiting(RunLimits::default());
        let (id, _) = child(&fleet);
        let before = fleet.run().spending.used.model_calls;
        tell_end(&mut fleet, id, end(status, body));
        let again = fleet.find("1");
        assert_eq!((again.generation, again.continues), (Generation(2), Some(Generation(1))));
        assert_eq!(observation(&again).0, observed, "{status:?}");
        assert!(observation(&again).1.contains(words), "{status:?}: {}", observation(&again).1);
        assert_eq!(fleet.run().spending.used.model_calls, before + 3, "what it used counts");
        // It is told again, since nobody knows whether it was heard.
        tell_end(&mut fleet, id, end(status, body));
        assert_eq!((told_of_end(&fleet), fleet.run().spending.used.model_calls), (1, before + 3));
        fleet.finish(&tasks());
        assert!(!told(&fleet, id).contains(&"cancel"), "it had ended by itself");
    }
}

#[test]
fn the_end_of_an_unknown_run_changes_nothing() {
    let mut fleet = waiting(RunLimits::default());
    tell_end(&mut fleet, RunId::from_uuid(Uuid::from_u128(99)), end(RunStatus::Completed, Some("Lies.")));
    assert_eq!((told_of_end(&fleet), awaited(&fleet).is_some()), (0, true));
}

#[test]
fn pausing_reaches_the_child_and_what_it_ends_with_meanwhile_is_kept() {
    let mut fleet = waiting(RunLimits::default());
    let (id, _) = child(&fleet);
    fleet.ask(1, RequestAction::Pause);
    assert_eq!(told(&fleet, id), ["attend", "pause"]);
    tell_end(&mut fleet, id, end(RunStatus::Completed, Some("Seven ships.")));
    assert!(fleet.open.iter().all(|offer| offer.task.to_string() != "1"), "nothing is offered in a pause");
    fleet.ask(2, RequestAction::Resume { deadline_ms: None });
    assert_eq!(told(&fleet, id), ["attend", "pause"], "nobody waits for it any more");
    assert!(observation(&fleet.find("1")).1.contains("Seven ships"));
    fleet.finish(&tasks());
}

#[test]
fn resuming_reaches_the_child() {
    let mut fleet = waiting(RunLimits::default());
    let (id, _) = child(&fleet);
    fleet.ask(1, RequestAction::Pause);
    fleet.ask(2, RequestAction::Resume { deadline_ms: None });
    assert_eq!(told(&fleet, id), ["attend", "pause", "resume"]);
}

/// Whatever ends the wait ends the child.
#[test]
fn a_child_that_nobody_waits_for_is_cancelled() {
    type Ends = fn(&mut Fleet);
    let cases: [(&str, Ends); 5] = [
        ("cancelled", |fleet| {
            fleet.turn(vec![cancel("ann", "enough")]);
        }),
        ("out of time", |fleet| {
            fleet.at(fleet.run().deadline);
        }),
        ("skipped", |fleet| fleet.ask(1, RequestAction::Skip { task: TaskIndex::top(1) })),
        ("redone", |fleet| fleet.ask(1, RequestAction::Redo { task: TaskIndex::top(1) })),
        ("edited", |fleet| {
            let goal = "find out about the fleet".to_owned();
            fleet.ask(1, RequestAction::Edit { task: Some(TaskIndex::top(1)), goal });
        }),
    ];
    for (name, ends) in cases {
        let mut fleet = waiting(RunLimits::default());
        let (id, _) = child(&fleet);
        ends(&mut fleet);
        assert_eq!(awaited(&fleet), None, "{name}");
        assert_eq!(told(&fleet, id).iter().filter(|name| **name == "cancel").count(), 1, "{name}");
    }
}

/// The word to a child is lost with the process that was to send it.
#[test]
fn a_run_that_ended_tells_its_children_again_whenever_it_is_asked() {
    let mut fleet = waiting(RunLimits::default());
    let (id, _) = child(&fleet);
    fleet.turn(vec![cancel("ann", "enough")]);
    for input in [cancel("ann", "enough"), Input::Timer, Input::Capacity] {
        fleet.effects.clear();
        let is_word = input != Input::Capacity;
        fleet.turn(vec![input]);
        assert_eq!(told(&fleet, id), if is_word { vec!["cancel"] } else { vec![] });
    }
}

#[test]
fn a_task_done_again_begins_another_child_and_hears_nothing_of_the_first() {
    for ends_first in [true, false] {
        let mut fleet = waiting(RunLimits::default());
        let (first, _) = child(&fleet);
        if ends_first {
            tell_end(&mut fleet, first, end(RunStatus::Completed, Some("Seven ships.")));
            fleet.do_well("1", &tasks());
        }
        fleet.ask(1, RequestAction::Redo { task: TaskIndex::top(1) });
        let again = fleet.find("1");
        assert_eq!((again.continues, again.answered.as_ref()), (None, None), "from its beginning");
        want(&mut fleet, WANTED);
        let (second, kept) = child(&fleet);
        assert_ne!(first, second);
        assert_eq!((awaited(&fleet), kept.generation), (Some(second), again.generation));
        // The first one's end comes late: it was cancelled, or its word was repeated.
        tell_end(&mut fleet, first, end(RunStatus::Aborted(StopReason::Cancelled), None));
        assert_eq!(awaited(&fleet), Some(second), "it waits on for the second");
        tell_end(&mut fleet, second, end(RunStatus::Completed, Some("Eight ships.")));
        assert!(observation(&fleet.find("1")).1.contains("Eight ships"));
        fleet.finish(&tasks());
    }
}

#[test]
fn a_silent_child_is_asked_for_from_time_to_time() {
    let mut fleet = waiting(RunLimits::default());
    let (id, kept) = child(&fleet);
    fleet.do_well("2", &tasks());
    fleet.work(|offer| good(offer, &tasks()));
    let due = Millis(kept.asked_at.0 + 20 * SECOND);
    assert_eq!(next_deadline(fleet.run()), Some(due));
    fleet.at(Millis(due.0 - 1));
    assert_eq!(told(&fleet, id), ["attend"]);
    fleet.at(due);
    assert_eq!(told(&fleet, id), ["attend", "attend"]);
    assert_eq!(next_deadline(fleet.run()), Some(Millis(due.0 + 20 * SECOND)));
    let ids: Vec<_> = commands(&fleet).iter().map(|command| command.id()).collect();
    assert_ne!(ids[0], ids[1], "two commands, so that the second is not taken for the first");
}

/// A run for a task of another, at a depth.
fn attended(depth: u32) -> Fleet {
    let parent = Parent {
        run: RunId::from_uuid(Uuid::from_u128(3)),
        task: "1".parse().unwrap(),
        depth,
        goals: vec!["What is in the harbour?".into()],
        rights: TaskRights::default(),
        background: None,
    };
    let mut fleet = Fleet::new();
    fleet.begin(Goal { parent: Some(Box::new(parent)), ..Goal::new(WANTED) }, RunLimits::default());
    fleet.end_task("plan", plan(tasks()));
    fleet
}

fn ends_told(fleet: &Fleet) -> Vec<RunStatus> {
    let ends = commands(fleet).into_iter().filter_map(|command| match command {
        Command::ChildEnded { run, child, end, .. } => {
            assert_eq!((*run, *child), (RunId::from_uuid(Uuid::from_u128(3)), fleet.run().id));
            Some(end.status)
        }
        _ => None,
    });
    ends.collect()
}

fn attend_again(fleet: &mut Fleet) {
    let run = fleet.run();
    let (goal, limits) = (Box::new(run.goal.clone()), run.limits.clone());
    let secret = "cd".repeat(32);
    fleet.turn(vec![Input::Goal { goal, limits, secret, lessons: Vec::new(), signed: None }]);
}

#[test]
fn a_child_tells_its_end_once_and_again_when_it_is_asked_for() {
    type Ends = fn(&mut Fleet);
    let cases: [(RunStatus, Ends); 4] = [
        (RunStatus::Completed, |fleet| fleet.work(|offer| good(offer, &tasks()))),
        (RunStatus::Failed, |fleet| {
            fleet.work(|offer| match offer.task.to_string().as_str() {
                "1" | "2" => failed(Ending::Escalate, "no"),
                _ => good(offer, &tasks()),
            });
        }),
        (RunStatus::Aborted(StopReason::Cancelled), |fleet| {
            fleet.turn(vec![cancel("ann", "enough")]);
        }),
        (RunStatus::Aborted(StopReason::DeadlinePassed), |fleet| {
            fleet.at(fleet.run().deadline);
        }),
    ];
    for (status, ends) in cases {
        let mut fleet = attended(1);
        attend_again(&mut fleet);
        assert_eq!(ends_told(&fleet), [], "it goes on");
        ends(&mut fleet);
        assert_eq!(ends_told(&fleet), [status]);
        fleet.turn(vec![Input::Timer]);
        assert_eq!(ends_told(&fleet), [status], "nobody asked");
        attend_again(&mut fleet);
        assert_eq!(ends_told(&fleet), [status, status]);
    }
}

#[test]
fn a_report_that_is_too_long_for_a_task_is_cut_where_a_character_ends() {
    let mut fleet = attended(1);
    fleet.work(|offer| match offer.task.to_string().as_str() {
        "write" => {
            let long = Report { title: "Long".into(), body: "ä".repeat(20_000), ..Report::default() };
            super::fleet::done(muster_shared::flow::Product::Report(long))
        }
        _ => good(offer, &tasks()),
    });
    let told = commands(&fleet).into_iter().find_map(|command| match command {
        Command::ChildEnded { end, .. } => end.report.clone(),
        _ => None,
    });
    let body = told.unwrap().body;
    assert!(body.len() <= 12 * 1024 && body.chars().all(|letter| letter == 'ä'), "{}", body.len());
    assert!(fleet.body().len() > body.len());
}

/// What is asked for, and why it is not begun.
#[test]
fn runs_that_would_not_come_to_an_end_are_refused() {
    let at = |depth| move || attended(depth);
    let narrow = || {
        let budget = Budget { model_calls: Some(40), ..Budget::default() };
        begun(RunLimits { budget, max_nesting: 0, ..RunLimits::default() })
    };
    let cases: [(&dyn Fn() -> Fleet, &str, &str); 6] = [
        (&narrow, WANTED, "runs within runs are 0 deep at most"),
        (&at(RunLimits::default().max_nesting), "look at the masts", "deep at most"),
        (&|| begun(RunLimits::default()), "Find out  about ONE", "would wait for itself"),
        (&|| begun(RunLimits::default()), "which limits are there?", "would wait for itself"),
        (&at(1), "What is in the harbour?", "would wait for itself"),
        (&|| begun(RunLimits::default()), " ", "Do it within this task"),
    ];
    for (fleet, goal, why) in cases {
        let mut fleet = fleet();
        want(&mut fleet, goal);
        assert!(fleet.run().children.is_empty(), "{goal}");
        let again = fleet.find("1");
        assert_eq!(observation(&again).0, ObservationStatus::Refused);
        assert!(observation(&again).1.contains(why), "{}", observation(&again).1);
        fleet.finish(&tasks());
    }
}

#[test]
fn the_same_is_not_asked_for_twice_by_one_task() {
    let mut fleet = waiting(RunLimits::default());
    let (id, _) = child(&fleet);
    tell_end(&mut fleet, id, end(RunStatus::Failed, None));
    want(&mut fleet, "Count the  ships");
    assert!(observation(&fleet.find("1")).1.contains("there was a run for the same already"));
    want(&mut fleet, "count the boats");
    assert!(awaited(&fleet).is_some_and(|second| second != id));
}

#[test]
fn a_child_has_part_of_what_its_task_may_use() {
    let budget = Budget { model_calls: Some(80), ..Budget::default() };
    let mut fleet = waiting(RunLimits { budget, task_deadline_ms: 100 * SECOND, ..RunLimits::default() });
    let (id, kept) = child(&fleet);
    let given = fleet.offered().iter().find(|offer| offer.task.to_string() == "1").unwrap().budget;
    let (childs, tasks_own) = (kept.goal.budget.model_calls.unwrap(), given.model_calls.unwrap());
    assert!(childs > 0 && childs <= tasks_own * 3 / 4 + 1, "{childs} of {tasks_own}");
    assert_eq!(kept.goal.deadline_ms, Some(90 * SECOND));
    // Until its end is known, what it may use is set aside.
    fleet.do_well("2", &tasks());
    let offered: u64 = fleet.open.iter().filter_map(|offer| offer.budget.model_calls).sum();
    assert!(fleet.run().spending.used.model_calls + offered + childs <= 80, "{offered} and {childs}");
    tell_end(&mut fleet, id, end(RunStatus::Completed, Some("Seven.")));
    fleet.finish(&tasks());
}
