//! The planner: splits the goal into a tree of tasks.

use std::collections::BTreeMap;

use muster_shared::flow::{
    BlueprintBrief, BlueprintCall, PlanDraft, Product, Rights, TaskDraft, TaskOffered, TaskQuery, Work,
};
use muster_shared::ids::TaskIndex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::document::MAX_ITEMS;
use super::patch;
use super::{Document, Faults, RoleRules, Submission};

pub(super) static RULES: RoleRules =
    RoleRules::single_answer("planner", include_str!("../prompts/planner.md.j2"), schema, read, None);

fn schema(offer: &TaskOffered) -> Value {
    let (roles, blueprints) = match &offer.work {
        Work::Plan { roles, blueprints, .. } => (roles.as_slice(), blueprints.as_slice()),
        _ => (&[][..], &[][..]),
    };
    let mut schema = json!({
        "type": "object",
        "properties": {
            "goal": {"type": "string", "description": "the goal in your words"},
            "tasks": {"type": "array", "items": task_schema(roles, blueprints, levels(offer)), "minItems": 1},
            "uncovered": {
                "type": "array",
                "items": {"type": "string"},
                "description": "parts of the goal that no task covers"
            },
            "patch": patch::schema()
        },
        "required": []
    });
    if may_ask(offer) {
        schema["required"] = json!(["goal"]);
        schema["properties"]["questions"] = json!({
            "type": "array",
            "items": {"type": "string"},
            "description": "instead of tasks: what only the person can say and no plan can be made without"
        });
    }
    schema
}

/// Whether people can be asked what the goal means, which they are once.
fn may_ask(offer: &TaskOffered) -> bool {
    let is_unasked = matches!(&offer.work, Work::Plan { answers, .. } if answers.is_empty());
    is_unasked && offer.limits.people.ask_about_goal
}

/// Levels of the plan. Bounded, whatever an offer says: schemas and drafts nest that deep.
fn levels(offer: &TaskOffered) -> usize {
    usize::from(offer.limits.max_depth).clamp(1, TaskIndex::MAX_DEPTH)
}

/// The schema of a task with `levels` levels of the plan, its own included. Written out level by level,
/// since some providers refuse recursive schemas.
pub(super) fn task_schema(roles: &[String], blueprints: &[BlueprintBrief], levels: usize) -> Value {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let mut role = json!({"type": "string", "description": "who does it"});
    if !roles.is_empty() {
        role["enum"] = json!(roles);
    }
    let mut schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "a few words that name it; unique in the plan"},
            "goal": {
                "type": "string",
                "description": "what is to be achieved, understandable by itself; {{NAME OR INDEX.result}} stands for the result of a task it depends on, {{context.KEY}} for a value that such a task says it writes"
            },
            "role": role,
            "criticism": {"type": "string", "description": "what could go wrong with it"},
            "milestones": texts,
            "expected_output": {"type": "string"},
            "needs": texts,
            "tools": {
                "type": "array",
                "items": {"type": "string"},
                "description": "the tools it needs, where these are few; all that its role has when absent"
            },
            "depends_on": {
                "type": "array",
                "items": {"type": "string"},
                "description": "names or indices of tasks whose results it uses"
            },
            "critical": {"type": "boolean", "description": "whether the goal cannot be reached without it"},
            "max_steps": {"type": "integer", "minimum": 1, "description": "most steps, only where it should get along with few"},
            "pattern": {
                "type": "string",
                "description": "only where a wrong answer would do harm: committee:3 has three agents do it by themselves and come to one verdict, redundant:2 takes the first good result of two"
            }
        },
        "required": ["name", "goal"]
    });
    if !blueprints.is_empty() {
        let names: Vec<&str> = blueprints.iter().map(|brief| brief.name.as_str()).collect();
        schema["properties"]["blueprint"] = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "enum": names},
                "params": {
                    "type": "object",
                    "description": "values that are known now; what is left out is filled in from what the task builds on"
                }
            },
            "required": ["name"],
            "description": "the blueprint that does the whole task, where one is for just that"
        });
    }
    if levels > 1 {
        let below = task_schema(roles, blueprints, levels - 1);
        schema["properties"]["subtasks"] = json!({"type": "array", "items": below});
    }
    schema
}

