//! What is asked of the fleet by NATS request, and what it answers: `ask.<name>`. An answer comes in the encoding of the
//! request, with the request's id as `correlation`.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flow::Goal;
use crate::ids::RunId;

/// Longest id that an asker may give a request of its own, in bytes.
pub const MAX_ASK_ID: usize = 256;

/// A request: `ask.submit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// Work on a goal. It is answered as soon as an orchestrator has taken it up or refused it.
    Submit {
        /// The goal.
        goal: Box<Goal>,
        /// What tells the request from others of the same sender: asked again with it, it is the same run. Nothing, and
        /// no `run`: each time is another run.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The run to be, where the asker names it (a UUID of version 7): asked again with it, it is the same run.
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
    },
}

impl Ask {
    /// The last token of its subject.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Submit { .. } => "submit",
        }
    }
}

/// The answer to a request that is granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Accepted {
    /// The run. What happens to it stands in its record.
    pub run: RunId,
    /// Whether it stays in the queue for now: it is kept, and no orchestrator has taken it up in time for this answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
}

/// The answer to a request that is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Refused {
    /// Why, and what to do, with the field that is wrong if it is one.
    pub reason: String,
    /// The run, if it stands in the record that it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Whether the same may be asked again later: there is only too much to do now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub later: bool,
}
