//! What was used: model calls, tokens, tool calls, money.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// What was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Usage {
    /// Model calls that were answered.
    pub model_calls: u64,
    /// Tool calls that were made.
    pub tool_calls: u64,
    /// Tokens sent to models.
    pub input_tokens: u64,
    /// Of these, tokens that came from the provider's cache.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub cached_tokens: u64,
    /// What the cache saved, in millionths of a US dollar, where the price is known.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub saved_micros: u64,
    /// Tokens that models answered.
    pub output_tokens: u64,
    /// Cost in millionths of a US dollar, where the price is known.
    pub cost_micros: u64,
    /// Model calls that gave no answer. They count against budgets.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub wasted_calls: u64,
    /// Model calls that were not made, since an identical one had been answered.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub reused_calls: u64,
    /// What these would have cost, in millionths of a US dollar, where the price is known.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub reused_micros: u64,
    /// Steps that were taken.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub steps: u64,
}

impl Usage {
    /// Model calls, answered or not.
    #[must_use]
    pub const fn calls(&self) -> u64 {
        self.model_calls.saturating_add(self.wasted_calls)
    }

    /// Tokens sent and answered.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl Usage {
    /// Whether nothing was used.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Usage {
    /// What is left without a part of it.
    #[must_use]
    pub const fn without(self, part: Self) -> Self {
        Self {
            model_calls: self.model_calls.saturating_sub(part.model_calls),
            tool_calls: self.tool_calls.saturating_sub(part.tool_calls),
            input_tokens: self.input_tokens.saturating_sub(part.input_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(part.cached_tokens),
            saved_micros: self.saved_micros.saturating_sub(part.saved_micros),
            output_tokens: self.output_tokens.saturating_sub(part.output_tokens),
            cost_micros: self.cost_micros.saturating_sub(part.cost_micros),
            wasted_calls: self.wasted_calls.saturating_sub(part.wasted_calls),
            reused_calls: self.reused_calls.saturating_sub(part.reused_calls),
            reused_micros: self.reused_micros.saturating_sub(part.reused_micros),
            steps: self.steps.saturating_sub(part.steps),
        }
    }
}

impl AddAssign for Usage {
    // An agent may say any number.
    fn add_assign(&mut self, other: Self) {
        self.model_calls = self.model_calls.saturating_add(other.model_calls);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.saved_micros = self.saved_micros.saturating_add(other.saved_micros);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost_micros = self.cost_micros.saturating_add(other.cost_micros);
        self.wasted_calls = self.wasted_calls.saturating_add(other.wasted_calls);
        self.reused_calls = self.reused_calls.saturating_add(other.reused_calls);
        self.reused_micros = self.reused_micros.saturating_add(other.reused_micros);
        self.steps = self.steps.saturating_add(other.steps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_a_most() {
        let huge = Usage { input_tokens: u64::MAX, model_calls: 1, ..Usage::default() };
        let mut sum = huge;
        sum += huge;
        assert_eq!((sum.input_tokens, sum.model_calls), (u64::MAX, 2));
    }
}
