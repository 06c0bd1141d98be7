//! What tasks of a plan may use: none more than what it is a part of, or than what it was added after.

use crate::flow::{Plan, Rights};
use crate::ids::TaskIndex;

/// Lets every task have the rights of those that it is a part of, so that it keeps them wherever it is moved.
pub(super) fn hand_down(plan: &mut Plan) {
    if plan.tasks.values().all(|task| task.rights.is_none()) {
        return;
    }
    let below: Vec<TaskIndex> = plan.tasks.keys().filter(|index| index.parent().is_some()).cloned().collect();
    // A task comes after the one that it is a part of.
    for index in below {
        let above = index.parent().and_then(|parent| plan.tasks.get(&parent)?.rights.clone());
        if let (Some(above), Some(task)) = (above, plan.tasks.get_mut(&index)) {
            task.rights = met(task.rights.take(), Some(above));
        }
    }
}

/// What both may.
pub(super) fn met(one: Option<Box<Rights>>, other: Option<Box<Rights>>) -> Option<Box<Rights>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Box::new(one.narrowed_by(&other))),
        (one, other) => one.or(other),
    }
}

/// What all tasks of a plan may: of which of them the work is that is planned anew, nobody can tell.
pub(super) fn common(plan: &Plan) -> Option<Box<Rights>> {
    plan.leaves().fold(None, |common, (_, task)| met(common, task.rights.clone()))
}

#[cfg(test)]
mod tests {
    use super::super::as_given;
    use super::super::{Rigour, replan};
    use super::*;
    use crate::flow::{PlanDraft, RunLimits, TaskDraft};
    use crate::ids::Role;
    use crate::run::Statuses;

    fn task(name: &str, tools: Option<&[&str]>, subtasks: Vec<TaskDraft>) -> TaskDraft {
        let rights = tools
            .map(|tools| Box::new(serde_json::from_value(serde_json::json!({ "tools": tools })).unwrap()));
        TaskDraft { name: name.into(), goal: name.into(), rights, subtasks, ..TaskDraft::default() }
    }

    #[test]
    fn what_is_planned_anew_has_no_more_than_what_was_planned_before() {
        let draft = |tasks| PlanDraft { goal: "g".into(), tasks, ..PlanDraft::default() };
        let before = vec![task("a", Some(&["search"]), Vec::new()), task("b", None, Vec::new())];
        let after = draft(vec![task("c", Some(&["*"]), Vec::new()), task("d", None, Vec::new())]);
        let (limits, how) = (RunLimits::default(), (Rigour::Mend, None));
        for (before, calculator) in [(before.clone(), false), (before[1..].to_vec(), true)] {
            let plan = as_given(&draft(before));
            let anew = replan(&plan, &Statuses::new(), &after, &limits, &[Role::Worker], how).unwrap().plan;
            let new = anew.tasks.iter().filter(|(index, _)| !plan.tasks.contains_key(*index));
            let may = |task: &crate::flow::PlanTask| {
                task.rights.as_ref().is_none_or(|rights| rights.tools.allows("calculator"))
            };
            let may: Vec<bool> = new.map(|(_, task)| may(task)).collect();
            assert_eq!(may, [calculator; 2]);
        }
    }

    #[test]
    fn a_part_has_no_more_than_the_whole() {
        let parts = vec![task("a", Some(&["search", "calculator"]), Vec::new()), task("b", None, Vec::new())];
        let draft = PlanDraft {
            tasks: vec![task("whole", Some(&["calculator"]), parts), task("c", None, Vec::new())],
            ..PlanDraft::default()
        };
        let plan = as_given(&draft);
        let may = |index: &str, tool: &str| {
            let rights = &plan.tasks[&index.parse::<TaskIndex>().unwrap()].rights;
            rights.as_ref().is_none_or(|rights| rights.tools.allows(tool))
        };
        for (index, calculator, search) in
            [("1", true, false), ("1-1", true, false), ("1-2", true, false), ("2", true, true)]
        {
            assert_eq!((may(index, "calculator"), may(index, "search")), (calculator, search), "{index}");
        }
    }
}
