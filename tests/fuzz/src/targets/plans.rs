//! Plans: drafts, changes of them, and patches.

use std::sync::LazyLock;

use muster_agents::roles::patch;
use muster_shared::flow::{Plan, PlanDraft, RefineOperation, RunLimits, TaskDraft, TaskStatus};
use muster_shared::ids::Role;
use muster_shared::plan::order::{all_ended, blocked, ready};
use muster_shared::plan::{
    PlanProblem, Rigour, as_draft, as_given, check, check_plan, refine, repair, replan,
};
use muster_shared::run::Statuses;
use serde_json::Value;

use super::ensure;
use crate::{Seen, Shape, Target};

const WORDS: &[&str] = &[
    "worker",
    "planner",
    "committee:3",
    "redundant:2",
    "auction",
    "hierarchical",
    "{{1.result}}",
    "{{find.findings}}",
    "{{context.facts}}",
    "blueprint",
    "params",
    "index",
];

/// Plans that somebody drafts.
pub(super) const DRAFTS: Target = Target::new("plans", Shape::Json, draft).with_words(WORDS);

/// Changes of a plan at work.
pub(super) const REFINEMENTS: Target = Target::new("refinements", Shape::Json, refinement)
    .with_fixtures(&["tests/fuzz/corpus/plans"])
    .with_words(WORDS);

/// Changes of a plan that was refused.
pub(super) const PATCHES: Target = Target::new("plan_patches", Shape::Json, patches)
    .with_fixtures(&["tests/fuzz/corpus/plans"])
    .with_words(WORDS);

fn roles() -> [Role; 2] {
    [Role::Worker, Role::Researcher]
}

fn draft(input: &[u8]) -> Result<Seen, String> {
    let draft: PlanDraft = match serde_json::from_slice(input) {
        Ok(draft) => draft,
        Err(error) => return Ok(Seen::at_door(error)),
    };
    let (limits, roles) = (RunLimits::default(), roles());
    let written = serde_json::to_vec(&draft).map_err(|error| error.to_string())?;
    let again: PlanDraft =
        serde_json::from_slice(&written).map_err(|error| format!("not read again: {error}"))?;
    ensure(again == draft, || "read again it is another".to_owned())?;
    let problems = check(&draft, &limits, &roles);
    let (repaired, _) = repair(&draft, &limits, &roles);
    sound(&repaired, &limits, "repaired")?;
    if problems.is_empty() {
        sound(&as_given(&draft), &limits, "as it was given")?;
    }
    let (again, notes) = repair(&as_draft(&repaired), &limits, &roles);
    ensure(again.tasks.len() == repaired.tasks.len(), || format!("mended again it is another: {notes:?}"))?;
    for rigour in [Rigour::Strict, Rigour::Mend] {
        if let Ok(replanned) = replan(&PLAN, &statuses(), &draft, &limits, &roles, (rigour, None)) {
            sound(&replanned.plan, &limits, "replanned")?;
        }
    }
    Ok(if problems.is_empty() {
        Seen::Read
    } else {
        Seen::at_door(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })
}

/// A plan that is in order: no rule refuses it, and something of it can begin.
fn sound(plan: &Plan, limits: &RunLimits, how: &str) -> Result<(), String> {
    let problems = check_plan(plan, limits, &roles());
    // Beside what has ended, a new plan may be as wide as a first one, and do again what an old task did.
    let again =
        |problem: &PlanProblem| how == "replanned" && !problem.to_string().contains("wait for each other");
    let wrong = problems.iter().find(|problem| !again(problem));
    if let Some(problem) = wrong.filter(|_| !plan.tasks.is_empty()) {
        return Err(format!("{how}, it is not in order: {problem}"));
    }
    let none = Statuses::default();
    let stuck = !plan.tasks.is_empty() && !all_ended(plan, &none) && ready(plan, &none).is_empty();
    ensure(!stuck || how == "replanned", || {
        format!("{how}, nothing of it can begin: {:?}", blocked(plan, &none))
    })
}

static PLAN: LazyLock<Plan> = LazyLock::new(|| {
    let task = |name: &str, goal: &str, needs: &[&str]| TaskDraft {
        name: name.to_owned(),
        goal: goal.to_owned(),
        depends_on: needs.iter().map(|&need| need.to_owned()).collect(),
        ..TaskDraft::default()
    };
    let mut tasks = vec![
        task("find", "Find it.", &[]),
        task("check", "Check {{1.result}}.", &["find"]),
        task("tell", "Tell of it.", &["check"]),
    ];
    tasks[2].subtasks = vec![task("first", "Say what.", &[]), task("second", "Say why.", &["first"])];
    as_given(&PlanDraft { tasks, ..PlanDraft::default() })
});

/// The first task has ended.
fn statuses() -> Statuses {
    PLAN.tasks.keys().take(1).map(|index| (index.clone(), TaskStatus::Completed)).collect()
}

fn refinement(input: &[u8]) -> Result<Seen, String> {
    let operations: Vec<RefineOperation> = match serde_json::from_slice(input) {
        Ok(operations) => operations,
        Err(error) => return Ok(Seen::at_door(error)),
    };
    let written = serde_json::to_vec(&operations).map_err(|error| error.to_string())?;
    let again: Vec<RefineOperation> =
        serde_json::from_slice(&written).map_err(|error| format!("not read again: {error}"))?;
    ensure(again == operations, || "read again they are others".to_owned())?;
    let (limits, statuses) = (RunLimits::default(), statuses());
    let refined = refine(&PLAN, &statuses, &operations, &limits, &roles(), None);
    sound(&refined.plan, &limits, "refined")?;
    let kept = statuses.keys().all(|index| refined.plan.tasks.get(index) == PLAN.tasks.get(index));
    ensure(kept, || "what has ended was changed".to_owned())?;
    let refused = refined.refused.iter().map(|refused| refused.reason.clone());
    Ok(if refined.refused.is_empty() {
        Seen::Read
    } else {
        Seen::at_door(refused.collect::<Vec<_>>().join("\n"))
    })
}

fn patches(input: &[u8]) -> Result<Seen, String> {
    let arguments: Value = match serde_json::from_slice(input) {
        Ok(arguments) => arguments,
        Err(_) => return Ok(Seen::Refused("no JSON".to_owned())),
    };
    let bare = serde_json::json!({ "tasks": [{ "name": "a", "goal": "b" }, { "name": "c", "goal": "{{1.result}}", "depends_on": ["1"] }] });
    let plan = arguments.get("plan").unwrap_or(&bare);
    let whole = serde_json::json!([{ "add": arguments.clone() }]);
    let changes = patch::of(&arguments).or(whole.as_array().map(Vec::as_slice)).unwrap_or_default();
    match patch::patched(plan, changes) {
        Ok(patched) => {
            let before = serde_json::to_string(plan).map_or(0, |text| text.len());
            let said = serde_json::to_string(changes).map_or(0, |text| text.len());
            let after = serde_json::to_string(&patched).map_or(0, |text| text.len());
            // Names stand for indices afterwards: each goal may hold as many of them as it held indices.
            ensure(after <= (before + said + 64) * 64, || {
                format!("of {before} and {said} bytes {after} were made")
            })?;
            Ok(Seen::Read)
        }
        Err(faults) => Ok(Seen::at_door(faults.join("\n"))),
    }
}
