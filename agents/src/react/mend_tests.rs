use muster_shared::flow::{
    HeldTo, ObservationStatus, Plan, PlanDraft, Product, RefineBrief, TaskDraft, TaskOffered, TaskStatus,
};
use muster_shared::ids::{Role, TaskId, TaskIndex};
use serde_json::json;

use super::super::decide::{NextStep, StepLimits, decide};
use super::*;
use crate::react::testing::{answer, in_case};
use crate::testing::{offer, plan_task, step, work};

fn planning(refused_plan: Option<&PlanDraft>) -> TaskOffered {
    let (roles, tools) = (["worker", "researcher"], ["calculator"]);
    let plan = json!({ "roles": roles, "tools": tools, "refused_plan": refused_plan, "held_to": {} });
    offer(TaskId::Plan, Role::Planner, work(json!({ "plan": plan })))
}

/// A plan of one task that has ended, and one that has not begun.
fn plan() -> (Plan, HeldTo) {
    let mut plan = Plan::default();
    plan.tasks.insert(TaskIndex::top(1), plan_task(Role::Worker));
    let mut second = plan_task(Role::Worker);
    (second.name, second.goal) = ("Second".into(), "something else".into());
    plan.tasks.insert(TaskIndex::top(2), second);
    let statuses = [(TaskIndex::top(1), TaskStatus::Completed), (TaskIndex::top(2), TaskStatus::Created)];
    (plan, HeldTo { statuses: statuses.into(), context: Vec::new() })
}

fn refining() -> TaskOffered {
    let (plan, held_to) = plan();
    let refine = json!({
        "plan": plan, "progress": "", "reasons": [], "reflections": [], "results": [], "operations_left": 4,
        "roles": ["worker"], "held_to": held_to,
    });
    offer(TaskId::Refine(1), Role::Refiner, work(json!({ "refine": refine })))
}

fn reflecting() -> TaskOffered {
    let (plan, held_to) = plan();
    let (roles, tools, blueprints) = (vec!["worker".into()], Vec::new(), Vec::new());
    let refine = RefineBrief { plan, operations_left: 4, roles, tools, blueprints, held_to };
    let reflect = json!({
        "index": "1", "task": plan_task(Role::Worker), "ending": muster_shared::flow::Ending::DonePartial,
        "reason": "", "steps": [], "progress": "", "refine": refine,
    });
    offer(TaskId::Reflect(TaskIndex::top(1)), Role::Reflector, work(json!({ "reflect": reflect })))
}

fn decided(offer: &TaskOffered, before: &[Value], arguments: &Value, has_model: bool) -> NextStep {
    let mut history = History::default();
    for (number, arguments) in (1..).zip(before) {
        history.push(step(number, Action::SUBMIT, arguments.clone(), ObservationStatus::Refused), false);
    }
    let answer = answer(Some("so"), Action::SUBMIT, arguments.clone());
    let limits = StepLimits { max_steps: 3, ..StepLimits::USUAL };
    in_case(offer, has_model, limits, |case| decide(&history, &answer, 1, case))
}

fn refusal(next: NextStep) -> String {
    match next {
        NextStep::Refuse { observation, .. } => observation.content,
        other => panic!("{other:?}"),
    }
}

fn product(next: NextStep) -> Product {
    match next {
        NextStep::Submit { submission, .. } => submission.product.unwrap(),
        other => panic!("{other:?}"),
    }
}

fn faulty() -> Value {
    json!({"goal": "g", "tasks": [
        {"name": "Add", "goal": "add", "role": "accountant", "tools": ["abacus"]},
        {"name": "Check", "goal": "check {{Adding.result}}"}
    ]})
}

