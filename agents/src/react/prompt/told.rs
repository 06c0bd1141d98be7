//! A step as a model is told of it.

use muster_shared::flow::{Action, Information, Observation, Step};
use serde_json::Value;

use super::super::decide::StepLimits;
use super::super::further::USE_TOOL;
use super::super::toolset::model_name;
use super::{CallStyle, Conversation};
use crate::model::chat::{ChatMessage, ToolCall};
use crate::prompts::fence;

/// Remaining steps at which the prompt asks the model to conclude: one to check, and one to finish.
const CONCLUDE_WITHIN: u32 = 2;

impl Conversation {
    /// A step as the model is told of it.
    pub(super) fn messages_of(&self, step: &Step) -> Vec<ChatMessage> {
        let mut messages: Vec<ChatMessage> = self.in_words(&step.heard).into_iter().collect();
        let next = position(step.number.saturating_add(1), self.limits);
        let seen = step.acts().map(|(action, seen)| match seen {
            Some(seen) => self.observation(action, seen),
            None => String::new(),
        });
        let seen: Vec<String> = seen.collect();
        match self.style {
            CallStyle::Native => {
                let first = step.acts().next().map(|(action, _)| model_name(&action.name));
                let (signer, signatures) = first.and_then(|name| signed(step, &name)).unzip();
                let mut marks = Some((signer, signatures.unwrap_or_default()));
                let calls = step.acts().enumerate().map(|(at, (action, _))| {
                    let (signer, signatures) = marks.take().unwrap_or_default();
                    let (name, arguments) = self.as_called(action);
                    let call = ToolCall::new(call_id(step, at), name, arguments);
                    ToolCall { signatures, signer, ..call }
                });
                messages.push(ChatMessage::calls(&step.thought.text, calls.collect()));
                let last = seen.len().saturating_sub(1);
                for (at, told) in seen.into_iter().enumerate() {
                    let told = if at == last { format!("{told}\n\n{next}") } else { told };
                    messages.push(ChatMessage::tool_result(call_id(step, at), told));
                }
            }
            CallStyle::Text => {
                messages.push(ChatMessage::assistant(choice_in_words(step)));
                messages.push(ChatMessage::user(format!("{}\n\n{next}", seen.join("\n"))));
            }
        }
        messages
    }

    /// An action as the model called it: by way of another tool, where it is not declared itself.
    fn as_called(&self, action: &Action) -> (String, Value) {
        let Action { name, arguments } = action;
        if self.tools.is_further(name) {
            let by_way = serde_json::json!({"tool": model_name(name), "arguments": arguments});
            return (USE_TOOL.to_owned(), by_way);
        }
        (model_name(name), arguments.clone())
    }

    /// What other tasks shared, as one message of data.
    pub(super) fn in_words(&self, told: &[Information]) -> Option<ChatMessage> {
        let line = |one: &Information| match &one.from {
            Some(from) => format!("Task {from} ({}): {}", one.name, one.text),
            None => format!("{} (a person): {}", one.name, one.text),
        };
        let text = told.iter().map(line).collect::<Vec<_>>().join("\n\n");
        let who = if told.iter().all(|one| one.from.is_some()) {
            "Other tasks of this run share what they found."
        } else {
            "Other tasks of this run, and people, share what they know."
        };
        let word = format!("{who} Take it into account as far as it concerns you.");
        (!told.is_empty()).then(|| {
            ChatMessage::user(format!("{word}\n{}", fence(&self.nonce, "shared information", &text)))
        })
    }

    fn observation(&self, action: &Action, seen: &Observation) -> String {
        fence(&self.nonce, &format!("observation of {}", action.name), &seen.content)
    }
}

/// The marks that the chosen call came with, and the model that made them. They are those of the first call of the last
/// answer; another that was chosen has none.
fn signed(step: &Step, name: &str) -> Option<(String, Vec<String>)> {
    let call = step.calls.iter().rfind(|call| !call.aside).filter(|call| !call.signatures.is_empty())?;
    let begins = usize::try_from(*call.calls_at.first()?).ok()?;
    let called = call.answer.get(begins..)?.strip_prefix("[call] ")?.split([' ', '\n']).next()?;
    (model_name(called) == name).then(|| (call.model.clone(), call.signatures.clone()))
}

/// By which a call and its result are known to the provider.
fn call_id(step: &Step, at: usize) -> String {
    if at == 0 { format!("step-{}", step.number) } else { format!("step-{}-{}", step.number, at + 1) }
}

/// The names are those by which the model is told of the tools.
fn choice_in_words(step: &Step) -> String {
    let Action { name, arguments } = &step.action;
    if step.more.is_empty() {
        let name = model_name(name);
        return serde_json::json!({"thought": step.thought.text, "action": name, "arguments": arguments})
            .to_string();
    }
    let actions = step.acts().map(
        |(action, _)| serde_json::json!({"action": model_name(&action.name), "arguments": action.arguments}),
    );
    serde_json::json!({"thought": step.thought.text, "actions": actions.collect::<Vec<_>>()}).to_string()
}

/// Where in its steps a task stands.
pub(super) fn position(step: u32, limits: StepLimits) -> String {
    let most = limits.max_steps;
    let left = most.saturating_sub(step);
    let advice = if left == 0 {
        " This is the last: no tool is run any more. Submit the best result there is."
    } else if left < CONCLUDE_WITHIN {
        " Few steps are left: conclude and submit."
    } else {
        ""
    };
    format!("Step {step} of {most}.{advice}")
}
