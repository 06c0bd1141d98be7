//! What an agent says of itself while it is there: what each of its slots does, what it can do, what that costs.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a slot of an agent does (R3).
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AgentState {
    /// It has no task.
    #[default]
    Idle,
    /// It makes a plan.
    Planning,
    /// A model is asked what to do next.
    Thinking,
    /// A tool is at work.
    Acting,
    /// What came of an action is written down.
    Observing,
    /// It changes a plan.
    Replanning,
    /// Its task has ended well; it is about to be free.
    Finished,
    /// Its task has ended otherwise; it is about to be free.
    Error,
}

impl AgentState {
    /// All states.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What an agent says of itself beside who it is (F5). All of it may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(default)]
pub struct Presence {
    /// What those of its slots do that have a task; the others are idle. As of its last heartbeat.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<AgentState>,
    /// What its role can do, in a word or two each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// How long a task took with it of late, in milliseconds; nothing before the first has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_ms: Option<u64>,
    /// What a task cost with it of late, in millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_cost_micros: Option<u64>,
    /// What a million tokens cost that are sent to its model, in millionths of a US dollar, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_price_micros: Option<u64>,
    /// What a million tokens cost that its model answers, in millionths of a US dollar, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_price_micros: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_written_by_its_name() {
        for state in AgentState::ALL {
            assert_eq!(serde_json::to_value(state).ok(), Some(state.name().into()));
        }
    }
}
