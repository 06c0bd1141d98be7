//! What a task waits for while it holds no slot.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approval::{CallToApprove, CallVerdict};
use super::form::FormReply;
use super::peer::{PeerAnswer, PeerRequest};
use super::plan::TaskDraft;
use super::question::Question;
use super::step::Observation;
use crate::blueprint::Filled;

/// What a task waits for. It is put down meanwhile, and goes on with what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// An answer to a question: a person's, or the one that is taken when nobody gives any.
    Answer(Question),
    /// A person's approval of a call of a tool (T8).
    Approval(Box<CallToApprove>),
    /// The end of a task that this one hands over part of its work to.
    Task(Box<TaskDraft>),
    /// The end of a run of its own (R6).
    Run(Box<ChildGoal>),
    /// The answer to a request to its peers (F8).
    Peer(Box<PeerRequest>),
}

impl Wait {
    /// What it is, in a few words.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Answer(question) => format!("an answer to: {}", question.text),
            Self::Approval(call) => format!("approval of a call of `{}`", call.tool),
            Self::Task(draft) => format!("a task of its own: {}", draft.name),
            Self::Run(child) => format!("a run of its own: {}", child.goal),
            Self::Peer(request) => format!("the answer to a {}", request.in_words()),
        }
    }
}

/// The goal of a run that a task waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct ChildGoal {
    /// What is to be achieved.
    pub goal: String,
    /// The domain whose orchestrators see to it; that of the run when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The blueprint that it is worked on by, with its values; a planner makes the plan when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blueprint: Option<Box<Filled>>,
}

/// What an agent waits for, and the step that it belongs to: begun, and without an observation so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Awaited {
    /// The step.
    pub step: u32,
    /// What is waited for.
    pub wait: Wait,
}

/// What came of a wait: the observation of the step that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Answered {
    /// The step.
    pub step: u32,
    /// Its observation.
    pub observation: Observation,
    /// The same for programs, when peers were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<PeerAnswer>>,
    /// What a person said of a call of the step, when that was waited for: the step goes on by it, and has no observation
    /// yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Box<CallVerdict>>,
    /// What a person gave who was asked for something by a call of the step: it is made again with that, and has no
    /// observation yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Box<FormReply>>,
}
