//! Guards: asked before a model is, before tools are called, and after they have answered. What they said stands in the
//! record with the step, so that nobody is asked again.

use std::time::Instant;

use futures::future;
use muster_bus::GuardedThing;
use muster_shared::flow::{Action, Guarded, Hook, Note, Observation, Reworded};
use serde_json::{Value, json};

use super::super::approval::{standing, undone};
use super::super::decide::ChosenAction;
use super::super::interrupt::{HandedOver, unless_handed_over};
use super::super::prompt::Conversation;
use super::super::resources::TaskResources;
use super::{Clock, TaskSession};
use crate::guards::{Seen, arguments_for, content_fits, messages_fit, note_of, observed, texts_of, thing};
use crate::model::chat::ChatMessage;
use crate::model::kept::Kept;

impl TaskSession<'_> {
    /// Whether any guard is asked of this task at a hook.
    fn is_guarded(&self, hook: Hook) -> bool {
        self.offer.limits.guards_at(hook, Some(self.role), None).next().is_some()
    }

    fn thing(&self, hook: Hook, payload: Value) -> GuardedThing {
        thing(self.role, self.offer, hook, payload)
    }

    /// Asks about each call that is to be done and was not asked about yet.
    pub(super) async fn guard_calls(
        &self,
        chosen: &mut ChosenAction,
        resources: &TaskResources,
        clock: &mut Clock,
    ) -> Result<(), HandedOver> {
        if !self.is_guarded(Hook::BeforeTool) {
            return Ok(());
        }
        let begun = Instant::now();
        let is_open = |(at, _): &(usize, &Action)| Note::is_to_guard(&chosen.notes, Hook::BeforeTool, *at);
        let notes = &chosen.notes;
        let asked = undone(chosen).filter(is_open).map(|(at, action)| async move {
            let arguments = standing(notes, at).changed.unwrap_or(&action.arguments);
            note_of(Hook::BeforeTool, at, self.guard_call(&action.name, arguments, resources).await)
        });
        let notes = unless_handed_over(self.handing_over.clone(), future::join_all(asked)).await?;
        clock.outside += begun.elapsed();
        chosen.notes.extend(notes.into_iter().flatten());
        Ok(())
    }

    async fn guard_call(&self, name: &str, arguments: &Value, resources: &TaskResources) -> Guarded {
        let rules = self.offer.limits.guards_at(Hook::BeforeTool, Some(self.role), Some(name));
        let thing = self.thing(Hook::BeforeTool, json!({ "tool": name, "arguments": arguments }));
        let fits = |changed: &Value| {
            arguments_for(name, changed).and_then(|arguments| resources.engine.fits(name, arguments))
        };
        let mut said = resources.guards.ask_all(rules, thing, &fits).await;
        said.changed = said.changed.map(|changed| json!({ "arguments": changed["arguments"] }));
        said
    }

    /// Asks about what a tool answered: what is changed or withheld, the model and the record never see.
    pub(super) async fn guard_observation(
        &self,
        action: &Action,
        observation: Observation,
        resources: &TaskResources,
    ) -> Seen {
        if !self.is_guarded(Hook::AfterObservation) {
            return Seen::told(observation);
        }
        let tool = &action.name;
        let rules = self.offer.limits.guards_at(Hook::AfterObservation, Some(self.role), Some(tool));
        let thing = self.thing(Hook::AfterObservation, observed(action, &observation));
        let said = resources.guards.ask_all(rules, thing, &content_fits).await;
        Seen::after(tool, observation, said)
    }

    /// Asks about what a model has not been sent yet. What is changed stays so for the rest of the task.
    ///
    /// # Errors
    /// Why it may not be asked.
    pub(super) async fn guard_question(
        &mut self,
        conversation: &mut Conversation,
        resources: &TaskResources,
    ) -> Result<(), String> {
        if !self.is_guarded(Hook::BeforeModel) {
            return Ok(());
        }
        conversation.learn(&self.notes);
        let messages = conversation.unsent();
        let said = self.guard_messages(messages, resources).await;
        self.remember(said, |to| conversation.reword(to))
    }

    /// Asks about a question apart from the conversation, from this message on.
    ///
    /// # Errors
    /// Why it may not be asked.
    pub(super) async fn guard_aside(
        &mut self,
        messages: &mut [Kept<ChatMessage>],
        resources: &TaskResources,
    ) -> Result<(), String> {
        if !self.is_guarded(Hook::BeforeModel) {
            return Ok(());
        }
        let said = self.guard_messages(messages, resources).await;
        self.remember(said, |to| {
            put(messages, to);
            Vec::new()
        })
    }

    /// What guards say of these messages.
    pub(super) async fn guard_messages(
        &self,
        messages: &[Kept<ChatMessage>],
        resources: &TaskResources,
    ) -> Guarded {
        if messages.is_empty() {
            return Guarded::default();
        }
        let rules = self.offer.limits.guards_at(Hook::BeforeModel, Some(self.role), None);
        let told: Vec<Value> = messages.iter().map(|message| told(message)).collect();
        let thing = self.thing(Hook::BeforeModel, json!({ "messages": told }));
        let most = messages.len();
        resources.guards.ask_all(rules, thing, &move |changed: &Value| messages_fit(changed, most)).await
    }

    /// Keeps what guards said of a question, with the step. `reword` puts the changed texts in their places.
    fn remember(
        &mut self,
        mut said: Guarded,
        reword: impl FnOnce(Vec<String>) -> Vec<Reworded>,
    ) -> Result<(), String> {
        if said.is_empty() {
            return Ok(());
        }
        let refused = said.refused();
        let texts = said.changed.take().filter(|_| refused.is_none()).map(|changed| texts_of(&changed));
        let reworded = texts.map(reword).unwrap_or_default();
        self.notes.push(Note::Guarded { hook: Hook::BeforeModel, at: 0, said, reworded });
        refused.map_or(Ok(()), |why| Err(format!("the model was not asked: {why}")))
    }
}

/// Puts texts in the places of those of messages.
pub(super) fn put(messages: &mut [Kept<ChatMessage>], texts: Vec<String>) {
    for (message, content) in messages.iter_mut().zip(texts) {
        *message = ChatMessage { content, ..ChatMessage::clone(message) }.into();
    }
}

/// A message as a guard is told of it.
fn told(message: &ChatMessage) -> Value {
    let calls =
        message.tool_calls.iter().map(|call| json!({ "name": call.name, "arguments": call.arguments }));
    let calls: Vec<Value> = calls.collect();
    let mut told = json!({ "role": message.role, "content": message.content });
    if !calls.is_empty() {
        told["calls"] = Value::Array(calls);
    }
    if !message.pictures.is_empty() {
        // Which they are: guards are told in JSON, and judge texts.
        told["pictures"] = json!(message.pictures);
    }
    told
}
