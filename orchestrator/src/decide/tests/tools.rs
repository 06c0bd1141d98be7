//! Tools that tasks name: whoever plans is told of them, and of those that nobody has.

use muster_shared::flow::{Goal, PlanDraft, RefineOperation, RunLimits, TaskDraft, Work};
use muster_shared::plan::tools::STANDARD;
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
    assert_eq!(tools, STANDARD);
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
    let RunEvent::PlanAdopted { repairs, .. } =
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
    let (changes, refused) = &fleet.run().refinements[0];
    assert!(changes.iter().any(|change| change.contains("four")), "{changes:?}");
    assert_eq!(refused.len(), 1);
    assert!(refused[0].reason.contains("telepathy"), "{refused:?}");
    assert_eq!(tools_of(&fleet, "3"), ["calculator"]);
}
