//! The envelope that every message travels in (F7).

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ask::{Accepted, Ask, Refused};
use super::message::{Command, ControlMessage, Heartbeat, Live, Profile};
use crate::flow::{Bid, CallForProposals, Outcome, Step, TaskOffered};
use crate::ids::{AgentId, Attempt, RunId, TaskId};
use crate::run::{AgentEvent, Decided, Released, Started, ToolStarted};
use crate::time::Millis;

/// The version of the envelope that this build writes.
pub const WIRE_VERSION: u16 = 1;

/// The envelope of a message. What may be left out has a sense of its own when it is missing, so that a
/// program writing JSON by hand needs `body` only, and its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Envelope {
    /// Version of the envelope and of the body's schema.
    #[serde(default = "first_version")]
    pub v: u16,
    /// Names this message; nil when the sender gave it no name.
    #[serde(default)]
    pub id: Uuid,
    /// Who sent it; `anonymous` when it does not say.
    #[serde(default = "anonymous")]
    pub sender: AgentId,
    /// For whom it is, if for one in particular.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver: Option<AgentId>,
    /// When it was sent, by the sender's clock. For people; order comes from the record's sequence.
    #[serde(default)]
    pub sent: Millis,
    /// When it is of no use any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Millis>,
    /// The message that this one answers or follows from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<Uuid>,
    /// The run it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The task it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Which try of the task, from 1, where the message begins one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// W3C trace context, where no `traceparent` header carries it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// What it says.
    pub body: Body,
}

impl Envelope {
    /// An envelope of the present version that says nothing but who sends what, and when.
    #[must_use]
    pub const fn new(id: Uuid, sender: AgentId, sent: Millis, body: Body) -> Self {
        Self {
            v: WIRE_VERSION,
            id,
            sender,
            receiver: None,
            sent,
            expires: None,
            correlation: None,
            run: None,
            task: None,
            attempt: None,
            trace: None,
            body,
        }
    }
}

const fn first_version() -> u16 {
    1
}

fn anonymous() -> AgentId {
    AgentId::anonymous()
}

/// W3C trace context, in its header form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(transparent)]
pub struct TraceContext(pub String);

/// What a message says. The tag is the message's type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "type", content = "content", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "an envelope is built, sent and dropped")]
pub enum Body {
    /// Record: an orchestrator decided.
    Decided(Decided),
    /// Record and queue: a task is offered.
    Offered(TaskOffered),
    /// Record: an agent started a task.
    Started(Started),
    /// Record: an agent is about to call a tool with lasting effect.
    ToolStarted(ToolStarted),
    /// Record: an agent took a step.
    Step(Step),
    /// Record: an agent hands a task over.
    Released(Released),
    /// Record: a task ended.
    Outcome(Outcome),
    /// A durable command.
    Command(Command),
    /// An agent is alive.
    Heartbeat(Heartbeat),
    /// What an agent can do.
    Profile(Profile),
    /// What is happening right now, for whoever watches. Not part of the record.
    Live(Live),
    /// Interrupts at once.
    Control(ControlMessage),
    /// Agents are asked for bids.
    Call(CallForProposals),
    /// An agent bids for a task.
    Bid(Bid),
    /// A request to the fleet, which is answered.
    Ask(Ask),
    /// The answer to a request that is granted.
    Accepted(Accepted),
    /// Something that was sent is of no use to anybody.
    Error(Refused),
    /// A body above the inline limit: it lies in the object store, encoded as this envelope is.
    Stored(StoredBody),
}

/// Above this many bytes an encoded body goes to the object store and the message carries the reference.
pub const INLINE_LIMIT: usize = 128 * 1024;

/// A reference to a body in the object store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct StoredBody {
    /// Its kind.
    pub kind: MessageKind,
    /// SHA-256 of the encoded body, in hexadecimal: the object's name.
    pub hash: String,
    /// Length in bytes.
    pub bytes: u64,
}

/// The type of a message.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is the Body variant of the same name")]
#[strum(serialize_all = "snake_case")]
pub enum MessageKind {
    Decided,
    Offered,
    Started,
    ToolStarted,
    Step,
    Released,
    Outcome,
    Command,
    Heartbeat,
    Profile,
    Live,
    Control,
    Call,
    Bid,
    Ask,
    Accepted,
    Error,
    Stored,
}

impl MessageKind {
    /// All kinds.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The kind as it stands in an envelope's `body.type`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Body {
    /// The type of this message.
    #[must_use]
    pub const fn kind(&self) -> MessageKind {
        match self {
            Self::Decided(_) => MessageKind::Decided,
            Self::Offered(_) => MessageKind::Offered,
            Self::Started(_) => MessageKind::Started,
            Self::ToolStarted(_) => MessageKind::ToolStarted,
            Self::Step(_) => MessageKind::Step,
            Self::Released(_) => MessageKind::Released,
            Self::Outcome(_) => MessageKind::Outcome,
            Self::Command(_) => MessageKind::Command,
            Self::Heartbeat(_) => MessageKind::Heartbeat,
            Self::Profile(_) => MessageKind::Profile,
            Self::Live(_) => MessageKind::Live,
            Self::Control(_) => MessageKind::Control,
            Self::Call(_) => MessageKind::Call,
            Self::Bid(_) => MessageKind::Bid,
            Self::Ask(_) => MessageKind::Ask,
            Self::Accepted(_) => MessageKind::Accepted,
            Self::Error(_) => MessageKind::Error,
            Self::Stored(_) => MessageKind::Stored,
        }
    }

    /// The event of an agent, if that is what this is.
    #[must_use]
    pub fn into_agent_event(self) -> Option<AgentEvent> {
        match self {
            Self::Started(started) => Some(AgentEvent::Started(started)),
            Self::ToolStarted(started) => Some(AgentEvent::ToolStarted(started)),
            Self::Step(step) => Some(AgentEvent::Step(step)),
            Self::Released(released) => Some(AgentEvent::Released(released)),
            Self::Outcome(outcome) => Some(AgentEvent::Outcome(outcome.into())),
            Self::Decided(_)
            | Self::Offered(_)
            | Self::Command(_)
            | Self::Heartbeat(_)
            | Self::Profile(_)
            | Self::Live(_)
            | Self::Control(_)
            | Self::Call(_)
            | Self::Bid(_)
            | Self::Ask(_)
            | Self::Accepted(_)
            | Self::Error(_)
            | Self::Stored(_) => None,
        }
    }
}
