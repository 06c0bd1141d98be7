//! Asking the model apart from the conversation, and going on from an answer that was kept.

use std::time::Instant;

use muster_shared::flow::{Note, Step, Unchecked};
use serde_json::Value;

use super::super::consult::{
    Asked, MAX_ASKED, NO_ANSWER, Question, ask, consulted, goal_checked, goal_is_due, goal_unchecked,
    said_before,
};
use super::super::decide::{Chosen, NextStep, resumed};
use super::super::equipment::Equipment;
use super::super::interrupt::{HandedOver, unless_handed_over};
use super::super::journal::Journal;
use super::super::mind::Mind;
use super::super::parse::{ask_again_for_document, parse_whole_document};
use super::super::prompt::EMPTY;
use super::{Bench, Clock, Course, End, Failure};
use crate::model::chat::{ChatMessage, ChatRequest};

impl Course<'_> {
    /// Asks what a decision wants to know, until it is settled. The answer that led to the question is journaled
    /// before, so that it is not asked for again.
    pub(super) async fn consult(
        &mut self,
        journal: &mut Journal,
        equipment: &Equipment,
        mut next: NextStep,
        clock: &mut Clock,
    ) -> Result<NextStep, Failure> {
        while let NextStep::Consult { chosen, question } = next {
            self.keep(journal, &chosen, *clock).await?;
            let said = match self.ask_apart(equipment, question, Some(&chosen), clock).await {
                Ok(said) => said,
                Err(handed_over) => {
                    self.pending.clear();
                    return Err(handed_over.into());
                }
            };
            next = consulted(&self.history, chosen, question, said, &equipment.case(self.offer));
        }
        Ok(next)
    }

    /// Goes on from an answer that was journaled before anything of it was done.
    pub(super) async fn go_on_from(
        &mut self,
        journal: &mut Journal,
        bench: &mut Bench,
        step: Step,
    ) -> Result<Option<End>, Failure> {
        let Step { thought, action, mut notes, heard, calls, .. } = step;
        // Rules look anew.
        notes.retain(|note| {
            !matches!(note, Note::Verified { .. } | Note::NotChecked { what: Unchecked::Result, .. })
        });
        let chosen = Chosen { thought, action, left_out: 0, notes };
        (self.pending, self.told) = (calls, heard);
        let next = resumed(&self.history, chosen, &bench.equipment.case(self.offer));
        self.settle(journal, bench, next, Clock::start()).await
    }

    /// Has the model look whether the goal is reached, where settings want that, and tells it.
    pub(super) async fn check_goal(&mut self, bench: &mut Bench, clock: &mut Clock) -> Result<(), Failure> {
        let case = bench.equipment.case(self.offer);
        let known = self.notes.iter().any(|note| {
            matches!(note, Note::GoalChecked { .. } | Note::NotChecked { what: Unchecked::Goal, .. })
        });
        if known || !goal_is_due(&self.history, &case) {
            return Ok(());
        }
        let said = self.ask_apart(&bench.equipment, Question::Goal, None, clock).await?;
        let (note, word) = match said {
            Ok(said) => goal_checked(&said),
            // Without a verdict the task goes on as it would have, and its record says that there was none.
            Err(why) => {
                self.remark(vec![goal_unchecked(&why)]);
                return Ok(());
            }
        };
        self.remark(vec![note]);
        if let Some(conversation) = &mut bench.conversation {
            conversation.urge(&word);
        }
        Ok(())
    }

    async fn ask_apart(
        &mut self,
        equipment: &Equipment,
        question: Question,
        chosen: Option<&Chosen>,
        clock: &mut Clock,
    ) -> Result<Result<Value, String>, HandedOver> {
        let asked = ask(question, &self.history, chosen, &equipment.case(self.offer));
        let begun = Instant::now();
        let said = self.put(equipment, &asked).await;
        clock.outside += begun.elapsed();
        said
    }

    async fn put(
        &mut self,
        equipment: &Equipment,
        asked: &Asked,
    ) -> Result<Result<Value, String>, HandedOver> {
        let Mind::Chat(mind) = &equipment.mind else {
            return Ok(Err("no language model is set up".to_owned()));
        };
        let redacted = |text: &str| equipment.redactor.redact(text).into_owned();
        let mut request = ChatRequest {
            system: redacted(&asked.system),
            messages: vec![ChatMessage::user(redacted(&asked.text))],
            temperature: equipment.sampling.temperature,
            max_tokens: equipment.sampling.max_tokens,
            ..ChatRequest::default()
        };
        for _ in 0..MAX_ASKED {
            if let Some(said) = said_before(&self.pending, asked) {
                return Ok(said);
            }
            let gate = &mut self.gate;
            let asking = mind.ask_apart(&request, asked.purpose, &equipment.redactor, gate);
            match unless_handed_over(self.handing_over.clone(), asking).await? {
                Ok(call) => {
                    if let Err(failure) = parse_whole_document::<Value>(&call.answer, &asked.schema, call.cut)
                    {
                        let again = ask_again_for_document(&failure, &asked.schema);
                        let said = if call.answer.trim().is_empty() { EMPTY } else { &call.answer };
                        request.messages.push(ChatMessage::assistant(said));
                        request.messages.push(ChatMessage::user(again));
                    }
                    self.pending.push(call);
                }
                Err(error) => {
                    self.wasted += self.gate.take();
                    // What follows may hang on nothing but the record: why no answer came does not stand there.
                    tracing::warn!(%error, purpose = %asked.purpose, "a question apart from the task got no answer");
                    return Ok(Err(NO_ANSWER.to_owned()));
                }
            }
        }
        Ok(said_before(&self.pending, asked).unwrap_or_else(|| Err(NO_ANSWER.to_owned())))
    }
}
