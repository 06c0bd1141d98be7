//! Which specialist a task should go to that names no role, or none that there is: by what it needs.

use std::collections::BTreeSet;

use super::draft::normal;
use crate::flow::{Capable, PlanDraft, Specialty, TaskDraft};
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

/// Capabilities that agents of a built-in role advertise; none for a specialist, which advertises its own.
#[must_use]
pub const fn built_in_capabilities(role: &Role) -> &'static [&'static str] {
    match role {
        Role::Planner => &["planning"],
        Role::Researcher => &["searching documents", "reading", "citing"],
        Role::Worker => &["reasoning", "calculation", "writing files"],
        Role::Reflector => &["reflection"],
        Role::Refiner => &["replanning"],
        Role::Writer => &["writing reports"],
        Role::Specialist(_) => &[],
    }
}

/// All capabilities of roles, one role each: `researcher: searching documents, reading, citing`.
#[must_use]
pub fn advertised(roles: &[Role], specialists: &[Specialty]) -> Vec<String> {
    let line = |role: &Role| format!("{role}: {}", capabilities(role, specialists).join(", "));
    roles.iter().map(line).collect()
}

fn capabilities(role: &Role, specialists: &[Specialty]) -> Vec<String> {
    let own = specialists.iter().filter(|one| one.role == *role).flat_map(|one| one.capabilities.clone());
    built_in_capabilities(role).iter().map(|&can| can.to_owned()).chain(own).collect()
}

/// What a role that comes with Muster is for.
fn built_in(role: &Role) -> &'static str {
    match role {
        Role::Researcher => "searches and reads documents, and says where what it finds stands",
        Role::Worker => "does any task: thinks, computes, checks, writes",
        Role::Planner | Role::Reflector | Role::Refiner | Role::Writer | Role::Specialist(_) => "",
    }
}

/// The roles that can do something of what is needed, those that can do most first; all when nothing is needed. A capability
/// fits when its words are among those of what is needed, or the other way round; a description when it has all of them.
#[must_use]
pub fn capable(needs: &[String], roles: &[Role], specialists: &[Specialty]) -> Vec<Capable> {
    let of_role = |role: &Role| {
        let specialty = specialists.iter().find(|specialty| specialty.role == *role);
        let description = specialty.map_or_else(|| built_in(role).to_owned(), |one| one.description.clone());
        let own = capabilities(role, specialists);
        let can = needs.iter().filter(|need| can_do(need, &own, &description)).cloned().collect();
        Capable { role: role.clone(), description, can }
    };
    let mut found: Vec<Capable> = roles.iter().map(of_role).collect();
    let wanted = needs.iter().any(|need| !words(need).is_empty());
    found.retain(|one| !wanted || !one.can.is_empty());
    let is_own = |one: &Capable| specialists.iter().any(|specialty| specialty.role == one.role);
    // Of equals, whoever says so in so many words comes before those that come with Muster.
    found.sort_by_key(|one| (std::cmp::Reverse(one.can.len()), !is_own(one), one.role.clone()));
    found
}

fn can_do(need: &str, capabilities: &[String], description: &str) -> bool {
    let need = words(need);
    let fits = |own: &BTreeSet<String>| !own.is_empty() && (own.is_subset(&need) || need.is_subset(own));
    !need.is_empty()
        && (capabilities.iter().any(|own| fits(&words(own))) || need.is_subset(&words(description)))
}

fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specialist(role: &str, capabilities: &[&str]) -> Specialty {
        let capabilities = capabilities.iter().map(|text| (*text).to_owned()).collect();
        Specialty {
            role: role.parse().unwrap(),
            description: String::new(),
            capabilities,
            tools: Vec::new(),
            gives: Vec::new(),
        }
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
                PlanDraft { goal: String::new(), tasks: vec![before.clone()], ..PlanDraft::default() };
            give_to_specialists(&mut draft, &roles, &specialists);
            assert_eq!(draft.tasks[0].role.as_deref(), expected, "{before:?}");
        }
    }

    #[test]
    fn who_can_do_something_is_named_best_first() {
        let mut auditor = specialist("auditor", &["security audit", "code review"]);
        auditor.description = "Looks for holes in programs.".into();
        let specialists = [auditor, specialist("checker", &["citations", "code review"])];
        let roles: Vec<Role> =
            ["researcher", "worker", "auditor", "checker"].map(|name| name.parse().unwrap()).to_vec();
        let cases: [(&[&str], &[&str]); 10] = [
            (&["code review", "citations"], &["checker", "auditor"]),
            (&["Security Audit of the login"], &["auditor"]),
            (&["audit"], &["auditor"]),
            (&["holes in programs"], &["auditor"]),
            (&["search documents"], &[]),
            (&["searches documents"], &["researcher"]),
            (&["searching documents"], &["researcher"]),
            (&["Reading"], &["researcher"]),
            (&["calculation", "writing files"], &["worker"]),
            (&[], &["auditor", "checker", "researcher", "worker"]),
        ];
        for (needs, expected) in cases {
            let needs: Vec<String> = needs.iter().map(|need| (*need).to_owned()).collect();
            let found = capable(&needs, &roles, &specialists);
            let mut found: Vec<String> = found.iter().map(|one| one.role.to_string()).collect();
            if needs.is_empty() {
                found.sort();
            }
            assert_eq!(found, expected, "{needs:?}");
        }
    }

    #[test]
    fn a_task_that_stands_for_others_is_given_to_nobody() {
        let specialists = [specialist("auditor", &["audit"])];
        let above = TaskDraft { subtasks: vec![task(None, &["audit"])], ..task(None, &["audit"]) };
        let mut draft = PlanDraft { goal: String::new(), tasks: vec![above], ..PlanDraft::default() };
        give_to_specialists(&mut draft, &[], &specialists);
        assert_eq!(draft.tasks[0].role, None);
        assert_eq!(draft.tasks[0].subtasks[0].role.as_deref(), Some("auditor"));
    }
}
