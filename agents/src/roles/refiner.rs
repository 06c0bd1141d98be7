//! The refiner: changes the plan while it runs.

use muster_shared::flow::{BlueprintBrief, Product, RefineOperation, TaskDraft, TaskOffered, Work};
use muster_shared::ids::TaskIndex;
use serde_json::{Value, json};

use super::{Document, Faults, RoleRules, Submission, planner};

pub(super) static RULES: RoleRules =
    RoleRules::single_answer("refiner", include_str!("../prompts/refiner.md.j2"), schema, read, None);

fn schema(offer: &TaskOffered) -> Value {
    let (roles, blueprints) = match &offer.work {
        Work::Refine { roles, blueprints, .. } => (roles.as_slice(), blueprints.as_slice()),
        _ => (&[][..], &[][..]),
    };
    let mut operations = operations_schema(roles, blueprints);
    operations["minItems"] = json!(1);
    json!({"type": "object", "properties": {"operations": operations}, "required": ["operations"]})
}

/// The schema of a list of operations.
pub(super) fn operations_schema(roles: &[String], blueprints: &[BlueprintBrief]) -> Value {
    let tasks = json!({"type": "array", "items": planner::task_schema(roles, blueprints, 1)});
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "operation": {"type": "string", "enum": ["split", "add", "delete", "exit"]},
                "task": {"type": "string", "description": "split, delete: the index of the task"},
                "into": tasks,
                "after": {"type": "string", "description": "add: the index after which the tasks come"},
                "tasks": tasks,
                "reason": {"type": "string", "description": "delete, exit: why"}
            },
            "required": ["operation"]
        }
    })
}

fn read(_: &TaskOffered, document: &Document<'_>, faults: &mut Faults) -> Submission {
    let operations = document.documents("operations", faults);
    if operations.is_empty() {
        faults.add("`operations` is missing or empty: use exit to leave the plan as it is");
    }
    Submission::done(Product::Refinement(read_all(&operations, faults)))
}

/// The operations of a list.
pub(super) fn read_all(operations: &[Document<'_>], faults: &mut Faults) -> Vec<RefineOperation> {
    operations.iter().filter_map(|operation| read_operation(operation, faults)).collect()
}

fn read_operation(document: &Document<'_>, faults: &mut Faults) -> Option<RefineOperation> {
    match document.text("operation").to_lowercase().as_str() {
        "split" => Some(RefineOperation::Split {
            task: read_index(document, "task", faults)?,
            into: read_tasks(document, "into", faults),
        }),
        "add" => Some(RefineOperation::Add {
            after: read_index(document, "after", faults)?,
            tasks: read_tasks(document, "tasks", faults),
        }),
        "delete" => Some(RefineOperation::Delete {
            task: read_index(document, "task", faults)?,
            reason: document.text("reason"),
        }),
        "exit" => Some(RefineOperation::Exit { reason: document.text("reason") }),
        other => {
            faults.add(format!("{other:?} is not an operation: use split, add, delete or exit"));
            None
        }
    }
}

fn read_index(document: &Document<'_>, name: &str, faults: &mut Faults) -> Option<TaskIndex> {
    let text = document.text(name);
    let index = text.parse();
    if index.is_err() {
        faults.add(format!("`{name}` is {text:?}; it must be the index of a task of the plan, such as 1-2"));
    }
    index.ok()
}

fn read_tasks(document: &Document<'_>, name: &str, faults: &mut Faults) -> Vec<TaskDraft> {
    let tasks = document.documents(name, faults);
    if tasks.is_empty() {
        faults.add(format!("`{name}` is missing or empty: name the new tasks"));
    }
    tasks.iter().map(|task| planner::read_task(task, faults)).collect()
}
