//! What a model is told after an answer that could not be read.

use serde_json::Value;

use super::answer::ParseFailure;

/// The longest schema repeated to a model, in characters.
const MAX_SCHEMA: usize = 6_000;

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
