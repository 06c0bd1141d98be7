//! Tools and blueprints that tasks name: whoever plans is told of them, and of those that are not there.

use muster_shared::flow::{
    BlueprintBrief, BlueprintCall, Goal, Parent, PlanDraft, Planning, RefineOperation, RunLimits, TaskDraft,
    TaskRights, Work,
};
use muster_shared::plan::tools::STANDARD;
use muster_shared::run::event::PlanAdopted;
use muster_shared::run::{RunEvent, RunStatus};

use super::fleet::{Fleet, ID, advising, good, leaf, plan, refinement};
use crate::replay::replay;

fn with(name: &str, tools: &[&str]) -> TaskDraft {
    TaskDraft { tools: tools.iter().map(|tool| (*tool).to_owned()).collect(), ..leaf(name, &[]) }
}

fn tools_of(fleet: &Fleet, task: &str) -> Vec<String> {
    fleet.run().plan.as_ref().unwrap().tasks[&task.parse().unwrap()].tools.clone()
}

#[test]
fn a_plan_with_tools_that_nobody_has_is_asked_for_again_and_then_mended() {
    let mut fleet = Fleet::submitted(RunLimits::default());
    let Work::Plan { tools, .. } = fleet.find("plan").work else { panic!() };
    assert_eq!(tools, muster_shared::plan::tools::known(&[]));
    assert!(STANDARD.iter().all(|standard| tools.iter().any(|tool| tool == standard)), "{tools:?}");
    let tasks = [with("one", &["calculater", "corpus.*"]), with("two", &["telepathy"]), leaf("three", &[])];
    fleet.work(|offer| match &offer.work {
        Work::Plan { refused, .. } => {
            let said = refused.join("\n");
            assert!(refused.is_empty() || said.contains("did you mean calculator?"), "{said}");
            assert!(refused.is_empty() || said.contains("\"telepathy\""), "{said}");
            plan(tasks.to_vec())
        }
        _ => good(offer, &tasks),
    });
    assert_eq!(fleet.status(), RunStatus::Completed);
    assert_eq!(fleet.events().iter().filter(|event| event.name() == "plan_refused").count(), 1);
    assert_eq!(tools_of(&fleet, "1"), ["calculator", "corpus.*"]);
    assert_eq!((tools_of(&fleet, "2"), tools_of(&fleet, "3")), (Vec::new(), Vec::new()));
    let RunEvent::PlanAdopted(PlanAdopted { repairs, .. }) =
        fleet.events().into_iter().find(|event| event.name() == "plan_adopted").unwrap()
    else {
        panic!()
    };
    assert_eq!(
        repairs.iter().filter(|repair| repair.contains("which is not there")).count(),
        2,
        "{repairs:?}"
    );
    let offered = fleet.offered().into_iter().find_map(|offer| match &offer.work {
        Work::Execute { task, .. } if task.name == "one" => Some(task.tools.clone()),
        _ => None,
    });
    assert_eq!(offered.unwrap(), ["calculator", "corpus.*"]);
    replay(ID, &fleet.record).unwrap();
}

#[test]
fn a_plan_that_is_brought_with_such_a_tool_is_refused() {
    let mut fleet = Fleet::new();
    let brought = PlanDraft { tasks: vec![with("one", &["serach"])], ..PlanDraft::default() };
    let goal = Goal { plan: Some(Box::new(brought)), ..Goal::new("Find it.") };
    fleet.begin_as_it_is(goal, RunLimits::default());
    assert_eq!(fleet.status(), RunStatus::Failed);
    assert!(fleet.reason().contains("did you mean search?"), "{}", fleet.reason());
}

#[test]
fn operations_that_bring_such_a_tool_are_refused_and_the_others_are_done() {
    let mut fleet = Fleet::submitted(RunLimits { max_refinements: 1, ..RunLimits::default() });
    let add = |task| RefineOperation::Add { after: "2".parse().unwrap(), tasks: vec![task] };
    let operations = vec![add(with("three", &["telepathy"])), add(with("four", &["calculator"]))];
    fleet.work(|offer| match &offer.work {
        Work::Execute { task, .. } if task.name == "one" => advising("so", "there is more"),
        Work::Refine { .. } => refinement(operations.clone()),
        _ => good(offer, &[leaf("one", &[]), leaf("two", &["one"])]),
    });
    assert_eq!(fleet.status(), RunStatus::Completed);
    let (changes, refused) = &fleet.run().refining.done[0];
    assert!(changes.iter().any(|change| change.contains("four")), "{changes:?}");
    assert_eq!(refused.len(), 1);
    assert!(refused[0].reason.contains("telepathy"), "{refused:?}");
    assert_eq!(tools_of(&fleet, "3"), ["calculator"]);
}

/// A goal that came with a blueprint, and a task that is done by this one.
fn with_blueprints(depth: u32) -> Goal {
    let params = [("topic".to_owned(), "text".to_owned())].into();
    let brief = BlueprintBrief { name: "weekly_report".to_owned(), params, ..BlueprintBrief::default() };
    let task = "1".parse().unwrap();
    let rights = TaskRights::default();
    let parent = Parent { run: ID, task, depth, goals: Vec::new(), rights, background: None };
    Goal {
        blueprints: vec![brief],
        planning: Some(Planning::Always),
        parent: (depth > 0).then(|| Box::new(parent)),
        ..Goal::new("Report on tea, and say what it costs.")
    }
}

fn by_blueprint(name: &str) -> TaskDraft {
    let params = [("topic".to_owned(), "tea".into())].into();
    TaskDraft { blueprint: Some(BlueprintCall { name: name.to_owned(), params }), ..leaf("tea", &[]) }
}

#[test]
fn a_planner_names_the_blueprint_that_does_a_task_as_long_as_runs_may_stand_as_deep() {
    // The depth of the run, the blueprint that is named, what is left of it, and how many plans are refused.
    let cases = [
        (0, "weekly_report", Some("weekly_report"), 0),
        (0, "weekly_reports", Some("weekly_report"), 1),
        (0, "cooking", None, 1),
        (3, "weekly_report", None, 1),
    ];
    for (depth, name, left, refusals) in cases {
        let mut fleet = Fleet::with_goal(with_blueprints(depth), RunLimits::default());
        let Work::Plan { blueprints, .. } = fleet.find("plan").work else { panic!() };
        assert_eq!(blueprints.len(), usize::from(depth < 3), "{depth}");
        let tasks = [by_blueprint(name)];
        let mut offered = None;
        fleet.work(|offer| {
            if let Work::Execute { task, .. } = &offer.work {
                offered = Some(task.blueprint.clone().map(|call| call.name));
            }
            good(offer, &tasks)
        });
        assert_eq!(fleet.status(), RunStatus::Completed, "{name}: {}", fleet.reason());
        assert_eq!(offered.unwrap().as_deref(), left, "{depth} {name}");
        assert_eq!(fleet.run().planning.refused.len(), refusals, "{depth} {name}");
        replay(ID, &fleet.record).unwrap();
    }
}
