//! The calls of a step as spans: of models, and of tools.

use super::attributes::{
    CONVERSATION, ERROR_TYPE, OPERATION, PROVIDER, REQUEST_MODEL, STEP, TASK, model, text, tool_error, usage,
    whole,
};
use super::ids::Part;
use super::seen::{Call, Called, MOST_TOKENS, TEMPERATURE};
use super::{Attribute, SpanKind, Value, content};
use crate::flow::{Action, ModelCall, Observation};
use crate::ids::{Generation, RunId, TaskId};

/// What is told of a call, but for when it was made.
pub(super) struct Draft {
    pub(super) part: Part,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) attributes: Vec<Attribute>,
    pub(super) error: Option<String>,
}

/// Where a step was taken, and how much is told of it.
pub(super) struct StepPlace<'a> {
    pub(super) run: RunId,
    pub(super) conversation: &'a str,
    pub(super) task: &'a TaskId,
    pub(super) generation: Generation,
    pub(super) step: u32,
    pub(super) content: bool,
}

impl StepPlace<'_> {
    /// What is told of one of its calls.
    pub(super) fn draft(&self, call: &Call<'_>) -> Draft {
        match call.called {
            Called::Model(answered) => self.chat(call.place, answered),
            Called::Tool(action, observation) => self.tool(call, action, observation),
            Called::Unheard(action) => self.unheard(call, action),
        }
    }

    fn chat(&self, place: usize, call: &ModelCall) -> Draft {
        let (provider, model) = model(&call.model);
        let mut attributes = vec![
            text(OPERATION, "chat"),
            text(PROVIDER, provider),
            text(REQUEST_MODEL, model),
            text("gen_ai.response.model", model),
            text(CONVERSATION, self.conversation),
        ];
        attributes.extend(usage(&call.usage));
        let parameter = |name: &str| call.parameters.get(name);
        if let Some(temperature) = parameter(TEMPERATURE).and_then(serde_json::Value::as_f64) {
            attributes.push(("gen_ai.request.temperature", Value::Number(temperature)));
        }
        if let Some(most) = parameter(MOST_TOKENS).and_then(serde_json::Value::as_u64) {
            attributes.push(whole("gen_ai.request.max_tokens", most));
        }
        let finish = if call.cut { "length" } else { "stop" };
        attributes.push(("gen_ai.response.finish_reasons", Value::Texts(vec![finish.to_owned()])));
        attributes.push(text(TASK, self.task.to_string()));
        attributes.push(whole(STEP, self.step.into()));
        attributes.push(text("muster.template", format!("{}@{}", call.template.name, call.template.version)));
        if self.content {
            attributes.push(text("gen_ai.input.messages", content::input(call)));
            attributes.push(text("gen_ai.output.messages", content::answered(&call.answer, finish)));
            attributes.push(whole("muster.input.earlier_messages", call.same_messages.into()));
        }
        let name = format!("chat {model}");
        Draft { part: Part::Chat(self.step, place), name, kind: SpanKind::Client, attributes, error: None }
    }

    fn tool(&self, call: &Call<'_>, action: &Action, observation: &Observation) -> Draft {
        let mut draft = self.tool_said(call, action);
        if observation.cached.is_some() {
            draft.attributes.push(("muster.cached", Value::Is(true)));
        }
        if self.content {
            draft.attributes.push(text("gen_ai.tool.call.result", content::brief(&observation.content)));
        }
        if let Some((kind, words)) = tool_error(observation.status) {
            draft.attributes.push(text(ERROR_TYPE, kind));
            draft.error = Some(words.to_owned());
        }
        draft
    }

    fn unheard(&self, call: &Call<'_>, action: &Action) -> Draft {
        let mut draft = self.tool_said(call, action);
        draft.attributes.push(text(ERROR_TYPE, "effect_unknown"));
        draft.error = Some("whether it took effect is not known".to_owned());
        draft
    }

    fn tool_said(&self, call: &Call<'_>, action: &Action) -> Draft {
        let (step, place, tool) = (self.step, call.place, call.called.name());
        let name = format!("execute_tool {tool}");
        // What tools know a repetition by, with the place of the call in the step.
        let id = format!("{}/{}/{}/{step}/{place}", self.run, self.task, self.generation);
        let mut attributes = vec![
            text(OPERATION, "execute_tool"),
            text("gen_ai.tool.name", tool),
            text("gen_ai.tool.type", "function"),
            text("gen_ai.tool.call.id", id),
            text(TASK, self.task.to_string()),
            whole(STEP, step.into()),
        ];
        if self.content {
            attributes.push(text("gen_ai.tool.call.arguments", content::brief_json(&action.arguments)));
        }
        Draft { part: Part::Tool(step, place), name, kind: SpanKind::Internal, attributes, error: None }
    }
}
