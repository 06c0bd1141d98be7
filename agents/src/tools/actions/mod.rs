//! The standard actions (W7): what an agent of any role may do besides the tools of its trade.
//!
//! | action | does | by |
//! |---|---|---|
//! | `analyze` | takes material apart: parts, risks, what is open | the model, asked apart |
//! | `generate` | writes a text to a description | the model, asked apart |
//! | `transform` | gives a text another form | a computation where one will do, else the model |
//! | `compare` | scores things by criteria and ranks them | a computation over values; the model gives those that lack |
//! | `search` | looks through the documents and the results of other tasks | rules |
//! | `validate` | checks an assertion against documents, results and arithmetic | rules |
//! | `request_info` | finds an answer in what is known, else asks a person | rules, then a person |
//! | `delegate` | hands a part over, and goes on with its result | another agent |
//! | `escalate` | lets a person decide | a person |
//! | `ask_peer` | asks another agent a question | another agent |
//! | `share_info` | tells other tasks something | rules |
//! | `request_context` | tells what other tasks gave, and how the run stands | rules, over the record |
//! | `who_can` | tells who can do something | rules, over the registry |
//! | `write_context` | writes a value that all tasks share | rules |
//! | `read_context` | tells what the shared values are | rules, over the record |

use std::sync::Arc;

use muster_shared::flow::Action;
use serde_json::{Value, json};

use super::spec::Tool;

mod compare;
mod known;
mod peers;
mod people;
mod search;
mod think;
mod transform;
mod validate;

/// The tools behind the standard actions.
#[must_use]
pub fn tools() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(think::Analyze),
        Arc::new(think::Generate),
        Arc::new(transform::Transform),
        Arc::new(compare::Compare),
        Arc::new(search::Search),
        Arc::new(validate::Validate),
        Arc::new(people::RequestInfo),
        Arc::new(people::Escalate),
        Arc::new(people::Delegate),
        Arc::new(peers::AskPeer),
        Arc::new(peers::ShareInfo),
        Arc::new(peers::RequestContext),
        Arc::new(peers::WhoCan),
        Arc::new(peers::WriteContext),
        Arc::new(peers::ReadContext),
    ]
}

/// Whether a tool asks peers, or tells them something.
#[must_use]
pub fn reaches_peers(tool: &str) -> bool {
    peers::NAMES.contains(&tool)
}

/// What the model is asked when an action is thought rather than done.
#[derive(Debug, Clone, PartialEq)]
pub struct Thinking {
    /// How to answer.
    pub system: String,
    /// The material.
    pub text: String,
    /// The form of the answer.
    pub schema: Value,
}

/// What the model is asked for this action; nothing when it is done without.
#[must_use]
pub fn thinking(action: &Action) -> Option<Thinking> {
    let arguments = &action.arguments;
    match action.name.as_str() {
        think::ANALYZE => think::analysis(arguments),
        think::GENERATE => think::generation(arguments),
        transform::TRANSFORM => transform::by_model(arguments),
        compare::COMPARE => compare::by_model(arguments),
        // Names are open: every other tool is done.
        _ => None,
    }
}

/// The model's answer as the observation of the action.
#[must_use]
pub fn in_words(action: &Action, said: &Value) -> String {
    match action.name.as_str() {
        think::ANALYZE => think::analysed(said),
        compare::COMPARE => compare::ranked_by(&action.arguments, said),
        // All others ask for one text.
        _ => said["text"].as_str().unwrap_or_default().to_owned(),
    }
}

/// The schema of an answer that is one text.
fn one_text() -> Value {
    json!({"type": "object", "properties": {"text": {"type": "string", "minLength": 1}}, "required": ["text"]})
}

/// An argument that is a text; empty when absent.
fn text_of<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments[name].as_str().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests;
