//! Guards of tasks that programs in other languages do: asked about what they put to a model, and about what they observed.

use muster_shared::flow::{Action, Hook, Note, Observation, TaskOffered};
use muster_shared::ids::Role;
use serde_json::{Value, json};

use super::for_programs::{ForPrograms, ProgramQuestion};
use crate::guards::{Seen, content_fits, messages_fit, note_of, observed, thing};

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
