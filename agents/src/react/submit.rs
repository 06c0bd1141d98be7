//! Reading a model's answer as an action, also when it is only the document that was asked for.

use muster_shared::flow::{Action, Product};
use serde_json::Value;

use super::parse::{AnswerForm, ParseFailure, ParsedAction, ParsedAnswer};
use super::toolset::{self, THOUGHT};

/// One answer of a model, understood or not.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAnswer {
    /// What it wrote, apart from native calls.
    pub said: String,
    /// Reasoning that the provider shows apart from the text.
    pub reasoning: Option<String>,
    /// The action in it, or why there is none.
    pub parsed: Result<ParsedAnswer, ParseFailure>,
}

impl ModelAnswer {
    /// A document that stands alone counts as submitted: many models write the result and forget the
    /// envelope around it.
    #[must_use]
    pub fn submitting(document: &Value, said: String, reasoning: Option<String>) -> Self {
        let thought = document.get(THOUGHT).and_then(Value::as_str).map(str::to_owned);
        let (arguments, _) = toolset::take_thought(document);
        let parsed = ParsedAnswer {
            thought,
            reasoning: None,
            plan: None,
            criticism: None,
            action: ParsedAction { name: Action::SUBMIT.to_owned(), arguments, call_id: None },
            more: Vec::new(),
            form: AnswerForm::Json,
            repaired: false,
        };
        Self { said, reasoning, parsed: Ok(parsed) }
    }

    /// Adds the data of a result that was submitted without any.
    pub(super) fn complete(&mut self, data_of: impl FnOnce(&Value) -> Option<Value>) {
        let Ok(parsed) = &mut self.parsed else { return };
        if parsed.action.name != Action::SUBMIT || !parsed.action.arguments["data"].is_null() {
            return;
        }
        if let Some(data) = data_of(&parsed.action.arguments)
            && let Some(fields) = parsed.action.arguments.as_object_mut()
        {
            fields.insert("data".to_owned(), data);
        }
    }
}

/// The arguments of `submit` that give this product: what the offline model submits is a [`Product`] as
/// JSON, one field that names its kind.
#[must_use]
pub fn arguments_of_product(product: Value) -> Value {
    let Value::Object(fields) = product else { return product };
    let kinds = ["plan", "result", "reflection", "refinement", "report", "draft_review"];
    let mut fields = fields.into_iter();
    match (fields.next(), fields.next()) {
        (Some((kind, operations)), None) if kind == "refinement" => {
            let mut arguments = serde_json::Map::new();
            arguments.insert("operations".to_owned(), operations);
            Value::Object(arguments)
        }
        (Some((kind, inner)), None) if kinds.contains(&kind.as_str()) => inner,
        (first, second) => Value::Object(first.into_iter().chain(second).chain(fields).collect()),
    }
}

/// Marks a report as made without a language model.
pub fn mark_offline(product: &mut Option<Product>) {
    if let Some(Product::Report(report)) = product {
        report.offline = true;
    }
}

/// What a model is told when its answer could not be read or taken.
#[must_use]
pub fn ask_again(faults: &[String]) -> String {
    let mut text = String::from("Your answer was not taken:\n");
    for fault in faults {
        text.push_str("- ");
        text.push_str(fault);
        text.push('\n');
    }
    text.push_str(
        "Answer again: call one action natively, or write one JSON object and nothing else: \
         {\"thought\": \"…\", \"action\": \"…\", \"arguments\": {…}}.",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn products_become_arguments() {
        assert_eq!(
            arguments_of_product(json!({"plan": {"goal": "g", "tasks": []}})),
            json!({"goal": "g", "tasks": []})
        );
        assert_eq!(arguments_of_product(json!({"refinement": [1]})), json!({"operations": [1]}));
        assert_eq!(arguments_of_product(json!({"conclusion": "c"})), json!({"conclusion": "c"}));
        assert_eq!(arguments_of_product(json!({"a": 1, "b": 2, "c": 3})), json!({"a": 1, "b": 2, "c": 3}));
    }

    #[test]
    fn a_bare_document_is_a_submission_with_its_thought() {
        let answer = ModelAnswer::submitting(&json!({"thought": "t", "body": "b"}), String::new(), None);
        let parsed = answer.parsed.unwrap();
        assert_eq!(parsed.thought.as_deref(), Some("t"));
        assert_eq!(parsed.action.arguments, json!({"body": "b"}));
    }
}
