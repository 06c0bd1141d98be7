//! Brought plans, plans improved from lessons, and plans that fail.

use muster_shared::flow::{
    Ending, Finding, Goal, Outcome, PlanDraft, Product, ReflectionLevel, RunLimits, TaskDraft, TaskOffered,
    TaskResult, TaskStatus, Work,
};
use muster_shared::ids::TaskId;
use muster_shared::run::{Input, RequestAction, RunStatus};

use super::fleet::{Fleet, done, failed, leaf, plan, reflection, report, result};

pub(super) const GOAL: &str = "Find out about apples, and compare them with pears.";

fn begun(goal: Goal) -> Fleet {
    Fleet::with_goal(goal, RunLimits::default())
}

fn names(fleet: &Fleet) -> Vec<&'static str> {
    fleet.events().into_iter().map(|event| event.name()).collect()
}

fn count(fleet: &Fleet, name: &str) -> usize {
    names(fleet).into_iter().filter(|event| *event == name).count()
}

fn critical(name: &str) -> TaskDraft {
    TaskDraft { critical: true, ..leaf(name, &[]) }
}

/// Plans as told, leaves by `leaf`, everything else well.
fn answer(
    offer: &TaskOffered,
    plans: &mut impl FnMut(&Work) -> Outcome,
    leaf: &impl Fn(&str) -> Outcome,
) -> Outcome {
    match (&offer.task, &offer.work) {
        (TaskId::Plan, work) => plans(work),
        (TaskId::Leaf(_), Work::Execute { task, .. }) => leaf(&task.name),
        (TaskId::Reflect(_), _) => reflection(None),
        (TaskId::Write, _) => report(),
        (task, _) => panic!("{task} is not expected"),
    }
}

#[test]
fn a_plan_that_is_brought_is_left_as_it_is_written() {
    let mut only = leaf("the only part", &[]);
    only.goal = "Use what {{first-thing.result}} says.".into();
    only.depends_on = vec!["first thing".into()];
    let whole = TaskDraft {
        name: "the whole".into(),
        goal: "do it".into(),
        subtasks: vec![only],
        ..TaskDraft::default()
    };
    let brought = |tasks| Some(Box::new(PlanDraft { tasks, ..PlanDraft::default() }));
    let fleet =
        begun(Goal { plan: brought(vec![leaf("first thing", &[]), whole.clone()]), ..Goal::new(GOAL) });
    let plan = fleet.run().plan.as_ref().unwrap();
    let indices: Vec<String> = plan.tasks.keys().map(ToString::to_string).collect();
    assert_eq!(indices, ["1", "2", "2-1"], "no parent is taken out");
    assert!(plan.tasks.values().any(|task| task.goal == "Use what {{1.result}} says."), "{plan:?}");

    let fleet = begun(Goal { plan: brought(vec![leaf("first things", &[]), whole]), ..Goal::new(GOAL) });
    assert!(fleet.reason().contains("nearest to it: first things"), "{}", fleet.reason());
}

#[test]
fn a_plan_that_is_brought_is_carried_out_or_refused_before_anything_starts() {
    let tasks = vec![leaf("apples", &[]), leaf("pears", &["apples"])];
    let brought = |tasks| Some(Box::new(PlanDraft { tasks, ..PlanDraft::default() }));
    let mut fleet = begun(Goal { plan: brought(tasks), ..Goal::new(GOAL) });
    fleet.work(|offer| answer(offer, &mut |_| panic!("a plan was asked for"), &result));
    assert_eq!(fleet.status(), RunStatus::Completed);
    // Nothing but a task for members is due with the first decision: the next one has to follow.
    let shared = TaskDraft { pattern: Some("committee:2".into()), ..leaf("apples", &[]) };
    let mut fleet = begun(Goal { plan: brought(vec![shared]), ..Goal::new(GOAL) });
    fleet.work(|offer| answer(offer, &mut |_| panic!("a plan was asked for"), &result));
    assert_eq!(fleet.status(), RunStatus::Completed);
    let knot = vec![leaf("apples", &["pears"]), leaf("pears", &["apples"])];
    let fleet = begun(Goal { plan: brought(knot), ..Goal::new(GOAL) });
    assert_eq!(fleet.status(), RunStatus::Failed);
    assert!(
        fleet.offered().is_empty() && fleet.reason().contains("wait for each other"),
        "{}",
        fleet.reason()
    );
}

