//! What people and programs ask of a run that goes on.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::signed::{SignedOrder, SignerKind};
use crate::flow::PlanDraft;
use crate::ids::{QuestionId, RunId, TaskIndex};

/// Something that is asked of a run: the same on its way (`cmd.<run>.<action>`) and in the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Request {
    /// The run.
    pub run: RunId,
    /// Tells it from others like it: one that is given out twice is done once. On its way, the message's own id when
    /// absent.
    #[serde(default, skip_serializing_if = "Uuid::is_nil")]
    pub id: Uuid,
    /// Who asks. On its way, the sender of the message when absent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Why. Of [`RequestAction::Reject`], what is to be different.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Who signed it, where requests are signed. On its way it says nothing: the message is signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<Box<SignedOrder>>,
    /// What is asked.
    pub action: RequestAction,
}

/// What can be asked of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RequestAction {
    /// Stop the run.
    Cancel,
    /// Offer nothing more, and hand over what is in work, until the run is resumed.
    Pause,
    /// Go on with a run that is paused.
    Resume {
        /// Time for the run from now on, in milliseconds; its deadline stays as it is when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        deadline_ms: Option<u64>,
    },
    /// Leave out a task and all below it. What depends on it goes on without it.
    Skip {
        /// The task.
        task: TaskIndex,
    },
    /// Do a task again, and whatever used its result. Whoever does it is told the reason.
    Redo {
        /// The task.
        task: TaskIndex,
    },
    /// Change a goal. A task that was begun is done again; for a new goal of the run, the plan is refined.
    Edit {
        /// The task whose goal it is; the run's own goal when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        task: Option<TaskIndex>,
        /// The goal as it is to be.
        goal: String,
    },
    /// Approve what the run asks about: its plan, whether to go on, or a call of a tool.
    Approve {
        /// The question; the only one that waits for it when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        question: Option<QuestionId>,
        /// The arguments of the call as they are to be, if they were edited.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
        /// The plan as it is to be, if it was edited.
        #[serde(skip_serializing_if = "Option::is_none")]
        plan: Option<Box<PlanDraft>>,
    },
    /// Reject what the run asks about; the plan is changed by the reason, and asked about again.
    Reject {
        /// The question; the only one that waits for it when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        question: Option<QuestionId>,
    },
    /// Answer a question of the run.
    Answer {
        /// The question.
        question: QuestionId,
        /// The answer, or one of the choices by its words or its number.
        text: String,
    },
    /// Write a value of the shared context.
    SetContext {
        /// Its key.
        key: String,
        /// What it is.
        value: Value,
        /// The version that whoever writes it has seen; 0 when there was none.
        #[serde(default)]
        version: u32,
    },
}

impl Request {
    /// Asks something of a run, without a reason, an id, or the name of whoever asks.
    #[must_use]
    pub const fn new(run: RunId, action: RequestAction) -> Self {
        Self { run, id: Uuid::nil(), by: String::new(), reason: String::new(), signed: None, action }
    }

    /// The same as it was signed. A person's name is the one in the credentials, whatever the request says; whoever runs the
    /// fleet speaks for others.
    #[must_use]
    pub fn signed(self, signed: Option<SignedOrder>) -> Self {
        let by = match &signed {
            Some(SignedOrder { by, kind: SignerKind::Person | SignerKind::Orchestrator, .. }) => by.clone(),
            Some(SignedOrder { kind: SignerKind::Operator, .. }) | None => self.by,
        };
        Self { by, signed: signed.map(Box::new), ..self }
    }

    /// As whom it counts where a person is asked for: who signed it; where nothing is signed, who it says.
    #[must_use]
    pub fn voice(&self) -> &str {
        self.signed.as_ref().map_or(&self.by, |signed| &signed.by)
    }

    /// The same with a reason.
    #[must_use]
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }

    /// The same with an id.
    #[must_use]
    pub fn with_id(self, id: Uuid) -> Self {
        Self { id, ..self }
    }

    /// What tells it from others like it, if it says so itself.
    #[must_use]
    pub const fn own_id(&self) -> Option<Uuid> {
        if self.id.is_nil() { None } else { Some(self.id) }
    }
}

impl RequestAction {
    /// The last token of the subject of a request.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }
}
