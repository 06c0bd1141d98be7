//! Which specialist a task should go to that names no role, or none that there is: by what it needs.

use super::draft::normal;
use crate::flow::{PlanDraft, Specialty, TaskDraft};
use crate::ids::Role;

/// Gives leaves without a known role to the specialist that can do most of what they need.
pub fn give_to_specialists(draft: &mut PlanDraft, roles: &[Role], specialists: &[Specialty]) {
    give(&mut draft.tasks, roles, specialists);
}

/// The same for tasks that are added to a plan.
pub fn give(tasks: &mut [TaskDraft], roles: &[Role], specialists: &[Specialty]) {
    if specialists.is_empty() {
        return;
    }
    for task in tasks {
        give(&mut task.subtasks, roles, specialists);
        if task.subtasks.is_empty()
            && !names_a_role(task, roles)
            && let Some(best) = best(&task.needs, specialists)
        {
            task.role = Some(best.role.to_string());
        }
    }
}

fn names_a_role(task: &TaskDraft, roles: &[Role]) -> bool {
    let named = task.role.as_deref().map(|text| text.trim().to_lowercase().parse::<Role>());
    named.is_some_and(|named| named.is_ok_and(|role| roles.contains(&role)))
}

/// The specialist with most of these capabilities; of equals, the first by name.
#[must_use]
pub fn best<'a>(needs: &[String], specialists: &'a [Specialty]) -> Option<&'a Specialty> {
    let needs: Vec<String> = needs.iter().map(|need| normal(need)).collect();
    let fits = |specialist: &Specialty| {
        let own: Vec<String> = specialist.capabilities.iter().map(|own| normal(own)).collect();
        needs.iter().filter(|need| own.contains(need)).count()
    };
    let able = specialists.iter().map(|one| (fits(one), one)).filter(|(count, _)| *count > 0);
    able.max_by(|(some, one), (others, other)| some.cmp(others).then(other.role.cmp(&one.role)))
        .map(|(_, best)| best)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn specialist(role: &str, capabilities: &[&str]) -> Specialty {
        let capabilities = capabilities.iter().map(|text| (*text).to_owned()).collect();
        Specialty { role: role.parse().unwrap(), description: String::new(), capabilities, tools: Vec::new() }
    }

    fn task(role: Option<&str>, needs: &[&str]) -> TaskDraft {
        TaskDraft {
            name: "t".into(),
            goal: "g".into(),
            role: role.map(str::to_owned),
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
            ..TaskDraft::default()
        }
    }

    #[test]
    fn what_a_task_needs_decides_only_where_no_role_does() {
        let specialists = [
            specialist("auditor", &["security audit", "Code Review"]),
            specialist("checker", &["citations", "code review"]),
        ];
        let roles: Vec<Role> = ["worker", "auditor", "checker"].map(|name| name.parse().unwrap()).to_vec();
        let cases = [
            (task(None, &["security  Audit"]), Some("auditor")),
            (task(None, &["code review"]), Some("auditor")),
            (task(None, &["code review", "citations"]), Some("checker")),
            (task(Some("pirate"), &["citations"]), Some("checker")),
            (task(Some("worker"), &["citations"]), Some("worker")),
            (task(None, &["flying"]), None),
            (task(None, &[]), None),
            (task(Some("pirate"), &[]), Some("pirate")),
        ];
        for (before, expected) in cases {
            let mut draft =
                PlanDraft { goal: String::new(), tasks: vec![before.clone()], questions: Vec::new() };
            give_to_specialists(&mut draft, &roles, &specialists);
            assert_eq!(draft.tasks[0].role.as_deref(), expected, "{before:?}");
        }
    }

    #[test]
    fn a_task_that_stands_for_others_is_given_to_nobody() {
        let specialists = [specialist("auditor", &["audit"])];
        let above = TaskDraft { subtasks: vec![task(None, &["audit"])], ..task(None, &["audit"]) };
        let mut draft = PlanDraft { goal: String::new(), tasks: vec![above], questions: Vec::new() };
        give_to_specialists(&mut draft, &[], &specialists);
        assert_eq!(draft.tasks[0].role, None);
        assert_eq!(draft.tasks[0].subtasks[0].role.as_deref(), Some("auditor"));
    }
}
