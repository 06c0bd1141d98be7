//! What guards of tasks are asked, what they may put in the place of it, and what follows. Pure.

use muster_bus::GuardedThing;
use muster_shared::flow::{
    Action, Guarded, Hook, Note, Observation, ObservationStatus, Refusal, TaskOffered,
};
use muster_shared::ids::Role;
use serde_json::{Value, json};

/// Largest text that a guard may put in the place of what a tool answered, in bytes.
const MOST_CONTENT: usize = 64 * 1024;

/// What is asked about at a hook of a task.
pub(crate) fn thing(role: &Role, offer: &TaskOffered, hook: Hook, payload: Value) -> GuardedThing {
    let (run, task, role) = (offer.run, Some(offer.task.to_string()), role.to_string());
    GuardedThing { hook, run, task, role, payload }
}

/// What stands in the record of what guards said; nothing where none was asked.
pub(crate) fn note_of(hook: Hook, at: usize, said: Guarded) -> Option<Note> {
    let at = u32::try_from(at).unwrap_or(u32::MAX);
    (!said.is_empty()).then(|| Note::Guarded { hook, at, said, reworded: Vec::new() })
}

/// What guards are told of what came of a call.
pub(crate) fn observed(Action { name, arguments }: &Action, observation: &Observation) -> Value {
    json!({
        "tool": name, "arguments": arguments, "status": observation.status, "content": observation.content,
    })
}

/// An observation as it may be shown, and what guards said of it.
pub(crate) struct Seen {
    pub(crate) observation: Observation,
    pub(crate) said: Guarded,
    /// The right that the task has not, where that is why nothing was done.
    pub(crate) denied: Option<Box<Refusal>>,
}

impl Seen {
    /// What we say of a call ourselves, or what nobody is asked about.
    pub(crate) fn told(observation: Observation) -> Self {
        Self { observation, said: Guarded::default(), denied: None }
    }

    /// The observation, and what stands in the record of the call at this place of a step.
    pub(crate) fn noted(self, at: usize) -> (Observation, impl Iterator<Item = Note>) {
        let place = u32::try_from(at).unwrap_or(u32::MAX);
        let denied = self.denied.map(|refusal| Note::Denied { at: place, refusal: *refusal });
        (self.observation, denied.into_iter().chain(note_of(Hook::AfterObservation, at, self.said)))
    }

    /// What guards left of what the tool of this name answered.
    pub(crate) fn after(tool: &str, mut observation: Observation, mut said: Guarded) -> Self {
        if let Some(why) = said.refused() {
            observation.status = ObservationStatus::Error;
            observation.content = withheld(tool, &why);
        } else if let Some(changed) = said.changed.as_ref().and_then(|changed| changed["content"].as_str()) {
            observation.content = changed.to_owned();
        }
        // It stands in the observation.
        said.changed = None;
        Self { observation, said, denied: None }
    }
}

/// The arguments that are to stand in the place of those of a call.
///
/// # Errors
/// When they are of another tool.
pub(crate) fn arguments_for<'a>(tool: &str, changed: &'a Value) -> Result<&'a Value, String> {
    if changed["tool"] == tool {
        Ok(&changed["arguments"])
    } else {
        Err("another tool cannot stand in its place".to_owned())
    }
}

/// What is told in the place of what a tool answered.
pub(crate) fn withheld(tool: &str, why: &str) -> String {
    format!("What `{tool}` answered is withheld: {why}.")
}

/// The texts that guards put in the place of messages.
pub(crate) fn texts_of(changed: &Value) -> Vec<String> {
    let texts = changed["messages"].as_array().into_iter().flatten();
    texts.map(|one| one["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// What is wrong with what is to stand in the place of an observation.
///
/// # Errors
/// Says it in a sentence.
pub fn content_fits(changed: &Value) -> Result<(), String> {
    match changed["content"].as_str() {
        None => Err("`content` is no text".to_owned()),
        Some(text) if text.len() > MOST_CONTENT => {
            Err(format!("`content` has {} bytes, {MOST_CONTENT} is the most", text.len()))
        }
        Some(_) => Ok(()),
    }
}

/// What is wrong with what is to stand in the place of so many messages: each stands in the place of one.
///
/// # Errors
/// Says it in a sentence.
pub fn messages_fit(changed: &Value, count: usize) -> Result<(), String> {
    let messages = changed["messages"].as_array().ok_or_else(|| "`messages` is no list".to_owned())?;
    if messages.len() != count {
        return Err(format!("it has {} messages in the place of {count}", messages.len()));
    }
    match messages.iter().position(|message| !message["content"].is_string()) {
        Some(at) => Err(format!("`messages[{at}].content` is no text")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_stands_in_the_place_of_something_has_its_form() {
        assert_eq!(content_fits(&json!({ "content": "x" })), Ok(()));
        for wrong in
            [json!({}), json!({ "content": 1 }), json!("x"), json!({ "content": "x".repeat(70_000) })]
        {
            assert!(content_fits(&wrong).is_err());
        }
        assert_eq!(messages_fit(&json!({ "messages": [{ "content": "x" }] }), 1), Ok(()));
        for wrong in [
            json!({}),
            json!({ "messages": [] }),
            json!({ "messages": [{ "content": 1 }] }),
            json!({ "messages": ["x"] }),
            json!({ "messages": [{ "content": "x" }, { "content": "x" }] }),
        ] {
            assert!(messages_fit(&wrong, 1).is_err(), "{wrong}");
        }
    }
}
