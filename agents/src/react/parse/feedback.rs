//! What a model is told after an answer that could not be read.

use serde_json::{Value, json};

use super::answer::ParseFailure;
use crate::model::chat::ToolDecl;

/// The longest schema repeated to a model, in characters.
const MAX_SCHEMA: usize = 6_000;

/// Asks for an action again: what was wrong, the form wanted, and the tools with their schemas.
#[must_use]
pub fn ask_again(failure: &ParseFailure, known_tools: &[ToolDecl]) -> String {
    let names: Vec<_> = known_tools.iter().map(|tool| tool.name.as_str()).collect();
    let form = json!({"thought": "why you do this", "action": "one of the tools", "action_input": {"argument": "value"}});
    let mut text = format!(
        "Your last answer could not be used: {failure}. {}\n\nAnswer with exactly one JSON object and nothing around it:\n{form}\n",
        advice(failure)
    );
    if !names.is_empty() {
        text.push_str(&format!(
            "\n\"action\" is one of: {}.\nThe arguments of each, as JSON Schema:\n",
            names.join(", ")
        ));
        let schemas: String =
            known_tools.iter().map(|tool| format!("{}: {}\n", tool.name, tool.parameters)).collect();
        text.extend(schemas.chars().take(MAX_SCHEMA));
    }
    text
}

/// Asks for a document again: what was wrong, and the schema.
#[must_use]
pub fn ask_again_for_document(failure: &ParseFailure, schema: &Value) -> String {
    let schema: String = schema.to_string().chars().take(MAX_SCHEMA).collect();
    format!(
        "Your last answer could not be used: {failure}. {}\n\nAnswer with exactly one JSON document and nothing around it, \
         by this schema:\n{schema}\n",
        advice(failure)
    )
}

fn advice(failure: &ParseFailure) -> &'static str {
    match failure {
        ParseFailure::Empty => "Do not leave the answer empty.",
        ParseFailure::TooLarge { .. } => "Make it much shorter, or do it in several steps.",
        ParseFailure::CutOff => "Close what you open.",
        ParseFailure::TooDeep { .. } => "Nest less.",
        ParseFailure::NoAction => "Say what to do, not only what you think.",
        ParseFailure::Refusal { .. } => {
            "If you cannot do this, do the part that you can, or submit with the reason."
        }
        ParseFailure::Unreadable { .. } => "Check quotes, commas and brackets.",
        ParseFailure::NoActionName => "Name the action.",
        ParseFailure::DoesNotFit { .. } => "Correct that place and keep the rest.",
    }
}
