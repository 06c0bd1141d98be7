//! Some tasks of a plan, as somebody is shown them and words them anew. Which tasks there are and what they wait for stays,
//! and none comes to have more rights.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::{Names, as_draft, plan_task};
use super::rights::met;
use crate::flow::{Plan, PlanDraft, PlanTask, TaskDraft};
use crate::ids::TaskIndex;

/// These tasks of a plan, below those that they are part of.
#[must_use]
pub fn shown(plan: &Plan, these: &BTreeSet<TaskIndex>) -> PlanDraft {
    as_draft(&part(plan, these))
}

/// These tasks as they are worded anew. What they are part of stays as it is.
///
/// # Errors
/// What would be more than other words.
pub fn reworded(
    plan: &Plan,
    these: &BTreeSet<TaskIndex>,
    draft: &PlanDraft,
) -> Result<BTreeMap<TaskIndex, PlanTask>, String> {
    let mut drafts = Vec::new();
    pair(&part(plan, these), None, &draft.tasks, &mut drafts)?;
    let own = drafts.iter().map(|(index, task)| (index, task.name.as_str()));
    let is_shown = |index: &TaskIndex| drafts.iter().any(|(shown, _)| shown == index);
    let others = plan.tasks.iter().filter(|(index, _)| !is_shown(index));
    let names = Names::new(own.chain(others.map(|(index, task)| (index, task.name.as_str()))));
    let mut tasks = BTreeMap::new();
    for (index, draft) in drafts.iter().filter(|(index, _)| these.contains(index)) {
        if let Some(before) = plan.tasks.get(index) {
            tasks.insert(index.clone(), one(index, before, draft, &names)?);
        }
    }
    Ok(tasks)
}

/// One of them.
fn one(index: &TaskIndex, before: &PlanTask, draft: &TaskDraft, names: &Names) -> Result<PlanTask, String> {
    let mut problems = Vec::new();
    let task = plan_task(index, draft, names, &mut problems);
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem.to_string());
    }
    let mut needed = before.depends_on.clone();
    needed.sort();
    needed.dedup();
    if task.depends_on != needed {
        return Err(format!("what {index} waits for cannot be changed here"));
    }
    let rights = met(task.rights.clone(), before.rights.clone());
    Ok(PlanTask { rights, depends_on: before.depends_on.clone(), ..task })
}

/// The plan without all other tasks but those that these are part of.
fn part(plan: &Plan, these: &BTreeSet<TaskIndex>) -> Plan {
    let above = |index: &TaskIndex| std::iter::successors(index.parent(), TaskIndex::parent);
    let kept: BTreeSet<TaskIndex> = these.iter().flat_map(above).chain(these.iter().cloned()).collect();
    let tasks = plan.tasks.iter().filter(|(index, _)| kept.contains(*index));
    Plan { goal: String::new(), tasks: tasks.map(|(index, task)| (index.clone(), task.clone())).collect() }
}

/// Finds the place of each draft: they stand as the tasks do.
fn pair<'a>(
    part: &Plan,
    above: Option<&TaskIndex>,
    drafts: &'a [TaskDraft],
    pairs: &mut Vec<(TaskIndex, &'a TaskDraft)>,
) -> Result<(), String> {
    let tasks: Vec<&TaskIndex> = part.children(above).map(|(index, _)| index).collect();
    if tasks.len() != drafts.len() {
        let place = above.map_or_else(|| "at the top".to_owned(), |above| format!("below {above}"));
        return Err(format!(
            "which tasks there are cannot be changed here: {} stand {place}, and not {}",
            tasks.len(),
            drafts.len()
        ));
    }
    for (index, draft) in tasks.into_iter().zip(drafts) {
        pairs.push((index.clone(), draft));
        pair(part, Some(index), &draft.subtasks, pairs)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Rights;
    use crate::ids::Role;

    fn at(index: &str) -> TaskIndex {
        index.parse().unwrap()
    }

    /// Three steps of a blueprint, of which the second has two items.
    fn plan() -> Plan {
        let narrow: Rights = serde_json::from_value(serde_json::json!({ "tools": ["search"] })).unwrap();
        let task = |name: &str, needs: &[&str]| PlanTask {
            depends_on: needs.iter().map(|on| at(on)).collect(),
            ..PlanTask::new(name, format!("do {name}"), Role::Worker)
        };
        let tasks = [
            ("1", task("one", &[])),
            ("2", task("look", &[])),
            ("2-1", task("ants", &["1"])),
            ("2-2", PlanTask { rights: Some(Box::new(narrow)), ..task("bees", &["2-1"]) }),
            ("4", task("sum", &["2"])),
        ];
        Plan { goal: "g".into(), tasks: tasks.map(|(index, task)| (at(index), task)).into() }
    }

    fn these() -> BTreeSet<TaskIndex> {
        ["2-1", "2-2", "4"].map(at).into()
    }

    #[test]
    fn what_is_shown_stays_as_it_is_and_takes_other_words() {
        let plan = plan();
        let draft = shown(&plan, &these());
        assert_eq!(draft.tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["look", "sum"]);
        assert_eq!(draft.tasks[0].subtasks[0].depends_on, ["1"], "what is not shown is named by its index");
        let same = reworded(&plan, &these(), &draft).unwrap();
        assert!(same.iter().all(|(index, task)| plan.tasks[index] == *task), "{same:?}");
        let text = serde_json::to_string(&draft).unwrap();
        let other: PlanDraft = serde_json::from_str(&text.replace("ants", "wasps")).unwrap();
        let other = reworded(&plan, &these(), &other).unwrap();
        assert_eq!(other[&at("2-1")].goal, "do wasps");
        assert_eq!(other[&at("2-2")].depends_on, [at("2-1")], "it is found by its new name");
    }

    #[test]
    fn nothing_else_can_be_changed() {
        let plan = plan();
        let changed = |change: &dyn Fn(&mut PlanDraft)| {
            let mut draft = shown(&plan, &these());
            change(&mut draft);
            reworded(&plan, &these(), &draft)
        };
        for (change, words) in [
            ((&|draft: &mut PlanDraft| drop(draft.tasks.pop())) as &dyn Fn(&mut PlanDraft), "which tasks"),
            (&|draft| drop(draft.tasks[0].subtasks.pop()), "below 2"),
            (&|draft| draft.tasks[0].subtasks[1].depends_on.clear(), "what 2-2 waits for"),
            (&|draft| draft.tasks[1].depends_on = vec!["nobody".into()], "nobody"),
            (&|draft| draft.tasks[1].role = Some("?!".into()), "?!"),
        ] {
            let said = changed(change).unwrap_err();
            assert!(said.contains(words), "{words}: {said}");
        }
        let wider = changed(&|draft| draft.tasks[0].subtasks[1].rights = None).unwrap();
        assert_eq!(wider[&at("2-2")].rights, plan.tasks[&at("2-2")].rights, "rights only shrink");
    }
}
