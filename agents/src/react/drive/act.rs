//! Tools: announced, called, and called again where that may be.

use std::time::Instant;

use muster_shared::flow::{Action, Observation, ObservationStatus, Step, TaskOffered};
use muster_shared::run::{AgentEvent, ToolStarted};

use super::super::decide::Chosen;
use super::super::equipment::Equipment;
use super::super::interrupt::unless_handed_over;
use super::super::journal::Journal;
use super::super::uncertain::{Resumption, resume};
use super::{Clock, Course, End, Failure};
use crate::tools::{ToolResult, ToolStatus};

impl Course<'_> {
    /// Ends the step whose tool was begun and not ended, as the tool has it; gives the end if that ends the task.
    pub(super) async fn finish_begun(
        &mut self,
        journal: &mut Journal,
        equipment: &Equipment,
    ) -> Result<Option<End>, Failure> {
        let Some(ToolStarted { step, idempotency_key }) = self.history.begun().cloned() else {
            return Ok(None);
        };
        let (name, mut clock) = (step.action.name.clone(), Clock::start());
        let (observation, end) = match resume(&step, equipment.when_uncertain(&name)) {
            Resumption::Tell(observation) => (observation, None),
            Resumption::Fail(observation, submission) => {
                (observation, Some(End { submission, chosen: None, clock }))
            }
            Resumption::Repeat => {
                let Step { thought, action, notes, .. } = step.clone();
                let chosen = Chosen { thought, action, left_out: 0, notes };
                let acting = self.act(&chosen, &idempotency_key, equipment, &mut clock);
                (unless_handed_over(self.handing_over.clone(), acting).await?, None)
            }
        };
        let step = Step { observation: Some(observation), ..step };
        self.journal_step(journal, step, !equipment.is_pure(&name)).await?;
        Ok(end)
    }

    /// Journals the model's answer before its tool has ended.
    pub(super) async fn announce(
        &self,
        journal: &mut Journal,
        chosen: &Chosen,
        clock: Clock,
    ) -> Result<(), Failure> {
        let step = self.make_step(chosen.clone(), None, clock);
        let begun = ToolStarted { step, idempotency_key: self.idempotency_key() };
        Ok(journal.append(&AgentEvent::ToolStarted(begun)).await?)
    }

    /// Calls a tool. A call with side effects goes by this key.
    pub(super) async fn act(
        &self,
        chosen: &Chosen,
        key: &str,
        equipment: &Equipment,
        clock: &mut Clock,
    ) -> Observation {
        let begun = Instant::now();
        let Action { name, arguments } = &chosen.action;
        let context = equipment.context_for(name, key);
        let result = equipment.engine.call(name, arguments.clone(), &context).await;
        clock.outside += begun.elapsed();
        let mut observation = observed(result);
        if chosen.left_out > 0 {
            observation
                .content
                .push_str("\n(Only the first action of your answer was done: one action per step.)");
        }
        observation.content = equipment.redactor.redact(&observation.content).into_owned();
        observation
    }

    pub(super) fn idempotency_key(&self) -> String {
        let TaskOffered { run, task, generation, .. } = self.offer;
        format!("{run}/{task}/{generation}/{}", self.history.next_step())
    }
}

fn observed(result: ToolResult) -> Observation {
    let status = match result.status {
        ToolStatus::Success => ObservationStatus::Success,
        ToolStatus::Error => ObservationStatus::Error,
        ToolStatus::Timeout => ObservationStatus::Timeout,
        ToolStatus::Refused => ObservationStatus::Refused,
    };
    Observation { status, content: result.content, millis: result.millis, truncated: result.truncated }
}