#[test]
fn a_plan_that_would_be_refused_comes_back_with_all_that_is_wrong() {
    let told = refusal(decided(&planning(None), &[], &faulty(), true));
    for part in ["\"accountant\"", "abacus", "Adding.result", "`patch`"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let sound = json!({"goal": "g", "tasks": [{"name": "Add", "goal": "add", "role": "worker"}]});
    assert!(matches!(product(decided(&planning(None), &[], &sound, true)), Product::Plan(_)));
}

#[test]
fn a_patch_changes_the_plan_that_was_submitted() {
    let patch = json!({"patch": [
        {"task": "1", "set": {"role": "worker", "tools": ["calculator"]}},
        {"task": "Check", "set": {"goal": "check {{Add.result}}", "depends_on": ["Add"]}}
    ]});
    let next = decided(&planning(None), &[faulty()], &patch, true);
    let NextStep::Submit { chosen, submission } = next else { panic!("{next:?}") };
    let Some(Product::Plan(draft)) = submission.product else { panic!() };
    assert_eq!(draft.tasks.len(), 2);
    assert_eq!((draft.tasks[0].role.as_deref(), draft.tasks[1].depends_on.len()), (Some("worker"), 1));
    assert!(chosen.action.arguments["tasks"].is_array(), "the whole plan stands in the record");
    // What was refused elsewhere can be changed as well; what never was cannot.
    let task = TaskDraft { name: "Add".into(), goal: "add".into(), ..TaskDraft::default() };
    let refused = PlanDraft { goal: "g".into(), tasks: vec![task], ..PlanDraft::default() };
    let patch = json!({"patch": [{"task": "Add", "set": {"goal": "add up"}}]});
    let Product::Plan(draft) = product(decided(&planning(Some(&refused)), &[], &patch, true)) else {
        panic!()
    };
    assert_eq!(draft.tasks[0].goal, "add up");
    let next = decided(&planning(None), &[], &patch, true);
    assert!(matches!(&next, NextStep::AskAgain { reason, .. } if reason.contains("no plan yet")), "{next:?}");
}

#[test]
fn with_no_step_left_or_no_model_the_last_word_is_elsewhere() {
    let before = [faulty(), faulty()];
    assert!(matches!(product(decided(&planning(None), &before, &faulty(), true)), Product::Plan(_)));
    assert!(matches!(product(decided(&planning(None), &[], &faulty(), false)), Product::Plan(_)));
}

#[test]
fn operations_that_would_be_refused_are_named_with_what_to_change() {
    let one = json!([{"name": "a", "goal": "b"}]);
    let operations = json!({"operations": [
        {"operation": "delete", "task": "1", "reason": "no"},
        {"operation": "split", "task": "2", "into": one},
        {"operation": "add", "after": "2", "tasks": [{"name": "new", "goal": "from {{1.result}}"}]}
    ]});
    let told = refusal(decided(&refining(), &[], &operations, true));
    for part in ["delete 1: 1 is Completed", "split 2: a task is split into 2 to 4, not 1", "add after 2:"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let sound = json!({"operations": [{"operation": "delete", "task": "2", "reason": "no"}]});
    assert!(matches!(product(decided(&refining(), &[], &sound, true)), Product::Refinement(_)));
}

#[test]
fn a_reflection_brings_operations_where_the_plan_may_be_changed() {
    let reflection = |task: &str| json!({"summary": "s", "refine": "more", "operations": [{"operation": "delete", "task": task}]});
    let told = refusal(decided(&reflecting(), &[], &reflection("1"), true));
    assert!(told.contains("delete 1") && told.contains("without `operations`"), "{told}");
    let Product::Reflection(kept) = product(decided(&reflecting(), &[], &reflection("2"), true)) else {
        panic!()
    };
    assert_eq!(kept.operations.len(), 1);
    let mut closed = reflecting();
    if let Work::Reflect { refine, .. } = &mut closed.work {
        *refine = None;
    }
    let Product::Reflection(kept) = product(decided(&closed, &[], &reflection("1"), true)) else { panic!() };
    assert!(kept.operations.is_empty());
}
