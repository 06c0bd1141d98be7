//! The reflector: draws lessons from a leaf that ended.

use muster_shared::flow::{Product, Reflection, TaskOffered, ToolNote, Work};
use serde_json::{Value, json};

use super::{Document, Faults, RoleRules, Submission, refiner};

pub(super) static RULES: RoleRules =
    RoleRules::single_answer("reflector", include_str!("../prompts/reflector.md.j2"), schema, read, None);

fn schema(offer: &TaskOffered) -> Value {
    let mut schema = schema_of_reflection();
    if let Work::Reflect { refine: Some(brief), .. } = &offer.work {
        let mut operations = refiner::operations_schema(&brief.roles, &brief.blueprints);
        operations["description"] = json!("with `refine`: the change itself, where you know it");
        schema["properties"]["operations"] = operations;
    }
    schema
}

fn schema_of_reflection() -> Value {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    json!({
        "type": "object",
        "properties": {
            "summary": {"type": "string", "description": "what was done and what came of it"},
            "on_plan": texts,
            "on_tools": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"tool": {"type": "string"}, "note": {"type": "string"}},
                    "required": ["tool", "note"]
                }
            },
            "uncovered": {"type": "array", "items": {"type": "string"}, "description": "what the task was to cover and did not"},
            "refine": {"type": "string", "description": "why the plan should be changed; leave out when it should not"}
        },
        "required": ["summary"]
    })
}

fn read(offer: &TaskOffered, document: &Document<'_>, faults: &mut Faults) -> Submission {
    let may_change = matches!(&offer.work, Work::Reflect { refine: Some(_), .. });
    let operations = if may_change { document.documents("operations", faults) } else { Vec::new() };
    let operations = refiner::read_all(&operations, faults);
    let notes = document.documents("on_tools", faults);
    let notes = notes.iter().map(|note| ToolNote { tool: note.text("tool"), note: note.text("note") });
    let reflection = Reflection {
        on_tools: notes.filter(|note| !note.tool.is_empty() && !note.note.is_empty()).collect(),
        summary: document.needed_text("summary", faults),
        on_plan: document.texts("on_plan"),
        uncovered: document.texts("uncovered"),
        refine: Some(document.text("refine")).filter(|why| !is_a_no(why)),
        operations,
    };
    Submission::done(Product::Reflection(reflection))
}

/// Models that should leave a field out often say so in it.
fn is_a_no(text: &str) -> bool {
    let word = text.trim_end_matches('.').to_lowercase();
    matches!(word.as_str(), "" | "no" | "none" | "false" | "null" | "n/a" | "not needed")
}