/// Reads a proposal as it stands: what is empty or too deep in it is told once by whoever judges plans, and mended by
/// rule after that.
fn read(_: &TaskOffered, document: &Document<'_>, faults: &mut Faults) -> Submission {
    let tasks = document.get("tasks").map(|tasks| match tasks {
        Value::Array(items) => items.iter().take(MAX_ITEMS).collect(),
        one => vec![one],
    });
    let tasks = tasks.unwrap_or_default().into_iter();
    let tasks = tasks.map(|task| propose_task(task, TaskIndex::MAX_DEPTH, faults)).collect();
    let (questions, uncovered) = (document.texts("questions"), document.texts("uncovered"));
    Submission::done(Product::Plan(PlanDraft { goal: document.text("goal"), tasks, questions, uncovered }))
}

/// A task as it is proposed, with `levels` levels of those below it. A text alone says what is to be done; what is
/// nothing of a task is one without name and goal.
fn propose_task(task: &Value, levels: usize, faults: &mut Faults) -> TaskDraft {
    let Some(document) = Document::of(task) else {
        let goal = task.as_str().unwrap_or_default().trim().to_owned();
        return TaskDraft { name: goal.clone(), goal, ..TaskDraft::default() };
    };
    let below = match document.get("subtasks") {
        Some(Value::Array(items)) if levels > 1 => items.iter().take(MAX_ITEMS).collect(),
        Some(one @ Value::Object(_)) if levels > 1 => vec![one],
        _ => Vec::new(),
    };
    let subtasks = below.into_iter().map(|task| propose_task(task, levels - 1, faults)).collect();
    let (name, goal) = (document.text("name"), document.text("goal"));
    TaskDraft { subtasks, ..draft(&document, name, goal, faults) }
}

/// Reads a task that has none below it and cannot do without name and goal.
pub(super) fn read_task(document: &Document<'_>, faults: &mut Faults) -> TaskDraft {
    let name = document.needed_text("name", faults);
    if !document.documents("subtasks", faults).is_empty() {
        faults.add(format!("task `{name}` lies at the deepest level allowed and cannot have subtasks"));
    }
    let goal = document.needed_text("goal", faults);
    draft(document, name, goal, faults)
}

fn draft(document: &Document<'_>, name: String, goal: String, faults: &mut Faults) -> TaskDraft {
    TaskDraft {
        goal,
        role: Some(document.text("role").to_lowercase()).filter(|role| !role.is_empty()),
        criticism: document.text("criticism"),
        milestones: document.texts("milestones"),
        expected_output: document.text("expected_output"),
        needs: document.texts("needs"),
        tools: document.texts("tools"),
        priority: 0,
        depends_on: document.texts("depends_on"),
        critical: document.flag("critical"),
        max_steps: document.number("max_steps").and_then(|most| u32::try_from(most).ok()),
        pattern: Some(document.text("pattern").to_lowercase()).filter(|pattern| !pattern.is_empty()),
        blueprint: read_blueprint(document, &name, faults),
        // What rules wrote for rules. No schema offers it to a model; what cannot be read is left out.
        query: document.get("query").and_then(|query| TaskQuery::deserialize(query).ok()),
        rights: read_rights(document, &name, faults),
        subtasks: Vec::new(),
        name,
    }
}

/// What a task may use, where a planner names less than it could: that only takes. No schema offers it to a model, but one
/// that cannot be read is asked for again rather than left open.
fn read_rights(document: &Document<'_>, task: &str, faults: &mut Faults) -> Option<Box<Rights>> {
    match Rights::deserialize(document.get("rights")?) {
        Ok(rights) => Some(Box::new(rights)).filter(|rights| !rights.is_open()),
        Err(error) => {
            faults.add(format!("`rights` of {task:?} cannot be read: {error}"));
            None
        }
    }
}

fn read_blueprint(document: &Document<'_>, task: &str, faults: &mut Faults) -> Option<BlueprintCall> {
    let said = document.get("blueprint")?;
    let read = match said {
        // A name alone is understood as well.
        Value::String(name) if name.trim().is_empty() => return None,
        Value::String(name) => Ok(BlueprintCall { name: name.trim().to_owned(), params: BTreeMap::new() }),
        Value::Null => return None,
        said @ (Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_)) => {
            BlueprintCall::deserialize(said)
        }
    };
    match read {
        Ok(call) => Some(call),
        Err(why) => {
            faults.add(format!("`blueprint` of task `{task}` is no {{name, params}}: {why}"));
            None
        }
    }
}
