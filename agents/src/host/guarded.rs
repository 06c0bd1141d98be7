//! Guards of tasks that programs in other languages do: asked about what they put to a model, about what is carried out for
//! them or told before it is done, and about what they observed.

use muster_shared::flow::{Action, Hook, Note, Observation, ObservationStatus, TaskOffered};
use muster_shared::ids::Role;
use serde_json::{Value, json};

use super::for_programs::{ForPrograms, ProgramQuestion};
use crate::guards::{Seen, arguments_for, content_fits, messages_fit, note_of, observed, thing};

/// The place of a call that is none of a step: it was carried out between two of them.
pub const APART: usize = usize::MAX;

/// What guards left of something, and what the record says of it.
#[derive(Debug)]
pub struct AfterGuards<T> {
    /// What it goes on with.
    pub what: T,
    /// What they said; nothing where none was asked.
    pub note: Option<Note>,
}

impl ForPrograms {
    /// Asks about what a program puts to a model; gives why it may not be asked, where a guard refused.
    pub async fn guard_question(
        &self,
        role: &Role,
        offer: &TaskOffered,
        mut question: ProgramQuestion,
    ) -> AfterGuards<Result<ProgramQuestion, String>> {
        let rules: Vec<_> = offer.limits.guards_at(Hook::BeforeModel, Some(role), None).collect();
        if rules.is_empty() {
            return AfterGuards { what: Ok(question), note: None };
        }
        // The instructions are the program's own words too.
        let system = json!({ "role": "system", "content": question.system });
        let said = question.messages.iter().map(|one| json!({ "role": one.role, "content": one.content }));
        let messages: Vec<Value> = std::iter::once(system).chain(said).collect();
        let most = messages.len();
        let thing = thing(role, offer, Hook::BeforeModel, json!({ "messages": messages }));
        let fits = move |changed: &Value| messages_fit(changed, most);
        let mut said = self.guards().ask_all(rules, thing, &fits).await;
        let refused = said.refused();
        if let Some(changed) = said.changed.take() {
            let text = |at: usize| changed["messages"][at]["content"].as_str().unwrap_or_default().to_owned();
            question.system = text(0);
            for (at, message) in question.messages.iter_mut().enumerate() {
                message.content = text(at + 1);
            }
        }
        let what = refused.map_or(Ok(question), Err);
        AfterGuards { what, note: note_of(Hook::BeforeModel, 0, said) }
    }

    /// Asks about a call that is to be done, at this place of a step: gives the arguments that take the place of its own, or why
    /// it may not be done. `fits` says what is wrong with arguments.
    pub async fn guard_call(
        &self,
        role: &Role,
        offer: &TaskOffered,
        at: usize,
        action: &Action,
        fits: &(dyn Fn(&Value) -> Result<(), String> + Sync),
    ) -> AfterGuards<Result<Option<Value>, String>> {
        let Action { name, arguments } = action;
        let rules: Vec<_> = offer.limits.guards_at(Hook::BeforeTool, Some(role), Some(name)).collect();
        if rules.is_empty() {
            return AfterGuards { what: Ok(None), note: None };
        }
        let payload = json!({ "tool": name, "arguments": arguments });
        let same_tool = |changed: &Value| arguments_for(name, changed).and_then(fits);
        let mut said =
            self.guards().ask_all(rules, thing(role, offer, Hook::BeforeTool, payload), &same_tool).await;
        let changed = said.changed.take().map(|mut changed| changed["arguments"].take());
        said.changed = changed.as_ref().map(|arguments| json!({ "arguments": arguments }));
        let what = said.refused().map_or(Ok(changed), Err);
        AfterGuards { what, note: note_of(Hook::BeforeTool, at, said) }
    }

    /// Asks about what is given of a call that was carried out for a program: gives what it is shown, or why it is withheld.
    pub async fn guard_answer(
        &self,
        role: &Role,
        offer: &TaskOffered,
        action: &Action,
        answer: Value,
    ) -> AfterGuards<Result<Value, String>> {
        let rules = offer.limits.guards_at(Hook::AfterObservation, Some(role), Some(&action.name));
        let rules: Vec<_> = rules.collect();
        if rules.is_empty() {
            return AfterGuards { what: Ok(answer), note: None };
        }
        let (status, content) = (ObservationStatus::Success, answer.to_string());
        let observation = Observation { status, content, millis: 0, truncated: false, cached: None };
        let thing = thing(role, offer, Hook::AfterObservation, observed(action, &observation));
        let mut said = self.guards().ask_all(rules, thing, &answer_fits).await;
        let what = match (said.refused(), said.changed.take()) {
            (Some(why), _) => Err(why),
            (None, Some(changed)) => changed_answer(&changed),
            (None, None) => Ok(answer),
        };
        AfterGuards { what, note: note_of(Hook::AfterObservation, APART, said) }
    }

    /// Asks about what a program observed of the call at this place of a step. What is withheld is so in the record; the program has seen it.
    pub async fn guard_observation(
        &self,
        role: &Role,
        offer: &TaskOffered,
        at: usize,
        action: &Action,
        observation: Observation,
    ) -> AfterGuards<Observation> {
        let tool = &action.name;
        let rules: Vec<_> = offer.limits.guards_at(Hook::AfterObservation, Some(role), Some(tool)).collect();
        if rules.is_empty() {
            return AfterGuards { what: observation, note: None };
        }
        let thing = thing(role, offer, Hook::AfterObservation, observed(action, &observation));
        let said = self.guards().ask_all(rules, thing, &content_fits).await;
        let Seen { observation, said, .. } = Seen::after(tool, observation, said);
        AfterGuards { what: observation, note: note_of(Hook::AfterObservation, at, said) }
    }
}

/// The answer that a guard put in the place of one.
fn changed_answer(changed: &Value) -> Result<Value, String> {
    let text = changed["content"].as_str().ok_or_else(|| "`content` is no text".to_owned())?;
    let answer: Value =
        serde_json::from_str(text).map_err(|error| format!("`content` is no JSON: {error}"))?;
    if answer.is_object() { Ok(answer) } else { Err("`content` is no JSON object".to_owned()) }
}

fn answer_fits(changed: &Value) -> Result<(), String> {
    changed_answer(changed).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_place_of_an_answer_is_one() {
        assert!(answer_fits(&json!({ "content": "{\"text\": \"x\"}" })).is_ok());
        for wrong in
            [json!({}), json!({ "content": "x" }), json!({ "content": "[1]" }), json!({ "content": {} })]
        {
            assert!(answer_fits(&wrong).is_err(), "{wrong}");
        }
    }
}
