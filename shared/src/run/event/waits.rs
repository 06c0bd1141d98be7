//! Tasks that wait, and what comes of that.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payload::{Payload, Words};
use crate::flow::{
    Answered, CallVerdict, ContextRead, FormReply, Observation, PeerAnswer, PeerRequest, Plan, TaskStatus,
    Wait,
};
use crate::ids::{AgentId, Generation, Role, TaskId, TaskIndex};
use crate::run::apply::plan::add_task;
use crate::run::apply::task::{at_generation, executable, waiting};
use crate::run::apply::{ApplyError, ApplyResult};
use crate::run::state::RunState;
use crate::run::task_state::Waiting;
use crate::time::Millis;

/// A task was put down until what it waits for is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskWaits {
    /// The task.
    pub task: TaskId,
    /// The generation that was put down.
    pub generation: Generation,
    /// The step that is begun.
    pub step: u32,
    /// What is waited for.
    pub wait: Wait,
}

impl Payload for TaskWaits {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("{} waits for {}", self.task, words.brief(&self.wait.in_words()))
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        let found = at_generation(run, &self.task, self.generation)?;
        // What is not of a step is of the task as a whole, which nobody goes on with from where it stood.
        if found.status != TaskStatus::Created || (found.continues.is_none() && self.step > 0) {
            return Err(ApplyError::NotWaiting { task: self.task.clone() });
        }
        found.answered = None;
        let (step, wait) = (self.step, self.wait.clone());
        found.wait(Waiting { step, wait, since: now, for_run: None, for_task: None });
        if let Wait::Peer(request) = &self.wait {
            count_request(run, &self.task, request);
        }
        Ok(())
    }
}

fn count_request(run: &mut RunState, task: &TaskId, request: &PeerRequest) {
    run.peers.requests = run.peers.requests.saturating_add(1);
    if let (PeerRequest::ContextRead(ContextRead { key, prefix }), TaskId::Leaf(task)) = (request, task) {
        let asked = if *prefix { format!("{key}*") } else { key.clone() };
        run.peers.asked.entry(task.clone()).or_default().insert(asked);
    }
}

/// What a task waited for is there: its next generation goes on with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskAnswered {
    /// The task.
    pub task: TaskId,
    /// The step that was begun.
    pub step: u32,
    /// Its observation.
    pub observation: Observation,
    /// The same for programs, when peers were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<PeerAnswer>>,
    /// What a person said of a call of the step, when that was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Box<CallVerdict>>,
    /// What a person gave who was asked for something by a call of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Box<FormReply>>,
}

impl Payload for TaskAnswered {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("{} goes on: {}", self.task, words.brief(&self.observation.content))
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        let found = executable(run, &self.task)?;
        if found.end_wait().is_none_or(|waiting| waiting.step != self.step) {
            return Err(ApplyError::NotWaiting { task: self.task.clone() });
        }
        let Self { step, observation, answer, verdict, form, .. } = self.clone();
        found.answered = Some(Box::new(Answered { step, observation, answer, verdict, form }));
        Ok(())
    }
}

/// A task handed over part of its work: the plan has a task more, and the one that asked for it waits for its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct TaskDelegated {
    /// The task that waits.
    pub task: TaskIndex,
    /// The task that was added.
    pub to: TaskIndex,
    /// The plan as it stands now.
    pub plan: Plan,
}

impl Payload for TaskDelegated {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.to_task_id())
    }

    fn text(&self, _: Words<'_>) -> String {
        format!("{} hands work over to the new task {}", self.task, self.to)
    }

    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        add_task(run, &self.to, &self.plan)?.handed_over_by = Some(self.task.clone());
        let task = self.task.to_task_id();
        waiting(run, &task)?.for_task = Some(self.to.clone());
        Ok(())
    }
}

/// Handing work over would have gone in a circle, or too far. The task goes on by itself, with another agent if there
/// is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct HandOverRefused {
    /// The task that wanted to hand work over.
    pub task: TaskIndex,
    /// How the work came to it: whoever handed it over first comes first, the task itself last.
    pub chain: Vec<TaskIndex>,
    /// Who worked on the task, and should rather not have it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Why, with the chain in words.
    pub reason: String,
}

impl Payload for HandOverRefused {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.to_task_id())
    }

    fn text(&self, words: Words<'_>) -> String {
        let by = self.agent.as_ref().map(|agent| format!(" ({agent})")).unwrap_or_default();
        format!("{}{by} may not hand work over: {}", self.task, words.brief(&self.reason))
    }

    /// Who goes round in circles should rather not have the task again.
    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        let task = self.task.to_task_id();
        waiting(run, &task)?;
        if let Some(agent) = &self.agent {
            executable(run, &task)?.avoid(agent.clone(), "it handed work over in a circle");
        }
        Ok(())
    }
}

/// A role that tasks of the run need lost its last agent, or has one again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RoleAvailabilityChanged {
    /// The role.
    pub role: Role,
    /// Whether an agent of the role is online.
    pub available: bool,
}

impl Payload for RoleAvailabilityChanged {
    fn text(&self, _: Words<'_>) -> String {
        let state =
            if self.available { "an agent is online again" } else { "no agent is online; its tasks wait" };
        format!("role {}: {state}", self.role)
    }

    fn fold(&self, run: &mut RunState, now: Millis) -> ApplyResult {
        if self.available {
            run.missing_roles.remove(&self.role);
        } else {
            run.missing_roles.entry(self.role.clone()).or_insert(now);
        }
        Ok(())
    }
}

/// Tasks waited for each other, or for what cannot come. One of them goes on without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct DeadlockEnded {
    /// The task that goes on.
    pub task: TaskId,
    /// Who waits for whom, in order: the last one for the first. Empty where they do not wait in a circle.
    pub circle: Vec<TaskIndex>,
    /// Why it cannot come.
    pub reason: String,
}

impl Payload for DeadlockEnded {
    fn task(&self) -> Option<TaskId> {
        Some(self.task.clone())
    }

    fn text(&self, words: Words<'_>) -> String {
        format!("{} goes on without what it waited for: {}", self.task, words.brief(&self.reason))
    }

    /// What comes next ends its wait.
    fn fold(&self, run: &mut RunState, _: Millis) -> ApplyResult {
        waiting(run, &self.task).map(drop)
    }
}
