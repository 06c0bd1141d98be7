//! Runs that do little where no more is needed: a goal begins as one task, what that gives is the report, and reflections
//! come where something went wrong.

use muster_shared::flow::response::DECLINED;
use muster_shared::flow::{
    Advice, Budget, Citation, ConflictStep, Ending, Finding, Goal, ModelVerification, Outcome, PlanDraft,
    Planning, Product, RefineOperation, Reflection, ReflectionLevel, RunLimits, TaskDraft, TaskOffered,
    TaskResult, Work, Writing,
};
use muster_shared::ids::{Generation, TaskId, TaskIndex};
use muster_shared::run::{RunStatus, TaskEnd, end_of};

use super::conflicts;
use super::fleet::{Fleet, advising, done, failed, good, leaf, plan, refinement, reflection, report, result};

const GOAL: &str = "Compare the four proposals and recommend one.";

fn sparing() -> RunLimits {
    RunLimits {
        planning: Planning::Auto,
        reflection: ReflectionLevel::WhenNeeded,
        writer: Writing::UnlessSingle,
        verification: ModelVerification::Off,
        iterate_plans: false,
        ..RunLimits::default()
    }
}

fn begun(text: &str) -> Fleet {
    Fleet::with_goal(Goal::new(text), sparing())
}

/// A run whose plan was made by a planner.
fn planned(tasks: Vec<TaskDraft>) -> Fleet {
    let mut fleet = Fleet::with_goal(Goal::new(GOAL), RunLimits { planning: Planning::Always, ..sparing() });
    fleet.end_task("plan", plan(tasks));
    fleet
}

fn offered(fleet: &Fleet) -> Vec<String> {
    fleet.offered().iter().map(|offer| offer.task.to_string()).collect()
}

fn given(result: TaskResult) -> Outcome {
    done(Product::Result(result))
}

fn wish(conclusion: &str) -> Outcome {
    let advice = Advice { plan: Some("it falls into two parts".into()), ..Advice::default() };
    let outcome =
        given(TaskResult { conclusion: conclusion.into(), advice: Some(advice), ..TaskResult::default() });
    Outcome { ending: Ending::DonePartial, reason: "it falls into two parts".into(), ..outcome }
}

fn operations(offer: &TaskOffered) -> (bool, bool) {
    match &offer.work {
        Work::Execute { may_plan, earlier, .. } => (*may_plan, earlier.is_some()),
        other => panic!("{other:?}"),
    }
}

fn replayed(fleet: &Fleet) {
    crate::replay::replay(super::fleet::ID, &fleet.record).unwrap();
}

#[test]
fn a_goal_is_one_task_and_what_that_gives_is_the_report() {
    let mut fleet = begun(GOAL);
    fleet.work(|_| {
        let citations = vec![Citation { path: "a.md".into(), line: 12, quote: "b is cheap".into() }];
        let cited = Finding { text: "B costs least.".into(), citations, ..Finding::default() };
        let repeated = Finding { text: "Take B.".into(), ..Finding::default() };
        given(TaskResult {
            conclusion: "Take B.".into(),
            findings: vec![repeated, cited],
            unanswered: vec!["the licence of C".into()],
            ..TaskResult::default()
        })
    });
    assert_eq!(offered(&fleet), ["1"], "one agent, one task");
    let written = fleet.run().report.clone().unwrap();
    assert_eq!((written.title.as_str(), written.offline), (GOAL, false));
    assert!(
        written.body.starts_with(
            "Take B.\n\n- B costs least. (`a.md:12`)\n\n## Not answered\n\n- the licence of C\n"
        ),
        "{}",
        written.body
    );
    assert!(written.unanswered.contains(&"the licence of C".to_owned()));
    replayed(&fleet);
}

#[test]
fn the_document_that_was_asked_for_is_the_report() {
    let mut fleet = begun(GOAL);
    let body = "| proposal | price |\n|---|---|\n| recommend compare four | 1 |";
    fleet.work(|_| {
        given(TaskResult { conclusion: "Made.".into(), body: body.into(), ..TaskResult::default() })
    });
    assert!(fleet.body().starts_with(body));
}

#[test]
fn nothing_is_kept_for_a_writer_who_is_not_asked() {
    let budget = Budget { model_calls: Some(1), ..Budget::UNLIMITED };
    let mut fleet = Fleet::with_goal(Goal::new(GOAL), RunLimits { budget, ..sparing() });
    assert_eq!(fleet.find("1").budget.model_calls, Some(1));
    fleet.work(|_| result("Take B."));
    assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
}

#[test]
fn goals_that_fall_apart_are_planned_at_once_and_several_tasks_have_a_writer() {
    let mut fleet = begun("Find out:\n- who built it\n- when it was built\n- what it cost");
    fleet.work(|offer| good(offer, &[leaf("apples", &[]), leaf("pears", &[])]));
    assert_eq!(offered(&fleet), ["plan", "1", "2", "write"], "and nothing is reflected on");
    replayed(&fleet);
    let mut fleet = planned(vec![leaf("apples", &[])]);
    fleet.work(|offer| good(offer, &[]));
    assert_eq!(offered(&fleet), ["plan", "1"], "a plan of one task is one task");
}

