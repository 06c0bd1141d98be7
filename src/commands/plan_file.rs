//! Plans in files: what `--plan` reads, and what a plan is edited as. JSON, TOML or YAML by the file's ending.

use std::path::Path;

use muster_shared::flow::{PlanDraft, RunLimits, TaskDraft};
use muster_shared::ids::Role;
use muster_shared::plan::{self, PlanProblem, Values};
use muster_shared::text::bracket_depth;
use muster_shared::wire::codec::MAX_DEPTH;
use serde::de::DeserializeOwned;

use crate::exit::{Failure, usage};

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Most problems that are named.
const MOST_NAMED: usize = 8;

const EXAMPLE: &str = "a plan looks like this:\n  tasks:\n    - name: find\n      goal: Find out what a lease is.\n      \
    role: researcher\n    - name: check\n      goal: Check {{find.result}}.\n      depends_on: [find]";

/// Reads a plan and checks all that can be checked before a run starts.
pub(super) fn read(path: &Path, limits: &RunLimits) -> Result<PlanDraft, Failure> {
    let text = text_of(path)?;
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let draft =
        parse(&text, ending).map_err(|reason| usage!("{}: {reason}", path.display()).help(EXAMPLE))?;
    check(&draft, limits)
        .map_err(|reasons| usage!("the plan {} cannot be carried out: {reasons}", path.display()))?;
    Ok(draft)
}

/// The text of a file that holds a plan.
pub(super) fn text_of(path: &Path) -> Result<String, Failure> {
    let cannot = |reason: String| usage!("cannot read the plan {}: {reason}", path.display());
    muster_agents::input::text(path, MAX_BYTES).map_err(cannot)
}

/// A plan, or a part of one, from text. What is wrong is told with line and column.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, ending: &str) -> Result<T, String> {
    let draft = match ending.to_ascii_lowercase().as_str() {
        "json" => serde_json::from_str(text).map_err(|error| error.to_string()),
        "toml" => toml::from_str(text).map_err(|error| {
            let (line, column) = place(text, error.span().map_or(0, |span| span.start));
            format!("{} at line {line} column {column}", error.message())
        }),
        "yaml" | "yml" if bracket_depth(text) > MAX_DEPTH => {
            Err(format!("brackets stand in each other, more than {MAX_DEPTH} levels deep"))
        }
        "yaml" | "yml" => serde_yaml_ng::from_str(text).map_err(|error| error.to_string()),
        _ => Err("a plan is written in a file that ends in .json, .toml, .yaml or .yml".to_owned()),
    }?;
    Ok(draft)
}

fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// What can be checked without a fleet: a specialist may be there or not, which the orchestrator knows.
fn check(draft: &PlanDraft, limits: &RunLimits) -> Result<(), String> {
    let problems = problems(draft, limits);
    if problems.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = problems.iter().take(MOST_NAMED).cloned().collect();
    let more = problems.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    Err(format!("{}{more}", named.join("; ")))
}

/// What is wrong with a plan, as far as that can be told without a fleet.
pub(crate) fn problems(draft: &PlanDraft, limits: &RunLimits) -> Vec<String> {
    let mut roles = vec![Role::Worker, Role::Researcher];
    named_roles(&draft.tasks, &mut roles);
    let limits = limits.for_people();
    let mut problems = plan::check(draft, &limits, &roles);
    // Of a run that has not begun there is no value.
    problems.extend(Values::default().unwritten_in(draft, &limits));
    problems.iter().map(PlanProblem::to_string).collect()
}

fn named_roles(tasks: &[TaskDraft], roles: &mut Vec<Role>) {
    for task in tasks {
        let role = task.role.as_ref().and_then(|role| role.trim().to_lowercase().parse::<Role>().ok());
        if let Some(role @ Role::Specialist(_)) = role {
            roles.push(role);
        }
        named_roles(&task.subtasks, roles);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"tasks": [{"name": "find", "goal": "Find it."}, {"name": "check", "goal": "Check {{1.result}}.", "depends_on": ["find"]}]}"#;
    const TOML: &str = "[[tasks]]\nname = \"find\"\ngoal = \"Find it.\"\n\n[[tasks]]\nname = \"check\"\ngoal = \"Check {{1.result}}.\"\ndepends_on = [\"find\"]\n";
    const YAML: &str = "tasks:\n  - name: find\n    goal: Find it.\n  - name: check\n    goal: Check {{1.result}}.\n    depends_on: [find]\n";

    #[test]
    fn the_same_plan_is_read_in_three_forms() {
        let wanted: PlanDraft = parse(JSON, "json").unwrap();
        assert_eq!(wanted.tasks.len(), 2);
        for (text, ending) in [(TOML, "toml"), (YAML, "yaml"), (YAML, "YML")] {
            assert_eq!(parse::<PlanDraft>(text, ending).unwrap(), wanted, "{ending}");
        }
        assert_eq!(check(&wanted, &RunLimits::default()), Ok(()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let wrong = [
            (r#"{"tasks": [{"name": "find", "goal": 3}]}"#, "json", "line 1"),
            ("tasks = [\n  { name = \"a\", goal = }\n]", "toml", "line 2"),
            ("tasks:\n  - name: a\n   goal: b\n", "yaml", "line 2"),
            ("tasks:\n  - goal: b\n", "yaml", "name"),
            ("", "txt", ".json"),
        ];
        for (text, ending, part) in wrong {
            let reason = parse::<PlanDraft>(text, ending).unwrap_err();
            assert!(reason.contains(part), "{reason}");
        }
    }

    #[test]
    fn plans_that_cannot_be_carried_out_are_refused() {
        let task = |name: &str, goal: &str, needs: &[&str]| TaskDraft {
            name: name.to_owned(),
            goal: goal.to_owned(),
            depends_on: needs.iter().map(|&need| need.to_owned()).collect(),
            ..TaskDraft::default()
        };
        let many: Vec<TaskDraft> =
            (0..500).map(|n| task(&format!("t{n}"), &format!("do {n}"), &[])).collect();
        let cases = [
            (vec![task("a", "do a", &["b"]), task("b", "do b", &["a"])], "wait for each other"),
            (many, "500 tasks"),
            (vec![task("a", "do a", &["nothing"])], "\"nothing\""),
            (vec![task(" ", "do a", &[])], "no name"),
            (Vec::new(), "no task"),
            (vec![TaskDraft { role: Some("planner".to_owned()), ..task("a", "b", &[]) }], "planner"),
        ];
        for (tasks, part) in cases {
            let draft = PlanDraft { tasks, ..PlanDraft::default() };
            let reason = check(&draft, &RunLimits::default()).unwrap_err();
            assert!(reason.contains(part), "{reason}");
        }
    }
}
