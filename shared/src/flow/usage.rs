//! What was used: model calls, tokens, tool calls, money.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// What was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Model calls that were answered.
    pub model_calls: u64,
    /// Tool calls that were made.
    pub tool_calls: u64,
    /// Tokens sent to models.
    pub input_tokens: u64,
    /// Tokens that models answered.
    pub output_tokens: u64,
    /// Cost in millionths of a US dollar, where the price is known.
    pub cost_micros: u64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.model_calls += other.model_calls;
        self.tool_calls += other.tool_calls;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cost_micros += other.cost_micros;
    }
}