#[test]
fn a_plan_that_a_person_brought_is_not_asked_for_anew() {
    let mut fleet = Fleet::new();
    let plan = PlanDraft { tasks: vec![leaf("apples", &[])], ..PlanDraft::default() };
    fleet.begin_as_it_is(Goal { plan: Some(Box::new(plan)), ..Goal::new(GOAL) }, sparing());
    let first = fleet.find("1");
    assert_eq!(operations(&first), (false, false));
    fleet.end(&first, wish("A is known."));
    assert_eq!(offered(&fleet), ["1"], "what it gave counts as far as it goes");
}

#[test]
fn an_agent_that_finds_out_on_the_way_asks_for_a_plan_once() {
    let mut fleet = begun(GOAL);
    let first = fleet.find("1");
    assert_eq!(operations(&first), (true, false));
    fleet.end(&first, wish("A is known."));
    let planner = fleet.find("plan");
    let Work::Plan { replan: Some(brief), .. } = &planner.work else { panic!("{:?}", planner.work) };
    assert!(brief.asked_for && brief.results.len() == 1, "{brief:?}");
    assert_eq!(brief.reasons, ["1: it falls into two parts"]);
    let mut builds_on = leaf("prices", &["1"]);
    builds_on.goal = "Go on from {{1.result}}".into();
    fleet.end(&planner, plan(vec![builds_on, leaf("licences", &[])]));
    let next = fleet.find("2");
    assert_eq!(operations(&next), (false, false), "once");
    let Work::Execute { task, .. } = &next.work else { unreachable!() };
    assert!(task.goal.contains("A is known."), "{}", task.goal);
    fleet.work(|offer| good(offer, &[]));
    assert_eq!(offered(&fleet), ["1", "plan", "2", "3", "write"]);
    assert_eq!(fleet.status(), RunStatus::Completed);
    assert_eq!(end_of(fleet.run(), &TaskIndex::top(1)), TaskEnd::Replaced, "it was gone on with");
    replayed(&fleet);
}

#[test]
fn who_found_nothing_and_asks_for_a_plan_does_not_stand_in_the_report() {
    let mut fleet = begun(GOAL);
    fleet.end_task("1", wish(TaskResult::NOTHING_YET));
    fleet.end_task("plan", plan(vec![leaf("prices", &[]), leaf("licences", &[])]));
    fleet.work(|offer| match &offer.work {
        Work::Write { results, .. } => {
            assert_eq!(results.len(), 2, "{results:?}");
            report()
        }
        _ => good(offer, &[]),
    });
    assert_eq!(fleet.status(), RunStatus::Completed);
}

#[test]
fn an_only_task_that_fails_for_good_is_planned_anew() {
    let mut fleet = begun(GOAL);
    let mut tries = 0;
    fleet.work(|offer| match offer.task {
        TaskId::Leaf(_) if tries < 3 => {
            tries += 1;
            failed(Ending::GaveUp, "too much at once")
        }
        _ => good(offer, &[leaf("apples", &[]), leaf("pears", &[])]),
    });
    assert_eq!(fleet.status(), RunStatus::Completed, "{}", fleet.reason());
    assert!(offered(&fleet).contains(&"plan".to_owned()));
}

#[test]
fn what_agents_of_an_only_task_advise_changes_no_plan() {
    let mut fleet = begun(GOAL);
    fleet.work(|offer| match offer.task {
        TaskId::Leaf(_) => advising("Take B.", "there is more"),
        _ => good(offer, &[]),
    });
    assert_eq!(offered(&fleet), ["1"]);
}

#[test]
fn reflections_follow_surprises_and_never_the_last_task() {
    let part = |text: &str| Outcome { ending: Ending::DonePartial, ..result(text) };
    let mut fleet = planned(vec![leaf("apples", &[]), leaf("pears", &["apples"])]);
    fleet.work(|offer| match &offer.work {
        Work::Execute { .. } => part("half"),
        _ => good(offer, &[]),
    });
    assert_eq!(offered(&fleet), ["plan", "1", "reflect-1", "2", "write"]);
    let mut fleet = planned(vec![leaf("apples", &[]), leaf("pears", &["apples"])]);
    fleet.work(|offer| good(offer, &[]));
    assert_eq!(offered(&fleet), ["plan", "1", "2", "write"]);
}

