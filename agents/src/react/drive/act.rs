//! Tools: announced, called, and called again where that may be.

use std::time::Instant;

use muster_shared::flow::{
    Action, Answered, Awaited, Observation, ObservationStatus, Step, TaskOffered, Wait,
};
use muster_shared::run::{AgentEvent, ToolStarted};

use super::super::decide::ChosenAction;
use super::super::interrupt::unless_handed_over;
use super::super::journal::Journal;
use super::super::resources::TaskResources;
use super::super::uncertain::{Resumption, resume};
use super::{Clock, End, Failure, TaskSession, Toolbox};
use crate::tools::{ToolResult, ToolStatus};

/// What came of a call.
pub(super) enum Acted {
    /// Something to observe.
    Observed(Observation),
    /// Nothing before this is there.
    Waits(Box<Wait>),
}

impl TaskSession<'_> {
    /// Ends the step whose tool was begun and not ended, as the tool has it; gives the end if that ends the task.
    pub(super) async fn finish_begun(
        &mut self,
        journal: &mut Journal,
        toolbox: &mut Toolbox,
    ) -> Result<Option<End>, Failure> {
        let Some(ToolStarted { step, idempotency_key }) = self.history.begun().cloned() else {
            return Ok(None);
        };
        if let Some(answered) = self.offer.answered.as_deref().filter(|answered| answered.step == step.number)
        {
            return self.take_answer(journal, step, answered, &toolbox.resources).await;
        }
        if idempotency_key.is_empty() {
            return self.go_on_from(journal, toolbox, step).await;
        }
        let resources = &toolbox.resources;
        let (name, mut clock) = (step.action.name.clone(), Clock::start());
        let (observation, end) = match resume(&step, resources.when_uncertain(&name)) {
            Resumption::Tell(observation) => (observation, None),
            Resumption::Fail(observation, submission) => {
                (observation, Some(End { submission: *submission, chosen: None, clock }))
            }
            Resumption::Repeat => {
                let Step { thought, action, notes, .. } = step.clone();
                let chosen = ChosenAction { thought, action, left_out: 0, notes };
                let acting = self.act(&chosen, &idempotency_key, resources, &mut clock);
                match unless_handed_over(self.handing_over.clone(), acting).await? {
                    Acted::Observed(observation) => (observation, None),
                    Acted::Waits(wait) => return Err(self.waits(*wait)),
                }
            }
        };
        let step = Step { observation: Some(observation), ..step };
        self.journal_step(journal, step, !resources.is_pure(&name)).await?;
        Ok(end)
    }

    /// Ends the step with what came of what the task waited for.
    async fn take_answer(
        &mut self,
        journal: &mut Journal,
        step: Step,
        answered: &Answered,
        resources: &TaskResources,
    ) -> Result<Option<End>, Failure> {
        let mut observation = answered.observation.clone();
        observation.content = resources.redactor.redact(&observation.content).into_owned();
        let lasting = !resources.is_pure(&step.action.name);
        let step = Step { observation: Some(observation), ..step };
        self.journal_step(journal, step, lasting).await?;
        Ok(None)
    }

    /// The step that is begun waits.
    pub(super) fn waits(&self, wait: Wait) -> Failure {
        Failure::Waits(Box::new(Awaited { step: self.history.next_step(), wait }))
    }

    /// Journals the model's answer, with nothing of it done: whoever goes on need not ask the model again.
    pub(super) async fn keep(
        &self,
        journal: &mut Journal,
        chosen: &ChosenAction,
        clock: Clock,
    ) -> Result<(), Failure> {
        let step = self.make_step(chosen.clone(), None, clock);
        let kept = ToolStarted { step, idempotency_key: String::new() };
        Ok(journal.append(&AgentEvent::ToolStarted(kept)).await?)
    }

    /// Journals the model's answer before its tool has ended.
    pub(super) async fn announce(
        &self,
        journal: &mut Journal,
        chosen: &ChosenAction,
        clock: Clock,
    ) -> Result<(), Failure> {
        let step = self.make_step(chosen.clone(), None, clock);
        let begun = ToolStarted { step, idempotency_key: self.idempotency_key() };
        Ok(journal.append(&AgentEvent::ToolStarted(begun)).await?)
    }

    /// Calls a tool. A call with side effects goes by this key.
    pub(super) async fn act(
        &self,
        chosen: &ChosenAction,
        key: &str,
        resources: &TaskResources,
        clock: &mut Clock,
    ) -> Acted {
        let begun = Instant::now();
        let Action { name, arguments } = &chosen.action;
        let context = resources.context_for(name, key);
        let result = resources.engine.call(name, arguments.clone(), &context).await;
        clock.outside += begun.elapsed();
        let mut observation = match result.wait {
            Some(wait) => return Acted::Waits(wait),
            None => observed(result),
        };
        if chosen.left_out > 0 {
            observation
                .content
                .push_str("\n(Only the first action of your answer was done: one action per step.)");
        }
        observation.content = resources.redactor.redact(&observation.content).into_owned();
        Acted::Observed(observation)
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
