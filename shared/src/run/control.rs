//! What people have a run do.

use std::collections::VecDeque;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::time::Millis;

/// What people have a run do: whether it rests, and what they asked of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Control {
    /// Whether nothing is offered for now, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    /// The latest requests that were decided upon: none is carried out twice.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub requests: VecDeque<Uuid>,
}

/// Why and since when nothing is offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Paused {
    /// Since when.
    pub since: Millis,
    /// Who asked for it, and why.
    pub reason: String,
}

impl Control {
    /// How many requests are remembered: a command that is given out twice comes back within minutes.
    const MOST_REQUESTS: usize = 256;

    /// Remembers that a request was decided upon.
    pub(super) fn note_request(&mut self, request: Uuid) {
        if self.requests.contains(&request) {
            return;
        }
        if self.requests.len() >= Self::MOST_REQUESTS {
            self.requests.pop_front();
        }
        self.requests.push_back(request);
    }
}
