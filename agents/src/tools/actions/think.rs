//! `analyze` and `generate`: the model is asked apart from the conversation, with nothing but the material before it.

use std::fmt::Write as _;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{Thinking, one_text, text_of};
use crate::tools::spec::{Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};

pub(super) const ANALYZE: &str = "analyze";
pub(super) const GENERATE: &str = "generate";
/// Longest material, in bytes.
pub(super) const MAX_MATERIAL: usize = 64 * 1024;

pub(super) struct Analyze;
pub(super) struct Generate;

#[async_trait]
impl Tool for Analyze {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            ANALYZE,
            "Takes material apart with a fresh mind: its parts, what follows, risks, and what stays open. Give the \
             material itself, not a name of it.",
            json!({
                "material": {"type": "string", "minLength": 1, "maxLength": MAX_MATERIAL},
                "question": {"type": "string", "maxLength": 2000, "description": "what you want to know of it"}
            }),
            &["material"],
        )
    }

    async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        Err(needs_a_model(ANALYZE))
    }
}

#[async_trait]
impl Tool for Generate {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            GENERATE,
            "Writes a text to a description, with a fresh mind: a draft, a list of ideas, an example, code. What it writes \
             is no evidence of anything.",
            json!({
                "what": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "what is to be written"},
                "form": {"type": "string", "maxLength": 500, "description": "length, style, format"},
                "material": {"type": "string", "maxLength": MAX_MATERIAL, "description": "what it is made from"}
            }),
            &["what"],
        )
    }

    async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        Err(needs_a_model(GENERATE))
    }
}

/// What rules cannot do.
pub(super) fn needs_a_model(name: &str) -> ToolFailure {
    ToolFailure::Refused(format!("`{name}` needs a language model, and none is set up. Go on without it."))
}

pub(super) fn analysis(arguments: &Value) -> Option<Thinking> {
    let material = text_of(arguments, "material");
    if material.is_empty() || material.len() > MAX_MATERIAL {
        return None;
    }
    let question = text_of(arguments, "question");
    let asked = if question.is_empty() { String::new() } else { format!("Question: {question}\n\n") };
    let texts = json!({"type": "array", "items": {"type": "string"}});
    Some(Thinking {
        system:
            "You analyze material for an agent: take it apart, and say nothing that it does not bear out."
                .to_owned(),
        text: format!("{asked}Material:\n{material}"),
        schema: json!({
            "type": "object",
            "properties": {
                "summary": {"type": "string", "description": "the answer to the question, else what it comes to"},
                "parts": texts,
                "risks": texts,
                "open": {"type": "array", "items": {"type": "string"}, "description": "what it does not tell"}
            },
            "required": ["summary", "parts"]
        }),
    })
}

pub(super) fn analysed(said: &Value) -> String {
    let mut text = said["summary"].as_str().unwrap_or_default().to_owned();
    for (title, list) in [("Parts", "parts"), ("Risks", "risks"), ("Open", "open")] {
        let items: Vec<&str> =
            said[list].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if items.is_empty() {
            continue;
        }
        let _ = write!(text, "\n{title}:");
        for item in items {
            let _ = write!(text, "\n- {item}");
        }
    }
    text
}

pub(super) fn generation(arguments: &Value) -> Option<Thinking> {
    let (what, form, material) =
        (text_of(arguments, "what"), text_of(arguments, "form"), text_of(arguments, "material"));
    if what.is_empty() || material.len() > MAX_MATERIAL {
        return None;
    }
    let mut text = format!("What is to be written: {what}");
    for (title, part) in [("Form", form), ("Material", material)] {
        if !part.is_empty() {
            let _ = write!(text, "\n{title}: {part}");
        }
    }
    let system = "You write a text for an agent, to its description and from its material.".to_owned();
    Some(Thinking { system, text, schema: one_text() })
}