/// A planner that proposes what cannot be done is told so once; then rules make a plan of it.
#[test]
fn plans_with_empty_tasks_or_too_many_levels_cost_two_calls_and_no_run() {
    let below = |task: TaskDraft, name: &str| TaskDraft { subtasks: vec![task], ..leaf(name, &[]) };
    let pair = |name: &str, other: &str| vec![leaf(name, &[]), leaf(other, &[])];
    let deep = TaskDraft { subtasks: pair("red apples", "green apples"), ..leaf("apples", &[]) };
    let deep = below(below(below(deep, "fruit"), "food"), "all");
    let empty = TaskDraft { name: " ".into(), goal: String::new(), ..leaf("x", &[]) };
    let proposals =
        [vec![], vec![empty.clone()], vec![empty, leaf("apples", &[]), leaf("pears", &[])], vec![deep]];
    for proposal in proposals {
        let mut fleet = begun(Goal::new(GOAL));
        let mut asked = 0;
        let mut plans = |_: &Work| {
            asked += 1;
            plan(proposal.clone())
        };
        fleet.work(|offer| answer(offer, &mut plans, &result));
        assert_eq!((fleet.status(), asked), (RunStatus::Completed, 2), "{proposal:?}: {}", fleet.reason());
        let leaves = fleet.run().plan.as_ref().unwrap().leaves().count();
        assert!(leaves >= 1, "{proposal:?}");
        crate::replay::replay(super::fleet::ID, &fleet.record).unwrap();
    }
}

#[test]
fn whoever_wants_no_plan_gets_none_when_something_fails_either() {
    let limits = RunLimits { planning: muster_shared::flow::Planning::Never, ..RunLimits::default() };
    let mut fleet = Fleet::with_goal(Goal::new(GOAL), limits);
    let failing = |_: &str| failed(Ending::ModelFailed, "no model");
    fleet.work(|offer| answer(offer, &mut |_| panic!("a plan was asked for"), &failing));
    assert!(fleet.status().is_ended(), "{:?}", fleet.status());
    assert_eq!(count(&fleet, "replan_wanted"), 0, "{:?}", names(&fleet));
    // Nor when the task wants a run of its own, which would begin with a planner.
    let limits = RunLimits { planning: muster_shared::flow::Planning::Never, ..RunLimits::default() };
    let mut fleet = Fleet::with_goal(Goal::new(GOAL), limits);
    let offer = fleet.begin_task("1");
    super::children::want_only(&mut fleet, &offer, "count the ships");
    assert!(fleet.run().children.is_empty(), "{:?}", fleet.run().children);
    let told = fleet.find("1").answered.map(|answered| answered.observation.content);
    assert!(told.as_ref().is_some_and(|told| told.contains("without plans")), "{told:?}");
}

#[test]
fn a_critical_failure_has_what_is_left_planned_anew_and_what_ended_stays() {
    let mut fleet = begun(Goal::new(GOAL));
    let mut asked = 0;
    let mut plans = |work: &Work| {
        asked += 1;
        let Work::Plan { replan, .. } = work else { panic!("{work:?}") };
        let Some(brief) = replan else {
            return plan(vec![leaf("apples", &[]), critical("pears"), leaf("after", &["pears"])]);
        };
        assert_eq!(brief.first.to_string(), "4");
        assert!(brief.reasons[0].contains("cannot do without") && brief.results.len() == 1, "{brief:?}");
        plan(vec![leaf("other pears", &["1"])])
    };
    fleet.work(|offer| {
        answer(offer, &mut plans, &|name| match name {
            "pears" => failed(Ending::GaveUp, "there are none"),
            name => result(name),
        })
    });
    assert_eq!((fleet.status(), asked), (RunStatus::Completed, 2), "{}", fleet.reason());
    let now = fleet.run().plan.as_ref().unwrap();
    let left: Vec<String> = now.tasks.keys().map(ToString::to_string).collect();
    assert_eq!(left, ["1", "2", "4"], "what had not begun is gone, the rest stays under its index");
    assert_eq!(fleet.run().planned(&"1".parse().unwrap()).unwrap().status, TaskStatus::Completed);
    assert_eq!(count(&fleet, "replanned"), 1);
    assert!(fleet.run().report.as_ref().unwrap().unanswered[0].contains("2 pears"), "it stays failed");
}

#[test]
fn no_new_plan_has_a_task_that_a_person_skipped() {
    let renamed = TaskDraft { name: "other fruit".into(), ..leaf("plums", &[]) };
    for proposal in [vec![leaf("Plums", &[]), leaf("figs", &[])], vec![leaf("plums", &[])], vec![renamed]] {
        let mut fleet = begun(Goal::new(GOAL));
        fleet.do_task("plan", plan(vec![leaf("apples", &[]), critical("pears"), leaf("plums", &[])]));
        fleet.ask(1, RequestAction::Skip { task: "3".parse().unwrap() });
        fleet.do_task("2", failed(Ending::Escalate, "there are none"));
        fleet.open.retain(|offer| offer.task.to_string() != "3");
        fleet.work(|offer| answer(offer, &mut |_| plan(proposal.clone()), &result));
        assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
        assert_eq!(fleet.run().plan.as_ref().unwrap().tasks.len(), 2 + proposal.len(), "{proposal:?}");
    }
}

