//! Budgets: the most that a run or a task may use.

use super::usage::Usage;
use crate::settings;

settings! {
    /// The most that may be used. What is absent is not limited.
    #[derive(Copy, PartialEq, Eq)]
    #[cfg_attr(test, derive(schemars::JsonSchema))]
    pub struct Budget {
        /// Most model calls, answered or not.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub model_calls: Option<u64> = None => whole(1, MANY).example("200"); Project Lower,
        /// Most tokens, sent and answered together.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tokens: Option<u64> = None => whole(1, MANY).example("2000000"); Project Lower,
        /// Most that it may cost, in US dollars.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cost_micros: Option<u64> = None => dollars(1e9).example("1.5"); Project Lower,
        /// Most steps: thought, action, observation.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub steps: Option<u64> = None => bounded(1, MANY).example("300"),
    }
}

impl Budget {
    /// Nothing is limited.
    pub const UNLIMITED: Self = Self { model_calls: None, tokens: None, cost_micros: None, steps: None };

    /// Whether nothing is limited.
    #[must_use]
    pub const fn is_unlimited(&self) -> bool {
        self.model_calls.is_none()
            && self.tokens.is_none()
            && self.cost_micros.is_none()
            && self.steps.is_none()
    }

    /// What is left of it once this much was used; never below zero.
    #[must_use]
    pub fn left(self, used: &Usage) -> Self {
        let used = [used.calls(), used.tokens(), used.cost_micros, used.steps];
        self.map(|part, limit| limit.saturating_sub(used[part]))
    }

    /// What is left of it once all of another budget is set aside. What the other does not limit takes nothing.
    #[must_use]
    pub fn without(self, other: &Self) -> Self {
        let other = other.parts();
        self.map(|part, limit| limit.saturating_sub(other[part].unwrap_or(0)))
    }

    /// The tighter of two limits, in each part.
    #[must_use]
    pub fn tighter(self, other: &Self) -> Self {
        self.each(other, |own, other| match (own, other) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        })
    }

    /// These limits, and those of another budget where these say nothing.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        self.each(other, Option::or)
    }

    /// The limits changed by a rule that is told which part it is (model calls, tokens, cost, steps) and its limit.
    #[must_use]
    pub fn map(self, rule: impl Fn(usize, u64) -> u64) -> Self {
        let mut parts = self.parts();
        for (part, limit) in parts.iter_mut().enumerate() {
            *limit = limit.map(|limit| rule(part, limit));
        }
        Self::from_parts(parts)
    }

    /// Whether at least as much is allowed in every part that the other limits.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let parts = self.parts().into_iter().zip(other.parts());
        parts.into_iter().all(|(own, other)| own.is_none_or(|own| other.is_none_or(|other| own >= other)))
    }

    /// Whether this much stays within it.
    #[must_use]
    pub fn allows(&self, used: &Usage) -> bool {
        let used = [used.calls(), used.tokens(), used.cost_micros, used.steps];
        self.parts().into_iter().zip(used).all(|(limit, used)| limit.is_none_or(|limit| used <= limit))
    }

    /// Model calls, tokens, cost, steps.
    #[must_use]
    pub const fn parts(&self) -> [Option<u64>; 4] {
        [self.model_calls, self.tokens, self.cost_micros, self.steps]
    }

    const fn from_parts([model_calls, tokens, cost_micros, steps]: [Option<u64>; 4]) -> Self {
        Self { model_calls, tokens, cost_micros, steps }
    }

    fn each(self, other: &Self, join: impl Fn(Option<u64>, Option<u64>) -> Option<u64>) -> Self {
        let (mut parts, other) = (self.parts(), other.parts());
        for (own, other) in parts.iter_mut().zip(other) {
            *own = join(*own, other);
        }
        Self::from_parts(parts)
    }
}

/// `12 model calls, 4000 tokens, $0.5000 and 20 steps`, with what is not limited left out.
impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counted = |limit: Option<u64>, noun: &str| {
            limit.map(|limit| format!("{limit} {noun}{}", if limit == 1 { "" } else { "s" }))
        };
        let cost =
            self.cost_micros.map(|micros| format!("${}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100));
        let parts = [
            counted(self.model_calls, "model call"),
            counted(self.tokens, "token"),
            cost,
            counted(self.steps, "step"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.split_last() {
            None => f.write_str("no limit"),
            Some((only, [])) => f.write_str(only),
            Some((last, before)) => write!(f, "{} and {last}", before.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used() -> Usage {
        Usage {
            model_calls: 3,
            wasted_calls: 1,
            input_tokens: 70,
            output_tokens: 30,
            cost_micros: 20,
            steps: 2,
            ..Usage::default()
        }
    }

    #[test]
    fn what_is_left_counts_wasted_calls_and_both_kinds_of_tokens() {
        let budget = Budget { model_calls: Some(10), tokens: Some(150), cost_micros: Some(10), steps: None };
        let left = Budget { model_calls: Some(6), tokens: Some(50), cost_micros: Some(0), steps: None };
        assert_eq!(budget.left(&used()), left);
        assert!(!budget.allows(&used()), "the cost is above it");
        assert!(Budget::UNLIMITED.allows(&used()));
    }

    #[test]
    fn limits_are_joined_part_by_part() {
        let one = Budget { model_calls: Some(10), tokens: Some(5), ..Budget::UNLIMITED };
        let other = Budget { model_calls: Some(7), steps: Some(3), ..Budget::UNLIMITED };
        let tighter = Budget { model_calls: Some(7), tokens: Some(5), steps: Some(3), ..Budget::UNLIMITED };
        assert_eq!(one.tighter(&other), tighter);
        assert_eq!(one.or(&other), Budget { model_calls: Some(10), ..tighter });
        assert_eq!(one.without(&other), Budget { model_calls: Some(3), ..one });
        assert!(one.covers(&other), "what is not limited covers everything");
        assert!(!other.covers(&one));
    }

    #[test]
    fn a_budget_is_said_in_words() {
        let budget = Budget { model_calls: Some(1), cost_micros: Some(1_500_000), ..Budget::UNLIMITED };
        assert_eq!(budget.to_string(), "1 model call and $1.5000");
        assert_eq!(Budget { steps: Some(2), ..Budget::UNLIMITED }.to_string(), "2 steps");
        assert_eq!(Budget::UNLIMITED.to_string(), "no limit");
    }
}
