//! Asking the model apart from the conversation, and going on from an answer that was kept.

use std::time::Instant;

use muster_corpus::CitedPlace;
use muster_shared::flow::{Note, Step};
use serde_json::Value;

use super::super::consult::{
    ConsultQuestion, ConsultRequest, MAX_ASKED, NO_ANSWER, ask, consulted, said_before,
};
use super::super::decide::{ChosenAction, NextStep, resumed};
use super::super::interrupt::{HandedOver, unless_handed_over};
use super::super::journal::Journal;
use super::super::lookup::{looked_up, note_of};
use super::super::model::{Aside, ModelClient};
use super::super::parse::{ask_again_for_document, parse_whole_document};
use super::super::prompt::EMPTY;
use super::super::resources::TaskResources;
use super::{Clock, End, Failure, TaskSession, Toolbox};
use crate::model::chat::{ChatMessage, ChatRequest};

impl TaskSession<'_> {
    /// Asks what a decision wants to know, until it is settled. The answer that led to the question is journaled
    /// before, so that it is not asked for again.
    pub(super) async fn consult(
        &mut self,
        journal: &mut Journal,
        resources: &TaskResources,
        mut next: NextStep,
        clock: &mut Clock,
    ) -> Result<NextStep, Failure> {
        loop {
            let (chosen, question) = match next {
                NextStep::Consult { chosen, question } => (chosen, question),
                NextStep::LookUp { chosen, asked, shows } => {
                    next = self.look_up(resources, chosen, asked, shows).await?;
                    continue;
                }
                settled @ (NextStep::CallTool { .. }
                | NextStep::Refuse { .. }
                | NextStep::Observe { .. }
                | NextStep::AskAgain { .. }
                | NextStep::Submit { .. }
                | NextStep::Conclude { .. }) => return Ok(settled),
            };
            self.keep(journal, &chosen, *clock).await?;
            let said = match self.ask_apart(resources, question, Some(&chosen), clock).await {
                Ok(said) => said,
                Err(handed_over) => {
                    self.pending.clear();
                    return Err(handed_over.into());
                }
            };
            next = consulted(&self.history, chosen, question, said, &resources.case(self.offer));
        }
    }

    /// Looks up what a result cites. What is found stands in the record, with the step.
    async fn look_up(
        &self,
        resources: &TaskResources,
        mut chosen: ChosenAction,
        asked: Vec<CitedPlace>,
        shows: bool,
    ) -> Result<NextStep, Failure> {
        let looking = resources.look_up(asked.clone(), shows);
        let found = unless_handed_over(self.handing_over.clone(), looking).await?;
        chosen.notes.push(note_of(&asked, found));
        Ok(looked_up(&self.history, chosen, &resources.case(self.offer)))
    }

    /// Goes on from an answer that was journaled before anything of it was done.
    pub(super) async fn go_on_from(
        &mut self,
        journal: &mut Journal,
        toolbox: &mut Toolbox,
        step: Step,
    ) -> Result<Option<End>, Failure> {
        let Step { thought, action, more, mut notes, heard, calls, .. } = step;
        // Rules look anew.
        notes.retain(|note| !matches!(note, Note::Verified { .. } | Note::NotChecked { .. }));
        let chosen = ChosenAction { thought, action, more, notes };
        (self.pending, self.told) = (calls, heard);
        let next = resumed(&self.history, chosen, &toolbox.resources.case(self.offer));
        self.settle(journal, toolbox, next, Clock::start()).await
    }

    async fn ask_apart(
        &mut self,
        resources: &TaskResources,
        question: ConsultQuestion,
        chosen: Option<&ChosenAction>,
        clock: &mut Clock,
    ) -> Result<Result<Value, String>, HandedOver> {
        let asked = ask(question, &self.history, chosen, &resources.case(self.offer));
        let begun = Instant::now();
        let said = self.put(resources, &asked).await;
        clock.outside += begun.elapsed();
        said
    }

    async fn put(
        &mut self,
        resources: &TaskResources,
        asked: &ConsultRequest,
    ) -> Result<Result<Value, String>, HandedOver> {
        let ModelClient::Chat(model) = &resources.model else {
            return Ok(Err("no language model is set up".to_owned()));
        };
        let handing_over = self.handing_over.clone();
        let is_structured = resources.model.capabilities().is_none_or(|able| able.structured);
        let redacted = |text: &str| resources.redactor.redact(text).into_owned();
        let mut request = ChatRequest {
            system: redacted(&asked.system).into(),
            messages: vec![ChatMessage::user(redacted(&asked.text)).into()],
            schema: is_structured.then(|| asked.schema.clone()),
            temperature: resources.sampling.temperature,
            effort: resources.sampling.effort,
            max_tokens: resources.sampling.max_tokens,
            ..ChatRequest::default()
        };
        let mut seen = 0;
        for _ in 0..MAX_ASKED {
            if let Some(said) = said_before(&self.pending, asked) {
                return Ok(said);
            }
            let asking = self.guard_aside(&mut request.messages[seen..], resources);
            if let Err(why) = unless_handed_over(handing_over.clone(), asking).await? {
                tracing::warn!(why, purpose = %asked.purpose, "a question apart from the task was not asked");
                return Ok(Err(NO_ANSWER.to_owned()));
            }
            seen = request.messages.len();
            let aside = Aside { redactor: &resources.redactor, reuse: resources.reuse.as_ref() };
            let gate = self.gate.get_mut();
            let asking = model.ask_apart(&request, asked.purpose, aside, gate);
            match unless_handed_over(self.handing_over.clone(), asking).await? {
                Ok(call) => {
                    if let Err(failure) = parse_whole_document::<Value>(&call.answer, &asked.schema, call.cut)
                    {
                        let again = ask_again_for_document(&failure, &asked.schema);
                        let said = if call.answer.trim().is_empty() { EMPTY } else { &call.answer };
                        request.messages.push(ChatMessage::assistant(said).into());
                        request.messages.push(ChatMessage::user(again).into());
                    }
                    self.pending.push(call);
                }
                Err(error) => {
                    self.wasted += self.gate.get_mut().take();
                    // What follows may hang on nothing but the record: why no answer came does not stand there.
                    tracing::warn!(%error, purpose = %asked.purpose, "a question apart from the task got no answer");
                    return Ok(Err(NO_ANSWER.to_owned()));
                }
            }
        }
        Ok(said_before(&self.pending, asked).unwrap_or_else(|| Err(NO_ANSWER.to_owned())))
    }
}