#[test]
fn after_three_new_plans_the_run_fails_and_says_what_was_tried() {
    let mut fleet = begun(Goal::new(GOAL));
    let mut asked = 0;
    let mut plans = |_: &Work| {
        asked += 1;
        plan(vec![leaf(&format!("easy {asked}"), &[]), critical(&format!("hard {asked}"))])
    };
    fleet.work(|offer| {
        answer(offer, &mut plans, &|name| match name.split(' ').next() {
            Some("hard") => failed(Ending::GaveUp, "too hard"),
            _ => result(name),
        })
    });
    assert_eq!((fleet.status(), asked), (RunStatus::Failed, 4));
    assert_eq!(count(&fleet, "replanned"), 3);
    let given_up = fleet.run().planning.given_up.as_ref().unwrap();
    assert_eq!(given_up.plans.len(), 4);
    assert!(given_up.simpler.contains("easy 1"), "{}", given_up.simpler);
    assert!(
        fleet.reason().contains("4 plans failed") && fleet.reason().contains("too hard"),
        "{}",
        fleet.reason()
    );
    let report = fleet.run().report.as_ref().unwrap();
    assert!(report.partial && report.body.contains("easy 1") && report.body.contains("What was tried"));
}

#[test]
fn two_failures_in_a_row_are_enough_and_one_is_not() {
    for (fails, replans) in [(1, 0), (2, 1)] {
        let mut fleet = begun(Goal::new(GOAL));
        let mut plans = [vec!["a 1", "b 2", "c 3"], vec!["d 0"]].into_iter();
        let mut made =
            |_: &Work| plan(plans.next().unwrap().into_iter().map(|name| leaf(name, &[])).collect());
        let leaf = |name: &str| match name[2..].parse::<u32>().unwrap() {
            n if n > 0 && n <= fails => failed(Ending::Escalate, "no"),
            _ => result(name),
        };
        fleet.work(|offer| answer(offer, &mut made, &leaf));
        assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
        assert_eq!(count(&fleet, "replanned"), replans, "{fails} failures");
    }
}

#[test]
fn lessons_of_earlier_runs_improve_the_plan_with_one_more_call() {
    for (lessons, calls) in [(vec!["look at the roots first".to_owned()], 2), (Vec::new(), 1)] {
        let mut fleet = Fleet::new();
        let (goal, limits) = (Box::new(Goal::new(GOAL)), RunLimits::default());
        let secret = "ab".repeat(32);
        fleet.turn(vec![Input::Goal { goal, limits, secret, lessons, signed: None }]);
        let mut asked = 0;
        let mut plans = |work: &Work| {
            asked += 1;
            let Work::Plan { draft, lessons, .. } = work else { panic!("{work:?}") };
            assert_eq!(draft.is_some(), asked == 2);
            assert_eq!(lessons.len(), calls - 1);
            plan(vec![leaf(if asked == 2 { "roots of apples and pears" } else { "apples and pears" }, &[])])
        };
        fleet.work(|offer| answer(offer, &mut plans, &result));
        assert_eq!((fleet.status(), asked), (RunStatus::Completed, calls), "{}", fleet.reason());
        assert_eq!(count(&fleet, "plan_iterated"), calls - 1);
    }
}

#[test]
fn low_confidence_leads_to_a_new_plan_only_for_what_is_left() {
    let limits =
        RunLimits { replan_below_confidence: 50, reflection: ReflectionLevel::None, ..RunLimits::default() };
    for (tasks, wanted) in [(vec![leaf("one", &[])], 0), (vec![leaf("one", &[]), leaf("two", &["one"])], 1)] {
        let mut fleet = Fleet::with_goal(Goal::new(GOAL), limits.clone());
        fleet.end_task("plan", plan(tasks));
        let unsure = Finding { text: "perhaps".into(), confidence: 10, ..Finding::default() };
        let found = TaskResult { findings: vec![unsure], ..TaskResult::default() };
        fleet.do_task("1", done(Product::Result(found)));
        assert_eq!(count(&fleet, "replan_wanted"), wanted);
    }
}

#[test]
fn parts_that_the_planner_leaves_uncovered_reach_the_writer() {
    let parts = vec!["the pears".to_owned()];
    let limits = RunLimits { reflection: ReflectionLevel::None, ..RunLimits::default() };
    let mut fleet = Fleet::submitted(limits);
    let draft =
        PlanDraft { tasks: vec![leaf("apples", &[])], uncovered: parts.clone(), ..PlanDraft::default() };
    fleet.end_task("plan", done(Product::Plan(draft)));
    assert_eq!(fleet.run().planning.uncovered, parts);
    fleet.end_task("1", result("apples are round"));
    let Work::Write { uncovered, .. } = fleet.find("write").work else { panic!("no report is written") };
    assert_eq!(uncovered, parts);
}

#[test]
fn a_draft_that_cannot_be_improved_is_carried_out_as_it_is() {
    let mut fleet = Fleet::new();
    let (goal, limits) = (Box::new(Goal::new(GOAL)), RunLimits::default());
    let (secret, lessons) = ("ab".repeat(32), vec!["so it is".to_owned()]);
    fleet.turn(vec![Input::Goal { goal, limits, secret, lessons, signed: None }]);
    let mut asked = 0;
    let mut plans = |_: &Work| {
        asked += 1;
        if asked == 1 { plan(vec![leaf("apples", &[])]) } else { failed(Ending::ModelFailed, "it is gone") }
    };
    fleet.work(|offer| answer(offer, &mut plans, &result));
    assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
}