/// A run whose first task ended in part, whose reflection asks for this.
fn reflected(operations: Vec<RefineOperation>) -> Fleet {
    let mut fleet = planned(vec![leaf("apples", &[]), leaf("pears", &["apples"])]);
    fleet.end_task("1", Outcome { ending: Ending::DonePartial, ..result("half") });
    let reflecting = fleet.find("reflect-1");
    let Work::Reflect { refine: Some(brief), .. } = &reflecting.work else { panic!("{reflecting:?}") };
    assert_eq!(brief.held_to.statuses.len(), 2);
    let reflection = Reflection {
        summary: "half of it".into(),
        refine: Some("the other half".into()),
        operations,
        ..Reflection::default()
    };
    fleet.end(&reflecting, done(Product::Reflection(reflection)));
    fleet
}

#[test]
fn a_reflection_brings_its_change_and_nobody_else_is_asked() {
    let add = RefineOperation::Add { after: TaskIndex::top(2), tasks: vec![leaf("plums", &[])] };
    let mut fleet = reflected(vec![add]);
    assert_eq!(fleet.run().plan.as_ref().unwrap().tasks.len(), 3);
    let (changes, refused) = fleet.run().refinement(1).unwrap();
    assert!(refused.is_empty() && changes.iter().any(|line| line.contains("plums")), "{changes:?}");
    fleet.work(|offer| good(offer, &[]));
    assert!(!offered(&fleet).iter().any(|task| task.starts_with("refine")), "{:?}", offered(&fleet));
    assert_eq!(end_of(fleet.run(), &TaskIndex::top(1)), TaskEnd::Replaced);
    replayed(&fleet);
    let asks = || reflection(Some("the other half"));
    let mut fleet = planned(vec![leaf("apples", &[]), leaf("pears", &["apples"])]);
    fleet.work(|offer| match &offer.work {
        Work::Execute { .. } if offer.task == TaskId::Leaf(TaskIndex::top(1)) => {
            Outcome { ending: Ending::DonePartial, ..result("half") }
        }
        Work::Reflect { .. } => asks(),
        _ => good(offer, &[]),
    });
    assert!(offered(&fleet).contains(&"refine-1".to_owned()), "who brings none has the refiner asked");
}

#[test]
fn what_a_reflection_cannot_change_the_refiner_is_asked_about() {
    let delete = RefineOperation::Delete { task: TaskIndex::top(1), reason: String::new() };
    let mut fleet = reflected(vec![delete]);
    assert!(fleet.run().refinement(1).is_none());
    fleet.work(|offer| match &offer.work {
        Work::Refine { held_to, .. } => {
            assert_eq!(held_to.statuses.len(), 2);
            refinement(vec![RefineOperation::Split { task: TaskIndex::top(1), into: vec![] }])
        }
        _ => good(offer, &[]),
    });
    assert_eq!(offered(&fleet).iter().filter(|task| task.starts_with("refine")).count(), 1);
    let body = fleet.body();
    assert!(
        body.contains("A change of the plan was wanted (1: the other half) and could not be made"),
        "{body}"
    );
    replayed(&fleet);
}

#[test]
fn a_plan_that_is_refused_comes_with_the_next_offer() {
    let mut fleet = Fleet::with_goal(Goal::new(GOAL), RunLimits { planning: Planning::Always, ..sparing() });
    let first = fleet.find("plan");
    let Work::Plan { refused_plan, .. } = &first.work else { unreachable!() };
    assert!(refused_plan.is_none());
    let knot = vec![leaf("apples", &["pears"]), leaf("pears", &["apples"])];
    fleet.end(&first, plan(knot.clone()));
    let again = fleet.find("plan");
    let Work::Plan { refused_plan: Some(refused), refused: why, .. } = &again.work else { unreachable!() };
    assert!(refused.tasks == knot && !why.is_empty());
}

#[test]
fn a_model_that_declines_leaves_its_steps_to_the_next() {
    let mut limits = sparing();
    limits.responses.stronger_models = vec!["house/large".into()];
    let mut fleet = Fleet::with_goal(Goal::new(GOAL), limits);
    fleet.do_task("1", failed(Ending::Escalate, &format!("{DECLINED}: it may not")));
    let again = fleet.find("1");
    assert_eq!((again.generation, again.continues), (Generation(2), Some(Generation(1))));
    fleet.end(&again, failed(Ending::ModelFailed, "nobody answered"));
    let third = fleet.find("1");
    assert_eq!((third.generation, third.continues), (Generation(3), None), "any other failure begins anew");
    replayed(&fleet);
}

#[test]
fn what_was_contradicted_is_done_again_with_what_was_found_before() {
    let mut fleet = conflicts::contradicted(&ConflictStep::USUAL);
    let shown = |value: &str, how: &str| conflicts::claiming(vec![conflicts::claim(value, how)]);
    fleet.do_task("settle-1", shown("30 %", "rows of November"));
    fleet.do_task("settle-2", shown("30.1 percent", "had taken the rows of October"));
    let again = fleet.find("2");
    let Work::Execute { earlier: Some(earlier), .. } = &again.work else { panic!("{:?}", again.work) };
    assert_eq!(earlier.claims.len(), 1);
}
